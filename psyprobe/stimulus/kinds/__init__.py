"""Kinds of stimulus, one file a family."""
