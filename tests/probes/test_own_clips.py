"""A kind of clip that says only what its frames are runs by page and is certified."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import UniformClip, specification
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.stimulus.certificate import ImageMeasurements

DOCS = Path(__file__).parents[2] / "docs" / "clips.md"
SOURCE = next(
    block
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S)
    if "# my_clips.py" in block
)
STIMULUS = """
title = "A Gabor that grows"
kind = "my_clips.py:Growing"
parameters = { frequency = 4, contrast = 0.1, size = 32, frames = 5 }
"""
EXPERIMENT = """
title = "Sensitivity to what grows"
stimulus = "growing.toml"
probe = "detection"
[levels]
frequency = { values = [2, 4] }
contrast = { values = [0.05, 0.1] }
[display]
peak = 400
"""


@pytest.fixture(autouse=True)
def kinds_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specification, "KINDS", specification.KINDS.copy())


@pytest.fixture
def stimulus(tmp_path: Path) -> Path:
    (tmp_path / "my_clips.py").write_text(SOURCE, encoding="utf-8")
    path = tmp_path / "growing.toml"
    path.write_text(STIMULUS, encoding="utf-8")
    return path


def test_it_is_drawn_and_compared_with_a_uniform_clip(stimulus: Path) -> None:
    clip = load_stimulus(stimulus).spec(contrast=[0.1, 0.2], luminance=50.0)
    frames = clip.draw().pixels
    assert frames.shape == (2, 5, 32, 32)
    chunks = [np.asarray(chunk.pixels) for chunk in clip.chunks(2)]
    np.testing.assert_array_equal(np.concatenate(chunks, axis=1), frames)
    spread = frames.std(axis=(2, 3))
    assert (np.diff(spread, axis=1) > 0).all()
    expected = UniformClip(
        luminance=50.0, ppd=clip.ppd, size=32, fps=clip.fps, frames=5
    )
    assert clip.reference() == expected
    assert clip.still_frame().draw().pixels.shape == (32, 32)


def test_every_frame_is_certified(
    stimulus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clip = load_stimulus(stimulus).spec()
    certificate = clip.measure(Display(peak=400))
    assert certificate.passed
    assert certificate["contrast"].delivered == pytest.approx(0.1, rel=1e-9)
    assert certificate["values outside gamut"].delivered == 0
    wrong = clip.stills(0, 5).changed(contrast=0.11).draw().pixels
    conditions = ImageMeasurements(100.0, "float64")
    measurements = clip.measure_image(wrong, conditions)
    assert not next(
        measurement
        for measurement in measurements
        if measurement.quantity == "contrast"
    ).passed
    assert main(["check", str(stimulus)]) == 0
    assert "contrast" in capsys.readouterr().out


def test_it_runs_by_page(stimulus: Path, tmp_path: Path) -> None:
    page = tmp_path / "grows.toml"
    page.write_text(EXPERIMENT, encoding="utf-8")
    result = pp.run(page, "pixels", progress=False)
    assert int(result.attrs["frames"]) == 5 and result.sizes["frequency"] == 2
    response = result["response_angular"].sel(layer="pixels")
    assert (response.diff("contrast") > 0).all()


def test_frames_on_a_mask_want_a_reference_of_their_own(stimulus: Path) -> None:
    masked = SOURCE.replace(
        "return Gabor(", "return Gabor(frequency=2, contrast=0.1) + Gabor("
    )
    (stimulus.parent / "my_clips.py").write_text(masked, encoding="utf-8")
    clip = load_stimulus(stimulus).spec(size=224)
    with pytest.raises(
        InputError, match=r"is not uniform; give this kind of clip a method refere"
    ):
        clip.reference()
