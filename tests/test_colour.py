"""Colour against colour-science, published constants and silent substitution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.light import colour as pc
from psyprobe.light.primaries import SRGB_PRIMARIES

LIGHTS = arrays(float, 3, elements=st.floats(0.01, 1000))


@pytest.mark.parametrize("name", pc.CONE_OBSERVERS)
@given(lms=LIGHTS)
def test_lms_round_trip(name: str, lms: np.ndarray) -> None:
    reconverted = pc.xyz_to_lms(pc.cone_observer(name).to_xyz @ lms, name)
    np.testing.assert_allclose(reconverted, lms, rtol=1e-12, atol=1e-12 * lms.max())


def test_inverse_of_the_led_lcd_matrix_is_the_published_one() -> None:
    published = [
        [2.629129278399650, -3.780202391780134, 10.294956387893450],
        [0.865649062438827, 1.215555811642301, -0.984175688105352],
        [-0.008886561474676, 0.081612628990755, 51.371024830897888],
    ]
    np.testing.assert_allclose(
        pc.cone_observer("cie2006_led_lcd").to_xyz, published, rtol=1e-12, atol=1e-12
    )


def test_cie2006_equals_colour_science() -> None:
    colour = pytest.importorskip("colour")
    for wavelength in (450, 520, 580, 640):
        lms = colour.colorimetry.MSDS_CMFS_LMS[
            "Stockman & Sharpe 2 Degree Cone Fundamentals"
        ][wavelength]
        xyz = colour.colorimetry.LMS_2_degree_cmfs_to_XYZ_2_degree_cmfs(wavelength)
        ours = pc.xyz_to_lms(xyz, "cie2006")
        np.testing.assert_allclose(
            ours, lms * [0.68990272, 0.34832189, 1.0], rtol=1e-12, atol=1e-15
        )
        assert ours[0] + ours[1] == pytest.approx(xyz[1], rel=1e-12)


def test_smith_pokorny_has_the_shape_of_colour_science_s() -> None:
    colour = pytest.importorskip("colour")
    # Judd-Vos XYZ, which the matrix expects, is CIE 1931's from 520 nm on; each cone of
    # colour-science peaks at 1.
    wavelengths = np.arange(520, 605, 5)
    xyz = colour.MSDS_CMFS["CIE 1931 2 Degree Standard Observer"][wavelengths]
    cones = colour.MSDS_CMFS["Smith & Pokorny 1975 Normal Trichromats"][wavelengths]
    ratio = (pc.xyz_to_lms(xyz, "smith_pokorny") / cones)[:, :2]
    np.testing.assert_allclose(ratio / np.median(ratio, axis=0), 1, atol=0.015)


def test_whites_and_primaries_equal_colour_science() -> None:
    colour = pytest.importorskip("colour")
    for name, white in pc.WHITES.items():
        theirs = colour.CCS_ILLUMINANTS["CIE 1931 2 Degree Standard Observer"][name]
        assert tuple(map(float, theirs)) == white
        np.testing.assert_allclose(
            pc.white_xyz(name), colour.xy_to_XYZ(theirs), rtol=1e-15
        )
    assert (
        tuple(map(tuple, colour.RGB_COLOURSPACES["sRGB"].primaries.tolist()))
        == SRGB_PRIMARIES
    )
    assert (
        tuple(colour.RGB_COLOURSPACES["sRGB"].whitepoint.tolist()) == pc.WHITES["D65"]
    )


@given(
    st.floats(0.01, 1000),
    st.sampled_from(sorted(pc.CONE_OBSERVERS)),
    st.sampled_from(sorted(pc.WHITES)),
)
def test_grey_has_no_chromatic_coordinate(
    luminance: float, observer: str, white: str
) -> None:
    background = pc.xyz_to_lms(pc.white_xyz(white) * 50, observer)
    grey = pc.xyz_to_lms(pc.white_xyz(white) * luminance, observer)
    dkl = pc.dkl_matrix(background) @ (grey - background)
    assert abs(dkl[1:]).max() <= 1e-13 * max(50, luminance)


def test_directions_substitute_silently() -> None:
    background = pc.xyz_to_lms(pc.white_xyz() * 100)
    red_green = background * pc.direction_vector("red_green", background)
    assert red_green[0] + red_green[1] == pytest.approx(0, abs=1e-14 * red_green[0])
    assert red_green[2] == 0
    violet = pc.direction_vector("yellow_violet", background)
    assert violet[0] == violet[1] == 0


@given(
    st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5)).filter(
        lambda v: max(map(abs, v)) > 1e-3
    )
)
def test_unit_contrast_is_an_rms_cone_contrast_of_one(
    direction: tuple[float, float, float],
) -> None:
    background = np.array([70.0, 30.0, 2.0])
    contrast = pc.direction_vector(direction, background)
    assert math.sqrt(np.mean(contrast**2)) == pytest.approx(1, rel=1e-12)


def test_bad_input_is_named() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'red_green'"):
        pc.direction_vector("redgreen", (70, 30, 2))
    with pytest.raises(InputError, match="not all zero"):
        pc.direction_vector((0, 0, 0), (70, 30, 2))
    with pytest.raises(InputError, match="is not a light"):
        pc.dkl_matrix((70, 0, 2))
    with pytest.raises(InputError, match="is not that of a light"):
        pc.white_xyz((0.5, 0.0))
    with pytest.raises(UnknownNameError, match="smith_pokorny"):
        pc.cone_observer("smith")
