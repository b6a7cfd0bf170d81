"""Experiments: pages of TOML that say what is shown, what is asked and what people would see."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from psyprobe.errors import InputError, check_known
from psyprobe.experiment.draws import DRAW, drawn_parameters
from psyprobe.experiment.page import Page, Section
from psyprobe.experiment.page import Score as ScoreSettings
from psyprobe.experiment.page_errors import in_file, one_line
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.listing import Listing
from psyprobe.files.output import digest, plain, toml_text
from psyprobe.stimulus.catalogue import PageRow, StimulusSet, list_pages, read_page
from psyprobe.stimulus.specification import Specification, level_of

#: Conditions that an experiment may have: every level with every other, in every variant.
_LARGEST_CONDITION_COUNT = 1_000_000


class Experiment(Page):
    """An experiment as its page describes it; `load_experiment` makes one."""

    #: Name of the file without its ending, and the folder that it lies in.
    name: str
    folder: Path
    #: The text of the file.
    toml: str
    #: Whether to show only what the score needs, and nothing that is for figures alone.
    score_only: bool = False
    #: The variant that this experiment is; empty where it stands for all.
    variant: dict[str, float] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The SHA-256 of what the page and its files say, whatever their spelling and comments."""
        # The table of fits says how answers are worked up, not what is asked.
        page = {
            key: value
            for key, value in tomllib.loads(self.toml).items()
            if key != "fit"
        }
        stimulus = None if self.stimulus is None else plain(self.stimulus.content())
        prompts: list[JsonObject] = []
        asking: JsonObject = {}
        if self.asking is not None:
            prompts = [prompt.to_dict() for prompt in self.asking.prompts]
            asking = self.asking.settings()
        human = "" if self.human is None else self.human.digest
        return digest([page, stimulus, self.variant, prompts, asking, human])

    @property
    def stimulus_set(self) -> StimulusSet:
        """The stimulus that the page names, or an error if it names none.

        Raises
        ------
        InputError
            If it names none.
        """
        if self.stimulus is None:
            raise InputError(
                f"{self.name}: there is no 'stimulus'; give a catalogue name, a file, or a kind"
            )
        return self.stimulus

    def spec(self, **levels: float) -> Specification:
        """Build the stimulus of this variant at some levels."""
        varied = dict(self.variant)
        draw = varied.pop(DRAW, None)
        if draw is not None:
            names = self.free_parameters()
            varied = drawn_parameters(self.stimulus_set.spec(), names, draw) | varied
        return self.stimulus_set.spec(**varied | levels)

    def with_variants(self, variants: Mapping[str, Sequence[float]]) -> Experiment:
        """Copy the experiment with other variants.

        Parameters
        ----------
        variants : mapping of str to sequence of float
            Values of parameters of the stimulus: ``{"phase": [0, 90, 180, 270]}``, or numbers of
            joint draws of phase, position and noise: ``{"draw": [1, 2, 3]}``. Empty for the
            stimulus as the page describes it.

        Raises
        ------
        UnknownNameError
            If the stimulus has no such parameter, or it is a level of the experiment.
        InputError
            If a parameter has no value or one twice, or a value is not allowed.

        Examples
        --------
        >>> variants = {"phase": [0, 90], "orientation": [0, 45, 90]}
        >>> varied = load_experiment("gabor_achromatic").with_variants(variants)
        >>> len(varied.expanded())
        6
        """
        free = self.free_parameters()
        known = [*free, DRAW]
        check_known(f"parameter of {self.stimulus_set.name} to vary", variants, known)
        for name, values in variants.items():
            if not values or len(set(values)) != len(values):
                raise InputError(
                    f"variants of {name} are {list(values)}; give at least one value, each once"
                )
        values_by_name = {name: tuple(values) for name, values in variants.items()}
        varied = self.model_copy(update={"variants": values_by_name})
        varied.check_conditions()
        for experiment in varied.expanded():
            with in_file(f"{self.name}, variant {variant_label(experiment.variant)}"):
                experiment.spec()
        return varied

    def with_settings(self, settings: JsonMapping) -> Experiment:
        """Copy the experiment with other values of keys of its TOML page.

        Parameters
        ----------
        settings : mapping of str to value
            Values by key, with its tables in front: ``{"asking.temperature": 1}``. Keys of a
            stimulus that the page names begin with ``stimulus``: ``stimulus.parameters.ppd``.

        Raises
        ------
        InputError, UnknownNameError
            As for the page.

        Examples
        --------
        >>> settings = {"asking.temperature": 1, "levels.contrast.n": 8}
        >>> warm = load_experiment("hernandez2025").with_settings(settings)
        >>> warm.asking.temperature, len(warm.levels["contrast"]), warm.changed
        (1.0, 8, {'asking.temperature': 0, 'levels.contrast.n': 12})
        """
        if not settings:
            return self
        page = tomllib.loads(self.toml)
        changed = dict(page.get("changed", {}))
        for key, value in settings.items():
            *tables, last = key.split(".")
            if tables and tables[0] == "stimulus":
                self._spell_out_stimulus(page)
            table = page
            for name in tables:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    raise InputError(
                        f"{self.name}: {key!r} cannot be set, since {name} is no table; set "
                        f"{name} itself"
                    )
            changed.setdefault(key, table.get(last, ""))
            table[last] = value
        page["changed"] = changed
        with in_file(self.name):
            return _make_experiment(page, self.name, self.folder, toml_text(page))

    def _spell_out_stimulus(self, page: JsonObject) -> None:
        """Replace the name of a stimulus in a page by the stimulus's own page."""
        name = page.get("stimulus")
        if isinstance(name, str) and not name.endswith(".toml"):
            page["stimulus"] = read_page("stimuli", name)[1]

    def check_conditions(self) -> None:
        """Refuse an experiment of too many conditions."""
        levels = list(self.levels.values())
        if self.difference is not None:
            levels.append(self.difference.levels)
        conditions = math.prod(map(len, [*levels, *self.variants.values()]))
        if conditions > _LARGEST_CONDITION_COUNT:
            raise InputError(
                f"levels and variants make {conditions:,} conditions; give fewer, up to "
                f"{_LARGEST_CONDITION_COUNT:,} in all"
            )

    def free_parameters(self) -> list[str]:
        """List the stimulus's numeric parameters that can be varied and are no levels yet.

        Examples
        --------
        >>> load_experiment("noise_achromatic").free_parameters()
        ['luminance', 'bandwidth', 'exponent', 'edge', 'seed']
        """
        spec = self.stimulus_set.spec()
        fixed = {"contrast", *self.levels, *spec.derived_levels}
        for name in self.levels:
            if name in spec.derived_levels:
                fixed.add(spec.derived_levels[name].parameter)
        return [name for name in spec.levels() if name not in fixed]

    def expanded(self) -> tuple[Experiment, ...]:
        """Build one experiment for each combination of variants, in the order of running.

        Without variants it is the experiment itself. Of several draws the first alone shows what
        the score does not need.
        """
        if not self.variants or self.variant:
            return (self,)
        experiments = []
        for values in itertools.product(*self.variants.values()):
            variant = dict(zip(self.variants, values, strict=True))
            update: JsonObject = {"variant": variant}
            # A page that says where its score is taken can be shown at these alone.
            if DRAW in variant and variant[DRAW] != self.variants[DRAW][0]:
                update["score_only"] = self.score_only or self.score != ScoreSettings()
            experiments.append(self.model_copy(update=update))
        return tuple(experiments)


def variant_label(variant: Mapping[str, float]) -> str:
    """Describe a variant in words: its parameters and values.

    Examples
    --------
    >>> variant_label({"phase": 90, "orientation": 45})
    'phase 90, orientation 45'
    """
    return ", ".join(f"{name} {value:g}" for name, value in variant.items())


def load_experiment(name_or_path: str | Path) -> Experiment:
    """Read an experiment of the catalogue, or a user's file.

    Parameters
    ----------
    name_or_path : str or Path
        A catalogue name, or the path of a ``.toml`` file.

    Raises
    ------
    InputError
        If the page is wrong: one sentence with the file's name, the key, its value and what is
        allowed.

    Examples
    --------
    >>> experiment = load_experiment("gabor_achromatic")
    >>> {name: len(values) for name, values in experiment.levels.items()}
    {'frequency': 20, 'contrast': 20}
    """
    path, values = read_page("experiments", name_or_path)
    with in_file(str(name_or_path)):
        text = path.read_text(encoding="utf-8")
        return _make_experiment(values, path.stem, path.parent, text)


def experiment_from_text(text: str, name: str, folder: Path) -> Experiment:
    """Build an experiment from the text of its TOML page, as a result stores it.

    Parameters
    ----------
    text : str
        The page.
    name : str
        Name of the experiment.
    folder : Path
        Folder of the files that the page names.

    Raises
    ------
    InputError
        As `load_experiment`.
    """
    with in_file(name):
        try:
            values = tomllib.loads(text)
        except ValueError as error:
            raise InputError(f"the page is no TOML: {error}") from None
        return _make_experiment(values, name, folder, text)


def _make_experiment(
    values: JsonObject, name: str, folder: Path, text: str
) -> Experiment:
    """Build an experiment from the values of its TOML page, checking them together."""
    with one_line(Page):
        if "experiments" in values:
            raise InputError(
                "this is a suite of several experiments; read it with load_suite, or name one "
                "of them"
            )
        page = Page.model_validate(values, context={"folder": folder})
        tables = {key: getattr(page, key) for key in page.model_fields_set}
        experiment = Experiment.model_construct(
            **tables, name=name, folder=folder, toml=text
        )
        experiment.check_conditions()
        difference = experiment.difference
        changes = [] if difference is None else [difference, difference.against]
        for change in changes:
            if change is not None:
                level_of(experiment.stimulus_set.spec(), change.parameter)
        if experiment.variants:
            return experiment.with_variants(experiment.variants)
        return experiment


class _Suite(Section):
    title: str
    source: str = ""
    experiments: list[str]


def load_suite(name_or_path: str | Path) -> tuple[Experiment, ...]:
    """Read all experiments of a suite, or the only one of another TOML page.

    A suite has ``title``, ``source`` and ``experiments``: a list of catalogue names, or of paths of
    files beside it.

    Parameters
    ----------
    name_or_path : str or Path
        As for `load_experiment`.

    Raises
    ------
    InputError
        If the suite lists nothing, or a name twice; or as `load_experiment`.

    Examples
    --------
    >>> len(load_suite("cai2025")), len(load_suite("gabor_achromatic"))
    (9, 1)
    """
    path, values = read_page("experiments", name_or_path)
    if "experiments" not in values:
        return (load_experiment(name_or_path),)
    with in_file(str(name_or_path)), one_line(_Suite):
        names = _Suite.model_validate(values).experiments
        if not names or len(set(names)) != len(names):
            raise InputError(f"experiments is {names!r}; list at least one, each once")
    experiments = []
    for name in names:
        source = path.parent / name if name.endswith(".toml") else name
        experiments.append(load_experiment(source))
    return tuple(experiments)


def is_suite(name_or_path: str | Path) -> bool:
    """Tell whether a TOML page is a suite of experiments.

    Parameters
    ----------
    name_or_path : str or Path
        As for `load_experiment`.

    Examples
    --------
    >>> is_suite("cai2025"), is_suite("gabor_achromatic")
    (True, False)
    """
    _, page = read_page("experiments", name_or_path)
    return "experiments" in page


def list_experiments() -> Listing[PageRow]:
    """List the experiments and suites of the catalogue, those of installed packages included.

    Examples
    --------
    >>> [row.title for row in list_experiments() if row.name == "area"]
    ['Contrast sensitivity over area']
    """
    return list_pages("experiments")
