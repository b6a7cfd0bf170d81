"""Bridges to other harnesses: the same questions put by them, and their answers as results here,
and back.
"""
