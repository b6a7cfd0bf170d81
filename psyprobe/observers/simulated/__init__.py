"""Observers of known truth, in this process and behind a real HTTP server on loopback."""
