"""The published stimuli, pixel for pixel, against arrays drawn by the authors' own functions."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import specification_from_dict

KINDS = {"band_noise": "noise"}
AXES = {"ach": "achromatic", "rg": "red_green", "yv": "yellow_violet"}


def manifest(folder: Path) -> list[dict[str, str]]:
    with (folder / "manifest.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def specification(row: dict[str, str]) -> Any:
    columns = {
        "luminance": "luminance_cd_m2",
        "contrast": "contrast",
        "frequency": "frequency_cpd",
        "radius": "radius_deg",
        "mask_contrast": "mask_contrast",
    }
    values: dict[str, Any] = {name: float(row[column]) for name, column in columns.items() if row[column]}
    values["kind"] = "cai2025_" + KINDS.get(row["kind"], row["kind"])
    if row["kind"] == "gabor":
        values["axis"] = AXES[row["color_direction"]]
    return specification_from_dict(values)


def test_all_published_stimuli_are_reproduced(shared_data: Path) -> None:
    folder = shared_data / "encoder_protocol" / "stimuli"
    display = Display(peak=400, extended=True)
    rows = manifest(folder)
    assert len(rows) == 16
    for row in rows:
        spec = specification(row)
        published = np.load(folder / row["file"])
        for prefix, drawn in (("test", spec.draw()), ("ref", spec.reference().draw())):
            light, drive = published[f"{prefix}_lum"], published[f"{prefix}_srgb"]
            np.testing.assert_allclose(drawn.pixels, np.broadcast_to(light, drawn.pixels.shape), rtol=1e-6)
            encoded = display.encode(drawn)
            encoded = encoded if drawn.space == "rgb" else encoded[..., 0]
            np.testing.assert_allclose(encoded, np.broadcast_to(drive, encoded.shape), rtol=1e-6, atol=1e-7)


def test_published_kinds_broadcast() -> None:
    spec = specification_from_dict({"kind": "cai2025_gabor", "frequency": [2.0, 4.0], "contrast": 0.1})
    one = specification_from_dict({"kind": "cai2025_gabor", "frequency": 4.0, "contrast": 0.1})
    np.testing.assert_array_equal(spec.draw().pixels[1], one.draw().pixels)


def test_unknown_axis_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'red_green'"):
        specification_from_dict({"kind": "cai2025_gabor", "axis": "red-green"})
