"""What enters and leaves: whole-or-nothing writing, images, PNG, tables, progress."""
