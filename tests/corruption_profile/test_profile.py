"""The robustness profile of an encoder: S_ac between photographs and their corrupted versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from item_pages import write_page
from PIL import Image
from small_experiment import Counting

from psyprobe.analysis.distance import angular_distance
from psyprobe.corruption import corrupt
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.observers import load_observer
from psyprobe.probes.experiments import run
from psyprobe.tasks.r_bench.corruption_profile import plot, score

pytest.importorskip("cv2", reason="the corruption extra is not installed")
mpl.use("agg")


def profile_of(folder: Path, observer: Any, store: Any = None, **options: Any) -> Any:
    """Run a page beside the photographs."""
    page = write_page(
        folder.parent / "profile.toml", "corruption_profile", folder, **options
    )
    return run(
        page,
        load_observer(observer) if isinstance(observer, str) else observer,
        store=store,
        progress=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "photographs"
    place.mkdir()
    for i in range(2):
        pixels = np.random.default_rng(i).integers(
            0, 256, (224, 224, 3), dtype=np.uint8
        )
        Image.fromarray(pixels).save(place / f"{i}.png")
    return place


def test_pixels_of_the_right_size_are_compared_as_they_are(folder: Path) -> None:
    profile = profile_of(folder, "pixels", corruptions=["jpeg", "white_noise"], seed=3)
    assert profile["response_angular"].sizes == {
        "layer": 1,
        "photograph": 2,
        "dimension": 2,
        "strength": 3,
    }
    original = np.asarray(Image.open(folder / "1.png"))
    for strength in ("low", "high"):
        changed = corrupt(original, "white_noise", strength, 3, image_id="1.png")
        condition = {
            "photograph": "1.png",
            "dimension": "white_noise",
            "strength": strength,
        }
        response = profile["response_angular"].sel(condition)
        expected = angular_distance(
            changed.ravel() / np.float32(255), original.ravel() / np.float32(255)
        )
        assert float(response.squeeze()) == pytest.approx(float(expected), rel=1e-6)


def test_responses_are_kept_and_not_computed_again(
    folder: Path, tmp_path: Path
) -> None:
    store, first, second = tmp_path / "runs.sqlite", Counting(), Counting()
    names = ["jpeg", "motion_blur"]
    first_profile = profile_of(folder, first, corruptions=names, store=store)
    other = profile_of(folder, second, corruptions=names, store=store)
    # Each photograph, and its three versions by each corruption.
    assert len(first.images) == 2 * (1 + 3 * 2)
    # Stored batches are compared with what the observer says now, and none is shown besides.
    assert len(second.images) <= len(first.images)
    assert first_profile.identical(other)


def test_stronger_corruption_is_farther_off(folder: Path) -> None:
    names = ["gaussian_filter", "white_noise", "minimum_darken"]
    profile = profile_of(folder, "pixels", corruptions=names)
    mean = profile["response_angular"].sel(layer="pixels").mean("photograph").values
    assert (np.diff(mean, axis=1) > 0).all()


def test_the_figure_names_dimensions_and_marks_what_is_simulated(folder: Path) -> None:
    profile = profile_of(folder, "pixels", corruptions=["motion_blur", "lens_obstacle"])
    ax = plot([profile])
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "Motion blur",
        "Lens obstacle *",
    ]
    assert "simulated" in ax.get_xlabel()
    mpl.pyplot.close(ax.figure)


def test_bad_requests_are_one_sentence(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'jpeg'"):
        profile_of(folder, "pixels", corruptions=["jpg"])
    with pytest.raises(UnknownNameError, match="strength"):
        profile_of(folder, "pixels", strengths=["much"])
    with pytest.raises(
        InputError, match="needs an observer with the ability 'features'"
    ):
        profile_of(folder, "simulated:watson-malo")


def test_the_score_stands_beside_the_pixels(folder: Path) -> None:
    result = profile_of(folder, Counting(), corruptions=["jpeg", "white_noise"])
    (profile_score,), (surer,) = score(result), score(result, confidence=0.99)
    observer, pixels = profile_score.rows()
    assert (
        surer.rows()[1].record["angular_overall_low"]
        < pixels.record["angular_overall_low"]
    )
    assert list(observer.cells) == ["low", "mid", "high", "overall"]
    low, mean, high = (
        pixels.record[f"angular_overall{end}"] for end in ("_low", "", "_high")
    )
    assert low <= mean <= high
    (alone,) = score(profile_of(folder, "pixels", corruptions=["jpeg", "white_noise"]))
    assert alone.rows()[0].record["angular_overall"] == pixels.record["angular_overall"]
