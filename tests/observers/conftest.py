"""Small networks of every kind, written to disk or built from real architectures with random
weights."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from psyprobe._typing import FloatArray

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
pytest.importorskip("timm", reason="the encoders extra is not installed")

SIZE = 224
OWN_NETWORK = """
import torch

def build():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 16, stride=16), torch.nn.ReLU(inplace=True), torch.nn.Flatten())

def wrong():
    return "a module"
"""
TINY_CLIP = {
    "embed_dim": 16,
    "vision_cfg": {
        "image_size": SIZE,
        "layers": 2,
        "width": 64,
        "head_width": 32,
        "patch_size": 32,
    },
    "text_cfg": {
        "context_length": 8,
        "vocab_size": 49408,
        "width": 16,
        "heads": 2,
        "layers": 1,
    },
}


@pytest.fixture(scope="session")
def drive() -> FloatArray:
    """Three images of display drive, float32, (3, 224, 224, 3)."""
    return np.random.default_rng(1).random((3, SIZE, SIZE, 3), dtype=np.float32)


@pytest.fixture(scope="session")
def grey_drive() -> FloatArray:
    """Three grey images as a display hands them over: a read-only view whose channels are one
    plane."""
    planes = np.random.default_rng(2).random((3, SIZE, SIZE, 1), dtype=np.float32)
    return np.broadcast_to(planes, (3, SIZE, SIZE, 3))


@pytest.fixture(scope="session")
def python_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "own_network.py"
    path.write_text(OWN_NETWORK)
    return path


@pytest.fixture(scope="session")
def torchscript_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 16, stride=16), torch.nn.Flatten()
    )
    path = tmp_path_factory.mktemp("script") / "network.pt"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", FutureWarning)
        torch.jit.script(module).save(str(path))
    return path


@pytest.fixture(scope="session")
def onnx_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution, "Relu:0" and a flat output in ONNX, for any number of images of any size."""
    onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    from onnx import TensorProto, helper, numpy_helper

    weight = np.random.default_rng(1).normal(size=(4, 3, 16, 16)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "weight"], ["conv"], strides=[16, 16]),
        helper.make_node("Relu", ["conv"], ["Relu:0"]),
        helper.make_node("Flatten", ["Relu:0"], ["flat"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("flat", TensorProto.FLOAT, ["n", "d"])],
        [numpy_helper.from_array(weight, "weight")],
    )
    path = tmp_path_factory.mktemp("onnx") / "small.onnx"
    onnx.save(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ),
        path,
    )
    return path


@pytest.fixture(scope="session")
def tiny_clips(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make open_clip know two small architectures: a vision transformer and a ResNet, of its own
    classes."""
    open_clip = pytest.importorskip(
        "open_clip", reason="the encoders extra is not installed"
    )
    folder = tmp_path_factory.mktemp("open_clip")
    (folder / "tiny-ViT.json").write_text(json.dumps(TINY_CLIP))
    resnet = {
        "image_size": SIZE,
        "layers": [1, 1, 1, 1],
        "width": 8,
        "patch_size": None,
    }
    (folder / "tiny-RN.json").write_text(json.dumps(TINY_CLIP | {"vision_cfg": resnet}))
    open_clip.add_model_config(folder)


@pytest.fixture(
    params=[
        "vit",
        "resnet",
        "mobilenet",
        "convnext",
        "packaged",
        "clip_vit",
        "clip_resnet",
        "torchvision",
        "script",
        "python",
        "onnx",
    ]
)
def encoder_name(request: pytest.FixtureRequest) -> str:
    """The name of an encoder of each kind; `encoder_options` says how to load it without trained
    weights."""
    names = {
        "vit": "timm:vit_tiny_patch16_224",
        "resnet": "timm:resnet18",
        "mobilenet": "timm:mobilenetv3_small_050",
        "convnext": "timm:convnext_atto",
        "packaged": "packaged:efficientnet_lite0",
        "clip_vit": "open_clip:tiny-ViT",
        "clip_resnet": "open_clip:tiny-RN",
        "torchvision": "torchvision:mobilenet_v3_small",
    }
    if request.param == "script":
        return f"torch:{request.getfixturevalue('torchscript_file')}"
    if request.param == "onnx":
        return f"onnx:{request.getfixturevalue('onnx_file')}"
    if request.param == "python":
        return f"torch:{request.getfixturevalue('python_file')}:build"
    if request.param.startswith("clip"):
        request.getfixturevalue("tiny_clips")
    return names[request.param]


@pytest.fixture()
def encoder_options(encoder_name: str) -> dict[str, object]:
    return (
        {} if encoder_name.startswith(("torch:", "onnx:")) else {"random_weights": True}
    )


@pytest.fixture(scope="session")
def chat_folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of tiny chat models by the names of their builders; each is built when it is first
    asked for."""
    pytest.importorskip("transformers", reason="the chat extra is not installed")
    from tiny_chat_models import BUILDERS

    @functools.cache
    def folder(family: str) -> Path:
        return BUILDERS[family](tmp_path_factory.mktemp("chat") / family)

    return folder
