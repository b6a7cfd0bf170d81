"""Observers with features that answer, by a decision stage that was trained on other images."""
