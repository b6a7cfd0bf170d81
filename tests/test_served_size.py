"""At which size a server shows images to its model is found by the acuity for letters.

All sides, limits and filters, behind a real server: benchmarks/served_size.py.
"""

from __future__ import annotations

import json

import pytest

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.observers.chat.protocol import AnswerObserver
from psyprobe.tasks import served_size
from psyprobe.tasks.served_size import SIDES, ServedSize, measure_served_size


def measured(max_side: int, sides: tuple[int, ...]) -> ServedSize:
    """Measure a reader of images that are shrunk to a side first; 0: they are not."""
    observer = pp.load_observer("simulated:letters", max_side=max_side)
    assert isinstance(observer, AnswerObserver)
    return measure_served_size(observer, sides=sides, progress=False)


def test_the_side_to_which_images_are_shrunk_is_found_within_a_tenth() -> None:
    served_size = measured(448, (256, 384, 768, 1024))
    assert served_size.limit == pytest.approx(448, rel=0.1)
    assert served_size.low is not None and served_size.high is not None
    assert (
        served_size.low < 448 < served_size.high and served_size.unlimited_up_to is None
    )
    assert "it is looked at as about" in served_size.finding
    assert "Who shrinks" in str(served_size)


def test_where_none_is_shrunk_there_is_no_limit() -> None:
    served_size = measured(0, (256, 1024))
    assert served_size.limit is None and served_size.unlimited_up_to == 1024
    assert "no limit up to 1024 px" in served_size.finding


def test_one_that_guesses_has_no_limit_that_can_be_told() -> None:
    guesser = pp.observer(lambda images, prompt: "K", name="says K", bits=8)
    served_size = measure_served_size(guesser, 10, sides=(256, 512), progress=False)
    assert served_size.limit is None and served_size.unlimited_up_to is None
    assert "cannot be told" in served_size.finding
    silent = pp.observer(lambda images, prompt: "no", name="says no", bits=8)
    served_size = measure_served_size(silent, 10, sides=(256, 512), progress=False)
    assert "20 of 20 replies name no letter" in served_size.finding


def test_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ["ask", "--calibrate", "letters", "--observer", "simulated:letters"]
    assert main([*ask, "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["most"] == 40 * len(SIDES)
    monkeypatch.setattr(
        served_size.measure_served_size,
        "__kwdefaults__",
        {**(measure_served_size.__kwdefaults__ or {}), "sides": (256, 384)},
    )
    assert main([*ask, "--trials", "10", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (
        len(printed["sides"]) == 2
        and printed["cannot_tell"]
        and printed["limit"] is None
    )


def test_too_few_trials_or_sides_are_refused() -> None:
    reader = pp.load_observer("simulated:letters")
    assert isinstance(reader, AnswerObserver)
    with pytest.raises(InputError, match="at least 10 trials and two sides"):
        measure_served_size(reader, 9)
    with pytest.raises(InputError, match="two sides of 256 px or more"):
        measure_served_size(reader, 20, sides=(128, 512))
