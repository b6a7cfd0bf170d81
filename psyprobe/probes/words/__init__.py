"""Asking in words whether a pattern is seen: in one image, or in which of two."""
