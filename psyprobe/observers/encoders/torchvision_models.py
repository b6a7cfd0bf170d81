"""Load image classifiers of torchvision as encoders: "torchvision:NAME[.WEIGHTS]"."""

from __future__ import annotations

import urllib.request
import warnings
from collections.abc import Callable, Iterable
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any

from psyprobe.errors import WeightsError, check_known
from psyprobe.files.json_types import JsonObject
from psyprobe.observers.encoders import network as nets
from psyprobe.observers.encoders.network import FileOptions, Network, NetworkObserver
from psyprobe.observers.images import checked_size, size_text

#: A block that holds more than this share of the weights before the last layer is the body: its
#: children are stages.
_BODY = 0.8
#: Networks that normalise their input once more, from ImageNet's mean to 0.5, with these weights.
_TWICE_NORMALISED = ("googlenet", "inception_v3")


def load_torchvision(name: str, options: FileOptions) -> NetworkObserver:
    """Load a classifier of ``torchvision.models`` by name, such as "resnet50".

    It has its default weights, or those of "resnet50.IMAGENET1K_V1". The main feature is the input
    of its last layer. Layers are the nodes of its graph, as
    ``torchvision.models.feature_extraction.get_graph_node_names`` names them: "layer1",
    "layer1.0.add", "flatten". Mean, standard deviation and size are those of the transforms that
    belong to the weights.
    """
    import torch
    from torchvision import models
    from torchvision.models.feature_extraction import get_graph_node_names

    full = f"torchvision:{name}"
    architecture, _, tag = name.partition(".")
    nets.check_architecture(full, architecture, models.list_models(module=models))
    trained = models.get_model_weights(architecture)
    if tag not in ("", "DEFAULT"):
        names = [f"torchvision:{architecture}.{member.name}" for member in trained]
        check_known("observer", [full], names)
    weights = trained[tag] if tag else trained.DEFAULT
    transforms = weights.transforms()
    native = checked_size(transforms.crop_size[0])
    size = options.size(native)
    module, origin = _module(full, architecture, weights, options)
    _, nodes = get_graph_node_names(module, suppress_diff_warning=True)
    modules = dict(module.named_modules())
    layers = (torch.nn.Linear, torch.nn.Conv2d)
    last = max(
        number
        for number, node in enumerate(nodes)
        if isinstance(modules.get(node), layers)
    )
    if size != native:
        message = f"{full} cannot look at images of {size_text(size)}"
        # Each network raises its own.
        with nets.explained(message, Exception), torch.inference_mode():
            module(torch.zeros(1, 3, *size))
    # Blocks are named by the beginnings of the names of their nodes.
    prefixes = [
        prefix
        for node in nodes
        for prefix in accumulate(node.split("."), "{}.{}".format)
    ]
    network = Network(
        full,
        module,
        itemgetter(nodes[last - 1]),
        stages=_stages(module, nodes, nodes[last]),
        nodes=tuple(dict.fromkeys(prefixes)),
        extract=_extraction(module, nodes[last - 1]),
        tokens=(1, module.seq_length - 1)
        if isinstance(module, models.VisionTransformer)
        else None,
        input_size=size,
        resizable=True,
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
        weights=origin,
        packages=("torch", "torchvision"),
        channels_last=True,
    )
    return NetworkObserver(network, options)


def _module(
    full: str, architecture: str, weights: Any, options: FileOptions
) -> tuple[Any, str]:
    """Build a torchvision network in evaluation mode, and name where its weights come from."""
    import torch
    from torchvision import models

    arguments: JsonObject = {}
    file = nets.own_weights(full, options)
    if file is not None and architecture in _TWICE_NORMALISED:
        arguments = {"transform_input": True}
    fetched = file is None and not options.random_weights
    if fetched:
        _check_reached(full, weights)
        arguments = {"weights": weights, "progress": False}
    with nets.seeded(), warnings.catch_warnings():
        # Two networks warn that their initialization takes long.
        warnings.filterwarnings("ignore", ".*weight initialization", FutureWarning)
        module = models.get_model(architecture, **arguments).eval()
    if fetched:
        return module, f"torchvision, {weights.url}"
    if file is None:
        return module, nets.RANDOM
    with nets.read_weights(full, file):
        state = torch.load(file, map_location="cpu", weights_only=True)
        module.load_state_dict(state)
    return module, f"file {file}"


def _check_reached(full: str, weights: Any) -> None:
    """Refuse weights that are neither cached nor downloadable, and say where they belong."""
    import torch

    cached = Path(torch.hub.get_dir()) / "checkpoints" / Path(weights.url).name
    if cached.is_file():
        return
    try:
        request = urllib.request.Request(weights.url, method="HEAD")
        with urllib.request.urlopen(request, timeout=nets.PATIENCE):
            return
    except OSError as problem:
        raise WeightsError(
            f"{full}: no weights {cached}, and {weights.url} cannot be reached; copy the file "
            "there, name one with weights=FILE, or take an encoder of "
            "list_observers('packaged:*'), which need no download"
        ) from problem


def _stages(module: Any, nodes: Iterable[str], last: str) -> tuple[str, ...]:
    """List a network's blocks with weights, opening one that holds nearly all of them."""

    def weights(block: Any) -> int:
        return sum(parameter.numel() for parameter in block.parameters())

    def children(block: Any, prefix: str) -> JsonObject:
        blocks = {}
        for name, child in block.named_children():
            start = f"{prefix}{name}."
            is_head = f"{last}.".startswith(start)
            is_used = any(f"{node}.".startswith(start) for node in nodes)
            if weights(child) and is_used and not is_head:
                blocks[f"{prefix}{name}"] = child
        return blocks

    blocks = children(module, "")
    while True:
        largest = max(blocks, key=lambda name: weights(blocks[name]))
        inner_blocks = children(blocks[largest], f"{largest}.")
        total = sum(map(weights, blocks.values()))
        if not inner_blocks or weights(blocks[largest]) < _BODY * total:
            return tuple(blocks)
        outer_blocks = blocks
        blocks = {}
        for name, block in outer_blocks.items():
            blocks |= inner_blocks if name == largest else {name: block}


def _extraction(module: Any, embedding: str) -> Callable[[tuple[str, ...]], Any]:
    """Return a function that builds a module of several layers' outputs from one pass."""

    def extract(layers: tuple[str, ...]) -> Any:
        from torchvision.models.feature_extraction import create_feature_extractor

        nodes = list(dict.fromkeys((*layers, embedding)))
        extractor = create_feature_extractor(
            module, return_nodes=nodes, suppress_diff_warning=True
        ).eval()
        # A layer that works in place would change the output of the node before it.
        for layer in extractor.modules():
            if hasattr(layer, "inplace"):
                layer.inplace = False
        for node in extractor.graph.nodes:
            if "inplace" in node.kwargs:
                node.kwargs = {**node.kwargs, "inplace": False}
        extractor.recompile()
        return extractor

    return extract
