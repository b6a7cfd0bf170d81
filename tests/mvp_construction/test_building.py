"""A set from photographs to question file: simulated chat models, real masks, and no step done
twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from simulated_models import SCENES, SpyModels, photographs

from psyprobe.errors import InputError, StoreError, UnknownNameError
from psyprobe.files.images import read_image
from psyprobe.tasks.mvp_bench import check_questions, read_questions, with_rotations
from psyprobe.tasks.mvp_construction import (
    Tools,
    build_set,
    load_tool,
)
from psyprobe.tasks.mvp_construction.steps import read_set_items


class Counting:
    """A tool that counts what is done with it."""

    def __init__(self, tool: Any) -> None:
        self.tool, self.card, self.count = tool, tool.card, 0

    def __getattr__(self, name: str) -> Any:
        def counted(*values: Any) -> Any:
            self.count += 1
            return getattr(self.tool, name)(*values)

        return counted


def classical() -> Tools:
    return Tools(
        Counting(load_tool("segmenter", "felzenszwalb", scale=200, min_size=100)),
        Counting(load_tool("inpainter", "pull_push")),
        Counting(load_tool("editor", "recolour")),
    )


def build(
    folder: Path, models: SpyModels, tools: Tools | None = None, **options: Any
) -> Any:
    return build_set(
        photographs(folder / "photographs"),
        folder / "set",
        captioner=models.captioner,
        chat=models.chat,
        tools=tools or classical(),
        progress=False,
        **options,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SpyModels, Any]:
    folder, models = tmp_path_factory.mktemp("built"), SpyModels()
    return folder / "set", models, build(folder, models)


def test_four_photographs_become_pairs_with_questions(
    built: tuple[Path, SpyModels, Any],
) -> None:
    folder, models, report = built
    assert set(report.states.values()) == {"complete"}
    assert (report.questions, report.random_weights) == (28, ())
    assert len(models.steps) == 4 * 8
    questions = read_questions(folder / "questions.json")
    checked = check_questions(with_rotations(questions), folder)
    assert (checked.pairs, checked.images) == (4, 12)
    assert (
        checked.same_answer,
        checked.malformed,
        checked.missing_images,
        checked.rotations_wrong,
    ) == (
        (),
        (),
        (),
        (),
    )
    yes_no = questions[questions["task"] == "yes_no"]
    assert set(zip(yes_no["kind"], yes_no["answer"], strict=True)) == {
        ("N", "no"),
        ("M", "yes"),
    }
    keys = questions[questions["task"] != "yes_no"]
    for scene, (_, group) in zip(SCENES.values(), keys.groupby("pair"), strict=True):
        for row in group.to_dict("records"):
            right = next(
                line
                for line in row["question"].split("\n")
                if line.startswith(f"{row['answer']}. ")
            )
            assert right[3:] == scene[row["level"]][1]
            if row["task"] == "single_mcq":
                assert scene["high"][0] in row["question"]


def test_images_are_changed_where_they_should_be_and_nowhere_else(
    built: tuple[Path, SpyModels, Any],
) -> None:
    folder, _, _ = built
    for item in read_set_items(folder):
        natural, manipulated = (
            read_image(folder / f"Single_Images/{item.number}_{kind}.png")
            for kind in "se"
        )
        np.testing.assert_array_equal(natural, read_image(item.photograph))
        assert (natural != manipulated).any()
        pair = read_image(folder / f"Cross_Images/{item.number}_concat.png")
        np.testing.assert_array_equal(pair, np.hstack([natural, manipulated]))
        record = json.loads(
            (folder / f"Single_Images/{item.number}_e.json").read_text()
        )
        with Image.open(folder / f"Single_Images/{item.number}_e.png") as opened:
            assert json.loads(opened.info["psyprobe"]) == record
        assert record["random_weights"] is False
        if record["plan"]["editing"] != "direct":
            hole = read_image(folder / f"masks/{item.number}_hole.png")[..., 0] > 0
            assert record["hole_area"] == hole.sum()
            if record["plan"]["editing"] == "part":
                np.testing.assert_array_equal(manipulated[~hole], natural[~hole])
            else:
                mask = record["mask"]
                assert 0 < mask["overlap"] <= min(mask["area"], mask["box_area"])


def test_a_second_run_asks_and_draws_nothing(
    built: tuple[Path, SpyModels, Any],
) -> None:
    folder, _, report = built
    before = {
        path: path.stat().st_mtime_ns for path in (folder / "Single_Images").iterdir()
    }
    models, tools = SpyModels(), classical()
    assert build(folder.parent, models, tools) == report
    assert models.steps == []
    assert [tools.segmenter.count, tools.inpainter.count, tools.editor.count] == [
        0,
        0,
        0,
    ]
    assert {
        path: path.stat().st_mtime_ns for path in (folder / "Single_Images").iterdir()
    } == before


@pytest.mark.parametrize("stop_at", [3, 13, 29])
def test_stopped_anywhere_it_goes_on_from_there(
    tmp_path: Path, built: tuple[Path, SpyModels, Any], stop_at: int
) -> None:
    def stop(step: str, prompt: str, reply: str) -> str:
        if len(models.steps) == stop_at:
            raise KeyboardInterrupt
        return reply

    models = SpyModels(stop)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, models)
    resumed = SpyModels()
    build(tmp_path, resumed)
    # Stored captions are compared with what the model says now, and asked twice.
    compared = sum(step == "caption" for step in models.steps[:-1])
    assert len(models.steps) - 1 + len(resumed.steps) in (4 * 8, 4 * 8 + compared)
    assert not set(models.prompts[:-1]) & set(resumed.prompts) - {
        p for p in resumed.prompts if p.startswith("Describe")
    }
    for name in ("questions.json", "Single_Images/1002_e.png"):
        assert (tmp_path / "set" / name).read_bytes() == (built[0] / name).read_bytes()


def test_an_image_whose_note_was_lost_is_not_drawn_again(tmp_path: Path) -> None:
    build(tmp_path, SpyModels())
    path = tmp_path / "set/items/1002.json"
    noted = json.loads(path.read_text())
    del noted["steps"]["image"]
    path.write_text(json.dumps(noted))
    tools = classical()
    build(tmp_path, SpyModels(), tools)
    assert tools.inpainter.count == 0
    (tmp_path / "set/Cross_Images/1002_concat.png").unlink()
    build(tmp_path, SpyModels(), tools)
    assert tools.inpainter.count == 1


def test_what_cannot_be_read_fails_at_its_step_and_is_asked_again_on_request(
    tmp_path: Path,
) -> None:
    def spoil(step: str, prompt: str, reply: str) -> str:
        earlier = "could not be used: part is 9 and no number from 1 to 4" in prompt
        return (
            reply.replace('"part": 3', '"part": 9')
            if step == "proposal" and not earlier
            else reply
        )

    models = SpyModels(spoil)
    report = build(tmp_path, models)
    assert (
        report.states[1001] == "failed at proposal: part is 9 and no number from 1 to 4"
    )
    assert (report.failed, report.questions) == ({"proposal": 1}, 21)
    assert "1 failed at proposal; ask again with --retry" in str(report)
    count = len(models.steps)
    assert build(tmp_path, models).failed == {"proposal": 1}
    assert len(models.steps) == count
    assert build(tmp_path, models, retry=True).questions == 28
    assert models.steps[count:] == ["proposal", "questions"]


def test_another_seed_draws_anew_and_asks_nothing(tmp_path: Path) -> None:
    models = SpyModels()
    build(tmp_path, models)
    first = (tmp_path / "set/Single_Images/1002_e.png").read_bytes()
    build(tmp_path, models, seed=1)
    assert (tmp_path / "set/Single_Images/1002_e.png").read_bytes() != first
    assert len(models.steps) == 32


def test_a_mask_that_misses_the_subject_fails_the_item(tmp_path: Path) -> None:
    class Blind:
        card = load_tool("segmenter", "slic").card

        def masks(self, image: Any) -> Any:
            return np.zeros((0, *image.shape[:2]), dtype=bool)

    report = build(
        tmp_path,
        SpyModels(),
        Tools(
            Blind(),
            load_tool("inpainter", "pull_push"),
            load_tool("editor", "recolour"),
        ),
    )
    assert report.states[1002].startswith(
        "failed at image: there is no mask to choose from"
    )
    assert report.failed == {"image": 2}


def test_bad_requests_are_one_sentence(
    tmp_path: Path, built: tuple[Path, SpyModels, Any]
) -> None:
    with pytest.raises(UnknownNameError, match="unknown category 'B9'"):
        build(tmp_path, SpyModels(), offered=["B9"])
    with pytest.raises(
        UnknownNameError, match="unknown region of a part 'bix'; did you mean 'box'"
    ):
        build(tmp_path, SpyModels(), region="bix")
    photograph = tmp_path / "photographs" / "astronaut.png"
    (tmp_path / "photographs" / "again.png").write_bytes(photograph.read_bytes())
    with pytest.raises(InputError, match="are the same photograph"):
        build(tmp_path, SpyModels())
    (tmp_path / "set/items").mkdir(parents=True)
    (tmp_path / "set/items/1001.json").write_text("{}")
    with pytest.raises(StoreError, match="is no item of a set"):
        build(tmp_path, SpyModels())
    for kind, name in (
        ("segmenter", "slick"),
        ("inpainter", "paint"),
        ("editor", "recolor"),
    ):
        with pytest.raises(UnknownNameError):
            load_tool(kind, name)
