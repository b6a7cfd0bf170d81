"""Variants of an experiment: the same levels with several phases, orientations or noise seeds of the stimulus.

One phase, orientation and sample of noise is one draw of what a level could have looked like. An experiment with
variants shows each level in every combination of them, and its result holds mean responses and those of each variant.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    from psyprobe.experiment_file import Experiment


def expand_variants(experiment: Experiment) -> tuple[Experiment, ...]:
    """One experiment for each combination of variants.

    Parameters
    ----------
    experiment : Experiment
        With ``variants``.

    Returns
    -------
    tuple of Experiment
        In the order in which they are run; the one experiment itself where nothing varies.
    """
    if not experiment.variants:
        return (experiment,)
    names = list(experiment.variants)
    return tuple(
        replace(
            experiment,
            stimulus=replace(experiment.stimulus, parameters={**experiment.stimulus.parameters, **chosen}),
            variant=chosen,
        )
        for values in itertools.product(*experiment.variants.values())
        for chosen in (dict(zip(names, values, strict=True)),)
    )


def with_variants(experiment: Experiment, variants: Mapping[str, Sequence[float]]) -> Experiment:
    """An experiment with other variants than its file names.

    Parameters
    ----------
    experiment : Experiment
        Any that shows a stimulus with such parameters.
    variants : mapping of str to sequence of float
        Parameters of its stimulus and their values: ``{"phase": [0, 90, 180, 270], "orientation": [0, 45]}``, deg.

    Returns
    -------
    Experiment
        Checked: every combination can be drawn at the first level.

    Raises
    ------
    UnknownNameError
        If the stimulus has no such parameter, or it is a level of the experiment.
    InputError
        If a parameter has no value or one twice, or a value is not allowed.

    Examples
    --------
    >>> from psyprobe.experiment_file import read_experiment
    >>> varied = with_variants(read_experiment("gabor_achromatic"), {"phase": [0, 90], "orientation": [0, 45, 90]})
    >>> len(expand_variants(varied))
    6
    """
    free = variable_parameters(experiment)
    chosen: dict[str, tuple[float, ...]] = {}
    for name, values in variants.items():
        if name not in free:
            raise unknown_name(f"parameter of {experiment.stimulus.name} to vary", name, free)
        if not values or len(set(values)) != len(values):
            raise InputError(f"variants of {name} are {list(values)}; give at least one value, each once")
        chosen[name] = tuple(values)
    varied = replace(experiment, variants=chosen)
    for each in expand_variants(varied):
        try:
            each.stimulus.spec()
        except InputError as error:
            raise type(error)(f"{experiment.name}, variant {variant_label(each.variant)}: {error}") from error
    return varied


def variable_parameters(experiment: Experiment) -> list[str]:
    """What can be varied: numeric parameters of the stimulus that are no levels of the experiment.

    Parameters
    ----------
    experiment : Experiment
        Any.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from psyprobe.experiment_file import read_experiment
    >>> variable_parameters(read_experiment("noise_achromatic"))
    ['luminance', 'bandwidth', 'exponent', 'edge', 'seed']
    """
    x = experiment.x.name
    levels = ("contrast", "frequency" if experiment.probe == "matching" else "", "radius" if x == "area" else x)
    return [name for name in experiment.stimulus.spec().numeric if name not in levels]


def variant_label(variant: Mapping[str, float]) -> str:
    """A variant in words.

    Parameters
    ----------
    variant : mapping of str to float
        Parameters and their values.

    Returns
    -------
    str

    Examples
    --------
    >>> variant_label({"phase": 90, "orientation": 45})
    'phase 90, orientation 45'
    """
    return ", ".join(f"{name} {value:g}" for name, value in variant.items())
