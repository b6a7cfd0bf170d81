"""Levels: what of a stimulus an experiment can vary, and setting it."""

from __future__ import annotations

from typing import Any

from psyprobe.stimulus.parameters import Parameter, check_names
from psyprobe.stimulus.specification import Specification, levels_of


def level_of(stimulus: Specification | type[Specification], name: str) -> Parameter:
    """Unit, label and limits of a numeric parameter or a derived level, such as "area".

    Parameters
    ----------
    stimulus : Specification or class
        A kind, or a stimulus: a sum has levels for each of its parts ("mask_contrast").
    name : str
        Of the level.

    Raises
    ------
    UnknownNameError
        If the stimulus has no such level, with the nearest one.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> level_of(Gabor, "frequency").label, level_of(Gabor, "area").unit
    ('Spatial frequency', 'deg²')
    """
    levels = stimulus.levels() if isinstance(stimulus, Specification) else levels_of(stimulus)
    check_names(stimulus.kind, [name], levels)
    return levels[name]


def with_levels(spec: Specification, **values: Any) -> Specification:
    """The stimulus with these levels, all set at once; names as in `level_of`.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor, grating
    >>> both = gabor(frequency=4, contrast=0.1) + grating(frequency=4, contrast=0.2)
    >>> with_levels(both.spec, contrast=0.05, mask_orientation=45).value("mask_orientation")
    45.0
    """
    check_names(spec.kind, values, spec.levels())
    return spec.changed(**values)
