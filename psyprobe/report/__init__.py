"""Pages for a browser, each one file that needs nothing else; text that came from a model is escaped."""

from __future__ import annotations
