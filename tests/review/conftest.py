"""A small set of two pairs whose questions try to be more than text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from psyprobe.tasks.mvp_construction.manipulation import Manipulated, write_pair
from psyprobe.tasks.mvp_construction.steps import json_lines, question_rows

HOSTILE = (
    "<img src=x "
    "onerror=\"document.title='broken'\"><script>document.title='broken'</script>\u202e\x1b[31m"
)


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    rows = []
    for number, light in ((1001, 60), (1002, 180)):
        choice = {
            "question": "What is new?",
            "right": "a lamp",
            "wrong": ["a cat", "a cup", "a sea", HOSTILE],
        }
        written = {
            "low": f"Is it light? {HOSTILE}",
            "high": "Is it day?",
            "single": {
                "question": "What is it?",
                "right": "day",
                "natural": "night",
                "wrong": ["1", "2", "3"],
            },
            "cross_low": choice,
            "cross_high": choice | {"question": "What does it mean?"},
        }
        rows += question_rows(number, "S2", written, seed=number)
        ramp = np.broadcast_to(
            np.arange(96, dtype=np.uint8)[None, :, None], (64, 96, 3)
        ).copy()
        account = {
            "photograph": f"{number}.png",
            "sha256": "0" * 64,
            "key": str(number),
        }
        write_pair(
            tmp_path, number, ramp, Manipulated(ramp + np.uint8(light), {}, {}), account
        )
    (tmp_path / "questions.json").write_text(json_lines(rows), encoding="utf-8")
    return tmp_path
