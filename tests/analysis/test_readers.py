"""Other readers of the same replies: VLMEvalKit's rule against the oracle, and what scores say of
them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from chat_results import chat_result

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.analysis.score import percent
from psyprobe.analysis.words.readers import first_word, readings_of, reread, vlmevalkit
from psyprobe.analysis.words.score import score_chat
from psyprobe.experiment import load_experiment
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.protocol import Card
from psyprobe.tasks.items import Judge
from psyprobe.tasks.judged_replies import judge_replies


def test_vlmevalkit_reads_as_the_oracle_says(oracle_data: Path) -> None:
    with (oracle_data / "chat_csf" / "yesno_parse_oracle.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        rows = list(csv.DictReader(file))
    theirs = {"unknown": "invalid"}
    wrong = [
        (row["reply"], row["vlmevalkit_exact_rule"])
        for row in rows
        if vlmevalkit(row["reply"], ["yes"], ["no"])
        != theirs.get(row["vlmevalkit_exact_rule"], row["vlmevalkit_exact_rule"])
    ]
    assert wrong == [] and len(rows) >= 40


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Yes.", "yes"),
        ("no, nothing", "no"),
        ("Noise", "invalid"),
        ("'Yes'", "yes"),
        ("", "invalid"),
        ("Ja", "invalid"),
    ],
)
def test_first_word(reply: str, expected: str) -> None:
    assert first_word(reply, ["yes"], ["no"]) == expected


def said_otherwise(result: xr.Dataset) -> xr.Dataset:
    """A fifth of the yeses in bold, and a fifth of the noes in a sentence with both words."""
    text = result["text"].values.astype(object).copy()
    turn = np.arange(len(text)) % 5 == 0
    text[turn & (text == "Yes")] = "**Yes**"
    text[turn & (text == "No")] = "There is none, so no yes from me: no"
    return result.assign(text=(("trial",), text))


def test_a_score_tells_how_readers_differ_and_what_it_would_be_under_each() -> None:
    result = chat_result()
    (score,) = score_chat(result)
    assert {each.reader: each.differ for each in score.readings} == {
        "first word": 0.0,
        "VLMEvalKit": 0.0,
    }
    assert all(
        each.score["rmse_log10"] == score.scores[score.human].rmse_log10.value
        for each in score.readings
    )
    other = said_otherwise(result)
    (score,) = score_chat(other)
    found = {each.reader: each for each in score.readings}
    changed = float((other["text"].values != result["text"].values).mean())
    noes = float(
        (other["text"].values == "There is none, so no yes from me: no").mean()
    )
    assert (
        found["VLMEvalKit"].differ == pytest.approx(changed)
        and found["VLMEvalKit"].opposite == 0
    )
    assert found["first word"].differ == pytest.approx(noes)
    # Under a reader the score is that of the run with what it left out taken out.
    reading = readings_of(other)["VLMEvalKit"]
    (again,) = score_chat(reread(other, reading))
    assert (
        found["VLMEvalKit"].score["rmse_log10"]
        == again.scores[again.human].rmse_log10.value
    )
    assert float(
        np.isnan(reread(other, reading)["response"].values).mean()
    ) == pytest.approx(changed)
    (row,) = (row for row in score.rows() if row.label == "VLMEvalKit")
    assert row.cells["differs"] == percent(changed, 2)


def test_of_four_directions_each_reply_is_read_by_the_word_that_is_right() -> None:
    experiment = load_experiment("orientation_csf").with_settings(
        {
            "probe": "orientation_4",
            "asking.prompts": "orientation_4",
            "asking.design": "constant",
            "asking.options": {},
            "asking.readout": "text",
            "asking.repeats": 1,
            "levels.frequency.values": [2],
            "levels.contrast.n": 3,
        }
    )
    rising = pp.observer(lambda images, prompt: "Rising", name="rising")
    result = trials(pp.run(experiment, rising, progress=False))
    for reading in readings_of(result).values():
        assert (reading == result["reading"].values).all()
        np.testing.assert_array_equal(
            reread(result, reading)["response"].values, result["order"].values == 2
        )


class Literal(Answering):
    """A judge that finds the word yes in the answer that it is shown."""

    card = Card("literal", "answer")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _reply(self, inquiry: Inquiry) -> Answer:
        self.asked.append(inquiry.prompt)
        answer = inquiry.prompt.split("Given answer: ")[1].split("\n")[0]
        return Answer(
            "Yes"
            if "yes" in answer.lower()
            else "No"
            if "no" in answer.lower()
            else "Perhaps"
        )


def test_a_judge_is_one_more_reader_and_reads_each_reply_once(tmp_path: Path) -> None:
    result = said_otherwise(chat_result())
    observer = Literal()
    judged = judge_replies(
        result, Judge(observer), store=tmp_path / "judge.sqlite", progress=False
    )
    assert len(observer.asked) == len(np.unique(result["text"].values.astype(str)))
    (score,) = score_chat(judged)
    found = {each.reader: each for each in score.readings}["judge"]
    turned = result["text"].values == "There is none, so no yes from me: no"
    assert found.opposite == found.differ == pytest.approx(float(turned.mean()))
    judge_replies(
        result, Judge(observer), store=tmp_path / "judge.sqlite", progress=False
    )
    assert len(observer.asked) == 4
