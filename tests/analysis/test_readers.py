"""A judge as another reader of the same replies, and what scores say of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from chat_results import chat_result

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.analysis.score import percent
from psyprobe.analysis.words.readers import reread
from psyprobe.analysis.words.score import score_chat
from psyprobe.experiment import load_experiment
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry
from psyprobe.observers.protocol import Card
from psyprobe.tasks.items import Judge
from psyprobe.tasks.judged_replies import judge_replies


def paraphrased(result: xr.Dataset) -> xr.Dataset:
    """Set a fifth of the yeses in bold, and a fifth of the noes in a sentence with both words."""
    text = result["text"].values.astype(object).copy()
    turn = np.arange(len(text)) % 5 == 0
    text[turn & (text == "Yes")] = "**Yes**"
    text[turn & (text == "No")] = "There is none, so no yes from me: no"
    return result.assign(text=(("trial",), text))


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
    right = result["order"].values == 2
    np.testing.assert_array_equal(
        result["reading"].values, np.where(right, "yes", "no")
    )
    reread_result = reread(result, result["reading"].values)
    np.testing.assert_array_equal(reread_result["response"].values, right)


class Literal(Answering):
    """A judge that finds the word yes in the answer that it is shown."""

    card = Card("literal", "answer")

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def _reply(self, inquiry: Inquiry) -> Answer:
        self.prompts.append(inquiry.prompt)
        answer = inquiry.prompt.split("Given answer: ")[1].split("\n")[0]
        return Answer(
            "Yes"
            if "yes" in answer.lower()
            else "No"
            if "no" in answer.lower()
            else "Perhaps"
        )


def test_a_judge_is_one_more_reader_and_reads_each_reply_once(tmp_path: Path) -> None:
    result = paraphrased(chat_result())
    observer = Literal()
    judged = judge_replies(
        result, Judge(observer), store=tmp_path / "judge.sqlite", progress=False
    )
    assert len(observer.prompts) == len(np.unique(result["text"].values.astype(str)))
    (score,) = score_chat(judged)
    (reading,) = score.readings
    turned = result["text"].values == "There is none, so no yes from me: no"
    assert reading.reader == "judge"
    assert reading.opposite == reading.differ == pytest.approx(float(turned.mean()))
    # Under the judge the score is that of the run with its readings.
    (reread_score,) = score_chat(reread(judged, trials(judged)["judge_reading"].values))
    assert (
        reading.score["rmse_log10"]
        == reread_score.scores[reread_score.human].rmse_log10.value
    )
    (row,) = (row for row in score.rows() if row.label == "judge")
    assert row.cells["differs"] == percent(reading.differ, 2)
    assert any("the judge takes differently" in note for note in score.notes())
    judge_replies(
        result, Judge(observer), store=tmp_path / "judge.sqlite", progress=False
    )
    # A few stored verdicts are compared with what the judge says now.
    assert len(observer.prompts) <= 2 * 4
