"""Which of our files one answer passes on its way into the table, by a tracer: as docs/design.md
tells it."""

from __future__ import annotations

import math
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import psyprobe as pp
from psyprobe.running import loop

ROOT = Path(pp.__file__).parent
REPLY = "Yes, 4711 stripes."
#: No pixel and no angle comes near it.
MEASURED = 4711.123456789

CHAT = """
title    = "One answer"
stimulus = { kind = "gabor", parameters = { frequency = 2, contrast = 0.1, luminance = 40, size = 64 } }
probe    = "yes_no"
levels   = { phase.values = [0, 90], contrast.values = [0.05, 0.2] }
asking   = { prompts = ["Do you see a pattern?"], repeats = 1 }
display  = { peak = 186.8805 }
"""
ENCODER = """
title    = "One response"
stimulus = { kind = "gabor", parameters = { frequency = 2, contrast = 0.1, size = 64 } }
probe    = "detection"
levels   = { frequency.values = [1, 2], contrast.values = [0.05, 0.2] }
"""
ITEM = """
title   = "One item"
probe   = "r_bench"
items   = "set"
options = { mcq_rule = "letter" }
"""


@pytest.fixture(autouse=True)
def _write_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write by no clock, which on a busy machine comes before the first reply is read."""
    monkeypatch.setattr(loop, "_INTERVAL", math.inf)


def files_of_page(heading: str) -> list[str]:
    """The files that the page lists under a heading, in order."""
    page = (ROOT.parent / "docs" / "design.md").read_text(encoding="utf-8")
    section = page.split(f"### {heading}\n")[1].split("\n#")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)


def passed(page: Path, observer: Any) -> list[str]:
    """The files with a function that is given, or gives, what the observer answered, in order."""
    files: dict[str, None] = {}

    def look(frame: FrameType, event: str, result: Any) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "return") or not name.startswith(f"{ROOT}/"):
            return
        values = [result] if event == "return" else list(frame.f_locals.values())
        if any(map(holds, values)):
            files.setdefault(str(Path(name).relative_to(ROOT)))

    pp.run(page, observer, progress=False)
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        pp.run(page, observer, progress=False)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(files)


def holds(value: Any, deep: int = 0) -> bool:
    """Say whether the answer is in a value: as text, or as a number."""
    if isinstance(value, str):
        return REPLY in value or repr(MEASURED) in value
    if isinstance(value, float | np.ndarray):
        return bool(np.size(value) < 1000 and (np.asarray(value) == MEASURED).any())
    if deep == 5:
        return False
    if isinstance(value, dict):
        return any(holds(item, deep + 1) for item in value.values())
    if isinstance(value, list | tuple):
        return any(holds(item, deep + 1) for item in value)
    return any(
        holds(getattr(value, name, None), deep + 1)
        for name in getattr(value, "__dataclass_fields__", ())
    )


def test_one_chat_answer(tmp_path: Path) -> None:
    (tmp_path / "chat.toml").write_text(CHAT, encoding="utf-8")
    files = passed(
        tmp_path / "chat.toml", pp.observer(lambda images, prompt: REPLY, name="one")
    )
    assert files == files_of_page("One chat answer")
    assert len(files) <= 12


def test_one_response(tmp_path: Path) -> None:
    (tmp_path / "encoder.toml").write_text(ENCODER, encoding="utf-8")
    metric = pp.observer(
        lambda test, reference: np.full(len(test), MEASURED),
        name="one",
        ability="difference",
    )
    assert passed(tmp_path / "encoder.toml", metric) == files_of_page(
        "One response of an encoder or a metric"
    )


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.needs("tasks/r_bench")
def test_one_item(tmp_path: Path) -> None:
    for kind, light in (("ref", 200), ("dis", 100)):
        (tmp_path / "set" / kind).mkdir(parents=True)
        Image.new("RGB", (48, 48), (light, 60, 60)).save(
            tmp_path / "set" / kind / "one.png"
        )
    table = (
        "name,question,choice,answer,type,score,distortion,strength\none.png,Which?,A.red; "
        "B.green,A,MCQ,,1,2"
    )
    (tmp_path / "set" / "items.csv").write_text(table, encoding="utf-8")
    (tmp_path / "item.toml").write_text(ITEM, encoding="utf-8")
    files = passed(
        tmp_path / "item.toml", pp.observer(lambda images, prompt: REPLY, name="one")
    )
    assert files == files_of_page("One benchmark item")
