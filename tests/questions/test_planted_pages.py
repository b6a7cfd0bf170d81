"""Planted thresholds come back from each page of letters, paths, dots and photographs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_pages import run_planted, weibull

import psyprobe as pp
from psyprobe.analysis import chat_csf, trials
from psyprobe.analysis.identification.charts import score_by_letter
from psyprobe.analysis.identification.score import score_identification
from psyprobe.experiment import load_experiment
from psyprobe.probes.results import score_layers

#: Page, settings, slope, threshold on the stimulus axis at each value of the level, and the
#: largest RMS error of its log10: that of the number of trials.
THRESHOLDS: dict[str, tuple[dict[str, Any], float, dict[float, float], float]] = {
    "letter_csf": ({}, 3.5, {0.1334: 0.11, 0.2: 0.035, 0.4: 0.02, 0.7333: 0.02}, 0.06),
    "letter_acuity_contrast": ({}, 3.5, {-1: 0.1, -0.3: 0.13, -0.03: 0.4}, 0.06),
    "letter_acuity_luminance": (
        {"asking.options.n_max": 60},
        3.5,
        {1: 0.2, 100: 0.1},
        0.06,
    ),
    "alphabet_26": ({}, 3.5, {0.4: 0.02}, 0.06),
    "pelli_robson": ({"asking.repeats": 12}, 3.5, {2.8: 0.02}, 0.06),
    "etdrs": ({"asking.repeats": 10}, 3.5, {-1: 0.09}, 0.06),
    "contour": ({"asking.repeats": 40}, 2, {5: 1 / 25}, 0.15),
    "contour_jitter": ({"asking.repeats": 20}, 2, {0: 15, 20: 20, 40: 35}, 0.1),
    "motion_coherence": ({"asking.repeats": 24}, 2, {0.5: 0.12}, 0.06),
    "photograph_contrast": ({}, 3.5, {0.4: 0.03, 0.8: 0.015, 1.4: 0.01}, 0.1),
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_planted_thresholds_come_back(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, slope, planted, bound = THRESHOLDS[name]
    experiment = load_experiment(name)
    if len(planted) > 1:
        level = next(
            level
            for level, values in experiment.levels.items()
            if {*planted} <= {*values}
        )
        settings = {**settings, f"levels.{level}": {"values": sorted(planted)}}
    result = run_planted(
        experiment.with_settings(settings),
        lambda value, x: weibull(x, planted[value], slope),
        monkeypatch,
    )
    csf = chat_csf(result)
    truth = np.array([planted[value] for value in sorted(planted)])
    threshold, low, high = (
        csf[f"threshold{end}"].values.ravel() for end in ("", "_low", "_high")
    )
    assert np.sqrt(np.mean(np.log10(threshold / truth) ** 2)) < bound
    assert np.mean((low < truth) & (truth < high)) > 0.6
    # What is named rises as a Weibull function does, whoever chooses the levels.
    names_labels = experiment.probe == "identify"
    function = json.loads(csf.attrs["fit"])["function"]
    assert (function == "weibull") == (names_labels or name == "photograph_contrast")
    # Dots in even steps are no letters.
    (score,) = score_layers(result)
    charted = name in ("pelli_robson", "etdrs", "alphabet_26")
    assert (getattr(score, "chart", None) is not None) == charted


def test_a_critical_spacing_comes_back_and_without_crowding_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = load_experiment("crowding")
    result = run_planted(
        experiment,
        lambda flankers, spacing: weibull(spacing, 0.35, 6) if flankers else 1.0,
        monkeypatch,
        lapse=0.0,
    )
    csf = chat_csf(result).squeeze()
    words = csf["status"].attrs["flag_meanings"].split()
    alone, crowded = (words[code] for code in csf["status"].values)
    assert alone == "censored_below" and crowded == "ok"
    assert np.isnan(float(csf["threshold"][0]))
    assert abs(np.log10(float(csf["threshold"][1]) / 0.35)) < 0.05


def test_the_ideal_stage_reaches_the_ideal_observer_on_letters() -> None:
    # Letters differ in ink, so the best criterion between them depends on the contrast.
    page = load_experiment("letter_noise").with_settings(
        {
            "asking.options.n_max": 100,
            "options.values": ["C", "H", "O", "V"],
            "stimulus.parameters.size": 48,
            "stimulus.parameters.ppd": 12,
        }
    )
    result = pp.run(page, pp.decide("pixels", stage="ideal"), progress=False)
    csf = chat_csf(result)
    assert np.all(csf["efficiency_low"] < 1)
    assert np.all(csf["efficiency_high"] > 1)


@pytest.mark.parametrize("efficiency", [1.0, 0.5])
def test_a_planted_efficiency_comes_back(
    efficiency: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load_experiment("letter_noise").with_settings(
        {
            "options.values": ["C", "H", "O", "V"],
            "asking.options.n_max": 100,
            "stimulus.parameters.size": 48,
            "stimulus.parameters.ppd": 12,
        }
    )
    # The ideal observer is right in 0.625 at this contrast, in a density of 1 deg²; from the
    # letters' pixels by sampling 100,000 trials.
    unit = 1.52
    result = run_planted(
        experiment,
        lambda density, contrast: weibull(
            contrast, unit * (density / efficiency) ** 0.5
        ),
        monkeypatch,
        lapse=0.0,
    )
    efficiencies = chat_csf(result)["efficiency"].values
    assert np.exp(np.log(efficiencies).mean()) == pytest.approx(efficiency, rel=0.25)


@pytest.mark.parametrize(
    ("name", "repeats", "threshold", "offset", "sign"),
    [("etdrs", 5, 0.09, np.log10(12), 1), ("pelli_robson", 3, 0.02, 0, -1)],
)
def test_charts_are_scored_by_letter(
    name: str,
    repeats: int,
    threshold: float,
    offset: float,
    sign: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = load_experiment(name)
    result = run_planted(
        experiment, lambda _, x: weibull(x, threshold), monkeypatch, lapse=0.0
    )
    table = trials(result)
    count = float(table["response"].sum())
    # logMAR 1.1 - 0.02 n of the ETDRS chart; log10 sensitivity 0.05 (n - 3) of Pelli and Robson's.
    limit = 1.1 - 0.02 * count if name == "etdrs" else 0.05 * (count - 3)
    score = score_by_letter(result)
    assert score is not None
    assert sign * (score + offset) == pytest.approx(limit, abs=2e-3)
    # The psychometric function says where the chart's score lies: guessing, a tenth, counts too.
    longer_run = run_planted(
        experiment.with_settings({"asking.repeats": 10 * repeats}),
        lambda _, x: weibull(x, threshold),
        monkeypatch,
        lapse=0.0,
    )
    axis = np.unique(
        trials(longer_run)["letter_size" if name == "etdrs" else "contrast"]
    )
    share = [0.1 + 0.9 * weibull(x, threshold) for x in axis]
    step = np.log10(axis[1] / axis[0])
    expected = np.log10(axis[-1]) + step * (1 - np.sum(share))
    score_of_letters = score_by_letter(longer_run)
    assert score_of_letters is not None and abs(score_of_letters - expected) < 0.05
    assert "as on a chart, by letter" in " ".join(str(pp.score(result)).split())


def test_charts_give_the_scores_of_the_reference(
    oracle_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many letters right, whichever they are."""
    with (oracle_data / "letters" / "charts.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name, offset, sign in (("etdrs", np.log10(12), 1), ("pelli_robson", 0, -1)):
        table = trials(run_planted(load_experiment(name), lambda *_: 1.0, monkeypatch))
        for row in (row for row in rows if row["chart"] == name):
            right = np.arange(table.sizes["trial"]) < int(row["letters_correct"])
            scored = table.assign(response=table["response"].copy(data=right * 1.0))
            score = score_by_letter(scored)
            assert score is not None
            # The page's contrasts have three digits.
            assert sign * (score + offset) == pytest.approx(
                float(row["value"]), abs=1e-9 if name == "etdrs" else 3e-4
            )


@pytest.mark.parametrize("density", [1.25e-6, 5e-6])
def test_a_planted_channel_comes_back(
    density: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log-Gaussian gain of 1.5 octaves at 3 cycles a letter of 0.4 deg."""
    experiment = load_experiment("letter_channel").with_settings(
        {"noise.density": density}
    )

    def threshold(frequency: float) -> float:
        octaves = np.log2(frequency * 0.4 / 3)
        noise = density * 6e6 * 2 ** (-((octaves / 0.75) ** 2))
        return float(0.02 * np.sqrt(1 + noise))

    result = run_planted(
        experiment, lambda frequency, x: weibull(x, threshold(frequency)), monkeypatch
    )
    (score,) = score_identification(result)
    assert score.channel is not None
    assert abs(np.log2(score.channel.peak * 0.4 / 3)) < 0.25
    assert abs(score.channel.width - 1.5) < 0.4
    assert "cycles a letter" in " ".join(str(score).split())


def test_levels_that_answers_choose_are_no_chart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = load_experiment("letter_acuity")
    result = run_planted(experiment, lambda _, x: weibull(x, 0.2), monkeypatch)
    assert score_by_letter(result) is None
