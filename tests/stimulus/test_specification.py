"""Specifications as values: units guarded, written down, broadcast, and drawn the same
everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.errors import InputError
from psyprobe.stimulus import (
    Disc,
    Gabor,
    Grating,
    Noise,
    Specification,
    Sum,
    Uniform,
    specification_from_dict,
    stimulus_kind,
)

SPECS: list[Specification] = [
    Gabor(frequency=4.0, contrast=0.3),
    Gabor(
        frequency=[2.0, 4.0],
        contrast=0.3,
        orientation=30,
        phase=45,
        x=0.2,
        y=-0.1,
        radius=0.5,
        aspect=2.0,
        size=64,
    ),
    Gabor(
        frequency=3.0, contrast=0.3, phase=20, radius=0.4, balanced=True, size=(64, 96)
    ),
    Gabor(frequency=3.0, contrast=0.02, direction="red_green", size=64),
    Gabor(
        frequency=3.0,
        contrast=0.02,
        direction=(1.0, 0.0, 0.0),
        white="E",
        observer="smith_pokorny",
        size=64,
    ),
    Grating(frequency=5.0, contrast=1.0, luminance=[10.0, 20.0], size=64),
    Grating(
        frequency=5.0,
        contrast=1.0,
        window="raised_cosine",
        radius=0.4,
        edge=[0.1, 0.2, 0.4],
        size=64,
    ),
    Noise(
        frequency=6.0,
        contrast=0.1,
        seed=[1, 2, 3],
        bandwidth=1.5,
        exponent=1,
        edge=0.2,
        size=(63, 64),
    ),
    Disc(contrast=-0.5, radius=0.3, edge=0.1, size=64),
    Uniform(luminance=30.0, size=64),
    Sum(
        parts=(
            Gabor(frequency=2.0, contrast=[0.1, 0.2], size=96),
            Noise(frequency=6.0, contrast=0.1, size=96),
        )
    ),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.kind)
def test_written_down_and_read_back_it_is_the_same(spec: Specification) -> None:
    reloaded = specification_from_dict(json.loads(json.dumps(spec.to_dict())))
    assert (
        reloaded == spec
        and reloaded.digest == spec.digest
        and hash(reloaded) == hash(spec)
    )
    np.testing.assert_array_equal(reloaded.draw().pixels, spec.draw().pixels)


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.kind)
def test_repr_is_a_line_that_draws_it(spec: Specification) -> None:
    assert eval(repr(spec)) == spec


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.kind)
def test_unknown_keys_raise_with_the_nearest(spec: Specification) -> None:
    if spec.kind != "sum":
        with pytest.raises(InputError, match="did you mean 'luminance'"):
            specification_from_dict(spec.to_dict() | {"luminence": 3})


def test_digest_is_the_same_in_another_process() -> None:
    code = (
        "import psyprobe.stimulus as s; print(s.Gabor(frequency=[2.0, 4.5], contrast=0.1, "
        "direction=(1, -1, 0)).digest)"
    )
    spec = Gabor(frequency=[2.0, 4.5], contrast=0.1, direction=(1, -1, 0))
    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,
    ).stdout.strip()
    assert other == spec.digest


def test_discs_that_share_a_drawing_each_have_their_radius() -> None:
    radius = np.array([0.3, 0.1, 0.3, 0.2])
    disc = Disc(contrast=0.5, radius=radius, luminance=10.0, ppd=60, size=64)
    x = (np.arange(64) - 31.5) / 60
    inside = np.hypot(x, x[:, None]) <= radius[:, None, None]
    np.testing.assert_array_equal(disc.draw().luminance, np.where(inside, 15.0, 10.0))


def test_batch_is_the_loop_bit_for_bit_in_noise() -> None:
    seeds, contrasts = np.arange(7), np.geomspace(0.01, 0.15, 7)
    batch = pp.noise(
        frequency=5.0, contrast=contrasts, seed=seeds, size=64, dtype="float32"
    ).pixels
    for i in range(7):
        single = pp.noise(
            frequency=5.0,
            contrast=contrasts[i],
            seed=seeds[i],
            size=64,
            dtype="float32",
        ).pixels
        np.testing.assert_array_equal(batch[i], single)


def test_a_seed_means_the_same_noise_in_every_precision() -> None:
    double = pp.noise(frequency=5.0, contrast=0.1, seed=4, size=64).pixels
    single = pp.noise(
        frequency=5.0, contrast=0.1, seed=4, size=64, dtype="float32"
    ).pixels
    np.testing.assert_allclose(single, double, rtol=1e-6)


def test_grid_broadcasts() -> None:
    f, c = np.geomspace(1, 8, 3), np.geomspace(0.01, 1, 4)
    grid = pp.gabor(frequency=f[:, None], contrast=c, radius=0.3, size=48)
    assert grid.batch == (3, 4) and grid.luminance.shape == (3, 4, 48, 48)
    single = pp.gabor(frequency=f[2], contrast=c[1], radius=0.3, size=48)
    np.testing.assert_allclose(grid.luminance[2, 1], single.luminance, rtol=1e-14)


def test_target_on_mask_adds_modulations_and_refers_to_the_mask() -> None:
    target = pp.gabor(frequency=2.0, contrast=0.2, luminance=32, size=96)
    mask = pp.grating(frequency=2.0, contrast=0.3, luminance=32, size=96)
    scene = target + mask
    np.testing.assert_allclose(
        scene.luminance, target.luminance + mask.luminance - 32, rtol=1e-13
    )
    assert scene.spec.reference() == mask.spec
    assert scene.background.spec == Uniform(luminance=32, size=96)


def test_chromatic_and_achromatic_parts_add_in_cones() -> None:
    target = pp.gabor(frequency=3.0, contrast=0.02, direction="red_green", size=64)
    mask = pp.grating(frequency=3.0, contrast=0.3, size=64)
    scene = target + mask
    assert scene.space == "lms"
    np.testing.assert_allclose(scene.luminance.mean(), 100, rtol=0.05)


def test_parts_with_different_backgrounds_are_refused() -> None:
    with pytest.raises(InputError, match="share one background: luminance"):
        pp.gabor(frequency=2.0, contrast=0.2, luminance=32) + pp.grating(
            frequency=2.0, contrast=0.3, luminance=33
        )


def test_sum_that_needs_negative_light_is_refused() -> None:
    with pytest.raises(InputError, match="together would need negative light"):
        pp.grating(frequency=2.0, contrast=0.8) + pp.grating(
            frequency=2.0, contrast=0.8
        )


BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"kind": "gabor", "frequency": 30.0, "contrast": 0.1},
        r"frequency is 30 cpd.*below 30 cpd \(Nyquist\)",
    ),
    (
        {"kind": "gabor", "frequency": 0.067, "contrast": 0.1},
        "cycles per degree, not per pixel",
    ),
    (
        {"kind": "gabor", "frequency": "4 cpd", "contrast": 0.1},
        "give a number or an array|give a number",
    ),
    (
        {"kind": "gabor", "frequency": 4.0, "contrast": 50},
        "contrast is 50.*not a percentage",
    ),
    ({"kind": "gabor", "frequency": 4.0, "contrast": -0.1}, "contrast is -0.1"),
    ({"kind": "gabor", "frequency": 4.0, "contrast": float("nan")}, "must be finite"),
    (
        {"kind": "gabor", "frequency": 4.0, "contrast": 0.1, "radius": 60},
        "radius is 60 deg.*field of 3.733 deg",
    ),
    (
        {"kind": "gabor", "frequency": 4.0, "contrast": 0.1, "radius": 1e-320},
        "radius is 9.99989e-321 deg; give at least 1.5e-154",
    ),
    (
        {"kind": "gabor", "frequency": 4.0, "contrast": 0.1, "luminance": 0},
        "luminance is 0 cd/m²",
    ),
    (
        {"kind": "gabor", "frequency": 4.0, "contrast": 0.1, "direction": "lum"},
        "unknown colour direction",
    ),
    (
        {"kind": "gabor", "frequency": 4.0, "contrast": 0.1, "size": 10.5},
        "size is 10.5",
    ),
    ({"kind": "gabor", "frequency": 4.0, "contrast": 0.1, "ppd": 0}, "ppd is 0"),
    (
        {"kind": "gabor", "frequency": [1.0, 2.0], "contrast": [0.1, 0.2, 0.3]},
        "do not broadcast",
    ),
    ({"kind": "gabor", "contrast": 0.1}, "gabor needs"),
    (
        {"kind": "grating", "frequency": 4.0, "contrast": 0.1, "window": "hann"},
        "unknown window",
    ),
    (
        {"kind": "noise", "frequency": 25.0, "contrast": 0.1},
        r"upper edge \(35.36 cpd\) must stay below 30 cpd",
    ),
    ({"kind": "noise", "frequency": 0.1, "contrast": 0.1}, "enlarge the field"),
    (
        {"kind": "noise", "frequency": 4.0, "contrast": 0.1, "seed": 1.5},
        "a seed is a whole number",
    ),
    ({"kind": "disc", "contrast": -1.5}, "contrast is -1.5"),
    ({"kind": "sum", "parts": []}, "at least two patterns"),
    ({"kind": "gabro"}, "did you mean 'gabor'"),
]


@pytest.mark.parametrize(
    ("values", "message"), BAD, ids=lambda v: v if isinstance(v, str) else ""
)
def test_bad_input_is_one_clear_sentence(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        specification_from_dict(values)
    assert "\n" not in str(error.value)


def test_noise_below_zero_light_is_refused() -> None:
    with pytest.raises(InputError, match="would need negative light"):
        pp.noise(frequency=4.0, contrast=0.5)


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(InputError, match="registered twice"):
        stimulus_kind("gabor")(Gabor)


def test_stimuli_refuse_other_dtypes() -> None:
    with pytest.raises(InputError, match="float64 or float32"):
        Gabor(frequency=4.0, contrast=0.1).draw(dtype="uint8")
