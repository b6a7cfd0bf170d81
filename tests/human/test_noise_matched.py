"""Human curves for the noise of the chat experiment: the filter over the annulus, and ModelFest's
Gabors."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import castle_csf, watson_ahumada_csf, watson_malo_csf
from psyprobe.human.matched import OBLIQUE_EFFECTS, noise_matched_csf
from psyprobe.human.measured import modelfest_csf, modelfest_gabors


def columns(path: Path) -> dict[str, np.ndarray]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return {
        name: np.array([row[i] for row in rows[1:]]) for i, name in enumerate(rows[0])
    }


def test_matched_curves_are_those_of_the_oracle(oracle_data: Path) -> None:
    table = columns(oracle_data / "chat_csf" / "human_csf_noise_matched.csv")
    oracle = {name: values.astype(float) for name, values in table.items()}
    f = oracle["f0_cpd"]
    np.testing.assert_allclose(
        noise_matched_csf(f, oblique=False),
        oracle["SSO_rms_over_band_no_oblique"],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        noise_matched_csf(f), oracle["SSO_rms_over_band_with_oblique"], atol=1e-6
    )
    ahumada = noise_matched_csf(f, "watson_ahumada_csf")
    np.testing.assert_allclose(
        ahumada, oracle["HPmH_rms_over_band_with_oblique"], atol=1e-6
    )
    np.testing.assert_allclose(watson_malo_csf(f), oracle["SSO_at_f0"], atol=1e-6)


def test_curves_of_one_frequency_are_those_of_the_oracle(oracle_data: Path) -> None:
    table = columns(oracle_data / "chat_csf" / "human_csf_oracle.csv")
    oracle = {name: values.astype(float) for name, values in table.items()}
    f = oracle["f_cpd"]
    np.testing.assert_allclose(
        watson_malo_csf(f), oracle["watson_malo_tyler_radial"], atol=1e-6
    )
    np.testing.assert_allclose(
        watson_ahumada_csf(f), oracle["watson_ahumada2005_HPmH"], atol=1e-6
    )
    angle = np.linspace(0, np.pi, 721)[:-1]
    factor = OBLIQUE_EFFECTS["watson_malo_csf"](f[:, None], np.sin(2 * angle))
    np.testing.assert_allclose(
        watson_malo_csf(f) * factor.mean(axis=1),
        oracle["watson_malo_orientation_mean"],
        atol=1e-5,
    )


def test_narrow_noise_is_a_grating() -> None:
    narrow = noise_matched_csf(4.0, oblique=False, low=0.99, high=1.01, size=512)
    assert narrow == pytest.approx(watson_malo_csf(4.0), rel=1e-3)


def test_other_models_and_conditions() -> None:
    band = noise_matched_csf(
        [2.0, 8.0], "castle_csf", oblique=False, luminance=40, area=16
    )
    assert band.shape == (2,)
    np.testing.assert_allclose(
        band, castle_csf([2.0, 8.0], luminance=40, area=16), rtol=0.1
    )
    with pytest.raises(InputError, match="no oblique effect"):
        noise_matched_csf(4.0, "castle_csf", luminance=40, area=16)
    with pytest.raises(UnknownNameError):
        noise_matched_csf(4.0, "watson_malo")
    with pytest.raises(InputError, match=r"0\.1 cpd holds no frequency"):
        noise_matched_csf(0.1)


def test_modelfest_is_the_published_subset(oracle_data: Path) -> None:
    table = columns(oracle_data / "chat_csf" / "modelfest_gabor_subset.csv")
    data = modelfest_gabors()
    for ours, theirs in (
        (data.frequency, "f_cpd"),
        (data.radius, "gabor_sigma_deg"),
        (data.log10_threshold, "mean_log10_threshold"),
        (data.log10_sd, "sd_between_observers"),
    ):
        assert np.array_equal(ours, table[theirs].astype(float))
    np.testing.assert_allclose(
        data.sensitivity,
        table["mean_sensitivity_10^-mean"].astype(float),
        rtol=2e-5,
        atol=6e-4,
    )
    assert "MIT" in data.citation and "ModelFest" in data.citation


def test_modelfest_as_a_curve() -> None:
    data = modelfest_gabors()
    np.testing.assert_allclose(
        modelfest_csf(data.frequency[:10]), data.sensitivity[:10]
    )
    between = float(modelfest_csf(np.sqrt(4.0 * 5.66)))
    assert between == pytest.approx(np.sqrt(data.sensitivity[3] * data.sensitivity[4]))
    for beyond in (1.0, 31.0, np.nan):
        with pytest.raises(InputError, match=r"ModelFest measured 1\.12 to 30 cpd"):
            modelfest_csf([4.0, beyond])
