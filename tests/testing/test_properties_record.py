"""Calibration properties 44 to 52: codes, the hand-over to a network, and what is written down
about a stimulus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.files.images import decode_png
from psyprobe.light.display import Display
from psyprobe.stimulus import (
    Disc,
    Gabor,
    Grating,
    Noise,
    Specification,
    Uniform,
    specification_from_dict,
)
from psyprobe.testing import (
    assert_calibrated,
    assert_contrast,
    assert_mean_luminance,
    assert_reproducible,
    strategies,
)

FIELD: dict[str, Any] = {"ppd": 60.0, "size": 48}
DTYPES = st.sampled_from(["float64", "float32"])


@pytest.mark.parametrize("bits", [8, 16])
def test_p44_codes_are_rounded_and_never_wrap(bits: int, tmp_path: Path) -> None:
    path = tmp_path / "gabor.png"
    settings = [
        "frequency=4",
        "contrast=0.999",
        "luminance=199",
        "radius=0.3",
        "size=64",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    assert (
        main(
            ["render", "gabor_achromatic", *words, "--bits", str(bits), "-o", str(path)]
        )
        == 0
    )
    codes = decode_png(path.read_bytes())
    values: dict[str, Any] = {
        key: float(value) for key, value in (s.split("=") for s in settings)
    }
    spec = Gabor(**(values | {"size": 64}))
    drive = np.asarray(Display(peak=400.0).encode(spec.draw(), dtype="float64"))[..., 0]
    maximum = 2**bits - 1
    assert (
        np.abs(codes.reshape(64, 64) / maximum - drive).max() <= (0.5 + 1e-3) / maximum
    )
    assert_contrast(codes, spec, space="encoded", display=Display(peak=400.0))


#: At contrast 0.001 a Gabor spans four steps of a normalised float16: short formats are asked from
#: 0.05 on.
RECEIVED = [
    ("float32", 0.001),
    *((dtype, c) for dtype in ("float32", "float16", "bfloat16") for c in (0.05, 0.5)),
]


@pytest.mark.parametrize(("dtype", "contrast"), RECEIVED)
def test_p45_what_a_network_receives_is_what_was_drawn(
    dtype: str, contrast: float
) -> None:
    torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
    from psyprobe.observers import Network, NetworkObserver, NetworkOptions

    spec = Gabor(frequency=4.0, contrast=contrast, radius=0.5, orientation=30, phase=20)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    module, tensors = torch.nn.Flatten(), []
    module.register_forward_pre_hook(
        lambda _, inputs: tensors.append(inputs[0].clone())
    )
    observer = NetworkObserver(
        Network("witness", module, module, mean=mean, std=std),
        NetworkOptions(dtype=dtype, device="cpu"),
    )
    display = Display(peak=400.0)
    observer.features(display.encode(spec.draw())[None])
    drive = (
        tensors[0][0].double().permute(1, 2, 0) * torch.tensor(std).double()
        + torch.tensor(mean).double()
    )
    assert_contrast(
        drive[..., 1], spec, space="encoded", display=display, precision=dtype
    )
    assert_mean_luminance(
        drive[..., 1], spec, space="encoded", display=display, precision=dtype
    )


def test_p46_nothing_is_resized_on_the_way() -> None:
    torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
    from psyprobe.observers import Network, NetworkObserver, NetworkOptions

    module = torch.nn.Flatten()
    network = Network("witness", module, module, input_size=(224, 224))
    with pytest.raises(InputError, match="nothing is resized here"):
        NetworkObserver(network, NetworkOptions(device="cpu")).features(
            np.zeros((1, 256, 256, 3), np.float32)
        )


@given(strategies.stimuli(sampling=FIELD))
def test_p49_a_specification_written_down_and_read_back_draws_the_same_bits(
    spec: Specification,
) -> None:
    assert_reproducible(spec)
    assert specification_from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    with pytest.raises(InputError, match="unknown"):
        specification_from_dict(spec.to_dict() | {"spatial_frequency": 3})


@settings(max_examples=200)
@given(strategies.stimuli(), DTYPES)
def test_p50_every_number_of_the_specification_is_in_the_pixels(
    spec: Specification, dtype: str
) -> None:
    assert_calibrated(spec.draw(dtype=dtype))


@settings(max_examples=60)
@given(strategies.shown_stimuli(), DTYPES)
def test_p50_and_in_the_light_that_a_display_shows(
    stimulus_and_display: tuple[Specification, Display], dtype: str
) -> None:
    spec, display = stimulus_and_display
    assert_calibrated(spec.draw(dtype=dtype), display=display)


@given(strategies.shown_stimuli(), DTYPES)
def test_p51_everything_is_finite(
    stimulus_and_display: tuple[Specification, Display], dtype: str
) -> None:
    spec, display = stimulus_and_display
    stimulus = spec.draw(dtype=dtype)
    assert np.isfinite(np.asarray(stimulus.pixels)).all()
    assert np.isfinite(np.asarray(display.encode(stimulus, dtype=dtype))).all()
    assert np.isfinite(np.asarray(spec.reference().draw(dtype=dtype).pixels)).all()


@pytest.mark.parametrize(
    ("kind", "values", "hint"),
    [
        (Gabor, {"frequency": 4, "contrast": 50}, "not a percentage"),
        (Gabor, {"frequency": 4, "contrast": -0.1}, "fraction from 0 to 1"),
        (Gabor, {"frequency": 4, "contrast": "50 %"}, "without the unit"),
        (Gabor, {"frequency": 4, "contrast": 0.5, "radius": 45}, "at most the field"),
        (Gabor, {"frequency": 0.05, "contrast": 0.5}, "per degree, not per pixel"),
        (Grating, {"frequency": 32, "contrast": 0.5}, "Nyquist"),
        (Noise, {"frequency": 25, "contrast": 0.1}, "Nyquist"),
        (Noise, {"frequency": 4, "contrast": 0.1, "seed": 0.5}, "whole number"),
        (Disc, {"contrast": 20}, "not a percentage"),
        (Disc, {"contrast": 0.5, "radius": -1}, "must be > 0"),
        (Uniform, {"luminance": 0}, "> 0 cd/m²"),
        (Uniform, {"luminance": float("nan")}, "finite"),
        (Uniform, {"ppd": 0}, "pixels per degree"),
    ],
)
def test_p52_wrong_units_are_errors_with_a_hint(
    kind: Any, values: dict[str, Any], hint: str
) -> None:
    with pytest.raises(InputError, match=hint):
        kind(**values)


def test_p52_a_band_without_a_frequency_is_an_error() -> None:
    with pytest.raises(InputError, match="holds no frequency of a field of 1 x 1 deg"):
        Noise(frequency=1.7, bandwidth=0.05, contrast=0.1, ppd=32, size=32).draw()
