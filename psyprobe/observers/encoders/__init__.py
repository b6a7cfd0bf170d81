"""Vision encoders of five libraries."""
