"""What psyprobe asks of an observer is declared; a card and one method are all that must be there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.observers import Card, as_observer, load_observer
from psyprobe.observers.chat.protocol import (
    Answer,
    Inquiry,
    ManyAnswersObserver,
    ask_all,
)
from psyprobe.observers.protocol import (
    DeferredObserver,
    Observer,
    PaidObserver,
    ServedObserver,
    SubmittingObserver,
)
from psyprobe.probes.cost import Pace, expense

PACE = Pace(100.0, 0.0, 1.0, 2.0, 0.01, "USD", "Made up.")


def test_an_observer_of_a_card_and_one_method_is_asked_as_all_others(
    tmp_path: Path,
) -> None:
    """Nothing else of what `psyprobe.observers.protocol` declares need be there."""

    class Mean:
        card = Card("mean", "features", ("mean",))

        def features(self, images: Any) -> dict[str, Any]:
            return {
                "mean": np.asarray(images)
                .reshape(len(images), -1)
                .mean(axis=1)[:, None]
            }

    class Yes:
        card = Card("yes", "answer")
        bits = images_at_once = None

        def delivered(self, image: Any) -> Any:
            return image

        def answer(self, images: Any, prompt: str, **options: Any) -> Answer:
            return Answer("yes")

    for stranger in (Mean(), Yes()):
        assert as_observer(stranger) is stranger and isinstance(stranger, Observer)
        protocols = (DeferredObserver, ServedObserver, PaidObserver, SubmittingObserver)
        assert not isinstance(stranger, protocols)
    page = write_experiment(tmp_path)
    planned = pp.plan(page, Mean(), store=tmp_path / "runs.sqlite", timed=True)
    result = pp.run(page, Mean(), store=tmp_path / "runs.sqlite", progress=False)
    assert planned.answered == 0 and list(result["layer"].values) == ["mean"]
    assert [reply[1].text for reply in ask_all(Yes(), [Inquiry("Is it there?")])] == [
        "yes"
    ]
    assert expense(Yes(), replace(PACE, cost=None), 10, []).cost == 0


@pytest.mark.needs("observers/batch_files")
def test_what_is_asked_in_files_or_of_a_server_says_so(tmp_path: Path) -> None:
    from psyprobe.observers.batch_files.observer import BatchObserver

    served = load_observer(
        "openai:a-model", base_url="http://127.0.0.1:9", concurrency=4
    )
    submitting = BatchObserver(served, tmp_path)
    for observer in (served, submitting):
        assert isinstance(observer, ServedObserver) and isinstance(
            observer, PaidObserver
        )
        assert isinstance(observer, ManyAnswersObserver) and observer.budget is None
    assert not isinstance(served, SubmittingObserver)
    assert isinstance(submitting, SubmittingObserver) and submitting.directly is served
    assert expense(served, PACE, 10, []).seconds == 10 * PACE.seconds / 4
