"""Measure how far a corrupted photograph is from its original for a vision encoder.

Photographs are cropped to the observer's proportions and resized to its input after they were
corrupted, as a camera and a model's own processor would do it; both steps are recorded. S_ac is
that of the contrast experiments, so that a corruption can be read as so much contrast.

An experiment's page has ``probe = "corruption_profile"``, ``items`` (a folder of photographs, sRGB
with 8 bits), and in ``[options]`` the ``corruptions`` (all 33 by default), the ``strengths`` (low,
mid and high) and a ``seed`` (0).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.distance import MEASURES
from psyprobe.analysis.measures import measures_of, split_measures
from psyprobe.analysis.score import OBSERVER, PIXELS, Metric, Row
from psyprobe.corruption.apply import STRENGTHS, corrupt, dimension_of, dimensions
from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import unknown_name
from psyprobe.files.images import file_digest, images_in
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import digest
from psyprobe.observers import load_observer
from psyprobe.observers.planes import ImagePlanes
from psyprobe.plotting.axes import BLANK, new_axes, panels_in
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
from psyprobe.tasks.r_bench.figures import starred
from psyprobe.tasks.tables import TaskScore, by_observer

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from psyprobe.experiment import Experiment
    from psyprobe.observers import FeatureObserver

ABILITIES = ("features",)
SECTIONS = ("items",)
#: Changes when corrupting, resizing or measuring changes, which asks anew about the same image.
_VERSION = "corruption profile 2"
#: Images of one batch, whatever their size.
_BATCH = 33
#: Side of the input of an observer that takes any size, px.
_ANY_SIZE = 224


@dataclass(frozen=True)
class CorruptedPhotograph:
    """One photograph, and the corruptions of it that a batch holds."""

    path: str
    sha256: str
    #: Dimension and strength of each corrupted image.
    cells: tuple[tuple[str, str], ...]
    #: Digest of each corrupted image as it is shown.
    stimuli: tuple[str, ...]
    seed: int
    #: Height and width of the observer's input, px.
    size: tuple[int, int]


class ProfileSchedule(ExperimentSchedule):
    """Schedule of a profile: a single round, in batches of one photograph each.

    Raises
    ------
    UnknownNameError
        There is no such corruption or strength.
    """

    def __init__(self, experiment: Experiment, observer: FeatureObserver) -> None:
        self.baseline = cast("FeatureObserver", load_observer("pixels"))
        super().__init__(experiment, observer, self.baseline)
        defaults = {
            "corruptions": list(dimensions()),
            "strengths": list(STRENGTHS),
            "seed": 0,
        }
        self.options = options_of(experiment, defaults)
        cells = tuple(
            itertools.product(self.options["corruptions"], self.options["strengths"])
        )
        for name, strength in cells:
            dimension_of(name).level(strength)
        self._size = observer.card.input_size or (_ANY_SIZE, _ANY_SIZE)
        self._photographs = images_in(items_of(experiment))
        self._batches = []
        self._stimuli: list[str] = []
        seed = self.options["seed"]
        for path in self._photographs:
            sha256 = file_digest(path)
            drawing = [seed, list(self._size), "centre crop, bicubic"]
            stimuli = tuple(
                digest([sha256, path.name, *cell, *drawing]) for cell in cells
            )
            self._stimuli += stimuli
            for start in range(0, len(cells), _BATCH):
                part = slice(start, start + _BATCH)
                self._batches.append(
                    CorruptedPhotograph(
                        str(path), sha256, cells[part], stimuli[part], seed, self._size
                    )
                )

    def layout(self) -> JsonObject:
        """Describe the photographs, corruptions and strengths, and what is shown of them."""
        return {
            **self.options,
            "version": _VERSION,
            "photographs": [path.name for path in self._photographs],
            "shown": self._stimuli,
            "baseline": self.baseline.card.digest,
            "measures": list(MEASURES),
            "size": list(self._size),
        }

    def next(self) -> list[Batch]:
        """Return all batches at the first call, then none."""
        batches = []
        for work in self._batches:
            questions = [
                question
                for name in self.observers
                for question in _build_questions(work.stimuli, name)
            ]
            # Rounding depends on which images share a batch.
            batches.append(Batch(tuple(questions), work, atomic=True))
        self._batches = []
        return batches

    def cost(self, store: Store, *, timed: bool) -> TaskPlan:
        """Estimate what is left to show, and how long it takes."""
        questions = _build_questions(self._stimuli, self.observer.card.digest)
        missing = len(store.missing(question.key for question in questions))
        photographs = len(self._photographs)
        seconds = (
            seconds_an_image(self.observer, self._size, 0.0, _BATCH) if missing else 0.0
        )
        return TaskPlan(
            experiment=self.experiment.name,
            observer=self.observer.card.name,
            questions=len(questions),
            answered=len(questions) - missing,
            images=len(questions) + photographs,
            seconds=seconds * (missing + photographs),
        )


def _build_questions(stimuli: Sequence[str], observer: str) -> list[Question]:
    """Build the questions to store about stimuli given by digest."""
    request = digest({"measures": list(MEASURES)})
    return [Question(stimulus, request, observer, _VERSION) for stimulus in stimuli]


plan = ProfileSchedule


def answer(
    observers: Mapping[str, FeatureObserver], batches: Iterable[Batch]
) -> Iterator[Answered]:
    """Compare photographs with their corrupted versions by observers' features, batch by batch.

    An answer holds "values": of each layer one value a measure.
    """
    for batch in batches:
        work: CorruptedPhotograph = batch.work
        photograph = read_planned(work.path, work.sha256)
        original = ImagePlanes(_encoder_input([photograph], work.size))
        image_id = Path(work.path).name
        versions = [
            corrupt(photograph, name, strength, work.seed, image_id=image_id)
            for name, strength in work.cells
        ]
        corrupted = ImagePlanes(_encoder_input(versions, work.size))
        references = [0] * len(corrupted)
        for name, observer in observers.items():
            questions = [
                question for question in batch.questions if question.observer == name
            ]
            if not questions:
                continue
            original_features = features(observer, original)
            values = respond(
                observer, corrupted, original_features, references, MEASURES, ppd=0.0
            )
            for question, value, cell in zip(
                questions, json_lists(values), work.cells, strict=True
            ):
                corruption, strength = cell
                levels = {"corruption": corruption, "strength": strength}
                yield Answered(question, {"values": value}, levels=levels)


def task(record: RunRecord) -> Task:
    """Return the task of a corruption profile: a response over the strength of corruption."""
    return Task(axis=StimulusAxis("strength", "1", "Strength"))


def result(record: RunRecord, store: Store) -> xarray.Dataset:
    """Build the result of a run from the responses in the store.

    ``response_MEASURE`` has the dimensions layer, photograph, dimension and strength;
    ``pixels_response_MEASURE``, the response of the pixels themselves, has no layer. The
    dimensions' steps and groups are coordinates.
    """
    import xarray

    layout = record.layout
    known_dimensions = [dimensions()[name] for name in layout["corruptions"]]
    shape = tuple(
        len(layout[name]) for name in ("photographs", "corruptions", "strengths")
    )

    def read(observer: str) -> FloatArray:
        keys = [
            question.key for question in _build_questions(layout["shown"], observer)
        ]
        answers = store.require_answers(keys)
        values = np.array([answers[key]["values"] for key in keys], dtype=np.float64)
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
            "layer": list(record.observer_card["features"]),
            "measure": layout["measures"],
            "photograph": layout["photographs"],
            "dimension": layout["corruptions"],
            "strength": layout["strengths"],
            "step": ("dimension", [dimension.step for dimension in known_dimensions]),
            "group": ("dimension", [dimension.group for dimension in known_dimensions]),
            "simulated": (
                "dimension",
                [bool(dimension.captured) for dimension in known_dimensions],
            ),
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
    """Average the response to corruption at each strength, of every layer or of one."""
    layers = result["layer"].values.tolist()
    for kind, name, names in (
        ("measure", measure, measures_of(result)),
        ("layer", layer, layers),
    ):
        if name is not None and name not in names:
            raise unknown_name(kind, name, names)
    return tuple(
        ProfileScore(
            result.attrs, confidence, result, layer=name, measure=measure or "angular"
        )
        for name in (layers if layer is None else [layer])
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
    """Draw robustness profiles: corruptions downwards, strengths to the right.

    Cells are means over photographs, of the last layer if none is named; a star marks a dimension
    that is simulated where R-Bench photographed it.
    """
    measure = measure or "angular"
    if len(results) == 1 and figure is None:
        return _plot_profile(results[0], ax, measure, layer)
    canvas: Figure | SubFigure
    canvas, panels = panels_in(
        figure, len(results), len(results), (4.2, 8.0), (0.0, 0.0)
    )
    for result, panel in zip(results, panels, strict=True):
        _plot_profile(result, panel, measure, layer)
    return canvas


def report(results: Sequence[xarray.Dataset]) -> list[Part]:
    """Build report sections: the response to each corruption, and examples of corruptions."""
    rows: dict[str, dict[str, pd.DataFrame]] = {}
    for name, result in by_observer(results).items():
        means = result["response_angular"].mean("photograph")
        for layer in result["layer"].values:
            label = f"{name} / {layer}" if len(result["layer"]) > 1 else name
            for strength, column in means.sel(layer=layer).to_pandas().items():
                table = column.to_frame("value").assign(low=np.nan, high=np.nan)
                rows.setdefault(f"angular, {strength}", {})[label] = table
    figure = by_parts("Response to each corruption", "Mean angular distance S_ac", rows)
    return [
        figure,
        *corruption_gallery([str(name) for name in results[0]["dimension"].values]),
    ]


@dataclass(frozen=True)
class ProfileScore(TaskScore):
    """How far corruptions take one layer of an encoder."""

    result: xarray.Dataset
    population: ClassVar[str] = "photographs"

    def rows(self) -> Sequence[Row]:
        """Build the table rows of the observer and of the pixels themselves."""
        responses = self.result[f"response_{self.measure}"].sel(layer=self.layer)
        pixels = self.result[f"pixels_response_{self.measure}"]
        return (
            self._strength_row(OBSERVER, responses),
            self._strength_row(PIXELS, pixels),
        )

    def notes(self) -> Sequence[str]:
        """Explain the table's headings in sentences."""
        return (
            f"Mean {self.measure} response over corruptions and photographs, at each strength "
            "and over all, with "
            "{confidence} % intervals (Student's t) over photographs, where there are several.",
        )

    def to_dict(self) -> JsonObject:
        """Return what was measured, and the records of all rows, as JSON values."""
        names = ("observer", "experiment", "layer", "measure", "confidence")
        facts = {name: getattr(self, name) for name in names}
        return facts | {"rows": [dict(row.record) for row in self.rows()]}

    def _strength_row(self, responder: str, responses: xarray.DataArray) -> Row:
        """Build a table row of mean responses by corruption strength, with intervals."""
        by_strength = responses.mean("dimension")
        columns = dict(
            zip(by_strength["strength"].values, by_strength.values.T, strict=True)
        )
        columns["overall"] = by_strength.mean("strength").values
        photographs = tuple(map(str, responses["photograph"].values))
        values: dict[Metric, tuple[float, float | None, float | None]] = {}
        samples = {}
        for name, column in columns.items():
            title = f"Response to corruption, {name} ({self.measure})"
            metric = Metric(f"{self.measure}_{name}", title, False, 4, name)
            sample = Sample("photographs", photographs, tuple(column.tolist()))
            # A single photograph has no interval, and photographs that are all alike tell none.
            ends = sample.interval(self.confidence) or (None, None)
            values[metric] = (sample.mean(), *ends)
            samples[metric] = sample
        return self.row("Robustness to corruption", responder, values, samples=samples)


def _plot_profile(
    profile: xarray.Dataset, ax: Axes | None, measure: str, layer: str | None
) -> Axes:
    """Draw mean responses over photographs as coloured cells with numbers.

    Lines part the steps at which corruption arises.
    """
    import matplotlib as mpl

    responses = profile[f"response_{measure}"]
    selected = responses.sel(layer=layer or str(profile["layer"].values[-1]))
    means = np.ma.masked_invalid(selected.mean("photograph").values)
    simulated = profile["simulated"].values
    ax = ax or new_axes(4.6, 1.3 + 0.21 * len(means))
    colormap = mpl.colormaps["YlGnBu"].with_extremes(bad=BLANK)
    image = ax.imshow(
        means, cmap=colormap, vmin=0, aspect="auto", interpolation="nearest"
    )
    dark = luma(image.to_rgba(means)[..., :3]) < 0.5
    for (i, j), value in np.ndenumerate(means.data):
        if np.isfinite(value):
            colour = "white" if dark[i, j] else "black"
            text = f"{value:.3f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=6, color=colour)
    labels = [
        starred(dimensions()[name].title, is_simulated)
        for name, is_simulated in zip(
            profile["dimension"].values, simulated, strict=True
        )
    ]
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_xticks(range(means.shape[1]), profile["strength"].values)
    ax.tick_params(length=0)
    for i, (above, below) in enumerate(itertools.pairwise(profile["step"].values)):
        if above != below:
            ax.axhline(i + 0.5, color="black", linewidth=0.8)
    label = "Angular distance $S_{ac}$" if measure == "angular" else measure
    ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02).set_label(label)
    random_weights = " [RANDOM WEIGHTS]" if profile.attrs["random_weights"] else ""
    ax.set_title(profile.attrs["observer"] + random_weights, fontsize=9)
    ax.set_xlabel("Strength" + (" (* simulated)" if simulated.any() else ""))
    return ax


def _encoder_input(images: Any, size: tuple[int, int]) -> FloatArray:
    """Crop and resize images to the drive values that an encoder takes.

    Shape (n, H, W, 3), float32 in [0, 1].
    """
    from PIL import Image, ImageOps

    drives = [
        np.asarray(
            ImageOps.fit(Image.fromarray(image), size[::-1], Image.Resampling.BICUBIC)
        )
        for image in images
    ]
    return np.stack(drives).astype(np.float32) / np.float32(255)
