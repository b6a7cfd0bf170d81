"""Acuity: what pixels have for a limit, and observers of known truth that are recovered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.human import castle_csf
from psyprobe.human.acuity import resolution_limit
from psyprobe.observers.simulated.comparing import wave_of
from psyprobe.stimulus import Gabor

PAGE = """
title = "Fine stripes"
probe = "acuity"
stimulus = { kind = "gabor", parameters = { frequency = 4, contrast = 0.9, radius = 0.25, ppd = 120, size = 129 } }
levels = { contrast.values = [0.3, 0.9], frequency = { from = 8, to = 54, n = 12 } }
human = { model = "resolution_limit" }
display = { peak = 400 }
"""
#: Fall of a metric's response by 1/e, cpd.
FALL = 8.0


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "fine.toml"
    path.write_text(PAGE + 'score = { anchor = "detection" }\n', encoding="utf-8")
    return path


def test_pixels_never_fall(page: Path) -> None:
    acuity_score = pp.score(pp.run(page, "pixels", progress=False))
    assert acuity_score.score.status == ("above", "above")
    assert "never falls, never falls" in str(acuity_score) and "cycles/px" in str(
        acuity_score
    )
    assert acuity_score.people.values == pytest.approx(
        tuple(1 / resolution_limit([0.3, 0.9]))
    )


def blurred(test: FloatArray, reference: FloatArray, ppd: float) -> FloatArray:
    """A metric whose response falls with frequency."""
    planes = test[..., 0]
    contrast = np.abs(planes / reference[..., 0].mean() - 1).max(axis=(1, 2))
    return np.asarray(
        [
            c * np.exp(-wave_of(plane).frequency * ppd / FALL)
            for c, plane in zip(contrast, planes, strict=True)
        ]
    )


def test_the_limit_of_a_metric_is_recovered(page: Path) -> None:
    limit = pp.score(
        pp.run(page, pp.observer(blurred, name="blurred"), progress=False)
    ).score
    detected = 1 / castle_csf(
        4, luminance=100, area=np.pi * 0.25**2, direction="achromatic"
    )
    truth = [4 + FALL * np.log(contrast / detected) for contrast in (0.3, 0.9)]
    # Between frequencies of the grid log response is taken as straight over log period.
    assert [1 / value for value in limit.values if value is not None] == pytest.approx(
        truth, rel=0.01
    )


def test_the_limit_of_an_observer_in_words_is_recovered(tmp_path: Path) -> None:
    path = tmp_path / "asked.toml"
    asking = 'asking = { prompts = "two_image", repeats = 10, readout = "text", temperature = 1 }\n'
    path.write_text(
        PAGE.replace("n = 12", "n = 6").replace("[0.3, 0.9]", "[0.9]")
        + asking
        + 'fit = { function = "logistic" }\n',
        encoding="utf-8",
    )
    observer = pp.load_observer(
        "simulated:castlecsf", deg=129 / 120, scale=0.3, luminance=100
    )
    score = pp.score(pp.run(path, observer, progress=False))
    f = np.linspace(5, 54, 300)
    for point in score.curve:
        spec = Gabor(frequency=f, contrast=point.value, radius=0.25, ppd=120, size=129)
        visibility = point.value * observer.true_sensitivity(spec)
        truth = float(np.interp(-1, -visibility, f))
        assert point.low < truth < point.high, (point, truth)
    assert "limit (cpd)" in str(score)


#: Names of observers both of whose limits lie within the frequencies of the page.
SCALES = {"achromatic": 0.5, "red_green": 0.7, "yellow_violet": 1.4}


@pytest.mark.parametrize("direction", SCALES)
def test_the_catalogue_gives_the_limit_in_words_back(direction: str) -> None:
    page = load_experiment(f"acuity_{direction}").with_settings(
        {"asking.readout": "p_yes"}
    )
    spec = page.spec()
    options = {
        "direction": direction,
        "deg": spec.shape[0] / spec.ppd,
        "luminance": 100.0,
    }
    observer = pp.load_observer(
        "simulated:castlecsf", scale=SCALES[direction], **options
    )
    score = pp.score(pp.run(page, observer, progress=False))
    f = np.linspace(8, 50, 85)
    assert len(score.curve) == 2
    for point in score.curve:
        visibility = point.value * observer.true_sensitivity(
            page.spec(contrast=point.value, frequency=f)
        )
        truth = float(np.interp(-1, -visibility, f))
        assert point.low < truth < point.high, (point, truth)


def test_slips(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    page.write_text(
        text.replace(
            "frequency = { from = 8, to = 54, n = 12 }", "phase.values = [0, 90]"
        ),
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"\[levels\] has no 'frequency'"):
        pp.run(page, "pixels", progress=False)
    page.write_text(PAGE, encoding="utf-8")
    with pytest.raises(InputError, match=r"\[score\] has no anchor"):
        pp.run(page, "pixels", progress=False)
