"""Sessions of a person at this screen (`psyprobe observe`), for patterns and for pictures."""
