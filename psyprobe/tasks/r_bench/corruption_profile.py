"""How far a corrupted photograph is from its original for a vision encoder: a robustness profile without questions.

Photographs are cropped to the observer's proportions and resized to its input after they were corrupted, as a camera
and a model's own processor would do it; both steps are recorded. S_ac is that of the contrast experiments, so that a
corruption can be read as so much contrast.

An experiment's page has ``probe = "corruption_profile"``, ``items`` (a folder of photographs, sRGB with 8 bits), and in
``[options]`` the ``corruptions`` (all 33 by default), the ``strengths`` (low, mid and high) and a ``seed`` (0).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import MEASURES
from psyprobe.analysis.score import OBSERVER, PIXELS, Metric, Row
from psyprobe.corruption.apply import corrupt
from psyprobe.corruption.dimensions import STRENGTHS, dimensions
from psyprobe.errors import unknown_name
from psyprobe.files.digest import digest
from psyprobe.files.images import file_digest, images_in
from psyprobe.observers import load_observer
from psyprobe.probes.asking import features, respond
from psyprobe.probes.pairs import seconds_an_image
from psyprobe.running.protocol import Answered, Batch, Question, RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.asking import read_planned
from psyprobe.tasks.item_session import TaskPlan, TaskSession, attributes_of, items_of, options_of
from psyprobe.tasks.r_bench.figures import coloured_cells
from psyprobe.tasks.tables import TaskScore

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from psyprobe.experiment import Experiment
    from psyprobe.observers import FeatureObserver

ABILITIES = ("features",)
SECTIONS = ("items",)
#: Corrupting, resizing or measuring differently makes another question of the same image.
_VERSION = "corruption profile 2"
#: Images shown at once, whatever their size.
_BATCH = 33
#: Side at which an observer that takes any size looks, px.
_ANY_SIZE = 224
#: Bootstrap samples of photographs.
_RESAMPLES = 2000


@dataclass(frozen=True)
class Work:
    """A photograph, and the corruptions of it that a batch holds."""

    path: str
    sha256: str
    #: Dimension and strength of each.
    cells: tuple[tuple[str, str], ...]
    seed: int
    #: Height and width of what an observer sees, px.
    size: tuple[int, int]


class ProfileSession(TaskSession):
    """One run of a profile: a single round, in batches of one photograph each.

    Raises
    ------
    UnknownNameError
        There is no such corruption or strength.
    """

    def __init__(self, experiment: Experiment, observer: FeatureObserver) -> None:
        self.baseline: FeatureObserver = load_observer("pixels")
        super().__init__(experiment, observer, self.baseline)
        self.options = options_of(
            experiment, {"corruptions": list(dimensions()), "strengths": list(STRENGTHS), "seed": 0}
        )
        for kind, name, known in (("corruption", "corruptions", dimensions()), ("strength", "strengths", STRENGTHS)):
            for each in self.options[name]:
                if each not in known:
                    raise unknown_name(kind, each, known)
        self._size = observer.card.input_size or (_ANY_SIZE, _ANY_SIZE)
        self._photographs = [(path, file_digest(path)) for path in images_in(items_of(experiment))]
        self._cells = tuple(itertools.product(self.options["corruptions"], self.options["strengths"]))
        self._shown = [
            digest([sha256, path.name, *cell, self.options["seed"], list(self._size), "centre crop, bicubic"])
            for path, sha256 in self._photographs
            for cell in self._cells
        ]
        self._begun = False

    def layout(self) -> dict[str, Any]:
        """Photographs, corruptions and strengths, and what was shown."""
        return {
            **self.options,
            "version": _VERSION,
            "photographs": [path.name for path, _ in self._photographs],
            "shown": self._shown,
            "baseline": self.baseline.card.digest,
            "measures": list(MEASURES),
            "size": list(self._size),
        }

    def next(self) -> list[Batch]:
        """All batches at once, then none."""
        if self._begun:
            return []
        self._begun = True
        batches, shown = [], iter(self._shown)
        for path, sha256 in self._photographs:
            for start in range(0, len(self._cells), _BATCH):
                cells = self._cells[start : start + _BATCH]
                here = list(itertools.islice(shown, len(cells)))
                questions = tuple(question for name in self.observers for question in _questions(here, name))
                work = Work(str(path), sha256, cells, self.options["seed"], self._size)
                # Rounding depends on which images share a batch.
                batches.append(Batch(questions, work, whole=True))
        return batches

    def cost(self, store: Store, *, timed: bool) -> TaskPlan:
        """What is left to show."""
        left = len(store.missing(question.key for question in _questions(self._shown, self.observer.card.digest)))
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


def plan(experiment: Experiment, observer: FeatureObserver) -> ProfileSession:
    """As in `Probe`."""
    return ProfileSession(experiment, observer)


def answer(observers: Mapping[str, FeatureObserver], batches: Iterable[Batch]) -> Iterator[Answered]:
    """Show photographs and their corrupted versions; an answer holds "values": of each layer one value a measure."""
    for batch in batches:
        work: Work = batch.work
        photograph = read_planned(work.path, work.sha256)
        original = _fed([photograph], work.size)
        changed = (
            corrupt(photograph, name, strength, work.seed, image_id=Path(work.path).name)
            for name, strength in work.cells
        )
        shown = _fed(changed, work.size)
        for name, who in observers.items():
            asked = [question for question in batch.questions if question.observer == name]
            values = respond(who, shown, features(who, original), [0] * len(shown), MEASURES, ppd=0.0)
            for question, value in zip(asked, values.tolist(), strict=True):
                yield Answered(question, {"values": value})


def result(record: RunRecord, store: Store) -> xarray.Dataset:
    """``response`` (layer, measure, photograph, dimension, strength) with the measures of a detection run.

    The dimensions' steps and groups are coordinates; ``baseline`` is the response of the pixels themselves.
    """
    import xarray

    layout, card, known = record.layout, record.observer_card, dimensions()
    sides = ("photographs", "corruptions", "strengths")
    shape = tuple(len(layout[name]) for name in sides)

    def read(observer: str) -> FloatArray:
        keys = [question.key for question in _questions(layout["shown"], observer)]
        found = store.answers_of_all(keys)
        values = np.array([found[key]["values"] for key in keys], dtype=np.float64)
        return np.moveaxis(values.reshape(*shape, *values.shape[1:]), (3, 4), (0, 1))

    units = "angular: angle / pi; cosine: cosine similarity; l1, l2: feature units"
    axes = ("measure", "photograph", "dimension", "strength")
    return xarray.Dataset(
        {
            "response": (("layer", *axes), read(record.observer_digest), {"units": units, "long_name": "Response"}),
            "baseline": (axes, read(layout["baseline"])[0], {"units": units, "long_name": "Response of the pixels"}),
        },
        coords={
            "layer": list(card["features"]),
            "measure": layout["measures"],
            "photograph": layout["photographs"],
            "dimension": layout["corruptions"],
            "strength": layout["strengths"],
            "step": ("dimension", [known[name].step for name in layout["corruptions"]]),
            "group": ("dimension", [known[name].group for name in layout["corruptions"]]),
            "simulated": ("dimension", [int(known[name].captured) for name in layout["corruptions"]]),
        },
        attrs={
            **attributes_of(record),
            "seed": layout["seed"],
            "size": json.dumps(layout["size"]),
            "resize": "centre crop to the observer's proportions, bicubic with antialiasing, after corruption",
        },
    )


def score(
    result: xarray.Dataset, *, measure: str | None = None, layer: str | None = None, confidence: float = 0.95
) -> tuple[ProfileScore, ...]:
    """The mean response at each strength, of every layer or of one."""
    known = {name: result[name].values.tolist() for name in ("measure", "layer")}
    for name, value in (("measure", measure), ("layer", layer)):
        if value is not None and value not in known[name]:
            raise unknown_name(name, value, known[name])
    layers = known["layer"] if layer is None else [layer]
    return tuple(ProfileScore(result.attrs, confidence, one, measure or "angular", result) for one in layers)


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
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(4.2 * len(results), 8.0), layout="constrained")
    for result, panel in zip(results, figure.subplots(1, len(results), squeeze=False)[0], strict=True):
        draw(result, panel)
    return figure


@dataclass(frozen=True)
class ProfileScore(TaskScore):
    """How far corruptions take one layer of an encoder."""

    result: xarray.Dataset

    def rows(self) -> Sequence[Row]:
        """The observer, and the pixels themselves."""
        here = self.result.sel(measure=self.measure)
        return (
            self._row(OBSERVER, here["response"].sel(layer=self.layer)),
            self._row(PIXELS, here["baseline"]),
        )

    def notes(self) -> Sequence[str]:
        """What the headings mean."""
        return (
            f"Mean {self.measure} response over corruptions and photographs, at each strength and over all, with "
            "{confidence} % bootstrap intervals over photographs, where there are several.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Who looked at what, and the records of all rows."""
        told = {"observer": self.observer, "experiment": self.experiment, "layer": self.layer, "measure": self.measure}
        return {**told, "confidence": self.confidence, "rows": [dict(row.record) for row in self.rows()]}

    def _row(self, responder: str, responses: xarray.DataArray) -> Row:
        by_strength = responses.mean("dimension")
        columns = {str(name): by_strength.sel(strength=name).values for name in by_strength["strength"].values}
        columns["overall"] = by_strength.mean("strength").values
        values = {
            Metric(f"{self.measure}_{name}", f"Response to corruption, {name} ({self.measure})", False, 4, name): (
                float(each.mean()),
                *_interval(each, self.confidence),
            )
            for name, each in columns.items()
        }
        return self.row("Robustness to corruption", responder, values)


def _interval(values: FloatArray, confidence: float) -> tuple[float | None, float | None]:
    """Of a mean over photographs; none of a single one."""
    if len(values) < 2:
        return None, None
    draws = np.random.default_rng(0).integers(len(values), size=(_RESAMPLES, len(values)))
    tails = 100 * (1 - confidence) / 2
    low, high = np.percentile(values[draws].mean(axis=1), [tails, 100 - tails])
    return float(low), float(high)


def plot_profile(
    profile: xarray.Dataset, ax: Axes | None = None, *, measure: str = "angular", layer: str | None = None
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
        Means over photographs; a star marks a dimension that is simulated where R-Bench photographed it.
    """
    found = profile["response"].sel(measure=measure, layer=layer or str(profile["layer"].values[-1])).mean("photograph")
    ax = coloured_cells(
        found.values,
        [[f"{value:.3f}" for value in row] for row in found.values],
        dict(zip(map(str, profile["dimension"].values), profile["simulated"].values, strict=True)),
        [str(each) for each in profile["strength"].values],
        colours="YlGnBu",
        limit=None,
        white=found.values > 0.55 * float(found.max()),
        label="Angular distance $S_{ac}$" if measure == "angular" else measure,
        ax=ax,
    )
    title = profile.attrs["observer"] + (" [RANDOM WEIGHTS]" if profile.attrs["random_weights"] else "")
    ax.set_title(title, fontsize=9)
    ax.set_xlabel("Strength" + (" (* simulated)" if profile["simulated"].values.any() else ""))
    return ax


def _fed(images: Any, size: tuple[int, int]) -> FloatArray:
    """Drive as an encoder gets it, shape (n, H, W, 3), float32 in [0, 1]."""
    from PIL import Image

    height, width = size
    shown = []
    for image in images:
        picture = Image.fromarray(image)
        scale = max(width / picture.width, height / picture.height)
        across, down = width / scale, height / scale
        left, top = (picture.width - across) / 2, (picture.height - down) / 2
        box = (left, top, left + across, top + down)
        shown.append(np.asarray(picture.resize((width, height), Image.Resampling.BICUBIC, box=box)))
    return np.stack(shown).astype(np.float32) / np.float32(255)
