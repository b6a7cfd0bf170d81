"""Thresholds of a run by QUEST+ in text: those of the design, whose intervals do not depend on why
it ended."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import chat_csf, flag_words
from psyprobe.experiment import Experiment, load_experiment


def page(**settings: Any) -> Experiment:
    """`hernandez2025` in two intervals, one wording and two frequencies, at 64 px."""
    stimulus = {
        "kind": "grating",
        "parameters": {"frequency": 4, "contrast": 0.1, "luminance": 40, "size": 64},
    }
    changed = {
        "probe": "two_interval",
        "stimulus": stimulus,
        "levels": {
            "frequency": {"values": [2, 8]},
            "contrast": {"from": 0.001, "to": 1, "n": 10, "scale": "log"},
        },
        "asking": {"readout": "text", "temperature": 1, "design": "quest_plus"},
        "fit": {},
    }
    wording = {
        "id": "which",
        "text": "Which image shows a pattern?",
        "suffix": "Answer with first or second.",
    }
    changed["asking"]["prompts"] = [{**wording, "yes": ["first"], "no": ["second"]}]
    return load_experiment("hernandez2025").with_settings(changed | settings)


@pytest.mark.parametrize("function", ["logistic", "weibull"])
def test_the_curve_is_the_posterior_of_the_design(function: str) -> None:
    run = pp.run(
        page(**{"asking.options": {"function": function}}),
        "simulated:watson-malo",
        progress=False,
    )
    csf = chat_csf(run)
    assert (flag_words(csf["method"]) == "posterior").all() and (
        flag_words(csf["status"]) == "ok"
    ).all()
    (estimate,) = json.loads(run.attrs["design_estimates"]).values()
    # The design looks closer at thresholds as it goes, and takes answers in another order.
    np.testing.assert_allclose(
        csf["log10_threshold"][0], -np.array(estimate["log10_sensitivity"]), atol=0.003
    )
    np.testing.assert_allclose(
        csf["log10_threshold_low"][0], -np.array(estimate["high"]), atol=0.01
    )
    np.testing.assert_allclose(
        csf["log10_threshold_high"][0], -np.array(estimate["low"]), atol=0.01
    )
    second_csf = chat_csf(run)
    assert all(
        np.array_equal(csf[name], second_csf[name])
        for name in ("log10_threshold", "log10_threshold_low", "log10_width")
    )


def test_who_sees_nothing_has_no_threshold() -> None:
    blind = pp.load_observer("simulated:watson-malo", scale=1e-4)
    csf = chat_csf(pp.run(page(), blind, progress=False))
    assert (flag_words(csf["status"]) == "censored_above").all() and csf[
        "log10_threshold"
    ].isnull().all()


def test_a_page_that_says_how_to_fit_is_fitted() -> None:
    run = pp.run(
        page(fit={"function": "weibull"}), "simulated:watson-malo", progress=False
    )
    assert (flag_words(chat_csf(run)["method"]) == "counts").all()


def test_probabilities_are_fitted() -> None:
    run = pp.run(
        page(**{"asking.readout": "p_yes"}), "simulated:watson-malo", progress=False
    )
    assert (flag_words(chat_csf(run)["method"]) == "logits").all()
