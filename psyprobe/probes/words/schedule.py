"""A run in words: rounds of trials, each asked in every order of its images, told to the designs as
they are answered.

Trials on one image follow each other, which lets servers and models reuse what they made of the
image.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.words.group import score_people
from psyprobe.analysis.words.score import score_chat
from psyprobe.analysis.words.sessions import merge_sessions, part_of
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.output import digest
from psyprobe.human.models import CSF_MODELS
from psyprobe.observers.chat.protocol import (
    GIVEN_UP,
    Answer,
    AnswerObserver,
    Decoding,
    Example,
    Inquiry,
    ask_all,
)
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.protocol import SeatedObserver
from psyprobe.plotting.word_parts import csf_parts
from psyprobe.plotting.words import csf_panels
from psyprobe.probes.differences import PERIOD, contrast_kind, human_sensitivity, stimulus_remarks
from psyprobe.probes.displayed_images import at_native_size
from psyprobe.probes.words.answer_table import Read, read_answer, words_result
from psyprobe.probes.words.delivery import Delivery, Scene, derived_seed
from psyprobe.probes.words.prompt_variant import (
    OF_CLIPS,
    Trial,
    Wording,
    asking_of,
    axis_levels,
    spoken,
)
from psyprobe.running.protocol import Answered, Batch, Origin, Question, RunRecord
from psyprobe.running.schedule import ExperimentSchedule
from psyprobe.running.store import Store
from psyprobe.running.task import CONTRAST_AXIS, Scored, Task
from psyprobe.stimulus.specification import level_of, with_levels

if TYPE_CHECKING:
    from psyprobe.probes.words.plan import WordsPlan


#: From where on repeats are those of examples.
_EXAMPLES = 1_000_000


@dataclass(frozen=True)
class TrialQuestions:
    """One trial of a batch, and what is asked about it, by the digest that its questions carry."""

    scene: Scene
    #: Arguments of `Scene.shown`.
    trial: tuple[float, float, int, int]
    asked: Mapping[str, Mapping[str, Any]]


class WordsSchedule(ExperimentSchedule):
    """One run of an experiment in words.

    Raises
    ------
    InputError
        The observer cannot be asked so, or something cannot be shown to it.
    """

    def __init__(self, probe: WordsProbe, experiment: Experiment, observer: AnswerObserver) -> None:
        super().__init__(experiment, observer)
        self.probe = probe
        shown = axis_levels(experiment, probe.period)
        self.level = shown.level
        #: Levels on the stimulus axis: contrasts, differences or periods, rising.
        self.contrasts = shown.values
        self.axis = shown.axis
        self.task = Task(probe.words, probe.scored, shown.axis)
        self.asking = asking_of(experiment)
        self._check()
        held = self.asking.hold
        self._native = experiment.spec(
            **{name: values[0] for name, values in experiment.levels.items()} | held
        )
        self.scene = self._scene()
        self.scene.check(
            experiment.name,
            observer.card.name,
            experiment.levels[self.level],
            self.contrasts[-1],
        )
        self.people, self.remarks = self._people()
        self._examples = self._shown_before()
        #: A person is asked one question after the other, each when the answer before it is in the
        #: store.
        self._one_at_a_time = self.scene.delivery.format == "page"
        at_once = 1 if self._one_at_a_time else None
        self._wordings = [
            Wording(experiment, self.task, shown, i, at_once)
            for i in range(len(self.asking.prompts))
        ]
        #: In which wordings questions are asked: all of them, or those of a part.
        self._mine = self._wordings
        self._trials: list[Trial] = []
        self._after_pilot: list[Trial] | None = None
        #: The questions of a round, of each trial one an order of its images.
        self._round: dict[tuple[Trial, int], Question] = {}
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._log: list[dict[str, Any]] = []
        #: At which attempt of a person each trial is, and those whose attempt was given up.
        self._attempts: dict[Trial, int] = {}
        self._again: list[Trial] = []

    def layout(self) -> dict[str, Any]:
        """The level, what is asked, and how it is shown."""
        parameter = level_of(self.scene.spec, self.level)
        return {
            "version": self.probe.version,
            "levels": [{"name": self.level, "unit": parameter.unit, "label": parameter.label}],
            "prompts": [prompt.to_dict() for prompt in self.asking.prompts],
            "asking": {
                name: value for name, value in self.asking.settings().items() if name != "suffix"
            },
            "delivery": asdict(self.scene.delivery),
            "display": digest(self.scene.display.to_dict()),
            "size": list(self.scene.spec.shape),
            "ppd": self.scene.spec.ppd,
            **({} if self.people is None else {"human": self.people}),
            "task": self.task.to_dict(),
        }

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """The display and the card; what is asked and shown is kept with the answers."""
        display = self.scene.display.to_dict()
        yield digest(display), "display", display
        yield from super().contents()

    def narrow(self, holds: Callable[[str], bool]) -> None:
        """Ask only in some of the prompts: what comes next in one depends on all answers in it."""
        super().narrow(holds)
        who = self.observer.card.digest
        self._mine = [
            wording for wording in self._wordings if holds(digest([who, wording.prompt.id]))
        ]

    def next(self) -> list[Batch]:
        """The questions of a round; those that decide which reading counts come first, as a round
        of their own.
        """
        if self._again:
            again = self._again
            self._again = []
            return self._batches(again)
        if self._after_pilot:
            rest = self._after_pilot
            self._after_pilot = None
            return self._batches(rest)
        self._trials = [trial for wording in self._mine for trial in wording.next()]
        self._round = {}
        self._answers = {}
        undecided = {i for i, wording in enumerate(self._wordings) if wording.readout is None}
        pilot = [trial for trial in self._trials if trial.check and trial.prompt in undecided]
        if not pilot:
            return self._batches(self._trials)
        chosen = set(pilot)
        self._after_pilot = [trial for trial in self._trials if trial not in chosen]
        return self._batches(pilot)

    def tell(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Let a pilot decide, and tell every design the answers to a whole round in the order in
        which it asked.
        """
        self._answers |= answers
        self._give_up(answers)
        if self._again:
            return
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
            "estimates": {name: one for name, one in found.items() if one is not None},
        }

    def cost(self, store: Store, *, timed: bool) -> WordsPlan:
        """What is left to ask: questions, images, tokens, time, price, and the precision to
        expect.
        """
        from psyprobe.probes.words.plan import words_plan

        return words_plan(self, store, timed=timed)

    # -- before anything is asked
    # ------------------------------------------------------------------------------------

    def _check(self) -> None:
        experiment = self.experiment
        who = self.observer
        spec = experiment.spec()
        shown = self.probe.intervals * spec.frames
        if who.images_at_once is not None and who.images_at_once < shown:
            clips = spec.is_clip
            several = self.probe.intervals > 1
            those = f", the frames of {'two clips' if several else 'a clip'}," if clips else ""
            remedy = (
                "show shorter clips (frames of the stimulus)" if clips else "use the probe 'yes_no'"
            )
            raise InputError(
                f"probe {experiment.probe!r} shows {shown} images{those} in a question, and "
                f"{who.card.name} takes "
                f"{who.images_at_once}; {remedy}, or another observer"
            )
        if who.bits is not None and experiment.delivery.bits == "float":
            raise InputError(
                f"{experiment.name} delivers unrounded images, and {who.card.name} takes "
                f"{who.bits} bits a channel; "
                f"give [delivery] bits = {who.bits}"
            )
        if len(self.contrasts) < 2 or not self.contrasts[0] > 0:
            where = "levels.contrast" if self.axis == CONTRAST_AXIS else "difference.levels"
            raise InputError(
                f"{where} are {list(self.contrasts)}; give at least two levels above 0, in ascending "
                "order"
            )
        self._check_prompts()

    def _check_prompts(self) -> None:
        """Notice prompts of the other task before they are asked and paid for."""
        one = self.probe.intervals == 1
        probes = (yes_no, two_interval, orientation, orientation_4)
        foreign = {word for probe in probes for word in probe.words} - {*self.probe.words}
        for prompt in self.asking.prompts:
            if foreign & {*prompt.words} or (
                len(self.probe.words) > 2 and prompt.words != self.probe.words
            ):
                raise InputError(
                    f"{self.experiment.name}: prompt {prompt.id!r} is answered by "
                    f"{prompt.yes[0]!r} and "
                    f"{prompt.no[0]!r}, and probe {self.experiment.probe!r} shows "
                    f"{self.probe.intervals} "
                    f"image{'' if one else 's'}; give prompts whose answers are "
                    f"{' and '.join(self.probe.words)}, "
                    f"such as the set {self.probe.prompts!r}"
                )
            named = [name for name in OF_CLIPS if f"{{{name}}}" in prompt.full]
            if named and not self.experiment.spec().is_clip:
                raise InputError(
                    f"{self.experiment.name}: prompt {prompt.id!r} speaks of {{{named[0]}}}, "
                    "and what is shown is no "
                    f"clip; give a prompt about images, such as the set {self.probe.prompts!r}"
                )

    def _scene(self) -> Scene:
        experiment = self.experiment
        sending = self.experiment.delivery
        native = self._native
        if isinstance(self.observer, SeatedObserver):
            return self._on_screen(self.observer.screen)
        drawn = (
            at_native_size(experiment.name, native, self.observer.card)
            if sending.native
            else native
        )
        bits = None if sending.bits == "float" else sending.bits
        return Scene(
            spec=drawn,
            level=self.level,
            display=experiment.display,
            delivery=Delivery(
                bits=bits, dither=sending.dither or ("none" if bits is None else "rpdf")
            ),
            refuse=sending.refuse,
            seed=self.asking.seed,
            intervals=self.probe.intervals,
            orientations=self.probe.orientations,
            observer=self.observer.card.digest,
            change=self._change(),
        )

    def _on_screen(self, screen: Screen | None) -> Scene:
        """What a page draws for a person: over the same degrees, in the pixels and the light of
        their screen.
        """
        if screen is None:
            raise InputError(
                f"{self.experiment.name} draws patterns, and nobody calibrated the screen; take "
                "psyprobe observe"
            )
        if len(self.asking.prompts) > 1:
            raise InputError(
                f"{self.experiment.name} asks in {len(self.asking.prompts)} wordings, and a "
                "person is asked in one; "
                "give one prompt"
            )
        strongest = {
            name: values[-1] for name, values in self.experiment.levels.items()
        } | self.asking.hold
        return Scene(
            spec=screen.drawn(self._native, with_levels(self._native, **strongest)),
            level=self.level,
            display=screen.display,
            delivery=Delivery(bits=8, dither=screen.dither, format="page"),
            refuse=True,
            seed=self.asking.seed,
            intervals=self.probe.intervals,
            orientations=self.probe.orientations,
            observer=self.observer.card.digest,
        )

    def _change(self) -> tuple[str, str] | None:
        """Parameter and unit in which two images differ; None where it is contrast."""
        if self.axis == PERIOD:
            return "frequency", PERIOD.name
        given = self.experiment.difference
        return None if given is None else (given.parameter, given.unit)

    def _shown_before(self) -> list[dict[str, Any]]:
        """Of the examples that go before each question: arguments of `Scene.shown`, what that is,
        and the answer.
        """
        first = self.experiment.levels[self.level][0]
        found = []
        for i, each in enumerate(self.asking.examples):
            # Noise that no trial has.
            place = (first if each.level is None else each.level, each.contrast, _EXAMPLES + i, 0)
            shown = self.scene.shown(*place)
            if shown.refused:
                raise InputError(
                    f"{self.experiment.name}: asking.examples {i + 1} cannot be shown: "
                    f"{shown.refused}"
                )
            found.append(
                {
                    "place": list(place),
                    "shown": digest(self.scene.identity(shown)),
                    "answer": each.answer,
                }
            )
        return found

    def _people(self) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
        """What people see at the levels, and where they saw something else; no name where nobody is
        compared with.

        None where the analysis has a curve of its own: over frequency, that of achromatic noise in
        the models' own terms, and a usual one where the page names nobody.
        """
        experiment = self.experiment
        native = self._native
        reference = experiment.human
        values = np.array(experiment.levels[self.level])
        grey = (
            self.level == "frequency"
            and contrast_kind(native) != "cone"
            and self.axis == CONTRAST_AXIS
        )
        if grey and (
            reference is None or (native.kind == "annulus_noise" and reference.name in CSF_MODELS)
        ):
            return None, ()
        if reference is None:
            return {"name": "", "values": [], "sensitivity": []}, ()
        sensitivity = human_sensitivity(reference, native, {self.level: values})
        told = {
            "name": reference.name,
            "values": values.tolist(),
            "sensitivity": sensitivity.tolist(),
        }
        return told, stimulus_remarks(experiment, native)

    # -- asking and hearing
    # ------------------------------------------------------------------------------------------

    def _batches(self, trials: Sequence[Trial]) -> list[Batch]:
        """The questions of trials, image by image."""
        pairs = sorted(
            ((trial, order) for trial in trials for order in self._orders(trial)),
            key=lambda pair: (
                derived_seed(self.asking.seed, "order", *pair[0].place),
                pair[1],
                pair[0].prompt,
            ),
        )
        batches = []
        for (*_, order), members in groupby(pairs, key=lambda pair: (*pair[0].place, pair[1])):
            together = [trial for trial, _ in members]
            image = (together[0].level.value, together[0].level.contrast, together[0].repeat, order)
            images = self.scene.shown(*image)
            shown = digest(self.scene.identity(images))
            asked = [self._asked(trial) for trial in together]
            questions = [
                Question(shown, digest(each), self.observer.card.digest, self.probe.version)
                for each in asked
            ]
            for trial, question, each in zip(together, questions, asked, strict=True):
                self._round[trial, order] = question
                self._log.append(
                    {
                        "key": question.key,
                        "prompt": self._wordings[trial.prompt].prompt.id,
                        "value": trial.level.value,
                        "contrast": trial.level.contrast,
                        "repeat": trial.repeat,
                        "order": order,
                        "image_seed": images.image_seed,
                        "text_asked": each["decoding"]["max_tokens"] > 1,
                    }
                )
            work = TrialQuestions(
                self.scene,
                image,
                dict(zip((each.request for each in questions), asked, strict=True)),
            )
            session = self.observer.card.digest if self._one_at_a_time else ""
            batches.append(Batch(tuple(questions), work, session=session))
        return batches

    def _orders(self, trial: Trial) -> tuple[int, ...]:
        """In which orders a trial is asked: a machine in each, a person in one, drawn by the
        trial's seed.
        """
        if not self._one_at_a_time:
            return self.probe.orders
        return (
            self.probe.orders[
                derived_seed(self.asking.seed, "side", *trial.place) % len(self.probe.orders)
            ],
        )

    def _asked(self, trial: Trial) -> dict[str, Any]:
        """Prompt, system text, words and decoding, as JSON can hold them."""
        wording = self._wordings[trial.prompt]
        return {
            "prompt": spoken(wording.prompt, self.scene.spec),
            "system": self.asking.system,
            "words": list(wording.prompt.words),
            "decoding": wording.decoding(trial),
            **({"examples": self._examples} if self._examples else {}),
            **({"attempt": self._attempts.get(trial, 1)} if self._one_at_a_time else {}),
        }

    def _heard(self, trial: Trial, order: int) -> Read | None:
        answer = self._answers.get(self._round[trial, order].key)
        if answer is None or answer["refused"]:
            return None
        return read_answer(
            Answer.from_dict(answer["reply"]), self._wordings[trial.prompt].meant(order)[0]
        )

    def _give_up(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Ask those trials again, as another attempt, whose attempt a person gave up."""
        lost = {
            key for key, each in answers.items() if (each["reply"] or {}).get("finish") == GIVEN_UP
        }
        if lost:
            self._again = [
                trial for (trial, _), question in self._round.items() if question.key in lost
            ]
            self._attempts |= {trial: self._attempts.get(trial, 1) + 1 for trial in self._again}
            self._log = [entry for entry in self._log if entry["key"] not in lost]

    def _decide(self) -> None:
        """Let each wording's answers show which reading of them counts."""
        for index, wording in enumerate(self._wordings):
            reads = (
                self._heard(trial, order) for trial, order in self._round if trial.prompt == index
            )
            wording.hear([read for read in reads if read is not None])

    def _tell_designs(self) -> None:
        for trial in self._trials:
            heard = {
                order: read
                for order in self._orders(trial)
                if (read := self._heard(trial, order)) is not None
            }
            delivered = self._answers[self._round[trial, self._orders(trial)[0]].key][
                "delivered_contrast"
            ]
            self._wordings[trial.prompt].tell(trial, heard, float(delivered or 0))


def put(observers: Mapping[str, AnswerObserver], batches: Iterable[Batch]) -> Iterator[Answered]:
    """Put questions in words to an observer; images are drawn only when their turn comes, one
    trial's at a time.

    An answer holds "reply", as `Answer.to_dict` gives it, "delivered_contrast", "coherent_gain",
    "total_contrast" of its image, and "refused": why nothing was asked, or "".
    """
    (observer,) = observers.values()
    # An observer may draw upon these from a thread of its own.
    refused: deque[Answered] = deque()
    under_way: dict[str, Answered] = {}
    drawn: dict[tuple[Any, ...], tuple[FloatArray, ...]] = {}

    def inquiries() -> Iterator[Inquiry]:
        for batch in batches:
            work: TrialQuestions = batch.work
            shown = work.scene.shown(*work.trial)
            images, measured = work.scene.draw(shown, observer.delivered)
            stimuli = {
                **work.scene.identity(shown),
                "stimuli": [spec.to_dict() for spec in shown.specs],
            }
            for question in batch.questions:
                asked = work.asked[question.request]
                drawing = stimuli if work.scene.delivery.format == "page" else None
                contents = (
                    (question.stimulus, "stimuli", stimuli),
                    (question.request, "request", asked),
                )
                answered = Answered(
                    question,
                    {**measured, "reply": None},
                    contents,
                    levels=work.scene.levels(*work.trial[:2]),
                )
                if measured["refused"]:
                    refused.append(answered)
                    continue
                under_way[question.key] = answered
                before = [(each["place"], each["answer"]) for each in asked.get("examples", ())]
                yield Inquiry(
                    examples=tuple(
                        Example(_drawn(drawn, work.scene, place, observer), asked["prompt"], said)
                        for place, said in before
                    ),
                    prompt=asked["prompt"],
                    images=images,
                    system=asked["system"],
                    decoding=Decoding(**asked["decoding"]),
                    words=tuple(asked["words"]),
                    key=question.key,
                    drawing=drawing,
                    attempt=asked.get("attempt", 1),
                )

    for inquiry, answer in ask_all(observer, inquiries()):
        while refused:
            yield refused.popleft()
        answered = under_way.pop(inquiry.key)
        told = {**answered.answer, "reply": answer.to_dict()}
        yield replace(answered, answer=told, origin=Origin(served=answer.named))
    yield from refused


def _drawn(
    known: dict[tuple[Any, ...], tuple[FloatArray, ...]],
    scene: Scene,
    place: Sequence[Any],
    observer: AnswerObserver,
) -> tuple[FloatArray, ...]:
    """The images of an example, drawn once."""
    key = (id(scene), *place)
    if key not in known:
        known[key] = scene.draw(scene.shown(*place), observer.delivered)[0]
    return known[key]


@dataclass(frozen=True)
class WordsProbe:
    """A task in words as a probe: what is asked in every trial."""

    #: Name of the probe.
    name: str
    #: Showing or asking differently makes another question of the same trial.
    version: str
    #: Images in a question: 1, or 2 of which one is the reference: uniform, or what the other
    #: differs from.
    intervals: int
    #: In which order images are shown; every trial is asked in each.
    orders: tuple[int, ...]
    #: The answers, and the set of prompts that ask for them; of more than two, each is right in one
    #: of the orders.
    words: tuple[str, ...]
    prompts: str
    #: What is counted: answers that say yes, or correct ones of a forced choice.
    scored: Scored
    #: Of the pattern, deg, by the order; empty where the stimulus has its own.
    orientations: tuple[float, ...] = ()
    #: Whether the period of stripes is the stimulus axis, in place of contrast.
    period: bool = False
    ABILITIES: tuple[str, ...] = ("answer",)
    SECTIONS: tuple[str, ...] = ("stimulus", "levels", "asking", "delivery", "human", "fit")
    answer = staticmethod(put)
    result = staticmethod(words_result)
    score = staticmethod(score_chat)
    plot = staticmethod(csf_panels)
    report = staticmethod(csf_parts)
    part_of = staticmethod(part_of)
    merge = staticmethod(merge_sessions)
    score_together = staticmethod(score_people)

    @staticmethod
    def task(record: RunRecord) -> Task:
        """As in `Probe`."""
        return Task.from_dict(record.layout["task"])

    def plan(self, experiment: Experiment, observer: Any) -> WordsSchedule:
        """As in `Probe`."""
        if isinstance(observer, SeatedObserver) and (spec := experiment.spec()).is_clip:
            raise InputError(
                f"{experiment.name} shows clips ({spec.kind}), and a page draws still patterns "
                "for a person; ask an "
                "encoder, a metric or a chat model, or show a still stimulus"
            )
        if experiment.asking is None:
            raise InputError(
                "there is no [asking], so that it needs an observer with the ability "
                "'features' or 'difference', and "
                f"{observer.card.name} has 'answer'; give prompts = {self.prompts!r} there, or "
                "choose another observer"
            )
        return WordsSchedule(self, experiment, observer)


yes_no = WordsProbe(
    "yes_no",
    "yes_no 1",
    intervals=1,
    orders=(0,),
    words=("yes", "no"),
    prompts="base",
    scored="yes",
)
#: Always asked in both orders: an observer that prefers one position does so in both, so that the
#: mean is free of it.
two_interval = WordsProbe(
    "two_interval",
    "two_interval 1",
    intervals=2,
    orders=(0, 1),
    words=("first", "second"),
    prompts="two_image",
    scored="correct",
)
#: Stripes that stand and stripes that lie: one image a question, and for the same reason one of
#: each.
orientation = WordsProbe(
    "orientation",
    "orientation 1",
    intervals=1,
    orders=(0, 1),
    words=("vertical", "horizontal"),
    prompts="orientation",
    scored="correct",
    orientations=(0.0, 90.0),
)
#: Four directions; of a fine pattern those aslant are seen worse, by 0.14 log10 at 8 cpd and 0.40
#: at 16.
orientation_4 = WordsProbe(
    "orientation_4",
    "orientation_4 1",
    intervals=1,
    orders=(0, 1, 2, 3),
    words=("vertical", "horizontal", "rising", "falling"),
    prompts="orientation_4",
    scored="correct",
    orientations=(0.0, 90.0, 135.0, 45.0),
)
