"""Whole runs on a model in this process: asked in words, and its own eye on the same stimuli."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import trials

torch = pytest.importorskip("torch", reason="the chat extra is not installed")
pytest.importorskip("transformers", reason="the chat extra is not installed")

STIMULI = """
source   = "a test"
stimulus = "noise_hernandez2025"
display  = "hernandez2025"
[levels]
frequency = { values = [1, 4] }
contrast  = { values = [0.003, 0.25] }
"""
WORDS_PAGE = f"""
title = "Noise put to a chat model in words"
probe = "yes_no"
{STIMULI}
[asking]
prompts = ["Is there a pattern?", "Can you see a texture?"]
design  = "constant"
repeats = {{ text = 1, p_yes = 1 }}
readout = "p_yes"
max_tokens = 2
[delivery]
bits = "float"
[human]
model = "watson_malo_csf"
"""
TOWER_PAGE = f"""
title = "The same noise put to its eye"
probe = "detection"
human = {{ model = "castle_csf", area = 16 }}
{STIMULI}
[score]
multiplier = {{ values = [0.5, 2] }}
"""


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("family", ["llava", "qwen"])
def test_asked_in_words_and_by_its_eye(
    family: str, chat_folders: Callable[[str], Path], tmp_path: Path
) -> None:
    for name, text in (("asked", WORDS_PAGE), ("seen", TOWER_PAGE)):
        (tmp_path / f"{name}.toml").write_text(text)
    chat = pp.load_observer(f"transformers:{chat_folders(family)}", device="cpu")
    eye = pp.load_observer(f"transformers_vision:{chat_folders(family)}", device="cpu")

    word_trials = trials(pp.run(str(tmp_path / "asked.toml"), chat))
    assert word_trials.attrs["random_weights"] == 1
    signal_trials = word_trials.where(word_trials["catch"] == 0, drop=True)
    assert (
        set(signal_trials["frequency"].values) == {1, 4}
        and (signal_trials["was_shown"] == 1).all()
    )
    np.testing.assert_allclose(
        signal_trials["delivered_contrast"], signal_trials["contrast"], rtol=1e-5
    )
    assert (
        np.isfinite(word_trials["p_yes"]).all() and (word_trials["tokens_in"] > 0).all()
    )
    by_image = (
        signal_trials.to_dataframe().groupby(["frequency", "contrast"])["p_yes"].mean()
    )
    assert by_image.nunique() == 4, "each image has an answer of its own"

    tower_result = pp.run(str(tmp_path / "seen.toml"), eye)
    assert tower_result.attrs["random_weights"] == 1
    grid = tower_result["response_angular"].squeeze()
    assert (grid.isel(contrast=1) > 10 * grid.isel(contrast=0)).all() and (
        grid > 0
    ).all()
