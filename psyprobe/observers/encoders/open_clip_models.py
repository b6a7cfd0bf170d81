"""Image towers of the open_clip library: "open_clip:ARCH/TAG"."""

from __future__ import annotations

import difflib
import math

from psyprobe.errors import InputError, unknown_name
from psyprobe.observers.encoders.images import check_patches, checked_size, size_text
from psyprobe.observers.encoders.network import Network, NetworkObserver
from psyprobe.observers.encoders.options import FileOptions
from psyprobe.observers.encoders.weights import RANDOM, first_line, hub_weights, own_weights, seeded
from psyprobe.observers.registry import register_observer


@register_observer(
    "open_clip",
    form="open_clip:ARCH/TAG",
    summary="the image tower of a CLIP of the open_clip library; the projected embedding",
    requires=("torch", "open_clip"),
    install="pip install 'psyprobe[encoders]'",
    options=FileOptions,
)
def load_open_clip(name: str, options: FileOptions) -> NetworkObserver:
    """The image tower of a CLIP, by architecture and pretrained tag: "ViT-B-32/laion2b_s34b_b79k".

    The tag may be left out with random weights or a file. Whether its activations are QuickGELU or GELU follows from
    the tag, because the weights were trained with the one or the other; open_clip itself only warns. The card records
    it as ``options["quick_gelu"]``.
    """
    import open_clip

    full = f"open_clip:{name}"
    architecture, tag = _checked_name(full, name, needs_tag=not options.random_weights and options.weights is None)
    config = open_clip.get_pretrained_cfg(architecture, tag) if tag else {}
    built_in = open_clip.get_model_config(architecture)
    quick = bool(config.get("quick_gelu") or built_in.get("quick_gelu"))
    size = checked_size(options.input_size if options.input_size is not None else built_in["vision_cfg"]["image_size"])
    file = own_weights(full, options)
    if options.random_weights:
        origin = RANDOM
    elif file is not None:
        origin = f"file {file}"
    else:
        with hub_weights(full):
            file = open_clip.download_pretrained(config)
        origin = f"open_clip, {config.get('hf_hub') or config.get('url')}"
    with seeded():
        try:
            model = open_clip.create_model(
                architecture,
                pretrained=str(file) if file else None,
                force_quick_gelu=quick,
                force_image_size=size[0] if size[0] == size[1] else size,
                pretrained_hf=False,
            )
        except TypeError as problem:
            raise InputError(f"{full} cannot look at images of {size_text(size)}: {problem}") from problem
        except (RuntimeError, ValueError, KeyError, OSError, EOFError) as problem:
            raise InputError(f"{full}: {origin} does not hold its weights: {first_line(problem)}") from problem
    tower = model.visual
    check_patches(full, size, getattr(tower, "patch_size", None))
    timm_info = getattr(getattr(tower, "trunk", None), "feature_info", None)
    if timm_info is not None:
        stages = tuple(f"trunk.{stage['module']}" for stage in getattr(timm_info, "info", timm_info))
    elif hasattr(tower, "transformer"):
        stages = tuple(f"transformer.resblocks.{i}" for i in range(len(tower.transformer.resblocks)))
    else:
        stages = ("layer1", "layer2", "layer3", "layer4")
    network = Network(
        full,
        tower,
        model.encode_image,
        stages=stages,
        tokens=(1, math.prod(tower.grid_size)) if hasattr(tower, "class_embedding") else None,
        input_size=size,
        resizable=True,
        mean=tuple(config.get("mean", open_clip.OPENAI_DATASET_MEAN)),
        std=tuple(config.get("std", open_clip.OPENAI_DATASET_STD)),
        weights=origin,
        random_weights=options.random_weights,
        options={"quick_gelu": quick},
        packages=("torch", "open_clip_torch"),
    )
    return NetworkObserver(network, **options.looking)


def _checked_name(full: str, name: str, *, needs_tag: bool) -> tuple[str, str]:
    import open_clip

    architecture, _, tag = name.partition("/")
    if architecture not in open_clip.list_models():
        near = difflib.get_close_matches(architecture, open_clip.list_models(), n=5, cutoff=0.5)
        raise unknown_name("observer", full, (f"open_clip:{each}/TAG" for each in near))
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if (tag and tag not in tags) or (needs_tag and not tag):
        raise unknown_name("observer", full, (f"open_clip:{architecture}/{each}" for each in tags))
    return architecture, tag
