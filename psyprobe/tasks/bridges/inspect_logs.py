"""Logs of inspect-ai: write runs as its logs, and read answers from its logs of our tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe import __version__
from psyprobe.analysis.words.trial_table import trials
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.arrays import check_members
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest, write_whole
from psyprobe.observers.chat.inspect_chat import answer_of, inspect_card, messages_of
from psyprobe.observers.chat.protocol import REFUSED, Answer
from psyprobe.observers.protocol import Card
from psyprobe.probes import build_result, load_probe
from psyprobe.probes.words.answer_table import Readout, read_answer, response_value
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.bridges.turns import (
    Replies,
    Turn,
    score_numbers,
    turns_of,
)

if TYPE_CHECKING:
    import xarray

#: Key of psyprobe's own data in the metadata of a log.
KEY = "psyprobe"
#: Most bytes of an unpacked sample, or of another file in a log.
_MAX_BYTES = 100_000_000
_NO_TIME = "1970-01-01T00:00:00+00:00"
#: inspect-ai's names of stop reasons, by those of `Answer`.
_STOP_REASONS = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
    REFUSED: "content_filter",
}


def write_inspect_log(
    record: RunRecord, store: Store, output: str | Path, folder: str | Path = "."
) -> int:
    """Write a finished run as a log of inspect-ai, and return the number of its samples.

    Each question is a sample, with its images, the reply, how it was read, and its tokens.

    Parameters
    ----------
    record : RunRecord
        The run.
    store : Store
        The store that holds its answers.
    output : str or Path
        The log, whose name ends in .eval.
    folder : str or Path
        The folder for files that the page names.

    Raises
    ------
    InputError
        `turns_of` cannot read the run.
    """
    from inspect_ai import log
    from inspect_ai import model as inspect_model

    model = record.observer.replace(":", "/", 1)
    result = build_result(record, store)
    scores = _reply_scores(record, result)
    samples = []
    resized = False
    for turn in turns_of(record, store, Path(folder)):
        score = scores.get(turn.description.get("item", turn.inquiry.key))
        samples.append(_build_sample(turn, model, score))
        resized |= turn.resized
    usages = (sample.output.usage for sample in samples)
    usage = sum(usages, inspect_model.ModelUsage())
    run_id = digest(record.key)[:22]
    metadata = {
        "experiment": record.experiment,
        "page": record.experiment_toml,
        "card": dict(record.observer_card),
        "resized": resized,
    }
    metrics = {
        name: log.EvalMetric(name=name, value=value)
        for name, value in score_numbers(result).items()
    }
    started = record.started or _NO_TIME
    finished = record.finished or _NO_TIME
    evaluation = log.EvalLog(
        status="success",
        eval=log.EvalSpec(
            created=started,
            task=f"psyprobe/{record.probe}",
            task_id=run_id,
            run_id=run_id,
            eval_id=run_id,
            dataset=log.EvalDataset(
                name=record.experiment,
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
            ),
            model=model,
            config=log.EvalConfig(),
            packages={"psyprobe": __version__},
            metadata={KEY: metadata},
        ),
        results=log.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[
                log.EvalScore(
                    name=record.probe, scorer="psyprobe/reply_reader", metrics=metrics
                )
            ],
        ),
        stats=log.EvalStats(
            started_at=started,
            completed_at=finished,
            model_usage={model: usage},
        ),
        samples=samples,
    )
    write_whole(
        Path(output),
        lambda partial: log.write_eval_log(evaluation, str(partial), format="eval"),
    )
    return len(samples)


def read_inspect_log(path: str | Path, page: Experiment | None = None) -> Replies:
    """Read the answers in a log of inspect-ai that asked psyprobe's questions.

    Parameters
    ----------
    path : str or Path
        The log, .eval or .json; a task that was stopped or failed has one too.
    page : Experiment, optional
        The experiment; by default the page in the log, which finds its files beside the log.

    Raises
    ------
    InputError
        It is no such log, or the delivered contrast is unknown.
    """
    from inspect_ai import log

    file = Path(path)
    try:
        if file.suffix == ".eval":
            check_members(file, _MAX_BYTES)
        header = log.read_eval_log(str(file), header_only=True)
        samples = list(log.read_eval_log_samples(str(file), all_samples_required=False))
    except (
        Exception
    ) as error:  # a zip, JSON and pydantic end in errors of a dozen kinds
        raise InputError(
            f"{file} is no log of inspect-ai: {' '.join(str(error).split())[:120]}"
        ) from None
    metadata = (header.eval.metadata or {}).get(KEY)
    if not isinstance(metadata, dict) or not {"experiment", "page"} <= metadata.keys():
        raise InputError(
            f"{file} is a log of the task {header.eval.task!r:.60}, and none of psyprobe's; "
            "evaluate psyprobe/csf"
        )
    if metadata.get("resized"):
        raise InputError(
            f"{file} was written of a run whose observer resizes what it is sent, so that the "
            "delivered contrast stands in its store alone; read that"
        )
    if any(sample.epoch > 1 for sample in samples):
        raise InputError(
            f"{file} has several epochs; each question counts once: set asking.repeats for more "
            "trials"
        )
    if metadata.get("card") is None:
        card = inspect_card(header.eval.model, metadata.get("input_size"))
    else:
        card = Card.from_dict(metadata["card"])
    if page is None:
        page = experiment_from_text(
            metadata["page"], metadata["experiment"], file.parent
        )
    answers = {
        str(sample.id): answer_of(sample.output)
        for sample in samples
        if sample.error is None and sample.output.choices
    }
    return Replies(page, card, answers)


def score_fields(
    answer: Answer, prompt: Prompt, order: int, alternatives: int, readout: Readout
) -> JsonObject:
    """Read a reply to a trial, and return the fields of inspect-ai's `Score`.

    The value is 1 where the reply says that the pattern is there (or in which of two images it is),
    0 where it says the contrary, a probability with the readout "p_yes", and NaN, which inspect-ai
    takes for unscored, where it says neither.
    """
    interpretation, polarity = prompt.interpret(order, alternatives)
    reading = read_answer(answer, interpretation)
    return {
        "value": response_value(reading, readout, polarity),
        "answer": reading.text,
        "explanation": answer.text,
        "metadata": {"reply": answer.to_dict()},
    }


def _reply_scores(record: RunRecord, result: xarray.Dataset) -> dict[str, JsonObject]:
    """Return the score of each reply, by the question's key or the item's name."""
    if "trials" in record.outcome:
        keys = [trial["key"] for trial in record.outcome["trials"]]
        table = trials(result)
        responses = table["response"].values.tolist()
        readings = table["reading"].values.tolist()
        return {
            key: {"value": response, "answer": str(reading)}
            for key, response, reading in zip(keys, responses, readings, strict=True)
        }
    marks = getattr(load_probe(record.probe), "marks", None)
    if marks is None:
        return {}
    return {name: {"value": value} for name, value in marks(result).items()}


def _build_sample(turn: Turn, model: str, score: JsonMapping | None) -> Any:
    """Build inspect-ai's record of one question, its reply and score."""
    from inspect_ai import log, scorer
    from inspect_ai import model as inspect_model

    answer = turn.answer
    messages = messages_of(turn.inquiry)
    content: Any = answer.text
    if answer.thinking:
        reasoning = inspect_model.ContentReasoning(reasoning=answer.thinking)
        content = [reasoning, inspect_model.ContentText(text=answer.text)]
    reply = inspect_model.ChatMessageAssistant(
        content=content, model=answer.model or model
    )
    input_tokens = answer.tokens_in or 0
    output_tokens = answer.tokens_out or 0
    usage = inspect_model.ModelUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        reasoning_tokens=answer.tokens_thinking,
        total_cost=answer.cost,
    )
    top_logprobs = [
        inspect_model.TopLogprob(token=token, logprob=logprob)
        for token, logprob in answer.first_tokens or ()
    ]
    logprobs = [
        inspect_model.Logprob(**vars(top_logprob), top_logprobs=top_logprobs)
        for top_logprob in top_logprobs[:1]
    ]
    choice = inspect_model.ChatCompletionChoice(
        message=reply,
        stop_reason=_STOP_REASONS.get(answer.finish, "unknown"),
        logprobs=inspect_model.Logprobs(content=logprobs) if logprobs else None,
    )
    scores = None
    if score is not None:
        scores = {"reply_reader": scorer.Score(**score, explanation=answer.text)}
    # inspect-ai has no field for these.
    metadata = answer.to_dict()
    metadata.pop("text", None)
    metadata.pop("first_tokens", None)
    return log.EvalSample(
        id=turn.id,
        epoch=1,
        input=messages,
        target=turn.correct,
        messages=[*messages, reply],
        output=inspect_model.ModelOutput(
            model=answer.model or model,
            choices=[choice],
            usage=usage,
            time=answer.latency,
            metadata={KEY: metadata},
        ),
        scores=scores,
        metadata={**turn.description, "decoding": turn.inquiry.decoding.to_dict()},
        model_usage={model: usage},
        total_time=answer.latency,
    )
