"""How far a corrupted photograph is from its original: for a vision encoder, a profile without
questions; for the eye.

Photographs are cropped to the observer's proportions and resized to its input after they were
corrupted, as a camera and a model's own processor would do it; both steps are recorded. S_ac is
that of the contrast experiments, so that a corruption can be read as so much contrast.

An experiment's page has ``probe = "corruption_profile"``, ``items`` (a folder of photographs, sRGB
with 8 bits), and in ``[options]`` the ``corruptions`` (all 33 by default), the ``strengths`` (low,
mid and high) and a ``seed`` (0).

R-Bench calls a low strength just noticeable and publishes no parameter. Here ColorVideoVDP (Mantiuk
et al. 2024) says how much worse the corrupted image looks on a display, in just-objectionable
differences (JOD): 10 is no difference, and at one below it three of four people prefer the
original. It gives strengths a meaning.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import MEASURES
from psyprobe.analysis.intervals import student_quantile
from psyprobe.analysis.measures import measures_of, split_measures
from psyprobe.analysis.score import OBSERVER, PIXELS, Metric, Row
from psyprobe.corruption.apply import STEPS, STRENGTHS, corrupt, dimension_of, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import file_digest, images_in
from psyprobe.files.output import digest
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.observers.planes import ImagePlanes
from psyprobe.plotting.axes import COLOURS, panels_in
from psyprobe.plotting.figure_data import Part
from psyprobe.probes.feature_distances import features, json_lists, respond
from psyprobe.probes.pair_batches import seconds_an_image
from psyprobe.running.protocol import Answered, Batch, Question, RunRecord
from psyprobe.running.schedule import ExperimentSchedule, run_attributes
from psyprobe.running.store import Store
from psyprobe.running.task import StimulusAxis, Task
from psyprobe.tasks.item_schedule import TaskPlan, items_of, options_of
from psyprobe.tasks.items import read_planned
from psyprobe.tasks.parts import by_parts, corruption_gallery
from psyprobe.tasks.r_bench.figures import coloured_cells, starred
from psyprobe.tasks.tables import TaskScore, by_observer

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from psyprobe.experiment import Experiment
    from psyprobe.observers import DifferenceObserver, FeatureObserver

ABILITIES = ("features",)
SECTIONS = ("items",)
#: Corrupting, resizing or measuring differently makes another question of the same image.
_VERSION = "corruption profile 2"
#: Images shown at once, whatever their size.
_BATCH = 33
#: Side at which an observer that takes any size looks, px.
_ANY_SIZE = 224
#: No difference, in JOD.
SAME = 10.0
#: A standard dynamic range monitor.
_DISPLAY = Display(peak=200.0, black=0.2)
#: Spans over more than this are searched on a logarithmic scale.
_WIDE = 8.0


@dataclass(frozen=True)
class CorruptedPhotograph:
    """One photograph, and the corruptions of it that a batch holds."""

    path: str
    sha256: str
    #: Dimension and strength of each.
    cells: tuple[tuple[str, str], ...]
    #: What identifies each as it is shown.
    shown: tuple[str, ...]
    seed: int
    #: Height and width of what an observer sees, px.
    size: tuple[int, int]


class ProfileSchedule(ExperimentSchedule):
    """One run of a profile: a single round, in batches of one photograph each.

    Raises
    ------
    UnknownNameError
        There is no such corruption or strength.
    """

    def __init__(self, experiment: Experiment, observer: FeatureObserver) -> None:
        self.baseline: FeatureObserver = load_observer("pixels")
        super().__init__(experiment, observer, self.baseline)
        defaults = {"corruptions": list(dimensions()), "strengths": list(STRENGTHS), "seed": 0}
        self.options = options_of(experiment, defaults)
        cells = tuple(itertools.product(self.options["corruptions"], self.options["strengths"]))
        for name, strength in cells:
            dimension_of(name).level(strength)
        self._size = observer.card.input_size or (_ANY_SIZE, _ANY_SIZE)
        self._photographs = images_in(items_of(experiment))
        self._left = []
        seed = self.options["seed"]
        shape = list(self._size)
        for path in self._photographs:
            sha256 = file_digest(path)
            shown = [
                digest([sha256, path.name, *cell, seed, shape, "centre crop, bicubic"])
                for cell in cells
            ]
            for i in range(0, len(cells), _BATCH):
                part = slice(i, i + _BATCH)
                self._left.append(
                    CorruptedPhotograph(
                        str(path), sha256, cells[part], tuple(shown[part]), seed, self._size
                    )
                )
        self._shown = [each for work in self._left for each in work.shown]

    def layout(self) -> dict[str, Any]:
        """Photographs, corruptions and strengths, and what was shown."""
        return {
            **self.options,
            "version": _VERSION,
            "photographs": [path.name for path in self._photographs],
            "shown": self._shown,
            "baseline": self.baseline.card.digest,
            "measures": list(MEASURES),
            "size": list(self._size),
        }

    def next(self) -> list[Batch]:
        """All batches at once, then none."""
        batches = []
        for work in self._left:
            questions = tuple(
                question for name in self.observers for question in _questions(work.shown, name)
            )
            # Rounding depends on which images share a batch.
            batches.append(Batch(questions, work, atomic=True))
        self._left = []
        return batches

    def cost(self, store: Store, *, timed: bool) -> TaskPlan:
        """What is left to show."""
        left = len(
            store.missing(
                question.key for question in _questions(self._shown, self.observer.card.digest)
            )
        )
        photographs = len(self._photographs)
        each = seconds_an_image(self.observer, self._size, 0.0, _BATCH) if left else 0.0
        return TaskPlan(
            experiment=self.experiment.name,
            observer=self.observer.card.name,
            questions=len(self._shown),
            answered=len(self._shown) - left,
            images=len(self._shown) + photographs,
            seconds=each * (left + photographs),
        )


def _questions(shown: Sequence[str], observer: str) -> list[Question]:
    asked = digest({"measures": list(MEASURES)})
    return [Question(each, asked, observer, _VERSION) for each in shown]


plan = ProfileSchedule


def answer(
    observers: Mapping[str, FeatureObserver], batches: Iterable[Batch]
) -> Iterator[Answered]:
    """Show photographs and their corrupted versions; an answer holds "values": of each layer one
    value a measure.
    """
    for batch in batches:
        work: CorruptedPhotograph = batch.work
        photograph = read_planned(work.path, work.sha256)
        original = ImagePlanes(_fed([photograph], work.size))
        corrupted = partial(corrupt, photograph, seed=work.seed, image_id=Path(work.path).name)
        versions = [corrupted(name, strength) for name, strength in work.cells]
        shown = ImagePlanes(_fed(versions, work.size))
        for name, who in observers.items():
            asked = [question for question in batch.questions if question.observer == name]
            if not asked:
                continue
            values = respond(
                who, shown, features(who, original), [0] * len(shown), MEASURES, ppd=0.0
            )
            for question, value, cell in zip(asked, json_lists(values), work.cells, strict=True):
                corruption, strength = cell
                levels = {"corruption": corruption, "strength": strength}
                yield Answered(question, {"values": value}, levels=levels)


def task(record: RunRecord) -> Task:
    """As in `Probe`: a response over the strength of a corruption."""
    return Task(axis=StimulusAxis("strength", "1", "Strength"))


def result(record: RunRecord, store: Store) -> xarray.Dataset:
    """``response`` (layer, measure, photograph, dimension, strength) with the measures of a
    detection run.

    The dimensions' steps and groups are coordinates; ``baseline`` is the response of the pixels
    themselves.
    """
    import xarray

    layout = record.layout
    card = record.observer_card
    known = [dimensions()[name] for name in layout["corruptions"]]
    shape = tuple(len(layout[name]) for name in ("photographs", "corruptions", "strengths"))

    def read(observer: str) -> FloatArray:
        keys = [question.key for question in _questions(layout["shown"], observer)]
        found = store.require_answers(keys)
        values = np.array([found[key]["values"] for key in keys], dtype=np.float64)
        return np.moveaxis(values.reshape(*shape, *values.shape[1:]), (3, 4), (0, 1))

    axes = ("measure", "photograph", "dimension", "strength")
    result = xarray.Dataset(
        {
            "response": (
                ("layer", *axes),
                read(record.observer_digest),
                {"units": "1", "long_name": "Response"},
            ),
            "pixels_response": (
                axes,
                read(layout["baseline"])[0],
                {"units": "1", "long_name": "Response of the pixels"},
            ),
        },
        coords={
            "layer": list(card["features"]),
            "measure": layout["measures"],
            "photograph": layout["photographs"],
            "dimension": layout["corruptions"],
            "strength": layout["strengths"],
            "step": ("dimension", [each.step for each in known]),
            "group": ("dimension", [each.group for each in known]),
            "simulated": ("dimension", [bool(each.captured) for each in known]),
        },
        attrs={
            **run_attributes(record, size=layout["size"]),
            "seed": layout["seed"],
            "resize": "centre crop to the observer's proportions, bicubic with antialiasing, "
            "after corruption",
        },
    )
    return split_measures(result)


def score(
    result: xarray.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    confidence: float = 0.95,
) -> tuple[ProfileScore, ...]:
    """The mean response at each strength, of every layer or of one."""
    known = {"measure": measures_of(result), "layer": result["layer"].values.tolist()}
    for name, value in (("measure", measure), ("layer", layer)):
        if value is not None and value not in known[name]:
            raise unknown_name(name, value, known[name])
    layers = known["layer"] if layer is None else [layer]
    return tuple(
        ProfileScore(result.attrs, confidence, one, measure or "angular", result) for one in layers
    )


def plot(
    results: Sequence[xarray.Dataset],
    ax: Axes | None = None,
    *,
    figure: Figure | SubFigure | None = None,
    measure: str | None = None,
    layer: str | None = None,
    **_: Any,
) -> Axes | Figure | SubFigure:
    """A robustness profile as coloured cells, one panel a result; see `plot_profile`."""
    draw = partial(plot_profile, measure=measure or "angular", layer=layer)
    if len(results) == 1 and figure is None:
        return draw(results[0], ax)
    drawn: Figure | SubFigure
    drawn, panels = panels_in(figure, len(results), len(results), (4.2, 8.0), (0.0, 0.0))
    for result, panel in zip(results, panels, strict=True):
        draw(result, panel)
    return drawn


def report(results: Sequence[xarray.Dataset]) -> list[Part]:
    """The response to each corruption at each strength, and what the corruptions look like."""
    rows: dict[str, dict[str, pd.DataFrame]] = {}
    for name, result in by_observer(results).items():
        for layer in map(str, result["layer"].values):
            found = result["response_angular"].sel(layer=layer).mean("photograph")
            called = name + f" / {layer}" * (len(result["layer"]) > 1)
            for strength in map(str, found["strength"].values):
                values = found.sel(strength=strength).values
                table = pd.DataFrame(
                    {"value": values, "low": np.nan, "high": np.nan}, found["dimension"].values
                )
                rows.setdefault(f"angular, {strength}", {})[called] = table
    first = results[0]
    figure = by_parts("Response to each corruption", "Mean angular distance S_ac", rows)
    return [figure, *corruption_gallery([str(name) for name in first["dimension"].values])]


@dataclass(frozen=True)
class ProfileScore(TaskScore):
    """How far corruptions take one layer of an encoder."""

    result: xarray.Dataset

    def rows(self) -> Sequence[Row]:
        """The observer, and the pixels themselves."""
        responses = self.result[f"response_{self.measure}"].sel(layer=self.layer)
        return (
            self._row(OBSERVER, responses),
            self._row(PIXELS, self.result[f"pixels_response_{self.measure}"]),
        )

    def notes(self) -> Sequence[str]:
        """What the headings mean."""
        return (
            f"Mean {self.measure} response over corruptions and photographs, at each strength "
            "and over all, with "
            "{confidence} % intervals (Student's t) over photographs, where there are several.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Who looked at what, and the records of all rows."""
        told = {
            name: getattr(self, name)
            for name in ("observer", "experiment", "layer", "measure", "confidence")
        }
        return told | {"rows": [dict(row.record) for row in self.rows()]}

    def _row(self, responder: str, responses: xarray.DataArray) -> Row:
        by_strength = responses.mean("dimension")
        columns = {
            str(name): by_strength.sel(strength=name).values
            for name in by_strength["strength"].values
        }
        columns["overall"] = by_strength.mean("strength").values
        values: dict[Metric, tuple[float, float | None, float | None]] = {}
        for name, each in columns.items():
            title = f"Response to corruption, {name} ({self.measure})"
            # A single photograph has no interval, and photographs that are all alike tell none.
            ends: tuple[float | None, float | None] = (None, None)
            if np.ptp(each) > 0:
                reach = (
                    student_quantile(len(each), self.confidence)
                    * each.std(ddof=1)
                    / np.sqrt(len(each))
                )
                ends = (float(each.mean() - reach), float(each.mean() + reach))
            values[Metric(f"{self.measure}_{name}", title, False, 4, name)] = (
                float(each.mean()),
                *ends,
            )
        return self.row("Robustness to corruption", responder, values)


def plot_profile(
    profile: xarray.Dataset,
    ax: Axes | None = None,
    *,
    measure: str = "angular",
    layer: str | None = None,
) -> Axes:
    """Draw a robustness profile as coloured cells: dimensions downwards, strengths to the right.

    Parameters
    ----------
    profile : xarray.Dataset
        Of a run.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    measure : str
        Which response.
    layer : str, optional
        Which layer; by default the last.

    Returns
    -------
    matplotlib.axes.Axes
        Means over photographs; a star marks a dimension that is simulated where R-Bench
        photographed it.
    """
    found = (
        profile[f"response_{measure}"]
        .sel(layer=layer or str(profile["layer"].values[-1]))
        .mean("photograph")
    )
    ax = coloured_cells(
        found.values,
        [[f"{value:.3f}" for value in row] for row in found.values],
        dict(zip(map(str, profile["dimension"].values), profile["simulated"].values, strict=True)),
        [str(each) for each in profile["strength"].values],
        colours="YlGnBu",
        limit=None,
        label="Angular distance $S_{ac}$" if measure == "angular" else measure,
        ax=ax,
    )
    title = profile.attrs["observer"] + (
        " [RANDOM WEIGHTS]" if profile.attrs["random_weights"] else ""
    )
    ax.set_title(title, fontsize=9)
    ax.set_xlabel("Strength" + (" (* simulated)" if profile["simulated"].values.any() else ""))
    return ax


def _fed(images: Any, size: tuple[int, int]) -> FloatArray:
    """Drive as an encoder gets it, shape (n, H, W, 3), float32 in [0, 1]."""
    from PIL import Image, ImageOps

    fitted = [
        ImageOps.fit(Image.fromarray(image), size[::-1], Image.Resampling.BICUBIC)
        for image in images
    ]
    return np.stack([np.asarray(each) for each in fitted]).astype(np.float32) / np.float32(255)


@dataclass(frozen=True)
class Visibility:
    """A parameter and how visible it is."""

    #: The dimension.
    name: str
    #: In the unit of the dimension.
    parameter: float
    #: JOD below 10 at this parameter; the mean over images.
    loss: float
    #: Whether the loss that was asked for is within the span that was searched; if not, the
    #: parameter is its end.
    reached: bool


def visible_loss(
    image: Any,
    name: str,
    strength: str | float | Sequence[str | float],
    *,
    seed: int = 0,
    display: Display = _DISPLAY,
    ppd: float = 60.0,
    metric: DifferenceObserver | None = None,
) -> Any:
    """How much worse a corrupted image looks, in JOD.

    Parameters
    ----------
    image : array_like, shape (H, W, 3)
        sRGB: uint8, or float from 0 to 1.
    name : str
        A dimension.
    strength : str, float or sequence of these
        As for `corrupt`; several are passed through the metric together.
    seed : int
        Of the corruption.
    display : Display
        What shows both images.
    ppd : float
        Pixels per degree at which they are seen.
    metric : DifferenceObserver, optional
        By default ColorVideoVDP.

    Returns
    -------
    float or ndarray
        JOD below 10; 0 is no difference.
    """
    several = [strength] if isinstance(strength, str | int | float) else list(strength)
    judge = metric or load_observer("cvvdp")
    original = np.asarray(image)
    shown = np.stack([_drive(corrupt(original, name, each, seed)) for each in several])
    light = display.decode(shown)
    reference = np.broadcast_to(display.decode(_drive(original)[None]), light.shape)
    loss = SAME * np.asarray(judge.difference(light, reference, ppd=ppd))
    return float(loss[0]) if isinstance(strength, str | int | float) else loss


def parameter_for(
    images: Sequence[Any],
    name: str,
    loss: float = 1.0,
    *,
    seed: int = 0,
    display: Display = _DISPLAY,
    ppd: float = 60.0,
    metric: DifferenceObserver | None = None,
    tolerance: float = 0.05,
    most: int = 10,
) -> Visibility:
    """The parameter of a dimension at which images look so much worse.

    Parameters
    ----------
    images : sequence of array_like, each (H, W, 3)
        One for a parameter of its own, or a set for one in common; sRGB.
    name : str
        A dimension.
    loss : float
        Wanted loss, JOD; 1 is about one just-objectionable difference.
    seed, display, ppd, metric
        As for `visible_loss`.
    tolerance : float
        How near the loss shall come, JOD.
    most : int
        Passes at most.

    Returns
    -------
    Visibility
        By bisection between no effect and an effect beyond the high strength, with the same chance
        in every pass.

    Raises
    ------
    UnknownNameError
        There is no such dimension.
    InputError
        The loss is not above 0, or there is no image.
    """
    dimension = dimension_of(name)
    if not (loss > 0 and math.isfinite(loss)):
        raise InputError(f"a loss of {loss:g} JOD is not above 0; usual are 1 (low) to 5 (high)")
    if not images:
        raise InputError("there is no image to look at; give at least one")
    judge = metric or load_observer("cvvdp")

    def at(share: float) -> tuple[float, float]:
        """The parameter between no effect (0) and the strongest searched (1), and its loss."""
        mild, severe = dimension.span
        parameter = float(mild + (severe - mild) * share)
        if min(mild, severe) > 0 and max(mild, severe) / min(mild, severe) > _WIDE:
            parameter = float(mild * (severe / mild) ** share)
        if dimension.whole:
            parameter = float(round(parameter))
        seen = partial(visible_loss, seed=seed, display=display, ppd=ppd, metric=judge)
        return parameter, float(np.mean([seen(image, name, parameter) for image in images]))

    parameter, found = at(1.0)
    if found < loss - tolerance:
        return Visibility(name, parameter, found, reached=False)
    low = 0.0
    high = 1.0
    for _ in range(most):
        if abs(found - loss) <= tolerance:
            break
        middle = (low + high) / 2
        parameter, found = at(middle)
        low, high = (middle, high) if found < loss else (low, middle)
    return Visibility(name, parameter, found, reached=True)


def _drive(image: Any) -> Any:
    values = np.asarray(image)
    return (values / np.float32(255) if values.dtype == np.uint8 else values).astype(np.float32)


def plot_visibility(losses: dict[str, Sequence[float]]) -> list[Axes]:
    """Draw quality against strength, one panel a step on the way of an image.

    Parameters
    ----------
    losses : dict of str to sequence of float
        JOD below 10 at low, mid and high strength, by dimension.
    """
    _, axes = panels_in(None, len(STEPS), 4, (2.625, 3.3))
    for ax in axes[1:]:
        ax.sharex(axes[0])
        ax.sharey(axes[0])
    for ax, (step, title) in zip(axes, STEPS.items(), strict=True):
        members = [dimensions()[name] for name in losses if dimensions()[name].step == step]
        for each, colour, mark in zip(members, COLOURS, "osD^vX", strict=False):
            quality = SAME - np.asarray(losses[each.name])
            named = starred(each.title, each.captured)
            ax.plot(
                range(3),
                quality,
                marker=mark,
                color=colour,
                markersize=4,
                linewidth=1.2,
                label=named,
            )
        ax.axhline(SAME - 1, color="0.6", linewidth=0.8, linestyle=":")
        ax.set_title(title, fontsize=9, loc="left")
        ax.set_xticks(range(3), STRENGTHS)
        # Under the panel: lines go through every corner of it.
        ax.legend(
            fontsize=6.5, frameon=False, loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=2.8
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelbottom=True, labelleft=ax in axes[::4])
    for ax in axes[::4]:
        ax.set_ylabel("Quality (JOD)")
    axes[0].set_ylim(top=10.2)
    return axes
