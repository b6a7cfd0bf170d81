"""Experiment files: one page of TOML that says what is shown, what is asked and what people would see.

An experiment names a stimulus set, a probe, a human reference, the levels of one stimulus parameter and of contrast,
and the points along the human curve at which the observer is scored. Reading is strict: a key that is not known, a
number that is no number and a level that cannot be drawn are errors that name the file and the key.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe import page_reading as reading
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus.catalogue import StimulusSet, load_stimulus, read_page
from psyprobe.store import digest

if TYPE_CHECKING:
    from psyprobe.question_file import QuestionExperiment

#: Parameters that an experiment can vary beside contrast: unit and label of the axis.
X_AXES = {
    "frequency": ("cpd", "Spatial frequency"),
    "luminance": ("cd/m²", "Background luminance"),
    "area": ("deg²", "Area"),
    "mask_contrast": ("1", "Mask contrast"),
}

#: Distances that an experiment can be scored by.
SCORED_MEASURES = ("angular", "angular_float32", "cosine", "l1", "l2")

#: Measured matches that a matching experiment compares with.
MATCHING_DATA = "georgeson_sullivan1975"

_KEYS = (
    "title",
    "source",
    "stimulus",
    "probe",
    "human",
    "levels",
    "score",
    "display",
    "observer",
    "differences",
    "variants",
)


@dataclass(frozen=True)
class Axis:
    """The levels of one parameter.

    Parameters
    ----------
    name : str
        "frequency", "luminance", "area", "mask_contrast" or "contrast".
    unit, label : str
        As they stand on a figure's axis.
    values : tuple of float
        In ascending order.
    """

    name: str
    unit: str
    label: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class HumanReference:
    """The people that an observer is compared with: a model of their contrast sensitivity, or what was measured.

    Parameters
    ----------
    model : str
        Name of a contrast sensitivity function in `psyprobe.human`; "" where measured data is named.
    inputs : mapping
        Inputs of the model that differ from the parameters of the stimulus: "frequency" (cpd), "luminance" (cd/m²),
        "area" (deg²), "direction".
    contrast : {"peak", "rms"}
        The contrast of the stimulus. A model gives the peak contrast at threshold; the RMS contrast of a sinusoid is
        smaller by sqrt(2).
    table : (from, to, n) or None
        Read the model from a table of n log-spaced points by linear interpolation, as published scores were.
    data : str
        Name of measured thresholds or matches in `psyprobe.human`; "" where a model is named.
    """

    model: str
    inputs: Mapping[str, Any]
    contrast: str = "peak"
    table: tuple[float, float, int] | None = None
    data: str = ""


@dataclass(frozen=True)
class ScorePoints:
    """Where along the human curve an observer is scored.

    Parameters
    ----------
    multiplier : tuple of float
        Factors on the human threshold or sensitivity; none for a matching experiment.
    multiplier_of : {"threshold", "sensitivity"}
        What they multiply.
    above, below : float or None
        Score only levels above or below this one, in the unit of the x axis.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}
        The response that is scored; "angular_float32" is S_ac with the rounding errors of the published code.
    method : {"crossing", "bracket"}
        How a matching experiment finds the matched contrast; see `psyprobe.analysis.match_contrast`.
    """

    multiplier: tuple[float, ...]
    multiplier_of: str = "threshold"
    above: float | None = None
    below: float | None = None
    measure: str = "angular"
    method: str = "crossing"


@dataclass(frozen=True)
class Experiment:
    """An experiment as its file describes it; `read_experiment` makes one.

    Parameters
    ----------
    name, title, source : str
        Name of the file without its ending, what it is, and where it comes from.
    stimulus : StimulusSet
        What is shown.
    probe : str
        How the observer is asked.
    human : HumanReference
        What people see.
    x, contrast : Axis
        The level grid.
    score : ScorePoints
        The points along the human curve.
    display : Display
        What shows it.
    observer_input : {"normalised", "raw"}
        How the observer is fed: by its own normalisation, or with drive values as they are.
    as_published : bool
        Whether models of the zoo are run as the paper ran them: masked, or sampled.
    metric_ppd : float or None
        Pixels per degree that a metric is told, where they are not those of the stimulus, as in published runs.
    differences : tuple of str
        What departs from the source, in words.
    toml : str
        The text of the file.
    score_only : bool
        Show only what the score needs, and nothing that is for figures alone.
    variants : mapping of str to tuple of float
        Parameters of the stimulus that vary besides the levels: every combination is shown, and responses are averaged.
    variant : mapping of str to float
        Which one of them this is; none where it stands for all.
    """

    name: str
    title: str
    source: str
    stimulus: StimulusSet
    probe: str
    human: HumanReference
    x: Axis
    contrast: Axis
    score: ScorePoints
    display: Display
    observer_input: str
    as_published: bool
    metric_ppd: float | None
    differences: tuple[str, ...]
    toml: str
    score_only: bool = False
    variants: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    variant: Mapping[str, float] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of what the file and its stimulus file say, whatever their spelling and comments."""
        stimulus = {"kind": self.stimulus.kind, "parameters": reading.plain(self.stimulus.parameters)}
        return digest([tomllib.loads(self.toml), stimulus])


def read_experiment(name_or_path: str | Path) -> Experiment | QuestionExperiment:
    """Read an experiment of the catalogue, or a file of one's own.

    Parameters
    ----------
    name_or_path : str or Path
        A catalogue name, or the path of a ``.toml`` file.

    Returns
    -------
    Experiment or QuestionExperiment
        With every value checked; the latter where the probe asks in words.

    Raises
    ------
    InputError
        One sentence with the file's name, the key, its value and what is allowed.

    Examples
    --------
    >>> experiment = read_experiment("gabor_achromatic")
    >>> experiment.x.name, len(experiment.x.values), experiment.x.unit
    ('frequency', 20, 'cpd')
    """
    path, values = read_page("experiments", name_or_path)
    with reading.in_file(str(name_or_path)):
        return _experiment(path, values, path.read_text(encoding="utf-8"))


def read_suite(name_or_path: str | Path) -> tuple[Experiment | QuestionExperiment, ...]:
    """Read all experiments of a suite, or the one experiment of any other page.

    Parameters
    ----------
    name_or_path : str or Path
        A catalogue name, or the path of a ``.toml`` file. A suite has ``title``, ``source`` and ``experiments``: a list
        of catalogue names, or of paths of files beside it.

    Returns
    -------
    tuple of Experiment
        In the order of the file.

    Raises
    ------
    InputError
        One sentence with the file's name, the key, its value and what is allowed.

    Examples
    --------
    >>> len(read_suite("cai2025")), len(read_suite("gabor_achromatic"))
    (9, 1)
    """
    path, values = read_page("experiments", name_or_path)
    if "experiments" not in values:
        return (read_experiment(name_or_path),)
    with reading.in_file(str(name_or_path)):
        reading.check_keys(values, ("title", "source", "experiments"), "")
        reading.text(values, "title", "")
        names = reading.texts(values["experiments"], "experiments")
        if not names or len(set(names)) != len(names):
            raise InputError(f"experiments is {list(names)!r}; list at least one, each once")
    return tuple(read_experiment(path.parent / name if name.endswith(".toml") else name) for name in names)


def _experiment(path: Path, values: dict[str, Any], text: str) -> Experiment | QuestionExperiment:
    from psyprobe.probes import load_probe
    from psyprobe.variants import with_variants

    if "experiments" in values:
        raise InputError("this is a suite of several experiments; read it with read_suite, or name one of them")
    probe = reading.text(values, "probe", "")
    if "answer" in load_probe(probe).ABILITIES:
        from psyprobe.question_file import question_experiment

        return question_experiment(path, values, text)
    reading.check_keys(values, _KEYS, "")
    levels = reading.table(values, "levels")
    x_name = _x_name(levels)
    unit, label = X_AXES[x_name]
    human = _human(reading.table(values, "human"), x_name, probe)
    observer = reading.table(values, "observer", {})
    reading.check_keys(observer, ("input", "as_published", "metric_ppd"), "observer")
    experiment = Experiment(
        name=path.stem,
        title=reading.text(values, "title", ""),
        source=reading.text(values, "source", "", ""),
        stimulus=_stimulus(reading.text(values, "stimulus", ""), path.parent),
        probe=probe,
        human=human,
        x=Axis(x_name, unit, label, reading.levels(levels[x_name], f"levels.{x_name}", unit)),
        contrast=Axis("contrast", "1", "Contrast", reading.levels(levels["contrast"], "levels.contrast", "a fraction")),
        score=_score(reading.table(values, "score", {} if probe == "matching" else None), unit, probe),
        display=reading.display(values.get("display", {})),
        observer_input=reading.choice(observer, "input", "observer", ("normalised", "raw"), "normalised"),
        as_published=_flag(observer, "as_published", "observer"),
        metric_ppd=reading.positive(observer, "metric_ppd", "observer", "pixels per degree")
        if "metric_ppd" in observer
        else None,
        differences=reading.texts(values.get("differences", []), "differences"),
        toml=text,
    )
    variants = {name: _variant_values(name, entry) for name, entry in reading.table(values, "variants", {}).items()}
    return with_variants(experiment, variants) if variants else experiment


def _flag(table: Mapping[str, Any], key: str, where: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise InputError(f"{where}.{key} is {value!r}; give true or false")
    return value


def _variant_values(name: str, entry: Any) -> list[float]:
    if not isinstance(entry, list) or not all(reading.is_number(value) and math.isfinite(value) for value in entry):
        raise InputError(f"variants.{name} is {entry!r}; give a list of numbers, without the unit")
    return entry


def _stimulus(name: str, folder: Path) -> StimulusSet:
    return load_stimulus(folder / name if name.endswith(".toml") else name)


def _x_name(levels: Mapping[str, Any]) -> str:
    reading.check_keys(levels, (*X_AXES, "contrast"), "levels")
    names = [name for name in levels if name != "contrast"]
    if "contrast" not in levels or len(names) != 1:
        raise InputError(
            f"[levels] holds {', '.join(levels) or 'nothing'}; give contrast and one of {', '.join(X_AXES)}"
        )
    return names[0]


def _human(table: Mapping[str, Any], x_name: str, probe: str) -> HumanReference:
    from psyprobe.human import csf, masking_data

    if "data" in table or probe == "matching" or x_name == "mask_contrast":
        reading.check_keys(table, ("data",), "human")
        data = reading.text(table, "data", "human")
        if probe == "matching":
            reading.choice(table, "data", "human", (MATCHING_DATA,), "")
        else:
            masking_data(data)
        wanted = "frequency" if probe == "matching" else "mask_contrast"
        if x_name != wanted:
            raise InputError(f"human.data = {data!r} goes with levels of {wanted}, and [levels] varies {x_name}")
        return HumanReference(model="", inputs={}, data=data)
    inputs = ("frequency", "luminance", "area", "direction")
    reading.check_keys(table, ("model", "contrast", "table", *inputs), "human")
    if x_name in table:
        raise InputError(f"human.{x_name} is given, but {x_name} is what [levels] varies; leave it out")
    given: dict[str, Any] = {}
    for name in inputs:
        if name == "direction" and name in table:
            given[name] = _direction(table[name])
        elif name in table:
            given[name] = reading.positive(table, name, "human", X_AXES[name][0])
    span = None
    if "table" in table:
        unit = X_AXES[x_name][0]
        entry = reading.table(table, "table", where="human")
        reading.check_keys(entry, ("from", "to", "n"), "human.table")
        span = _span(entry, "human.table", unit)
    model = reading.text(table, "model", "human")
    csf(model)
    return HumanReference(
        model=model,
        inputs=given,
        contrast=reading.choice(table, "contrast", "human", ("peak", "rms"), "peak"),
        table=span,
    )


def _direction(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 3 and all(reading.is_number(v) for v in value):
        return tuple(float(v) for v in value)
    raise InputError(f"human.direction is {value!r}; give a name or three numbers (L, M, S)")


def _score(table: Mapping[str, Any], unit: str, probe: str) -> ScorePoints:
    if probe == "matching":
        reading.check_keys(table, ("measure", "method"), "score")
        return ScorePoints(
            multiplier=(),
            measure=reading.choice(table, "measure", "score", SCORED_MEASURES, "angular"),
            method=reading.choice(table, "method", "score", ("crossing", "bracket"), "crossing"),
        )
    reading.check_keys(table, ("multiplier", "multiplier_of", "above", "below", "measure"), "score")
    if "multiplier" not in table:
        raise InputError('[score] has no multiplier; give for example { from = 0.5, to = 2, n = 10, scale = "log" }')
    return ScorePoints(
        multiplier=reading.levels(table["multiplier"], "score.multiplier", "a factor"),
        multiplier_of=reading.choice(table, "multiplier_of", "score", ("threshold", "sensitivity"), "threshold"),
        above=reading.positive(table, "above", "score", unit) if "above" in table else None,
        below=reading.positive(table, "below", "score", unit) if "below" in table else None,
        measure=reading.choice(table, "measure", "score", SCORED_MEASURES, "angular"),
    )


def _span(table: Mapping[str, Any], where: str, unit: str) -> tuple[float, float, int]:
    low, high = (reading.positive(table, key, where, unit) for key in ("from", "to"))
    n = table.get("n")
    if not isinstance(n, int) or isinstance(n, bool) or not 2 <= n <= 10_000:
        raise InputError(f"{where}.n is {n!r}; give a whole number from 2 to 10000")
    if not low < high:
        raise InputError(f"{where} goes from {low:g} to {high:g}; 'to' must be larger than 'from'")
    return low, high, n
