"""Logs of inspect-ai: runs written as its logs, and its logs of our tasks read as answers."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe import __version__
from psyprobe.analysis.words.trial_table import trials
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.output import digest, write_whole
from psyprobe.observers.chat.inspect_chat import answer_of, inspect_card, messages_of
from psyprobe.observers.chat.protocol import Answer
from psyprobe.observers.protocol import Card
from psyprobe.probes import build_result, load_probe
from psyprobe.probes.words.answer_table import Readout, read_answer, response_value
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.bridges.turns import Replies, Turn, key_of, numbers_of, prompts_of, turns_of

if TYPE_CHECKING:
    import xarray

#: Under which what is ours stands in the metadata of a log.
KEY = "psyprobe"
SUFFIXES = (".eval", ".json")
#: What inspect-ai calls the end of a reply, by what `Answer` calls it.
_STOPS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}


def write_inspect_log(
    record: RunRecord, store: Store, output: str | Path, folder: str | Path = "."
) -> int:
    """Write a finished run as a log of inspect-ai: a sample a question, with images, reply, its
    reading, and tokens.

    Parameters
    ----------
    record : RunRecord
        Of the run, finished.
    store : Store
        That holds its answers.
    output : str or Path
        .eval, inspect-ai's own form, or .json.
    folder : str or Path
        In which files that the page names are looked for.

    Returns
    -------
    int
        Samples.

    Raises
    ------
    InputError
        As `turns_of`, or the ending is another.
    """
    path = Path(output)
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"{path} ends in {path.suffix!r}; give .eval or .json, the forms of inspect-ai's logs"
        )
    log = _inspect("log")
    told = _inspect("model")
    model = record.observer.replace(":", "/", 1)
    result = build_result(record, store)
    heard = _heard(record, result)
    prompts = prompts_of(record)
    samples = []
    resized = False
    for turn in turns_of(record, store, Path(folder)):
        samples.append(
            _sample(
                turn,
                model,
                key_of(turn, prompts),
                heard.get(turn.about.get("item", turn.inquiry.key)),
            )
        )
        resized |= turn.resized
    used = Counter[str]()
    for one in samples:
        used.update(
            {
                name: getattr(one.output.usage, name)
                for name in ("input_tokens", "output_tokens", "total_tokens")
            }
        )
    name = digest(record.key)[:22]
    page = {
        "experiment": record.experiment,
        "page": record.experiment_toml,
        "card": dict(record.observer_card),
    }
    numbers = {
        key: log.EvalMetric(name=key, value=value) for key, value in numbers_of(result).items()
    }
    started, finished = (_time(each) for each in (record.started, record.finished))
    found = log.EvalLog(
        status="success",
        eval=log.EvalSpec(
            created=started,
            task=f"psyprobe/{record.probe}",
            task_id=name,
            run_id=name,
            eval_id=name,
            dataset=log.EvalDataset(
                name=record.experiment,
                samples=len(samples),
                sample_ids=[sample.id for sample in samples],
            ),
            model=model,
            config=log.EvalConfig(),
            packages={"psyprobe": __version__},
            metadata={KEY: {**page, "resized": resized}},
        ),
        results=log.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[
                log.EvalScore(name=record.probe, scorer="psyprobe/reply_reader", metrics=numbers)
            ],
        ),
        stats=log.EvalStats(
            started_at=started, completed_at=finished, model_usage={model: told.ModelUsage(**used)}
        ),
        samples=samples,
    )
    form = path.suffix[1:]
    write_whole(path, lambda partial: log.write_eval_log(found, str(partial), format=form))
    return len(samples)


def read_inspect_log(path: str | Path, page: Experiment | None = None) -> Replies:
    """The answers in a log of inspect-ai, .eval or .json, of one of our tasks or one that
    `write_inspect_log` wrote.

    Parameters
    ----------
    path : str or Path
        Of the log; a task that was stopped or failed has one too.
    page : Experiment, optional
        What was asked; by default the page in the log, which finds its files beside the log.

    Raises
    ------
    InputError
        It is no such log, or nobody can say what of the contrast arrived.
    """
    file = Path(path)
    log = _inspect("log")
    try:
        header = log.read_eval_log(str(file), header_only=True)
        samples = list(log.read_eval_log_samples(str(file), all_samples_required=False))
    except Exception as error:  # a zip, JSON and pydantic end in errors of a dozen kinds
        raise InputError(
            f"{file} is no log of inspect-ai: {' '.join(str(error).split())[:120]}"
        ) from None
    about = (header.eval.metadata or {}).get(KEY)
    if not isinstance(about, dict) or not {"experiment", "page"} <= about.keys():
        raise InputError(
            f"{file} is a log of the task {header.eval.task!r:.60}, and none of psyprobe's; "
            "evaluate psyprobe/csf"
        )
    if about.get("resized"):
        raise InputError(
            f"{file} was written of a run whose observer resizes what it is sent, so that what "
            "arrived of the contrast "
            "stands in its store alone; read that"
        )
    if any(sample.epoch > 1 for sample in samples):
        raise InputError(
            f"{file} has several epochs; each question counts once: set asking.repeats for more "
            "trials"
        )
    card = about.get("card")
    return Replies(
        experiment=page or experiment_from_text(about["page"], about["experiment"], file.parent),
        card=inspect_card(header.eval.model, about.get("input_size"))
        if card is None
        else Card.from_dict(card),
        answers={
            str(one.id): answer_of(one.output)
            for one in samples
            if one.error is None and one.output.choices
        },
    )


def read_as(
    answer: Answer, prompt: Prompt, order: int, alternatives: int, readout: Readout
) -> dict[str, Any]:
    """How a reply is read, as the fields of inspect-ai's ``Score``.

    The value is 1 where it says that the pattern is there (of two images: where it is), 0 where it
    says the contrary, a probability where that is what counts, and NaN, which inspect-ai takes for
    unscored, where it says neither.
    """
    wording, polarity = prompt.interpret(order, alternatives)
    read = read_answer(answer, wording)
    return {
        "value": response_value(read, readout, polarity),
        "answer": read.text,
        "explanation": answer.text,
        "metadata": {"reply": answer.to_dict()},
    }


def _heard(record: RunRecord, result: xarray.Dataset) -> dict[str, dict[str, Any]]:
    """What counted of each reply: of trials by the key of the question, of items by its name."""
    if "trials" in record.outcome:
        keys = [trial["key"] for trial in record.outcome["trials"]]
        table = trials(result)
        columns = [table[name].values.tolist() for name in ("response", "reading")]
        values = zip(keys, *columns, strict=True)
        return {key: {"value": value, "answer": str(reading)} for key, value, reading in values}
    marks = getattr(load_probe(record.probe), "marks", None)
    return (
        {} if marks is None else {name: {"value": value} for name, value in marks(result).items()}
    )


def _sample(turn: Turn, model: str, target: str, heard: Mapping[str, Any] | None) -> Any:
    told = _inspect("model")
    answer = turn.answer or Answer("")
    messages = messages_of(turn.inquiry)
    thought = [told.ContentReasoning(reasoning=answer.thinking)] if answer.thinking else []
    reply = told.ChatMessageAssistant(
        content=[*thought, told.ContentText(text=answer.text)] if thought else answer.text,
        model=answer.model or model,
    )
    taken = answer.tokens_in or 0
    given = answer.tokens_out or 0
    usage = told.ModelUsage(
        input_tokens=taken,
        output_tokens=given,
        total_tokens=taken + given,
        reasoning_tokens=answer.tokens_thinking,
        total_cost=answer.cost,
    )
    listed = [
        told.TopLogprob(token=token, logprob=logprob)
        for token, logprob in answer.first_tokens or ()
    ]
    first = [
        told.Logprob(token=one.token, logprob=one.logprob, top_logprobs=listed)
        for one in listed[:1]
    ]
    choice = told.ChatCompletionChoice(
        message=reply,
        stop_reason=_STOPS.get(answer.finish, "unknown"),
        logprobs=told.Logprobs(content=first) if first else None,
    )
    score = None if heard is None else _inspect("scorer").Score(**heard, explanation=answer.text)
    return _inspect("log").EvalSample(
        id=turn.id,
        epoch=1,
        input=messages,
        target=target,
        messages=[*messages, reply],
        output=told.ModelOutput(
            model=answer.model or model,
            choices=[choice],
            usage=usage,
            time=answer.latency,
            metadata=_rest(answer),
        ),
        scores=None if score is None else {"reply_reader": score},
        metadata={**turn.about, "decoding": turn.inquiry.decoding.to_dict()},
        model_usage={model: usage},
        total_time=answer.latency,
    )


def _rest(answer: Answer) -> dict[str, Any]:
    """What inspect-ai has no place for."""
    return {
        KEY: {
            name: value
            for name, value in answer.to_dict().items()
            if name not in ("text", "first_tokens")
        }
    }


def _time(told: str | None) -> str:
    return told or "1970-01-01T00:00:00+00:00"


def _inspect(name: str) -> Any:
    return importlib.import_module(f"inspect_ai.{name}")
