"""Load encoders of four libraries: timm, open_clip, diffusers and transformers.

Their names are "timm:NAME[.TAG]", "open_clip:ARCH/TAG", "diffusers:OWNER/MODEL", and, of
transformers, "vit_mae:OWNER/MODEL" and "sam2:OWNER/MODEL", parts of which timm holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from psyprobe.errors import WeightsError, check_known, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import packaged_toml
from psyprobe.observers.encoders import network as nets
from psyprobe.observers.encoders.network import (
    EncoderOptions,
    FileOptions,
    HubOptions,
    Network,
    NetworkObserver,
)
from psyprobe.observers.images import check_patches, size_text

#: Published architectures: of vit_mae and sam2 by the end of their repository's name.
_ARCHITECTURES = packaged_toml("psyprobe.observers.encoders", "architectures.toml")
#: Both of transformers were trained with ImageNet's mean and standard deviation.
_TRANSFORMERS: JsonObject = {
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
    "packages": ("torch", "transformers"),
}

#: Share of the patches that a masked autoencoder did not see in training, nor in the published
#: runs.
MASK_RATIO = 0.75
#: Length of the one noise vector by which the published runs chose their patches, whatever the
#: model.
_PUBLISHED_PATCHES = 196


def load_timm(name: str, options: FileOptions) -> NetworkObserver:
    """Load an encoder of timm, by architecture and tag: "vit_small_patch14_dinov2.lvd142m"."""
    import timm

    full = f"timm:{name}"
    architecture, _, tag = name.partition(".")
    nets.check_architecture(full, architecture, timm.list_models())
    if tag:
        tags = timm.list_models(f"{architecture}.*", pretrained=True)
        check_known("observer", [full], [f"timm:{tag_name}" for tag_name in tags])
    native = timm.get_pretrained_cfg(name)
    native_size = native.input_size[1:]
    size = options.size(native_size)
    other = native.fixed_input_size and size != tuple(native_size)
    arguments: JsonObject = {"img_size": size} if other else {}
    file = nets.own_weights(full, options)
    if options.random_weights:
        origin = nets.RANDOM
        with nets.seeded():
            module = create(full, name, size, arguments)
    elif file is not None:
        origin = f"file {file}"
        overlay = {"file": str(file), "custom_load": file.suffix == ".npz"}
        arguments |= {"pretrained": True, "pretrained_cfg_overlay": overlay}
        with nets.read_weights(full, file):
            module = create(full, name, size, arguments)
    elif not native.has_weights:
        raise WeightsError(
            f"timm has no trained weights for {full}: name a file with weights=FILE, or another "
            "encoder"
        )
    else:
        with nets.hub_weights(full):
            module = create(full, name, size, arguments | {"pretrained": True})
        config = module.pretrained_cfg
        origin = f"timm, {config.get('hf_hub_id') or config.get('url')}"
    network = timm_network(full, module, input_size=size, weights=origin)
    return NetworkObserver(network, options)


def create(full: str, name: str, size: tuple[int, ...], arguments: JsonObject) -> Any:
    """Build a timm network for images of a size.

    Raises
    ------
    InputError
        If the network cannot look at images of this size, or would leave a margin of them unseen.
    """
    import timm

    refusals = (AssertionError, TypeError) if "img_size" in arguments else ()
    with nets.explained(
        f"{full} cannot look at images of {size_text(size)}", *refusals
    ):
        module = timm.create_model(name, **arguments)
    check_patches(
        full, size, getattr(getattr(module, "patch_embed", None), "patch_size", None)
    )
    return module


def timm_network(full: str, module: Any, **network_fields: Any) -> Network:
    """Describe a timm network (layers, input size, normalisation) as a `Network`.

    Its main feature is the embedding that the classifier would get: pooled, or the class token, as
    the network was trained; its stages are those that timm names in ``feature_info``.
    """
    config = module.pretrained_cfg
    prefix = getattr(module, "num_prefix_tokens", 0)
    patches = getattr(getattr(module, "patch_embed", None), "num_patches", 0)
    fields: JsonObject = {
        "stages": _timm_stages(module),
        "tokens": (prefix, patches) if prefix and patches else None,
        "resizable": True,
        "mean": tuple(config["mean"]),
        "std": tuple(config["std"]),
        "licence": config.get("license"),
        "paper": ", ".join(
            filter(None, (config.get("paper_name"), config.get("paper_ids")))
        )
        or None,
        "packages": ("torch", "timm"),
        "channels_last": True,
    }

    def embed(images: Any) -> Any:
        return module.forward_head(module.forward_features(images), pre_logits=True)

    return Network(full, module, embed, **(fields | network_fields))


def _timm_stages(module: Any) -> tuple[str, ...]:
    """List the module names of a timm network's stages."""
    info = module.feature_info
    stages = (stage["module"] for stage in getattr(info, "info", info))
    return tuple(dict.fromkeys(stages))


def load_open_clip(name: str, options: FileOptions) -> NetworkObserver:
    """Load the image tower of a CLIP, by architecture and tag: "ViT-B-32/laion2b_s34b_b79k".

    The tag may be left out with random weights or a file. Whether its activations are QuickGELU or
    GELU follows from the tag, because the weights were trained with the one or the other; open_clip
    itself only warns. The card records it as ``options["quick_gelu"]``.
    """
    import open_clip

    full = f"open_clip:{name}"
    architecture, _, tag = name.partition("/")
    nets.check_architecture(full, architecture, open_clip.list_models(), "/TAG")
    if tag or not (options.random_weights or options.weights):
        tags = open_clip.list_pretrained_tags_by_model(architecture)
        names = [f"open_clip:{architecture}/{candidate}" for candidate in tags]
        check_known("observer", [full], names)
    config = open_clip.get_pretrained_cfg(architecture, tag) if tag else {}
    built_in = open_clip.get_model_config(architecture)
    quick = bool(config.get("quick_gelu") or built_in.get("quick_gelu"))
    size = options.size(built_in["vision_cfg"]["image_size"])
    file = nets.own_weights(full, options)
    if options.random_weights:
        origin = nets.RANDOM
    elif file is not None:
        origin = f"file {file}"
    else:
        with nets.hub_weights(full):
            file = open_clip.download_pretrained(config)
        origin = f"open_clip, {config.get('hf_hub') or config.get('url')}"
    with (
        nets.seeded(),
        nets.read_weights(full, file or origin),
        nets.explained(f"{full} cannot look at images of {size_text(size)}", TypeError),
    ):
        model = open_clip.create_model(
            architecture,
            pretrained=str(file) if file else None,
            force_quick_gelu=quick,
            force_image_size=size[0] if size[0] == size[1] else size,
            pretrained_hf=False,
        )
    tower = model.visual
    check_patches(full, size, getattr(tower, "patch_size", None))
    if hasattr(tower, "trunk"):
        stages = tuple(f"trunk.{stage}" for stage in _timm_stages(tower.trunk))
    elif hasattr(tower, "transformer"):
        blocks = range(len(tower.transformer.resblocks))
        stages = tuple(f"transformer.resblocks.{block}" for block in blocks)
    else:
        stages = ("layer1", "layer2", "layer3", "layer4")
    network = Network(
        full,
        tower,
        model.encode_image,
        stages=stages,
        tokens=(1, math.prod(tower.grid_size))
        if hasattr(tower, "class_embedding")
        else None,
        input_size=size,
        resizable=True,
        mean=tuple(config.get("mean", open_clip.OPENAI_DATASET_MEAN)),
        std=tuple(config.get("std", open_clip.OPENAI_DATASET_STD)),
        weights=origin,
        options={"quick_gelu": quick},
        packages=("torch", "open_clip_torch"),
        channels_last=True,
    )
    return NetworkObserver(network, options)


@dataclass(frozen=True)
class AutoencoderOptions(EncoderOptions):
    """Options of a latent autoencoder, which has no native size: 224 px by default.

    Parameters
    ----------
    sample_seed : int, optional
        One sample of the posterior with this seed, the same noise for every image, instead of its
        mean. The published runs took an unseeded one.
    """

    sample_seed: int | None = None


def load_diffusers(name: str, options: AutoencoderOptions) -> NetworkObserver:
    """Load the autoencoder of a latent diffusion model, by its repository on the hub.

    Whatever `input` says, drive v goes in as 2 v - 1, which is the range it was trained in.
    """
    import torch
    from diffusers import AutoencoderKL

    full = f"diffusers:{name}"
    random = options.random_weights
    sample_seed = options.sample_seed
    with nets.seeded() if random else nets.hub_weights(full):
        module = (
            AutoencoderKL(**_ARCHITECTURES["diffusers"])
            if random
            else AutoencoderKL.from_pretrained(name, subfolder="vae")
        )
    module.decoder = torch.nn.Identity()  # only the encoder looks

    def embed(images: Any) -> Any:
        posterior = module.encode(2 * images - 1).latent_dist
        if sample_seed is None:
            return posterior.mean
        generator = torch.Generator().manual_seed(sample_seed)
        noise = torch.randn(posterior.mean.shape[1:], generator=generator)
        return posterior.mean + posterior.std * noise.to(posterior.mean)

    network = Network(
        full,
        module,
        embed,
        input_size=options.size(224),
        resizable=True,
        weights=f"diffusers, {name}",
        options={} if sample_seed is None else {"sample_seed": sample_seed},
        packages=("torch", "diffusers"),
    )
    return NetworkObserver(network, options)


@dataclass(frozen=True)
class MaskedOptions(HubOptions):
    """Options of a masked autoencoder.

    Parameters
    ----------
    mask_seed : int, optional
        Drop 75 % of the patches, the same ones in every image, chosen by a vector of 196 random
        numbers with this seed. The published runs did, with seed 8; ViT-H has 256 patches, of which
        the last 60 are then never seen. By default every patch is seen.
    """

    mask_seed: int | None = None


def load_vit_mae(name: str, options: MaskedOptions) -> NetworkObserver:
    """Load the encoder of a masked autoencoder, by its repository: "facebook/vit-mae-base".

    With random weights the name must end in "base", "large" or "huge".
    """
    from transformers import ViTMAEModel

    full = f"vit_mae:{name}"
    with nets.seeded() if options.random_weights else nets.hub_weights(full):
        module = (
            ViTMAEModel(vit_mae_config(name))
            if options.random_weights
            else ViTMAEModel.from_pretrained(name)
        )
    return mae_observer(full, module, options)


def vit_mae_config(name: str) -> Any:
    """Build the configuration of a masked autoencoder named "...base", "...large" or "...huge"."""
    from transformers import ViTMAEConfig

    return ViTMAEConfig(**_architecture("vit_mae", name))


def mae_observer(full: str, module: Any, options: MaskedOptions) -> NetworkObserver:
    """Wrap a masked autoencoder, a `transformers.ViTMAEModel`, as an observer."""
    import torch

    config = module.config
    mask_seed = options.mask_seed
    patches = (config.image_size // config.patch_size) ** 2
    config.mask_ratio = 0.0 if mask_seed is None else MASK_RATIO
    # The library shuffles patches by this noise even where it keeps all of them.
    order = torch.arange(patches, dtype=torch.float32)[None]
    if mask_seed is not None:
        order = torch.rand(
            1, _PUBLISHED_PATCHES, generator=torch.Generator().manual_seed(mask_seed)
        )

    def embed(images: Any) -> Any:
        noise = order.to(images.device).expand(len(images), -1)
        return module(pixel_values=images, noise=noise).last_hidden_state

    network = Network(
        full,
        module,
        embed,
        stages=tuple(f"layers.{i}" for i in range(config.num_hidden_layers)),
        tokens=(1, int(patches * (1 - config.mask_ratio))),
        input_size=(config.image_size, config.image_size),
        weights=f"transformers, {full.partition(':')[2]}",
        licence=None if options.random_weights else "CC-BY-NC-4.0",
        paper="He et al. 2022, Masked autoencoders are scalable vision learners, CVPR",
        options={}
        if mask_seed is None
        else {"mask_seed": mask_seed, "mask_ratio": MASK_RATIO},
        **_TRANSFORMERS,
    )
    return NetworkObserver(network, options)


def load_sam2(name: str, options: HubOptions) -> NetworkObserver:
    """Load the image encoder of Segment Anything 2, whose features are 256 x 64 x 64.

    The name is that of a repository on the model hub, "facebook/sam2.1-hiera-tiny"; with random
    weights it must end in "tiny", "small", "base-plus" or "large".
    """
    from transformers import Sam2Model

    full = f"sam2:{name}"
    random = options.random_weights
    with nets.seeded() if random else nets.hub_weights(full):
        module = (
            Sam2Model(sam2_config(name)) if random else Sam2Model.from_pretrained(name)
        )
    side = int(module.config.vision_config.backbone_config.image_size[0])

    network = Network(
        full,
        module,
        lambda images: module.get_image_embeddings(images)[-1],
        input_size=(side, side),
        weights=f"transformers, {name}",
        licence=None if random else "Apache-2.0",
        paper="Ravi et al. 2024, SAM 2: segment anything in images and videos, arXiv 2408.00714",
        **_TRANSFORMERS,
    )
    return NetworkObserver(network, options)


def sam2_config(name: str) -> Any:
    """Build the configuration of a SAM 2.1 model whose name ends in "tiny", "small" ..."""
    from transformers import Sam2Config, Sam2HieraDetConfig, Sam2VisionConfig

    backbone = Sam2HieraDetConfig(**_architecture("sam2", name))
    return Sam2Config(
        vision_config=Sam2VisionConfig(
            backbone_config=backbone,
            backbone_channel_list=backbone.embed_dim_per_stage[::-1],
        )
    )


def _architecture(kind: str, name: str) -> Any:
    """Look up a published architecture by the end of the name of its repository."""
    architectures = _ARCHITECTURES[kind]
    for size, architecture in architectures.items():
        if name.endswith(size):
            return architecture
    raise unknown_name(
        "observer", f"{kind}:{name}", [f"{kind}:...-{size}" for size in architectures]
    )
