"""Train the decision stages of an experiment: a question of its own for each value of the level.

A stage is stored as the answer to that question, so it is trained once, wherever the run goes on.
Where another level than contrast is the stimulus axis, its levels look different, and each has a
stage of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest
from psyprobe.observers.decisions.recipe import Decision, Recipe
from psyprobe.observers.decisions.stages import Stage
from psyprobe.observers.decisions.training import (
    TrainedStage,
    describe_training,
    train_stage,
)
from psyprobe.observers.protocol import TrainableObserver
from psyprobe.probes.words.delivery import Scene, deliver, derived_seed
from psyprobe.running.protocol import Answered, Batch, Question
from psyprobe.running.store import Store
from psyprobe.stimulus.specification import Specification

if TYPE_CHECKING:
    from psyprobe.running.task import Task

#: Value of the level, and level on the stimulus axis where each has a stage of its own.
_Condition: TypeAlias = tuple[float, float | None]
#: Images that are drawn and encoded together in training.
_BATCH = 16


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
        return train_stage(
            self.recipe,
            lambda contrast, fields: self._rows(observer, contrast, fields),
            self.contrasts,
            yes_no=self.yes_no,
        )

    def _rows(
        self, observer: TrainableObserver, contrast: float, fields: Sequence[int]
    ) -> FloatArray:
        """Compute features of each signal at a contrast in random fields; of none at contrast 0."""
        orders = range(len(self.scene.label_values) or 1) if contrast else [0]
        strength = contrast or self.contrasts[-1]
        classes = []
        for order in orders:
            seeds = [
                derived_seed(self.recipe.seed, "training", field) for field in fields
            ]
            specs = [
                self.scene.stimuli(self.value, strength, seed, order) for seed in seeds
            ]
            shown = [pattern if contrast else blank for pattern, blank in specs]
            classes.append(self._features(observer, shown, seeds))
        return np.stack(classes)

    def _features(
        self,
        observer: TrainableObserver,
        specs: Sequence[Specification],
        seeds: Sequence[int],
    ) -> FloatArray:
        """Draw and deliver stimuli as in trials, and compute their features in batches."""
        scene = self.scene
        rows = []
        for start in range(0, len(specs), _BATCH):
            part = specs[start : start + _BATCH]
            drives = [np.asarray(scene.display.encode(spec.draw())) for spec in part]
            images = [
                deliver(drive, scene.delivery, seed)
                for drive, seed in zip(drives, seeds[start:], strict=False)
            ]
            rows.append(observer.rows(images, self.recipe, scene.display))
        return np.concatenate(rows)

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
        if scene.spec.is_clip:
            raise InputError(
                f"{experiment.name} shows clips, and decision stages are trained on still images; "
                "show a still stimulus"
            )
        self.recipe = (experiment.decision or Recipe()).changed(observer.recipe_options)
        yes_no = task.scored == "yes"
        if yes_no and self.recipe.stage == "ideal":
            raise InputError(
                f"{experiment.name} asks yes or no, for which stage 'ideal' has no criterion; ask "
                "in two intervals, or take another stage"
            )
        #: Whether each level on the stimulus axis has a stage of its own.
        changes_form = not (scene.scales or scene.reciprocal)
        self._by_level = scene.change is None and changes_form
        ends = [(contrasts[0], contrasts[-1])]
        if self._by_level:
            self.recipe = replace(self.recipe, train="high")
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
        self._display = scene.display
        answers = task.answers
        if task.alternatives == 2 and not prompt.labels:
            answers = (prompt.yes[0], prompt.no[0])[:: prompt.polarity]
        self._answers = answers

    def missing_images(self, store: Store) -> int:
        """Count the training images of stages that a store does not hold."""
        missing = store.missing({question.key for question in self._questions.values()})
        return sum(
            self.recipe.image_count(
                len(work.scene.label_values) or 1, criterion=work.yes_no
            )
            for condition, work in self._work.items()
            if self._questions[condition].key in missing
        )

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
                self._display,
                self._answers,
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
        return self._decisions.get(self._condition(value, contrast), first)

    def key(self, value: float, contrast: float) -> str:
        """Return the key of the question that trains the stage of `decision`."""
        first = next(iter(self._questions.values()))
        return self._questions.get(self._condition(value, contrast), first).key

    def summary(self) -> list[JsonObject]:
        """Describe the trained stages for a result, without their weights."""
        return [
            {
                "value": value if contrast is None else contrast,
                **describe_training(decision.stage),
            }
            for (value, contrast), decision in self._decisions.items()
        ]
