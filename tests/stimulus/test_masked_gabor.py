"""A Gabor on a mask: the sum of what its parts are, each with its exact contrast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psyprobe.errors import InputError
from psyprobe.stimulus import Gabor, Grating, specification_from_dict
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.catalogue import load_stimulus


def test_is_the_sum_of_a_gabor_and_a_grating() -> None:
    where = {"frequency": 2.0, "luminance": 32.0, "size": 96}
    page = load_stimulus("mask_coherent")
    spec = page.spec(contrast=0.3, mask_contrast=0.2, radius=0.25, size=96)
    masked = spec.draw().luminance
    target = Gabor(contrast=0.3, radius=0.25, **where).draw().luminance
    mask = Grating(contrast=0.2, **where).draw().luminance
    np.testing.assert_allclose(masked, target + mask - 32, rtol=1e-13)


def test_parts_of_a_grid_add_up_as_each_is_painted() -> None:
    class Dimmed(Gabor):
        def paint(self, amplitude: Any, offset: Any, backend: Backend) -> Any:
            return super().paint(amplitude / 2, offset, backend)

    where = {"frequency": 2.0, "size": 32, "radius": 0.2, "ppd": 32}
    mask = Gabor(contrast=np.array([[0.1], [0.2], [0.3]]), orientation=30, **where)
    light = mask.draw().luminance
    for kind, values in [
        (Gabor, {"balanced": True}),
        (Gabor, {"aspect": 2.0}),
        (Dimmed, {}),
    ]:
        target = kind(contrast=np.array([0.2, 0.4]), orientation=-70, **where, **values)
        expected = light + target.draw().luminance - 100
        summed = (target + mask).draw().luminance
        np.testing.assert_allclose(summed, expected, rtol=1e-13)


def test_target_peaks_at_the_centre_and_with_the_mask() -> None:
    page = load_stimulus("mask_coherent")
    spec = page.spec(contrast=0.3, mask_contrast=0.2, size=97)
    light = spec.draw().luminance
    assert light[48, 48] == light.max() == pytest.approx(32 * 1.5, rel=1e-12)


@pytest.mark.parametrize("size", [112, 224, 336])
def test_noise_has_exact_rms_and_no_frequency_above_the_highest(size: int) -> None:
    spec = load_stimulus("mask_incoherent").spec(
        mask_contrast=0.12, size=size, ppd=60 * size / 224
    )
    mask = spec.reference().draw().luminance
    assert mask.mean() == pytest.approx(
        37.0, rel=1e-12
    ) and mask.std() / 37 == pytest.approx(0.12, rel=1e-12)
    power = np.abs(np.fft.fft2(mask / 37 - 1)) ** 2
    radial = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size)) * spec.ppd
    assert power[radial > 12 * (1 + 1e-9)].max() < 1e-20 * power.max()
    # White: as much power in each coefficient of the lower half as of the upper one.
    low, high = (
        power[(radial > 0) & (radial < 6)].mean(),
        power[(radial >= 6) & (radial <= 12)].mean(),
    )
    assert low == pytest.approx(high, rel=0.15)


def test_a_value_as_all_kinds_are() -> None:
    spec = load_stimulus("mask_incoherent").spec(mask_contrast=[0.05, 0.1])
    assert specification_from_dict(spec.to_dict()) == spec and spec.batch == (2,)
    single = load_stimulus("mask_incoherent").spec(mask_contrast=0.1)
    np.testing.assert_array_equal(spec.draw().pixels[1], single.draw().pixels)
    assert single.draw().measure().passed


@pytest.mark.parametrize("name", ["mask_coherent", "mask_incoherent"])
@pytest.mark.parametrize("size", [128, 224, 448])
def test_strongest_levels_need_no_negative_light(name: str, size: int) -> None:
    page = load_stimulus(name)
    strongest = {key: values[-1] for key, values in page.levels.items()}
    assert (
        page.spec(**strongest, size=size, ppd=60 * size / 224).draw().luminance.min()
        >= 0
    )


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("mask_coherent", {"contrast": 30}, "contrast is 30"),
        ("mask_coherent", {"mask_contrast": 0.9, "contrast": 0.9}, "negative light"),
        ("mask_incoherent", {"mask_frequency": 40.0}, "upper edge"),
    ],
)
def test_slips_are_named(name: str, changed: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_stimulus(name).spec(**changed).draw()
