"""Files of VLMEvalKit and lmms-eval: write questions and answers as theirs, and read theirs."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment
from psyprobe.files.images import encode_png
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import json_text, make_folder, write_text, write_whole
from psyprobe.files.parsing import packaged_toml
from psyprobe.observers.chat.protocol import Answer, eight_bit
from psyprobe.observers.protocol import Card
from psyprobe.probes import build_result
from psyprobe.probes.words.answer_table import read_answer, response_value
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.bridges.turns import (
    Replies,
    Turn,
    score_numbers,
    turns_of,
)
from psyprobe.tasks.tables import read_answer_table, read_json_lines, write_tsv

#: Beginnings of the text by which VLMEvalKit and lmms-eval mark a missing answer.
_FAILED = ("Failed to obtain answer", "[LMMS_EVAL_REQUEST_FAILED")
#: Names of lmms-eval's token counts, by the fields of an answer.
_COUNTS = {
    "tokens_in": "input_tokens",
    "tokens_out": "output_tokens",
    "tokens_thinking": "reasoning_tokens",
}
#: Name of the metric under which lmms-eval logs psyprobe's own data of a sample.
METRIC = "psyprobe"


def write_vlmevalkit_task(
    turns: Iterable[Turn], experiment: Experiment, folder: str | Path
) -> list[Path]:
    """Write questions as a data set of VLMEvalKit, with their experiment file beside it.

    Parameters
    ----------
    turns : iterable of Turn
        The questions.
    experiment : Experiment
        Their experiment.
    folder : str or Path
        Takes NAME.tsv, to be copied into VLMEvalKit's ``$LMUData``, and NAME.toml, to be read with
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
    rows = []
    first_rows: dict[str, int] = {}
    for index, turn in enumerate(turns, 1):
        _check_plain(turn, "VLMEvalKit")
        encoded_images = [
            base64.b64encode(png).decode() for png in _encode_images(turn)
        ]
        image = encoded_images[0] if len(encoded_images) == 1 else str(encoded_images)
        # VLMEvalKit takes the index of an earlier row in place of the same image.
        cell = str(first_rows[image]) if image in first_rows else image
        first_rows.setdefault(image, index)
        rows.append(_vlmevalkit_row(index, turn) | {"image": cell})
    destination = make_folder(folder)
    table = destination / f"{experiment.name}.tsv"
    write_tsv(pd.DataFrame(rows), table)
    return [table, _write_page(experiment, destination)]


def write_lmms_eval_task(
    turns: Iterable[Turn], experiment: Experiment, folder: str | Path
) -> list[Path]:
    """Write questions as a task of lmms-eval, and return its files but for the images.

    It runs by ``lmms-eval --include_path FOLDER --tasks psyprobe_NAME``.

    Parameters
    ----------
    turns, experiment
        As for `write_vlmevalkit_task`.
    folder : str or Path
        Takes the task (.yaml and .py), its questions (.jsonl), images, and page (NAME.toml).

    Returns
    -------
    list of Path
        The task, its code, its questions and the page.

    Raises
    ------
    InputError
        A question has a system text or examples, for which a task of lmms-eval has no place.
    """
    destination = make_folder(folder)
    images = make_folder(destination / "images")
    lines = []
    tokens = 1
    temperature = 0.0
    image_names: dict[bytes, str] = {}
    for turn in turns:
        _check_plain(turn, "a task of lmms-eval")
        names = []
        for png in _encode_images(turn):
            if png not in image_names:
                image_names[png] = f"{len(image_names) + 1:06d}.png"
                write_whole(
                    images / image_names[png], partial(Path.write_bytes, data=png)
                )
            names.append(image_names[png])
        decoding = turn.inquiry.decoding
        tokens = max(tokens, decoding.max_tokens)
        temperature = decoding.temperature
        line = {
            "id": turn.id,
            "images": names,
            "question": turn.inquiry.prompt,
            "answer": turn.correct,
            **_description(turn),
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    task = f"psyprobe_{experiment.name}"
    questions = destination / "questions.jsonl"
    page = destination / f"{task}.yaml"
    code = destination / "psyprobe_questions.py"
    write_text(questions, "\n".join(lines) + "\n")
    templates = packaged_toml("psyprobe.tasks.bridges", "lmms_eval_task.toml")
    fields = {
        "TASK": task,
        "QUESTIONS": str(questions.resolve()),
        "TOKENS": str(tokens),
        "TEMPERATURE": f"{temperature:g}",
        "SAMPLED": str(temperature > 0).lower(),
    }
    text = re.sub(r"\w+", lambda word: fields.get(word[0], word[0]), templates["task"])
    write_text(page, text)
    write_text(code, templates["code"])
    return [page, code, questions, _write_page(experiment, destination)]


def write_predictions(
    record: RunRecord, store: Store, output: str | Path, folder: str | Path = "."
) -> int:
    """Write a finished run as a prediction file of VLMEvalKit, and return the number of rows.

    Parameters
    ----------
    record, store, folder
        As for `write_inspect_log`.
    output : str or Path
        The file, whose name ends in .xlsx.
    """
    rows = [
        _vlmevalkit_row(index, turn) | {"prediction": turn.answer.text}
        for index, turn in enumerate(turns_of(record, store, Path(folder)), 1)
    ]
    write_whole(Path(output), partial(_write_xlsx, pd.DataFrame(rows)))
    return len(rows)


def read_predictions(path: str | Path, page: Experiment, card: Card) -> Replies:
    """Read the answers in a prediction file of VLMEvalKit or a similar table.

    Parameters
    ----------
    path : str or Path
        .xlsx, .tsv, .csv, .json or .jsonl with the columns "id" and "prediction".
    page : Experiment
        The page that lay beside the task.
    card : Card
        The observer that answered.

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
    answers = {
        str(turn_id): Answer(str(text), server=card.weights)
        for turn_id, text in zip(table["id"], table["prediction"], strict=True)
        if not str(text).startswith(_FAILED)
    }
    return Replies(page, card, answers)


def write_lmms_eval_results(
    record: RunRecord, store: Store, output: str | Path, folder: str | Path = "."
) -> int:
    """Write a finished run as results and samples of lmms-eval, and count the samples.

    The files are MODEL/DATE_results.json and MODEL/DATE_samples_TASK.jsonl.

    Parameters
    ----------
    record, store, folder
        As for `write_inspect_log`.
    output : str or Path
        The folder in which that of the model is made.
    """
    task = f"psyprobe_{record.experiment}"
    model = re.sub(r"[^A-Za-z0-9._-]+", "__", record.observer)
    date = re.sub(r"\D", "", record.started or "")[:14]
    stamp = f"{date[:8]}_{date[8:]}"
    lines = []
    for number, turn in enumerate(turns_of(record, store, Path(folder))):
        sample = {
            "doc_id": number,
            "target": turn.correct,
            "filtered_resps": [turn.answer.text],
            "input": turn.inquiry.prompt,
            METRIC: {"id": turn.id, "reply": turn.answer.text, **_description(turn)},
            # lmms-eval itself would count "Yes." as another word than "yes".
            **_trial_score(turn),
        }
        lines.append(json.dumps(sample, ensure_ascii=False))
    numbers = score_numbers(build_result(record, store))
    results = {
        "results": {
            task: {
                "alias": task,
                **{f"{name},none": value for name, value in numbers.items()},
            }
        },
        "versions": {task: record.layout["version"]},
        "n-samples": {task: {"original": len(lines), "effective": len(lines)}},
        "config": {"model": "psyprobe", "model_args": record.observer},
        "model_name": record.observer,
        "model_name_sanitized": model,
        "date": stamp,
    }
    destination = make_folder(Path(output) / model)
    write_text(destination / f"{stamp}_samples_{task}.jsonl", "\n".join(lines) + "\n")
    write_text(destination / f"{stamp}_results.json", json_text(results))
    return len(lines)


def read_lmms_eval_samples(path: str | Path, page: Experiment, card: Card) -> Replies:
    """Read the answers in samples that lmms-eval logged of psyprobe's questions.

    Parameters
    ----------
    path : str or Path
        DATE_samples_TASK.jsonl, which ``--log_samples`` writes.
    page, card
        As for `read_predictions`.

    Raises
    ------
    InputError
        A line is no sample of such a task.
    """
    answers: dict[str, Answer] = {}
    for number, line in read_json_lines(path):
        sample = line.get(METRIC) if isinstance(line, dict) else None
        if not isinstance(sample, dict) or not {"id", "reply"} <= sample.keys():
            raise InputError(
                f"{path}, line {number}, is no sample of a task that psyprobe wrote for lmms-eval"
            )
        text = str(sample["reply"])
        if not text.startswith(_FAILED):
            counts = _token_counts(line.get("token_counts"))
            answers[str(sample["id"])] = Answer(text, server=card.weights, **counts)
    return Replies(page, card, answers)


def harness_card(name: str, harness: str, input_size: int | None = None) -> Card:
    """Build the card of a model that another harness asked.

    Parameters
    ----------
    name : str
        The model's name.
    harness : str
        The harness: "vlmevalkit" or "lmms-eval".
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


def _token_counts(counts: Any) -> JsonObject:
    """Read lmms-eval's token counts of a sample, as fields of `Answer`."""
    if not (isinstance(counts, list) and counts and isinstance(counts[0], dict)):
        return {}
    fields = {name: counts[0].get(count_name) for name, count_name in _COUNTS.items()}
    # lmms-eval writes 0 for no thinking as for thinking that was not counted.
    return {
        name: count
        for name, count in fields.items()
        if isinstance(count, int) and (count or name != "tokens_thinking")
    }


def _trial_score(turn: Turn) -> dict[str, float]:
    """Score the reply to a trial: 1 if right, 0 if wrong, {} if it says neither."""
    trial = turn.description
    if turn.wording is None:
        return {}
    prompt, polarity = turn.wording.interpret(trial["order"], trial["alternatives"])
    response = response_value(read_answer(turn.answer, prompt), "text", polarity)
    if math.isnan(response):
        return {}
    return {"score": response if trial["contrast"] > 0 else 1 - response}


def _check_plain(turn: Turn, harness: str) -> None:
    """Refuse a question with system text or examples, which a harness has no place for."""
    if turn.inquiry.system or turn.inquiry.examples:
        content = "a system text" if turn.inquiry.system else "examples"
        raise InputError(
            f"the page asks with {content}, for which {harness} has no place; leave it out of "
            "[asking]"
        )


def _encode_images(turn: Turn) -> Iterator[bytes]:
    """Encode the images of a question as PNG."""
    for image in turn.inquiry.images:
        yield encode_png(eight_bit(image), noise=True)


def _vlmevalkit_row(index: int, turn: Turn) -> JsonObject:
    """Build VLMEvalKit's table row of one question."""
    return {
        "index": index,
        "id": turn.id,
        "question": turn.inquiry.prompt,
        # VLMEvalKit compares with "Yes", capital included.
        "answer": turn.correct.capitalize(),
        **_description(turn),
    }


def _description(turn: Turn) -> JsonObject:
    """Select what describes a question's stimulus and order, for a table."""
    return {
        name: value
        for name, value in turn.description.items()
        if name not in ("image_seed", "text_asked")
    }


def _write_page(experiment: Experiment, folder: Path) -> Path:
    """Write the experiment's TOML page to a folder, and return its path."""
    path = folder / f"{experiment.name}.toml"
    write_text(path, experiment.toml)
    return path


def _write_xlsx(table: pd.DataFrame, path: Path) -> None:
    """Write a table as an Excel workbook, or say that openpyxl is missing."""
    try:
        table.to_excel(path, index=False, engine="openpyxl")
    except ImportError:
        raise PsyprobeError(
            "writing .xlsx needs openpyxl: pip install 'psyprobe[excel]'"
        ) from None
