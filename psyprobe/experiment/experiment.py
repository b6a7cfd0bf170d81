"""An experiment: one page of TOML that says what is shown, what is asked and what people would see.

Reading is strict: a key that is not known, a number that is no number and a level that the stimulus does not have are
errors that name the file and the key.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SkipValidation, ValidationInfo, field_validator

from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment.sections import (
    Asking,
    Difference,
    Feeding,
    Fit,
    Judging,
    Score,
    Section,
    Sending,
    ascending,
    folder_of,
    in_file,
    one_line,
)
from psyprobe.files.digest import digest, plain
from psyprobe.human.reference import Reference, load_reference
from psyprobe.light.display import Display
from psyprobe.stimulus.catalogue import StimulusSet, load_stimulus, read_page, stimulus_set
from psyprobe.stimulus.specification import Specification, level_of


class Page(Section):
    """What stands on a page; see docs/experiments.md for an example of each table."""

    title: str
    source: str = ""
    #: A catalogue name, a ``.toml`` file beside the page, or a table with a kind and its parameters.
    stimulus: StimulusSet | None = None
    #: The folder of a benchmark's items, in place of a stimulus.
    items: Path | None = None
    #: How the observer is asked; see `psyprobe list probes`.
    probe: str
    #: Any numeric parameters of the stimulus, each with its values.
    levels: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    difference: Difference | None = None
    #: Parameters that vary besides the levels: every combination is shown, and responses are averaged.
    variants: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    human: Annotated[Reference | None, SkipValidation] = None
    score: Score = Score()
    display: Display = Display()
    observer: Feeding = Feeding()
    asking: Asking | None = None
    delivery: Sending = Sending()
    fit: Fit = Fit()
    judge: Judging | None = None
    #: What a probe takes besides; the probe says what.
    options: dict[str, Any] = Field(default_factory=dict)
    #: What departs from the source, and what the source does not say, in words.
    differences: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @field_validator("stimulus", mode="before")
    @classmethod
    def _stimulus(cls, value: Any, info: ValidationInfo) -> StimulusSet:
        folder = folder_of(info)
        if isinstance(value, Mapping):
            return stimulus_set({"title": "stimulus", **value}, "stimulus", folder)
        if not isinstance(value, str):
            raise InputError(f"stimulus is {value!r}; give text, or a table with a kind and its parameters")
        return load_stimulus(folder / value if value.endswith(".toml") else value)

    @field_validator("items", mode="before")
    @classmethod
    def _items(cls, value: Any, info: ValidationInfo) -> Path:
        if not isinstance(value, str):
            raise InputError(f"items is {value!r}; give the folder that holds them, as text")
        return folder_of(info) / value

    @field_validator("levels", mode="before")
    @classmethod
    def _levels(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            return value
        stimulus = info.data.get("stimulus")
        units = {} if stimulus is None else {name: level_of(stimulus.spec(), name).unit for name in value}
        return {name: ascending(f"levels.{name} ({units.get(name, '')})", entry) for name, entry in value.items()}

    @field_validator("variants", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        for name, entry in value.items():
            if not isinstance(entry, list) or not all(_is_number(each) for each in entry):
                raise InputError(f"variants.{name} is {entry!r}; give a list of numbers, without the unit")
        return {name: tuple(entry) for name, entry in value.items()}

    @field_validator("human", mode="before")
    @classmethod
    def _human(cls, value: Any, info: ValidationInfo) -> Reference:
        if not isinstance(value, Mapping):
            raise InputError(f"human is {value!r}; it must be a table")
        return load_reference(value, folder_of(info))

    @field_validator("display", mode="before")
    @classmethod
    def _display(cls, value: Any) -> Display:
        if isinstance(value, str):
            return Display.preset(value)
        if not isinstance(value, Mapping):
            raise InputError(f"display is {value!r}; give a table [display] or the name of a preset")
        for key, entry in value.items():
            if isinstance(entry, str) and key not in ("eotf", "primaries"):
                raise InputError(f"display.{key} is the text {entry!r}; give a number without a unit")
        return Display.from_dict(value)

    @field_validator("differences", "assumed", mode="before")
    @classmethod
    def _sentences(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise InputError(f"{info.field_name} is {value!r}; give a list of sentences")
        return tuple(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


class Experiment(Page):
    """An experiment as its page describes it, every value checked; `read_experiment` makes one."""

    #: Name of the file without its ending, and the folder that it lies in.
    name: str
    folder: Path
    #: The text of the file.
    toml: str
    #: Show only what the score needs, and nothing that is for figures alone.
    score_only: bool = False
    #: Which of the variants this is; none where it stands for all.
    variant: dict[str, float] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of what the page and the files that it names say, whatever their spelling and comments."""
        # The table of fits says how answers are worked up, not what is asked.
        page = {key: value for key, value in tomllib.loads(self.toml).items() if key != "fit"}
        stimulus = None if self.stimulus is None else plain(self.stimulus.content())
        prompts = [] if self.asking is None else [prompt.to_dict() for prompt in self.asking.prompts]
        asking = {} if self.asking is None else plain(self.asking.model_dump(exclude={"prompts"}))
        human = "" if self.human is None else self.human.digest
        return digest([page, stimulus, self.variant, prompts, asking, human])

    @property
    def shown(self) -> StimulusSet:
        """The stimulus, which the page must name.

        Raises
        ------
        InputError
            It names none.
        """
        if self.stimulus is None:
            raise InputError(f"{self.name}: there is no 'stimulus'; give a catalogue name, a file, or a kind")
        return self.stimulus

    def spec(self, **levels: float) -> Specification:
        """The stimulus of this variant at some levels."""
        return self.shown.spec(**{**self.variant, **levels})

    def with_variants(self, variants: Mapping[str, Sequence[float]]) -> Experiment:
        """The experiment with other variants: ``{"phase": [0, 90, 180, 270], "orientation": [0, 45]}``, deg.

        Raises
        ------
        UnknownNameError
            The stimulus has no such parameter, or it is a level of the experiment.
        InputError
            A parameter has no value or one twice, or a value is not allowed.

        Examples
        --------
        >>> varied = read_experiment("gabor_achromatic").with_variants({"phase": [0, 90], "orientation": [0, 45, 90]})
        >>> len(varied.expanded())
        6
        """
        free = self.free_parameters()
        for name, values in variants.items():
            if name not in free:
                raise unknown_name(f"parameter of {self.shown.name} to vary", name, free)
            if not values or len(set(values)) != len(values):
                raise InputError(f"variants of {name} are {list(values)}; give at least one value, each once")
        varied = self.model_copy(update={"variants": {name: tuple(values) for name, values in variants.items()}})
        for each in varied.expanded():
            try:
                each.spec()
            except InputError as error:
                raise type(error)(f"{self.name}, variant {variant_label(each.variant)}: {error}") from error
        return varied

    def free_parameters(self) -> list[str]:
        """Numeric parameters of the stimulus that are no levels of the experiment, and can vary.

        Examples
        --------
        >>> read_experiment("noise_achromatic").free_parameters()
        ['luminance', 'bandwidth', 'exponent', 'edge', 'seed']
        """
        spec = self.shown.spec()
        derived = {name: spec.derived_levels[name].parameter for name in spec.derived_levels}
        taken = {*self.levels, "contrast", *derived, *(derived[name] for name in self.levels if name in derived)}
        return [name for name in spec.levels() if name not in taken]

    def expanded(self) -> tuple[Experiment, ...]:
        """One experiment for each combination of variants, in the order in which they are run; itself without any."""
        if not self.variants or self.variant:
            return (self,)
        every = itertools.product(*self.variants.values())
        return tuple(self.model_copy(update={"variant": dict(zip(self.variants, each, strict=True))}) for each in every)


def variant_label(variant: Mapping[str, float]) -> str:
    """A variant in words.

    Examples
    --------
    >>> variant_label({"phase": 90, "orientation": 45})
    'phase 90, orientation 45'
    """
    return ", ".join(f"{name} {value:g}" for name, value in variant.items())


def read_experiment(name_or_path: str | Path) -> Experiment:
    """Read an experiment of the catalogue, or a file of one's own.

    Parameters
    ----------
    name_or_path : str or Path
        A catalogue name, or the path of a ``.toml`` file.

    Raises
    ------
    InputError
        One sentence with the file's name, the key, its value and what is allowed.

    Examples
    --------
    >>> experiment = read_experiment("gabor_achromatic")
    >>> {name: len(values) for name, values in experiment.levels.items()}
    {'frequency': 20, 'contrast': 20}
    """
    path, values = read_page("experiments", name_or_path)
    with in_file(str(name_or_path)), one_line(Page):
        if "experiments" in values:
            raise InputError("this is a suite of several experiments; read it with read_suite, or name one of them")
        context = {"folder": path.parent}
        page = Page.model_validate(values, context=context)
        parts = {name: getattr(page, name) for name in page.model_fields_set}
        read = Experiment.model_construct(
            **parts, name=path.stem, folder=path.parent, toml=path.read_text(encoding="utf-8")
        )
        if read.difference is not None:
            level_of(read.shown.spec(), read.difference.parameter)
        return read.with_variants(read.variants) if read.variants else read


class _Suite(Section):
    title: str
    source: str = ""
    experiments: list[str]


def read_suite(name_or_path: str | Path) -> tuple[Experiment, ...]:
    """Read all experiments of a suite, or the one experiment of any other page.

    A suite has ``title``, ``source`` and ``experiments``: a list of catalogue names, or of paths of files beside it.

    Examples
    --------
    >>> len(read_suite("cai2025")), len(read_suite("gabor_achromatic"))
    (9, 1)
    """
    path, values = read_page("experiments", name_or_path)
    if "experiments" not in values:
        return (read_experiment(name_or_path),)
    with in_file(str(name_or_path)), one_line(_Suite):
        names = _Suite.model_validate(values).experiments
        if not names or len(set(names)) != len(names):
            raise InputError(f"experiments is {names!r}; list at least one, each once")
    return tuple(read_experiment(path.parent / name if name.endswith(".toml") else name) for name in names)
