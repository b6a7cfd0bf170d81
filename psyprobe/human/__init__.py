"""psyprobe."""
