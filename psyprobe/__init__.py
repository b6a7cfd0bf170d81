"""psyprobe asks machines the questions that psychophysics asks people."""

from __future__ import annotations

__version__ = "0.1.0"
