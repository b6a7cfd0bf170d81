"""A small set of two pairs whose questions try to be more than text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from psyprobe.tasks.mvp_construction.manipulation import Manipulated, write_pair
from psyprobe.tasks.mvp_construction.steps import json_lines, question_rows

HOSTILE = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>\u202e\x1b[31m"


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    rows = []
    for number, light in ((1001, 60), (1002, 180)):
        choice = {"question": "What is new?", "right": "a lamp", "wrong": ["a cat", "a cup", "a sea", HOSTILE]}
        written = {
            "low": f"Is it light? {HOSTILE}",
            "high": "Is it day?",
            "single": {"question": "What is it?", "right": "day", "natural": "night", "wrong": ["1", "2", "3"]},
            "cross_low": choice,
            "cross_high": choice | {"question": "What does it mean?"},
        }
        rows += question_rows(number, "S2", written, seed=number)
        ramp = np.broadcast_to(np.arange(96, dtype=np.uint8)[None, :, None], (64, 96, 3)).copy()
        account = {"photograph": f"{number}.png", "sha256": "0" * 64, "key": str(number)}
        write_pair(tmp_path, number, ramp, Manipulated(ramp + np.uint8(light), {}, {}), account)
    (tmp_path / "questions.json").write_text(json_lines(rows), encoding="utf-8")
    return tmp_path


@pytest.fixture
def r_bench_set(tmp_path: Path) -> Path:
    from PIL import Image

    columns = ["name", "question", "choice", "answer", "type", "score", "distortion", "strength"]
    rows = [
        ["m1.png", "What is it?", "A.a ramp; B.a cat", "A", "MCQ"],
        ["m2.png", "How many?", "A.one; B.two; C.three", "B", "MCQ"],
        ["v1.png", "What is on the left?", "N", "the dark side", "VQA"],
        ["v2.png", "What is on the right?", "N", "light", "VQA"],
        ["c1.png", "Describe the image.", "N", "['A ramp of grey.', 'Dark to light.']", "CAP"],
        ["c2.png", "Describe the image.", "N", "['Grey.', 'A ramp.']", "CAP"],
    ]
    folder = tmp_path / "rbench"
    for kind in ("ref", "dis"):
        (folder / kind).mkdir(parents=True)
    ramp = np.broadcast_to(np.arange(96, dtype=np.uint8)[None, :, None] * np.uint8(2), (64, 96, 3)).copy()
    lines = [",".join(columns)]
    for place, row in enumerate(rows):
        lines.append(",".join(f'"{cell}"' for cell in [*row, "4.0", "1", "1"]))
        for kind, step in (("ref", 0), ("dis", 20)):
            Image.fromarray(ramp + np.uint8(step + place)).save(folder / kind / row[0])
    (folder / "items.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
