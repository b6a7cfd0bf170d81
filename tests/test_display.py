"""The display model against IEC 61966-2-1, colour-science, physics and its own inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.errors import GamutError, InputError, UnknownNameError
from psyprobe.light import display as display_module
from psyprobe.light.display import Display, display_presets
from psyprobe.light.transfer import srgb_float32
from psyprobe.stimulus import Disc, Noise, Uniform, gabor

DISPLAYS = [Display.preset(name) for name in display_presets()] + [
    Display(
        peak=250,
        black=0.4,
        ambient=100,
        eotf=((0, 0), (0.25, 0.04), (0.5, 0.2), (0.8, 0.6), (1, 1)),
    ),
    Display(peak=600, primaries="ITU-R BT.2020"),
]
IDS = [*display_presets(), "measured", "bt2020"]


@pytest.fixture(params=DISPLAYS, ids=IDS)
def display(request: pytest.FixtureRequest) -> Display:
    return request.param


def test_srgb_equals_colour_science() -> None:
    colour = pytest.importorskip("colour")
    drive = np.linspace(0, 1, 10_001)
    ours = Display(peak=1.0).decode(drive)
    np.testing.assert_allclose(ours, colour.models.eotf_sRGB(drive), rtol=0, atol=2e-8)
    away = np.abs(drive - 0.04045) > 1e-3
    np.testing.assert_allclose(
        ours[away], colour.models.eotf_sRGB(drive)[away], rtol=1e-14
    )


@pytest.mark.parametrize("size", [8, 9, (2, 5), (6, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_image_is_encoded_as_each_of_its_pixels(size: object, dtype: str) -> None:
    display = Display(peak=400, black=0.3)
    for stimulus in (
        gabor(frequency=[2, 3], contrast=0.4, ppd=16, size=size, radius=0.1),
        gabor(
            frequency=[2, 3],
            contrast=0.05,
            direction="red_green",
            ppd=16,
            size=size,
            radius=0.1,
        ),
        gabor(
            frequency=2,
            contrast=0.4,
            orientation=90,
            phase=90,
            ppd=16,
            size=size,
            radius=0.1,
        ),
    ):
        drive = display.encode(stimulus, dtype=dtype)
        pixels = stimulus.pixels.reshape(
            (-1, 1, 1) if stimulus.space == "luminance" else (-1, 1, 1, 3)
        )
        pixel_drives = [
            display.encode(
                pixel, space=stimulus.space, observer=stimulus.observer, dtype=dtype
            )
            for pixel in pixels
        ]
        # Colours of one pixel alone are rounded otherwise than those of many.
        np.testing.assert_allclose(
            np.reshape(pixel_drives, drive.shape),
            drive,
            rtol=0 if dtype == "float32" else 1e-15,
        )


@pytest.mark.parametrize("light", [np.nan, np.inf, 500.0])
def test_light_that_cannot_be_shown_is_found_wherever_it_is(light: float) -> None:
    for places in (
        [(0, 0)],
        [(5, 3)],
        [(5, 0), (5, 3)],
        [(0, 0), (0, 3), (5, 0), (5, 3)],
    ):
        image = np.full((2, 6, 4), 100.0)
        for row, column in places:
            image[1, row, column] = light
        with pytest.raises(
            InputError,
            match=f"in {100 * len(places) / 48:.3g} %"
            if light == 500
            else "NaN or infin",
        ):
            Display(peak=400).encode(image)


@pytest.mark.parametrize(
    "name", ["sRGB", "Display P3", "ITU-R BT.2020", "Adobe RGB (1998)"]
)
def test_primaries_equal_colour_science(name: str) -> None:
    colour = pytest.importorskip("colour")
    space = colour.RGB_COLOURSPACES[name]
    expected = colour.normalised_primary_matrix(space.primaries, space.whitepoint)
    np.testing.assert_allclose(Display(primaries=name).rgb_to_xyz, expected, atol=1e-12)


def test_light_round_trip_is_exact(display: Display) -> None:
    light = np.geomspace(max(display.floor, 1e-4), display.ceiling, 5001).reshape(1, -1)
    drive = display.encode(light, dtype="float64")[..., 0]
    np.testing.assert_allclose(display.decode(drive), light, rtol=1e-13)
    single = display.encode(light.astype(np.float32), dtype="float32")[..., 0]
    np.testing.assert_allclose(
        display.decode(single), light, rtol=2e-6, atol=2e-6 * display.peak / 100
    )


@given(st.floats(0, 1), st.sampled_from(DISPLAYS))
def test_drive_round_trip_is_exact(drive: float, display: Display) -> None:
    light = display.decode(np.array([[drive]]))
    drive_again = float(display.encode(light, dtype="float64")[0, 0, 0])
    # Near black a power law is steep, and rounding of the light alone moves the drive.
    slope = max(1.0, (max(drive, 1e-9)) ** -1.2) * display.ceiling / display.peak
    assert abs(drive_again - drive) <= 1e-14 * slope + (2e-7 if drive < 1e-3 else 0)


def test_eotf_is_strictly_monotone(display: Display) -> None:
    for dtype in ("float64", "float32"):
        drive = np.linspace(0, 1, 2**16 + 1, dtype=dtype)
        assert (np.diff(display.decode(drive).astype(np.float64)) >= 0).all()
    assert (np.diff(display.decode(np.linspace(0, 1, 2**16 + 1))) > 0).all()


def test_encoding_is_monotone_where_iec_steps_back() -> None:
    light = np.linspace(0.00313, 0.003132, 20_001).reshape(1, -1)
    assert (np.diff(Display(peak=1).encode(light, dtype="float64")[0, :, 0]) >= 0).all()


def test_limits_are_black_and_peak_plus_reflections(display: Display) -> None:
    reflected = display.ambient * display.reflectivity / math.pi
    assert float(display.decode(0.0)) == pytest.approx(
        display.black + reflected, rel=1e-13
    )
    assert float(display.decode(1.0)) == pytest.approx(
        display.peak + reflected, rel=1e-13
    )
    assert float(display.luminance([1.0, 1.0, 1.0])) == pytest.approx(
        display.peak + reflected, rel=1e-13
    )


def test_matrices_invert(display: Display) -> None:
    np.testing.assert_allclose(
        display.rgb_to_xyz @ display.xyz_to_rgb, np.eye(3), atol=1e-14
    )


def test_neutral_is_neutral_through_lms(display: Display) -> None:
    if display.primaries != "sRGB":
        pytest.skip("white of this display is not exactly the D65 of the stimulus")
    grey = Uniform(
        luminance=display.floor + 0.3 * display.peak, chromatic=True, size=4
    ).draw()
    drive = display.encode(grey, dtype="float64")
    np.testing.assert_allclose(drive, drive[..., :1] * np.ones(3), rtol=1e-14)


def test_torch_and_numpy_agree(display: Display) -> None:
    torch = pytest.importorskip("torch")
    light = np.geomspace(max(display.floor, 1e-3), display.ceiling, 1000).reshape(
        10, 10, 10
    )
    ours = display.encode(light, dtype="float64")
    tensor = display.encode(torch.from_numpy(light), dtype="float64")
    np.testing.assert_allclose(tensor.numpy(), ours, atol=1e-13)
    np.testing.assert_allclose(
        display.decode(tensor).numpy(), display.decode(ours), rtol=1e-13
    )


def test_grey_shares_one_plane() -> None:
    drive = Display().encode(np.full((2, 5, 7), 50.0))
    assert (
        drive.shape == (2, 5, 7, 3)
        and drive.strides[-1] == 0
        and drive.dtype == np.float32
    )


@given(
    st.floats(0.02, 0.98), st.sampled_from(["achromatic", "red_green", "yellow_violet"])
)
def test_largest_contrast_fits_and_more_does_not(level: float, direction: str) -> None:
    display = Display(peak=400, black=0.4, ambient=200)
    luminance = display.floor + level * (display.ceiling - display.floor)
    limit = display.max_contrast(luminance, direction)
    for factor, fits in ((1 - 1e-9, True), (1 + 1e-6, False)):
        swings = [sign * limit * factor for sign in (1, -1)]
        spec = Disc(
            contrast=swings, luminance=luminance, direction=direction, size=3, ppd=1
        )
        light = display.light(spec.draw())
        inside = light.min() >= display.floor * (
            1 - 1e-12
        ) and light.max() <= display.ceiling * (1 + 1e-12)
        assert inside == fits


def test_published_gamut_limits() -> None:
    # calibration.md, property 41: at linear grey 0.25 of an sRGB display.
    display = Display(peak=400)
    assert display.max_contrast(100, "yellow_violet") * math.sqrt(3) == pytest.approx(
        0.872, abs=5e-4
    )
    red_green = display.max_contrast(100, "red_green")
    assert red_green * math.sqrt(3) == pytest.approx(math.hypot(0.064, 0.148), rel=5e-3)


def test_too_bright_is_refused_with_the_contrast_that_fits() -> None:
    stimulus = gabor(frequency=4, contrast=1.0, luminance=100)
    with pytest.raises(
        GamutError,
        match=r"light of 0\.\d+ cd/m² is below .* at most 0\.963\d* of what it is",
    ):
        Display(peak=400, black=4.4).encode(stimulus)
    with pytest.raises(GamutError, match="above what this display shows"):
        Display(peak=80).encode(stimulus)


def test_clipping_happens_only_when_asked_and_is_counted() -> None:
    display = Display(peak=150)
    stimulus = gabor(frequency=4, contrast=1.0, luminance=100)
    drive = display.encode(stimulus, clip=True)
    counted = display.gamut(stimulus)
    assert drive.max() == 1.0
    assert counted.above == int((stimulus.luminance > 150).sum()) and counted.below == 0
    assert counted.margin == pytest.approx((150 - stimulus.luminance.max()) / 150)


def test_extended_range_goes_beyond_one() -> None:
    drive = Display(peak=100, extended=True).encode([[200.0]])
    assert float(drive[0, 0, 0]) == pytest.approx(
        1.055 * 2 ** (1 / 2.4) - 0.055, rel=1e-6
    )


def test_nan_never_passes() -> None:
    with pytest.raises(InputError, match="NaN"):
        Display().encode([[1.0, float("nan")]])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"peak": -1}, "peak is -1"),
        ({"peak": 100, "black": 100}, "not above its black level"),
        ({"peak": "400 cd/m²"}, "give a number"),
        ({"ambient": math.nan}, "ambient is nan"),
        ({"reflectivity": 1.5}, "reflects 0 to 1"),
        ({"eotf": "srbg"}, "did you mean 'srgb'"),
        ({"eotf": 0.01}, "exponent"),
        ({"eotf": ((0, 0), (0.5, 0.6), (0.4, 0.8), (1, 1))}, "must increase"),
        ({"eotf": ((0, 0.1), (1, 1))}, "from \\(0, 0\\)"),
    ],
)
def test_impossible_displays_are_refused(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Display(**values)  # type: ignore[arg-type]


def test_dict_round_trip_and_unknown_keys(display: Display) -> None:
    assert Display.from_dict(display.to_dict()) == display
    with pytest.raises(UnknownNameError, match="did you mean 'peak'"):
        Display.from_dict({"peek": 400})


def test_noise_out_of_gamut_names_a_fitting_scale() -> None:
    spec = Noise(frequency=4, contrast=0.2, luminance=100, seed=3)
    display = Display(peak=150)
    with pytest.raises(GamutError) as error:
        display.encode(spec.draw())
    scale = float(str(error.value).split("at most ")[1].split()[0])
    fitting = Noise(frequency=4, contrast=0.2 * scale * 0.999, luminance=100, seed=3)
    assert display.gamut(fitting.draw()).outside == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2]))
def test_drive_is_as_exact_as_the_pixels_are(seed: int, black: float) -> None:
    display = Display(peak=400, black=black)
    light = np.random.default_rng(seed).uniform(black, 400, (40, 50))
    light[:10] *= 1e-3
    light = np.maximum(light, black)
    for dtype, allowed in (("float64", 2.0**-25), ("float32", 2e-7)):
        light_of_dtype = light.astype(dtype)
        relative = (light_of_dtype.astype(np.float64) - black) / (400 - black)
        exact = np.where(
            relative <= 0.0031308,
            12.92 * relative,
            1.055 * np.maximum(relative, 0) ** (1 / 2.4) - 0.055,
        )
        drive = display.encode(light_of_dtype)
        assert drive.dtype == np.float32
        assert np.abs(drive[..., 0] - exact).max() <= allowed * (1 + 1e-6)


@pytest.mark.parametrize("shape", [(8, 6), (7, 6), (2, 9, 6), (1, 3), (6, 8, 3)])
def test_mirrored_half_is_copied(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = []

    def encode_and_count(light: Any, has_toe: bool, out: Any) -> None:
        encoded.append(out.size)
        srgb_float32(light, has_toe, out)

    light = np.random.default_rng(0).uniform(0, 400, shape)
    mirrored = (light + np.flip(light, axis=-2)) / 2
    space = "rgb" if shape[-1] == 3 and len(shape) == 3 else "luminance"
    single = Display().encode(mirrored.reshape(-1, 1, 3), space="rgb")
    monkeypatch.setattr(display_module, "srgb_float32", encode_and_count)
    drive = Display().encode(mirrored, space=space)
    if space == "luminance":
        drive = drive[..., 0]
    assert np.array_equal(drive.ravel(), single.ravel())
    assert sum(encoded) == mirrored.size * -(-shape[-2] // 2) // shape[-2]
