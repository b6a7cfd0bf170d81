"""Run an experiment that asks in words: plan a round, ask what is not answered yet, keep every answer as it comes.

A round is planned from nothing but the answers to the rounds before, and its answers are taken in the order of the
plan. So neither the number of questions under way, nor the order in which answers arrive, nor an interruption changes
a result. Trials on one image follow each other, which lets servers and models reuse what they made of the image.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Self

from psyprobe._typing import FloatArray
from psyprobe.answer_store import AnswerStore, AskedQuestion, LoggedTrial
from psyprobe.errors import InputError
from psyprobe.experiment import observer_for
from psyprobe.files.progress import progress_bar
from psyprobe.files.software import software_versions
from psyprobe.observers.chat.answering import Answer, AnswerObserver, Decoding, Inquiry, ask_all
from psyprobe.probes import load_probe
from psyprobe.probes.answer_reading import Read, polarity, read_answer
from psyprobe.probes.prompts import Prompt
from psyprobe.probes.scene import Scene, Shown, derived_seed
from psyprobe.question_file import QuestionExperiment
from psyprobe.question_result import estimates_name, question_result
from psyprobe.sitting import Sitting, Trial, decodings, place
from psyprobe.store import RunRecord, Store, digest, open_store

if TYPE_CHECKING:
    import xarray

    from psyprobe.observers.protocol import Observer

#: Answers are written when so many have come, and every so many seconds.
_WRITTEN_TOGETHER = 64
_WRITTEN_EVERY = 0.5


def run_questions(
    experiment: QuestionExperiment,
    observer: str | Observer | None,
    *,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> xarray.Dataset:
    """Run an experiment that asks in words, or what is left of it.

    Parameters
    ----------
    experiment : QuestionExperiment
        As `read_experiment` gives it.
    observer : str or AnswerObserver
        Who is asked; it must be named, since there is no default.
    store : str, Path or Store, optional
        The file that keeps answers; what it holds is not asked again.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    xarray.Dataset
        One row a question; see docs/experiments.md.

    Raises
    ------
    InputError
        The observer cannot be asked so, or something cannot be shown to it.
    StoreError
        The store cannot be used.
    """
    asked = asked_of(experiment, observer)
    with open_store(store) as opened:
        record = begin(opened, asked)
        questioning = Questioning(opened, asked, record.key)
        with progress_bar(0, progress, "question") as bar:
            bar.set_description(f"{experiment.name}: {asked.observer.card.name}")
            length = questioning.run(bar)
        AnswerStore(opened).close_log(record.key, length)
        AnswerStore(opened).add(contents=[(estimates_name(record), "estimates", questioning.estimates())])
        opened.finish(record.key)
        return question_result(opened, record)


@dataclass(frozen=True)
class AskedInWords:
    """An experiment, who is asked, and what there is to see.

    Parameters
    ----------
    experiment : QuestionExperiment
        What is asked.
    observer : AnswerObserver
        Who is asked.
    scene : Scene
        The images.
    task : str
        Of the probe.
    version : str
        Of the way of asking.
    orders : tuple of int
        In which order images are shown; every trial in each.
    """

    experiment: QuestionExperiment
    observer: AnswerObserver
    scene: Scene
    task: str
    version: str
    orders: tuple[int, ...]


def asked_of(experiment: QuestionExperiment, observer: str | Observer | None) -> AskedInWords:
    """Bring an experiment and an observer together.

    Parameters
    ----------
    experiment : QuestionExperiment
        What is asked.
    observer : str or AnswerObserver
        Who is asked; it must be named, since there is no default.

    Returns
    -------
    AskedInWords
        Everything that can be checked before the first question is.

    Raises
    ------
    InputError
        The observer does not answer in words, takes too few images at once, or images of another kind.
    """
    probe: Any = load_probe(experiment.probe)
    who: Any = observer_for(experiment, observer) if observer is None or isinstance(observer, str) else observer
    if who.card.ability not in probe.ABILITIES:
        raise InputError(
            f"probe {experiment.probe!r} needs an observer with the ability 'answer', and {who.card.name} has "
            f"{who.card.ability!r}; choose another, such as simulated:watson-malo or openai:MODEL"
        )
    if who.images_at_once is not None and who.images_at_once < probe.INTERVALS:
        raise InputError(
            f"probe {experiment.probe!r} shows {probe.INTERVALS} images in a question, and {who.card.name} takes "
            f"{who.images_at_once}; use the probe 'yes_no', or another observer"
        )
    if who.bits is not None and experiment.delivery.bits is None:
        raise InputError(
            f"{experiment.name} delivers unrounded images, and {who.card.name} takes {who.bits} bits a channel; give "
            f"[delivery] bits = {who.bits}"
        )
    _check_words(experiment, probe.INTERVALS)
    scene = Scene(experiment, who.card, probe.INTERVALS)
    return AskedInWords(experiment, who, scene, probe.TASK, probe.VERSION, tuple(probe.ORDERS))


def _check_words(experiment: QuestionExperiment, intervals: int) -> None:
    """Notice prompts of the other task before they are asked and paid for."""
    foreign, wanted = ({"first", "second"}, "yes and no") if intervals == 1 else ({"yes", "no"}, "first and second")
    for prompt in experiment.prompts:
        if foreign & {*prompt.yes, *prompt.no}:
            raise InputError(
                f"{experiment.name}: prompt {prompt.id!r} is answered by {prompt.yes[0]!r} and {prompt.no[0]!r}, and "
                f"probe {experiment.probe!r} shows {intervals} image{'s' if intervals > 1 else ''}; give prompts whose "
                f"answers are {wanted}, such as the set {'two_image' if intervals > 1 else 'base'!r}"
            )


def record_of(asked: AskedInWords) -> RunRecord:
    """The run as the store keeps it.

    Parameters
    ----------
    asked : AskedInWords
        What is asked of whom.

    Returns
    -------
    RunRecord
        Its key depends on all that could change a question or the way answers are read.
    """
    experiment, card = asked.experiment, asked.observer.card
    return RunRecord(
        experiment=experiment.name,
        experiment_digest=experiment.digest,
        experiment_toml=experiment.toml,
        observer=card.name,
        observer_digest=card.digest,
        observer_card=card.to_dict(),
        baseline_digest="",
        display_digest=digest(experiment.display.to_dict()),
        layout={
            "probe": experiment.probe,
            "levels": [{"name": "frequency", "unit": "cpd", "label": "Spatial frequency"}],
            "version": asked.version,
            "prompts": [prompt.to_dict() for prompt in experiment.prompts],
            "asking": experiment.asking.to_dict(),
            "delivery": experiment.delivery.to_dict(),
            "size": list(asked.scene.size),
            "ppd": asked.scene.ppd,
        },
        software=software_versions(),
    )


def begin(store: Store, asked: AskedInWords) -> RunRecord:
    """Open the run in a store, or go on with it.

    Parameters
    ----------
    store : Store
        Opened.
    asked : AskedInWords
        What is asked of whom.

    Returns
    -------
    RunRecord
        As it was begun.
    """
    record, card = record_of(asked), asked.observer.card
    store.keep("display", {record.display_digest: asked.experiment.display.to_dict()})
    store.keep("observer", {card.digest: card.to_dict()})
    return store.begin(record)


@dataclass(frozen=True)
class _Entry:
    """One question of a run."""

    number: int
    trial: Trial
    order: int
    shown: str
    question: AskedQuestion


class _Writer:
    """Writes what came, soon after it came: a question that hangs must not hold back the answers to others.

    An observer may draw images in a thread of its own, so queues hold what is not written yet.
    """

    def __init__(self, store: AnswerStore) -> None:
        self._store = store
        self._answers: deque[tuple[AskedQuestion, Answer]] = deque()
        self._contents: deque[tuple[str, str, Any]] = deque()
        self._one_at_a_time, self._end = Lock(), Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._write_now_and_then, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._write()

    def keep(self, question: AskedQuestion, answer: Answer) -> None:
        self._answers.append((question, answer))
        if self._failure is not None:
            raise self._failure
        if len(self._answers) >= _WRITTEN_TOGETHER:
            self._write()

    def show(self, name: str, measured: Mapping[str, Any]) -> None:
        self._contents.append((name, "shown", measured))

    def _write_now_and_then(self) -> None:
        while not self._end.wait(_WRITTEN_EVERY):
            try:
                self._write()
            except Exception as failure:
                self._failure = failure
                return

    def _write(self) -> None:
        with self._one_at_a_time:
            # By place and not by iteration: another thread may append meanwhile.
            answers = [self._answers[i] for i in range(len(self._answers))]
            # What was shown is queued before it is asked about, so no answer is written without it.
            contents = [self._contents[i] for i in range(len(self._contents))]
            if answers or contents:
                self._store.add(answers, contents)
            # Only what is written is forgotten: after a failure all of it is tried again.
            for queue, written in ((self._answers, answers), (self._contents, contents)):
                for _ in written:
                    queue.popleft()


class Questioning:
    """The course of one run.

    Parameters
    ----------
    store : Store
        Opened; what it holds is not asked again.
    asked : AskedInWords
        What is asked of whom.
    run : str
        Key of the run.
    """

    def __init__(self, store: Store, asked: AskedInWords, run: str) -> None:
        self._answers = AnswerStore(store)
        self._asked, self._run = asked, run
        self._experiment, self._scene = asked.experiment, asked.scene
        self._sittings = [Sitting(self._experiment, asked.task, i) for i in range(len(self._experiment.prompts))]
        self._prompts = [self._prompt(prompt) for prompt in self._experiment.prompts]
        self._answers.add(contents=[(digest(content), "prompt", content) for content in self._prompts])
        self._prompt_digests = [digest(content) for content in self._prompts]
        self._length = 0

    def run(self, bar: Any) -> int:
        """Ask all that is to be asked.

        Parameters
        ----------
        bar : tqdm
            Counts questions.

        Returns
        -------
        int
            Questions in the run.
        """
        while trials := [trial for sitting in self._sittings for trial in sitting.next()]:
            undecided = {i for i, sitting in enumerate(self._sittings) if sitting.readout is None}
            pilot = [trial for trial in trials if trial.check and trial.prompt in undecided]
            chosen = set(pilot)
            heard: dict[tuple[Trial, int], _Entry] = {}
            for part in (pilot, [trial for trial in trials if trial not in chosen]):
                entries = self._entries(part)
                heard |= {(entry.trial, entry.order): entry for entry in entries}
                self._put(entries, bar)
                if part is pilot:
                    self._decide(entries)
            self._tell(trials, heard)
        return self._length

    def estimates(self) -> dict[str, Any]:
        """What the designs themselves have found, by prompt."""
        found = {sitting.prompt.id: sitting.estimate() for sitting in self._sittings}
        return {name: estimate for name, estimate in found.items() if estimate is not None}

    # -- planning ----------------------------------------------------------------------------------------------------

    def _entries(self, trials: Sequence[Trial]) -> list[_Entry]:
        """The questions of trials, image by image."""
        seed = self._experiment.asking.seed
        pairs = sorted(
            ((trial, order) for trial in trials for order in self._asked.orders),
            key=lambda pair: (derived_seed(seed, "order", *place(pair[0])), pair[1], pair[0].prompt),
        )
        entries, names = [], {}
        for trial, order in pairs:
            image = (*place(trial), order)
            if image not in names:
                names[image] = digest(self._scene.identity(self._shown(trial, order)))
            question = AskedQuestion(
                shown=names[image],
                prompt=self._prompt_digests[trial.prompt],
                decoding=Decoding(**decodings(self._experiment, trial, self._sittings[trial.prompt].readout)),
                observer=self._asked.observer.card.digest,
                version=self._asked.version,
            )
            entries.append(_Entry(self._length, trial, order, names[image], question))
            self._length += 1
        self._answers.log(self._run, [LoggedTrial(e.number, e.shown, e.question.key, self._about(e)) for e in entries])
        return entries

    def _about(self, entry: _Entry) -> dict[str, Any]:
        trial = entry.trial
        return {
            "prompt": self._experiment.prompts[trial.prompt].id,
            "frequency": trial.level.frequency,
            "contrast": trial.level.contrast,
            "repeat": trial.repeat,
            "order": entry.order,
        }

    def _shown(self, trial: Trial, order: int) -> Shown:
        return self._scene.shown(trial.level.frequency, trial.level.contrast, trial.repeat, order)

    def _prompt(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "prompt": prompt.full,
            "system": self._experiment.asking.system,
            "words": [*prompt.yes, *prompt.no],
        }

    # -- asking ------------------------------------------------------------------------------------------------------

    def _put(self, entries: Sequence[_Entry], bar: Any) -> None:
        """Ask what is not answered yet; every answer is in the store afterwards."""
        questions = {entry.question.key: entry.question for entry in entries}
        missing = self._answers.missing(questions)
        known = self._answers.contents({entry.shown for entry in entries})
        answered = len(entries) - sum(entry.question.key in missing for entry in entries)
        bar.total = (bar.total or 0) + len(entries)
        bar.update(answered)
        with _Writer(self._answers) as writer:
            for inquiry, answer in ask_all(self._asked.observer, self._inquiries(entries, missing, known, writer)):
                writer.keep(questions[inquiry.key], answer)
                answered += 1
                bar.update()
        # The rest was refused, or is asked by another prompt of the same wording.
        bar.update(len(entries) - answered)

    def _inquiries(
        self, entries: Sequence[_Entry], missing: set[str], known: Mapping[str, Any], writer: _Writer
    ) -> Iterator[Inquiry]:
        """Questions, whose images are drawn only when their turn comes; never more than one trial's are kept."""
        # An observer may draw upon this from a thread of its own, so nothing here touches the store.
        left = set(missing)
        drawn = ""
        images: tuple[FloatArray, ...] = ()
        refused = False
        for entry in entries:
            kept = known.get(entry.shown)
            if (kept is not None and kept["refused"]) or (kept is not None and entry.question.key not in left):
                continue
            if entry.shown != drawn:
                drawn = entry.shown
                images, measured = self._scene.draw(
                    self._shown(entry.trial, entry.order), self._asked.observer.delivered
                )
                refused = bool(measured["refused"])
                writer.show(drawn, measured)
            if refused or entry.question.key not in left:
                continue
            left.discard(entry.question.key)
            prompt = self._prompts[entry.trial.prompt]
            yield Inquiry(
                prompt=prompt["prompt"],
                images=images,
                system=prompt["system"],
                decoding=entry.question.decoding,
                words=tuple(prompt["words"]),
                key=entry.question.key,
            )

    # -- what came back ----------------------------------------------------------------------------------------------

    def _decide(self, entries: Sequence[_Entry]) -> None:
        """Let each prompt's answers show which reading of them counts."""
        answers = self._answers.find(entry.question.key for entry in entries)
        heard: dict[int, list[Read]] = {}
        for entry in entries:
            if entry.question.key in answers:
                prompt = self._experiment.prompts[entry.trial.prompt]
                heard.setdefault(entry.trial.prompt, []).append(read_answer(answers[entry.question.key], prompt))
        for index, reads in heard.items():
            self._sittings[index].hear(reads)

    def _tell(self, trials: Sequence[Trial], entries: Mapping[tuple[Trial, int], _Entry]) -> None:
        """Tell every design the answers to this round, in the order in which it asked."""
        if self._experiment.asking.design == "constant":
            return
        answers = self._answers.find(entry.question.key for entry in entries.values())
        shown = self._answers.contents({entry.shown for entry in entries.values()})
        for trial in trials:
            prompt = self._experiment.prompts[trial.prompt]
            own = [entries[trial, order] for order in self._asked.orders]
            told = [entry for entry in own if entry.question.key in answers]
            self._sittings[trial.prompt].tell(
                trial,
                [read_answer(answers[entry.question.key], prompt) for entry in told],
                [polarity(prompt, entry.order) for entry in told],
                float(shown[own[0].shown]["delivered_contrast"] or 0),
            )
