"""What 8 bits, dither, resizing and JPEG leave of a contrast, against measurements made
elsewhere."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from psyprobe.errors import InputError
from psyprobe.files.images import decode_png
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import eight_bit
from psyprobe.probes.words.delivery import (
    Delivered,
    Delivery,
    deliver,
    delivered_contrast,
    one_bit_contrast,
    png_bytes,
    refused,
)
from psyprobe.stimulus import AnnulusNoise, Gabor, Noise, Specification, Uniform
from psyprobe.stimulus.catalogue import load_stimulus

DISPLAY = Display.preset("hernandez2025")
DITHERED = Delivery()
ROUNDED = Delivery(dither="none")


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "chat_csf" / f"{name}.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        return list(csv.DictReader(file))


def scene(encoding: str) -> tuple[Display, dict[str, Any]]:
    """Display and grey of a row of the quantisation table."""
    if encoding.startswith("lab ATD"):
        grey = float(encoding.split("A=")[1].split(",")[0])
        return Display.preset("hernandez2025_atd"), {
            "luminance": grey,
            "chromatic": True,
            "white": "E",
        }
    display = Display(peak=100)
    if "mean linear" in encoding:
        return display, {"luminance": 50.0}
    return display, {
        "luminance": float(
            display.decode(np.float64(float(encoding.split()[-1]) / 255))
        )
    }


def send(
    spec: Specification,
    display: Display = DISPLAY,
    delivery: Delivery = DITHERED,
    seed: int = 1,
) -> Any:
    return deliver(display.encode(spec.draw()), delivery, seed)


def measured(
    spec: Specification, display: Display, delivery: Delivery, seed: int = 1
) -> Delivered:
    return delivered_contrast(send(spec, display, delivery, seed), spec, display)


def test_rounding_does_what_was_measured(oracle_data: Path) -> None:
    rows = [
        row
        for row in table(oracle_data, "quantisation_contrast")
        if row["dither"] == "none"
    ]
    for row in rows:
        display, grey = scene(row["encoding"])
        contrast = float(row["commanded_contrast"])
        delivered = measured(
            AnnulusNoise(frequency=4, contrast=contrast, seed=1, **grey),
            display,
            ROUNDED,
        )
        expected, total = (
            float(row["coherent_gain"]),
            float(row["total_contrast_incl_quantisation"]),
        )
        # Another noise sample: one-bit images depend on it where a level is met by few pixels only.
        assert delivered.coherent_gain == pytest.approx(
            expected, rel=0.02, abs=0.06 if contrast >= 5e-4 else 0.25
        ), row
        assert delivered.total_contrast == pytest.approx(total, rel=0.02, abs=3e-4), row
    assert len(rows) == 75


def test_dither_does_what_was_measured(oracle_data: Path) -> None:
    rows = [
        row
        for row in table(oracle_data, "quantisation_contrast")
        if row["dither"] == "rpdf"
    ]
    rows = [
        row
        for row in rows
        if float(row["commanded_contrast"]) in (0.0001, 0.001, 0.003, 0.01, 0.1)
    ]
    for row in rows:
        display, grey = scene(row["encoding"])
        contrast = float(row["commanded_contrast"])
        delivered = measured(
            AnnulusNoise(frequency=4, contrast=contrast, seed=1, **grey),
            display,
            Delivery(),
        )
        scatter = 2e-5 / contrast
        assert delivered.coherent_gain == pytest.approx(
            float(row["coherent_gain"]), abs=5 * scatter + 0.003
        ), row
        total = float(row["total_contrast_incl_quantisation"])
        assert delivered.total_contrast == pytest.approx(total, rel=0.02, abs=1.5e-4), (
            row
        )
    assert len(rows) == 25


@pytest.mark.parametrize("contrast", [0.001, 0.002, 0.005, 0.02])
@pytest.mark.parametrize("frequency", [1.0, 4.0, 16.0])
def test_dithered_contrast_is_the_asked_one(frequency: float, contrast: float) -> None:
    gains = [
        measured(
            AnnulusNoise(frequency=frequency, contrast=contrast, seed=seed),
            DISPLAY,
            Delivery(),
            seed,
        )
        for seed in (1, 2, 3)
    ]
    assert abs(np.mean([measurement.coherent_gain for measurement in gains]) - 1) < 0.03
    assert np.mean([measurement.contrast for measurement in gains]) == pytest.approx(
        contrast, rel=0.03
    )


def test_one_bit_contrast_is_that_of_the_table(oracle_data: Path) -> None:
    transfer: dict[str, Any] = {
        "sRGB": "srgb",
        "gamma 2.0 (sqrt)": 2.0,
        "gamma 2.2": 2.2,
        "linear": "linear",
    }
    for row in table(oracle_data, "min_contrast_8bit"):
        display = Display(peak=100, eotf=transfer[row["encoding"]])
        luminance = float(display.decode(np.float64(int(row["mean_code"]) / 255)))
        assert luminance == pytest.approx(100 * float(row["mean_linear"]), rel=1e-4)
        assert one_bit_contrast(display, luminance) == pytest.approx(
            float(row["contrast_of_+-0.5_code"]), abs=6e-7
        )


def resized(codes: Any, size: int) -> Any:
    image = Image.fromarray(codes)
    return np.asarray(image.resize((size, size), Image.Resampling.BICUBIC))


def through_jpeg(codes: Any, quality: int) -> Any:
    file = io.BytesIO()
    Image.fromarray(codes).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))


PIPELINES = {
    "none": lambda codes: codes,
    "llava-1.5 (CLIP 336 bicubic)": lambda codes: resized(codes, 336),
    "blip2/instructblip (224 bicubic)": lambda codes: resized(codes, 224),
    "clip-224": lambda codes: resized(codes, 224),
    "qwen2.5-vl (252 bicubic)": lambda codes: resized(codes, 252),
    "jpeg q75 (PIL default)": lambda codes: through_jpeg(codes, 75),
    "jpeg q95": lambda codes: through_jpeg(codes, 95),
}


def arrived(row: dict[str, str]) -> Delivered:
    """Our measurement of a row of the pipeline table, dithered."""
    spec = AnnulusNoise(
        frequency=float(row["f0_cpd"]),
        contrast=float(row["commanded_contrast"]),
        seed=1,
    )
    codes = PIPELINES[row["pipeline"]](eight_bit(send(spec)))
    return delivered_contrast(codes / np.float32(255), spec, DISPLAY)


def test_resizing_transfers_what_was_measured(oracle_data: Path) -> None:
    rows = [
        row
        for row in table(oracle_data, "pipeline_contrast_transfer")
        if not row["pipeline"].startswith("jpeg")
    ]
    rows = [
        row
        for row in rows
        if row["dither"] == "1" and row["commanded_contrast"] == "0.05"
    ]
    for row in rows:
        delivered, transfer = arrived(row), float(row["transfer"])
        if float(row["f0_cpd"]) <= 16:
            assert delivered.coherent_gain == pytest.approx(transfer, abs=0.012), row
        else:
            # The table holds all contrast in the band, aliases and dither noise included; ours the
            # asked pattern's.
            assert transfer - 0.25 < delivered.coherent_gain < transfer + 0.012, row
        assert delivered.nyquist == pytest.approx(int(row["out_px"]) / 8)
        assert delivered.total_contrast == pytest.approx(
            float(row["realised_total_contrast"]), rel=0.02
        )
    assert len(rows) == 35


def test_jpeg_takes_what_was_measured(oracle_data: Path) -> None:
    rows = [
        row
        for row in table(oracle_data, "pipeline_contrast_transfer")
        if row["pipeline"].startswith("jpeg")
    ]
    rows = [row for row in rows if row["dither"] == "1"]
    strong = [
        row
        for row in rows
        if row["commanded_contrast"] == "0.05" and float(row["f0_cpd"]) <= 4
    ]
    for row in strong:
        assert arrived(row).coherent_gain == pytest.approx(
            float(row["transfer"]), abs=0.03
        ), row
    lost = [
        row
        for row in rows
        if row["commanded_contrast"] == "0.02" and float(row["f0_cpd"]) >= 16
    ]
    lost = [row for row in lost if float(row["transfer"]) < 0.6]
    for row in lost:
        delivered = arrived(row)
        assert delivered.coherent_gain < float(row["transfer"]) + 0.05, row
        assert refused(delivered, float(row["f0_cpd"])) is not None
    assert len(strong) == 6 and len(lost) >= 4


def test_a_local_model_gets_the_float_image() -> None:
    drive = DISPLAY.encode(AnnulusNoise(frequency=4, contrast=1e-4).draw())
    assert np.array_equal(deliver(drive, Delivery(bits=None)), drive)
    assert measured(
        AnnulusNoise(frequency=4, contrast=1e-4), DISPLAY, Delivery(bits=None)
    ).coherent_gain == (pytest.approx(1, abs=2e-3))


def test_seeds_decide_the_dither_whatever_stands_beside() -> None:
    drive = np.full((3, 16, 16, 3), 0.3, np.float32)
    batch = deliver(drive, seed=[4, 5, 4])
    assert np.array_equal(batch[0], batch[2]) and not np.array_equal(batch[0], batch[1])
    assert np.array_equal(batch[1], deliver(drive[1], seed=5))
    assert not np.array_equal(batch[0][..., 0], batch[0][..., 1])


def test_dither_keeps_the_mean_and_whole_codes() -> None:
    assert float(
        deliver(np.full((256, 256, 3), 0.3, np.float32)).mean()
    ) == pytest.approx(0.3, abs=2e-5)
    for code in (0, 1, 128, 255):
        flat = deliver(np.full((64, 64, 3), code / 255), seed=2)
        assert np.unique(np.rint(flat * 255)).tolist() == [code]


def test_triangular_dither_tells_a_field_on_a_code_from_no_pattern() -> None:
    on_a_code, between = (
        np.full((256, 256, 3), code / 255, np.float32) for code in (128.0, 128.5)
    )
    spread = {
        dither: [
            255 * float(deliver(drive, Delivery(dither=dither), seed=1).std())
            for drive in (on_a_code, between)
        ]
        for dither in ("rpdf", "tpdf")
    }
    assert spread["rpdf"] == [0, pytest.approx(0.5, abs=0.01)]
    assert spread["tpdf"] == [pytest.approx(0.5, abs=0.01)] * 2
    with pytest.raises(
        InputError, match="the image goes from code 0 to 0; lower the contrast"
    ):
        deliver(np.zeros((8, 8, 3)), Delivery(dither="tpdf"))


@pytest.mark.parametrize("contrast", [0.001, 0.005, 0.02])
def test_triangular_dither_keeps_the_contrast(contrast: float) -> None:
    gains = [
        measured(
            AnnulusNoise(frequency=4, contrast=contrast, seed=seed),
            DISPLAY,
            Delivery(dither="tpdf"),
            seed,
        )
        for seed in (1, 2, 3)
    ]
    assert abs(np.mean([measurement.coherent_gain for measurement in gains]) - 1) < 0.03


def test_catch_trials_get_the_same_dither() -> None:
    # Away from a whole code, where dither is at its strongest.
    blank = Uniform(luminance=40.5, ppd=64, size=256)
    faint = AnnulusNoise(luminance=40.5, frequency=4, contrast=1e-4)
    plain = delivered_contrast(send(blank), blank, DISPLAY)
    faint_contrast = measured(faint, DISPLAY, Delivery())
    assert plain.contrast == 0 and math.isnan(plain.coherent_gain)
    assert plain.total_contrast == pytest.approx(
        faint_contrast.total_contrast, rel=0.01
    )
    assert plain.total_contrast > 0.004
    catch = AnnulusNoise(frequency=4, contrast=0.0)
    assert math.isnan(measured(catch, DISPLAY, Delivery()).coherent_gain)


def test_png_holds_the_codes() -> None:
    drive = send(AnnulusNoise(frequency=8, contrast=0.1))
    codes = eight_bit(drive)
    data = png_bytes(drive)
    assert np.array_equal(decode_png(data), codes)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), codes)
    with pytest.raises(InputError, match="off the 8-bit codes"):
        png_bytes(np.full((2, 2, 3), 0.5))


def test_other_kinds_of_stimulus_and_sizes() -> None:
    gabor = Gabor(frequency=4, contrast=0.2, radius=0.6, luminance=40, ppd=64, size=256)
    delivered = measured(gabor, DISPLAY, Delivery())
    assert delivered.contrast == pytest.approx(
        0.2, rel=0.01
    ) and delivered.coherent_gain == pytest.approx(1, rel=0.01)
    larger = Gabor(
        frequency=4, contrast=0.2, radius=0.6, luminance=40, ppd=84, size=336
    )
    assert delivered_contrast(
        send(larger), gabor, DISPLAY
    ).coherent_gain == pytest.approx(1, rel=0.01)
    noise = Noise(frequency=4, contrast=0.1, luminance=40)
    assert measured(noise, DISPLAY, Delivery()).contrast == pytest.approx(0.1, rel=0.01)
    native = AnnulusNoise(frequency=16, contrast=0.1, seed=3, size=336, ppd=84)
    fine_noise = AnnulusNoise(frequency=16, contrast=0.1, seed=3)
    assert delivered_contrast(
        send(native), fine_noise, DISPLAY
    ).coherent_gain == pytest.approx(1, rel=0.01)


def test_another_pattern_has_no_gain() -> None:
    noise, other = (
        AnnulusNoise(frequency=8, contrast=0.1, seed=seed) for seed in (1, 2)
    )
    assert abs(delivered_contrast(send(other), noise, DISPLAY).coherent_gain) < 0.1


def test_rule_of_refusal() -> None:
    assert refused(Delivered(0.1, 0.95, 0.1, 32.0), 16) is None
    assert "0.72 of the asked contrast arrives" in str(
        refused(Delivered(0.07, 0.72, 0.1, 32.0), 16)
    )
    assert "1.5 of the asked" in str(refused(Delivered(0.07, 1.5, 0.1, 32.0), 16))
    assert refused(Delivered(0.1, 1.0, 0.1, 32.0), 28.8) is None
    assert "ask up to 28.8 cpd" in str(refused(Delivered(0.1, 1.0, 0.1, 32.0), 30))
    # Dither scatters one faint image by more than the limits allow, and the mean of a level by
    # less.
    scattered = [Delivered(1e-4, gain, 0.01, 32.0) for gain in (0.8, 1.25)]
    assert refused(scattered[0], 4) is not None and refused(scattered, 4) is None
    assert refused(Delivered(0.0, math.nan, 0.01, 32.0), 4) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bits": 10}, "bits is 10"),
        ({"dither": "blue"}, "unknown dither"),
        ({"format": "jpeg"}, "only png is lossless"),
    ],
)
def test_refused_deliveries(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Delivery(**values)


def test_refused_images() -> None:
    spec = AnnulusNoise(frequency=4, contrast=0.1)
    with pytest.raises(InputError, match="8 bits hold 0 to 1"):
        deliver(np.full((2, 2, 3), 1.5))
    with pytest.raises(InputError, match="shape"):
        deliver(np.full((2, 2), 0.5))
    with pytest.raises(InputError, match="cropped or stretched"):
        delivered_contrast(np.full((128, 256, 3), 0.5), spec, DISPLAY)
    with pytest.raises(InputError, match="stands for 2 images"):
        delivered_contrast(
            send(spec), AnnulusNoise(frequency=4, contrast=[0.1, 0.2]), DISPLAY
        )


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_contrast_of_colour_alone_is_measured_in_the_light_of_the_primaries(
    share: float,
) -> None:
    gabor = Gabor(
        frequency=4,
        contrast=0.05,
        direction="yellow_violet",
        luminance=40,
        observer="smith_pokorny",
    )
    delivered = delivered_contrast(
        send(replace(gabor, contrast=0.05 * share)), gabor, DISPLAY
    )
    assert delivered.coherent_gain == pytest.approx(share, abs=0.02)
    assert delivered.contrast == pytest.approx(0.05 * share, abs=0.001)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_contrast_of_a_target_leaves_out_its_mask(share: float) -> None:
    masked = load_stimulus("gabor_masked").spec(luminance=40.0, contrast=0.1)
    delivered = delivered_contrast(
        send(masked.changed(contrast=0.1 * share)), masked, DISPLAY
    )
    assert delivered.coherent_gain == pytest.approx(share, abs=0.03)
