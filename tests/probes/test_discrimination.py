"""Discrimination: what pages of the catalogue give for pixels, and observers of known truth that
are recovered."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.analysis import score_detection
from psyprobe.analysis.jnd import anisotropy, dip, jnd, slope
from psyprobe.errors import InputError
from psyprobe.human.discrimination import legge_foley_response
from psyprobe.observers.simulated.comparing import wave_of


@cache
def pixels(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pp.run(name, "pixels", progress=False)


#: By page: r_s of pixels and of the difference alone (reference page, three digits; its own points,
#: pooled).
ALIGNMENT = {
    "gabor_masked_parallel": (0.495, 0.500),
    "gabor_masked_orientation": (0.538, 0.539),
    "gabor_masked_orthogonal": (0.677, 0.691),
    "grating_masked_cross": (0.757, 0.775),
    "orientation_discrimination": (0.591, 0.568),
}


@pytest.mark.parametrize("name", ALIGNMENT)
def test_trivial_responders_have_the_scores_of_the_reference(name: str) -> None:
    (detection_score,) = score_detection(pixels(name), resamples=100)
    alignments = (
        detection_score.pixels.alignment.value,
        detection_score.contrast.alignment.value,
    )
    assert alignments == pytest.approx(ALIGNMENT[name], abs=6e-4)


def test_trivial_responders_on_measured_pedestals() -> None:
    (detection_score,) = score_detection(
        pixels("contrast_discrimination_masked").sel(mask_contrast=0), resamples=100
    )
    assert detection_score.pixels.alignment.value == pytest.approx(0.629, abs=2e-3)
    assert detection_score.contrast.alignment.value == pytest.approx(0.629, abs=6e-4)
    assert pp.score(pixels("contrast_discrimination_masked")).people.ratios[
        "dip"
    ] == pytest.approx(0.31, abs=5e-3)


def test_a_surround_does_nothing_to_pixels() -> None:
    surround_score = pp.score(pixels("surround"))
    ratios = [
        surround_score.pixels.ratios[name]
        for name in ("elevation", "tuning", "response ratio")
    ]
    assert ratios == pytest.approx([1, 1, 1], abs=4e-3)
    assert surround_score.people is None and surround_score.alignment is None


def test_pixels_have_neither_dip_nor_masking_and_no_anisotropy() -> None:
    of_contrast = pp.score(pixels("contrast_discrimination")).score
    # The small fall is the sRGB curve: 0.976 of the threshold at a pedestal of 0.3.
    alone = of_contrast.values[0]
    assert of_contrast.values[8] / alone == pytest.approx(0.976, abs=2e-3)
    assert (
        -0.035 < of_contrast.ratios["handle"] < -0.02
        and of_contrast.ratios["dip"] > 0.94
    )
    for name in ("orientation_discrimination", "frequency_discrimination"):
        axis_score = pp.score(pixels(name)).score
        # Between levels of the grid log response is taken as straight.
        assert axis_score.anisotropy_range == pytest.approx((1, 1), abs=5e-3)
    turned = pp.score(pixels("orientation_discrimination"))
    assert turned.ideal.values == pytest.approx(turned.score.values, rel=0.25)
    assert pp.score(pixels("frequency_discrimination")).score.ratios[
        "slope"
    ] == pytest.approx(-1, abs=2e-3)
    assert "people (dipper, after Legge & Foley 1980)" in str(
        pp.score(pixels("contrast_discrimination"))
    )


def test_a_flat_human_curve_is_not_aligned() -> None:
    flat = pp.score(pixels("frequency_discrimination"))
    assert flat.alignment is None and "flat" in flat.note
    assert pp.score(pixels("orientation_discrimination")).alignment is not None
    assert flat.flat.rmse == pytest.approx(0, abs=1e-12)


GABOR = (
    'stimulus = { kind = "gabor", parameters = { frequency = 4, contrast = 0.2, radius = '
    "0.4, size = 129 } }\n"
)


def page(folder: Path, text: str, name: str = "page") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(
        f'title = "A page"\nprobe = "discrimination"\ndisplay = {{ peak = 400 }}\n{text}',
        encoding="utf-8",
    )
    return path


def contrast_of(light: FloatArray) -> FloatArray:
    plane = light[..., 0]
    grey = plane[:, :1, 0]
    return np.asarray(np.abs(plane.reshape(len(plane), -1) / grey - 1).max(axis=1))


def transducer(test: FloatArray, reference: FloatArray) -> FloatArray:
    """A metric that sees the largest contrast of an image as Legge and Foley's transducer does."""
    return np.abs(
        legge_foley_response(contrast_of(test))
        - legge_foley_response(contrast_of(reference))
    )


def test_a_transducer_is_recovered(tmp_path: Path) -> None:
    text = (
        GABOR
        + "levels = { contrast.values = [0, 0.0054, 0.05, 0.1, 0.2, 0.4] }\nhuman = { model = "
        '"legge_foley1980" }\n'
        'difference = { parameter = "contrast", levels = { from = 0.0005, to = 0.5, n = 60 } }\n'
        "score = { anchor = 0.0038206 }\n"
    )
    axis_score = pp.score(
        pp.run(
            page(tmp_path, text),
            pp.observer(transducer, name="transducer"),
            progress=False,
        )
    ).score
    # With an odd number of pixels, one is at the centre and has the whole contrast.
    assert axis_score.shift == pytest.approx(0, abs=0.003) and axis_score.shape < 0.004
    assert axis_score.ratios["dip"] == pytest.approx(0.429, abs=0.004)
    assert axis_score.ratios["handle"] == pytest.approx(0.60, abs=0.02)


def waves(test: FloatArray, reference: FloatArray) -> FloatArray:
    """A metric to which 0.5 deg is as different as 6 % of frequency."""
    distances = []
    for pair in zip(test[..., 0], reference[..., 0], strict=True):
        first, other = (wave_of(stimulus) for stimulus in pair)
        turned = (first.orientation - other.orientation + 90) % 180 - 90
        finer = np.log(first.frequency / other.frequency) / np.log(1.06)
        distances.append(np.hypot(turned / 0.5, finer))
    return np.asarray(distances)


def test_an_anisotropy_is_recovered_at_any_criterion(tmp_path: Path) -> None:
    text = (
        GABOR + "levels = { contrast.values = [0.1, 0.3] }\n"
        'difference = { parameter = "orientation", unit = "deg", levels = { from = 0.1, to = 5, '
        "n = 8 }, "
        'against = { parameter = "frequency", unit = "weber", levels = { from = 0.01, to = 0.4, '
        "n = 8 } } }\n"
        'score = { anchor = "contrast" }\n'
    )
    # It does not see contrast, so the anchor says next to nothing: any criterion will do.
    blind = pp.run(
        page(tmp_path, text), pp.observer(waves, name="waves"), progress=False
    )
    for level in (0.8, 2.0):
        at = blind.assign(
            anchor_response_difference=0 * blind["anchor_response_difference"] + level
        )
        truth = (1.06**level - 1) / np.radians(0.5 * level)
        # Between levels log response is taken as straight.
        assert pp.score(at).score.ratios["anisotropy"] == pytest.approx(truth, rel=0.02)


def test_anchors_are_averaged_over_variants(tmp_path: Path) -> None:
    text = (
        GABOR
        + "levels = { contrast.values = [0.1, 0.3] }\nscore = { anchor = 0.01 }\nvariants = { "
        "phase = [0, 90] }\n"
        'difference = { parameter = "orientation", unit = "deg", levels = { from = 0.1, to = 5, '
        "n = 6 } }\n"
    )
    result = pp.run(page(tmp_path, text), "pixels", progress=False)
    apart = result["anchor_response_by_variant_angular"]
    np.testing.assert_allclose(result["anchor_response_angular"], apart.mean("variant"))
    assert result["anchor_response_by_variant_angular"].sizes["variant"] == 2
    assert pp.score(result).score.status == ("reached", "reached")


def test_what_can_be_said_of_a_threshold() -> None:
    rows = [[1, 2, 4], [0.5, 0.6, 0.7], [4, 5, 6], [1, 4, 1], [np.nan, 2, 3], [1, 2, 4]]
    thresholds, status = jnd([1.0, 2.0, 4.0], rows, [3, 3, 3, 3, 3, 0])
    assert status.tolist() == [
        "reached",
        "never reached",
        "above",
        "recrossed",
        "undefined",
        "undefined",
    ]
    np.testing.assert_allclose(thresholds[[0, 3]], [3, 2 ** (np.log(3) / np.log(4))])
    assert np.isnan(thresholds[[1, 2, 4, 5]]).all()
    assert dip([0.01, 0.1], [1, 2]) is None and slope([0.0, 1.0], [1, 2]) is None
    assert anisotropy(0.05, 0.5) == pytest.approx(5.73, abs=0.01)


def test_slips_of_a_page(tmp_path: Path) -> None:
    contrast = (
        'levels = { contrast.values = [0, 0.1] }\ndifference = { parameter = "contrast", '
        "levels = [0.1, 0.2] }\n"
    )
    contrast = contrast.replace("[0.1, 0.2]", "{ values = [0.1, 0.2] }")
    with pytest.raises(
        InputError, match=r"score\.anchor is 'contrast', and contrast is what differs"
    ):
        pp.run(
            page(tmp_path, GABOR + contrast + 'score = { anchor = "contrast" }\n'),
            "pixels",
            progress=False,
        )
    with pytest.raises(
        InputError,
        match=r"score\.anchor is 2; give 'detection', 'contrast', or a contrast up to 1",
    ):
        pp.run(
            page(tmp_path, GABOR + contrast + "score = { anchor = 2 }\n"),
            "pixels",
            progress=False,
        )
    contrast_pedestal = contrast.replace(
        "] } }",
        '] }, against = { parameter = "contrast", levels = { values = [0.1, 0.2] } } }',
    )
    with pytest.raises(
        InputError, match=r"difference\.against\.parameter is 'contrast' too"
    ):
        pp.run(
            page(tmp_path, GABOR + contrast_pedestal + "score = { anchor = 0.01 }\n"),
            "pixels",
            progress=False,
        )


TWO_INTERVALS = """
asking = {{ prompts = "{axis}_difference", repeats = 15, readout = "text", temperature = 1 }}
fit = {{ function = "weibull" }}
levels = {{ {level} }}
difference = {{ parameter = "{axis}", unit = "{unit}", levels = {{ from = {low}, to = {high}, n = 6 }} }}
"""
#: d' at which 75 % of the choices are right.
D_PRIME = 0.9539


@pytest.mark.parametrize(
    ("axis", "unit", "level", "span", "jnd"),
    [
        ("orientation", "deg", "frequency.values = [4]", (0.15, 4), 0.8),
        ("frequency", "weber", "frequency.values = [4]", (0.01, 0.3), 0.05),
        ("contrast", "increment", "contrast.values = [0, 0.1]", (0.002, 0.2), None),
    ],
)
def test_a_simulated_observer_in_words_is_recovered(
    axis: str,
    unit: str,
    level: str,
    span: tuple[float, float],
    jnd: float | None,
    tmp_path: Path,
) -> None:
    text = GABOR + TWO_INTERVALS.format(
        axis=axis, unit=unit, level=level, low=span[0], high=span[1]
    )
    options = {"orientation_jnd": 0.8} if axis == "orientation" else {}
    observer = pp.load_observer("simulated:flat", deg=129 / 60, **options)
    result = pp.run(page(tmp_path, text), observer, progress=False)
    assert (
        f"delivered_{axis}_difference" in result and "delivered_contrast" not in result
    )
    score = pp.score(result)
    for point in score.curve:
        if axis == "contrast":
            truth = transduced(observer, point.value)
        else:
            truth = (
                jnd * D_PRIME
                if axis == "orientation"
                else float(np.expm1(np.log1p(jnd) * D_PRIME))
            )
        assert 1 / point.high < truth < 1 / point.low, (point, truth)


def transduced(observer: Any, pedestal: float) -> float:
    """Increment at which the transducer has risen by d', in units of the observer's own
    threshold."""
    from psyprobe.human.discrimination import increment
    from psyprobe.stimulus import Gabor

    sensitivity = float(
        observer.true_sensitivity(
            Gabor(frequency=4, contrast=0.2, radius=0.4, size=129)
        )
    )
    gain = sensitivity * 0.0038206
    return float(
        increment(lambda by: legge_foley_response((pedestal + by) * gain), D_PRIME, ())
    )
