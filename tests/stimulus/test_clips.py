"""Clips: exact in time as in space, drawn frame by frame, and what a frame rate cannot show is
refused."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import child
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.analysis.distance import angular_distance
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import (
    Clip,
    Counterphase,
    Drift,
    Flicker,
    Gabor,
    Specification,
    UniformClip,
)
from psyprobe.stimulus.time_course import fit_time_course, time_course

KINDS = {"flicker": Flicker, "counterphase": Counterphase, "drift": Drift}
ROOT = Path(__file__).resolve().parents[2]


def clip(kind: str, **values: Any) -> Clip:
    """As the clips of the oracle: 64 x 64 px, 60 ppd, 4 cpd, radius 0.2 (disc 0.4, edge 0.1), 100
    cd/m²."""
    shape = (
        {"radius": 0.4, "edge": 0.1}
        if kind == "flicker"
        else {"radius": 0.2, "frequency": 4.0}
    )
    return KINDS[kind](**{"contrast": 0.4, "size": 64, "frames": 30, **shape, **values})


def test_clips_equal_the_oracle(oracle_data: Path) -> None:
    text = (oracle_data / "new_probes" / "oracle_clip_pixels.csv").read_text(
        encoding="utf-8"
    )
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) > 40
    clip_count = 0
    for row in rows:
        fps, frames, sigma = (
            float(row["frame_rate_hz"]),
            int(row["frames"]),
            float(row["sigma_t_s"] or 0),
        )
        parameters = {"fps": fps, "frames": frames, "temporal_sigma": sigma}
        requested, visible = (
            float(row["temporal_frequency_hz"]),
            float(row["temporal_frequency_shown_hz"]),
        )
        if requested >= fps / 2:
            with pytest.raises(
                InputError, match=f"this would be seen as {visible:g} Hz; lower it"
            ):
                clip(row["kind"], temporal_frequency=requested, **parameters)
            if row["kind"] == "flicker" or requested == fps / 2:
                continue
            # The same frames at the frequency that is seen: times -1 of an even number, and moving
            # the other way.
            parameters |= {"phase": 180.0 * (frames - 1)} | (
                {"orientation": 180.0} if row["kind"] == "drift" else {}
            )
            requested = visible
        spec = clip(row["kind"], temporal_frequency=requested, **parameters)
        clip_count += 1
        for display, column in (
            (Display(), "rms_drive"),
            (Display(eotf="linear"), "rms_drive_linear"),
        ):
            test, reference = (
                np.asarray(display.encode(single.draw(), dtype="float64"))[..., 0]
                for single in pair(spec)
            )
            assert np.sqrt(np.mean((test - reference) ** 2)) == pytest.approx(
                float(row[column]), rel=1e-12, abs=1e-15
            )
            if column == "rms_drive":
                angle = float(angular_distance(test.ravel(), reference.ravel()))
                assert angle == pytest.approx(float(row["s_ac"]), rel=1e-12, abs=1e-12)
    assert clip_count > 35


def pair(spec: Specification) -> tuple[Specification, Specification]:
    return spec, spec.reference()


@pytest.mark.parametrize("kind", KINDS)
def test_the_spectrum_holds_frequency_and_amplitude(kind: str) -> None:
    """Of a whole number of cycles: the bin of 7 Hz has half the contrast, and all others
    nothing."""
    spec = (
        clip(kind, temporal_frequency=7.0, frames=60, phase=0.0)
        if kind != "flicker"
        else clip(kind, temporal_frequency=7.0, frames=60)
    )
    modulation = spec.draw().pixels / 100 - 1
    spectrum = np.fft.fft(modulation, axis=0) / 60
    amplitude = np.abs(spectrum)
    unit = np.abs(
        Gabor(frequency=4, contrast=1, radius=0.2, size=64).draw().pixels / 100 - 1
    )
    expected = {
        "counterphase": 0.4 * unit / 2,
        "flicker": 0.4 * (np.asarray(spec.patterns()[0])) / 2,
    }
    if kind in expected:
        np.testing.assert_allclose(amplitude[7], expected[kind], atol=1e-14)
        np.testing.assert_allclose(amplitude[60 - 7], expected[kind], atol=1e-14)
    else:
        x = (np.arange(64) - 31.5) / 60
        envelope = np.exp(-(x**2 + x[:, None] ** 2) / (2 * 0.2**2))
        np.testing.assert_allclose(amplitude[7], 0.4 * envelope / 2, atol=1e-14)
    rest = np.delete(amplitude, [7, 53], axis=0)
    assert rest.max() < 1e-14


def test_drift_moves_along_its_direction() -> None:
    """A quarter of a cycle later the wave lies a quarter of a cycle further to the right; at 180
    deg to the left."""
    times, right = 15 / 60, 1 / 4
    for orientation, sign in ((0.0, 1), (180.0, -1)):
        spec = clip(
            "drift",
            temporal_frequency=1.0,
            frames=31,
            orientation=orientation,
            radius=5 / 6,
            size=(8, 240),
        )
        frames = spec.draw().pixels[:, 4] / 100 - 1
        x = (np.arange(240) - 119.5) / 60
        envelope = np.exp(-(x**2 + (0.5 / 60) ** 2) / (2 * (5 / 6) ** 2))
        expected = 0.4 * envelope * np.cos(2 * np.pi * (4 * sign * x - right))
        np.testing.assert_allclose(frames[15 + 15], expected, atol=1e-13)
    assert times == 0.25


@settings(max_examples=25)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    temporal_frequency=st.floats(0.0, 29.5),
    contrast=st.floats(0.001, 1.0),
    temporal_sigma=st.sampled_from([0.0, 0.08, 0.2]),
    frames=st.integers(20, 50),
    direction=st.sampled_from(["achromatic", "red_green"]),
    turned=st.floats(-180, 180),
)
def test_every_clip_passes_its_certificate(
    kind: str, direction: str, turned: float, contrast: float, **values: Any
) -> None:
    where = {} if kind == "flicker" else {"orientation": turned, "phase": turned / 2}
    low = {"achromatic": contrast, "red_green": contrast / 5}[direction]
    certificate = clip(
        kind, contrast=low, direction=direction, size=32, **where, **values
    ).measure()
    assert certificate.passed, certificate
    assert abs(certificate["contrast"].error or 0.0) < 1e-9
    if values["temporal_frequency"] > 1 and values["temporal_frequency"] < 29:
        assert abs(certificate["temporal frequency"].error or 0.0) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_course_fails_its_certificate(kind: str) -> None:
    spec = clip(kind, temporal_frequency=6.0)
    for wrong, failing in (
        ({"temporal_frequency": 6.01}, "temporal frequency"),
        ({"contrast": 0.4001}, "contrast"),
        ({"temporal_sigma": 0.2}, "temporal distortion"),
    ):
        certificate = type(spec.draw())(
            spec.changed(**wrong).draw().pixels, "luminance", 60.0, spec
        ).measure()
        assert failing in [row.quantity for row in certificate.failures], wrong
    far = type(spec.draw())(
        spec.changed(temporal_frequency=14.0).draw().pixels, "luminance", 60.0, spec
    ).measure()
    assert far["temporal frequency"].delivered == pytest.approx(14.0, abs=1e-9)


@given(
    st.sampled_from(sorted(KINDS)),
    st.floats(0.1, 29.0),
    st.integers(1, 40),
    st.integers(1, 33),
)
def test_frames_do_not_depend_on_the_chunk(
    kind: str, temporal_frequency: float, chunk_length: int, frames: int
) -> None:
    spec = clip(kind, temporal_frequency=temporal_frequency, frames=frames, size=32)
    stimulus = spec.draw()
    assert stimulus.pixels.shape == (frames, 32, 32) == spec.extent
    parts = np.concatenate([chunk.pixels for chunk in spec.chunks(chunk_length)])
    np.testing.assert_array_equal(parts, stimulus.pixels)


@given(st.floats(0.1, 29.0), st.floats(0.01, 0.4), st.floats(-180, 180))
def test_a_reversing_wave_is_two_that_drift(
    temporal_frequency: float, contrast: float, orientation: float
) -> None:
    shape = {"temporal_frequency": temporal_frequency, "size": 32, "frames": 12}
    reversing = (
        clip("counterphase", contrast=contrast, orientation=orientation, **shape)
        .draw()
        .pixels
    )
    forward, other = (
        clip("drift", contrast=contrast / 2, orientation=turned, **shape).draw().pixels
        for turned in (orientation, orientation + 180)
    )
    np.testing.assert_allclose(
        reversing - 100, (forward - 100) + (other - 100), atol=1e-10
    )


def test_flicker_of_the_whole_field_is_measured() -> None:
    certificate = clip("flicker", temporal_frequency=6.0, radius=2.0).measure()
    assert certificate.passed and certificate["contrast"].delivered == pytest.approx(
        0.4, rel=1e-12
    )
    assert clip("flicker", temporal_frequency=0.0, contrast=0.0).measure().passed


def test_a_batch_of_clips_is_drawn_as_each_alone() -> None:
    spec = clip(
        "drift",
        temporal_frequency=[2.0, 8.0],
        contrast=[[0.1], [0.2], [0.3]],
        luminance=[50.0, 100.0],
    )
    assert spec.batch == (3, 2)
    batch_frames = spec.draw().pixels
    assert batch_frames.shape == (3, 2, 30, 64, 64)
    for image, single in zip(
        batch_frames.reshape(-1, 30, 64, 64), spec.singles(), strict=True
    ):
        np.testing.assert_allclose(image, single.draw().pixels, rtol=1e-13)
    assert spec.draw().measure().passed


def test_the_reference_is_a_uniform_clip_of_the_same_length() -> None:
    spec = clip("flicker", temporal_frequency=5.0, luminance=[20.0, 30.0], fps=120)
    field = spec.reference()
    assert isinstance(field, UniformClip) and (
        field.fps,
        field.frames,
        field.batch,
    ) == (
        120.0,
        30,
        (2,),
    )
    assert field.reference() == field
    pixels = field.draw().pixels
    assert (
        pixels.shape == (2, 30, 64, 64)
        and (pixels == np.array([20.0, 30.0])[:, None, None, None]).all()
    )
    assert field.measure().passed
    assert (
        clip("drift", temporal_frequency=5.0, direction="red_green")
        .reference()
        .draw()
        .space
        == "lms"
    )


def test_what_makes_a_clip_is_in_its_digest() -> None:
    spec = clip("drift", temporal_frequency=5.0)
    changed_specs = [
        spec.changed(fps=120.0),
        spec.changed(frames=31),
        spec.changed(temporal_sigma=0.1),
    ]
    assert len({spec.digest, *(changed.digest for changed in changed_specs)}) == 4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"temporal_frequency": 30.0},
            r"temporal_frequency is 30 Hz; 60 frames a second show less than 30 Hz",
        ),
        (
            {"temporal_frequency": [5.0, 50.0]},
            r"temporal_frequency is 50 Hz; .* would be seen as 10 Hz; lower it",
        ),
        (
            {"temporal_frequency": -1.0},
            r"temporal_frequency is -1 Hz; it must be >= 0 Hz",
        ),
        (
            {"temporal_frequency": 1.0, "fps": 0.0},
            r"fps is 0\.0 frames a second; give a number above 0",
        ),
        (
            {"temporal_frequency": 1.0, "frames": 2.5},
            r"frames is 2\.5 frames; give a whole number",
        ),
        (
            {"temporal_frequency": 1.0, "contrast": 1.5},
            r"contrast is 1\.5; .* not a percentage",
        ),
        (
            {"temporal_frequency": 1.0, "radius": 0.0},
            r"radius is 0 deg; it must be > 0 deg",
        ),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(
    parameters: dict[str, Any], message: str
) -> None:
    for kind in KINDS:
        with pytest.raises(InputError, match=message) as raised:
            clip(kind, **parameters)
        assert len(str(raised.value)) < 360 and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("parameters", "caution"),
    [
        ({"temporal_frequency": 4.0}, ""),
        (
            {"temporal_frequency": 3.0},
            "3 Hz makes no whole number of cycles in 0.5 s: the spectrum smears by 2 Hz",
        ),
        ({"temporal_frequency": 0.0}, ""),
        ({"temporal_frequency": 3.0, "temporal_sigma": 0.7}, ""),
        (
            {"temporal_frequency": [3.0, 30.0 / 7], "temporal_sigma": 0.5},
            "3 Hz has fewer than two cycles in temporal_sigma",
        ),
    ],
)
def test_cycles_that_are_cut_off_are_told(
    parameters: dict[str, Any], caution: str
) -> None:
    for kind in KINDS:
        cautions = clip(kind, **parameters).cautions()
        assert cautions == () if not caution else caution in cautions[0]


def test_a_course_is_fitted_from_afar() -> None:
    times = (np.arange(60) - 29.5) / 60
    for moves in (False, True):
        fitted = time_course(times, 0.02, 21.3, 0.4, 0.15, moves=moves)
        fit = fit_time_course(
            fitted, times, amplitude=0.1, frequency=6.0, sigma=0.2, moves=moves
        )
        assert (fit.amplitude, fit.frequency, fit.phase, fit.sigma) == pytest.approx(
            (0.02, 21.3, np.degrees(0.4), 0.15), rel=1e-9
        )
        assert fit.residual < 1e-13


_CHILD = """
import sys
from psyprobe.light.display import Display
from psyprobe.stimulus import Drift
spec = Drift(frequency=4, contrast=0.2, temporal_frequency=5, frames=int(sys.argv[1]), size=224)
display = Display()
for chunk in spec.chunks():
    display.encode(chunk)
certificate = spec.measure()
assert certificate.passed and abs(certificate["temporal frequency"].error) < 1e-9
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)
def test_ten_seconds_need_no_more_memory_than_one() -> None:
    """At 60 Hz and 224 px: drawn, encoded for a display and certified."""
    peaks = []
    for frames in (60, 600):
        arguments = [sys.executable, "-c", _CHILD, str(frames)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        with child(
            arguments, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            out, _ = process.communicate()
        assert process.returncode == 0
        peaks.append(int(out))
    assert peaks[1] < 1.05 * peaks[0], peaks
