"""castleCSF against the values that the authors' own code returns, and the errors it must raise."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import castle_csf, castle_mechanisms
from psyprobe.human.castle import fading

Columns = dict[str, FloatArray]
Reader = Callable[[str], Columns]

#: Above this luminance the authors' literal form of one term carries up to 1.3e-6 of rounding,
#: which ours does not.
LITERAL_FORM_EXACT = 150.0  # cd/m²

MECHANISM_COLUMNS = {
    "achromatic": "S_ach",
    "red_green": "S_rg",
    "yellow_violet": "S_yv",
    "achromatic_sustained": "R_sust_ach",
    "achromatic_transient": "R_trans_ach",
    "red_green_sustained": "R_sust_rg",
    "yellow_violet_sustained": "R_sust_yv",
}


def lms(columns: Columns, kind: str) -> FloatArray:
    return np.stack([columns[f"lms_{kind}_{cone}"] for cone in "LMS"], axis=-1)


def call_public(columns: Columns) -> dict[str, FloatArray]:
    return {
        "frequency": columns["s_frequency_cpd"],
        "background": lms(columns, "bkg"),
        "direction": lms(columns, "delta"),
        "area": columns["area_deg2"],
        "temporal_frequency": columns["t_frequency_hz"],
        "eccentricity": columns["eccentricity_deg"],
        "visual_field": columns["vis_field_deg"],
    }


def call_disc(columns: Columns) -> dict[str, FloatArray]:
    return {
        "disc_radius": columns["radius_deg"],
        "background": lms(columns, "bkg"),
        "direction": lms(columns, "delta"),
        "temporal_frequency": columns["t_frequency_hz"],
        "eccentricity": columns["eccentricity_deg"],
        "visual_field": columns["vis_field_deg"],
    }


def call_defaults(columns: Columns) -> dict[str, FloatArray]:
    return {
        "frequency": columns["s_frequency_cpd"],
        "luminance": columns["luminance_cd_m2"],
        "area": columns["area_deg2"],
        "temporal_frequency": columns["t_frequency_hz"],
        "eccentricity": columns["eccentricity_deg"],
    }


def call_paper(columns: Columns) -> dict[str, FloatArray]:
    return {
        "frequency": columns["s_frequency_cpd"],
        "luminance": columns["luminance_cd_m2"],
        "area": columns["area_deg2"],
        "direction": lms(columns, "delta"),
    }


ORACLES = {
    "castlecsf/castlecsf_oracle_public.csv": call_public,
    "castlecsf/castlecsf_oracle_disc.csv": call_disc,
    "castlecsf/castlecsf_oracle_defaults.csv": call_defaults,
    "castlecsf/castlecsf_paper_curves.csv": call_paper,
}


@pytest.mark.parametrize("name", ORACLES)
def test_float64_equals_the_authors_code(oracle: Reader, name: str) -> None:
    columns = oracle(name)
    error = np.abs(castle_csf(**ORACLES[name](columns)) / columns["sensitivity"] - 1)
    dim = columns["luminance_cd_m2"] <= LITERAL_FORM_EXACT
    assert error[dim].max() < 1e-12
    assert error.max() < 5e-6


@pytest.mark.parametrize("name", ORACLES)
def test_float32_stays_float32_and_right(oracle: Reader, name: str) -> None:
    columns = oracle(name)
    single = {
        key: value.astype(np.float32) for key, value in ORACLES[name](columns).items()
    }
    sensitivity = castle_csf(**single)
    assert sensitivity.dtype == np.float32
    assert np.abs(sensitivity / columns["sensitivity"] - 1).max() < 1e-4


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, 5e-6), (np.float32, 1e-4)]
)
def test_mechanisms_equal_the_authors_code(
    oracle: Reader, dtype: type, tolerance: float
) -> None:
    columns = oracle("castlecsf/castlecsf_oracle_mechanisms.csv")
    mechanisms = castle_mechanisms(
        columns["s_frequency_cpd"].astype(dtype),
        luminance=columns["luminance_cd_m2"].astype(dtype),
        area=columns["area_deg2"].astype(dtype),
        temporal_frequency=columns["t_frequency_hz"].astype(dtype),
    )
    for field, column in MECHANISM_COLUMNS.items():
        value = getattr(mechanisms, field)
        limit = tolerance if field == "achromatic" or dtype is np.float32 else 1e-12
        assert value.dtype == dtype
        assert np.abs(value / columns[column] - 1).max() < limit, field


def test_curves_of_the_cvpr_paper_by_direction_name(oracle: Reader) -> None:
    columns = oracle("encoder_protocol/castlecsf_curves.csv")
    rows_by_direction = {
        "achromatic": columns["lms_delta_s"] == 0.025779610717139,
        "red_green": columns["lms_delta_m"] < 0,
        "yellow_violet": columns["lms_delta_s"] == 1,
    }
    assert sum(rows.sum() for rows in rows_by_direction.values()) == len(columns["x"])
    for direction, rows in rows_by_direction.items():
        sensitivity = castle_csf(
            columns["spatial_frequency_cpd"][rows],
            luminance=columns["luminance_cd_m2"][rows],
            direction=direction,
            area=columns["area_deg2"][rows],
        )
        np.testing.assert_allclose(sensitivity, columns["sensitivity"][rows], rtol=1e-9)


def test_worked_example_of_the_specification() -> None:
    mechanisms = castle_mechanisms(4, luminance=1.0497, area=1, temporal_frequency=1)
    assert mechanisms.achromatic == pytest.approx(30.8735158502, rel=1e-11)
    assert mechanisms.red_green == pytest.approx(28.7846364089, rel=1e-11)
    assert mechanisms.yellow_violet == pytest.approx(2.88687538052, rel=1e-11)
    assert mechanisms.achromatic_sustained == pytest.approx(0.90980733, rel=1e-8)
    assert mechanisms.achromatic_transient == pytest.approx(0.24571324, rel=1e-7)
    sensitivity = castle_csf(
        4,
        background=(0.7443, 0.3054, 0.0157),
        direction=(0.9182, 0.3953, 0.0260),
        area=1,
        temporal_frequency=1,
    )
    assert sensitivity == pytest.approx(27.455500094751, rel=1e-13)


def test_the_fading_term_keeps_its_digits() -> None:
    luminance = np.array([1e-3, 0.1, 10.0, 100.0, 1e3, 1e4])
    knee, exponent = 5.58341e-07, 9.66862e09
    with localcontext() as context:
        context.prec = 60
        ratios = [1 + Decimal(knee) / Decimal(value) for value in luminance.tolist()]
        exact = np.array(
            [float(1 - (-Decimal(exponent) * ratio.ln()).exp()) for ratio in ratios]
        )
    np.testing.assert_allclose(fading(luminance, knee, exponent), exact, rtol=1e-14)
    single = fading(luminance.astype(np.float32), knee, exponent)
    np.testing.assert_allclose(single, exact, rtol=1e-6)


def test_the_low_luminance_bump_of_the_published_model() -> None:
    sensitivity = castle_csf(2, luminance=[0.0100, 0.0113, 0.0120], area=np.pi)
    np.testing.assert_allclose(sensitivity, [5.20, 10.4, 6.05], rtol=0.01)


def test_no_direction_is_the_authors_default_and_not_quite_achromatic() -> None:
    default = castle_csf(4, luminance=100, area=1)
    assert default == castle_csf(
        4, luminance=100, area=1, direction=(0.6855, 0.2951, 0.0194)
    )
    achromatic = castle_csf(4, luminance=100, area=1, direction="achromatic")
    assert achromatic / default - 1 == pytest.approx(0.0022, abs=1e-4)


def test_what_is_too_faint_is_zero() -> None:
    hopeless: dict[str, Any] = {
        "luminance": 100,
        "direction": "red_green",
        "area": 1,
        "eccentricity": 120,
    }
    assert castle_csf(64, **hopeless) == 0
    assert castle_csf(np.float32(64), **hopeless) == 0


@pytest.mark.parametrize("call", [{"frequency": 4, "area": 1}, {"disc_radius": 0.5}])
def test_scalars_in_scalar_out(call: dict[str, float]) -> None:
    assert isinstance(castle_csf(**call, luminance=100), np.float64)
    single = {name: np.float32(value) for name, value in call.items()}
    assert isinstance(castle_csf(**single, luminance=100), np.float32)


def test_python_numbers_take_the_precision_of_the_arrays() -> None:
    frequency = np.array([1, 2], dtype=np.float32)
    assert castle_csf(frequency, background=(70, 30, 2), area=np.pi).dtype == np.float32
    assert (
        castle_csf(frequency, luminance=np.array([100.0]), area=1).dtype == np.float64
    )
    assert castle_csf(np.array([1, 2]), luminance=100, area=1).dtype == np.float64


def test_empty_in_empty_out() -> None:
    assert castle_csf([], luminance=100, area=1).shape == (0,)
    assert castle_csf(disc_radius=[], luminance=100).shape == (0,)


def test_a_disc_is_the_best_gabor_of_64() -> None:
    gabors = castle_csf(np.geomspace(0.125, 16, 64), luminance=100, area=2.42437)
    disc = castle_csf(disc_radius=0.5, luminance=100)
    assert disc == pytest.approx(0.5 ** (1 / 3.01142) * gabors.max(), rel=1e-14)
    assert disc == pytest.approx(150.4, abs=0.05)


def test_discs_beyond_one_block_equal_discs_one_by_one() -> None:
    rng = np.random.default_rng(5)
    luminance, eccentricity = rng.uniform(0.1, 100, (2, 7, 200))
    sensitivities = castle_csf(
        disc_radius=1, luminance=luminance, eccentricity=eccentricity
    )
    for i, j in ((0, 0), (2, 111), (2, 112), (6, 199)):
        alone = castle_csf(
            disc_radius=1, luminance=luminance[i, j], eccentricity=eccentricity[i, j]
        )
        assert sensitivities[i, j] == pytest.approx(alone, rel=1e-14)


GABOR: dict[str, Any] = {"frequency": 4, "luminance": 100, "area": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"frequency": 0},
            "frequency is 0 cpd, but it must be above 0 cpd; for a uniform patch",
        ),
        (
            {"frequency": [1, -2, -3]},
            r"frequency is -2 cpd \(2 of 3 values are out of range\)",
        ),
        ({"frequency": float("nan")}, "frequency is nan cpd"),
        (
            {"frequency": float("inf")},
            "frequency is inf cpd, but it must be above 0 cpd and finite",
        ),
        ({"frequency": "4 cpd"}, "frequency is '4 cpd', but it must be a real number"),
        ({"frequency": [[1], [1, 2]]}, "but it must be a real number"),
        ({"frequency": 1 + 0j}, "but it must be a real number"),
        ({"frequency": None}, r"needs a frequency \(cpd\)"),
        ({"luminance": -5}, "luminance is -5 cd/m², but it must be above 0 cd/m²"),
        ({"luminance": None}, "neither luminance nor background is given"),
        ({"background": (70, 30, 2)}, "both luminance and background are given"),
        ({"luminance": None, "background": (70, 30, 0)}, "background has a cone at 0"),
        (
            {"luminance": None, "background": (70, 30, float("nan"))},
            "background holds nan",
        ),
        ({"luminance": None, "background": (70, 30)}, r"background has shape \(2,\)"),
        ({"area": 0}, "area is 0 deg², but it must be above 0 deg²"),
        ({"area": None}, "neither area nor disc_radius is given"),
        ({"disc_radius": 1}, "both area and disc_radius are given"),
        ({"area": None, "disc_radius": 1}, "both frequency and disc_radius are given"),
        ({"area": None, "frequency": None, "disc_radius": 0}, "disc_radius is 0 deg"),
        ({"direction": (0, 0, 0)}, r"direction is \(0, 0, 0\)"),
        ({"direction": (1, float("inf"), 0)}, "direction holds inf"),
        ({"direction": 1.0}, r"direction has shape \(\)"),
        (
            {"temporal_frequency": -1},
            "temporal_frequency is -1 Hz, but it must be at least 0 Hz",
        ),
        ({"eccentricity": -1}, "eccentricity is -1 deg, but it must be at least 0 deg"),
        (
            {"visual_field": 400},
            "visual_field is 400 deg, but it must be at least 0 deg and at most 360 deg",
        ),
        (
            {"frequency": [1, 2], "area": [1, 2, 3]},
            r"frequency \(2,\), area \(3,\) do not broadcast",
        ),
    ],
)
def test_errors_are_one_clear_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        castle_csf(**(GABOR | change))
    assert "\n" not in str(caught.value)


def test_float32_overflow_is_an_error_and_no_warning() -> None:
    with warnings.catch_warnings(), pytest.raises(InputError, match="luminance is inf"):
        warnings.simplefilter("error")
        castle_csf(np.float32(4), luminance=1e39, area=1)


def test_an_unknown_direction_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'red_green'"):
        castle_csf(**GABOR, direction="redgreen")
