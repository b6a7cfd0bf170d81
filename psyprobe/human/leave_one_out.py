"""Compute castleCSF as refitted without one study, to compare that study's people with.

castleCSF was fitted to the thresholds of 18 studies, and a study is no independent check of a curve
that was fitted to it. Each refit is one Gauss-Newton step from the published constants, weighted by
a residual of 0.2 log10 and held near the published value by 0.3 in the logarithm of each constant:
``benchmarks/leave_one_study_out.py`` computes the packaged table, and nothing is fitted here.
"""

from __future__ import annotations

import math
from functools import cache, partial

from psyprobe.errors import unknown_name
from psyprobe.files.parsing import packaged_rows
from psyprobe.human.castle import Mechanisms, mechanisms, mechanisms_csf
from psyprobe.human.signature import ContrastSensitivity

#: Place of the table among the package's data.
TABLE = ("psyprobe.human", "data", "castlecsf", "leave_one_study_out.csv")
#: Row of the table that was fitted to all studies.
ALL_STUDIES = "all"


@cache
def fitted_studies() -> tuple[str, ...]:
    """List the studies to which castleCSF was fitted, as `psyprobe.human.thresholds` names them.

    Examples
    --------
    >>> len(fitted_studies()), fitted_studies()[:2]
    (18, ('rovamo1993', 'colorfest'))
    """
    return tuple(study for study in _refits() if study != ALL_STUDIES)


def castle_csf_without(study: str) -> ContrastSensitivity:
    """Return castleCSF as refitted without a study: a function that is called as `castle_csf`.

    Parameters
    ----------
    study : str
        One of `fitted_studies`, or "all" for a refit to all of them.

    Raises
    ------
    UnknownNameError
        castleCSF was not fitted to such a study.

    Examples
    --------
    >>> model = castle_csf_without("modelfest")
    >>> model([1.0, 4.0, 16.0], luminance=100, direction="achromatic", area=3.1416).round(1)
    array([104.9, 249.4,  58.2])
    """
    if study not in _refits():
        raise unknown_name("study of castleCSF", study, _refits())
    return partial(mechanisms_csf, _refits()[study])


@cache
def _refits() -> dict[str, Mechanisms]:
    """Read the constants of each refit, by the study that it lacks."""
    refits = {}
    for row in packaged_rows(*TABLE):
        study = row.pop("study")
        factors = {name: math.exp(float(value)) for name, value in row.items()}
        refits[study] = mechanisms(factors)
    return refits
