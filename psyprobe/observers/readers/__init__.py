"""Recognisers of text as observers that name letters."""
