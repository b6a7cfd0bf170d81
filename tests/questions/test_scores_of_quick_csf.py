"""Thresholds of a run by qCSF: those of its posterior, unless the user himself set a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import psyprobe as pp
from psyprobe.analysis import chat_csf, flag_words
from psyprobe.experiment import Experiment, load_experiment

POSTERIOR = ["posterior"]
COUNTS = ["counts"]


def page(name_or_path: str | Path, wordings: int = 1, **settings: Any) -> Experiment:
    """A page asked by qCSF in text, in some wordings, about gratings of 64 px."""
    parameters = {"frequency": 4, "contrast": 0.1, "luminance": 40, "size": 64}
    prompts = [
        {"id": f"wording {number}", "text": "Is there a pattern?"}
        for number in range(wordings)
    ]
    changed = {
        "stimulus": {"kind": "grating", "parameters": parameters},
        "levels": {
            "frequency": {"values": [1, 2, 4, 8, 16, 24]},
            "contrast": {"from": 0.001, "to": 1, "n": 10, "scale": "log"},
        },
        "asking.prompts": prompts,
        "asking.design": "quick_csf",
        "asking.readout": "text",
        "asking.temperature": 1,
    }
    return load_experiment(name_or_path).with_settings(changed | settings)


def methods(experiment: Experiment, **options: Any) -> list[str]:
    run = pp.run(experiment, "simulated:watson-malo", progress=False)
    return sorted(set(flag_words(chat_csf(run, **options)["method"]).ravel().tolist()))


def own_page(tmp_path: Path) -> Path:
    """A page of one's own with a [fit], which states what is usual."""
    catalogue_page = load_experiment("hernandez2025").toml
    path = tmp_path / "mine.toml"
    path.write_text(f'{catalogue_page}\n[fit]\nfunction = "logistic"\n')
    return path


@pytest.mark.parametrize("name", ["hernandez2025", "hernandez2025_published"])
def test_nearly_all_thresholds_are_usable_on_pages_of_the_catalogue(name: str) -> None:
    """On the published page 30 were, by fits of each frequency by itself."""
    run = pp.run(page(name, wordings=6), "simulated:watson-malo", progress=False)
    csf = chat_csf(run)
    assert csf["usable"].size == 36
    assert int(csf["usable"].sum()) >= 35
    score = pp.score(run)
    assert not any("[fit]" in note for row in score.rows() for note in row.notes)


def test_the_posterior_counts_unless_the_user_sets_a_fit(tmp_path: Path) -> None:
    short = {"asking.options": {"n_max": 12}}
    assert methods(page("hernandez2025", **short)) == POSTERIOR
    assert methods(page("hernandez2025", **short), function="logistic") == COUNTS
    assert methods(page("hernandez2025", **short, **{"fit.guess": 0})) == COUNTS
    assert methods(page(own_page(tmp_path), **short)) == COUNTS


def test_plan_and_score_say_where_a_fit_takes_the_place_of_the_posterior(
    tmp_path: Path,
) -> None:
    experiment = page(own_page(tmp_path), **{"asking.options": {"n_max": 12}})
    sentence = "[fit] is set, so each threshold is fitted by itself: after quick_csf"
    assert sentence in str(pp.plan(experiment, "simulated:watson-malo"))
    score = pp.score(pp.run(experiment, "simulated:watson-malo", progress=False))
    assert any(note.startswith(sentence) for row in score.rows() for note in row.notes)
    assert sentence not in str(pp.plan(page("hernandez2025"), "simulated:watson-malo"))
