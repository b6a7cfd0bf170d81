"""Derivatives of the likelihood beside differences of the likelihood itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric import likelihood
from psyprobe.analysis.psychometric.counts import Counts, Point
from psyprobe.analysis.psychometric.sigmoids import SIGMOIDS

GROUPS, CURVES, LEVELS = 3, 2, 5
CURVE, RATES = ("threshold", "slope"), ("guess", "lapse")


def _answers(rng: np.random.Generator) -> Counts:
    shape = (GROUPS, CURVES, LEVELS)
    trials = rng.integers(1, 20, shape).astype(float)
    catch = np.array([0.0, 7.0, 12.0])
    ones = np.ones((GROUPS, CURVES))
    yes, catch_yes = (
        np.rint(trials * rng.uniform(0, 1, shape)),
        np.array([0.0, 1.0, 0.0]),
    )
    return Counts(
        np.sort(rng.uniform(-0.5, 0.5, shape)),
        yes,
        trials,
        catch_yes,
        catch,
        -2 * ones,
        1.5 * ones,
        0.1 * ones,
    )


def _point(rng: np.random.Generator, eta: float) -> Point:
    shape = (GROUPS, CURVES)
    threshold, slope = rng.uniform(-0.4, 0.4, shape), rng.uniform(0.2, 1.5, shape)
    return Point(
        threshold,
        slope,
        rng.uniform(0.05, 0.3, GROUPS),
        rng.uniform(0.01, 0.08, GROUPS),
        np.full(GROUPS, eta),
    )


def _moved(point: Point, name: str, curve: int, by: float) -> Point:
    values = getattr(point, name).copy()
    values[(slice(None), curve) if name in CURVE else slice(None)] += by
    return replace(point, **{name: values})


def _problem(
    family: str, counts: Counts, point: Point, weak: bool = False
) -> likelihood.SearchProblem:
    priors = likelihood.stated_priors(None) if weak else likelihood.LogPriors()
    return likelihood.SearchProblem(
        SIGMOIDS[family], counts, point, point, priors=priors
    )


def _by_differences(
    problem: likelihood.SearchProblem, point: Point, *places: tuple[str, int]
) -> FloatArray:
    """Derivative by one or two parameters, from the objective at steps to either side."""
    if not places:
        return problem.objective(point, problem.levels_at(point))
    (name, curve), *rest = places
    step = 1e-4
    above, below = (
        _by_differences(problem, _moved(point, name, curve, by), *rest)
        for by in (step, -step)
    )
    return (above - below) / (2 * step)


@pytest.mark.parametrize("eta", [0.0, 0.2])
@pytest.mark.parametrize("weak", [False, True], ids=["flat", "priors"])
@pytest.mark.parametrize("family", sorted(SIGMOIDS))
def test_derivatives_are_those_of_the_objective(
    family: str, weak: bool, eta: float
) -> None:
    rng = np.random.default_rng(7)
    counts, point = _answers(rng), _point(rng, eta)
    problem = _problem(family, counts, point, weak)
    derivatives = problem.differentiate(point, problem.levels_at(point))
    exact = (
        derivatives.blocks[:, 0],
        derivatives.across[:, :, 0],
        derivatives.corner[:, 0],
    )

    def agree(value: FloatArray, *places: tuple[str, int]) -> None:
        difference_quotient = _by_differences(problem, point, *places)
        # The priors' own derivatives are differences, good to about 1e-5.
        np.testing.assert_allclose(
            value, difference_quotient, rtol=1e-4, atol=2e-4, err_msg=str(places)
        )

    for i, rate in enumerate(RATES):
        agree(derivatives.rates[i], (rate, 0))
        for j in range(i, 2):
            agree(-exact[2][i + j], (rate, 0), (RATES[j], 0))
    for m in range(CURVES):
        for i, name in enumerate(CURVE):
            agree(derivatives.curve[i, :, m], (name, m))
            for j in range(i, 2):
                agree(-exact[0][i + j, :, m], (name, m), (CURVE[j], m))
            for j, rate in enumerate(RATES):
                agree(-exact[1][i, j, :, m], (name, m), (rate, 0))


@pytest.mark.parametrize("family", sorted(SIGMOIDS))
def test_the_other_curvature_is_never_indefinite(family: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        counts, point = _answers(rng), _point(rng, 0.0)
        problem = _problem(family, counts, point)
        derivatives = problem.differentiate(point, problem.levels_at(point))
        for p in range(GROUPS):
            size = 2 * CURVES + 2
            matrix = np.zeros((size, size))
            for m in range(CURVES):
                tt, ts, ss = derivatives.blocks[:, 1, p, m]
                matrix[2 * m : 2 * m + 2, 2 * m : 2 * m + 2] = [[tt, ts], [ts, ss]]
                matrix[2 * m : 2 * m + 2, -2:] = derivatives.across[:, :, 1, p, m]
            gg, gl, ll = derivatives.corner[:, 1, p]
            matrix[-2:, :-2], matrix[-2:, -2:] = (
                matrix[:-2, -2:].T,
                [[gg, gl], [gl, ll]],
            )
            smallest = np.linalg.eigvalsh(matrix)[0]
            assert smallest > -1e-9 * np.abs(matrix).max()
