"""``python -m psyprobe`` is the command ``psyprobe``."""

from __future__ import annotations

import sys

from psyprobe.cli import main

if __name__ == "__main__":
    sys.exit(main())
