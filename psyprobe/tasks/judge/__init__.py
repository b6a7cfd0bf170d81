"""A chat model as judge of what rules cannot read."""
