"""Features that all but vanish on a uniform field: an angle against rounding is said to be none,
and L2 is scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.analysis import score_table
from psyprobe.analysis.direction import SOUND, TURNED, UNDEFINED, angle_status
from psyprobe.analysis.distance import distances
from psyprobe.observers import Card
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.displayed_images import one_step_away
from psyprobe.probes.results import scoreboard

MATCHING = (
    ('probe = "detection"', 'probe = "matching"'),
    ('model = "castle_csf"', 'data = "georgeson_sullivan1975"'),
    ('[score]\nmultiplier = { from = 0.5, to = 2, n = 2, scale = "log" }\n', ""),
    (
        "frequency = { from = 1, to = 4, n = 3,",
        "frequency = { values = [0.25, 0.5, 1, 2, 5, 10, 15, 20, 25] }\n#",
    ),
    (
        'contrast = { from = 0.01, to = 1, n = 3, scale = "log" }',
        "contrast = { values = [0.01, 0.1, 0.9] }",
    ),
)


def _differences(images: FloatArray) -> FloatArray:
    """Differences of Gaussians at two scales, of the green channel."""
    spectrum = np.fft.fft2(images[..., 1].astype(np.float64))
    steps = np.fft.fftfreq(spectrum.shape[-1])
    f2 = steps[:, None] ** 2 + steps**2
    kernels = [np.exp(-20 * s**2 * f2) - np.exp(-50 * s**2 * f2) for s in (0.7, 1.4)]
    filtered = np.stack(
        [np.fft.ifft2(spectrum * kernel).real for kernel in kernels], axis=1
    )
    return filtered.reshape(len(images), -1)


def _energy(images: FloatArray) -> FloatArray:
    """The length of the gradient, in float32, which is above 0 throughout: its noise points one
    way."""
    plane = images[..., 1].astype(np.float32)
    across, down = (
        np.roll(plane, 1, axis) / np.float32(3) - plane / np.float32(3)
        for axis in (1, 2)
    )
    return np.sqrt(across**2 + down**2).reshape(len(images), -1) + np.float32(1e-12)


def _exact(images: FloatArray) -> FloatArray:
    """Exact zeros on a uniform field."""
    differences = _differences(images)
    return np.where(np.abs(differences) < 1e-12, 0.0, differences)


@pytest.mark.parametrize("bank", [_differences, _energy, _exact])
def test_a_filter_bank_is_undefined_by_angle_and_scored_by_l2(
    tmp_path: Path, bank: object
) -> None:
    result = pp.run(
        write_experiment(tmp_path), pp.observer(bank, name="bank"), progress=False
    )
    for name in ("response", "scored_response"):
        assert (result[f"{name}_status"] == UNDEFINED).all()
        assert (result[f"pixels_{name}_status"] == SOUND).all()
    by_angle, by_length = pp.score(result), pp.score(result, measure="l2")
    assert (by_angle.score.alignment.value, by_angle.undefined) == (None, 1.0)
    assert "100 % of the responses are undefined" in str(
        by_angle
    ) and "measure='l2'" in str(by_angle)
    assert by_length.undefined == 0 and "undefined" not in str(by_length)
    assert by_length.score.slices.monotonicity == 1
    table_row = json.loads(score_table([by_angle], "json"))[0]
    assert (
        table_row["undefined"] == 1 and table_row["score"]["alignment"]["value"] is None
    )
    board = scoreboard([by_angle])
    assert " eu" in str(board) and "score measure='l2'" in str(board)
    labels = [text.get_text() for text in pp.plot(result).figure.legends[0].get_texts()]
    assert "Undefined: see measure='l2'" in labels
    labels = [
        text.get_text()
        for text in pp.plot(result, measure="l2").figure.legends[0].get_texts()
    ]
    assert labels == ["Human (castleCSF)"]


def test_matching_is_not_told_either(tmp_path: Path) -> None:
    changes = (("ppd = 16", "ppd = 64"), ("size = 16", "size = 128"))
    page = write_experiment(tmp_path, *MATCHING, stimulus=changes)
    result = pp.run(page, pp.observer(_exact, name="bank"), progress=False)
    assert (result["reference_response_status"] == UNDEFINED).all()
    by_angle, by_length = pp.score(result), pp.score(result, measure="l2")
    assert (by_angle.score.error, by_angle.undefined) == (
        None,
        1.0,
    ) and "measure='l2'" in str(by_angle)
    assert by_length.score.error is not None and by_length.score.error.mean.value > 0
    assert by_angle.pixels is not None and by_angle.pixels.error is not None
    labels = [text.get_text() for text in pp.plot(result).get_legend().get_texts()]
    assert "Undefined: see measure='l2'" in labels
    scoreboard([by_angle])


def test_an_observer_with_direction_is_sound(tmp_path: Path) -> None:
    result = pp.run(write_experiment(tmp_path), "pixels", progress=False)
    assert (result["scored_response_status"] == SOUND).all() and pp.score(
        result
    ).undefined == 0


def test_a_short_feature_of_the_reference_is_told(tmp_path: Path) -> None:
    def nearly(images: FloatArray) -> FloatArray:
        return np.concatenate(
            [_differences(images), np.full((len(images), 1), 1e-4)], axis=1
        )

    result = pp.run(
        write_experiment(tmp_path), pp.observer(nearly, name="nearly"), progress=False
    )
    detection_score = pp.score(result)
    assert (
        detection_score.turned
        == (result["scored_response_status"] == TURNED).mean()
        > 0.1
    )
    assert (
        detection_score.score.alignment.value is not None
        and "compare measure='l2'" in str(detection_score)
    )
    assert "t" in str(scoreboard([detection_score])).split("nearly")[1].split("\n")[0]


def test_status_follows_from_the_lengths() -> None:
    lengths = np.array(
        [
            [1, 1, 1e-7],
            [1, 1, 1e-7],
            [1, 1, 1e-7],
            [1, 0.05, 1e-7],
            [1, 1e-6, 1e-6],
            [0, 1, 0],
        ]
    )
    angles = [0.5, 1e-9, 0.0, 0.5, 0.5, np.nan]
    assert angle_status(angles, lengths).tolist() == [
        SOUND,
        UNDEFINED,
        SOUND,
        TURNED,
        UNDEFINED,
        UNDEFINED,
    ]


def test_zero_features_have_lengths_and_no_angle() -> None:
    measures = distances([[0.0, 0.0], [3.0, 4.0]], [0.0, 0.0])
    assert measures["l1"].tolist() == [0, 7] and measures["l2"].tolist() == [0, 5]
    assert np.isnan(measures["angular"]).all() and np.isnan(measures["cosine"]).all()


@pytest.mark.parametrize(
    ("dtype", "step"),
    [("float32", 2.0**-23), ("float16", 2.0**-10), ("bfloat16", 2.0**-7)],
)
@pytest.mark.parametrize("drive", [0.0, 0.003, 0.5, 1.0])
def test_the_step_is_one_of_rounding_and_stays_in_range(
    dtype: str, step: float, drive: float
) -> None:
    grey = ImagePlanes(np.full((2, 8, 8, 1), drive, np.float32))
    card = Card(
        "net",
        "features",
        input="normalised",
        mean=(0.5,) * 3,
        std=(0.25,) * 3,
        dtype=dtype,
    )
    moved = one_step_away(grey, card).planes
    assert moved.shape == (2, 8, 8, 1) and moved.min() >= 0 and moved.max() <= 1
    by = np.abs(moved - drive)
    full_step = max(step * abs(drive - 0.5), float(np.spacing(np.float32(drive))))
    assert by.min() == 0 and by.max() == pytest.approx(full_step, rel=0.01)
    assert (by > 0).mean() == pytest.approx(0.5, abs=0.2)
