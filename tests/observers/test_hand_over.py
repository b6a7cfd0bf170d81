"""Calibration property 45: what the network receives, un-normalised, is the display drive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.observers import Network, NetworkObserver, NetworkOptions

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")

SIZE, PPD, SIGMA, MEAN_LUMINANCE = 224, 60.0, 0.5, 100.0
DISPLAY = Display(peak=400.0)
#: Relative error of the amplitude, times the contrast: what rounding to each format leaves, 3 to 4
#: times the worst of 150 Gabors. Bfloat16 keeps 8 bits: at contrast 0.001 it may halve the
#: amplitude, so it is not asked there.
AMPLITUDE_ERROR = {"float32": 2e-8, "float16": 5e-5, "bfloat16": 2e-4}
CONTRASTS = {
    "float32": (0.001, 0.01, 0.1, 0.9),
    "float16": (0.001, 0.01, 0.1, 0.9),
    "bfloat16": (0.01, 0.1, 0.9),
}
NORMALISATIONS = [
    ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
]


def _received(
    images: FloatArray,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    dtype: str,
    choice: str,
) -> tuple[Any, NetworkObserver]:
    """Return the tensor that a network receives for a drive."""
    module = torch.nn.Flatten()
    tensors = []
    module.register_forward_pre_hook(
        lambda _, inputs: tensors.append(inputs[0].clone())
    )
    network = Network("witness", module, module, mean=mean, std=std)
    observer = NetworkObserver(
        network, NetworkOptions(input=choice, dtype=dtype, device="cpu")
    )
    observer.features(images)
    (tensor,) = tensors
    return tensor, observer


def _drive_of(tensor: Any, observer: NetworkObserver) -> FloatArray:
    values = tensor.to(torch.float64).numpy().transpose(0, 2, 3, 1)
    if observer.card.input == "raw":
        return np.asarray(values)
    return np.asarray(values * observer.card.std + observer.card.mean)


@pytest.mark.parametrize(("mean", "std"), NORMALISATIONS)
@pytest.mark.parametrize("choice", ["normalised", "raw"])
def test_receives_the_drive(
    drive: FloatArray, mean: tuple[float, ...], std: tuple[float, ...], choice: str
) -> None:
    tensor, observer = _received(drive, mean, std, "float32", choice)
    assert (
        tensor.shape == (3, 3, *drive.shape[1:3])
        and tensor.is_contiguous()
        and tensor.dtype == torch.float32
    )
    received_drive = _drive_of(tensor, observer)
    if choice == "raw":
        np.testing.assert_array_equal(received_drive, drive)
    np.testing.assert_allclose(received_drive, drive, rtol=0, atol=1.2e-7)


def test_receives_drive_beyond_peak_white() -> None:
    images = np.full((1, 4, 4, 3), 1.5, np.float32)
    tensor, observer = _received(images, *NORMALISATIONS[0], "float32", "raw")
    np.testing.assert_array_equal(_drive_of(tensor, observer), images)
    with pytest.raises(InputError, match=r"drive from 0 to 1 and was given 1\.5"):
        _received(images, *NORMALISATIONS[0], "float32", "normalised")


@settings(max_examples=25)
@given(
    frequency=st.floats(2, 25),
    orientation=st.floats(5, 85),
    phase=st.floats(0, 360),
    scene=st.sampled_from(
        [
            (dtype, contrast)
            for dtype, contrasts in CONTRASTS.items()
            for contrast in contrasts
        ]
    ),
    normalisation=st.sampled_from(NORMALISATIONS),
)
def test_contrast_survives_the_hand_over(
    frequency: float,
    orientation: float,
    phase: float,
    scene: tuple[str, float],
    normalisation: Any,
) -> None:
    """Property 1 at the network's door: decoded and fitted by least squares, a Gabor has the
    contrast drawn."""
    dtype, contrast = scene
    x = (np.arange(SIZE) - (SIZE - 1) / 2) / PPD
    theta = np.deg2rad(orientation)
    angle = 2 * np.pi * frequency * (
        x * np.cos(theta) + x[:, None] * np.sin(theta)
    ) + np.deg2rad(phase)
    envelope = np.exp(-(x**2 + x[:, None] ** 2) / (2 * SIGMA**2))
    drive = DISPLAY.encode(MEAN_LUMINANCE * (1 + contrast * envelope * np.cos(angle)))[
        None
    ]
    tensor, observer = _received(drive, *normalisation, dtype, "normalised")
    delivered = DISPLAY.decode(_drive_of(tensor, observer))[0, ..., 1]
    carriers = [envelope * np.cos(angle), envelope * np.sin(angle), np.ones_like(angle)]
    basis = np.stack(carriers, axis=-1).reshape(-1, 3)
    cosine, sine, _ = np.linalg.lstsq(basis, delivered.ravel(), rcond=None)[0]
    allowed = AMPLITUDE_ERROR[dtype] / contrast + 1e-6
    assert np.hypot(cosine, sine) / MEAN_LUMINANCE == pytest.approx(
        contrast, rel=allowed
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_formats_are_cast_last(drive: FloatArray, dtype: str) -> None:
    exact, _ = _received(drive, *NORMALISATIONS[0], "float32", "normalised")
    short, _ = _received(drive, *NORMALISATIONS[0], dtype, "normalised")
    assert torch.equal(short, exact.to(getattr(torch, dtype)))


def test_tensorfloat_stays_off_and_the_callers_choice_comes_back(
    drive: FloatArray,
) -> None:
    module = torch.nn.Flatten()
    within = []
    module.register_forward_hook(
        lambda *_: within.append(torch.get_float32_matmul_precision())
    )
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        NetworkObserver(
            Network("witness", module, module), NetworkOptions(device="cpu")
        ).features(drive)
        assert within == ["highest"]
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
