"""Bridges to other harnesses: they ask our questions, and read and write our answers."""
