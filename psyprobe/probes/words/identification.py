"""Ask which of several labels is shown: what a page's table [options] says of `identify`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from psyprobe.analysis.identification.replies import OTHERS
from psyprobe.analysis.words.trial_table import READINGS
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.page import Section
from psyprobe.experiment.page_errors import one_line
from psyprobe.probes.words.delivery import derived_seed
from psyprobe.stimulus.specification import level_of

#: Most labels among which is chosen.
_MOST = 26

#: What a label may be, since a question lists labels, and results hold them as flags.
_NAME = re.compile(r"[^\s,_?]+(?: [^\s,_?]+)*")
#: What a result says in place of a label.
_TAKEN = (*OTHERS, READINGS[0])

_Reach = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class IdentificationOptions(Section):
    """The table [options] of a page whose probe is `identify`."""

    #: The parameter of the stimulus that decides which label is right.
    label: str
    #: Its values; by default those that the parameter has words for.
    values: list[float | str] | None = None
    #: What each value is called; by default the words of the parameter.
    names: list[str] | None = None
    #: Further words for a name.
    aliases: dict[str, list[str]] = Field(default_factory=dict)
    #: Distances up to which parameters vary at random from trial to trial, such as x and y.
    jitter: dict[str, _Reach] = Field(default_factory=dict)


@dataclass(frozen=True)
class Alternatives:
    """The labels of an experiment, and the values of the parameter that they stand for."""

    parameter: str
    values: tuple[float, ...]
    #: Each label, with its further words.
    labels: tuple[tuple[str, ...], ...]
    #: Distances up to which parameters vary at random, by name.
    jitter: tuple[tuple[str, float], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the labels."""
        return tuple(words[0] for words in self.labels)


def read_alternatives(experiment: Experiment) -> Alternatives:
    """Read the labels among which an experiment asks to choose.

    Parameters
    ----------
    experiment : Experiment
        Its page has a table [options]; see `IdentificationOptions`.

    Raises
    ------
    InputError
        A key is wrong, there are fewer than 2 labels or more than 26, or a name comes twice.

    Examples
    --------
    >>> from psyprobe.experiment import load_experiment
    >>> read_alternatives(load_experiment("tumbling_e")).names
    ('right', 'up', 'left', 'down')
    """
    if not experiment.options:
        raise InputError(
            f"{experiment.name}: there is no [options]; say there what is to be named, such as "
            'label = "letter"'
        )
    with one_line(IdentificationOptions):
        options = IdentificationOptions.model_validate(experiment.options)
    spec = experiment.spec()
    definition = level_of(spec, options.label)
    values = options.values
    if values is None and not definition.labels:
        raise InputError(
            f"{experiment.name}: options.label is {options.label!r}, whose values have no words; "
            "give values = [...] and names = [...]"
        )
    shown = values or list(definition.labels)
    numbers = tuple(float(definition.check(options.label, value)) for value in shown)
    names = options.names
    if names is None and definition.labels:
        names = [definition.labels[int(number)] for number in numbers]
    names = names or []
    labels = tuple((name, *options.aliases.get(name, ())) for name in names)
    words = [word for label in labels for word in label]
    alike = {word.casefold() for word in words}
    if not 2 <= len(numbers) <= _MOST or len({*numbers}) < len(numbers):
        raise InputError(
            f"{experiment.name}: options.values are {shown}; give 2 to {_MOST}, each once"
        )
    if len(names) != len(numbers) or len(alike) < len(words):
        raise InputError(
            f"{experiment.name}: options.names are {names} for {len(numbers)} values; give a "
            "different word for each, and aliases of its own"
        )
    for word in words:
        if not (_NAME.fullmatch(word) and word.isprintable()) or word in _TAKEN:
            raise InputError(
                f"{experiment.name}: options name a label {word!r}; give a word or some with "
                f"single blanks, without commas and underlines, and not {' or '.join(_TAKEN)}"
            )
    unknown = {*options.aliases} - {*names}
    if unknown:
        raise InputError(
            f"{experiment.name}: options.aliases has {sorted(unknown)[0]!r}, which is none of "
            f"{', '.join(names)}"
        )
    for name in options.jitter:
        level_of(spec, name)
    return Alternatives(
        options.label,
        numbers,
        labels,
        tuple(options.jitter.items()),
    )


def card_of_deck(seed: int, count: int, deck: Sequence[float], place: int) -> int:
    """Draw a trial's label from shuffled decks, each of which holds every label once.

    Parameters
    ----------
    seed : int
        Of the experiment.
    count : int
        Number of labels.
    deck : sequence of float
        The level whose labels are balanced.
    place : int
        Number of the trial among those of this level, from 0.

    Examples
    --------
    >>> sorted(card_of_deck(1, 4, [0.1], place) for place in range(4))
    [0, 1, 2, 3]
    """
    turn, card = divmod(place, count)
    generator = np.random.default_rng(derived_seed(seed, "labels", *deck, turn))
    return int(generator.permutation(count)[card])
