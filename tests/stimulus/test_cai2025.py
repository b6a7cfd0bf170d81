"""The published stimuli, pixel for pixel, against arrays drawn by the authors' own functions."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import specification_from_dict

KINDS = {"band_noise": "noise"}
AXES = {"ach": "achromatic", "rg": "red_green", "yv": "yellow_violet"}


@pytest.fixture
def manifest(oracle_data: Path) -> list[dict[str, str]]:
    with (oracle_data / "encoder_protocol" / "stimuli_manifest.csv").open(
        encoding="utf-8"
    ) as file:
        return list(csv.DictReader(file))


def specification(row: dict[str, str]) -> Any:
    columns = {
        "luminance": "luminance_cd_m2",
        "contrast": "contrast",
        "frequency": "frequency_cpd",
        "radius": "radius_deg",
        "mask_contrast": "mask_contrast",
    }
    values: dict[str, Any] = {
        name: float(row[column]) for name, column in columns.items() if row[column]
    }
    values["kind"] = "cai2025_" + KINDS.get(row["kind"], row["kind"])
    if row["kind"] == "gabor":
        values["axis"] = AXES[row["color_direction"]]
    return specification_from_dict(values)


def assert_reproduced(spec: Any, published: Any, pixel: Any) -> None:
    """`published` holds light and drive of the chosen pixels, of the stimulus ("test") and of its
    reference ("ref")."""
    display = Display(peak=400, extended=True)
    for prefix, stimulus in (("test", spec.draw()), ("ref", spec.reference().draw())):
        light, drive = published[f"{prefix}_lum"], published[f"{prefix}_srgb"]
        pixels = stimulus.pixels[pixel]
        np.testing.assert_allclose(
            pixels, np.broadcast_to(light, pixels.shape), rtol=1e-6
        )
        encoded = display.encode(stimulus)[pixel]
        encoded = encoded if stimulus.space == "rgb" else encoded[..., 0]
        np.testing.assert_allclose(
            encoded, np.broadcast_to(drive, encoded.shape), rtol=1e-6, atol=1e-7
        )


def test_a_sample_of_all_published_stimuli_is_reproduced(
    manifest: list[dict[str, str]], oracle_data: Path
) -> None:
    sample = np.load(oracle_data / "encoder_protocol" / "stimuli_sample.npz")
    pixel = np.unravel_index(sample["pixel"], (224, 224))
    assert len(manifest) == 16
    for row in manifest:
        stem = row["file"].removesuffix(".npz")
        published = {
            name: sample[f"{stem} {name}"]
            for name in ("test_lum", "test_srgb", "ref_lum", "ref_srgb")
        }
        assert published["test_lum"].shape[0] == 1000
        assert_reproduced(specification(row), published, pixel)


def test_all_published_stimuli_have_the_published_extremes_and_moments(
    manifest: list[dict[str, str]],
) -> None:
    for row in manifest:
        stimulus = specification(row).draw()
        light = stimulus.pixels
        drive = Display(peak=400, extended=True).encode(stimulus)
        moments = [light.min(), light.max(), light.mean(), light.std(), drive.mean()]
        names = (
            "test_lum_min",
            "test_lum_max",
            "test_lum_mean",
            "test_lum_std",
            "test_srgb_mean",
        )
        np.testing.assert_allclose(
            moments,
            [float(row[name]) for name in names],
            rtol=1e-6,
            err_msg=row["file"],
        )


def test_all_published_stimuli_are_reproduced(
    manifest: list[dict[str, str]], beside_checkout: Callable[[str], Path]
) -> None:
    folder = beside_checkout("encoder_protocol/stimuli")
    for row in manifest:
        assert_reproduced(specification(row), np.load(folder / row["file"]), ...)


def test_published_kinds_broadcast() -> None:
    spec = specification_from_dict(
        {"kind": "cai2025_gabor", "frequency": [2.0, 4.0], "contrast": 0.1}
    )
    single = specification_from_dict(
        {"kind": "cai2025_gabor", "frequency": 4.0, "contrast": 0.1}
    )
    np.testing.assert_array_equal(spec.draw().pixels[1], single.draw().pixels)


def test_unknown_axis_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'red_green'"):
        specification_from_dict({"kind": "cai2025_gabor", "axis": "red-green"})
