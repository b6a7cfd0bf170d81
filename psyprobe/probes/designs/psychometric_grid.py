"""Psychometric functions on log10 contrast, and the grid of their parameters over which a design keeps its posterior.

psi(x) = guess + (1 - guess - lapse) F(x), F at 0.5 at the threshold and from 0.05 to 0.95 over the width (psignifit 4:
Schütt, Harmeling, Macke & Wichmann 2016, Vision Research 122, Eq. 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name

Function: TypeAlias = Literal["logistic", "normal"]
Task: TypeAlias = Literal["yes_no", "two_interval"]

#: F's argument runs over this distance while F runs from 0.05 to 0.95.
_REACH = {"logistic": 2 * np.log(19.0), "normal": 3.2897072539029435}


def seen(x: FloatArray, threshold: FloatArray, width: FloatArray, function: Function = "logistic") -> FloatArray:
    """Probability F of seeing the pattern, without guesses and lapses.

    Parameters
    ----------
    x, threshold, width : ndarray
        In log10 contrast, of shapes that broadcast.
    function : {"logistic", "normal"}
        Form of the psychometric function.

    Examples
    --------
    >>> seen(np.array([-2.4, -2.0, -1.6]), np.array(-2.0), np.array(0.8)).round(3).tolist()
    [0.05, 0.5, 0.95]
    """
    from scipy.special import expit, ndtr

    z = _REACH[function] * (np.asarray(x) - threshold) / width
    result: FloatArray = expit(z) if function == "logistic" else ndtr(z)
    return result


def _weights(values: FloatArray, given: FloatArray) -> FloatArray:
    weights = np.asarray(given, dtype=np.float64) * np.ones(1 if np.size(given) > 1 else values.size)
    if weights.shape != values.shape or not (weights >= 0).all() or not weights.sum() > 0:
        raise InputError(f"prior weights are {given}; give one of at least 0 for each of {values.size} values")
    normalised: FloatArray = weights / weights.sum()
    return normalised


@dataclass(frozen=True, eq=False)
class Grid:
    """Values that the parameters of a psychometric function may take, with the prior probability of each.

    Parameters
    ----------
    threshold, width : ndarray
        In log10 contrast, ascending, evenly spaced in the threshold.
    guess, lapse : ndarray
        Rates in [0, 1).
    width_prior, guess_prior, lapse_prior : ndarray
        Prior weight of each value; equal unless given, as always for thresholds.
    width_spread : float
        Standard deviation of log10 width from value to value of the level about a common centre, whose prior
        `width_prior` is; 0 for one width at all values, infinite for widths that tell nothing of each other.
    function : {"logistic", "normal"}
        Form of the psychometric function.

    Examples
    --------
    >>> Grid(np.array([-3.0, -2.0, -1.0]), np.array([0.8]), np.array([0.02]), np.array([0.02])).shape
    (3, 1, 1, 1)
    """

    threshold: FloatArray
    width: FloatArray
    guess: FloatArray
    lapse: FloatArray
    width_prior: FloatArray = field(default_factory=lambda: np.ones(1))
    guess_prior: FloatArray = field(default_factory=lambda: np.ones(1))
    lapse_prior: FloatArray = field(default_factory=lambda: np.ones(1))
    width_spread: float = 0.0
    function: Function = "logistic"

    def __post_init__(self) -> None:
        for name in ("threshold", "width", "guess", "lapse"):
            values = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            object.__setattr__(self, name, values)
            if name != "threshold":
                object.__setattr__(self, f"{name}_prior", _weights(values, getattr(self, f"{name}_prior")))
        if self.function not in _REACH:
            raise unknown_name("psychometric function of a design", self.function, _REACH)
        if not (self.width > 0).all() or not self.width_spread >= 0:
            raise InputError(
                f"widths are {self.width.tolist()} and spread {self.width_spread}; give log10 contrasts above 0 and a "
                "spread of at least 0"
            )
        if self.guess.min() < 0 or self.lapse.min() < 0 or self.guess.max() + self.lapse.max() >= 1:
            raise InputError(
                f"guess goes to {self.guess.max():g} and lapse to {self.lapse.max():g}; give rates of at least 0 that "
                "together stay below 1"
            )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """How many thresholds, widths, guess rates and lapse rates."""
        return self.threshold.size, self.width.size, self.guess.size, self.lapse.size

    def width_given_centre(self) -> FloatArray:
        """Probability of each width (columns) where the common centre is each width (rows), shape (W, W)."""
        if np.isinf(self.width_spread):
            return np.tile(self.width_prior, (self.width.size, 1))
        if self.width_spread == 0:
            return np.eye(self.width.size)
        log = np.log10(self.width)
        weights = np.exp(-0.5 * ((log[:, None] - log) / self.width_spread) ** 2)
        normalised: FloatArray = weights / weights.sum(axis=1, keepdims=True)
        return normalised


#: Cells of the grids: a rate stands for its cell, whose prior mass it carries.
_GUESS_EDGES = (0.0, 0.01, 0.03, 0.06, 0.12, 0.22, 0.35, 0.5)
_LAPSE_EDGES = (0.0, 0.01, 0.03, 0.06, 0.1)
_FEW_GUESS_EDGES, _FEW_LAPSE_EDGES = (0.0, 0.03, 0.09, 0.18, 0.32, 0.5), (0.0, 0.03, 0.1)


def default_grid(contrasts: Sequence[float], task: Task = "yes_no", function: Function = "logistic") -> Grid:
    """The grid that designs use unless given another.

    Thresholds lie evenly from half a log10 unit below the lowest contrast to half a unit above the highest, so that a
    threshold which cannot be reached shows as one. The common width has a log-normal prior with median 0.7 and a
    standard deviation of 0.25 log10, from which those of single values deviate by 0.1 log10. Guess and lapse rates
    are Beta(1/2, 5) on [0, 0.5] and Beta(1/2, 10) on [0, 0.1]: rates near 0 are likeliest, larger ones not ruled out
    (as in Jeffreys' prior). With two intervals the guess rate is 0.5.

    Contrasts are those that can be shown, ascending; task and function are as in `constant`.

    Examples
    --------
    >>> grid = default_grid((0.001, 1.0))
    >>> float(grid.threshold[0]), float(grid.threshold[-1])
    (-3.5, 0.5)
    >>> default_grid((0.001, 1.0), task="two_interval").guess.tolist()
    [0.5]
    """
    low, high = _ends(contrasts)
    threshold = np.linspace(low, high, int(np.ceil((high - low) / 0.06)) + 1)
    return _grid(threshold, np.geomspace(0.2, 2.0, 9), _GUESS_EDGES, _LAPSE_EDGES, 0.1, task, function)


def csf_width_and_rates(contrasts: Sequence[float], task: Task = "yes_no", function: Function = "logistic") -> Grid:
    """As `default_grid`, with fewer widths and rates, for designs that keep all frequencies in one table.

    Examples
    --------
    >>> csf_width_and_rates((0.001, 1.0)).shape
    (81, 3, 5, 2)
    """
    low, high = _ends(contrasts)
    threshold = np.linspace(low, high, round((high - low) / 0.05) + 1)
    return _grid(threshold, np.array([0.4, 0.75, 1.4]), _FEW_GUESS_EDGES, _FEW_LAPSE_EDGES, 0.0, task, function)


def _ends(contrasts: Sequence[float]) -> tuple[float, float]:
    return np.log10(contrasts[0]) - 0.5, np.log10(contrasts[-1]) + 0.5


def _grid(
    threshold: FloatArray,
    width: FloatArray,
    guess_edges: Sequence[float],
    lapse_edges: Sequence[float],
    width_spread: float,
    task: Task,
    function: Function,
) -> Grid:
    guess, guess_prior = _rates(guess_edges, 5.0) if task == "yes_no" else (np.array([0.5]), np.ones(1))
    lapse, lapse_prior = _rates(lapse_edges, 10.0)
    width_prior = np.exp(-0.5 * (np.log10(width / 0.7) / 0.25) ** 2)
    return Grid(threshold, width, guess, lapse, width_prior, guess_prior, lapse_prior, width_spread, function)


def _rates(edges: Sequence[float], b: float) -> tuple[FloatArray, FloatArray]:
    """Rates in the middle of their cells, and the mass of Beta(1/2, b) in each cell."""
    from scipy.special import betainc

    ends = np.array(edges)
    return (ends[1:] + ends[:-1]) / 2, np.diff(betainc(0.5, b, ends))
