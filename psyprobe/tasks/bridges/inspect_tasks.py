"""Experiments as tasks of inspect-ai, found by an entry point: ``inspect eval psyprobe/csf``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    scorer,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.terminal import settings
from psyprobe.observers.chat.inspect_chat import (
    answer_of,
    generate_config,
    inspect_card,
    messages_of,
)
from psyprobe.observers.chat.protocol import Answer, Decoding
from psyprobe.probes.experiments import load_results
from psyprobe.probes.words.answer_table import Readout
from psyprobe.running.store import Store
from psyprobe.tasks.bridges.inspect_logs import KEY, score_fields
from psyprobe.tasks.bridges.turns import (
    Replies,
    questions_of,
    score_numbers,
    store_replies,
)


@task
def csf(
    experiment: str = "hernandez2025",
    readout: Readout = "text",
    input_size: int | None = None,
    set: str | Sequence[str] = (),
) -> Task:
    """Build inspect-ai's task of measuring contrast sensitivity by an experiment's questions.

    Parameters
    ----------
    experiment : str
        A name of psyprobe's catalogue, or the path of a page, whose probe asks in words.
    readout : {"text", "p_yes"}
        What counts in a reply: its words, or the first token's probability of yes, where the
        provider gives it.
    input_size : int, optional
        Pixels a side of the model's input, if you know them: stimuli are then drawn at this size.
    set : str or sequence of str
        Other values of keys of the page, KEY=VALUE, as for ``psyprobe run --set``.
    """
    changes = settings([set] if isinstance(set, str) else list(set), "set")
    page = load_experiment(experiment).with_settings(
        {"asking.readout": readout, **changes}
    )
    if page.asking is None:
        raise InputError(
            f"{page.name} asks nothing in words (probe {page.probe!r}); take one that does"
        )
    card = inspect_card("MODEL", input_size)
    samples = [
        Sample(
            input=messages_of(turn.inquiry),
            id=turn.id,
            target=turn.correct,
            metadata={
                **turn.description,
                "wording": turn.wording.to_dict() if turn.wording else None,
                "decoding": turn.inquiry.decoding.to_dict(),
            },
        )
        for turn in questions_of(page, card)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=page.name),
        solver=ask(),
        scorer=reply_reader(readout),
        metrics=[
            sensitivity(
                page.toml, page.name, str(page.folder), input_size, len(samples)
            )
        ],
        metadata={
            KEY: {"experiment": page.name, "page": page.toml, "input_size": input_size}
        },
    )


@solver
def ask() -> Solver:
    """Build inspect-ai's solver that asks with the experiment's decoding settings."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        decoding = Decoding(**state.metadata["decoding"])
        return await generate(state, **generate_config(decoding, logprobs=True))

    return solve


@scorer(metrics=[])
def reply_reader(readout: Readout = "text") -> Scorer:
    """Build inspect-ai's scorer of replies: 1 for seen, 0 for not seen, unscored for neither."""

    async def score(state: TaskState, target: Target) -> Score:
        metadata = state.metadata
        prompt = Prompt.from_dict(metadata["wording"])
        answer = answer_of(state.output)
        order = metadata["order"]
        return Score(
            **score_fields(answer, prompt, order, metadata["alternatives"], readout)
        )

    return score


@metric
def sensitivity(
    page: str, experiment: str, folder: str, input_size: int | None, questions: int
) -> Metric:
    """Build inspect-ai's metric of sensitivity, 1 / threshold contrast, at each level."""

    def score_all(scores: list[SampleScore]) -> Value:
        if len(scores) < questions:
            return {"questions left": questions - len(scores)}
        answers = {}
        for score in scores:
            reply = (score.score.metadata or {})["reply"]
            answers[str(score.sample_id)] = Answer.from_dict(reply)
        replies = Replies(
            experiment_from_text(page, experiment, Path(folder)),
            inspect_card("MODEL", input_size),
            answers,
        )
        with Store(None) as store:
            counts = store_replies(replies, store, progress=False)
            if counts.unanswered:
                return {"questions left": counts.unanswered}
            return score_numbers(load_results(store)[0])

    return score_all
