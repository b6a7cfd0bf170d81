"""The same stimuli to a tiny chat model's vision tower and to words: LLaVA's code, random weights,
no download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_chat_models

import psyprobe as pp
from psyprobe.analysis import bridge, trials
from psyprobe.analysis.responses import select
from psyprobe.plotting import plot_bridge

pytest.importorskip("transformers", reason="the chat-local extra is not installed")

SAME = """
stimulus = "noise_hernandez2025"
display = { peak = 186.8805 }
[levels]
frequency = { values = [1, 2, 4] }
contrast = { from = 0.002, to = 0.2, n = 7, scale = "log" }
"""
ASKING = """
[asking]
prompts = "base"
readout = "p_yes"
repeats = { text = 1, p_yes = 1 }
seed = 1
[delivery]
bits = "float"
"""


def test_tower_and_words_of_one_tiny_model_in_one_figure(tmp_path: Path) -> None:
    """A mouth that says yes where the model's own tower passes a criterion has the curve of that
    response."""
    folder = tiny_chat_models.llava(tmp_path)
    (tmp_path / "words.toml").write_text(
        'title = "In words"\nprobe = "yes_no"' + SAME + ASKING, encoding="utf-8"
    )
    (tmp_path / "eye.toml").write_text(
        'title = "By features"\nprobe = "detection"' + SAME, encoding="utf-8"
    )
    eye = pp.load_observer(f"transformers_vision:{folder}", random_weights=True)
    chat = pp.load_observer(f"transformers:{folder}", random_weights=True)
    assert chat.card.input_size == eye.card.input_size == (56, 56)

    tower_result = pp.run(tmp_path / "eye.toml", eye, progress=False)
    criterion = float(np.median(select(tower_result).grid))

    def answer(images: list[Any], prompt: str) -> Any:
        pair = np.stack([images[0], np.full_like(images[0], images[0].mean())]).astype(
            np.float32
        )
        logit = 4 * np.log10(
            pp.angular_distance(*eye.features(pair)["projector"]) / criterion
        )
        first = {"Yes": -np.logaddexp(0, -logit), "No": -np.logaddexp(0, logit)}
        return max(first, key=first.__getitem__), first

    mouth = pp.observer(answer, name="says what the tower sees", input_size=56)
    word_trials = trials(pp.run(tmp_path / "words.toml", mouth, progress=False))
    bridged = bridge(word_trials, tower_result)
    # Samples of noise differ between the two runs, and little else does.
    assert bridged.rmse < 0.1 and bridged.shape_rmse < 0.1
    assert abs(np.log10(bridged.level / criterion)) < 0.3
    _, labels = plot_bridge(word_trials, tower_result).get_legend_handles_labels()
    assert any("vision tower" in label for label in labels)
    # The model's own words are asked about the same images, unrounded, whatever it may say of them.
    chat_trials = trials(pp.run(tmp_path / "words.toml", chat, progress=False))
    np.testing.assert_array_equal(chat_trials["image_seed"], word_trials["image_seed"])
    np.testing.assert_allclose(
        chat_trials["delivered_contrast"], word_trials["delivered_contrast"], rtol=1e-5
    )
    assert np.isfinite(chat_trials["p_yes"]).all()
