"""What a decision stage costs: no image is encoded twice, and the plan says how many there are."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_decided import right_half, write

import psyprobe as pp


class Counting:
    """An encoder that counts how often it is shown each image, on a clock of its own."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.image_counts: Counter[str] = Counter()
        self.clock = 0.0
        self.seconds = seconds

    def __call__(self, images: Any) -> Any:
        self.clock += self.seconds * len(images)
        self.image_counts.update(
            hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest()
            for image in images
        )
        return right_half(images)

    @property
    def count(self) -> int:
        return sum(self.image_counts.values())


@pytest.mark.parametrize(
    ("probe", "prompts", "questions"),
    [
        ("two_interval", '"two_image"', 2 * 2 * 5 * 2),
        ("yes_no", '["base"]', 2 * 2 * 5),
        ("orientation", '"orientation"', 2 * 2 * 5),
    ],
)
def test_no_image_is_encoded_twice_and_the_plan_counts_them(
    tmp_path: Path, probe: str, prompts: str, questions: int
) -> None:
    page = write(
        tmp_path,
        ('"two_interval"', f'"{probe}"'),
        ('"two_image"', prompts),
        ("repeats = 40", "repeats = 2"),
        # Where contrasts above threshold would end at the highest, their images are shared.
        ("to = 0.06", "to = 0.2"),
    )
    counting = Counting()
    observer = pp.decide(
        pp.observer(counting, name="counting", version=probe), pairs=32
    )
    plan = pp.plan(page, observer)
    pp.run(page, observer)
    assert counting.count == plan.training_images + questions
    assert max(counting.image_counts.values()) == 1


def test_a_threshold_that_is_not_reached_costs_no_image_twice(tmp_path: Path) -> None:
    page = write(
        tmp_path,
        ("from = 0.004, to = 0.06", "from = 0.0004, to = 0.0006"),
        ("repeats = 40", "repeats = 2"),
    )
    counting = Counting()
    observer = pp.decide(pp.observer(counting, name="counting", version="1"), pairs=48)
    plan = pp.plan(page, observer)
    pp.run(page, observer)
    assert max(counting.image_counts.values()) == 1
    assert counting.count < plan.training_images + plan.images


def test_the_plan_tells_how_long_the_encoder_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is right to the trial on a clock that only the encoder moves."""
    page = write(tmp_path, ("repeats = 40", "repeats = 4"), ("to = 0.06", "to = 0.2"))
    counting = Counting(seconds=0.02)
    for module in ("plan", "training"):
        monkeypatch.setattr(
            f"psyprobe.probes.words.{module}.perf_counter", lambda: counting.clock
        )
    observer = pp.decide(pp.observer(counting, name="clocked", version="1"), pairs=32)
    plan = pp.plan(page, observer, timed=True)
    assert plan.images == 2 * 2 * 5 * 2 * 2
    counting.clock = 0.0
    pp.run(page, observer)
    assert plan.seconds == pytest.approx(counting.clock, rel=1e-6)
