"""The code of SAM and of diffusers, on tiny models with random weights, which are told wherever
they were used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_image_models
from simulated_models import SpyModels, photographs

from psyprobe.errors import WeightsError
from psyprobe.files.images import read_image
from psyprobe.tasks.mvp_construction import (
    Tools,
    build_set,
    load_tool,
)
from psyprobe.tasks.mvp_construction.manipulation import Box

pytestmark = [
    # Both libraries call what newer versions of others have renamed.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    pytest.importorskip("diffusers", reason="the extra zoo is not installed")
    folder = tmp_path_factory.mktemp("models")
    steps = {"steps": 2, "longest": 64}
    return Tools(
        load_tool(
            "segmenter",
            f"sam:{tiny_image_models.sam(folder / 'sam')}",
            **tiny_image_models.SAM_SETTINGS,
        ),
        load_tool(
            "inpainter",
            f"inpaint:{tiny_image_models.diffusion(folder / 'inpaint', 'inpaint')}",
            **steps,
        ),
        load_tool(
            "editor",
            f"instruct:{tiny_image_models.diffusion(folder / 'instruct', 'instruct')}",
            **steps,
        ),
    )


def test_a_set_is_built_and_says_that_weights_were_random(
    tmp_path: Path, tools: Tools
) -> None:
    models = SpyModels()
    report = build_set(
        photographs(tmp_path / "photographs", longest=64),
        tmp_path / "set",
        captioner=models.captioner,
        chat=models.chat,
        tools=tools,
        region="mask",
        progress=False,
    )
    assert set(report.states.values()) == {"complete"}
    assert len(report.random_weights) == 3
    assert "its images only show that it runs" in str(report)
    used = set()
    for number in range(1001, 1005):
        record = json.loads(
            (tmp_path / f"set/Single_Images/{number}_e.json").read_text()
        )
        assert record["random_weights"] is True
        used |= {card["name"].partition(":")[0] for card in record["tools"].values()}
        natural, manipulated = (
            read_image(tmp_path / f"set/Single_Images/{number}_{kind}.png")
            for kind in "se"
        )
        assert natural.shape == manipulated.shape
        assert (natural != manipulated).mean() > 0.01
    assert used == {"sam", "inpaint", "instruct"}


def test_the_same_seed_draws_the_same_and_another_another(tools: Tools) -> None:
    image = np.random.default_rng(0).integers(0, 256, (45, 65, 3), dtype=np.uint8)
    hole = Box(0.2, 0.2, 0.6, 0.7).mask(45, 65)
    draws: dict[str, Any] = {
        "inpaint": lambda seed: tools.inpainter.inpaint(image, hole, "a dog", seed),
        "edit": lambda seed: tools.editor.edit(
            image, "change the noise into a dog", seed
        ),
    }
    for draw in draws.values():
        first = draw(1)
        assert (first.shape, first.dtype) == (image.shape, np.uint8)
        np.testing.assert_array_equal(draw(1), first)
        assert (draw(2) != first).any()


def test_sam_gives_masks_of_the_image_size(tools: Tools) -> None:
    image = np.random.default_rng(0).integers(0, 256, (45, 65, 3), dtype=np.uint8)
    masks = tools.segmenter.masks(image)
    assert masks.dtype == np.bool_
    assert masks.shape[1:] == (45, 65)
    assert len(masks) > 0


@pytest.mark.parametrize(
    ("kind", "name"),
    [("segmenter", "sam"), ("inpainter", "inpaint"), ("editor", "instruct")],
)
def test_a_model_that_is_not_there_is_one_sentence(
    tmp_path: Path, kind: str, name: str
) -> None:
    with pytest.raises(WeightsError, match="give a folder that holds it") as caught:
        load_tool(kind, f"{name}:{tmp_path}")
    assert "\n" not in str(caught.value)
