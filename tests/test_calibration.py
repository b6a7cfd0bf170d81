"""A server's resizing and JPEG are found out from outside, by a simulated reader behind steps that
are known."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from stripe_reader import StripeReader

from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Answer
from psyprobe.tasks import calibration
from psyprobe.tasks.calibration import (
    CHANCE,
    Calibration,
    Grade,
    Stripes,
    calibrate,
    draw,
    most_questions,
)

#: The fewest that tell all right from guessing with some to spare: 8 of 8 have 0.4 %.
TRIALS = 8


class Silent(StripeReader):
    def _reply(self, inquiry: Any) -> Answer:
        return Answer("I cannot tell.")


@cache
def calibrate_reader(
    side: int | None = None, jpeg: int | None = None, smoothing: bool = True
) -> Calibration:
    return calibrate(StripeReader(side, jpeg, smoothing=smoothing), TRIALS)


@pytest.mark.parametrize(
    ("side", "jpeg", "smoothing"),
    [(336, 75, True), (448, None, True), (512, None, False)],
)
def test_the_size_at_which_it_looks_is_found_within_a_step(
    side: int, jpeg: int | None, smoothing: bool
) -> None:
    result = calibrate_reader(side, jpeg, smoothing)
    assert result.at_least is not None and result.below is not None
    # The nearest pixel lies up to half a pixel off: the bounds then hold within one more step.
    slack = 1 if smoothing else 2**0.25
    assert (
        result.at_least <= side <= result.below * slack
        and result.below <= result.at_least * 2**0.25 + 2
    )
    assert f"Set input_size={result.at_least}" in result.findings[0]


def test_nothing_is_found_where_nothing_is_done() -> None:
    result = calibrate_reader()
    assert (result.at_least, result.below) == (832, None)
    assert {grade.verdict for grade in result.grades} == {"told"}
    assert (
        "no JPEG 4:2:0" in result.findings[1]
        and "Stripes of 1 code are told" in result.findings[2]
    )


def test_jpeg_is_found_behind_resizing() -> None:
    """4:2:0 turns the finest colour and spares grey; of one code only the means of blocks are
    left."""
    result = calibrate_reader(336, 75, True)
    lost = {
        str(grade.stripes).rpartition(",")[0]
        for grade in result.grades
        if grade.stripes.side < calibration.SIDE
    }
    grades_passed = {
        str(grade.stripes).rpartition(",")[0]
        for grade in result.grades
        if grade.is_told and grade.stripes.side < calibration.SIDE
    }
    assert lost - grades_passed == {
        "red-green stripes, period 2 px, 120 codes",
        "grey stripes, period 8 px, 1 code",
    }
    assert "grey stripes, period 2 px, 120 codes" in grades_passed
    assert (
        "JPEG 4:2:0 or the like" in result.findings[1]
        and "JPEG's blocks" in result.findings[2]
    )


@pytest.mark.parametrize("trials", [7, 8, 20, 50])
def test_guessing_passes_a_grade_in_one_of_a_hundred_at_most(trials: int) -> None:
    counts = np.arange(trials + 1)
    is_passed = [
        Grade(Stripes(64, 64, 8.0, 8), trials, int(k), int(trials - k)).is_told
        for k in counts
    ]
    assert 0 < binom.pmf(counts[is_passed], trials, 0.5).sum() <= CHANCE
    assert is_passed == [bool(binom.sf(k - 1, trials, 0.5) <= CHANCE) for k in counts]


def test_one_that_guesses_and_one_that_says_nothing_have_no_finding() -> None:
    result = calibrate(StripeReader(guesses=True), 20)
    assert (
        len(result.grades) == 1
        and result.at_least is None
        and result.spent["answers"] == 20
    )
    assert (
        "does not answer the easy ones" in result.findings[0]
        and len(result.findings) == 1
    )
    silent = calibrate(Silent(), 7)
    assert (
        silent.grades[0].right,
        silent.grades[0].wrong,
        silent.grades[0].verdict,
    ) == (
        0,
        0,
        "not told",
    )


@pytest.mark.parametrize("codes", [1, 2, 3, 240])
def test_images_have_the_codes_that_are_asked_for(codes: int) -> None:
    image = draw(Stripes(128, 128, 7.3, codes), vertical=False, seed=3)
    assert image.dtype == np.uint8 and np.ptp(image) in (codes, codes - (codes > 100))
    assert (image[..., 0] == image[..., 2]).all()
    assert np.array_equal(
        image, draw(Stripes(128, 128, 7.3, codes), vertical=False, seed=3)
    )


def test_colour_has_no_luma() -> None:
    image = draw(
        Stripes(128, 128, 2.0, 120, colour=True), vertical=True, seed=0
    ).astype(float)
    luma = image @ [0.299, 0.587, 0.114]
    assert np.abs(luma - 128).max() < 0.5 and np.ptp(image[..., 0]) > 150


def test_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ["ask", "--calibrate", "--observer", "simulated:flat"]
    assert main([*ask, "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "observer": "simulated:flat",
        "fewest": 20,
        "most": 340,
    }
    monkeypatch.setattr(
        "psyprobe.tasks.items.load_observer", lambda name: StripeReader(guesses=True)
    )
    assert main([*ask, "--trials", "7", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (
        printed["side"] == 1344
        and printed["at_least"] is None
        and len(printed["grades"]) == 1
        and printed["cannot_tell"]
    )
    assert main([*ask, "--trials", "7"]) == 0
    printed = capsys.readouterr()
    assert (
        "period 34.7 px" in printed.out
        and "cannot tell" in printed.out
        and printed.err == "7 questions\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["?", "--calibrate"], "leave out all others"),
        (["--calibrate", "--trials", "6"], "give at least 7"),
        (["?", "--trials", "9"], "are about --calibrate"),
        ([], "the question is empty"),
    ],
)
def test_what_cannot_be_is_one_line(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["ask", *options, "--observer", "simulated:flat"]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1 and not printed.out


def test_one_that_knows_its_size_has_nothing_to_calibrate() -> None:
    with pytest.raises(InputError, match="leave input_size out"):
        calibrate(
            load_observer("openai:m", base_url="http://127.0.0.1:9/v1", input_size=336)
        )
    with pytest.raises(InputError, match="does not answer in words"):
        calibrate(load_observer("pixels"))
    assert most_questions(8) == 136
