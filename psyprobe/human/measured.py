"""Load human measurements: thresholds on masks and of ModelFest's Gabors, matches, user tables.

Tables are comma-separated, with their source in lines that begin with #.

References
----------
Foley (1994). Human luminance pattern-vision mechanisms: masking experiments require a new model.
JOSA A 11(6), 1710-1719. Gegenfurtner, Kiper (1992). Contrast detection in luminance and chromatic
noise. JOSA A 9(11), 1880-1888. Georgeson, Sullivan (1975). Contrast constancy: deblurring in human
vision by spatial frequency channels. J. Physiol. 252(3), 627-656. Carney et al. (1999). Development
of an image/threshold database for designing and testing human vision models. Proc. SPIE 3644,
542-551. Watson, Ahumada (2005). A standard model for foveal detection of spatial contrast. Journal
of Vision 5(9):6.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.parsing import packaged_rows, packaged_text, packaged_toml

#: Studies by name; the file explains its keys.
STUDIES: Mapping[str, JsonMapping] = packaged_toml("psyprobe.human", "studies.toml")
#: Columns for the measured value in a table of thresholds; other columns are its condition.
MEASURES = ("sensitivity", "threshold", "contrast")
#: Quantities above 0.
_POSITIVE = (*MEASURES[:2], "frequency", "luminance", "area", "radius")


def read_human_table(name: str) -> tuple[str, dict[str, FloatArray]]:
    """Read a table of ``psyprobe/human/data``: its citation and its columns.

    Examples
    --------
    >>> citation, columns = read_human_table("foley1994")
    >>> citation[:17], sorted(columns)
    ('Foley, J. M. (199', ['mask_contrast', 'scored', 'threshold'])
    """
    place = ("psyprobe.human", "data", f"{name}.csv")
    citation = " ".join(re.findall("^# (.*)", packaged_text(*place), re.MULTILINE))
    rows = packaged_rows(*place)
    columns = {
        column: np.array([float(row[column]) for row in rows]) for column in rows[0]
    }
    return citation, columns


@dataclass(frozen=True)
class MaskingData:
    """Thresholds of a Gabor target at several contrasts of one mask, from one study."""

    #: Name of the study.
    name: str
    #: Contrast of the mask, shape (K,), increasing, above 0, of the kind `mask_contrast_kind`.
    mask_contrast: FloatArray
    #: Michelson contrast of the target at threshold, shape (K,).
    threshold: FloatArray
    #: Points at which Cai et al. (2025) score models: 0.005 < mask contrast < 0.25.
    scored: BoolArray
    #: Threshold without a mask; None if it was not measured.
    unmasked_threshold: float | None
    #: Frequency of the target, cpd.
    frequency: float
    #: "michelson" for a grating, "rms" for noise.
    mask_contrast_kind: str
    citation: str


def masking_data(name: str) -> MaskingData:
    """Load human thresholds on masks, as Cai et al. (2025) digitised the published figures.

    Parameters
    ----------
    name : {"foley1994", "gegenfurtner_kiper1992"}
        "foley1994": a Gabor of 2 cpd on a full-field grating of the same frequency, orientation and
        phase. "gegenfurtner_kiper1992": a Gabor of 1.2 cpd on static luminance noise.

    Raises
    ------
    UnknownNameError
        If there is no such study.

    Examples
    --------
    >>> data = masking_data("foley1994")
    >>> len(data.threshold), int(data.scored.sum()), round(data.unmasked_threshold, 4)
    (10, 8, 0.0261)
    """
    names = [
        study_name
        for study_name, study in STUDIES.items()
        if "mask_contrast_kind" in study
    ]
    if name not in names:
        raise unknown_name("masking study", name, names)
    citation, columns = read_human_table(name)
    masked = columns["mask_contrast"] > 0
    unmasked = columns["threshold"][~masked]
    return MaskingData(
        name=name,
        mask_contrast=columns["mask_contrast"][masked],
        threshold=columns["threshold"][masked],
        scored=columns["scored"][masked] == 1,
        unmasked_threshold=float(unmasked[0]) if len(unmasked) else None,
        frequency=STUDIES[name]["conditions"]["frequency"],
        mask_contrast_kind=STUDIES[name]["mask_contrast_kind"],
        citation=citation,
    )


@dataclass(frozen=True)
class MatchingData:
    """Contrasts of gratings that match a reference grating."""

    #: Michelson contrast of the reference grating, decreasing, shape (K,).
    reference_contrast: FloatArray
    #: Frequency of the test gratings, cpd, increasing, shape (F,).
    frequency: FloatArray
    #: Michelson contrast of the test grating that looks as strong as the reference, shape (K, F).
    matched_contrast: FloatArray
    #: Frequency of the reference grating, cpd.
    reference_frequency: float
    #: Mean luminance of both, cd/m².
    luminance: float
    citation: str


def matching_data() -> MatchingData:
    """Load human contrast matches of Georgeson and Sullivan (1975), averaged over observers.

    8 reference contrasts at 5 cpd, 9 test frequencies; Cai et al. (2025) digitised the published
    figure.

    Notes
    -----
    At 5 cpd, where test and reference are the same, the digitised matches differ from the reference
    contrast by up to 0.06 log10 units, so no observer reaches an error of 0.

    Examples
    --------
    >>> data = matching_data()
    >>> data.matched_contrast.shape, data.reference_frequency, data.luminance
    ((8, 9), 5.0, 10.0)
    """
    citation, columns = read_human_table("georgeson_sullivan1975")
    reference = np.unique(columns["reference_contrast"])[::-1]
    frequency = np.unique(columns["frequency"])
    return MatchingData(
        reference_contrast=reference,
        frequency=frequency,
        matched_contrast=columns["matched_contrast"].reshape(
            len(reference), len(frequency)
        ),
        reference_frequency=5.0,
        luminance=STUDIES["georgeson_sullivan1975"]["conditions"]["luminance"],
        citation=citation,
    )


@dataclass(frozen=True)
class ModelFestGabors:
    """Thresholds of 14 Gabors."""

    #: Spatial frequency, cpd.
    frequency: FloatArray
    #: Standard deviation of the Gaussian, deg: 0.5 for the first ten, then half a cycle.
    radius: FloatArray
    #: Mean over observers of log10 Michelson contrast at 84 % correct (of two intervals, or
    #: equivalent).
    log10_threshold: FloatArray
    #: Standard deviation of log10 contrast between observers.
    log10_sd: FloatArray
    #: Luminance of the background, cd/m².
    luminance: float
    #: Number of observers.
    observers: int
    citation: str

    @property
    def sensitivity(self) -> FloatArray:
        """1 / threshold contrast, of the geometric mean of observers, shape (14,)."""
        return np.asarray(10.0**-self.log10_threshold)


def modelfest_gabors() -> ModelFestGabors:
    """Load ModelFest's thresholds of its stimuli 1 to 14, which are Gabors.

    Examples
    --------
    >>> data = modelfest_gabors()
    >>> float(data.frequency[data.sensitivity.argmax()]), round(float(data.sensitivity.max()), 1)
    (4.0, 127.8)
    """
    citation, columns = read_human_table("modelfest_gabors")
    del columns["stimulus"]
    return ModelFestGabors(**columns, luminance=30.0, observers=16, citation=citation)


def modelfest_csf(frequency: ArrayLike) -> FloatArray:
    """Interpolate human sensitivity to ModelFest's Gabors of 0.5 deg standard deviation.

    Between its ten frequencies, 1.12 to 30 cpd, lines are straight in logarithms.

    Parameters
    ----------
    frequency : array_like of float
        Spatial frequency, cpd.

    Raises
    ------
    InputError
        If a frequency lies beyond those measured.

    Examples
    --------
    >>> modelfest_csf([2.0, 4.0, 16.0]).round(1)
    array([ 91.3, 127.8,  19.8])
    """
    data = modelfest_gabors()
    series = data.radius == 0.5  # deg
    measured = data.frequency[series]
    values = np.asarray(frequency, dtype=np.float64)
    is_outside = ~((values >= measured[0]) & (values <= measured[-1]))
    if is_outside.any():
        raise InputError(
            f"frequency is {values[is_outside].ravel()[0]:g} cpd; ModelFest measured "
            f"{measured[0]:g} to {measured[-1]:g} cpd with Gabors of one size: leave it out, or "
            "use a model such as castle_csf"
        )
    log10_threshold = np.interp(
        np.log(values), np.log(measured), data.log10_threshold[series]
    )
    return np.asarray(10.0**-log10_threshold)[()]


def read_thresholds(path: Path) -> tuple[dict[str, FloatArray], FloatArray, str]:
    """Read a user's table of thresholds, with a column for each level and the measured value.

    The measured value is the first of ``sensitivity``, ``threshold`` and ``contrast`` that is
    there; ``contrast`` is a level (of a pedestal) beside another. ``observer`` may name people, and
    ``direction`` the one colour direction. Lines that begin with # are skipped. Observers are
    averaged geometrically, each condition over those with a threshold there.

    Returns
    -------
    tuple of dict, array and str
        Conditions, a column for each level; 1 / threshold at each; and the colour direction, or ""
        without such a column.
    """
    header, rows = _read_rows(path)
    measures = [name for name in MEASURES if name in header]
    if not measures:
        raise InputError(
            f"{path.name} has no column {' or '.join(MEASURES)}; its columns are "
            f"{', '.join(header)}"
        )
    if "sensitivity" in measures and "threshold" in measures:
        raise InputError(
            f"{path.name} has the columns sensitivity and threshold; give one of them"
        )
    measure = measures[0]
    levels = [name for name in header if name not in (measure, "observer", "direction")]
    if not levels:
        raise InputError(
            f"{path.name} has no column for a level, such as frequency; say where people were "
            "measured"
        )
    directions = sorted(
        {row["direction"] for _, row in rows} if "direction" in header else ()
    )
    if len(directions) > 1:
        raise InputError(
            f"{path.name} holds the directions {', '.join(directions)}; give each a file of its own"
        )
    by_condition: dict[tuple[float, ...], dict[str, tuple[int, float]]] = {}
    for line, row in rows:
        numbers = [
            _parse_cell(path, line, name, row[name], name in _POSITIVE)
            for name in levels
        ]
        value = _parse_cell(path, line, measure, row[measure], True)
        people = by_condition.setdefault(tuple(numbers), {})
        observer = row.get("observer", "")
        if observer in people:
            owner = f" of observer {observer!r}" if observer else ""
            raise InputError(
                f"{path.name} has the same condition{owner} in lines {people[observer][0]} and "
                f"{line}"
            )
        people[observer] = (line, value if measure == "sensitivity" else 1 / value)
    columns = np.array(list(by_condition), dtype=np.float64).T
    means = [
        _geometric_mean([value for _, value in people.values()])
        for people in by_condition.values()
    ]
    direction = directions[0] if directions else ""
    return dict(zip(levels, columns, strict=True)), np.array(means), direction


def _read_rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Read the names of the columns, and each row with the number of its line."""
    if not path.is_file():
        raise InputError(
            f"there is no file {path.name!r} in {path.parent}; human.data is a study of the "
            "catalogue or a file"
        )
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        numbered = [
            (number, line)
            for number, line in enumerate(lines, 1)
            if line.strip() and not line.startswith("#")
        ]
        reader = csv.reader((line for _, line in numbered), strict=True)
        cells = [[cell.strip() for cell in row] for row in reader]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise InputError(
            f"{path.name} is no comma-separated text in UTF-8: {problem}"
        ) from None
    if len(cells) < 2:
        raise InputError(
            f"{path.name} has no rows; give a line of column names, and a line for each threshold"
        )
    header = cells[0]
    if len(set(header)) < len(header) or "" in header:
        raise InputError(
            f"{path.name} has the columns {', '.join(header)}; name each, each by another name"
        )
    if len(cells) != len(numbered):
        raise InputError(
            f"{path.name} has a cell over several lines; keep each row in one"
        )
    rows = []
    for (number, _), row in zip(numbered, cells, strict=True):
        if len(row) != len(header):
            raise InputError(
                f"{path.name}, line {number} has {len(row)} cells, and there are {len(header)} "
                "columns"
            )
        rows.append((number, dict(zip(header, row, strict=True))))
    return header, rows[1:]


def _parse_cell(path: Path, line: int, column: str, text: str, positive: bool) -> float:
    """Convert a cell of a CSV table to a finite number (above 0 if `positive`), or refuse it."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (positive and value <= 0):
        remedy = "a number above 0" if positive else "a finite number"
        raise InputError(
            f"{path.name}, line {line}: {column} is {text!r}; give {remedy}, or leave the row out"
        )
    return value


def _geometric_mean(values: list[float]) -> float:
    """Compute the geometric mean of numbers above 0."""
    if len(values) == 1:
        return values[0]
    return math.exp(math.fsum(map(math.log, values)) / len(values))
