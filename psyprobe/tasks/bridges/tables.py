"""Files of VLMEvalKit and lmms-eval: our questions as their tasks, our answers as their results,
and theirs as ours.
"""

from __future__ import annotations

import base64
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.images import encode_png
from psyprobe.files.output import json_text, make_folder, write_text, write_whole
from psyprobe.observers.chat.protocol import Answer, eight_bit
from psyprobe.observers.protocol import Card
from psyprobe.probes import build_result
from psyprobe.probes.words.answer_table import read_answer, response_value
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.bridges.turns import Replies, Turn, key_of, numbers_of, prompts_of, turns_of
from psyprobe.tasks.tables import read_answer_table, read_json_lines, write_tsv

#: What stands in place of an answer that VLMEvalKit, or lmms-eval, did not get.
_FAILED = ("Failed to obtain answer", "[LMMS_EVAL_REQUEST_FAILED")
#: Fields of an answer, by the names of lmms-eval's counts of tokens.
_COUNTS = {
    "tokens_in": "input_tokens",
    "tokens_out": "output_tokens",
    "tokens_thinking": "reasoning_tokens",
}
#: Under which lmms-eval keeps what a task of ours says of each of its samples.
METRIC = "psyprobe"


# -- questions
# -------------------------------------------------------------------------------------------------------


def write_vlmevalkit_task(
    turns: Iterable[Turn], experiment: Experiment, folder: str | Path
) -> list[Path]:
    """Write questions as a data set of VLMEvalKit, and their page beside it.

    Parameters
    ----------
    turns : iterable of Turn
        Of one experiment.
    experiment : Experiment
        Which that is.
    folder : str or Path
        For NAME.tsv, to be copied into VLMEvalKit's ``$LMUData``, and NAME.toml, to be read with
        the predictions.

    Returns
    -------
    list of Path
        Both files.

    Raises
    ------
    InputError
        A question has a system text or examples, for which VLMEvalKit has no place.
    """
    prompts = (
        {prompt.id: prompt for prompt in experiment.asking.prompts} if experiment.asking else {}
    )
    rows: list[dict[str, Any]] = []
    first: dict[str, int] = {}
    for index, turn in enumerate(turns, 1):
        _check_plain(turn, "VLMEvalKit")
        pictures = [base64.b64encode(png).decode() for png in _pngs(turn)]
        image = pictures[0] if len(pictures) == 1 else str(pictures)
        # An image that comes again stands in its first row alone, as VLMEvalKit has it.
        shown = str(first[image]) if image in first else image
        first.setdefault(image, index)
        rows.append(
            {"index": index, "id": turn.id, "image": shown, "question": turn.inquiry.prompt}
            # Whoever counts there compares with "Yes", letter by letter.
            | {"answer": key_of(turn, prompts).capitalize()}
            | _told(turn)
        )
    place = make_folder(folder)
    table = place / f"{experiment.name}.tsv"
    write_tsv(pd.DataFrame(rows), table)
    return [table, _page(experiment, place)]


def write_lmms_eval_task(
    turns: Iterable[Turn], experiment: Experiment, folder: str | Path
) -> list[Path]:
    """Write questions as a task of lmms-eval: ``lmms-eval --include_path FOLDER --tasks
    psyprobe_NAME``.

    Parameters
    ----------
    turns, experiment
        As for `write_vlmevalkit_task`.
    folder : str or Path
        For the task (.yaml and .py), its questions (.jsonl), the images, and the page (NAME.toml).

    Returns
    -------
    list of Path
        The files, without the images.

    Raises
    ------
    InputError
        A question has a system text or examples, for which a task of lmms-eval has no place.
    """
    prompts = (
        {prompt.id: prompt for prompt in experiment.asking.prompts} if experiment.asking else {}
    )
    place = make_folder(folder)
    images = make_folder(place / "images")
    lines = []
    tokens = 1
    temperature = 0.0
    known: dict[bytes, str] = {}
    for turn in turns:
        _check_plain(turn, "a task of lmms-eval")
        names = []
        for png in _pngs(turn):
            if png not in known:
                known[png] = f"{len(known) + 1:06d}.png"
                write_whole(images / known[png], partial(_bytes, png))
            names.append(known[png])
        decoding = turn.inquiry.decoding
        tokens = max(tokens, decoding.max_tokens)
        temperature = decoding.temperature
        told = {
            "id": turn.id,
            "images": names,
            "question": turn.inquiry.prompt,
            "answer": key_of(turn, prompts),
        }
        lines.append(json.dumps({**told, **_told(turn)}, ensure_ascii=False))
    task = f"psyprobe_{experiment.name}"
    questions = place / "questions.jsonl"
    page = place / f"{task}.yaml"
    code = place / "psyprobe_questions.py"
    write_text(questions, "\n".join(lines) + "\n")
    written = tomllib.loads(
        files("psyprobe.tasks.bridges").joinpath("lmms_eval_task.toml").read_text(encoding="utf-8")
    )
    filled = {
        "TASK": task,
        "QUESTIONS": str(questions.resolve()),
        "TOKENS": str(tokens),
        "TEMPERATURE": f"{temperature:g}",
        "SAMPLED": str(temperature > 0).lower(),
    }
    words = r"\b(?:" + "|".join(filled) + r")\b"
    write_text(page, re.sub(words, lambda found: filled[found.group()], written["task"]))
    write_text(code, written["code"])
    return [page, code, questions, _page(experiment, place)]


# -- answers
# ---------------------------------------------------------------------------------------------------------


def write_predictions(
    record: RunRecord, store: Store, output: str | Path, folder: str | Path = "."
) -> int:
    """Write a finished run as predictions of VLMEvalKit: index, question, answer, prediction, and
    what each trial was.

    Parameters
    ----------
    record, store, folder
        As for `write_inspect_log`.
    output : str or Path
        .xlsx, or .tsv or .json, the other two forms that VLMEvalKit takes.

    Returns
    -------
    int
        Rows.
    """
    path = Path(output)
    prompts = prompts_of(record)
    if path.suffix not in _PREDICTIONS:
        raise InputError(
            f"{path} ends in {path.suffix!r}; give {', '.join(_PREDICTIONS)}, as VLMEvalKit's "
            "predictions"
        )
    rows = []
    for index, turn in enumerate(turns_of(record, store, Path(folder)), 1):
        told = {"index": index, "id": turn.id, "question": turn.inquiry.prompt}
        told["answer"] = key_of(turn, prompts).capitalize()
        rows.append({**told, **_told(turn), "prediction": turn.answer.text if turn.answer else ""})
    write_whole(path, partial(_PREDICTIONS[path.suffix], pd.DataFrame(rows)))
    return len(rows)


def read_predictions(path: str | Path, page: Experiment, card: Card) -> Replies:
    """The answers in a prediction file of VLMEvalKit, or in another table that kept the columns of
    our task.

    Parameters
    ----------
    path : str or Path
        .xlsx, .tsv, .csv, .json or .jsonl with the columns "id" and "prediction".
    page : Experiment
        The page that lay beside the task.
    card : Card
        Who answered.

    Raises
    ------
    InputError
        A column is missing.
    """
    table = read_answer_table(path)
    for name in ("id", "prediction"):
        if name not in table:
            raise InputError(
                f"{path} has no column {name!r}; it needs that of the task as psyprobe wrote it"
            )
    given = zip(table["id"], table["prediction"], strict=True)
    told = {
        str(i): Answer(str(text), server=card.weights)
        for i, text in given
        if not str(text).startswith(_FAILED)
    }
    return Replies(page, card, told)


def write_lmms_eval_results(
    record: RunRecord, store: Store, output: str | Path, folder: str | Path = "."
) -> int:
    """Write a finished run as lmms-eval does: MODEL/DATE_results.json and
    MODEL/DATE_samples_TASK.jsonl.

    Parameters
    ----------
    record, store, folder
        As for `write_inspect_log`.
    output : str or Path
        The folder in which that of the model is made.

    Returns
    -------
    int
        Samples.
    """
    prompts = prompts_of(record)
    task = f"psyprobe_{record.experiment}"
    model = re.sub(r"[^A-Za-z0-9._-]+", "__", record.observer)
    date = re.sub(r"\D", "", record.started or "")[:14]
    stamp = f"{date[:8]}_{date[8:]}"
    lines = []
    for number, turn in enumerate(turns_of(record, store, Path(folder))):
        reply = turn.answer.text if turn.answer else ""
        told = {
            "doc_id": number,
            "target": key_of(turn, prompts),
            "filtered_resps": [reply],
            "input": turn.inquiry.prompt,
            METRIC: {"id": turn.id, "reply": reply, **_told(turn)},
            # For whoever compares runs there; without it, "Yes." would count as another word than
            # "yes".
            **_right(turn, prompts),
        }
        lines.append(json.dumps(told, ensure_ascii=False))
    numbers = numbers_of(build_result(record, store))
    results = {
        "results": {
            task: {"alias": task, **{f"{name},none": value for name, value in numbers.items()}}
        },
        "versions": {task: record.layout["version"]},
        "n-samples": {task: {"original": len(lines), "effective": len(lines)}},
        "config": {"model": "psyprobe", "model_args": record.observer},
        "model_name": record.observer,
        "model_name_sanitized": model,
        "date": stamp,
    }
    place = make_folder(Path(output) / model)
    write_text(place / f"{stamp}_samples_{task}.jsonl", "\n".join(lines) + "\n")
    write_text(place / f"{stamp}_results.json", json_text(results))
    return len(lines)


def read_lmms_eval_samples(path: str | Path, page: Experiment, card: Card) -> Replies:
    """The answers in the samples that lmms-eval logs (``--log_samples``) of a task that
    `write_lmms_eval_task` wrote.

    Parameters
    ----------
    path : str or Path
        DATE_samples_TASK.jsonl.
    page, card
        As for `read_predictions`.

    Raises
    ------
    InputError
        A line is no sample of such a task.
    """
    told: dict[str, Answer] = {}
    for number, line in read_json_lines(path):
        ours = line.get(METRIC) if isinstance(line, dict) else None
        if not isinstance(ours, dict) or not {"id", "reply"} <= ours.keys():
            raise InputError(
                f"{path}, line {number}, is no sample of a task that psyprobe wrote for lmms-eval"
            )
        text = str(ours["reply"])
        if not text.startswith(_FAILED):
            told[str(ours["id"])] = Answer(
                text, server=card.weights, **_tokens(line.get("token_counts"))
            )
    return Replies(page, card, told)


def card_elsewhere(name: str, harness: str, input_size: int | None = None) -> Card:
    """The card of a model that another harness asked.

    Parameters
    ----------
    name : str
        What to call it.
    harness : str
        Who asked it, "vlmevalkit" or "lmms-eval".
    input_size : int, optional
        Pixels a side for which the questions were drawn, where a size was given.
    """
    size = None if input_size is None else (input_size, input_size)
    return Card(
        f"{harness}:{name}",
        "answer",
        input_size=size,
        device="elsewhere",
        weights=f"asked by {harness}",
    )


def _tokens(counts: Any) -> dict[str, Any]:
    """What lmms-eval counted of a sample, as fields of an answer; some of its models count
    nothing.
    """
    counted = (
        counts[0] if isinstance(counts, list) and counts and isinstance(counts[0], dict) else {}
    )
    found = {name: counted.get(theirs) for name, theirs in _COUNTS.items()}
    # It writes 0 for no thinking as for thinking that nobody counted.
    return {
        name: n
        for name, n in found.items()
        if isinstance(n, int) and (n or name != "tokens_thinking")
    }


def _right(turn: Turn, prompts: Mapping[str, Prompt]) -> dict[str, float]:
    """Whether the reply to a trial is right by psyprobe's reading, where it says anything."""
    if turn.answer is None or "prompt" not in turn.about:
        return {}
    about = turn.about
    wording, polarity = prompts[about["prompt"]].interpret(about["order"], about["alternatives"])
    there = response_value(read_answer(turn.answer, wording), "text", polarity)
    return {} if math.isnan(there) else {"score": there if about["contrast"] > 0 else 1 - there}


def _check_plain(turn: Turn, who: str) -> None:
    if turn.inquiry.system or turn.inquiry.examples:
        what = "a system text" if turn.inquiry.system else "examples"
        raise InputError(
            f"the page asks with {what}, for which {who} has no place; leave it out of [asking]"
        )


def _pngs(turn: Turn) -> Iterator[bytes]:
    for image in turn.inquiry.images:
        yield encode_png(eight_bit(image), noise=True)


def _told(turn: Turn) -> dict[str, Any]:
    return {
        name: value
        for name, value in turn.about.items()
        if name not in ("image_seed", "text_asked")
    }


def _page(experiment: Experiment, folder: Path) -> Path:
    path = folder / f"{experiment.name}.toml"
    write_text(path, experiment.toml)
    return path


def _bytes(png: bytes, path: Path) -> None:
    path.write_bytes(png)


def _sheet(table: pd.DataFrame, path: Path) -> None:
    try:
        table.to_excel(path, index=False, engine="openpyxl")
    except ImportError:
        raise PsyprobeError(
            "writing .xlsx needs openpyxl: pip install 'psyprobe[excel]', or give .tsv"
        ) from None


def _records(table: pd.DataFrame, path: Path) -> None:
    path.write_text(
        json.dumps(table.to_dict("records"), ensure_ascii=False, indent=4), encoding="utf-8"
    )


_PREDICTIONS: Mapping[str, Any] = {".xlsx": _sheet, ".tsv": write_tsv, ".json": _records}
