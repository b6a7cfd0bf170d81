"""Every answer of a run in words is counted once: compared with pandas on the table of questions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from small_questions import write_questions

import psyprobe as pp
from psyprobe.analysis.words.fit import EXCLUDED, count_answers
from psyprobe.analysis.words.trial_table import trials


def reply(images: list[np.ndarray], prompt: str) -> str:
    """Yes, no, or nothing that can be read, by the pixels of the image."""
    brightness = int(images[0].sum() * 1e6) % 4
    return ("Yes.", "No.", "Maybe.", "I cannot view images.")[brightness]


def test_no_answer_is_left_out(tmp_path: Path) -> None:
    page = write_questions(tmp_path, ("catch = 0.1", "catch = 0.3"))
    result = pp.run(page, pp.observer(reply, name="by brightness"), progress=False)
    table = trials(result).to_dataframe()
    counts = count_answers(result)
    blanks = table[table["catch"].astype(bool)]
    tests = table[~table["catch"].astype(bool)]
    assert len(blanks) > 4 and set(tests["response"].dropna()) == {0.0, 1.0}
    for index, prompt in enumerate(counts.prompts):
        rows = tests[tests["prompt"] == prompt]
        assert counts.trials[index].sum() == rows["response"].count()
        assert counts.yes[index].sum() == rows["response"].sum()
        assert counts.excluded[index].sum() == rows["response"].isna().sum()
        rows = blanks[blanks["prompt"] == prompt]
        assert counts.catch_trials[index] == rows["response"].count()
        assert counts.catch_yes[index] == rows["response"].sum()
        assert counts.catch_excluded[index].sum() == rows["response"].isna().sum()
    for level, value in enumerate(counts.values):
        rows = tests[tests["frequency"] == value]
        assert counts.trials[:, level].sum() == rows["response"].count()
    assert counts.excluded.shape[-1] == len(EXCLUDED)
