"""Networks in ONNX files: any tensor by name, any layout, the file's digest, and what cannot be
looked through."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError, UnknownNameError, WeightsError
from psyprobe.observers import load_observer

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")

FLOAT = onnx.TensorProto.FLOAT
WEIGHT = np.random.default_rng(3).normal(size=(3, 5)).astype(np.float32)


def _saved(
    path: Path,
    shape: list[Any],
    nodes: list[Any],
    outputs: dict[str, list[Any]],
    kind: int = FLOAT,
) -> Path:
    helper = onnx.helper
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("image", kind, shape)],
        [
            helper.make_tensor_value_info(name, kind, shape)
            for name, shape in outputs.items()
        ],
        [onnx.numpy_helper.from_array(WEIGHT, "weight")],
    )
    onnx.save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ),
        path,
    )
    return path


def _pooled(path: Path, batch: Any) -> Path:
    """The mean colour of NHWC images times WEIGHT; "mean" lies inside the graph, "square" is a
    second output."""
    make = onnx.helper.make_node
    nodes = [
        make("ReduceMean", ["image"], ["mean"], axes=[1, 2], keepdims=0),
        make("MatMul", ["mean", "weight"], ["scores"]),
        make("Mul", ["scores", "scores"], ["square"]),
    ]
    return _saved(
        path, [batch, 6, 8, 3], nodes, {"scores": [batch, 5], "square": [batch, 5]}
    )


@pytest.fixture()
def images() -> FloatArray:
    return np.random.default_rng(0).random((3, 6, 8, 3), dtype=np.float32)


def test_any_tensor_of_the_graph_is_a_layer(onnx_file: Path, drive: FloatArray) -> None:
    observer = load_observer(f"onnx:{onnx_file}", layers=["Relu:0", "conv", "flat"])
    features = observer.features(drive)
    assert tuple(features) == observer.card.features == ("Relu:0", "conv", "flat")
    weight = onnx.numpy_helper.to_array(onnx.load(onnx_file).graph.initializer[0])
    patches = drive.reshape(3, 14, 16, 14, 16, 3)
    expected = np.einsum("nhywxc,kcyx->nkhw", patches, weight, optimize=True).reshape(
        3, -1
    )
    np.testing.assert_allclose(
        features["conv"], expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )
    np.testing.assert_array_equal(features["Relu:0"], np.maximum(features["conv"], 0))
    np.testing.assert_array_equal(features["flat"], features["Relu:0"])
    assert observer.card.input_size is None and observer.card.options == {
        "layout": "NCHW"
    }


@pytest.mark.parametrize("batch", ["n", 1, 2])
def test_channels_last_and_normalised_whatever_the_batch(
    tmp_path: Path, batch: Any, images: FloatArray
) -> None:
    """A graph of a fixed batch is run as often as it takes, and filled up."""
    path = _pooled(tmp_path / "mean.onnx", batch)
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    observer = load_observer(
        f"onnx:{path}", mean=mean, std=std, layers=["mean", "scores", "square"]
    )
    card = observer.card
    assert (card.input_size, card.options, card.mean, card.std) == (
        (6, 8),
        {"layout": "NHWC"},
        mean,
        std,
    )
    features = observer.features(images)
    expected = ((images - mean) / std).mean(axis=(1, 2))
    np.testing.assert_allclose(features["mean"], expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(features["scores"], expected @ WEIGHT, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        features["square"], (expected @ WEIGHT) ** 2, rtol=0, atol=1e-4
    )
    raw = load_observer(
        f"onnx:{path}", mean=mean, std=std, input="raw", layers=["mean"]
    )
    np.testing.assert_allclose(
        raw.features(images)["mean"], images.mean(axis=(1, 2)), rtol=0, atol=1e-6
    )
    assert load_observer(f"onnx:{path}", layers="all").card.features == (
        "scores",
        "square",
    )
    assert load_observer(f"onnx:{path}").card.features == ("scores",)


def test_the_card_has_the_digest_of_the_file_and_of_those_beside_it(
    tmp_path: Path,
) -> None:
    path = _pooled(tmp_path / "mean.onnx", "n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    card = load_observer(f"onnx:{path}").card
    assert (
        card.weights_digest == digest
        and card.weights == f"file {path}"
        and not card.random_weights
    )
    model_path = tmp_path / "beside.onnx"
    onnx.save(
        onnx.load(path),
        model_path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    observer = load_observer(f"onnx:{model_path}")
    np.testing.assert_allclose(
        observer.features(np.ones((1, 6, 8, 3), np.float32))["scores"][0],
        WEIGHT.sum(0),
        rtol=1e-5,
    )
    stored = bytearray((tmp_path / "weights.bin").read_bytes())
    stored[0] ^= 1
    (tmp_path / "weights.bin").write_bytes(stored)
    assert (
        load_observer(f"onnx:{model_path}").card.weights_digest
        != observer.card.weights_digest
    )


def test_half_precision_in_and_out(tmp_path: Path, images: FloatArray) -> None:
    half = onnx.TensorProto.FLOAT16
    node = onnx.helper.make_node(
        "ReduceMean", ["image"], ["mean"], axes=[1, 2], keepdims=0
    )
    path = _saved(
        tmp_path / "half.onnx", ["n", 6, 8, 3], [node], {"mean": ["n", 3]}, half
    )
    observer = load_observer(f"onnx:{path}")
    assert observer.card.dtype == "float16"
    means = observer.features(images)["mean"]
    assert means.dtype == np.float32
    np.testing.assert_allclose(means, images.mean(axis=(1, 2)), rtol=0, atol=2e-3)


def test_one_clear_line_for_what_cannot_be_looked_through(
    tmp_path: Path, onnx_file: Path
) -> None:
    node = onnx.helper.make_node("Flatten", ["image"], ["flat"])
    flat = {"flat": ["n", "d"]}
    open_layout = _saved(tmp_path / "open.onnx", ["n", "c", "h", "w"], [node], flat)
    ambiguous_path = _saved(tmp_path / "both.onnx", ["n", 3, 4, 3], [node], flat)
    codes = _saved(
        tmp_path / "codes.onnx", ["n", 3, 4, 4], [node], flat, onnx.TensorProto.UINT8
    )
    rows = _saved(tmp_path / "rows.onnx", ["n", 12], [node], flat)
    (broken := tmp_path / "broken.onnx").write_bytes(b"not a graph")
    mean = _pooled(tmp_path / "mean.onnx", "n")
    cases: list[tuple[Path, dict[str, Any], type[Exception], str]] = [
        (
            open_layout,
            {},
            InputError,
            "takes any x any x any x any, which leaves open where the channels are",
        ),
        (ambiguous_path, {}, InputError, "give layout=NCHW or NHWC"),
        (
            mean,
            {"layout": "NCHW"},
            InputError,
            "takes any x 6 x 8 x 3, which has no three channels",
        ),
        (mean, {"layout": "HWC"}, UnknownNameError, "unknown layout 'HWC'"),
        (
            mean,
            {"input_size": 224},
            InputError,
            "looks at images of 6 x 8 px alone, and input_size asks for 224 x 224",
        ),
        (mean, {"layers": "men"}, UnknownNameError, "did you mean 'mean'"),
        (mean, {"layers": ["mean", "mean"]}, InputError, "each once"),
        (mean, {"std": (1, 1, 0)}, InputError, "not three finite numbers above 0"),
        (
            mean,
            {"random_weights": True},
            InputError,
            "takes no option 'random_weights'",
        ),
        (
            mean,
            {"device": "cuda"},
            InputError,
            "cannot run on device 'cuda': ONNX files run on the processor",
        ),
        (codes, {}, InputError, "takes uint8 and nothing is rounded to codes here"),
        (rows, {}, InputError, "takes image of 2 axes; wanted is one batch of images"),
        (broken, {}, InputError, "is no ONNX file"),
        (tmp_path / "none.onnx", {}, WeightsError, "there is no weights file"),
    ]
    for path, options, error, message in cases:
        with pytest.raises(error, match=message) as caught:
            load_observer(f"onnx:{path}", **options)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 600
    assert load_observer(f"onnx:{ambiguous_path}", layout="NHWC").card.input_size == (
        3,
        4,
    )
    with pytest.raises(PsyprobeError, match="onnxruntime cannot run it on a batch of"):
        load_observer(f"onnx:{onnx_file}").features(np.zeros((1, 8, 8, 3), np.float32))
