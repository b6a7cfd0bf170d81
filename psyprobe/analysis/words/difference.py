"""Compare curves of sensitivity that were measured by answers, at all levels at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.people import band_of_draws
from psyprobe.analysis.intervals import normal_quantile
from psyprobe.analysis.responses import levels_of, observer_of
from psyprobe.analysis.score import Recorded, ends_text, number
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.units import unit_symbol

if TYPE_CHECKING:
    import xarray as xr

#: Draws of each curve.
_DRAWS = 2000


@dataclass(frozen=True)
class LevelDifference(Recorded):
    """The difference of two sensitivities at one level, in log10."""

    experiment: str
    observer: str
    baseline: str
    #: Name, value and unit of the level.
    level: str
    value: float
    unit: str
    #: First less second, with the ends of a band that holds all levels at once.
    difference: float
    low: float
    high: float
    #: Number of levels, and of comparisons of the experiment, for which the band is widened.
    levels: int
    family: int

    @property
    def verdict(self) -> str:
        """Describe in words whether the band excludes 0."""
        if self.low > 0:
            return "more sensitive"
        return "less sensitive" if self.high < 0 else "not told apart"

    def cells(self) -> list[str]:
        """Format the difference as table cells."""
        return [
            f"{self.observer}, {self.value:.3g} {self.unit}".rstrip(),
            number(self.difference, 3, sign=True) + ends_text(self.low, self.high, 3),
            self.verdict,
        ]

    def record(self) -> JsonObject:
        """Collect all values as a flat record."""
        return {**self.to_dict(), "verdict": self.verdict}


def compare_curves(
    results: Sequence[xr.Dataset],
    baseline: str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[list[LevelDifference], list[str]]:
    """Compare the sensitivities of observers who answered one experiment; also note what is not.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of questioning runs.
    baseline : str, optional
        Name of an observer; without it the second of two.
    confidence : float, optional
        Probability that a band holds all levels of all comparisons of an experiment, in (0, 1).
    seed : int, optional
        Of the draws.
    """
    rows: list[LevelDifference] = []
    notes: list[str] = []
    experiments: dict[str, dict[str, xr.Dataset]] = {}
    for result in results:
        group = experiments.setdefault(str(result.attrs.get("experiment", "")), {})
        name = observer_of(result)
        count = sum(other.split(" (run ")[0] == name for other in group)
        group[f"{name} (run {count + 1})" if count else name] = result
    for experiment, group in experiments.items():
        names = list(group)
        reference = names[1] if baseline is None and len(names) == 2 else baseline
        if reference not in group or len(names) < 2:
            notes.append(
                f"{experiment}: answers of {', '.join(names)} have no baseline there; name one of "
                "at least two observers"
            )
            continue
        for name in names:
            if name != reference:
                try:
                    compared, omitted = _level_differences(
                        experiment,
                        (name, reference),
                        (group[name], group[reference]),
                        len(names) - 1,
                        confidence,
                        seed,
                    )
                    rows += compared
                    notes += [f"{experiment}, {name}: {note}" for note in omitted]
                except InputError as problem:
                    notes.append(f"{experiment}, {name}: {problem}")
    return rows, notes


def _level_differences(
    experiment: str,
    names: tuple[str, str],
    results: tuple[xr.Dataset, xr.Dataset],
    family: int,
    confidence: float,
    seed: int,
) -> tuple[list[LevelDifference], list[str]]:
    """Compare two curves at the levels at which both are measured; also note what is left out."""
    csfs = [chat_csf(result, resamples=_DRAWS, seed=seed) for result in results]
    level, level_of_other = (levels_of(csf)[0] for csf in csfs)
    if level != level_of_other:
        raise InputError(
            f"one curve is over {level} and the other over {level_of_other}; compare curves over "
            "one quantity"
        )
    draws = [curve_draws(csf, seed + place) for place, csf in enumerate(csfs)]
    values = [csf[level].values for csf in csfs]
    shared = [
        (place, int(match[0]))
        for place, value in enumerate(values[0])
        if (match := np.flatnonzero(np.isclose(values[1], value, rtol=1e-9))).size
    ]
    measured = [
        (first, second)
        for first, second in shared
        if np.isfinite(draws[0][:, first]).all()
        and np.isfinite(draws[1][:, second]).all()
    ]
    if not measured:
        raise InputError(
            f"at no value of {level} have both a sensitivity with a closed interval; ask more"
        )
    first_places, second_places = np.array(measured).T
    band = band_of_draws(
        draws[0][:, first_places] - draws[1][:, second_places],
        1 - (1 - confidence) / family,
    )
    notes = []
    for name, levels, places in zip(names, values, np.array(shared).T, strict=True):
        if alone := np.delete(levels, places).tolist():
            notes.append(f"left out {_listed(level, alone)}, which {name} alone did")
    open_levels = [
        float(values[0][first])
        for first, second in shared
        if (first, second) not in measured
    ]
    if open_levels:
        notes.append(
            f"left out {_listed(level, open_levels)}, where a sensitivity has no closed interval"
        )
    differences = [
        LevelDifference(
            experiment,
            names[0],
            names[1],
            level,
            float(values[0][place]),
            unit_symbol(csfs[0][level].attrs),
            float(band.mean[row]),
            float(band.low[row]),
            float(band.high[row]),
            len(measured),
            family,
        )
        for row, place in enumerate(first_places)
    ]
    return differences, notes


def _listed(level: str, values: Sequence[float]) -> str:
    """List values of a level in words, as "frequency 1, 2"."""
    return f"{level} {', '.join(f'{value:.3g}' for value in values)}"


def curve_draws(csf: xr.Dataset, seed: int = 0) -> FloatArray:
    """Draw log10 sensitivities from what a measured curve leaves open, shape (D, F).

    The posterior of a design that joins its levels, as qCSF, is drawn jointly. Elsewhere levels are
    drawn apart, each half of a normal distribution as wide as that half of its interval; where that
    is open, the draws are not finite.
    """
    samples = csf.get("log10_threshold_samples")
    joint = csf.attrs.get("design") == "quick_csf" and csf.sizes["prompt"] == 1
    if joint and samples is not None:
        return np.asarray(-samples.values[:, 0])
    # An open interval ends at 0 or infinity.
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, low, high = (
            np.log10(csf[f"mean_sensitivity{end}"].values)
            for end in ("", "_low", "_high")
        )
        quantile = normal_quantile(float(csf.attrs["confidence"]))
        z = np.random.default_rng(seed).standard_normal((_DRAWS, len(mean)))
        half = np.where(z < 0, mean - low, high - mean) / quantile
        return np.asarray(mean + z * half)
