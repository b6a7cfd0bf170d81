"""Image classifiers of the torchvision library as encoders: "torchvision:NAME[.WEIGHTS]"."""

from __future__ import annotations

import difflib
import urllib.request
import warnings
from collections.abc import Callable, Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, WeightsError, unknown_name
from psyprobe.observers.encoders import network as nets
from psyprobe.observers.encoders.network import FileOptions, Network, NetworkObserver
from psyprobe.observers.images import checked_size, size_text

#: A block that holds more than this share of the weights before the last layer is the body: its
#: children are stages.
_BODY = 0.8
#: They normalise once more, from ImageNet's mean to 0.5, where their weights are torchvision's.
_TWICE_NORMALISED = ("googlenet", "inception_v3")


def load_torchvision(name: str, options: FileOptions) -> NetworkObserver:
    """A classifier of ``torchvision.models`` by name, "resnet50", with its default weights or
    "resnet50.IMAGENET1K_V1".

    The main feature is what its last layer gets. Layers are the nodes of its graph, as
    ``torchvision.models.feature_extraction.get_graph_node_names`` names them: "layer1",
    "layer1.0.add", "flatten". Mean, standard deviation and size are those of the transforms that
    belong to the weights.
    """
    from torchvision import models

    full = f"torchvision:{name}"
    architecture, _, tag = name.partition(".")
    known = models.list_models(module=models)
    if architecture not in known:
        near = difflib.get_close_matches(architecture, known, n=5, cutoff=0.5) or known
        raise unknown_name("observer", full, [f"torchvision:{each}" for each in near])
    trained = models.get_model_weights(architecture)
    if tag and tag not in trained.__members__:
        raise unknown_name(
            "observer", full, [f"torchvision:{architecture}.{each.name}" for each in trained]
        )
    weights = trained[tag] if tag else trained.DEFAULT
    shown = weights.transforms()
    native = checked_size(shown.crop_size[0])
    size = native if options.input_size is None else checked_size(options.input_size)
    module, origin = _module(full, architecture, weights, options)
    nodes, last = _nodes(module)
    _check_size(full, module, size, native)
    parts = (node.split(".") for node in nodes)
    network = Network(
        full,
        module,
        itemgetter(nodes[last - 1]),
        stages=_stages(module, nodes, nodes[last]),
        nodes=tuple(
            dict.fromkeys(".".join(part[:end]) for part in parts for end in range(1, len(part) + 1))
        ),
        extract=_extraction(module, nodes[last - 1]),
        tokens=(1, module.seq_length - 1) if isinstance(module, models.VisionTransformer) else None,
        input_size=size,
        resizable=True,
        mean=tuple(shown.mean),
        std=tuple(shown.std),
        weights=origin,
        packages=("torch", "torchvision"),
        channels_last=True,
    )
    return NetworkObserver(network, options)


def _module(full: str, architecture: str, weights: Any, options: FileOptions) -> tuple[Any, str]:
    """The network in evaluation mode, and where its weights come from."""
    import torch
    from torchvision import models

    arguments: dict[str, Any] = {}
    file = nets.own_weights(full, options)
    if file is not None and architecture in _TWICE_NORMALISED:
        arguments = {"transform_input": True}
    fetched = file is None and not options.random_weights
    if fetched:
        _check_reached(full, weights)
        arguments = {"weights": weights, "progress": False}
    with nets.seeded(), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", ".*weight initialization", FutureWarning
        )  # of two, which take long over it
        module = models.get_model(architecture, **arguments).eval()
    if fetched:
        return module, f"torchvision, {weights.url}"
    if file is None:
        return module, nets.RANDOM
    try:
        module.load_state_dict(torch.load(file, map_location="cpu", weights_only=True), strict=True)
    except Exception as problem:  # torch raises whatever it stumbles over in a damaged file
        raise InputError(
            f"{full}: {str(file)!r} does not hold its weights: {nets.first_line(problem)}"
        ) from problem
    return module, f"file {file}"


def _check_reached(full: str, weights: Any) -> None:
    """Refuse weights that are neither in the cache nor to be had, and say where they belong."""
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
            "there, name one with "
            "weights=FILE, or take an encoder of list_observers('packaged:*'), which need no "
            "download"
        ) from problem


def _nodes(module: Any) -> tuple[list[str], int]:
    """The names of the graph's nodes in their order, and the number of the last layer among
    them.
    """
    import torch
    from torchvision.models.feature_extraction import get_graph_node_names

    _, nodes = get_graph_node_names(module, suppress_diff_warning=True)
    modules = dict(module.named_modules())
    layers = (torch.nn.Linear, torch.nn.Conv2d)
    return nodes, max(
        number for number, node in enumerate(nodes) if isinstance(modules.get(node), layers)
    )


def _stages(module: Any, nodes: Iterable[str], last: str) -> tuple[str, ...]:
    """The blocks with weights, down to the children of the one that is nearly all of the
    network.
    """

    def weights(block: Any) -> int:
        return sum(parameter.numel() for parameter in block.parameters())

    def children(block: Any, prefix: str) -> dict[str, Any]:
        all_children = {f"{prefix}{name}": child for name, child in block.named_children()}
        outside_head = {
            name: child
            for name, child in all_children.items()
            if weights(child) and not f"{last}.".startswith(f"{name}.")
        }
        return {
            name: child
            for name, child in outside_head.items()
            if any(f"{node}.".startswith(f"{name}.") for node in nodes)
        }

    blocks = children(module, "")
    while True:
        name, largest = max(blocks.items(), key=lambda each: weights(each[1]))
        inside = children(largest, f"{name}.")
        if not inside or weights(largest) < _BODY * sum(weights(each) for each in blocks.values()):
            return tuple(blocks)
        blocks = {
            key: each
            for old in blocks
            for key, each in (inside.items() if old == name else [(old, blocks[old])])
        }


def _extraction(module: Any, embedding: str) -> Callable[[tuple[str, ...]], Any]:
    """Give a module that gives the nodes asked for, and the main feature's, from one pass."""

    def extract(layers: tuple[str, ...]) -> Any:
        from torchvision.models.feature_extraction import create_feature_extractor

        nodes = list(dict.fromkeys((*layers, embedding)))
        extractor = create_feature_extractor(
            module, return_nodes=nodes, suppress_diff_warning=True
        ).eval()
        for each in (
            extractor.modules()
        ):  # what works in place would change the node before it, which may be asked for
            if hasattr(each, "inplace"):
                each.inplace = False
        for node in extractor.graph.nodes:
            if "inplace" in node.kwargs:
                node.kwargs = {**node.kwargs, "inplace": False}
        extractor.recompile()
        return extractor

    return extract


def _check_size(full: str, module: Any, size: tuple[int, int], native: tuple[int, int]) -> None:
    """Refuse another size than the native one, if the network cannot look at it."""
    import torch

    if size == native:
        return
    try:
        with torch.inference_mode():
            module(torch.zeros(1, 3, *size))
    except Exception as problem:  # each network raises its own
        raise InputError(
            f"{full} cannot look at images of {size_text(size)}: {nets.first_line(problem)}"
        ) from problem
