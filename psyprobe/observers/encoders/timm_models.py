"""Encoders of the timm library: "timm:NAME[.TAG]"."""

from __future__ import annotations

import difflib
from typing import Any

from psyprobe.errors import InputError, WeightsError, unknown_name
from psyprobe.observers.encoders.images import check_patches, checked_size, size_text
from psyprobe.observers.encoders.network import Network, NetworkObserver
from psyprobe.observers.encoders.options import FileOptions
from psyprobe.observers.encoders.weights import RANDOM, first_line, hub_weights, own_weights, seeded
from psyprobe.observers.registry import register_observer

INSTALL = "pip install 'psyprobe[encoders]'"


@register_observer(
    "timm",
    form="timm:NAME[.TAG]",
    summary="an encoder of the timm library; the embedding before its classifier",
    requires=("torch", "timm"),
    install=INSTALL,
    options=FileOptions,
)
def load_timm(name: str, options: FileOptions) -> NetworkObserver:
    """An encoder of the timm library, by architecture and pretrained tag: "vit_small_patch14_dinov2.lvd142m"."""
    import timm

    full = f"timm:{name}"
    _check_name(full, name)
    native = timm.get_pretrained_cfg(name)
    size = checked_size(options.input_size) if options.input_size is not None else tuple(native.input_size[1:])
    arguments: dict[str, Any] = {}
    if native.fixed_input_size and size != tuple(native.input_size[1:]):
        arguments["img_size"] = size
    file = own_weights(full, options)
    if options.random_weights:
        origin = RANDOM
        with seeded():
            module = create(full, name, size, arguments)
    elif file is not None:
        origin = f"file {file}"
        overlay = {"file": str(file), "custom_load": file.suffix == ".npz"}
        try:
            module = create(full, name, size, arguments | {"pretrained": True, "pretrained_cfg_overlay": overlay})
        except (RuntimeError, ValueError, KeyError, OSError, EOFError) as problem:
            raise InputError(f"{full}: {str(file)!r} does not hold its weights: {first_line(problem)}") from problem
    elif not native.has_weights:
        raise WeightsError(f"timm has no trained weights for {full}: name a file with weights=FILE, or another encoder")
    else:
        with hub_weights(full):
            module = create(full, name, size, arguments | {"pretrained": True})
        origin = f"timm, {module.pretrained_cfg.get('hf_hub_id') or module.pretrained_cfg.get('url')}"
    network = timm_network(full, module, input_size=size, weights=origin, random_weights=options.random_weights)
    return NetworkObserver(network, **options.looking)


def create(full: str, name: str, size: tuple[int, ...], arguments: dict[str, Any]) -> Any:
    """A timm network for images of a size, on the CPU; `full` is the observer's name, `name` timm's.

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
    check_patches(full, size, getattr(getattr(module, "patch_embed", None), "patch_size", None))
    return module


def timm_network(full: str, module: Any, **known: Any) -> Network:
    """A timm network and how to look through it; `known` are further fields of `Network`.

    Its main feature is the embedding that the classifier would get: pooled, or the class token, as the network was
    trained; its stages are those that timm names in ``feature_info``.
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
        known = [f"timm:{each}" for each in timm.list_models()]
        raise unknown_name("observer", full, difflib.get_close_matches(full, known, n=5, cutoff=0.5))
    tags = timm.list_models(f"{architecture}.*", pretrained=True)
    if tag and name not in tags:
        raise unknown_name("observer", full, [f"timm:{each}" for each in tags])
