"""Encoders of the timm library: "timm:NAME[.TAG]"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, WeightsError, unknown_name
from psyprobe.observers.encoders.images import checked_size, size_text
from psyprobe.observers.encoders.network import Network, NetworkObserver
from psyprobe.observers.encoders.weights import RANDOM, hub_weights, seeded, weights_file
from psyprobe.observers.registry import register_observer

INSTALL = "pip install 'psyprobe[encoders]'"


@register_observer(
    "timm",
    form="timm:NAME[.TAG]",
    summary="an encoder of the timm library; the embedding before its classifier",
    requires=("torch", "timm"),
    install=INSTALL,
)
def load_timm(
    name: str,
    *,
    random_weights: bool = False,
    weights: str | Path | None = None,
    input: str = "normalised",
    input_size: int | tuple[int, int] | None = None,
    layers: str | Iterable[str] | None = None,
    device: str | None = None,
    dtype: str = "float32",
) -> NetworkObserver:
    """An encoder of the timm library.

    Parameters
    ----------
    name : str
        Architecture and pretrained tag as timm writes them: "vit_small_patch14_dinov2.lvd142m".
    random_weights : bool
        Random weights, for tests.
    weights : str or Path, optional
        A file with the weights, in any form that timm reads; by default timm's own cache and hub.
    input, layers, device, dtype
        As in `NetworkObserver`.
    input_size : int or tuple of int, optional
        Side, or (height, width), in px to draw at instead of the native size. A vision transformer gets its
        position table resampled by timm as it loads; a convolutional network takes any size as it is.

    Returns
    -------
    NetworkObserver

    Raises
    ------
    UnknownNameError
        If timm has no such architecture or tag.
    InputError
        If the network cannot look at `input_size`.
    WeightsError
        If the weights are not to be had.
    """
    import timm

    full = f"timm:{name}"
    _check_name(full, name)
    native = timm.get_pretrained_cfg(name)
    size = checked_size(input_size) if input_size is not None else tuple(native.input_size[1:])
    arguments: dict[str, Any] = {}
    if native.fixed_input_size and size != tuple(native.input_size[1:]):
        arguments["img_size"] = size
    if random_weights and weights is not None:
        raise InputError(f"{full}: ask for random_weights or for weights={str(weights)!r}, not for both")
    if random_weights:
        origin = RANDOM
        with seeded():
            module = create(full, name, size, arguments)
    elif weights is not None:
        file = weights_file(weights, full)
        origin = f"file {file}"
        overlay = {"file": str(file), "custom_load": file.suffix == ".npz"}
        try:
            module = create(full, name, size, arguments | {"pretrained": True, "pretrained_cfg_overlay": overlay})
        except (RuntimeError, ValueError, KeyError, OSError, EOFError) as problem:
            first = str(problem).strip().partition("\n")[0]
            raise InputError(f"{full}: {str(file)!r} does not hold its weights: {first}") from problem
    elif not native.has_weights:
        raise WeightsError(f"timm has no trained weights for {full}: name a file with weights=FILE, or another encoder")
    else:
        with hub_weights(full):
            module = create(full, name, size, arguments | {"pretrained": True})
        origin = f"timm, {module.pretrained_cfg.get('hf_hub_id') or module.pretrained_cfg.get('url')}"
    network = timm_network(full, module, input_size=size, weights=origin, random_weights=random_weights)
    return NetworkObserver(network, input=input, layers=layers, device=device, dtype=dtype)


def create(full: str, name: str, size: tuple[int, ...], arguments: dict[str, Any]) -> Any:
    """A timm network for images of a size, on the CPU.

    Parameters
    ----------
    full : str
        The observer's name, for the message.
    name : str
        timm's name.
    size : tuple of int
        (height, width), px.
    arguments : dict
        Passed on to ``timm.create_model``.

    Returns
    -------
    torch.nn.Module

    Raises
    ------
    InputError
        If the network cannot look at images of this size, or would leave a margin of them unseen.
    """
    import timm

    try:
        module = timm.create_model(name, **arguments)
    except (AssertionError, TypeError) as problem:
        if "img_size" not in arguments:
            raise
        raise InputError(f"{full} cannot look at images of {size_text(size)}: {problem}") from problem
    patch = getattr(getattr(module, "patch_embed", None), "patch_size", None)
    if isinstance(patch, tuple) and any(side % step for side, step in zip(size, patch, strict=True)):
        raise InputError(
            f"{full} cuts the image into patches of {size_text(patch)} and would not see the margin of "
            f"{size_text(size)}: choose multiples of {size_text(patch)}"
        )
    return module


def timm_network(full: str, module: Any, **known: Any) -> Network:
    """A timm network and how to look through it.

    Parameters
    ----------
    full : str
        The observer's name.
    module : torch.nn.Module
        As ``timm.create_model`` returns it.
    **known
        Further fields of `Network`.

    Returns
    -------
    Network
        Its main feature is the embedding that the classifier would get: pooled, or the class token, as the
        network was trained; its stages are those that timm names in ``feature_info``.
    """
    config = module.pretrained_cfg
    info = module.feature_info
    stages = dict.fromkeys(stage["module"] for stage in getattr(info, "info", info))
    prefix = getattr(module, "num_prefix_tokens", 0)
    patches = getattr(getattr(module, "patch_embed", None), "num_patches", 0)
    fields: dict[str, Any] = {
        "stages": tuple(stages),
        "tokens": (prefix, patches) if prefix and patches else None,
        "resizable": True,
        "mean": tuple(config["mean"]),
        "std": tuple(config["std"]),
        "licence": config.get("license"),
        "paper": ", ".join(filter(None, (config.get("paper_name"), config.get("paper_ids")))) or None,
        "packages": ("torch", "timm"),
    }

    def embed(images: Any) -> Any:
        return module.forward_head(module.forward_features(images), pre_logits=True)

    return Network(full, module, embed, **(fields | known))


def _check_name(full: str, name: str) -> None:
    import timm

    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        # the whole list, some 1,300 names, would bury the message
        raise unknown_name("observer", full, _near(full, (f"timm:{each}" for each in timm.list_models())))
    tags = timm.list_models(f"{architecture}.*", pretrained=True)
    if tag and name not in tags:
        raise unknown_name("observer", full, [f"timm:{each}" for each in tags])


def _near(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, list(known), n=5, cutoff=0.5)
