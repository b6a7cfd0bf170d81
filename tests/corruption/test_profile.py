"""The robustness profile of an encoder: S_ac between photographs and their corrupted versions."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image
from small_experiment import Counting

from psyprobe.analysis.distance import angular_distance
from psyprobe.corruption import corrupt
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.tasks.r_bench.corruption_profile import plot_profile, robustness_profile

pytest.importorskip("cv2", reason="the corruption extra is not installed")
mpl.use("agg")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "photographs"
    place.mkdir()
    for i in range(2):
        pixels = np.random.default_rng(i).integers(0, 256, (224, 224, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{i}.png")
    return place


def test_pixels_of_the_right_size_are_compared_as_they_are(folder: Path) -> None:
    profile = robustness_profile(folder, "pixels", names=["jpeg", "white_noise"], seed=3, progress=False)
    assert profile["response"].sizes == {"layer": 1, "measure": 4, "photograph": 2, "dimension": 2, "strength": 3}
    original = np.asarray(Image.open(folder / "1.png"))
    for strength in ("low", "high"):
        changed = corrupt(original, "white_noise", strength, 3, image_id="1.png")
        here = {"measure": "angular", "photograph": "1.png", "dimension": "white_noise", "strength": strength}
        found = profile["response"].sel(here)
        expected = angular_distance(changed.ravel() / np.float32(255), original.ravel() / np.float32(255))
        assert float(found.squeeze()) == pytest.approx(float(expected), rel=1e-6)


def test_responses_are_kept_and_not_computed_again(folder: Path, tmp_path: Path) -> None:
    store, first, second = tmp_path / "runs.sqlite", Counting(), Counting()
    one = robustness_profile(folder, first, names=["jpeg"], store=store, progress=False)
    other = robustness_profile(folder, second, names=["jpeg"], store=store, progress=False)
    assert len(first.shown) == 2 * 4  # each photograph and its three versions
    assert second.shown == []
    assert one.identical(other)


def test_stronger_corruption_is_farther_off(folder: Path) -> None:
    names = ["gaussian_filter", "white_noise", "minimum_darken"]
    profile = robustness_profile(folder, "pixels", names=names, progress=False)
    mean = profile["response"].sel(measure="angular", layer="pixels").mean("photograph").values
    assert (np.diff(mean, axis=1) > 0).all()


def test_the_figure_names_dimensions_and_marks_what_is_simulated(folder: Path) -> None:
    profile = robustness_profile(folder, "pixels", names=["motion_blur", "lens_obstacle"], progress=False)
    ax = plot_profile(profile)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Motion blur", "Lens obstacle *"]
    assert "simulated" in ax.get_xlabel()
    mpl.pyplot.close(ax.figure)


def test_bad_requests_are_one_sentence(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'jpeg'"):
        robustness_profile(folder, "pixels", names=["jpg"])
    with pytest.raises(UnknownNameError, match="strength"):
        robustness_profile(folder, "pixels", strengths=["much"])
    with pytest.raises(InputError, match="needs an observer with features"):
        robustness_profile(folder, "simulated:watson-malo")
