"""A run in words: rounds of trials, each asked in every order of its images, told to the designs as they are answered.

Trials on one image follow each other, which lets servers and models reuse what they made of the image.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import InputError
from psyprobe.files.digest import digest, plain, software_versions
from psyprobe.human.models import CSF_MODELS
from psyprobe.observers.chat.answering import Answer, Decoding, Inquiry, ask_all
from psyprobe.probes.grid import contrast_kind, remarks_of, sensitivity_at
from psyprobe.probes.presentation import at_native_size
from psyprobe.probes.words.delivery import Delivery
from psyprobe.probes.words.reading import Read, polarity, read_answer
from psyprobe.probes.words.scene import Scene, derived_seed
from psyprobe.probes.words.wording import Trial, Wording, asking_of, level_name
from psyprobe.running.protocol import Answered, Batch, Question, RunRecord
from psyprobe.stimulus.specification import level_of

if TYPE_CHECKING:
    from psyprobe.experiment import Experiment
    from psyprobe.observers.chat.answering import AnswerObserver
    from psyprobe.probes.words.plan import WordsPlan
    from psyprobe.running.store import Store


@dataclass(frozen=True)
class Task:
    """What is asked in every trial: seen or not in one image, or in which of two."""

    #: Of the probe: "yes_no" or "two_interval".
    name: str
    #: Showing or asking differently makes another question of the same trial.
    version: str
    #: Images in a question: 1, or 2 of which one is uniform.
    intervals: int
    #: In which order images are shown; every trial is asked in each.
    orders: tuple[int, ...]


@dataclass(frozen=True)
class Work:
    """The image of a batch, and what is asked about it by the digest that its questions carry."""

    scene: Scene
    #: Arguments of `Scene.shown`.
    trial: tuple[float, float, int, int]
    asked: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class _Entry:
    """One question of a run."""

    trial: Trial
    order: int
    question: Question
    #: Prompt, system text, words and decoding, as JSON can hold them.
    asked: Mapping[str, Any]


class WordsSession:
    """One run of an experiment in words.

    Raises
    ------
    InputError
        The observer cannot be asked so, or something cannot be shown to it.
    """

    def __init__(self, task: Task, experiment: Experiment, observer: AnswerObserver) -> None:
        self.task, self.experiment, self.observer = task, experiment, observer
        self.observers = {observer.card.digest: observer}
        self.level = level_name(experiment)
        self.asking = asking_of(experiment)
        self._check()
        self.scene = self._scene()
        levels = experiment.levels
        self.scene.check(experiment.name, observer.card.name, levels[self.level], levels["contrast"][-1])
        self.people, self.remarks = self._people()
        self._wordings = [Wording(experiment, task.name, i) for i in range(len(self.asking.prompts))]
        self._trials: list[Trial] = []
        self._after_pilot: list[Trial] | None = None
        self._round: dict[tuple[Trial, int], _Entry] = {}
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._log: list[dict[str, Any]] = []

    def record(self, store: Store) -> RunRecord:
        """The run as the store keeps it; its key depends on all that could change a question or its reading."""
        experiment, card = self.experiment, self.observer.card
        parameter = level_of(self.scene.spec, self.level)
        return RunRecord(
            experiment=experiment.name,
            experiment_digest=experiment.digest,
            experiment_toml=experiment.toml,
            observer=card.name,
            observer_digest=card.digest,
            observer_card=card.to_dict(),
            probe=experiment.probe,
            layout={
                "version": self.task.version,
                "levels": [{"name": self.level, "unit": parameter.unit, "label": parameter.label}],
                "prompts": [prompt.to_dict() for prompt in self.asking.prompts],
                "asking": plain(self.asking.model_dump(exclude={"prompts", "suffix"})),
                "delivery": self.scene.delivery.to_dict(),
                "display": digest(experiment.display.to_dict()),
                "size": list(self.scene.spec.shape),
                "ppd": self.scene.spec.ppd,
                **({} if self.people is None else {"human": self.people}),
            },
            software=software_versions(),
        )

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """The display and the card; what is asked and shown is kept with the answers."""
        display, card = self.experiment.display.to_dict(), self.observer.card
        yield digest(display), "display", display
        yield card.digest, "observer", card.to_dict()

    def begin(self, record: RunRecord) -> None:
        """Nothing of an earlier record binds: images are drawn one by one."""

    def next(self) -> list[Batch]:
        """The questions of a round; those that decide which reading counts come first, as a round of their own."""
        if self._after_pilot:
            rest, self._after_pilot = self._after_pilot, None
            return self._batches(rest)
        self._trials = [trial for wording in self._wordings for trial in wording.next()]
        self._round, self._answers = {}, {}
        undecided = {i for i, wording in enumerate(self._wordings) if wording.readout is None}
        pilot = [trial for trial in self._trials if trial.check and trial.prompt in undecided]
        if not pilot:
            return self._batches(self._trials)
        chosen = set(pilot)
        self._after_pilot = [trial for trial in self._trials if trial not in chosen]
        return self._batches(pilot)

    def tell(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Let a pilot decide, and tell every design the answers to a whole round in the order in which it asked."""
        self._answers |= answers
        if self._after_pilot is not None:
            self._decide()
            if self._after_pilot:
                return
            self._after_pilot = None
        if self.asking.design != "constant":
            self._tell_designs()

    def outcome(self) -> dict[str, Any]:
        """The log of all trials, and what the designs themselves have found by prompt."""
        found = {wording.prompt.id: wording.estimate() for wording in self._wordings}
        return {
            "trials": self._log,
            "estimates": {name: estimate for name, estimate in found.items() if estimate is not None},
        }

    def cost(self, store: Store, *, timed: bool) -> WordsPlan:
        """What is left to ask: questions, images, tokens, time, price, and the precision to expect."""
        from psyprobe.probes.words.plan import words_plan

        return words_plan(self, store)

    # -- before anything is asked ------------------------------------------------------------------------------------

    def _check(self) -> None:
        experiment, who = self.experiment, self.observer
        if who.images_at_once is not None and who.images_at_once < self.task.intervals:
            raise InputError(
                f"probe {experiment.probe!r} shows {self.task.intervals} images in a question, and {who.card.name} "
                f"takes {who.images_at_once}; use the probe 'yes_no', or another observer"
            )
        if who.bits is not None and experiment.delivery.bits == "float":
            raise InputError(
                f"{experiment.name} delivers unrounded images, and {who.card.name} takes {who.bits} bits a channel; "
                f"give [delivery] bits = {who.bits}"
            )
        for name, least in ((self.level, 1), ("contrast", 2)):
            values = experiment.levels[name]
            if len(values) < least or (name == "contrast" and not values[0] > 0):
                raise InputError(
                    f"levels.{name} are {list(values)}; give at least "
                    f"{'two levels above 0' if least == 2 else 'one level'}, in ascending order"
                )
        self._check_prompts()

    def _check_prompts(self) -> None:
        """Notice prompts of the other task before they are asked and paid for."""
        one = self.task.intervals == 1
        foreign, wanted = ({"first", "second"}, "yes and no") if one else ({"yes", "no"}, "first and second")
        for prompt in self.asking.prompts:
            if foreign & {*prompt.yes, *prompt.no}:
                raise InputError(
                    f"{self.experiment.name}: prompt {prompt.id!r} is answered by {prompt.yes[0]!r} and "
                    f"{prompt.no[0]!r}, and probe {self.experiment.probe!r} shows {self.task.intervals} "
                    f"image{'' if one else 's'}; give prompts whose answers are {wanted}, such as the set "
                    f"{'base' if one else 'two_image'!r}"
                )

    def _scene(self) -> Scene:
        experiment, sending = self.experiment, self.experiment.delivery
        first = {name: values[0] for name, values in experiment.levels.items()}
        native = experiment.spec(**first)
        drawn = at_native_size(experiment.name, native, self.observer.card) if sending.native else native
        bits = None if sending.bits == "float" else sending.bits
        return Scene(
            spec=drawn,
            level=self.level,
            display=experiment.display,
            delivery=Delivery(bits=bits, dither=sending.dither or ("none" if bits is None else "rpdf")),
            refuse=sending.refuse,
            seed=self.asking.seed,
            intervals=self.task.intervals,
            observer=self.observer.card.digest,
        )

    def _people(self) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
        """What people see at the levels, and where they saw something else; no name where nobody is compared with.

        None where the analysis has a curve of its own: over frequency, that of achromatic noise in the models' own
        terms, and a usual one where the page names nobody.
        """
        experiment = self.experiment
        reference, values = experiment.human, np.array(experiment.levels[self.level])
        native = experiment.spec(**{name: levels[0] for name, levels in experiment.levels.items()})
        grey = self.level == "frequency" and contrast_kind(native) != "cone"
        if grey and (reference is None or (native.kind == "annulus_noise" and reference.name in CSF_MODELS)):
            return None, ()
        if reference is None:
            return {"name": "", "values": [], "sensitivity": []}, ()
        sensitivity = sensitivity_at(reference, native, {self.level: values})
        told = {"name": reference.name, "values": values.tolist(), "sensitivity": sensitivity.tolist()}
        return told, remarks_of(experiment, native)

    # -- asking and hearing ------------------------------------------------------------------------------------------

    def _batches(self, trials: Sequence[Trial]) -> list[Batch]:
        """The questions of trials, image by image."""
        pairs = sorted(
            ((trial, order) for trial in trials for order in self.task.orders),
            key=lambda pair: (derived_seed(self.asking.seed, "order", *pair[0].place), pair[1], pair[0].prompt),
        )
        batches = []
        for (*place, order), members in groupby(pairs, key=lambda pair: (*pair[0].place, pair[1])):
            together = list(members)
            level = together[0][0].level
            trial = (level.value, level.contrast, int(place[-1]), order)
            shown = digest(self.scene.identity(self.scene.shown(*trial)))
            entries = [self._entry(trial, order, shown) for trial, order in together]
            self._round |= {(entry.trial, entry.order): entry for entry in entries}
            self._log += [self._about(entry) for entry in entries]
            asked = {entry.question.asked: entry.asked for entry in entries}
            batches.append(Batch(tuple(entry.question for entry in entries), Work(self.scene, trial, asked)))
        return batches

    def _entry(self, trial: Trial, order: int, shown: str) -> _Entry:
        wording = self._wordings[trial.prompt]
        asked = {
            "prompt": wording.prompt.full,
            "system": self.asking.system,
            "words": list(wording.prompt.words),
            "decoding": dict(wording.decoding(trial)),
        }
        question = Question(shown, digest(asked), self.observer.card.digest, self.task.version)
        return _Entry(trial, order, question, asked)

    def _about(self, entry: _Entry) -> dict[str, Any]:
        trial = entry.trial
        catch = trial.level.catch
        return {
            "key": entry.question.key,
            "prompt": self._wordings[trial.prompt].prompt.id,
            "value": trial.level.value,
            "contrast": trial.level.contrast,
            "repeat": trial.repeat,
            "order": entry.order,
            "image_seed": derived_seed(self.scene.seed, "noise", "catch" if catch else trial.level.value, trial.repeat),
            "text_asked": entry.asked["decoding"]["max_tokens"] > 1,
        }

    def _heard(self, entry: _Entry) -> Read | None:
        answer = self._answers.get(entry.question.key)
        if answer is None or answer["refused"]:
            return None
        return read_answer(Answer.from_dict(answer["reply"]), self._wordings[entry.trial.prompt].prompt)

    def _decide(self) -> None:
        """Let each wording's answers show which reading of them counts."""
        heard: dict[int, list[Read]] = {}
        for entry in self._round.values():
            read = self._heard(entry)
            if read is not None:
                heard.setdefault(entry.trial.prompt, []).append(read)
        for index, reads in heard.items():
            self._wordings[index].hear(reads)

    def _tell_designs(self) -> None:
        for trial in self._trials:
            wording = self._wordings[trial.prompt]
            entries = [self._round[trial, order] for order in self.task.orders]
            heard = [(entry, read) for entry in entries if (read := self._heard(entry)) is not None]
            delivered = self._answers[entries[0].question.key]["delivered_contrast"]
            wording.tell(
                trial,
                [read for _, read in heard],
                [polarity(wording.prompt, entry.order) for entry, _ in heard],
                float(delivered or 0),
            )


def put(observers: Mapping[str, AnswerObserver], batches: Iterable[Batch]) -> Iterator[Answered]:
    """Put questions in words to an observer; images are drawn only when their turn comes, one trial's at a time.

    An answer holds "reply", as `Answer.to_dict` gives it, "delivered_contrast", "coherent_gain", "total_contrast" of
    its image, and "refused": why nothing was asked, or "".
    """
    (observer,) = observers.values()
    done: deque[Answered] = deque()
    under_way: dict[str, tuple[Question, dict[str, Any]]] = {}
    # An observer may draw upon this from a thread of its own.
    kept: dict[str, Any] = {}

    def inquiries() -> Iterator[Inquiry]:
        for batch in batches:
            work: Work = batch.work
            shown = work.scene.shown(*work.trial)
            images, measured = work.scene.draw(shown, observer.delivered)
            stimuli = {**work.scene.identity(shown), "stimuli": [spec.to_dict() for spec in shown.specs]}
            kept[batch.questions[0].shown] = ("shown", stimuli)
            for question in batch.questions:
                asked = work.asked[question.asked]
                kept.setdefault(question.asked, ("asked", asked))
                if measured["refused"]:
                    done.append(_answered(question, measured, None, kept))
                    continue
                under_way[question.key] = (question, measured)
                yield Inquiry(
                    prompt=asked["prompt"],
                    images=images,
                    system=asked["system"],
                    decoding=Decoding(**asked["decoding"]),
                    words=tuple(asked["words"]),
                    key=question.key,
                )

    for inquiry, answer in ask_all(observer, inquiries()):
        while done:
            yield done.popleft()
        question, measured = under_way.pop(inquiry.key)
        yield _answered(question, measured, answer, kept)
    yield from done


def _answered(question: Question, measured: Mapping[str, Any], answer: Answer | None, kept: dict[str, Any]) -> Answered:
    """With the first answer about it goes what a digest stands for."""
    contents = tuple((name, *kept.pop(name)) for name in (question.shown, question.asked) if kept.get(name))
    for name, *_ in contents:
        kept[name] = None
    return Answered(question, {**measured, "reply": None if answer is None else answer.to_dict()}, contents)
