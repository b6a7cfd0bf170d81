"""Experiments as pages one can read: one schema for every probe and every observer."""

from __future__ import annotations

from psyprobe.experiment.experiment import (
    Experiment,
    is_suite,
    list_experiments,
    load_experiment,
    load_suite,
)

__all__ = [
    "Experiment",
    "is_suite",
    "list_experiments",
    "load_experiment",
    "load_suite",
]
