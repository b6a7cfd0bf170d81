"""Score observers over pixels per degree, which networks do not have: it is a convention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis import score as tables
from psyprobe.analysis.alignment import alignment_score
from psyprobe.analysis.responses import Scored, layers_of, observer_of, select
from psyprobe.analysis.result_stimulus import page_of, stimulus_on
from psyprobe.analysis.score import Recorded, number
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import lay_out

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

#: Steps from the convention, in octaves: two down and one up.
_OCTAVES = np.arange(-8, 5) / 4
#: Settings that give a page's stimulus other pixels per degree.
_SETTINGS_OF_PPD = {"stimulus", "stimulus.parameters.ppd"}
#: Fewest frequencies of a score.
_FEWEST = 4

_KEY = (
    "r_s over pixels per degree: a network has none, so the value is a convention; rank observers "
    "only where their order holds over the range. Observers that take degrees have no curve.",
    "within an octave, range: smallest to largest r_s, one octave to each side and over all. "
    "best: the ppd of the largest r_s, with the r_s found where the best was chosen on other "
    "frequencies (odd and even). slope: change of r_s for each octave at the convention.",
    "shifted: from stored responses, exact where the size in cycles does not matter; redrawn: "
    "from runs of stimuli with other ppd, exact. All ppd are scored on the same cpd.",
)
_HEADINGS = ("r_s", "within an octave", "range", "best [other half]", "slope", "of")


@dataclass(frozen=True)
class PpdCurve(Recorded):
    """The alignment score of one layer of an observer over pixels per degree."""

    experiment: str
    observer: str
    layer: str
    measure: str
    #: Pixels per degree, rising, and r_s at each.
    ppd: tuple[float, ...]
    scores: tuple[float, ...]
    #: The pixels per degree of the page.
    convention: float
    #: Smallest and largest frequency that is scored at all ppd, in cpd.
    low_frequency: float
    high_frequency: float
    #: r_s at the ppd that is best on the other half of the frequencies; mean of both halves.
    cross_fitted: float
    #: "shifted" responses of one run, or "redrawn" stimuli.
    reading: str

    @property
    def octaves(self) -> FloatArray:
        """Compute the distance of each ppd from the convention, in octaves."""
        return np.log2(np.array(self.ppd) / self.convention)

    @property
    def at_convention(self) -> float:
        """Return r_s at the ppd nearest to the convention."""
        return self.scores[int(np.abs(self.octaves).argmin())]

    @property
    def best_ppd(self) -> float:
        """Return the pixels per degree of the largest r_s."""
        return self.ppd[int(np.argmax(self.scores))]

    @property
    def slope(self) -> float:
        """Compute the change of r_s for each octave at the convention."""
        return float(np.interp(0, self.octaves, np.gradient(self.scores, self.octaves)))

    def cells(self) -> list[str]:
        """Format the curve as table cells."""
        scores = np.array(self.scores)
        near = scores[np.abs(self.octaves) <= 1 + 1e-9]
        name = (
            self.observer
            if self.layer in ("", "out")
            else f"{self.observer}, {self.layer}"
        )
        return [
            name,
            f"{number(self.at_convention)} at {self.convention:g}",
            f"{number(near.min())} to {number(near.max())}",
            f"{number(scores.min())} to {number(scores.max())}",
            f"{self.best_ppd:.3g} [{number(self.cross_fitted)}]",
            number(self.slope, sign=True),
            f"{self.reading}, {self.low_frequency:.3g} to {self.high_frequency:.3g} cpd",
        ]

    def record(self) -> JsonObject:
        """Collect all values, with those that tables print."""
        names = ("at_convention", "best_ppd", "slope")
        return self.to_dict() | {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class PpdScores:
    """The scores of observers over pixels per degree."""

    curves: tuple[PpdCurve, ...]
    #: What has no curve, and why.
    remarks: tuple[str, ...] = ()

    def table(self, format: str = "text") -> str:
        """Lay out all curves as text, Markdown, LaTeX, CSV or JSON.

        Raises
        ------
        UnknownNameError
            If the format is none of these.
        """
        tables.check_format(format)
        if format == "json":
            return tables.json_text(self.to_dict())
        if format == "csv":
            return tables.csv_text(self.to_frame().to_dict("records"))
        blocks = []
        for experiment in dict.fromkeys(curve.experiment for curve in self.curves):
            cells = [c.cells() for c in self.curves if c.experiment == experiment]
            blocks.append(lay_out(format, [[experiment, *_HEADINGS], *cells]))
        return tables.document(format, blocks, [*_KEY, *self.remarks])

    def to_frame(self) -> pd.DataFrame:
        """Convert all curves to a pandas table, one row a ppd of an observer."""
        import pandas

        records = [curve.record() for curve in self.curves]
        return pandas.DataFrame(records).explode(["ppd", "scores"], ignore_index=True)

    def to_dict(self) -> JsonObject:
        """Convert everything to what JSON holds."""
        return {
            "curves": [curve.record() for curve in self.curves],
            "notes": list(self.remarks),
        }

    def __str__(self) -> str:
        return self.table()


def score_over_ppd(
    results: xr.Dataset | Iterable[xr.Dataset], *, measure: str | None = None
) -> PpdScores:
    """Score detection results over three octaves of pixels per degree.

    Parameters
    ----------
    results : xarray.Dataset or iterable of xarray.Dataset
        Of runs over frequency with a level grid, whose responses are shifted; or of one page
        whose stimulus has several ppd, each drawn anew.
    measure : str, optional
        As for `select`.

    Raises
    ------
    InputError
        No result has a curve.

    See Also
    --------
    psyprobe.plotting.ppd_curves : the figure.
    """
    import xarray

    listed = [results] if isinstance(results, xarray.Dataset) else list(results)
    groups: dict[tuple[str, str], dict[float, xr.Dataset]] = {}
    remarks = []
    for result in listed:
        key = (str(result.attrs.get("experiment", "")), observer_of(result))
        try:
            groups.setdefault(key, {})[_ppd_of(result)] = result
        except InputError as problem:
            remarks.append(f"{', '.join(key)}: {problem}.")
    curves = []
    for key, by_ppd in groups.items():
        try:
            first = next(iter(by_ppd.values()), None)
            for layer in () if first is None else layers_of(first):
                curves.append(_curve(key, by_ppd, measure, layer))
        except InputError as problem:
            remarks.append(f"{', '.join(key)}: {problem}.")
    if not curves:
        raise InputError(
            remarks[0].rstrip(".") if remarks else "there are no results to score"
        )
    return PpdScores(tuple(curves), tuple(remarks))


def _ppd_of(result: xr.Dataset) -> float:
    """Read the pixels per degree of a result's stimulus from its page."""
    stimulus = stimulus_on(page_of(result))
    if stimulus is None:
        raise InputError("its page does not tell pixels per degree; run it again")
    return float(stimulus.spec().ppd)


def _points(
    result: xr.Dataset, measure: str | None, layer: str
) -> tuple[Scored, FloatArray]:
    """Read what is scored over frequency alone, and its frequencies."""
    points = select(result, measure=measure, layer=layer).scored
    if points is None or list(points.at) != ["frequency"]:
        raise InputError(
            "only tests over frequency, with a human reference, have a curve over ppd"
        )
    return points, points.at["frequency"]


def _curve(
    key: tuple[str, str],
    by_ppd: Mapping[float, xr.Dataset],
    measure: str | None,
    layer: str,
) -> PpdCurve:
    """Score one layer over ppd: redrawn where several ppd were run, else shifted."""
    redrawn = len(by_ppd) > 1
    ppd, frequency, responses, multiplier = (
        _redrawn(by_ppd, measure, layer)
        if redrawn
        else _shifted(*next(iter(by_ppd.items())), measure, layer)
    )
    if len(frequency) < _FEWEST:
        raise InputError(
            f"{len(frequency)} frequencies lie within the range at all ppd; give at least "
            f"{_FEWEST}, of a wider range"
        )

    def score(levels: slice) -> FloatArray:
        return np.array(
            [
                alignment_score(multiplier[levels], response[levels])
                for response in responses
            ]
        )

    halves = [score(slice(0, None, 2)), score(slice(1, None, 2))]
    cross_fitted = np.mean([b[a.argmax()] for a, b in (halves, halves[::-1])])
    return PpdCurve(
        *key,
        layer,
        select(next(iter(by_ppd.values())), measure=measure, layer=layer).measure,
        tuple(ppd.tolist()),
        tuple(score(slice(None)).tolist()),
        _convention(by_ppd),
        float(frequency.min()),
        float(frequency.max()),
        float(cross_fitted),
        "redrawn" if redrawn else "shifted",
    )


def _convention(by_ppd: Mapping[float, xr.Dataset]) -> float:
    """Find the pixels per degree of the page itself: of the run whose ppd no setting changed."""
    unchanged = [
        ppd
        for ppd, result in by_ppd.items()
        if not _SETTINGS_OF_PPD & page_of(result).get("changed", {}).keys()
    ]
    return (unchanged or list(by_ppd))[0]


def _redrawn(
    by_ppd: Mapping[float, xr.Dataset], measure: str | None, layer: str
) -> tuple[FloatArray, FloatArray, list[FloatArray], FloatArray]:
    """Collect the responses of runs at several ppd, at the frequencies that all share."""
    ppd = np.array(sorted(by_ppd))
    parts = [_points(by_ppd[value], measure, layer) for value in ppd]
    frequency = parts[0][1]
    for _, values in parts:
        frequency = frequency[
            np.isclose(frequency[:, None], values, rtol=1e-9).any(axis=1)
        ]
    places = [
        np.isclose(values[:, None], frequency, rtol=1e-9).any(axis=1)
        for _, values in parts
    ]
    responses = [
        points.response[place] for (points, _), place in zip(parts, places, strict=True)
    ]
    multiplier = np.broadcast_to(parts[0][0].multiplier, parts[0][0].response.shape)
    return ppd, frequency, responses, multiplier[places[0]]


def _shifted(
    convention: float, result: xr.Dataset, measure: str | None, layer: str
) -> tuple[FloatArray, FloatArray, list[FloatArray], FloatArray]:
    """Shift the responses of one run along frequency, as if it had had other ppd."""
    from scipy.interpolate import RegularGridInterpolator

    points, frequency = _points(result, measure, layer)
    selected = select(result, measure=measure, layer=layer)
    if not selected.grid.size:
        raise InputError(
            "its run had no level grid; run it without --score-only, or draw it at "
            "several ppd"
        )
    grid_frequency = selected.levels["frequency"]
    ppd = convention * 2**_OCTAVES
    pixels_alike = frequency[:, None] * convention / ppd
    slack = 1 + 1e-9
    inside = (
        (pixels_alike >= grid_frequency.min() / slack)
        & (pixels_alike <= grid_frequency.max() * slack)
    ).all(axis=1)
    axes = [np.log(grid_frequency), np.log(selected.difference)]
    interpolate = RegularGridInterpolator(axes, selected.grid)

    def within(values: FloatArray, axis: FloatArray) -> FloatArray:
        return np.clip(np.log(values), axis[0], axis[-1])

    contrast = within(points.difference[inside], axes[1])
    responses = []
    for column in pixels_alike[inside].T:
        place = np.broadcast_to(within(column, axes[0])[:, None], contrast.shape)
        responses.append(interpolate(np.stack([place, contrast], axis=-1)))
    multiplier = np.broadcast_to(points.multiplier, points.response.shape)[inside]
    return ppd, frequency[inside], responses, multiplier
