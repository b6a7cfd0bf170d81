"""The other CSFs against independent values, and the manners that all models share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import (
    CSF_MODELS,
    barten_csf,
    csf,
    postreceptoral_csf,
    stela_csf,
    watson_ahumada_csf,
    watson_malo_csf,
)

Reader = Callable[[str], dict[str, FloatArray]]

#: A call that each model can answer.
#: The models of patterns; elaTCSF is one of discs.
OVER_FREQUENCY = [name for name in CSF_MODELS if name != "ela_tcsf"]
CALLS: dict[str, dict[str, Any]] = {
    name: {"luminance": 100.0, "area": np.pi} for name in OVER_FREQUENCY
}
CALLS["watson_malo_csf"] = {"luminance": 100.0}

_FOVEAL = ["barten_csf", "watson_malo_csf", "watson_ahumada_csf"]
STATIC = ["postreceptoral_csf", *_FOVEAL]
ACHROMATIC = ["stela_csf", *_FOVEAL]


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, 5e-6), (np.float32, 1e-4)]
)
def test_stela_equals_the_authors_code(
    oracle: Reader, dtype: type, tolerance: float
) -> None:
    columns = {
        name: value.astype(dtype)
        for name, value in oracle("castlecsf/stelacsf_oracle.csv").items()
    }
    sensitivity = stela_csf(
        columns["s_frequency_cpd"],
        luminance=columns["luminance_cd_m2"],
        area=columns["area_deg2"],
        temporal_frequency=columns["t_frequency_hz"],
        eccentricity=columns["eccentricity_deg"],
        visual_field=columns["vis_field_deg"],
    )
    error = np.abs(sensitivity / columns["sensitivity"] - 1)
    assert error.max() < tolerance
    if dtype is np.float64:
        assert error[columns["luminance_cd_m2"] <= 100].max() < 1e-12


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-4)]
)
def test_postreceptoral_equals_the_authors_code(
    oracle: Reader, dtype: type, tolerance: float
) -> None:
    columns = {
        name: value.astype(dtype)
        for name, value in oracle("castlecsf/postreceptoral_oracle.csv").items()
    }
    lms = {
        part: np.stack([columns[f"lms_{part}_{cone}"] for cone in "LMS"], axis=-1)
        for part in ("bkg", "delta")
    }
    sensitivity = postreceptoral_csf(
        columns["s_frequency_cpd"],
        background=lms["bkg"],
        direction=lms["delta"],
        area=columns["area_deg2"],
    )
    np.testing.assert_allclose(sensitivity, columns["sensitivity"], rtol=tolerance)


def test_below_their_peak_chromatic_mechanisms_stay_level() -> None:
    """Summation goes on falling: for large patterns it is all that changes."""
    frequency = np.array([0.0003, 0.0006, 0.0012])
    with_plateau = postreceptoral_csf(
        frequency, luminance=100, direction="yellow_violet", area=np.pi
    )
    half_squared = (1.92925 + 0.65 * np.pi) / np.pi**1.36762
    summation = frequency / np.sqrt(frequency**2 + half_squared)
    np.testing.assert_allclose(
        with_plateau / with_plateau[0], summation / summation[0], rtol=1e-3
    )


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)]
)
def test_barten_equals_colour_science(
    oracle: Reader, dtype: type, tolerance: float
) -> None:
    columns = {
        name: value.astype(dtype)
        for name, value in oracle("castlecsf/barten1999_oracle.csv").items()
    }
    sensitivity = barten_csf(
        columns["s_frequency_cpd"],
        luminance=columns["luminance_cd_m2"],
        area=columns["field_deg"] ** 2,
    )
    np.testing.assert_allclose(sensitivity, columns["sensitivity"], rtol=tolerance)


@pytest.mark.parametrize(
    ("model", "column"),
    [
        (watson_malo_csf, "watson_malo_tyler_radial"),
        (watson_ahumada_csf, "watson_ahumada2005_HPmH"),
    ],
)
def test_filters_equal_the_published_ones(
    oracle: Reader, model: Callable[..., FloatArray], column: str
) -> None:
    columns = oracle("chat_csf/human_csf_oracle.csv")
    # The table has six decimals.
    np.testing.assert_allclose(
        model(columns["f_cpd"]), columns[column], rtol=0, atol=6e-7
    )


def test_watson_ahumada_predicts_the_modelfest_gabors(oracle: Reader) -> None:
    columns = oracle("chat_csf/modelfest_gabor_subset.csv")
    predicted = watson_ahumada_csf(
        columns["f_cpd"], area=np.pi * columns["gabor_sigma_deg"] ** 2
    )
    error = 20 * (np.log10(predicted) + columns["mean_log10_threshold"])
    assert np.sqrt(np.mean(error**2)) < 0.9


@pytest.mark.parametrize(
    ("frequency", "sigma", "tolerance_db"),
    [(1, 1, 0.3), (2, 0.5, 0.3), (4, 0.5, 0.1), (8, 0.5, 0.1)],
)
def test_watson_ahumada_sums_the_filtered_gabor(
    frequency: float, sigma: float, tolerance_db: float
) -> None:
    n, ppd = 1024, 80
    x = (np.arange(n) - (n - 1) / 2) / ppd
    squared = x**2 + x[:, None] ** 2
    gabor = np.exp(-squared / (2 * sigma**2)) * np.cos(2 * np.pi * frequency * x)
    frequencies = np.fft.fftfreq(n, 1 / ppd)
    gain = watson_ahumada_csf(
        np.maximum(np.hypot(frequencies, frequencies[:, None]), 1e-6)
    )
    filtered = np.fft.ifft2(np.fft.fft2(gabor) * gain).real * np.exp(
        -squared / (2 * 0.6273**2)
    )
    summed = (np.sum(np.abs(filtered) ** 2.4081) / ppd**2) ** (1 / 2.4081)
    closed = watson_ahumada_csf(frequency, area=np.pi * sigma**2)
    assert abs(20 * np.log10(closed / summed)) < tolerance_db


def test_watson_ahumada_wants_half_a_cycle_per_sigma() -> None:
    assert watson_ahumada_csf(0.5, area=np.pi) > 0
    with pytest.raises(InputError, match=r"0\.4 cycles per sigma .* at least 0\.5"):
        watson_ahumada_csf(0.4, area=np.pi)


def test_a_model_is_found_by_name() -> None:
    assert csf("castle_csf") is CSF_MODELS["castle_csf"]
    with pytest.raises(UnknownNameError, match="did you mean 'barten_csf'"):
        csf("barten")


@pytest.mark.parametrize("name", OVER_FREQUENCY)
def test_every_model_broadcasts_and_keeps_precision(name: str) -> None:
    frequency = np.geomspace(0.5, 30, 5)
    call = CALLS[name] | {"luminance": np.array([[30.0], [100.0]])}
    sensitivity = csf(name)(frequency, **call)
    assert sensitivity.shape == (2, 5)
    assert sensitivity.dtype == np.float64
    assert sensitivity.flags.writeable
    assert (sensitivity > 0).all()
    alone = csf(name)(frequency[2], **(call | {"luminance": 100.0}))
    assert isinstance(alone, np.float64)
    assert alone == sensitivity[1, 2]
    single = csf(name)(frequency.astype(np.float32), **CALLS[name])
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, sensitivity[1], rtol=1e-4)


def test_all_models_have_one_call() -> None:
    assert len({str(inspect.signature(model)) for model in CSF_MODELS.values()}) == 1
    for name, model in CSF_MODELS.items():
        assert getattr(model, "__name__", "") == name and model.__doc__


@pytest.mark.parametrize("name", STATIC)
def test_what_does_not_change_a_value_still_gives_it_a_shape(name: str) -> None:
    alone = csf(name)(4, **CALLS[name])
    sensitivities = csf(name)(
        4, visual_field=np.zeros((2, 1)), eccentricity=np.zeros(3), **CALLS[name]
    )
    np.testing.assert_array_equal(sensitivities, np.full((2, 3), alone))


@pytest.mark.parametrize("name", OVER_FREQUENCY)
def test_every_model_takes_the_achromatic_direction(name: str) -> None:
    achromatic = csf(name)(4, direction="achromatic", **CALLS[name])
    # Of the postreceptoral CSF no named direction isolates a mechanism.
    rel = 0.004 if name == "postreceptoral_csf" else 0.003
    assert achromatic == pytest.approx(csf(name)(4, **CALLS[name]), rel=rel)


@pytest.mark.parametrize("name", OVER_FREQUENCY)
@pytest.mark.parametrize("frequency", [0, -1, float("nan"), None])
def test_every_model_refuses_a_frequency_it_cannot_use(
    name: str, frequency: float | None
) -> None:
    with pytest.raises(InputError, match="frequency"):
        csf(name)(frequency, **CALLS[name])


@pytest.mark.parametrize(
    "name", ["castle_csf", "stela_csf", "postreceptoral_csf", "barten_csf"]
)
@pytest.mark.parametrize("missing", ["luminance", "area"])
def test_every_model_says_what_is_missing(name: str, missing: str) -> None:
    with pytest.raises(InputError, match=f"{missing}.* given"):
        csf(name)(4, **(CALLS[name] | {missing: None}))


@pytest.mark.parametrize("name", ACHROMATIC)
@pytest.mark.parametrize(
    "setting",
    [
        {"direction": "red_green"},
        {"direction": (1, 0, 0)},
        {"background": (70, 30, 2)},
        {"disc_radius": 1.0},
    ],
)
def test_achromatic_models_refuse_colour_and_discs(
    name: str, setting: dict[str, Any]
) -> None:
    with pytest.raises(
        InputError, match=f"{next(iter(setting))}=.* cannot be given to"
    ):
        csf(name)(4, **(CALLS[name] | setting))


@pytest.mark.parametrize("name", STATIC)
def test_static_models_refuse_flicker_and_periphery(name: str) -> None:
    assert csf(name)(4, visual_field=90, **CALLS[name]) == csf(name)(4, **CALLS[name])
    for setting in ({"temporal_frequency": [0.0, 5.0]}, {"eccentricity": 10}):
        with pytest.raises(InputError, match="static stimulus at the fovea"):
            csf(name)(4, **setting, **CALLS[name])
    with pytest.raises(InputError, match="visual_field is 400"):
        csf(name)(4, visual_field=400, **CALLS[name])


def test_watson_malo_has_no_area() -> None:
    with pytest.raises(InputError, match="no spatial summation"):
        watson_malo_csf(4, area=1)


@pytest.mark.parametrize("model", [watson_malo_csf, watson_ahumada_csf])
def test_daylight_models_refuse_dim_light(model: Callable[..., FloatArray]) -> None:
    assert model(4, luminance=30) == model(4, luminance=300) == model(4)
    with pytest.raises(
        InputError, match="luminance is 1 cd/m², but it must be at least 10"
    ):
        model(4, luminance=1)


@pytest.mark.parametrize("name", ["stela_csf", "barten_csf", "watson_ahumada_csf"])
def test_shapes_that_do_not_broadcast_are_named(name: str) -> None:
    with pytest.raises(
        InputError, match=r"frequency \(2,\), area \(3,\) do not broadcast"
    ):
        csf(name)([4, 8], **(CALLS[name] | {"area": [1, 2, 3]}))


@pytest.mark.parametrize("name", OVER_FREQUENCY)
def test_far_beyond_vision_there_is_a_number_and_no_warning(name: str) -> None:
    call = CALLS[name] | {"luminance": np.array([[100.0], [1e300]])}
    # Watson-Ahumada has no Gabors of less than half a cycle.
    call.update({"area": None} if name == "watson_ahumada_csf" else {})
    # The parabola of the postreceptoral CSF falls more slowly.
    unseen = 1e6 if name == "postreceptoral_csf" else 1e5
    sensitivity = csf(name)(np.array([1e-300, 1e-5, unseen, 1e150]), **call)
    assert np.isfinite(sensitivity).all()
    assert (sensitivity >= 0).all()
    assert (sensitivity[0, 2:] < 1e-6).all()


@pytest.mark.parametrize(
    "name", ["castle_csf", "stela_csf", "postreceptoral_csf", "barten_csf"]
)
def test_in_the_dark_there_is_a_number_and_no_warning(name: str) -> None:
    sensitivity = csf(name)([1e-300, 1.0, 1e150], luminance=1e-300, area=1)
    assert np.isfinite(sensitivity).all()
    assert (sensitivity < 1e-3).all()
