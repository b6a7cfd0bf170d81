"""Train the decision stages of an experiment: a question of its own for each value of the level.

A stage is stored as the answer to that question, so it is trained once, wherever the run goes on.
Where another level than contrast is the stimulus axis, its levels look different, and each has a
stage of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest
from psyprobe.observers.decisions.pictures import natural_picture
from psyprobe.observers.decisions.recipe import PILOT_FIELDS, Decision, Recipe
from psyprobe.observers.decisions.stages import Stage
from psyprobe.observers.decisions.training import (
    LARGEST_CUE,
    TrainedStage,
    correct_share,
    describe_training,
    train_stage,
)
from psyprobe.observers.protocol import TrainableObserver
from psyprobe.probes.differences import contrast_kind
from psyprobe.probes.feature_distances import keep_freed_memory
from psyprobe.probes.words.delivery import Scene, deliver, derived_seed
from psyprobe.running.protocol import Answered, Batch, Question
from psyprobe.running.store import Store
from psyprobe.stimulus.specification import Specification, with_levels

if TYPE_CHECKING:
    from psyprobe.running.task import Task

#: Value of the level, and level on the stimulus axis where each has a stage of its own.
_Condition: TypeAlias = tuple[float, float | None]
#: Images that are drawn and encoded together in training.
_BATCH = 16
#: Of each observer, features of images without a signal, which conditions share, by the first
#: field: the images, and the features. Every process computes them in the same batches.
_BLANKS: WeakKeyDictionary[
    TrainableObserver, dict[int, tuple[JsonObject, FloatArray]]
] = WeakKeyDictionary()
#: Bytes up to which they are kept for the next condition.
_SHARED_BYTES = 256 << 20
#: Relative error of light by rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class TrainingQuestion:
    """What a stage is trained on: the images of one value of the level."""

    scene: Scene
    value: float
    recipe: Recipe
    #: Lowest and highest contrast, or difference, of the page.
    contrasts: tuple[float, float]
    #: Whether the stage says yes and no.
    yes_no: bool

    def describe(self) -> JsonObject:
        """Describe all that determines the training images, as JSON values."""
        scene = self.scene
        low, high = self.contrasts
        lowest, blank = scene.stimuli(self.value, low, 0)
        highest, _ = scene.stimuli(self.value, high, 0)
        specs = (lowest, highest, blank)
        trial = scene.plan_trial(self.value, high, 0, 0)
        return {
            **scene.describe(trial),
            "stimuli": [spec.digest for spec in specs],
            "orientations": list(scene.label_values),
            "contrasts": list(self.contrasts),
        }

    def request(self) -> JsonObject:
        """Describe which decision stage is to be trained, as JSON values."""
        return {"training": self.recipe.to_dict(), "yes_no": self.yes_no}

    def put(self, observer: TrainableObserver, question: Question) -> Answered:
        """Train the decision stage, and return it as the answer to the question."""
        answer: JsonObject = {
            **dict.fromkeys(("delivered_contrast", "coherent_gain", "total_contrast")),
            "refused": "",
            "reply": None,
            "stage": self.train(observer).to_dict(),
        }
        contents = (
            (question.stimulus, "training", self.describe()),
            (question.request, "request", self.request()),
        )
        levels = {self.scene.level: self.value}
        return Answered(question, answer, contents, levels=levels)

    def train(self, observer: TrainableObserver) -> TrainedStage:
        """Train the decision stage on the observer's features."""
        if self.recipe.stage == "ideal":
            return self._know_signals()
        high = self.contrasts[-1]
        strongest = np.zeros((0, 0, 0))

        def rows(contrast: float, fields: Sequence[int]) -> FloatArray:
            """Encode images, those of the highest contrast once: further contrasts end there."""
            nonlocal strongest
            if not contrast:
                return self._blank_rows(observer, fields)[None]
            if contrast < high:
                return self._signal_rows(observer, contrast, fields)
            rest = fields[strongest.shape[1] :]
            if rest:
                more = self._signal_rows(observer, contrast, rest)
                parts = [strongest, more] if strongest.size else [more]
                strongest = np.concatenate(parts, axis=1)
            return strongest[:, : len(fields)]

        trained = train_stage(
            self.recipe,
            rows,
            self.contrasts,
            yes_no=self.yes_no,
            picture_rows=lambda fields: self._picture_rows(observer, fields),
        )
        self._refuse_cue(observer, trained.stage)
        return trained

    def _refuse_cue(self, observer: TrainableObserver, stage: Stage) -> None:
        """Refuse a stimulus that is told from none where its own code draws it at contrast 0."""
        scene = self.scene
        if scene.change is not None or scene.axis_parameter != "contrast":
            return
        seeds = [derived_seed(self.recipe.seed, "cue", k) for k in range(PILOT_FIELDS)]
        orders = range(len(scene.label_values) or 1)
        shown = []
        for order in orders:
            pairs = [
                scene.stimuli(self.value, self.contrasts[-1], seed, order)
                for seed in seeds
            ]
            shown.append(
                [with_levels(spec, **scene.axis_level(0.0)) for spec, _ in pairs]
            )
        if len(orders) == 1:
            shown.append([blank for _, blank in pairs])
        lights = np.array([np.asarray(specs[0].draw().pixels) for specs in shown])
        if np.ptp(lights, axis=0).max() <= _ROUNDING * lights.max():
            # The rest is drawn by the same arithmetic, and rounding is no cue in noise.
            return
        drawn = [(spec.draw() for spec in specs) for specs in shown]
        share = correct_share(
            stage, [self.encode(observer, stimuli, seeds) for stimuli in drawn]
        )
        if abs(share - 1 / len(shown)) > LARGEST_CUE:
            raise InputError(
                f"the stimulus of {scene.level} {self.value:g} is told with {share:.2f} right "
                f"at contrast 0, where {1 / len(shown):.2f} is chance: something beside its "
                "contrast gives it away; let its kind draw the reference at contrast 0"
            )

    def _signal_rows(
        self, observer: TrainableObserver, contrast: float, fields: Sequence[int]
    ) -> FloatArray:
        """Compute features of each signal at a contrast in random fields, shape (m, n, D)."""
        seeds = self._field_seeds(fields)
        classes = []
        for order in range(len(self.scene.label_values) or 1):
            shown = [
                self.scene.stimuli(self.value, contrast, seed, order)[0]
                for seed in seeds
            ]
            classes.append(
                self.encode(observer, (spec.draw() for spec in shown), seeds)
            )
        return np.stack(classes)

    def _blank_rows(
        self, observer: TrainableObserver, fields: Sequence[int]
    ) -> FloatArray:
        """Compute features of fields without a signal, (n, D), or take the last condition's."""
        if self.scene.label_values:
            # Signals are told from each other.
            return np.zeros((len(fields), 0))
        first = fields[0]
        # Those of the pilot are the first of all.
        seeds = self._field_seeds(range(first, max(fields[-1] + 1, self.recipe.pairs)))
        blanks = [self.blank(seed) for seed in seeds]
        shown: JsonObject = {
            "feature": self.recipe.feature,
            "stimuli": [spec.digest for spec in blanks],
            "seeds": seeds,
            "delivery": self.scene.delivery,
            "display": self.scene.display.to_dict(),
        }
        stored = _BLANKS.setdefault(observer, {})
        if first in stored and stored[first][0] == shown:
            return stored[first][1][: len(fields)]
        rows = self.encode(observer, (spec.draw() for spec in blanks), seeds)
        if rows.nbytes <= _SHARED_BYTES:
            stored[first] = (shown, rows)
        return rows[: len(fields)]

    def blank(self, seed: int) -> Specification:
        """Build the image without a signal in the noise of a seed."""
        return self.scene.stimuli(self.value, self.contrasts[-1], seed)[1]

    def _field_seeds(self, fields: Sequence[int]) -> list[int]:
        """Derive the seed of the noise of each training field."""
        return [derived_seed(self.recipe.seed, "training", field) for field in fields]

    def _picture_rows(
        self, observer: TrainableObserver, fields: Sequence[int]
    ) -> FloatArray:
        """Compute features of pairs of one picture at two random contrasts of the page's range."""
        lights: tuple[list[FloatArray], list[FloatArray]] = ([], [])
        seeds: tuple[list[int], list[int]] = ([], [])
        for field in fields:
            name = (self.recipe.seed, "picture", field)
            picture = natural_picture(self.scene.spec.shape, derived_seed(*name))
            shares = np.random.default_rng(derived_seed(*name, "contrasts")).random(2)
            low, high = self.contrasts
            for member, share in enumerate(sorted(shares, reverse=True)):
                contrast = low * (high / low) ** share
                seed = derived_seed(*name, member)
                _, blank = self.scene.stimuli(self.value, high, seed)
                light = np.asarray(blank.draw().luminance)
                lights[member].append(light + blank.luminance * contrast * picture)
                seeds[member].append(seed)
        return np.stack([self.encode(observer, lights[i], seeds[i]) for i in range(2)])

    def encode(
        self, observer: TrainableObserver, stimuli: Iterable[Any], seeds: Sequence[int]
    ) -> FloatArray:
        """Deliver stimuli, or light, as in trials, and compute their features in batches."""
        keep_freed_memory()
        scene = self.scene
        if scene.spec.is_clip:
            return self._encode_clips(observer, stimuli, seeds)
        rows = []
        members = zip(stimuli, seeds, strict=True)
        while batch := list(islice(members, _BATCH)):
            drives = [np.asarray(scene.display.encode(light)) for light, _ in batch]
            images = [
                deliver(drive, scene.delivery, seed)
                for drive, (_, seed) in zip(drives, batch, strict=True)
            ]
            rows.append(observer.rows(images, self.recipe, scene.display))
        return np.concatenate(rows)

    def _encode_clips(
        self, observer: TrainableObserver, stimuli: Iterable[Any], seeds: Sequence[int]
    ) -> FloatArray:
        """Deliver clips as in trials, and compute their features one by one."""
        scene = self.scene
        frames = scene.spec.frames
        rows: list[FloatArray] = []
        previous: FloatArray = np.zeros(0)
        for clip, seed in zip(stimuli, seeds, strict=True):
            drive = np.asarray(scene.display.encode(clip))
            frame_seeds = [
                derived_seed(seed, "frame", frame) for frame in range(frames)
            ]
            images = deliver(drive, scene.delivery, frame_seeds)
            # Without noise all fields are the same clip.
            if not np.array_equal(images, previous):
                features = observer.rows(
                    list(images), self.recipe, scene.display, frames, scene.fps
                )
            rows.append(features)
            previous = images
        return np.concatenate(rows)

    @property
    def alike(self) -> bool:
        """Tell whether this is a clip and the same in all fields, without noise of any kind."""
        scene = self.scene
        first, second = (
            scene.stimuli(self.value, self.contrasts[-1], seed)[0].digest
            for seed in range(2)
        )
        dithered = scene.delivery.dither != "none"
        return scene.spec.is_clip and not dithered and first == second

    def _know_signals(self) -> TrainedStage:
        """Build a decision stage from the signals themselves, as templates in light."""
        low, high = self.contrasts
        contrast = float(np.sqrt(low * high))
        orders = range(len(self.scene.label_values) or 1)
        signals = []
        for order in orders:
            pattern, blank = self.scene.stimuli(self.value, contrast, 0, order)
            light, even = (
                np.ravel(np.asarray(spec.draw().luminance)) for spec in (pattern, blank)
            )
            signals.append(light - even)
        weights = np.array(signals)
        background = float(np.asarray(self.scene.spec.value("luminance")))
        offsets = weights.sum(axis=1) * background + np.sum(weights**2, axis=1) / 2
        return TrainedStage(Stage(weights, offsets), None, (contrast,))


class Training:
    """The stages of a run: the questions that train them, and the stages once they are trained."""

    def __init__(
        self,
        experiment: Experiment,
        observer: TrainableObserver,
        scene: Scene,
        task: Task,
        values: Sequence[float],
        contrasts: Sequence[float],
        version: str,
        prompt: Prompt,
    ) -> None:
        self.recipe = (experiment.decision or Recipe()).changed(observer.recipe_options)
        yes_no = task.scored == "yes"
        if yes_no and self.recipe.stage == "ideal":
            raise InputError(
                f"{experiment.name} asks yes or no, for which stage 'ideal' has no criterion; ask "
                "in two intervals, or take another stage"
            )
        changes_form = not (scene.scales or scene.reciprocal)
        if scene.change is None and changes_form:
            self.recipe = replace(self.recipe, train="each")
        else:
            self._check_protocol(experiment, scene, task)
        #: Whether each level on the stimulus axis has a stage of its own.
        self._by_level = self.recipe.train == "each"
        #: Whether known signals, such as letters, are scaled to the contrast of each trial.
        self._follows_contrast = (
            self.recipe.stage == "ideal" and scene.scales and bool(scene.label_values)
        )
        ends = [(contrasts[0], contrasts[-1])]
        if self._by_level:
            ends = [(contrast, contrast) for contrast in contrasts]
        self._questions: dict[_Condition, Question] = {}
        self._work: dict[_Condition, TrainingQuestion] = {}
        for value, (low, high) in product(values, ends):
            if scene.plan_trial(value, high, 0, 0).refused:
                # No trial of this value is shown.
                continue
            work = TrainingQuestion(scene, value, self.recipe, (low, high), yes_no)
            condition = self._condition(value, high)
            self._work[condition] = work
            self._questions[condition] = Question(
                digest(work.describe()),
                digest(work.request()),
                observer.card.digest,
                f"{version} training",
            )
        self._decisions: dict[_Condition, Decision] = {}
        self._scene = scene
        answers = task.answers
        if task.alternatives == 2 and not prompt.labels:
            answers = (prompt.yes[0], prompt.no[0])[:: prompt.polarity]
        self._answers = answers

    def _check_protocol(self, experiment: Experiment, scene: Scene, task: Task) -> None:
        """Refuse a way of training that cannot serve the page."""
        design = "constant" if experiment.asking is None else experiment.asking.design
        if self.recipe.train == "each" and design != "constant":
            raise InputError(
                f"{experiment.name} asks by design {design!r}, and train 'each' tells the stage "
                "the contrast, which that design has yet to find; give asking.design = "
                "'constant', or train 'near'"
            )
        is_detection = scene.scales and scene.change is None and not task.values
        is_grey = contrast_kind(scene.spec) != "cone" and not scene.spec.is_clip
        if self.recipe.train == "natural" and not (is_detection and is_grey):
            raise InputError(
                "train 'natural' learns which of two grey pictures has more contrast, and "
                f"{experiment.name} does not ask for a still grey pattern beside none; take 'near'"
            )

    def missing_images(self, store: Store) -> int:
        """Count the training images of stages that a store does not hold."""
        missing = store.missing({question.key for question in self._questions.values()})
        count = 0
        blank = ""
        for condition, work in self._work.items():
            if self._questions[condition].key not in missing:
                continue
            signals = len(work.scene.label_values)
            count += self.recipe.image_count(signals or 1)
            if not signals and blank != (blank := work.blank(0).digest):
                # Conditions that follow each other share images without a signal.
                count += self.recipe.blank_count(criterion=work.yes_no)
        # Of clips that are alike in all fields, one is encoded.
        is_alike = any(work.alike for work in self._work.values())
        return -(-count // self.recipe.pairs) if is_alike else count

    def time_image(self, observer: TrainableObserver) -> float:
        """Time drawing and encoding a batch of training images, s an image."""
        work = next(iter(self._work.values()))
        count = max(1, _BATCH // work.scene.spec.frames)
        seconds = 0.0
        # The first batch may load a network.
        for _ in range(2):
            start = perf_counter()
            blanks = (work.blank(seed).draw() for seed in range(count))
            work.encode(observer, blanks, range(count))
            seconds = perf_counter() - start
        return seconds / count

    def batches(self) -> list[Batch]:
        """Build the batches of questions that train the decision stages."""
        return [
            Batch((self._questions[condition],), work, preparatory=True)
            for condition, work in self._work.items()
        ]

    def take(self, answers: JsonMapping) -> None:
        """Take the trained decision stages from the answers."""
        self._decisions = {
            condition: Decision(
                self.recipe,
                answers[question.key]["stage"],
                self._scene.display,
                self._answers,
                self._scene.spec.frames,
                self._scene.fps,
            )
            for condition, question in self._questions.items()
        }

    def _condition(self, value: float, contrast: float) -> _Condition:
        """Name what a stage decides on: a value of the level, and perhaps one of the axis."""
        return (value, contrast if self._by_level else None)

    def decision(self, value: float, contrast: float) -> Decision:
        """Return the stage for a value of the level and, where forms change, one of the axis.

        For another value it is that of the first.
        """
        first = next(iter(self._decisions.values()))
        decision = self._decisions.get(self._condition(value, contrast), first)
        if not self._follows_contrast:
            return decision
        (signal_contrast,) = decision.stage["contrasts"]
        return replace(decision, relative_contrast=contrast / signal_contrast)

    def key(self, value: float, contrast: float) -> str:
        """Return the key of the question that trains the stage of `decision`."""
        first = next(iter(self._questions.values()))
        return self._questions.get(self._condition(value, contrast), first).key

    def summary(self) -> list[JsonObject]:
        """Describe the trained stages for a result, without their weights."""
        return [
            {
                "value": value,
                "level": contrast,
                "train": self.recipe.train,
                **describe_training(decision.stage),
            }
            for (value, contrast), decision in self._decisions.items()
        ]
