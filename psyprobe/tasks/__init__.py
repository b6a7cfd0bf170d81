"""Benchmarks and what they need: items, probe, metrics, figures, pages, commands; one room each."""
