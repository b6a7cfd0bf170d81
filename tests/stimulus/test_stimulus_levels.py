"""Parameters with units, levels of any stimulus, sums from a page, and signatures that say what
there is."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psyprobe as pp
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.stimulus import (
    AnnulusNoise,
    Disc,
    Gabor,
    Grating,
    Noise,
    Specification,
    Sum,
    Uniform,
    annulus_noise,
    level_of,
    specification_from_dict,
    with_levels,
)
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.stimulus.parameters import log_spaced
from psyprobe.stimulus.registry import KINDS

FUNCTIONS: list[tuple[Callable[..., Any], type[Specification]]] = [
    (pp.gabor, Gabor),
    (pp.grating, Grating),
    (pp.noise, Noise),
    (pp.disc, Disc),
    (pp.uniform, Uniform),
    (annulus_noise, AnnulusNoise),
]


@pytest.mark.parametrize(("function", "kind"), FUNCTIONS, ids=lambda f: f.__name__)
def test_the_signature_is_that_of_the_kind(
    function: Callable[..., Any], kind: type[Specification]
) -> None:
    words = inspect.signature(function).parameters
    assert all(word.kind is inspect.Parameter.KEYWORD_ONLY for word in words.values())
    assert set(words) - {"dtype", "device"} == set(kind.parameters())
    for name, described in kind.parameters().items():
        assert (words[name].default is inspect.Parameter.empty) == described.required, (
            name
        )
        assert described.required or words[name].default == described.default, name
    described_in = inspect.getdoc(function) or ""
    assert all(name in described_in for name in words)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("sf", "frequency"),
        ("cpd", "frequency"),
        ("ori", "orientation"),
        ("theta", "orientation"),
        ("sigma", "radius"),
        ("lum", "luminance"),
        ("c", "contrast"),
        ("size_deg", "size"),
        ("pixels_per_degree", "ppd"),
    ],
)
def test_other_words_are_told_the_right_name(word: str, meant: str) -> None:
    with pytest.raises(
        UnknownNameError,
        match=f"unknown parameter of gabor '{word}'; here it is called '{meant}'",
    ):
        pp.gabor(**{"frequency": 4, "contrast": 0.1, word: 1})
    with pytest.raises(UnknownNameError, match=f"here it is called '{meant}'"):
        specification_from_dict(
            {"kind": "gabor", "frequency": 4, "contrast": 0.1, word: 1}
        )


def test_what_is_missing_or_misspelt_is_named() -> None:
    with pytest.raises(InputError, match="gabor needs frequency and contrast"):
        pp.gabor()  # type: ignore[call-arg]
    with pytest.raises(InputError, match="by name"):
        pp.gabor(4, 0.1)  # type: ignore[misc]
    with pytest.raises(UnknownNameError, match="did you mean 'frequency'"):
        pp.gabor(frequenzy=4, contrast=0.1)  # type: ignore[call-arg]
    with pytest.raises(UnknownNameError, match="unknown parameter of disc 'sf'; Known"):
        pp.disc(contrast=0.1, sf=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_number_has_a_unit_and_a_label(kind: str) -> None:
    for name, described in KINDS[kind].parameters().items():
        assert described.label and (described.unit or not described.numeric), name


@pytest.mark.parametrize(
    ("name", "unit", "label"),
    [
        ("frequency", "cpd", "Spatial frequency"),
        ("luminance", "cd/m²", "Background luminance"),
        ("contrast", "1", "Contrast"),
        ("orientation", "deg", "Orientation"),
        ("phase", "deg", "Phase"),
        ("radius", "deg", "Radius"),
        ("area", "deg²", "Area"),
        ("mask_contrast", "1", "Mask contrast"),
    ],
)
def test_levels_have_units_and_labels(name: str, unit: str, label: str) -> None:
    described = level_of(load_stimulus("mask_coherent").spec(), name)
    assert (described.unit, described.label) == (unit, label)


def test_area_is_that_of_the_circle_of_the_standard_deviation() -> None:
    spec = with_levels(Gabor(frequency=4.0, contrast=0.1), area=[0.5, 1.0])
    np.testing.assert_array_equal(
        spec.value("radius"), np.sqrt(np.array([0.5, 1.0]) / np.pi)
    )
    np.testing.assert_allclose(spec.value("area"), [0.5, 1.0], rtol=1e-15)
    with pytest.raises(InputError, match="area and radius say the same"):
        with_levels(spec, area=1.0, radius=1.0)
    with pytest.raises(InputError, match="area is -1 deg²; it must be > 0 deg²"):
        with_levels(spec, area=-1)
    with pytest.raises(UnknownNameError, match="unknown parameter of noise 'area'"):
        with_levels(Noise(frequency=4.0, contrast=0.1), area=1)


def test_levels_are_numbers_only() -> None:
    spec = Gabor(frequency=4.0, contrast=0.1)
    with pytest.raises(UnknownNameError, match="'direction'"):
        with_levels(spec, direction="red_green")
    with pytest.raises(UnknownNameError, match="did you mean 'orientation'"):
        level_of(spec, "orientaton")
    assert with_levels(spec, frequency=2.0, phase=90.0) == Gabor(
        frequency=2.0, contrast=0.1, phase=90.0
    )


def test_levels_of_a_sum_have_the_name_of_their_part() -> None:
    target, mask = (
        Gabor(frequency=4.0, contrast=0.1, radius=0.5),
        Grating(frequency=4.0, contrast=0.2, orientation=45),
    )
    masked = load_stimulus("gabor_masked").spec()
    assert masked == target + mask and masked.digest == Sum(parts=(target, mask)).digest
    assert level_of(masked, "mask_frequency").label == "Mask spatial frequency"
    changed = with_levels(
        masked,
        contrast=0.3,
        mask_contrast=0.4,
        mask_orientation=90,
        luminance=50.0,
        area=0.2,
    )
    assert changed == target.changed(
        contrast=0.3, area=0.2, luminance=50.0
    ) + mask.changed(contrast=0.4, orientation=90, luminance=50.0)
    assert changed.reference() == mask.changed(
        contrast=0.4, orientation=90, luminance=50.0
    )
    with pytest.raises(UnknownNameError, match="did you mean 'mask_orientation'"):
        with_levels(masked, mask_orientaton=3)
    with pytest.raises(UnknownNameError):
        with_levels(masked, mask_luminance=3)


def test_a_sum_page_is_drawn_over_its_grid_and_certified() -> None:
    page = load_stimulus("gabor_masked")
    spec = page.spec(**{name: values[:7] for name, values in page.levels.items()})
    certificate = spec.draw().measure()
    assert certificate.passed and {"part 1 contrast", "part 2 orientation"} <= {
        row.quantity for row in certificate
    }
    assert page.spec(size=112, ppd=30).reference().shape == (112, 112)


def test_parts_may_have_any_names() -> None:
    parts = tuple(
        Grating(frequency=4.0, contrast=0.1, orientation=angle)
        for angle in (0.0, 45.0, 90.0)
    )
    usual, custom = Sum(parts=parts), Sum(parts=parts, names=("left", "right"))
    assert usual.value("mask2_orientation") == custom.value("right_orientation") == 90.0
    reloaded = specification_from_dict(json.loads(json.dumps(custom.to_dict())))
    assert reloaded == custom and reloaded.digest == custom.digest != usual.digest
    assert custom.reference() == Sum(parts=parts[1:], names=("right",))
    np.testing.assert_array_equal(custom.draw().pixels, usual.draw().pixels)
    for names in (("left",), ("left", "left"), ("left", "the right")):
        with pytest.raises(InputError, match="give a word of its own"):
            Sum(parts=parts, names=names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[parts.mask]\ncontrast = 0.1", "lacks its kind"),
        (
            '[parts.mask]\nkind = "grating"\ncontrast = 0.1\nfrequency = 2.0\nluminance = 3',
            "is that of the target",
        ),
        ('[parts.mask]\nkind = "uniform"', "at least two patterns on a background"),
        ("[levels]\norientaton = { values = [1] }", "did you mean 'orientation'"),
    ],
)
def test_a_page_that_cannot_be_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    page = tmp_path / "page.toml"
    page.write_text(
        f'title = "T"\nkind = "gabor"\n[parameters]\nfrequency = 4.0\ncontrast = 0.1\n{text}\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=message) as error:
        load_stimulus(page)
    assert "\n" not in str(error.value)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 60))
def test_log_levels_are_rounded_once(first: float, last: float, n: int) -> None:
    levels = log_spaced(first, last, n)
    assert len(levels) == n and levels[0] == first and (n == 1 or levels[-1] == last)
    with mpmath.workdps(40):
        low, ratio = mpmath.mpf(first), mpmath.mpf(last) / mpmath.mpf(first)
        exact = [
            float(low * ratio ** (mpmath.mpf(i) / (n - 1))) for i in range(1, n - 1)
        ]
    assert levels[1:-1].tolist() == exact
    np.testing.assert_allclose(levels, np.geomspace(first, last, n), rtol=1e-14)
