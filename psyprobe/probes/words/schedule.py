"""Run experiments in words: rounds of trials, asked in every order of their images.

Trials on one image follow each other, so that servers and models can reuse their encoding of it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.efficiency.scores import NOISE_LEVEL
from psyprobe.analysis.identification.score import score_identification
from psyprobe.analysis.words.group import score_people
from psyprobe.analysis.words.score import score_chat
from psyprobe.analysis.words.sessions import merge_sessions, part_of
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.json_types import JsonMapping, JsonObject
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
from psyprobe.observers.images import size_text
from psyprobe.observers.protocol import Card, SeatedObserver, TrainableObserver
from psyprobe.plotting.identification import identification_panels, identification_parts
from psyprobe.plotting.word_parts import csf_parts
from psyprobe.plotting.words import csf_panels
from psyprobe.probes.differences import (
    contrast_kind,
    human_sensitivity,
    stimulus_remarks,
)
from psyprobe.probes.displayed_images import at_native_size, spread
from psyprobe.probes.unreadable import ReplyWatch
from psyprobe.probes.words.answer_table import (
    Read,
    is_readable,
    read_answer,
    words_result,
)
from psyprobe.probes.words.delivery import Delivery, Scene, derived_seed
from psyprobe.probes.words.identification import card_of_deck, read_alternatives
from psyprobe.probes.words.prompt_variant import (
    OF_CLIPS,
    OPTIONS,
    PromptVariant,
    Trial,
    adaptive,
    axis_levels,
    fill_prompt,
    require_asking,
)
from psyprobe.running.protocol import (
    Answered,
    Batch,
    Content,
    Origin,
    Question,
    RunRecord,
)
from psyprobe.running.schedule import ExperimentSchedule
from psyprobe.running.store import Store
from psyprobe.running.task import CONTRAST_AXIS, Scored, Task
from psyprobe.stimulus.specification import level_of, with_levels

if TYPE_CHECKING:
    from psyprobe.observers.decisions.recipe import Decision
    from psyprobe.probes.words.plan import WordsPlan
    from psyprobe.probes.words.training import Training


#: The first repeat of examples, so that their noise differs from that of every trial.
_EXAMPLES = 1_000_000


@dataclass(frozen=True)
class TrialQuestions:
    """One trial of a batch, and its requests by the digests that its questions carry."""

    scene: Scene
    #: Arguments of `Scene.plan_trial`.
    trial: tuple[float, float, int, int]
    requests: Mapping[str, JsonMapping]
    #: The stage by which an encoder decides.
    decision: Decision | None = None


class WordsSchedule(ExperimentSchedule):
    """The schedule of one run of an experiment in words.

    Raises
    ------
    InputError
        The observer cannot answer such questions, or something cannot be shown to it.
    """

    def __init__(
        self, probe: WordsProbe, experiment: Experiment, observer: AnswerObserver
    ) -> None:
        super().__init__(experiment, observer)
        self.probe = probe
        levels = axis_levels(experiment, probe.period)
        self._levels = levels
        self.level = levels.level
        #: Levels on the stimulus axis: ascending contrasts, differences or periods.
        self.contrasts = levels.values
        self.axis = levels.axis
        self.values = levels.level_values
        self.task = Task(
            probe.words, probe.scored, levels.axis, probe.orientations, probe.parameter
        )
        self.asking = require_asking(experiment)
        if probe.labels:
            prompts = [
                replace(prompt, labels=probe.labels) for prompt in self.asking.prompts
            ]
            self.asking = self.asking.model_copy(update={"prompts": tuple(prompts)})
        if isinstance(observer, TrainableObserver):
            # A stage knows its task from the probe, and reads no prompt.
            update = {"readout": "text", "prompts": self.asking.prompts[:1]}
            self.asking = self.asking.model_copy(update=update)
        if not isinstance(observer, SeatedObserver):
            self.asking = self.asking.model_copy(update={"stop_below": None})
        self._check_observer()
        fixed_levels = self.asking.hold
        self._native = experiment.spec(
            **{name: values[0] for name, values in experiment.levels.items()}
            | fixed_levels
        )
        self.scene = self._build_scene()
        self._check_scene()
        self.people, remarks = self._human_curve()
        self.remarks = (*remarks, *self._noise_remarks())
        self._examples = self._build_examples()
        #: A person is asked one question after another, each when the store has the last answer.
        self._one_at_a_time = self.scene.delivery.format == "page"
        at_once = 1 if self._one_at_a_time else 0
        self._variants = [
            PromptVariant(self.asking, self.task, levels, i, at_once)
            for i in range(len(self.asking.prompts))
        ]
        #: The prompt variants of this run: all of them, or those of a shard.
        self._active_variants = self._variants
        self.training: Training | None = None
        if isinstance(observer, TrainableObserver):
            from psyprobe.probes.words.training import Training

            self.training = Training(
                experiment,
                observer,
                self.scene,
                self.task,
                levels.level_values,
                self.contrasts,
                probe.version,
                self.asking.prompts[0],
            )
        self._rounds = self._plan_rounds()
        #: The questions of a round, by trial and order of its images.
        self._questions: dict[tuple[Trial, int], Question] = {}
        self._answers: dict[str, JsonMapping] = {}
        self._log: list[JsonObject] = []
        self._reply_watch = ReplyWatch(observer)
        #: How often a person gave up each trial, and those given up in the last round.
        self._failures: Counter[Trial] = Counter()
        self._given_up: list[Trial] = []

    @property
    def questions_per_trial(self) -> int:
        """The number of questions in a trial: one in each order, or about the one label shown."""
        return 1 if self.probe.labels or self._one_order else len(self.probe.orders)

    @property
    def _one_order(self) -> bool:
        """Whether a trial is asked in one order, drawn by its seed.

        People would remember the other order; to a decision stage it is the same images, and its
        answer no new information.
        """
        return self._one_at_a_time or self.training is not None

    def layout(self) -> JsonObject:
        """Return what the result needs: level, prompts, delivery, display and task."""
        parameter = level_of(self.scene.spec, self.level)
        return {
            "version": self.probe.version,
            "levels": [
                {"name": self.level, "unit": parameter.unit, "label": parameter.label}
            ],
            "prompts": [prompt.to_dict() for prompt in self.asking.prompts],
            "asking": {
                name: value
                for name, value in self.asking.settings().items()
                if name != "suffix"
            },
            "delivery": asdict(self.scene.delivery),
            "display": digest(self.scene.display.to_dict()),
            "size": list(self.scene.spec.shape),
            "ppd": self.scene.spec.ppd,
            **({} if self.people is None else {"human": self.people}),
            "task": self.task.to_dict(),
        }

    def contents(self) -> Iterator[Content]:
        """Iterate over what digests stand for: the display and the card."""
        display = self.scene.display.to_dict()
        yield digest(display), "display", display
        yield from super().contents()

    def narrow(self, holds: Callable[[str], bool]) -> None:
        """Restrict the questions to whole prompts whose digest a function accepts."""
        super().narrow(holds)
        observer = self.observer.card.digest
        self._active_variants = [
            variant
            for variant in self._variants
            if holds(digest([observer, variant.prompt.id]))
        ]

    def next(self) -> list[Batch]:
        """Return the questions of a round; those of pilot trials come first, by themselves."""
        return next(self._rounds, [])

    def watch(self, answered: Answered) -> None:
        """Read the first replies as they come, refusing to go on if none can be read."""
        watch = self._reply_watch
        if watch.is_over or answered.answer["reply"] is None:
            return
        trial, order = next(
            place
            for place, question in self._questions.items()
            if question.key == answered.question.key
        )
        prompt = self._variants[trial.prompt].interpret(order)[0]
        reply = Answer.from_dict(answered.answer["reply"])
        watch.add(reply, is_readable(reply, prompt))

    def tell(self, answers: Mapping[str, JsonMapping]) -> None:
        """Take the answers to a round; trials that a person gave up are asked again."""
        self._answers |= answers
        lost = {
            key
            for key, answer in answers.items()
            if (answer["reply"] or {}).get("finish") == GIVEN_UP
        }
        self._given_up = [
            trial
            for (trial, _), question in self._questions.items()
            if question.key in lost
        ]
        self._failures.update(self._given_up)
        self._log = [entry for entry in self._log if entry["key"] not in lost]

    def outcome(self) -> JsonObject:
        """Return the log of all trials, and each prompt's estimate by the design."""
        estimates = {
            variant.prompt.id: estimate
            for variant in self._variants
            if (estimate := variant.estimate()) is not None
        }
        outcome: JsonObject = {"trials": self._log, "estimates": estimates}
        if self.training is not None:
            outcome["training"] = self.training.summary()
        return outcome

    def cost(self, store: Store, *, timed: bool) -> WordsPlan:
        """Plan the rest of the run: questions, images, tokens, time, price and precision."""
        from psyprobe.probes.words.plan import words_plan

        return words_plan(self, store, timed=timed)

    def _plan_rounds(self) -> Iterator[list[Batch]]:
        """Iterate over rounds of batches, each planned from the answers before."""
        if self.training is not None:
            yield self.training.batches()
            self.training.take(self._answers)
        while trials := [
            trial for variant in self._active_variants for trial in variant.next()
        ]:
            self._questions = {}
            self._answers = {}
            undecided = {
                i for i, variant in enumerate(self._variants) if variant.readout is None
            }
            pilot = [
                trial for trial in trials if trial.check and trial.prompt in undecided
            ]
            if pilot:
                yield from self._ask(pilot)
                for index, variant in enumerate(self._variants):
                    readings = (
                        self._read_reply(trial, order)
                        for trial, order in self._questions
                        if trial.prompt == index
                    )
                    variant.add_pilot([*filter(None, readings)])
            pilot_trials = set(pilot)
            yield from self._ask(
                [trial for trial in trials if trial not in pilot_trials]
            )
            if self.asking.design != "constant" or self.asking.stop_below:
                for trial in trials:
                    self._tell_design(trial)

    def _tell_design(self, trial: Trial) -> None:
        """Tell the design of a prompt how an answered trial reads."""
        orders = self._orders(trial)
        readings = {
            order: reading
            for order in orders
            if (reading := self._read_reply(trial, order))
        }
        answer = self._answers[self._questions[trial, orders[0]].key]
        delivered = float(answer["delivered_contrast"] or 0)
        self._variants[trial.prompt].tell(trial, readings, delivered)

    def _ask(self, trials: list[Trial]) -> Iterator[list[Batch]]:
        """Iterate over batches of trials, and again over those that a person gave up."""
        while trials:
            yield self._batches(trials)
            trials = self._given_up

    def _check_observer(self) -> None:
        """Refuse an observer that cannot take the images, bits or levels of the experiment."""
        experiment = self.experiment
        observer = self.observer
        spec = experiment.spec()
        image_count = self.probe.intervals * spec.frames
        limit = observer.images_at_once
        if limit is not None and limit < image_count:
            frames_note = ""
            remedy = "use the probe 'yes_no'"
            if spec.is_clip:
                clips = "two clips" if self.probe.intervals > 1 else "a clip"
                frames_note = f", the frames of {clips},"
                remedy = "show shorter clips (frames of the stimulus)"
            raise InputError(
                f"probe {experiment.probe!r} shows {image_count} images{frames_note} in a "
                f"question, and {observer.card.name} takes {limit}; {remedy}, or another observer"
            )
        if observer.bits is not None and experiment.delivery.bits == "float":
            raise InputError(
                f"{experiment.name} delivers unrounded images, and {observer.card.name} takes "
                f"{observer.bits} bits a channel; "
                f"give [delivery] bits = {observer.bits}"
            )
        if len(self.contrasts) < 2 or not self.contrasts[0] > 0:
            where = f"levels of {self.axis.name.replace('_', ' ')}"
            if experiment.difference is not None:
                where = "difference.levels"
            raise InputError(
                f"{where} are {list(self.contrasts)}; give at least two levels above 0, in "
                "ascending order"
            )
        self._check_prompts()

    def _check_prompts(self) -> None:
        """Refuse a prompt that belongs to another task, before it is paid for."""
        is_single = self.probe.intervals == 1
        probes = (yes_no, two_interval, orientation, orientation_4)
        foreign = {word for probe in probes for word in probe.words} - {
            *self.probe.words
        }
        for prompt in self.asking.prompts:
            if (OPTIONS in prompt.full) != bool(prompt.labels):
                raise InputError(
                    f"{self.experiment.name}: the text of prompt {prompt.id!r} must name "
                    f"{OPTIONS} where the probe is identify, and nowhere else; give prompts such "
                    f"as the set {self.probe.prompts!r}"
                )
            if prompt.labels:
                continue
            if foreign & {*prompt.words} or (
                len(self.probe.words) > 2 and prompt.words != self.probe.words
            ):
                raise InputError(
                    f"{self.experiment.name}: prompt {prompt.id!r} is answered by "
                    f"{prompt.yes[0]!r} and {prompt.no[0]!r}, and probe {self.experiment.probe!r} "
                    f"shows {self.probe.intervals} image{'' if is_single else 's'}; give prompts "
                    f"whose answers are {' and '.join(self.probe.words)}, such as the set "
                    f"{self.probe.prompts!r}"
                )
            placeholders = [name for name in OF_CLIPS if f"{{{name}}}" in prompt.full]
            if placeholders and not self.experiment.spec().is_clip:
                raise InputError(
                    f"{self.experiment.name}: prompt {prompt.id!r} speaks of "
                    f"{{{placeholders[0]}}}, "
                    "and what is shown is no "
                    f"clip; give a prompt about images, such as the set {self.probe.prompts!r}"
                )

    def _check_fixed_size(self, card: Card) -> None:
        """Refuse an encoder that takes images of another size than a page fixes."""
        shape = self._native.shape
        if card.input_size is not None and card.input_size != shape:
            raise InputError(
                f"{self.experiment.name} shows images of {size_text(shape)} to every observer "
                f"(delivery.native is false), and {card.name} takes {size_text(card.input_size)}; "
                "name an observer of that size, or set delivery.native to true"
            )

    def _build_scene(self) -> Scene:
        """Set up how stimuli are drawn and delivered: to a person's screen or as images."""
        sending = self.experiment.delivery
        spec = self._native
        display = self.experiment.display
        refuse = sending.refuse
        darkest = -math.inf
        if isinstance(self.observer, SeatedObserver):
            refuse = True
            screen = self._check_screen(self.observer.screen)
            strongest = {
                name: values[-1] for name, values in self.experiment.levels.items()
            } | self.asking.hold
            # The same degrees, on the person's calibrated screen.
            spec = screen.drawn(spec, with_levels(spec, **strongest))
            display = screen.display
            is_ink = self._levels.parameter == "contrast" and self._levels.sign < 0
            if is_ink or self.level == "contrast":
                darkest = float(spec.value("contrast"))
            delivery = Delivery(bits=8, dither=screen.dither, format="page")
        else:
            if sending.native:
                spec = at_native_size(self.experiment.name, spec, self.observer.card)
            elif isinstance(self.observer, TrainableObserver):
                self._check_fixed_size(self.observer.card)
            bits = None if sending.bits == "float" else sending.bits
            if isinstance(self.observer, TrainableObserver) and (
                "bits" not in sending.model_fields_set
            ):
                bits = None
            dither = sending.dither or ("none" if bits is None else "rpdf")
            delivery = Delivery(bits=bits, dither=dither)
        return Scene(
            spec=spec,
            level=self.level,
            display=display,
            delivery=delivery,
            refuse=refuse,
            seed=self.asking.seed,
            intervals=self.probe.intervals,
            label_values=self.probe.orientations,
            label_parameter=self.probe.parameter,
            jitter=self.probe.jitter,
            darkest=darkest,
            observer=self.observer.card.digest,
            axis=self.axis,
            axis_parameter=self._levels.parameter,
            sign=self._levels.sign,
            reciprocal=self._levels.reciprocal,
            change=self._stimulus_change(),
        )

    def _check_scene(self) -> None:
        """Draw the strongest contrast of each level, so that errors come before any question.

        If there are many levels, check an evenly spaced sample.
        """
        if self.level == NOISE_LEVEL and self.task.scored == "yes":
            raise InputError(
                f"{self.experiment.name} asks yes or no over {NOISE_LEVEL}, and catch trials have "
                "one density; ask in two intervals"
            )
        scene = self.scene
        height, width = scene.spec.shape
        unit = level_of(scene.spec, self.level).unit
        name = self.experiment.name
        description = f"drawn at {height} x {width} px for {self.observer.card.name}"
        strongest = self.contrasts[-1]
        values = spread(list(self.values))
        trials = {value: scene.plan_trial(value, strongest, 0, 0) for value in values}
        if all(trial.refused for trial in trials.values()):
            raise InputError(f"{name}, {description}: {trials[values[0]].refused}")
        for value, trial in trials.items():
            level = f"{self.level} {value:g} {unit}, contrast {strongest:g}"
            with in_file(f"{name}, {level}, {description}"):
                for spec in trial.specs[:1]:
                    scene.display.encode(spec.draw())
                scene.check_noise(trial)

    def _check_screen(self, screen: Screen | None) -> Screen:
        """Return a person's screen, refusing none, and questions in several wordings."""
        if screen is None:
            raise InputError(
                f"{self.experiment.name} draws patterns, and nobody calibrated the screen; take "
                "psyprobe observe"
            )
        if len(self.asking.prompts) > 1:
            raise InputError(
                f"{self.experiment.name} asks in {len(self.asking.prompts)} wordings, and a person "
                "is asked in one; give one prompt"
            )
        return screen

    def _stimulus_change(self) -> tuple[str, str] | None:
        """Return the parameter and unit of the table [difference]; None without one."""
        difference = self.experiment.difference
        return None if difference is None else (difference.parameter, difference.unit)

    def _build_examples(self) -> list[JsonObject]:
        """Build the examples before each question: their trial, digest and answer."""
        first = self.values[0]
        examples = []
        for i, example in enumerate(self.asking.examples):
            # Noise that no trial has.
            arguments = (
                first if example.level is None else example.level,
                example.contrast,
                _EXAMPLES + i,
                0,
            )
            trial = self.scene.plan_trial(*arguments)
            if trial.refused:
                raise InputError(
                    f"{self.experiment.name}: asking.examples {i + 1} cannot be shown: "
                    f"{trial.refused}"
                )
            examples.append(
                {
                    "place": list(arguments),
                    "shown": digest(self.scene.describe(trial)),
                    "answer": example.answer,
                }
            )
        return examples

    def _human_curve(self) -> tuple[JsonObject | None, tuple[str, ...]]:
        """Compute human sensitivity at the levels, with remarks on what people saw.

        The curve has no name if the page names no reference. It is None where the analysis has a
        curve of its own: over frequency, for achromatic noise that a model describes, and for any
        stimulus if the page names no reference.
        """
        experiment = self.experiment
        native = self._native
        reference = experiment.human
        values = np.array(self.values)
        if self.asking.axis != "contrast":
            # References tell sensitivities to contrast.
            return {"name": "", "values": [], "sensitivity": []}, ()
        grey = (
            self.level == "frequency"
            and experiment.noise is None
            and contrast_kind(native) != "cone"
            and self.axis == CONTRAST_AXIS
        )
        if grey and (
            reference is None
            or (native.kind == "annulus_noise" and reference.name in CSF_MODELS)
        ):
            return None, ()
        if reference is None:
            return {"name": "", "values": [], "sensitivity": []}, ()
        sensitivity = human_sensitivity(reference, native, {self.level: values})
        human_curve = {
            "name": reference.name,
            "values": values.tolist(),
            "sensitivity": sensitivity.tolist(),
        }
        return human_curve, stimulus_remarks(experiment, native)

    def _noise_remarks(self) -> Iterator[str]:
        """Yield a warning if both intervals of a trial show the same noise."""
        if self.probe.intervals == 1 or self.scene.fresh_noise:
            return
        if any(
            name.split("_")[-1] == "seed" for name in self._native.reference().levels()
        ):
            yield (
                "both intervals show the same noise; efficiency is not defined; give [noise]"
            )

    def _batches(self, trials: Sequence[Trial]) -> list[Batch]:
        """Build the questions of trials, one batch for each image."""
        pairs = sorted(
            ((trial, order) for trial in trials for order in self._orders(trial)),
            key=lambda pair: (
                derived_seed(self.asking.seed, "order", *pair[0].place),
                pair[1],
                pair[0].prompt,
            ),
        )
        observer = self.observer.card.digest
        session = observer if self._one_at_a_time else ""
        batches = []
        for (*_, order), members in groupby(
            pairs, key=lambda pair: (*pair[0].place, pair[1])
        ):
            image_trials = [trial for trial, _ in members]
            level = image_trials[0].level
            arguments = (level.value, level.contrast, image_trials[0].repeat, order)
            images = self.scene.plan_trial(*arguments)
            stimulus = digest(self.scene.describe(images))
            questions = []
            requests = {}
            for trial in image_trials:
                request = self._request(trial)
                question = Question(
                    stimulus, digest(request), observer, self.probe.version
                )
                questions.append(question)
                requests[question.request] = request
                self._questions[trial, order] = question
                self._log.append(
                    {
                        "key": question.key,
                        "prompt": self._variants[trial.prompt].prompt.id,
                        **asdict(trial.level),
                        "repeat": trial.repeat,
                        "order": order,
                        "image_seed": images.image_seed,
                        "text_asked": request["decoding"]["max_tokens"] > 1,
                        **(
                            {"options": self._options(trial)}
                            if self.probe.labels
                            else {}
                        ),
                    }
                )
            decision = None
            if self.training:
                decision = self.training.decision(level.value, level.contrast)
            work = TrialQuestions(self.scene, arguments, requests, decision)
            batches.append(Batch(tuple(questions), work, session=session))
        return batches

    def _orders(self, trial: Trial) -> tuple[int, ...]:
        """Return the orders in which a trial is asked: all, or one by its seed."""
        orders = self.probe.orders
        if self.probe.labels:
            level = trial.level
            deck = [level.value, level.contrast]
            if adaptive(self.asking.design):
                deck = deck[:1]
            return (card_of_deck(self.asking.seed, len(orders), deck, trial.repeat),)
        if not self._one_order:
            return orders
        seed = derived_seed(self.asking.seed, "side", *trial.place)
        return (orders[seed % len(orders)],)

    def _options(self, trial: Trial) -> list[str]:
        """Return the labels in the order in which a trial's question names them."""
        seed = derived_seed(self.asking.seed, "options", *trial.place)
        names = self.task.answers
        order = np.random.default_rng(seed).permutation(len(names)).tolist()
        return [names[place] for place in order]

    def _request(self, trial: Trial) -> JsonObject:
        """Build what is asked in a trial: prompt, system text, words and decoding."""
        variant = self._variants[trial.prompt]
        options = self._options(trial) if self.probe.labels else ()
        return {
            "prompt": fill_prompt(variant.prompt, self.scene.spec, options),
            "system": self.asking.system,
            "words": list(variant.prompt.words),
            "decoding": variant.decoding(trial),
            **({"examples": self._examples} if self._examples else {}),
            **({"attempt": 1 + self._failures[trial]} if self._one_at_a_time else {}),
            **(
                {"stage": self.training.key(trial.level.value, trial.level.contrast)}
                if self.training
                else {}
            ),
        }

    def _read_reply(self, trial: Trial, order: int) -> Read | None:
        """Read the reply to a trial in one order of its intervals; None if there is none."""
        answer = self._answers.get(self._questions[trial, order].key)
        if answer is None or answer["refused"]:
            return None
        return read_answer(
            Answer.from_dict(answer["reply"]),
            self._variants[trial.prompt].interpret(order)[0],
        )


def put_questions(
    observers: Mapping[str, AnswerObserver], batches: Iterable[Batch]
) -> Iterator[Answered]:
    """Ask observers questions in words, drawing images one trial at a time.

    An answer holds "reply", as `Answer.to_dict` returns it, "delivered_contrast", "coherent_gain",
    "total_contrast" of its image, and "refused": why nothing was asked, or "".
    """
    (observer,) = observers.values()
    # What takes no inquiry; an observer may take inquiries in a thread of its own.
    finished: deque[Answered] = deque()
    under_way: dict[str, Answered] = {}
    example_images: dict[tuple[Any, ...], tuple[FloatArray, ...]] = {}

    def draw_example(scene: Scene, place: Sequence[Any]) -> tuple[FloatArray, ...]:
        """Draw the images of an example once."""
        key = (id(scene), *place)
        if key not in example_images:
            trial = scene.plan_trial(*place)
            example_images[key], _ = scene.draw(trial, observer.delivered)
        return example_images[key]

    def inquiries() -> Iterator[Inquiry]:
        for batch in batches:
            work = batch.work
            if not isinstance(work, TrialQuestions):
                # The stages of an encoder are trained before its first trial.
                finished.append(work.put(observer, batch.questions[0]))
                continue
            trial = work.scene.plan_trial(*work.trial)
            images, measured = work.scene.draw(trial, observer.delivered)
            stimuli = {
                **work.scene.describe(trial),
                "stimuli": [spec.content() for spec in trial.specs],
            }
            on_page = work.scene.delivery.format == "page"
            drawing = {"stimuli": [spec.to_dict() for spec in trial.specs]}
            for question in batch.questions:
                request = work.requests[question.request]
                contents = (
                    (question.stimulus, "stimuli", stimuli),
                    (question.request, "request", request),
                )
                answered = Answered(
                    question,
                    {**measured, "reply": None},
                    contents,
                    levels=work.scene.levels(*work.trial[:2]),
                )
                if measured["refused"]:
                    finished.append(answered)
                    continue
                under_way[question.key] = answered
                yield Inquiry(
                    examples=tuple(
                        Example(
                            draw_example(work.scene, example["place"]),
                            request["prompt"],
                            example["answer"],
                        )
                        for example in request.get("examples", ())
                    ),
                    prompt=request["prompt"],
                    images=images,
                    system=request["system"],
                    decoding=Decoding(**request["decoding"]),
                    words=tuple(request["words"]),
                    key=question.key,
                    drawing=drawing if on_page else None,
                    attempt=request.get("attempt", 1),
                    decision=work.decision,
                )

    for inquiry, answer in ask_all(observer, inquiries()):
        while finished:
            yield finished.popleft()
        answered = under_way.pop(inquiry.key)
        yield replace(
            answered,
            answer={**answered.answer, "reply": answer.to_dict()},
            origin=Origin(served=answer.named),
        )
    yield from finished


@dataclass(frozen=True)
class WordsProbe:
    """A probe that asks in words; its fields describe the question of every trial."""

    #: Name of the probe.
    name: str
    #: Part of each question: raise it when showing or asking changes.
    version: str
    #: Images in a question: 1, or 2 of which one is the reference.
    intervals: int
    #: Orders of the images; every trial is asked in each, of people and stages in one of them.
    orders: tuple[int, ...]
    #: The answers, and the set of prompts that ask for them; of more than two, each is right in one
    #: of the orders.
    words: tuple[str, ...]
    prompts: str
    #: The answers that count: those that say yes, or correct ones of a forced choice.
    scored: Scored
    #: Orientations of the pattern in each order, deg; empty where the stimulus has its own.
    orientations: tuple[float, ...] = ()
    #: Whether the period of stripes is the stimulus axis, in place of contrast.
    period: bool = False
    #: The parameter that `orientations` are values of, the words of each label, and distances up to
    #: which parameters vary at random.
    parameter: str = "orientation"
    labels: tuple[tuple[str, ...], ...] = ()
    jitter: tuple[tuple[str, float], ...] = ()
    ABILITIES: tuple[str, ...] = ("answer",)
    SECTIONS: tuple[str, ...] = (
        "stimulus",
        "noise",
        "levels",
        "asking",
        "decision",
        "delivery",
        "human",
        "fit",
    )
    answer = staticmethod(put_questions)
    result = staticmethod(words_result)
    score: ClassVar[Callable[..., Sequence[Any]]] = staticmethod(score_chat)
    plot = staticmethod(csf_panels)
    report = staticmethod(csf_parts)
    part_of = staticmethod(part_of)
    merge = staticmethod(merge_sessions)
    score_together = staticmethod(score_people)

    @staticmethod
    def task(record: RunRecord) -> Task:
        """Read a run's task from its layout."""
        return Task.from_dict(record.layout["task"])

    def on_page(self, experiment: Experiment) -> WordsProbe:
        """Return the probe with the answers of an experiment: its own ones."""
        return self

    def plan(self, experiment: Experiment, observer: Any) -> WordsSchedule:
        """Plan a run of questions in words."""
        if isinstance(observer, SeatedObserver) and (spec := experiment.spec()).is_clip:
            raise InputError(
                f"{experiment.name} shows clips ({spec.kind}), and a page draws still patterns for "
                "a person; ask an encoder, a metric or a chat model, or show a still stimulus"
            )
        if experiment.asking is None:
            raise InputError(
                "there is no [asking], so that it needs an observer with the ability 'features' or "
                f"'difference', and {observer.card.name} has 'answer'; give prompts = "
                f"{self.prompts!r} there, or choose another observer"
            )
        return WordsSchedule(self.on_page(experiment), experiment, observer)


@dataclass(frozen=True)
class IdentifyProbe(WordsProbe):
    """A probe that asks which of the labels of a page is shown; each trial shows one."""

    SECTIONS: tuple[str, ...] = (*WordsProbe.SECTIONS, "options")
    score = staticmethod(score_identification)
    plot = staticmethod(identification_panels)
    report = staticmethod(identification_parts)

    def on_page(self, experiment: Experiment) -> WordsProbe:
        """Return the probe with the labels of an experiment as its answers."""
        alternatives = read_alternatives(experiment)
        return replace(
            self,
            words=alternatives.names,
            orders=tuple(range(len(alternatives.values))),
            orientations=alternatives.values,
            parameter=alternatives.parameter,
            labels=alternatives.labels,
            jitter=alternatives.jitter,
        )


yes_no = WordsProbe(
    "yes_no",
    "yes_no 1",
    intervals=1,
    orders=(0,),
    words=("yes", "no"),
    prompts="base",
    scored="yes",
)
#: Asked in both orders: a preference for one position affects both alike, so the mean is free of
#: it.
two_interval = WordsProbe(
    "two_interval",
    "two_interval 1",
    intervals=2,
    orders=(0, 1),
    words=("first", "second"),
    prompts="two_image",
    scored="correct",
)
#: Vertical and horizontal stripes, one image a question; each is asked, for the same reason.
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
#: Four directions. People see oblique fine patterns worse, by 0.14 log10 at 8 cpd and 0.40 at 16.
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
#: Any parameter of the stimulus names what is shown; one of 2 to 26 labels a trial.
identify = IdentifyProbe(
    "identify",
    "identify 1",
    intervals=1,
    orders=(),
    words=(),
    prompts="identify",
    scored="correct",
)
