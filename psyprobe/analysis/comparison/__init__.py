"""Compare observers, thresholds and curves: differences, their intervals, and what they allow."""
