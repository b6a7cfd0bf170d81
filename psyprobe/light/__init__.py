"""Light and drive: displays, transfer functions, colour."""
