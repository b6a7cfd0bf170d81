"""Separate the curves of a large group, each with answers to blanks in place of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.likelihood import LogPriors, SearchProblem
from psyprobe.analysis.psychometric.rate_answers import rate_answers
from psyprobe.analysis.psychometric.search import (
    Maxima,
    rate_information,
    separate_curves,
)

#: Curves of a group from which the answers stand for all others closely enough.
_FEWEST_CURVES = 32


def separate_groups(
    problem: SearchProblem, best: Maxima
) -> tuple[SearchProblem, Maxima]:
    """Make each curve of large groups a group of its own; small ones are returned as they are."""
    groups, curves = problem.counts.centre.shape
    if curves < _FEWEST_CURVES or problem.equal_rates:
        return problem, best
    group, member = np.divmod(np.arange(groups * curves), curves)
    single, point = separate_curves(problem, best.point, group, member)
    by_curve = rate_information(_without_rates(single), point)

    def others(values: FloatArray) -> FloatArray:
        values = values.reshape(-1, groups, curves)
        rest = values.sum(axis=-1, keepdims=True) - values
        return np.asarray(rest.reshape(len(rest), -1))

    gradient, curvature = map(others, by_curve)
    separate = replace(
        single,
        lower=replace(
            single.lower,
            guess=problem.lower.guess[group],
            lapse=problem.lower.lapse[group],
        ),
        upper=replace(
            single.upper,
            guess=problem.upper.guess[group],
            lapse=problem.upper.lapse[group],
        ),
        rest=rate_answers(
            np.stack([point.guess, point.lapse], axis=-1),
            gradient.T,
            curvature[::2].T,
            -curvature[1],
        ),
    )
    value = separate.objective(point, separate.levels_at(point))
    return separate, Maxima(point, value, best.converged[group])


def _without_rates(problem: SearchProblem) -> SearchProblem:
    """Leave out what tells of rates beside a curve: answers to blanks, and priors."""
    counts = problem.counts
    none = np.zeros_like(counts.catch_yes)
    curve_priors = {
        name: prior
        for name, prior in problem.priors.by_name.items()
        if name in ("threshold", "width")
    }
    return replace(
        problem,
        counts=replace(counts, catch_yes=none, catch_trials=none),
        priors=LogPriors(curve_priors),
    )
