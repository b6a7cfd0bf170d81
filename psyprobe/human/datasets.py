"""Load human contrast thresholds of 18 studies: means, and those of single people.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5.
doi:10.1167/jov.24.4.5 Tables: folder `data` of the repository gfxdisp/castleCSF (MIT licence, in
``psyprobe/human/data/castlecsf/LICENSE``).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from psyprobe._typing import Option
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.parsing import packaged_rows, packaged_text

if TYPE_CHECKING:
    import pandas as pd

LICENCE = "MIT, Copyright (c) 2023 Graphics and Displays group, University of Cambridge"
_COMPILED = "as compiled by Ashraf et al. (2024), Journal of Vision 24(4):5, doi:10.1167/jov.24.4.5"
#: Units of columns.
_UNITS = {
    "luminance": "cd/m²",
    "L": "cd/m²",
    "M": "cd/m²",
    "S": "cd/m²",
    "frequency": "cpd",
    "temporal_frequency": "Hz",
    "sigma": "deg",
    "area": "deg²",
    "eccentricity": "deg",
    "visual_field": "deg",
    "orientation": "deg",
    "age_years": "years",
}


@cache
def datasets() -> Mapping[str, Mapping[str, str]]:
    """Describe each data set of thresholds: study, year, doi, protocol, criterion, persons, ranges.

    Examples
    --------
    >>> datasets()["modelfest"]["persons"], datasets()["modelfest"]["frequency"]
    ('16', '1.12..30')
    """
    rows = packaged_rows("psyprobe.human", "data", "castlecsf", "datasets.csv")
    return {row["dataset"]: row for row in rows}


def citation(dataset: str) -> str:
    """Cite the study of a data set of thresholds, and its compilation.

    Examples
    --------
    >>> citation("robson1966")[:44]
    'Robson 1966, doi:10.1364/JOSA.56.001141, as '
    """
    study = datasets()[dataset]
    doi = f", doi:{study['doi']}" if study["doi"] else ""
    year = "" if study["year"] in study["study"] else f" ({study['year']})"
    return f"{study['study']}{year}{doi}, {_COMPILED}"


def summary(dataset: str) -> str:
    """Summarise a data set of thresholds in a line of text.

    Examples
    --------
    >>> summary("modelfest")
    '14 mean thresholds, and those of 16 people: gabor, 1.12 to 30 cpd, 30 cd/m²'
    """
    study = datasets()[dataset]
    count = int(study["persons"])
    people = "no single people"
    if count:
        people = f"and those of {count} {'person' if count == 1 else 'people'}"
    details = [
        study["stimulus"],
        _range(study["frequency"], "cpd"),
        _range(study["luminance"], "cd/m²"),
        _range(study["temporal_frequency"], "Hz"),
    ]
    return f"{study['rows_mean']} mean thresholds, {people}: {', '.join(filter(None, details))}"


def thresholds(dataset: str | None = None) -> pd.DataFrame:
    """Load mean thresholds of people, one row a condition.

    Parameters
    ----------
    dataset : str, optional
        A name of `list_human`; by default all 18 data sets, 2295 rows.

    Returns
    -------
    pandas.DataFrame
        `dataset`; `n`, how many thresholds are averaged; `stimulus` ("gabor", "grating" with a hard
        edge, or "disk"); `colour`, the mechanism that castleCSF holds responsible, and
        `colour_share`, its share; `dL`, `dM`, `dS`, the direction of the modulation, length 1; `L`,
        `M`, `S`, the background, with L + M its luminance to the model; `luminance` as the study
        states it (cd/m²); `frequency` (cpd; 0 of a disk), `temporal_frequency` (Hz), `sigma` (deg;
        radius of a disk), `area` (deg²; pi sigma² of a Gabor), `eccentricity`, `visual_field`,
        `orientation` (deg); `log10_threshold`, its variance where the study gives it, and
        `sensitivity`, 1 / threshold, in RMS cone contrast at the peak of the modulation;
        `peak_cone_contrast`, the largest of the three, which is above 1 where a threshold is
        extrapolated. ``attrs`` has the `units` by column, the `citations` by data set and the
        `licence`.

    Raises
    ------
    UnknownNameError
        If there is no such data set.

    Notes
    -----
    `n` counts thresholds, not people, in modelfest (16 people with 4 each) and hdrvdp_csf. The
    tables do not have the durations of stimuli.

    Examples
    --------
    >>> table = thresholds("modelfest")
    >>> best = table.loc[table["sensitivity"].idxmax()]
    >>> float(best["frequency"]), float(best["sensitivity"].round(1))
    (4.0, 127.8)
    >>> table.attrs["units"]["frequency"]
    'cpd'
    """
    table = _read("thresholds.csv")
    if dataset is None:
        return _add_attributes(table, datasets())
    if dataset not in datasets():
        raise unknown_name("human data set", dataset, datasets())
    return _add_attributes(
        table[table["dataset"] == dataset].reset_index(drop=True), [dataset]
    )


def observers(dataset: str | None = None) -> pd.DataFrame:
    """Load thresholds of single people, one row a threshold as published.

    Parameters
    ----------
    dataset : str, optional
        A data set with single people; by default all 13 of them.

    Returns
    -------
    pandas.DataFrame
        Columns as in `thresholds`, with `observer`, an anonymous name, and `age_years` (NaN if
        unknown) in place of `n`. A person may have several thresholds at a condition.

    Raises
    ------
    UnknownNameError
        If there is no such data set.
    InputError
        If it was published as means only.

    Notes
    -----
    Treat (`dataset`, `observer`) as a person: six of the names stand in two data sets.

    Examples
    --------
    >>> table = observers("modelfest")
    >>> len(table), table["observer"].nunique()
    (896, 16)
    """
    import pandas as pd

    available = [name for name, study in datasets().items() if study["persons"] != "0"]
    if dataset is not None and dataset not in available:
        if dataset in datasets():
            raise InputError(
                f"{dataset} was published as means of people only; take thresholds({dataset!r})"
            )
        raise unknown_name("human data set", dataset, available)
    names = available if dataset is None else [dataset]
    tables = [_read(f"observers/{name}.csv") for name in names]
    return _add_attributes(pd.concat(tables, ignore_index=True), names)


def read_table(path: str, **options: Option) -> pd.DataFrame:
    """Read a table of ``psyprobe/human/data``; options are those of `pandas.read_csv`."""
    import pandas as pd

    text = packaged_text("psyprobe.human", "data", path)
    return pd.read_csv(io.StringIO(text), comment="#", **options)


def _read(name: str) -> pd.DataFrame:
    """Read a table of castleCSF's data sets; variances of 0 become missing."""
    columns = (*_UNITS, "log10_threshold_variance")
    table = read_table(f"castlecsf/{name}", dtype=dict.fromkeys(columns, float))
    column = "log10_threshold_variance"
    return table.assign(**{column: table[column].where(table[column] > 0)})


def _add_attributes(table: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Add units, citations and the licence of data sets to a table's `attrs`."""
    table.attrs = {
        "units": {name: unit for name, unit in _UNITS.items() if name in table},
        "citations": {name: citation(name) for name in names},
        "licence": LICENCE,
    }
    return table


def _range(text: str, unit: str) -> str:
    """Write a range of numbers with three digits and the unit; "" if it is 0."""
    low, high = (f"{float(f'{float(end):.3g}'):g}" for end in text.split(".."))
    if high == "0":
        return ""
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
