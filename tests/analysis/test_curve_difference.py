"""Differences of curves that were measured by answers: planted, absent, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from chat_results import FREQUENCIES, chat_result, log_thresholds

import psyprobe as pp
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.difference import curve_draws
from psyprobe.errors import InputError

DECIDED = """
title = "Gabor in noise"
probe = "two_interval"
[stimulus]
kind = "gabor"
[stimulus.parameters]
frequency = 4
contrast = 0.1
radius = 0.25
luminance = 100
size = 32
ppd = 16
[noise]
density = 1e-5
[levels]
frequency = { values = [2] }
contrast = { from = 0.002, to = 0.3, n = 6, scale = "log" }
[asking]
prompts = "two_image"
repeats = 30
catch = 0
seed = 3
[display]
peak = 400
"""


def test_a_planted_difference_is_found_at_its_level_alone() -> None:
    """The observer "weak" needs ten times the contrast at 4 cpd, and the same elsewhere."""
    truth = log_thresholds()
    worse = truth + np.where(np.array(FREQUENCIES) == 4.0, 1.0, 0.0)
    strong = chat_result(truth, observer="strong", seed=1)
    weak = chat_result(worse, observer="weak", seed=2)
    compared = pp.compare(weak, strong)
    verdicts = {row.value: row.verdict for row in compared.levels}
    assert verdicts == {f: "not told apart" for f in FREQUENCIES} | {
        4.0: "less sensitive"
    }
    (row,) = (row for row in compared.levels if row.value == 4.0)
    assert row.low < -1.0 < row.high and row.levels == len(FREQUENCIES)
    assert "holds all levels" in str(compared) and "less sensitive" in str(compared)
    assert len(json.loads(compared.table("json"))["levels"]) == len(FREQUENCIES)
    assert "baseline" in compared.table("csv").splitlines()[0]
    assert len(compared.to_frame()) == len(FREQUENCIES)


def test_a_single_threshold_is_compared_as_a_curve_of_one_level() -> None:
    results = [
        chat_result(np.array([[t]]), frequencies=(4.0,), observer=name, seed=seed)
        for name, t, seed in (("first", -2.0, 5), ("second", -1.3, 6))
    ]
    (row,) = pp.compare(results, baseline="second").levels
    assert row.verdict == "more sensitive" and row.low < 0.7 < row.high


def test_draws_are_as_wide_as_the_intervals() -> None:
    csf = chat_csf(chat_result(seed=4))
    low, high = np.quantile(curve_draws(csf), [0.025, 0.975], axis=0)
    assert low == pytest.approx(np.log10(csf["mean_sensitivity_low"].values), abs=0.03)
    assert high == pytest.approx(
        np.log10(csf["mean_sensitivity_high"].values), abs=0.03
    )


def test_levels_that_are_not_compared_are_named() -> None:
    """The first did not do 1 and 2 cpd, the second not 24; and the first never sees 16 cpd."""
    first = log_thresholds(frequencies=FREQUENCIES[2:])
    first[0, 2] = 2.0
    results = [
        chat_result(first, frequencies=FREQUENCIES[2:], observer="first", seed=1),
        chat_result(frequencies=FREQUENCIES[:5], observer="second", seed=2),
    ]
    compared = pp.compare(results)
    assert [row.value for row in compared.levels] == [4.0, 8.0]
    assert compared.notes == (
        "hernandez2025, first: left out frequency 24, which first alone did",
        "hernandez2025, first: left out frequency 1, 2, which second alone did",
        "hernandez2025, first: left out frequency 16, where a sensitivity has no closed interval",
    )
    assert "left out frequency 24" in str(compared)


def test_two_decision_stages_are_compared_as_curves(tmp_path: Path) -> None:
    """One sees all pixels, the other eight of a thousand, in white noise."""
    page = tmp_path / "page.toml"
    page.write_text(DECIDED, encoding="utf-8")

    def all_pixels(images: np.ndarray) -> np.ndarray:
        return images[..., 1].reshape(len(images), -1)

    def few_pixels(images: np.ndarray) -> np.ndarray:
        return all_pixels(images)[:, 16::128]

    results = [
        pp.run(page, pp.decide(pp.observer(encode, name=encode.__name__), pairs=32))
        for encode in (all_pixels, few_pixels)
    ]
    (row,) = pp.compare(results).levels
    assert row.verdict == "more sensitive"
    assert (row.observer, row.baseline) == (
        "decided:all_pixels",
        "decided:few_pixels",
    )


def test_answers_of_one_observer_have_nothing_to_be_compared_with() -> None:
    with pytest.raises(InputError, match="name one of at least two observers"):
        pp.compare(chat_result(), baseline="other")


def test_the_command_compares_answers_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from psyprobe.cli import main
    from psyprobe.files.netcdf import write_netcdf

    paths = []
    for seed, name in enumerate(("first", "second")):
        paths.append(str(tmp_path / f"{name}.nc"))
        write_netcdf(chat_result(observer=name, seed=seed), Path(paths[-1]))
    assert main(["compare", *paths, "--format", "csv"]) == 0
    assert "not told apart" in capsys.readouterr().out
