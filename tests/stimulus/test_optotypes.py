"""Letters, Landolt rings, tumbling E and square waves are drawn exactly, and their certificates
notice what defines them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from PIL import Image, ImageDraw, ImageFont

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.differences import stimulus_remarks
from psyprobe.stimulus import (
    Glyph,
    Landolt,
    Modulation,
    Optotype,
    SquareWave,
    TumblingE,
)
from psyprobe.stimulus.catalogue import catalogue_folder
from psyprobe.stimulus.coverage import area, box, coverage
from psyprobe.stimulus.kinds.letters import SLOAN, letter_outlines
from psyprobe.stimulus.measuring import certify
from psyprobe.testing import assert_batch_equals_loop, assert_calibrated, strategies

DATA = Path(__file__).parents[1] / "data" / "letters"
PPD = 60.0


def table(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(row: dict[str, str]) -> dict[str, float]:
    return {key: float(text) for key, text in row.items() if key != "optotype"}


def letter(name: str, pixels: float, **values: Any) -> Any:
    """The optotype of a name of the tables, so many pixels high."""
    values = {
        "contrast": -1.0,
        "letter_size": pixels / PPD,
        "ppd": PPD,
        "size": 64,
    } | values
    if name[1:]:
        kind = TumblingE if name[0] == "E" else Landolt
        return kind(orientation=float(name[1:]), **values)
    return Optotype(letter=name, **values)


def ink(name: str, pixels: float, **values: Any) -> FloatArray:
    return np.asarray(letter(name, pixels, **values).unit()[0])


def moments(image: FloatArray) -> dict[str, float]:
    """Sum, centroid and central second moments of an image, in pixels right of its middle and up."""
    height, width = image.shape
    x = np.arange(width) - (width - 1) / 2
    y = ((height - 1) / 2 - np.arange(height))[:, None]
    total = image.sum()
    cx = float((image * x).sum() / total)
    cy = float((image * y).sum() / total)
    return {
        "area_px": float(total),
        "cx_px": cx,
        "cy_px": cy,
        "mxx_px": float((image * (x - cx) ** 2).sum() / total),
        "myy_px": float((image * (y - cy) ** 2).sum() / total),
        "mxy_px": float((image * (x - cx) * (y - cy)).sum() / total),
    }


# -- the reference's tables
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", table("geometry"), ids=lambda row: row["optotype"])
def test_outlines_have_the_geometry_of_the_table(row: dict[str, str]) -> None:
    expected = numbers(row)
    outlines = letter(row["optotype"], 5.0)._places()[0].outlines()
    starts = np.concatenate(outlines)
    ends = np.concatenate([np.roll(outline, -1) for outline in outlines])
    # Sums over edges that are integrals over the ink.
    cross = (starts.conj() * ends).imag
    ink_area = cross.sum() / 2
    middle = ((starts + ends) * cross).sum() / (6 * ink_area)
    starts = starts - middle
    ends = ends - middle
    cross = (starts.conj() * ends).imag / (24 * ink_area)

    def second(first: FloatArray, last: FloatArray, *points: FloatArray) -> float:
        other, final = points
        terms = first * final + last * other + 2 * (first * other + last * final)
        return float((terms * cross).sum())

    measured = {
        "area": area(outlines),
        "cx": middle.real,
        "cy": middle.imag,
        "mxx": second(starts.real, ends.real, starts.real, ends.real),
        "myy": second(starts.imag, ends.imag, starts.imag, ends.imag),
        "mxy": second(starts.real, ends.real, starts.imag, ends.imag),
    }
    assert measured["area"] == pytest.approx(expected["area"], rel=1e-8)
    for quantity, value in measured.items():
        assert value == pytest.approx(expected[quantity], abs=1e-6)


def test_rasters_have_the_moments_and_spectra_of_the_table() -> None:
    x = np.arange(64) - 31.5
    for row in table("rasters"):
        expected = numbers(row)
        offset = {axis: expected[f"{axis}_px"] / PPD for axis in "xy"}
        image = ink(row["optotype"], expected["letter_px"], **offset)
        measured = moments(image)
        measured |= {"energy_px": float((image**2).sum()), "largest": image.max()}
        for cycles in (1, 2.5, 5):
            wave = np.exp(-2j * np.pi * cycles * x / expected["letter_px"])
            measured[f"h{cycles:g}"] = abs((image * wave).sum()) / image.sum()
            measured[f"v{cycles:g}"] = abs((image * wave[:, None]).sum()) / image.sum()
        for quantity, value in measured.items():
            assert value == pytest.approx(expected[quantity], rel=0, abs=1e-6), row


@pytest.mark.parametrize("row", table("strokes"), ids=lambda row: row["stroke_px"])
def test_arms_of_small_letters_are_as_deep_as_in_the_table(row: dict[str, str]) -> None:
    expected = numbers(row)
    stroke = expected["stroke_px"]
    pixels = np.arange(64) - 31.5
    column = int(np.argmin(abs(pixels - stroke)))
    rows = abs(pixels) <= 2 * stroke
    depths = []
    for sixteenths in range(16):
        y = sixteenths / 16 / PPD
        image = ink("E0", 5 * stroke, y=y, allow_alias=True)
        depths.append(np.ptp(image[rows, column]))
    measured = [np.min(depths), np.mean(depths), np.max(depths)]
    names = ("least_depth", "mean_depth", "largest_depth")
    assert measured == pytest.approx([expected[name] for name in names], abs=1e-9)
    certificate = letter("E0", 5 * stroke, allow_alias=True).measure()
    gain = certificate["pixel gain"].delivered
    assert gain == pytest.approx(expected["pixel_gain"], abs=1e-9)


@pytest.mark.parametrize("row", table("units"), ids=lambda row: row["letter_px"])
def test_logmar_is_that_of_the_table(row: dict[str, str]) -> None:
    expected = numbers(row)
    spec = Landolt(contrast=-1.0, ppd=expected["ppd"], size=1024, allow_alias=True)
    sized = spec.changed(logmar=expected["logmar"])
    assert sized.letter_size == pytest.approx(expected["letter_deg"], rel=1e-9)
    assert sized.value("logmar") == pytest.approx(expected["logmar"], abs=1e-9)
    stroke = sized.measure()["stroke"]
    assert stroke.unit == "px"
    assert stroke.requested == pytest.approx(expected["stroke_px"], rel=1e-9)


@pytest.mark.parametrize("row", table("contrast"), ids=lambda row: row["weber"])
def test_contrasts_are_those_of_the_table(row: dict[str, str]) -> None:
    expected = numbers(row)
    light = letter("O", 40.0, contrast=expected["weber"]).draw().luminance
    michelson = np.ptp(light) / (light.max() + light.min())
    assert michelson == pytest.approx(expected["michelson"], rel=1e-9)
    share = area(letter_outlines("O")) / 25
    mean = 1 + expected["weber"] * share
    rms = abs(expected["weber"]) * np.sqrt(share - share**2) / mean
    assert rms == pytest.approx(expected["rms_of_o_in_its_square"], rel=1e-9)


# -- exact drawing
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["H", "E0", "E90"])
def test_letters_on_the_grid_of_pixels_are_all_or_nothing(name: str) -> None:
    assert set(np.unique(ink(name, 30.0))) == {0.0, 1.0}


def test_letters_are_as_symmetric_as_they_should_be() -> None:
    tolerances = {"rtol": 0, "atol": 1e-12}
    for name in "HV":
        image = ink(name, 23.7)
        np.testing.assert_allclose(image, image[:, ::-1], **tolerances)
    for name in ("H", "O", "L0", "E0"):
        image = ink(name, 23.7)
        np.testing.assert_allclose(image, image[::-1], **tolerances)
    # The chords of O begin and end at its right.
    image = ink("O", 23.7)
    np.testing.assert_allclose(image, image[:, ::-1], atol=1e-5)
    for name in "NZ":
        image = ink(name, 23.7)
        np.testing.assert_allclose(image, image[::-1, ::-1], **tolerances)
    np.testing.assert_allclose(
        ink("E90", 23.7), np.rot90(ink("E0", 23.7)), **tolerances
    )
    np.testing.assert_allclose(ink("Z", 23.7), np.rot90(ink("N", 23.7)), **tolerances)
    diagonal = ink("L45", 23.7)
    np.testing.assert_allclose(diagonal, np.rot90(diagonal, 2).T, **tolerances)


def test_the_gap_is_what_the_ring_lacks() -> None:
    missing = ink("O", 40.0) - ink("L0", 40.0)
    stroke = 8.0
    lacking = 4 * np.pi - 11.554878565486334
    assert missing.sum() / stroke**2 == pytest.approx(lacking, rel=1e-6)
    rows = abs(np.arange(64) - 31.5) < stroke / 2
    # The chords of the two begin at different angles.
    assert abs(missing[~rows]).max() < 2e-5
    assert abs(missing[:, :32]).max() < 2e-5


def test_a_shift_by_whole_pixels_rolls_the_image() -> None:
    image = ink("R", 21.3, x=0.004, y=0.002)
    moved = ink("R", 21.3, x=0.004 + 3 / PPD, y=0.002 - 2 / PPD)
    np.testing.assert_allclose(moved, np.roll(image, (2, 3), (0, 1)), atol=1e-12)


def test_letters_a_width_apart_do_not_overlap() -> None:
    pixels = 13.3
    left_letter = ink("H", pixels, x=-pixels / 2 / PPD)
    right = ink("N", pixels, x=pixels / 2 / PPD)
    assert (left_letter + right).max() <= 1 + 1e-12
    pair = letter("H", pixels, x=-pixels / 2 / PPD) + letter(
        "N", pixels, x=pixels / 2 / PPD
    )
    assert pair.draw().luminance.min() >= 0


@given(strategies.optotypes(direction="achromatic", sampling={"ppd": 60.0, "size": 48}))
def test_any_letter_is_the_mean_of_finer_pixels(spec: Optotype) -> None:
    fine = spec.changed(ppd=180.0, size=144).unit()[0]
    blocks = fine.reshape(48, 3, 48, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(spec.unit()[0], blocks, atol=1e-12)


@given(strategies.squares(sampling={"ppd": 60.0, "size": 48}))
def test_any_square_wave_is_the_mean_of_finer_pixels(spec: SquareWave) -> None:
    # A window is drawn at the centres of pixels, and so are not its means.
    plain = spec.changed(window="none")
    fine = plain.changed(ppd=180.0, size=144).unit()[0]
    blocks = fine.reshape(48, 3, 48, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(plain.unit()[0], blocks, atol=1e-11)


def test_the_fundamental_of_a_square_wave_has_four_over_pi_of_its_contrast() -> None:
    wave = SquareWave(frequency=2.0, contrast=1.0, ppd=480.0, size=(1, 960))
    light = wave.draw().luminance[0]
    x = (np.arange(960) - 479.5) / 480
    fundamental = 2 * np.mean(light / 100 * np.cos(2 * np.pi * 2 * x))
    assert fundamental == pytest.approx(4 / np.pi, rel=1e-4)


def test_what_lies_outside_the_image_is_left_out() -> None:
    large = coverage([box(-9.0, -9.0, 1.25, 9.0)], (2, 4))
    assert large.tolist() == [[1.0, 1.0, 1.0, 0.25]] * 2
    outside = coverage([box(5.0, -1.0, 9.0, 1.0)], (2, 4))
    assert not outside.any()


# -- certificates
# ------------------------------------------------------------------------------------------

SPECS: list[Modulation] = [
    Optotype(letter=list(SLOAN), contrast=-1.0, size=96),
    Optotype(letter="R", contrast=0.01, direction="red_green", orientation=7, size=96),
    Landolt(contrast=[-1.0, -0.002], orientation=[[0], [45], [130]], size=96),
    TumblingE(contrast=-0.5, letter_size=[0.1, 0.5], x=0.0031, size=96),
    SquareWave(frequency=[1.3, 29.0], contrast=0.5, orientation=20, size=96),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.kind)
def test_what_is_drawn_passes(spec: Modulation, dtype: str) -> None:
    assert_calibrated(spec.draw(dtype=dtype), display=pp.Display(peak=250.0))
    assert_batch_equals_loop(spec)


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({"x": 0.5 / PPD}, "position x"),
        ({"y": 0.1 / PPD}, "position y"),
        ({"letter_size": 1.01}, "stroke"),
        ({"orientation": 1.0}, "orientation"),
        ({"contrast": -0.9}, "contrast"),
        ({"luminance": 101.0}, "background"),
    ],
)
def test_a_letter_that_is_off_fails_in_what_is_off(
    changes: dict[str, float], failing: str
) -> None:
    spec = Landolt(contrast=-1.0, size=96)
    light = spec.changed(**changes).draw().luminance
    certificate = pp.stimulus.Stimulus(light, "luminance", PPD, spec).measure()
    measured = certificate[failing]
    assert not measured.passed
    true = {"stroke": 12.12, "position x": 0.5, "position y": 0.1}
    expected = true.get(failing, next(iter(changes.values())))
    assert measured.delivered == pytest.approx(expected, rel=0.15)


def test_a_gap_that_is_too_wide_fails() -> None:
    spec = Landolt(contrast=-1.0, size=96)
    light = spec.draw().luminance.copy()
    # One pixel more on the lower side; the gap ends on both circles.
    rows = np.arange(96) - 47.5
    light[rows == 6.5] = np.where(rows > 0, 100.0, light[rows == 6.5])
    certificate = pp.stimulus.Stimulus(light, "luminance", PPD, spec).measure()
    assert not certificate["gap"].passed and not certificate["ink area"].passed
    assert certificate["gap"].delivered == pytest.approx(13.0, abs=0.1)


def test_another_letter_fails() -> None:
    spec = Optotype(letter="O", contrast=-1.0, size=96)
    light = spec.changed(letter="D").draw().luminance
    certificate = pp.stimulus.Stimulus(light, "luminance", PPD, spec).measure()
    assert not certificate["ink area"].passed and not certificate["distortion"].passed


# -- what may be asked for
# ------------------------------------------------------------------------------------------


def test_letters_have_words_and_numbers() -> None:
    by_word = Optotype(letter=["C", "Z"], contrast=-1.0)
    assert by_word == Optotype(letter=[0, 9], contrast=-1.0)
    assert repr(by_word.changed(letter="K")).endswith("letter='K')")
    assert by_word.digests()[1] == Optotype(letter="Z", contrast=-1.0).digest
    for wrong in ("E", 10, 2.5, ["C", "c"]):
        with pytest.raises(InputError, match="letter"):
            Optotype(letter=wrong, contrast=-1.0)


def test_size_is_said_once() -> None:
    spec = pp.landolt(contrast=-1, logmar=1.0).spec
    assert spec.value("letter_size") == pytest.approx(5 / 6, rel=1e-9)
    with pytest.raises(InputError, match="say the same"):
        pp.landolt(contrast=-1, logmar=1.0, letter_size=1.0)


def test_strokes_below_a_pixel_need_a_word() -> None:
    with pytest.raises(InputError, match=r"letter_size is 0\.08 deg; a stroke"):
        pp.tumbling_e(contrast=-1, letter_size=0.08)
    tiny = pp.tumbling_e(contrast=-1, letter_size=0.08, allow_alias=True).spec
    assert "strokes are down to 0.96 px" in tiny.cautions()[0]
    assert not TumblingE(contrast=-1.0, letter_size=10 / PPD).cautions()


def test_a_letter_between_flankers() -> None:
    """Others of the alphabet, each once, at the spacing from centre to centre."""
    page = pp.load_stimulus("letter_flanked")
    spec = page.spec(letter=[0, 3, 9], seed=[[1], [2]], spacing=0.75, x=0.01)
    names = spec.flanker_names()
    luminance = np.asarray(spec.draw().luminance).reshape(6, 112, 224)
    alone = {"contrast": -1.0, "letter_size": 0.5, "ppd": PPD, "size": (112, 224)}
    for image, target, sides in zip(luminance, "CKZ" * 2, names, strict=True):
        assert len({target, *sides}) == 3
        places = zip((target, *sides), (0.01, -0.74, 0.76), strict=True)
        inks = [Optotype(letter=name, x=x, **alone).unit()[0] for name, x in places]
        np.testing.assert_allclose(image, 100 - 100 * sum(inks), atol=1e-9)
    assert names == page.spec(letter=[0, 3, 9], seed=[[1], [2]]).flanker_names()
    certificate = spec.measure()
    assert certificate.passed and certificate["letter spacing"].delivered == 45
    nearer = np.asarray(page.spec(spacing=0.74).draw().luminance)
    far = page.spec(spacing=0.75).draw()
    assert not certify(nearer, "luminance", far.spec)["letter spacing"].passed


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"flankers": 3}, "flankers is 3; a letter has none, two"),
        ({"flankers": 2, "spacing": 0.9}, "a letter's height or more"),
    ],
)
def test_flankers_that_cannot_be(values: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        pp.optotype(letter="K", contrast=-1, **values)


# -- fonts
# ------------------------------------------------------------------------------------------

FONT = str(catalogue_folder("stimuli") / "capitals.ttf")


@pytest.mark.parametrize("character", "KOSRW")
def test_characters_are_those_of_pillow_at_64_times_their_size(character: str) -> None:
    """FreeType drawn large and averaged, without hinting to speak of (letters.md)."""
    scale = 64
    font = ImageFont.truetype(FONT, 24 * scale, layout_engine=ImageFont.Layout.BASIC)
    box = font.getbbox("H", anchor="ls")
    height = box[3] - box[1]
    side = 48 * scale
    large = Image.new("L", (side, side))
    start = (side - font.getlength(character)) / 2
    baseline = side / 2 + height / 2
    place = (start, baseline)
    ImageDraw.Draw(large).text(place, character, 255, font, anchor="ls")
    averaged = np.asarray(large, float).reshape(48, scale, 48, scale).mean((1, 3)) / 255
    glyph = Glyph(
        font=FONT,
        text=character,
        contrast=-1.0,
        letter_size=height / scale / PPD,
        ppd=PPD,
        size=48,
    )
    assert np.abs(glyph.unit()[0] - averaged).max() < 0.03
    assert glyph.unit()[0].sum() == pytest.approx(averaged.sum(), rel=2e-3)


def test_all_characters_of_a_font_stand_on_one_line_at_one_scale() -> None:
    alphabet = pp.glyph(font=FONT, text="HOJ", letter=[0, 1, 2], contrast=-1, size=90)
    rows = [np.flatnonzero((image < 50).any(axis=1)) for image in alphabet.pixels]
    assert (rows[0][0], rows[0][-1]) == (15, 74)
    # O overshoots H on both sides, and J goes below the line.
    assert rows[1][0] <= 15 and rows[1][-1] >= 74 and rows[2][-1] > 80
    turned = pp.glyph(font=FONT, text="H", contrast=-1, size=90, orientation=90)
    np.testing.assert_allclose(np.rot90(alphabet.pixels[0]), turned.pixels, atol=1e-9)


def test_a_font_is_known_by_what_it_holds(tmp_path: Path) -> None:
    copy = tmp_path / "mine.ttf"
    copy.write_bytes(Path(FONT).read_bytes())
    values: dict[str, Any] = {"text": "KO", "letter": 1, "contrast": -1.0}
    spec = Glyph(font=str(copy), **values)
    assert spec.content()["font"] == Glyph(font=FONT, **values).content()["font"]
    assert spec.changed(flankers=0).digest == Glyph(font=FONT, **values).digest


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"text": "Kk"}, "has no 'k'; give another text or font"),
        ({"text": "KK"}, "each once"),
        ({"text": ""}, "each once"),
        ({"letter": 2}, "letter is 2; the alphabet has 2, and the first is 0"),
        ({"flankers": 2}, "an alphabet of 2 has 1 letters besides the target"),
        ({"font": __file__}, "cannot be read as one"),
    ],
)
def test_what_a_font_cannot_draw_is_one_sentence(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        pp.glyph(**({"font": FONT, "text": "KO", "contrast": -1} | values))


def test_dark_letters_and_discs_are_bounded_from_below() -> None:
    for spec in (Landolt(contrast=-0.6), pp.stimulus.Disc(contrast=-0.6)):
        bounds = spec.bounds()
        assert bounds is not None
        assert bounds[0].ravel() == pytest.approx([40.0, 160.0])


def test_a_page_warns_of_its_smallest_letters(tmp_path: Path) -> None:
    page = tmp_path / "small.toml"
    page.write_text(
        """title = "Small letters"
stimulus = "letter_sloan"
probe = "detection"
levels = { logmar.values = [0.1, 1.0], contrast.values = [-0.5, -0.05] }
""",
        encoding="utf-8",
    )
    experiment = pp.load_experiment(page)
    remarks = stimulus_remarks(experiment, pp.load_stimulus("letter_sloan").spec())
    assert "strokes are down to 1.26 px" in remarks[0]
