"""Photographs and films are shown in their own light at the contrast that is asked for, and their certificate
notices what defines them; what is not sRGB, or would be resized, is refused."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from PIL import Image as Pillow
from PIL import ImageCms
from PIL.PngImagePlugin import PngInfo

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.images import check_srgb
from psyprobe.stimulus import Film, Image
from psyprobe.stimulus.measuring import certify
from psyprobe.testing import CalibrationError, assert_calibrated, strategies

#: sRGB's share of the primaries in luminance (IEC 61966-2-1).
LUMA = np.array([0.2126, 0.7152, 0.0722])


@pytest.fixture
def photograph(tmp_path: Path) -> str:
    """Colours at random, smoothed over a few pixels as those of things are."""
    codes = np.random.default_rng(5).integers(0, 256, (24, 32, 3), np.uint8)
    image = Pillow.fromarray(codes).resize((96, 72))
    image.save(tmp_path / "photo.png")
    return str(tmp_path / "photo.png")


def linear(codes: FloatArray) -> FloatArray:
    """sRGB as its standard writes it."""
    drive = codes / 255
    return np.where(drive <= 0.04045, drive / 12.92, ((drive + 0.055) / 1.055) ** 2.4)


def test_the_light_is_that_of_srgb_and_the_contrast_that_of_the_window(
    photograph: str,
) -> None:
    codes = np.asarray(Pillow.open(photograph))[4:-4, 16:-16]
    light = linear(codes) @ LUMA
    spec = Image(file=photograph, contrast=0.3, size=64, window="none", luminance=80.0)
    luminance = np.asarray(spec.draw().luminance)
    expected = 80 * (1 + 0.3 * (light - light.mean()) / light.std())
    np.testing.assert_allclose(luminance, expected, rtol=2e-4)
    # Round trip: what a display of sRGB shows of the file's own contrast is the file.
    original = spec.changed(contrast=light.std() / light.mean())
    drive = pp.Display(peak=80 / light.mean()).encode(original.draw())[..., 0]
    np.testing.assert_allclose(linear(255 * drive), light, atol=1e-4)


@pytest.mark.parametrize("window", ["raised_cosine", "disc", "gaussian"])
def test_mean_and_contrast_hold_within_the_window(photograph: str, window: str) -> None:
    spec = Image(
        file=photograph, contrast=[0.1, 0.2], window=window, radius=0.3, x=0.1, size=64
    )
    stimulus = spec.draw()
    for single, light in zip(
        spec.singles(), np.asarray(stimulus.luminance), strict=True
    ):
        x = (np.arange(64) - 31.5) / 60
        distance = np.hypot(x - 0.1, x[:, None])
        weight = {
            "disc": (distance <= 0.3) * 1.0,
            "gaussian": np.exp(-(distance**2) / 0.18),
            "raised_cosine": np.cos(
                np.pi / 2 * np.clip((distance - 0.3) / 0.25 + 0.5, 0, 1)
            )
            ** 2,
        }[window]
        mean = np.average(light, weights=weight)
        spread = np.sqrt(np.average((light - mean) ** 2, weights=weight))
        assert mean == pytest.approx(100, rel=1e-12)
        assert spread / mean == pytest.approx(single.contrast, rel=1e-12)
    assert stimulus.measure().passed


def test_the_certificate_notices_another_contrast_and_mean(photograph: str) -> None:
    spec = Image(file=photograph, contrast=0.2, size=64, radius=0.4)
    light = np.asarray(spec.draw().luminance)
    for image, quantity in (
        (100 + 1.01 * (light - 100), "rms contrast in window"),
        (1.01 * light, "mean luminance in window"),
    ):
        with pytest.raises(CalibrationError) as failure:
            assert_calibrated(image, spec, space="luminance")
        assert quantity in str(failure.value)


def test_a_folder_is_a_grid_of_photographs(photograph: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, turned in (("a.png", 0), ("b.png", 180)):
        Pillow.open(photograph).rotate(turned).save(folder / name)
    spec = Image(
        file=str(folder), picture=[[0], [1]], contrast=[0.1, 0.2], size=64, radius=0.4
    )
    images = np.asarray(spec.draw().luminance)
    assert images.shape == (2, 2, 64, 64)
    np.testing.assert_allclose(images[0, 1], images[1, 1, ::-1, ::-1], rtol=1e-12)
    assert pickle.loads(pickle.dumps(spec)) == spec
    before = spec.digest
    (folder / "b.png").write_bytes((folder / "a.png").read_bytes())
    assert spec.changed().digest != before
    with pytest.raises(InputError, match=r"picture is 2; .* has 2, and the first is 0"):
        spec.changed(picture=2)


def test_a_field_of_more_pixels_shows_the_same_degrees() -> None:
    page = pp.load_experiment("photograph_contrast")
    fine = page.spec().changed(contrast=0.2, size=260, ppd=260 / 224 * 60)
    stimulus = fine.draw()
    assert stimulus.measure().passed
    middle = np.asarray(stimulus.luminance)
    coarse = fine.changed(size=224, ppd=60)
    picture = Pillow.fromarray(middle.astype(np.float32)).resize((224, 224))
    difference = np.asarray(picture) - np.asarray(coarse.draw().luminance)
    assert np.abs(difference).mean() < 0.02 * coarse.contrast * coarse.luminance
    # At the file's own pixels per degree none is resampled.
    exact = np.asarray(coarse.changed(file_ppd=0).draw().luminance)
    np.testing.assert_array_equal(np.asarray(coarse.draw().luminance), exact)


def test_an_array_of_light_is_taken_as_it_is(tmp_path: Path) -> None:
    light = np.random.default_rng(1).uniform(10, 20, (3, 40, 40))
    np.save(tmp_path / "light.npy", light)
    file = str(tmp_path / "light.npy")
    stimulus = pp.image(file=file, picture=2, contrast=0.1, size=40, window="none")
    expected = 100 + 10 * (light[2] - light[2].mean()) / light[2].std()
    np.testing.assert_allclose(np.asarray(stimulus.luminance), expected, rtol=1e-12)


def saved(photograph: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Pillow.open(photograph).save(file, "PNG", **options)
    return file.getvalue()


def test_only_srgb_is_decoded(photograph: str) -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    check_srgb(saved(photograph, icc_profile=srgb), "mine.png")
    swapped = srgb.replace(b"rXYZ", b"____").replace(b"bXYZ", b"rXYZ")
    swapped = swapped.replace(b"____", b"bXYZ")
    with pytest.raises(InputError, match=r"mine.png has the colour profile .*sRGB"):
        check_srgb(saved(photograph, icc_profile=swapped), "mine.png")
    chunks = PngInfo()
    chunks.add(b"gAMA", (100_000).to_bytes(4, "big"))
    with pytest.raises(InputError, match=r"mine.png has the gamma 1, and only sRGB"):
        check_srgb(saved(photograph, pnginfo=chunks), "mine.png")
    with pytest.raises(InputError, match="profile that cannot be used"):
        check_srgb(saved(photograph, icc_profile=b"no profile"), "mine.png")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"size": 80}, "has 72 x 96 px, and a field of 80 x 80 px .* lower size"),
        ({"window": "round"}, "unknown window 'round'"),
        ({"contrast": 3.0}, "would need negative light"),
        ({"file": "gone.png"}, "cannot be read"),
        ({"radius": 0.001, "edge": 0.001}, "uniform in the window"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(
    photograph: str, values: dict[str, Any], words: str
) -> None:
    arguments = {"file": photograph, "contrast": 0.1, "size": 64, "radius": 0.4}
    with pytest.raises(InputError, match=words):
        pp.image(**(arguments | values))


@settings(max_examples=10)
@given(strategies.images())
def test_every_photograph_is_calibrated(spec: Image) -> None:
    assert_calibrated(spec.draw())


# -- films
# ------------------------------------------------------------------------------------------


@pytest.fixture
def frames(photograph: str, tmp_path: Path) -> Path:
    """Six frames in which the photograph moves to the left, and grows darker."""
    folder = tmp_path / "frames"
    folder.mkdir()
    codes = np.asarray(Pillow.open(photograph))
    for index in range(6):
        moved = np.roll(codes, -2 * index, axis=1) // (1 + index % 2)
        Pillow.fromarray(moved).save(folder / f"frame_{index:02}.png")
    return folder


def test_frames_are_those_of_the_folder_with_one_mean_and_contrast(
    frames: Path,
) -> None:
    film = Film(file=str(frames), contrast=0.3, window="none", size=48)
    luminance = np.asarray(film.draw().luminance)
    assert film.frames == 6 and luminance.shape == (6, 48, 48)
    light = np.stack(
        [
            linear(np.asarray(Pillow.open(file))[12:-12, 24:-24]) @ LUMA
            for file in sorted(frames.iterdir())
        ]
    )
    expected = 100 * (1 + 0.3 * (light - light.mean()) / light.std())
    np.testing.assert_allclose(luminance, expected, rtol=3e-4)
    certificate = film.measure(pp.Display(peak=800))
    assert certificate.passed and certificate["frames"].delivered == 6
    chunks = np.concatenate([np.asarray(part.luminance) for part in film.chunks(4)])
    np.testing.assert_array_equal(chunks, luminance)


def test_a_film_of_an_array_equals_its_light(frames: Path, tmp_path: Path) -> None:
    light = np.random.default_rng(2).uniform(1, 3, (5, 32, 40))
    np.save(tmp_path / "film.npy", light)
    file = str(tmp_path / "film.npy")
    film = pp.film(file=file, contrast=0.1, size=(32, 40), window="none", frames=3)
    first = light[:3]
    expected = 100 + 10 * (first - first.mean()) / first.std()
    np.testing.assert_allclose(np.asarray(film.luminance), expected, rtol=1e-12)
    assert film.spec.reference().extent == (3, 32, 40)


def test_the_certificate_notices_frames_amiss(frames: Path) -> None:
    film = Film(file=str(frames), contrast=0.2, size=48, radius=0.3)
    luminance = np.asarray(film.draw().luminance)
    for image, quantity in (
        (luminance[[1, 0, 2, 3, 4, 5]], "distortion"),
        (100 + 1.01 * (luminance - 100), "rms contrast in window"),
        (1.01 * luminance, "mean luminance in window"),
    ):
        assert not certify(image, "luminance", film)[quantity].passed


def test_a_film_is_known_by_its_frames(frames: Path) -> None:
    film = Film(file=str(frames), contrast=0.2, size=48, radius=0.3)
    before = film.digest
    first, second, *_ = sorted(frames.iterdir())
    first.write_bytes(second.read_bytes())
    assert film.changed().digest != before
    with pytest.raises(
        InputError, match=r"frames is 7; .* has 6; give at most as many"
    ):
        pp.film(file=str(frames), contrast=0.2, size=48, frames=7)


@settings(max_examples=10)
@given(strategies.films())
def test_every_film_is_calibrated(spec: Film) -> None:
    assert_calibrated(spec.draw())
