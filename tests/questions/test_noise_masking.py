"""Thresholds over densities of noise: known equivalent noise comes back, and is drawn and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis.efficiency.noise_masking import noise_masking
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.errors import InputError

PAGE = """
title = "Gabor in noise of several densities"
probe = "two_interval"
[stimulus]
kind = "gabor"
[stimulus.parameters]
frequency = 4
contrast = 0.1
radius = 0.25
luminance = 100
size = 24
ppd = 16
[noise]
density = 1e-5
[levels]
noise_density = { values = [0, 1e-6, 1e-5, 1e-4] }
contrast = { from = 0.006, to = 0.12, n = 5, scale = "log" }
[asking]
prompts = "two_image"
repeats = 32
catch = 0
seed = 3
[delivery]
bits = "float"
[display]
peak = 400
"""
EQUIVALENT = 1e-5


def noisy() -> Any:
    """An encoder of the light in its own noise, which is another at every look."""
    generator = np.random.default_rng(5)
    display = pp.Display(peak=400)

    def features(images: Any) -> Any:
        light = display.luminance(images).reshape(len(images), -1) / 100
        return light + generator.normal(size=light.shape) * EQUIVALENT**0.5 * 16

    return features


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    page = tmp_path_factory.mktemp("page") / "densities.toml"
    page.write_text(PAGE, encoding="utf-8")
    observer = pp.observer(noisy(), name="noisy", version="1")
    return pp.run(page, pp.decide(observer, stage="template", train="high", pairs=32))


def test_the_equivalent_noise_of_an_observer_comes_back(result: Any) -> None:
    masking = noise_masking(chat_csf(result))
    assert masking is not None and masking.fit is not None
    low, high = masking.fit.density_interval
    assert low < EQUIVALENT < high < 100 * low
    low, high = masking.fit.efficiency_interval
    assert 0.3 < low < 1 < high * 1.25
    assert masking.fit.p_value > 0.01


def test_energy_and_efficiency_are_variables_of_the_curve(result: Any) -> None:
    csf = chat_csf(result)
    energy = csf["threshold_energy"]
    assert energy.attrs["units"] == "degree2"
    noisy_levels = csf.sel(noise_density=csf["noise_density"] > 0)
    ideal = noisy_levels["ideal_threshold"].values
    # The ideal observer's energy is in proportion to the density.
    ratio = ideal**2 / noisy_levels["noise_density"].values
    assert ratio == pytest.approx(ratio[0])
    shares = (noisy_levels["mean_sensitivity"].values * ideal) ** 2
    assert noisy_levels["efficiency"].values == pytest.approx(shares)
    assert np.isnan(csf["efficiency"].values[0])


def test_the_score_tells_the_fit_and_what_stands_against_it(result: Any) -> None:
    score = pp.score(result)
    text = str(score)
    assert "equivalent input noise" in text
    assert "N_eq (deg²)" in text
    assert "unless this encoder has noise of its own" in " ".join(text.split())
    (record,) = score.to_frame().to_dict("records")
    assert record["equivalent_noise_deg2"] == pytest.approx(EQUIVALENT, rel=0.9)
    assert score.to_dict()["masking"]["fit"]["density"] > 0


def test_few_densities_have_a_rough_fit_and_two_have_none(result: Any) -> None:
    csf = chat_csf(result)
    three = noise_masking(csf.isel(noise_density=[1, 2, 3]))
    assert three is not None and three.fit is not None
    assert "3 densities where 5 are asked for, none of them 0" in three.remarks[0]
    two = noise_masking(csf.isel(noise_density=[1, 2]))
    assert two is not None and two.fit is None
    assert "takes at least 3" in two.remarks[0]


def test_energy_is_drawn_over_density_on_logarithmic_axes(result: Any) -> None:
    ax = pp.plot(result)
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert lines["ideal observer"].get_linestyle() == ":"
    assert ax.get_yscale() == "log"
    assert ax.get_xticklabels()[0].get_text() == "0"
    assert ax.get_xlabel() == "Noise density N (deg²)"
    assert ax.get_ylabel() == "Threshold energy (deg²)"
    (fit,) = (line for label, line in lines.items() if "N_{eq}" in label)
    # Without noise the fit is flat, at the energy of the observer's own noise.
    assert fit.get_ydata()[0] == pytest.approx(fit.get_ydata()[1], rel=0.15)


def test_a_report_shows_the_figure(result: Any, tmp_path: Path) -> None:
    page = pp.report(result, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Threshold energy over noise" in page


def test_yes_and_no_are_not_asked_over_densities(tmp_path: Path) -> None:
    page = tmp_path / "yes.toml"
    text = PAGE.replace('"two_interval"', '"yes_no"').replace('"two_image"', '["base"]')
    page.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="ask in two intervals"):
        pp.plan(page, "decided:pixels")
