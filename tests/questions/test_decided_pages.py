"""Every page that asks for answers is answered by an encoder that decides."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from decided_pages import answered_pages, smallest

import psyprobe as pp
from psyprobe.errors import InputError

#: Pages that show clips, on which no stage is trained.
CLIPS = {name for name in answered_pages() if pp.load_experiment(name).spec().is_clip}
STILLS = [name for name in answered_pages() if name not in CLIPS]


def coarse(images: Any) -> Any:
    """Means of blocks of eight by eight pixels, in red and green."""
    count, height, width, _ = images.shape
    blocks = images[:, : height // 8 * 8, : width // 8 * 8, :2]
    return blocks.reshape(count, height // 8, 8, width // 8, 8, 2).mean(axis=(2, 4))


@pytest.mark.parametrize("name", STILLS)
def test_every_page_that_asks_is_answered_by_an_encoder(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ten letters swap their labels for seconds.
    monkeypatch.setattr("psyprobe.observers.decisions.training._SWAPS", 2)
    encoder = pp.observer(coarse, name="coarse", version="1")
    observer = pp.decide(encoder, stage="template", train="high", pairs=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = pp.run(smallest(name), observer, progress=False)
    assert np.isfinite(result["response"].values.astype(float)).all()


@pytest.mark.parametrize("name", ["photograph_contrast", "letter_noise"])
def test_fields_of_other_sizes_are_shown(name: str) -> None:
    encoder = pp.observer(coarse, name="coarse", version="1", input_size=260)
    # What leaves the display first: the densest noise, and the highest contrast.
    strongest = {
        f"levels.{level}": {"values": sorted(sorted(values, key=abs)[-2:])}
        for level, values in pp.load_experiment(name).levels.items()
    }
    page = smallest(name).with_settings(strongest)
    planned = pp.plan(page, pp.decide(encoder, stage="template", pairs=16))
    assert planned.images > 0


def test_a_page_of_one_size_says_so() -> None:
    encoder = pp.observer(coarse, name="coarse", version="1", input_size=260)
    page = smallest("hernandez2025_published")
    with pytest.raises(
        InputError, match=r"256 x 256 px to every observer .* takes 260 x 260 px"
    ):
        pp.run(page, pp.decide(encoder, stage="template", pairs=16), progress=False)
