"""What the page draws, read back from a headless browser, against the numpy twin of its shader and
the physics."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import webdriver
from shader_twin import dithered
from webdriver import Browser

import psyprobe as pp
from psyprobe.observers.human_screen import Screen, threshold_error
from psyprobe.observers.people.patterns import shader_values
from psyprobe.stimulus import Gabor, Sum, WhiteNoise

pytestmark = pytest.mark.skipif(
    bool(webdriver.missing()), reason=webdriver.missing() or "a browser is there"
)

SIDE, PPD, MEAN, PEAK = 256, 48, 40.0, 200.0
ASSETS = files("psyprobe.observers.people")


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    page = tmp_path_factory.mktemp("draw") / "draw.html"
    script, shader = (
        ASSETS.joinpath(name).read_text(encoding="utf-8")
        for name in ("draw.js", "gabor.frag")
    )
    page.write_text(
        f"<!doctype html><canvas id=c width={SIDE} height={SIDE}></canvas><script>{script}\n"
        f"const at = painter(document.getElementById('c'), {json.dumps(shader)});\n"
        "const text = (bytes) => { let s = ''; for (const b of bytes) s += "
        "String.fromCharCode(b); return btoa(s); };\n"
        "const frames = (stimulus, first, n) => Array.from({length: n}, (_, i) => { "
        "at.draw(stimulus, first + i); "
        "return text(at.read()); });</script>",
        encoding="utf-8",
    )
    with webdriver.browser() as browser:
        browser.open(page.as_uri())
        yield browser
        assert browser.complaints() == []


def stimulus(contrast: float, frequency: float, **changes: Any) -> dict[str, Any]:
    return {
        **{
            "mean": MEAN,
            "contrast": contrast,
            "cycles": frequency / PPD,
            "sigma": 24.0,
            "orientation": np.pi / 4,
        },
        **{
            "phase": 0.0,
            "peak": PEAK,
            "black": 0.0,
            "reflected": 0.0,
            "power": -1.0,
            "seed": 777,
            "dither": "golden",
        },
        **changes,
    }


def draw_frames(
    browser: Browser, values: dict[str, Any], first: int, count: int
) -> np.ndarray:
    """Codes of frames, rows from below."""
    encoded_frames = browser.run(f"frames({json.dumps(values)}, {first}, {count})")
    return np.stack(
        [
            np.frombuffer(base64.b64decode(encoded), np.uint8).reshape(SIDE, SIDE)
            for encoded in encoded_frames
        ]
    )


def wave_of(values: dict[str, Any]) -> np.ndarray:
    places = np.arange(SIDE) - (SIDE - 1) / 2
    x, y = np.meshgrid(places, places)
    along = x * np.cos(values["orientation"]) + y * np.sin(values["orientation"])
    envelope = np.exp(-(x**2 + y**2) / (2 * values["sigma"] ** 2))
    return np.asarray(
        envelope * np.cos(2 * np.pi * values["cycles"] * along + values["phase"])
    )


def display_of(values: dict[str, Any]) -> pp.Display:
    eotf = "srgb" if values["power"] < 0 else values["power"]
    return pp.Display(
        peak=values["peak"],
        black=values["black"],
        eotf=eotf,
        ambient=np.pi * values["reflected"],
        reflectivity=1.0,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dither": "noisy_bit", "seed": 4294967295},
        {"dither": "wide", "seed": 0},
        {
            "power": 2.2,
            "black": 0.2,
            "reflected": 0.5,
            "phase": 1.0,
            "orientation": 0.3,
        },
    ],
)
def test_frames_are_those_of_the_numpy_twin(
    drawing: Browser, changes: dict[str, Any]
) -> None:
    values = stimulus(0.05, 4, **changes)
    light = MEAN * (1 + values["contrast"] * wave_of(values))
    drive = np.asarray(display_of(values).encode(light, dtype="float64"))[..., 0]
    codes = draw_frames(drawing, values, 3, 2).astype(int)
    expected = np.stack(
        [dithered(drive, frame, values["seed"], values["dither"]) for frame in (3, 4)]
    ).astype(int)
    assert np.abs(codes - expected).max() <= 1
    assert (codes != expected).mean() < 1e-3
    assert (codes[0] != codes[1]).mean() > 0.1


def test_noise_is_that_of_the_specification(drawing: Browser) -> None:
    """A Gabor in noise, drawn from the values that the page gets, to a code in 255."""
    screen = Screen(pitch=0.265, distance=1000.0, display=pp.Display(peak=PEAK))
    gabor = Gabor(
        frequency=4, contrast=0.1, luminance=MEAN, ppd=PPD, size=SIDE, radius=0.5
    )
    noise = WhiteNoise(density=2.78e-6, seed=5, luminance=MEAN, ppd=PPD, size=SIDE)
    spec = Sum(parts=(gabor, noise), names=("noise",))
    values = shader_values(spec.to_dict(), screen.uniforms(), screen) | {"seed": 777}
    drawing.run(f"at.setPixels(pixelsOf({json.dumps(values.pop('pixels'))}), {SIDE})")
    drive = screen.display.encode(spec.draw(), dtype="float64")[::-1, :, 0]
    codes = draw_frames(drawing, values, 3, 1)[0].astype(int)
    expected = dithered(drive, 3, 777).astype(int)
    assert np.abs(codes - expected).max() <= 1
    assert (codes != expected).mean() < 5e-3
    # Another stimulus on the same page has none.
    plain = draw_frames(drawing, stimulus(0.0, 4), 0, 1)
    assert np.ptp(plain) <= 1


def delivered(frames: np.ndarray, values: dict[str, Any]) -> float:
    wave = wave_of(values) - wave_of(values).mean()
    light = display_of(values).decode(frames / 255).mean(axis=0)
    return float((wave * light / MEAN).sum() / (wave**2).sum())


def test_mean_contrast_is_the_contrast_asked(drawing: Browser) -> None:
    for frequency in (0.5, 4, 16):
        for contrast in (0.002, 0.02, 0.5):
            values = stimulus(contrast, frequency)
            assert delivered(
                draw_frames(drawing, values, 0, 30), values
            ) == pytest.approx(contrast, abs=6e-5, rel=2e-3)


def test_what_was_read_back_before(drawing: Browser, oracle_data: Path) -> None:
    table = pd.read_csv(oracle_data / "people/webgl_readback.csv")
    rows = table[
        (table.dither == "golden_dither")
        & (table.frames == 30)
        & (table.frequency_cpd == 4)
    ]
    assert len(rows) > 3
    for row in rows.itertuples():
        values = stimulus(row.contrast_asked, 4)
        # That canvas was twice as wide, so that other pixels had other numbers.
        assert delivered(draw_frames(drawing, values, 0, 30), values) == pytest.approx(
            row.contrast_read_back, abs=6e-5
        )


def test_a_measured_curve_is_drawn(drawing: Browser) -> None:
    light = np.linspace(0, 1, 257)
    drawing.run(f"at.setCurve({json.dumps((light ** (1 / 1.8)).tolist())})")
    values = stimulus(0.1, 4, power=0.0)
    codes = draw_frames(drawing, values, 0, 30)
    light_of_frames = (codes / 255.0) ** 1.8 * PEAK
    wave = wave_of(values) - wave_of(values).mean()
    contrast = float(
        (wave * light_of_frames.mean(axis=0) / MEAN).sum() / (wave**2).sum()
    )
    assert contrast == pytest.approx(0.1, rel=2e-3)


def test_a_screen_that_was_entered_wrongly_moves_thresholds_as_the_formula_says(
    drawing: Browser,
) -> None:
    assumed = pp.Display(peak=PEAK)
    for contrast in (0.01, 0.5):
        values = stimulus(contrast, 4)
        codes, wave = draw_frames(drawing, values, 0, 30), wave_of(values)
        bright, dark = wave > 0.9, wave < -0.9
        for wrong in (
            {"eotf": 1.8},
            {"eotf": 2.4, "peak": 300, "black": 0.3},
            {"peak": 100},
            {"peak": 400},
        ):
            true = pp.Display(**{"peak": PEAK, **wrong})
            light = true.decode(codes / 255).mean(axis=0)
            bar_contrast = contrast * float(wave[bright].mean() - wave[dark].mean()) / 2
            mean, error = threshold_error(assumed, true, MEAN, bar_contrast)
            high, low = float(light[bright].mean()), float(light[dark].mean())
            assert float(light[np.abs(wave) < 0.001].mean()) == pytest.approx(
                mean, rel=1e-3
            )
            assert np.log10(
                (high - low) / (high + low) / bar_contrast
            ) == pytest.approx(float(error), abs=0.003)
            # Contrast does not depend on the peak alone, but it does on the curve.
            assert (abs(float(error)) < 1e-9) == (set(wrong) == {"peak"})
