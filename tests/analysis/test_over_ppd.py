"""A score over pixels per degree: planted where it peaks, shifted and redrawn."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr
from detection_results import human_csf, simulated_result

matplotlib.use("Agg")

import psyprobe as pp
from psyprobe.analysis import score_over_ppd
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.files.netcdf import write_netcdf
from psyprobe.plotting import ppd_curves


def human_at(factor: float, observer: str = "simulated") -> xr.Dataset:
    """Responses of people whose frequency axis is moved by a factor, on a page at 60 ppd."""

    def response(frequency: np.ndarray, contrast: np.ndarray) -> np.ndarray:
        return 0.4 * np.tanh(human_csf(frequency * factor) * contrast / 100)

    result = simulated_result(response, observer=observer)
    result.attrs["experiment_toml"] = pp.load_experiment("gabor_achromatic").toml
    return result


@pytest.mark.parametrize("octaves", [-0.5, 0.0, 1.0])
def test_a_planted_ppd_is_the_best_within_a_quarter_octave(octaves: float) -> None:
    """An observer that responds to 4 cpd at 60 ppd as people do to 8 cpd sees as people do at 120
    ppd."""
    (curve,) = score_over_ppd(human_at(2.0**octaves)).curves
    assert curve.convention == 60 and len(curve.ppd) == 13
    assert np.log2(curve.ppd[-1] / curve.ppd[0]) == pytest.approx(3)
    assert abs(np.log2(curve.best_ppd / 60) - octaves) <= 0.25
    assert curve.cross_fitted > 0.98
    if octaves:
        assert curve.slope * octaves > 0.1
        assert curve.at_convention < max(curve.scores) - 0.05


def test_table_figure_and_commands_say_that_it_is_a_convention(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [human_at(2.0, "coarse"), human_at(1.0, "like people")]
    text = str(score_over_ppd(results))
    assert "convention" in text and "at 60" in text and "shifted" in text
    axes = ppd_curves(score_over_ppd(results))
    assert axes.get_xscale() == "log" and "Pixels per degree" in axes.get_xlabel()
    ticks = axes.get_xticks().tolist()
    assert ticks == [15, 30, 60, 120]
    marked = [line for line in axes.lines if list(line.get_xdata()) == [60, 60]]
    assert len(marked) == 1
    path = str(tmp_path / "run.nc")
    write_netcdf(results[0], Path(path))
    assert main(["score", path, "--over", "ppd", "--json"]) == 0
    (curve,) = json.loads(capsys.readouterr().out)["curves"]
    assert len(curve["scores"]) == 13
    figure = tmp_path / "ppd.png"
    assert main(["plot", path, "--over", "ppd", "-o", str(figure)]) == 0
    assert figure.stat().st_size > 5000


def test_redrawn_stimuli_peak_where_the_filter_of_an_observer_does() -> None:
    """Its filter is castleCSF of 16 pixels a degree; the page is drawn at 8, 16 and 32."""

    def filtered(images: np.ndarray) -> np.ndarray:
        size = images.shape[1]
        y, x = np.meshgrid(np.fft.fftfreq(size), np.fft.fftfreq(size), indexing="ij")
        cpd = np.maximum(16 * np.hypot(x, y), 0.25)
        weight = pp.castle_csf(cpd, luminance=100, area=3.14)
        light = images[..., 1].astype(np.float64) ** 2.2
        return np.abs(np.fft.fft2(light) * weight).reshape(len(images), -1)

    page = pp.load_experiment("gabor_achromatic")
    observer = pp.observer(filtered, name="filtered")
    results = []
    for ppd in (16, 8, 32):
        changed = page.with_settings(
            {
                "stimulus.parameters.frequency": 2,
                "stimulus.parameters.ppd": ppd,
                "stimulus.parameters.size": 4 * ppd,
                "levels.frequency": {"values": [0.7, 1, 1.4, 2, 2.8, 3.5]},
            }
        )
        results.append(
            pp.run(changed, observer, score_only=True, variants={}, progress=False)
        )
    (curve,) = score_over_ppd(results, measure="l2").curves
    assert curve.reading == "redrawn" and curve.ppd == (8, 16, 32)
    assert curve.best_ppd == 16 and curve.convention == 16
    assert max(curve.scores) - min(curve.scores) > 0.1


def test_what_has_no_curve_is_refused() -> None:
    short = human_at(1.0).drop_vars(
        ["response_angular", "response_cosine", "response_l1", "response_l2"]
    )
    with pytest.raises(InputError, match="no level grid"):
        score_over_ppd(short)
    with pytest.raises(InputError, match="does not tell pixels per degree"):
        score_over_ppd(simulated_result(lambda f, c: c))
