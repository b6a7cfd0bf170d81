"""A known sensitivity function, asked for in words from pixels up, in process and over HTTP, comes back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis.chat_csf import chat_csf
from psyprobe.observers.simulated import SimulatedObserver
from psyprobe.observers.simulated_mind import Mind
from psyprobe.stimulus.catalogue import load_stimulus

PAGE = """
title    = "Few levels"
stimulus = "noise_hernandez2025"
probe    = "yes_no"
display  = "hernandez2025"

[levels]
frequency = {{ values = {frequency} }}
contrast  = {{ from = 0.001, to = 0.25, n = 10, scale = "log" }}

[asking]
prompts     = {prompts}
suffix      = "Answer with yes or no."
repeats     = {{ text = 10, p_yes = 3 }}
catch       = {catch}
readout     = "{readout}"
temperature = {temperature}
seed        = 1
"""

NOUNS = ("pattern", "texture", "structure", "design", "motif", "figure", "shape", "form")


def page(folder: Path, readout: str, frequency: list[int], catch: float = 0.1, prompts: int = 1) -> Path:
    path = folder / f"few_{readout}.toml"
    asked = [f"Is there a {noun} visible in the image?" for noun in NOUNS[:prompts]]
    temperature = int(readout == "text")
    path.write_text(
        PAGE.format(
            readout=readout, frequency=frequency, catch=catch, prompts=json.dumps(asked), temperature=temperature
        )
    )
    return path


def off_by(result, observer: SimulatedObserver, **fit) -> np.ndarray:
    """Log10 of found over true sensitivity, by wording and frequency."""
    csf = chat_csf(result, **fit)
    spec = load_stimulus("noise_hernandez2025").spec(frequency=csf["frequency"].values, contrast=0.1)
    return np.log10(csf["sensitivity"].values / observer.true_sensitivity(spec))


def rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def test_probabilities_of_yes_recover_the_function(tmp_path: Path) -> None:
    observer = SimulatedObserver("watson-malo", Mind(logit_sd=0.5))
    result = pp.run(page(tmp_path, "p_yes", [1, 4, 16]), observer, progress=False)
    assert (result["readout"].values.astype(str) == "p_yes").all()
    assert rms(off_by(result, observer)) <= 0.03


def test_text_recovers_it(tmp_path: Path) -> None:
    observer = SimulatedObserver("watson-malo")
    result = pp.run(page(tmp_path, "text", [2, 8], prompts=4), observer, progress=False)
    assert rms(off_by(result, observer)) <= 0.08


def test_a_bias_to_yes_does_not_move_it(tmp_path: Path) -> None:
    observer = SimulatedObserver("watson-malo", Mind(guess=0.25))
    result = pp.run(page(tmp_path, "text", [4], catch=0.3, prompts=8), observer, progress=False)
    # One curve in a hundred is taken for a falling one by chance, and has no threshold.
    assert abs(np.nanmean(off_by(result, observer))) <= 0.05
    assert np.nanmean(off_by(result, observer, guess=0, lapse=0)) > 0.25


def test_choosing_one_of_two_images_needs_no_catch_trials(tmp_path: Path) -> None:
    text = page(tmp_path, "p_yes", [4], catch=0).read_text().replace('"yes_no"', '"two_interval"')
    lines = [line for line in text.splitlines() if not line.startswith(("prompts", "suffix"))]
    path = tmp_path / "two.toml"
    path.write_text("\n".join([*lines, 'prompts = "two_image"']))
    observer = SimulatedObserver("watson-malo", Mind(logit_sd=0.3))
    result = pp.run(path, observer, progress=False)
    csf = chat_csf(result)
    assert (csf["guess"] == 0.5).all() and (csf["status"] == "ok").all()
    assert np.abs(off_by(result, observer)).max() < 0.1


def test_the_same_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    from psyprobe.simulated_server import serve

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    behind = SimulatedObserver("watson-malo", Mind(logit_sd=0.5))
    with serve(behind) as server:
        chat = pp.load_observer(f"openai:{behind.card.name}", base_url=server.base_url)
        result = pp.run(page(tmp_path, "p_yes", [2, 8]), chat, progress=False)
    assert rms(off_by(result, behind)) <= 0.03
