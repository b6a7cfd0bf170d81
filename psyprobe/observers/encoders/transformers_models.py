"""Image encoders of the transformers library that timm holds in part: "vit_mae:OWNER/MODEL", "sam2:OWNER/MODEL"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psyprobe.errors import unknown_name
from psyprobe.observers.encoders.network import Network, NetworkObserver
from psyprobe.observers.encoders.options import HubOptions
from psyprobe.observers.encoders.weights import RANDOM, hub_weights, seeded
from psyprobe.observers.registry import register_observer

INSTALL = "pip install 'psyprobe[zoo]'"
#: Both were trained with ImageNet's mean and standard deviation.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

#: Share of the patches that a masked autoencoder did not see in training, nor in the published runs.
MASK_RATIO = 0.75
#: Length of the one noise vector by which the published runs chose their patches, whatever the model.
_PUBLISHED_PATCHES = 196

#: The architectures by the end of their repository's name: He et al. (2022), appendix.
_MAE_FIELDS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "patch_size")
_MAE = {"base": (768, 12, 12, 3072, 16), "large": (1024, 24, 16, 4096, 16), "huge": (1280, 32, 16, 5120, 14)}

#: width, heads, blocks a stage, blocks that attend globally, side of the position background, windows: the published
#: configurations of SAM 2.1.
_SAM2: dict[str, tuple[int, int, tuple[int, ...], tuple[int, ...], int, tuple[int, ...]]] = {
    "tiny": (96, 1, (1, 2, 7, 2), (5, 7, 9), 7, (8, 4, 14, 7)),
    "small": (96, 1, (1, 2, 11, 2), (7, 10, 13), 7, (8, 4, 14, 7)),
    "base-plus": (112, 2, (2, 3, 16, 3), (12, 16, 20), 14, (8, 4, 14, 7)),
    "large": (144, 2, (2, 6, 36, 4), (23, 33, 43), 7, (8, 4, 16, 8)),
}


@dataclass(frozen=True)
class MaskedOptions(HubOptions):
    """A masked autoencoder.

    Parameters
    ----------
    mask_seed : int, optional
        Drop 75 % of the patches, the same ones in every image, chosen by a vector of 196 random numbers with this
        seed. The published runs did, with seed 8; ViT-H has 256 patches, of which the last 60 are then never seen.
        By default every patch is seen.
    """

    mask_seed: int | None = None


@register_observer(
    "vit_mae",
    form="vit_mae:OWNER/MODEL",
    summary="a masked autoencoder of the transformers library: class and patch tokens of its encoder",
    requires=("torch", "transformers"),
    install=INSTALL,
    options=MaskedOptions,
)
def load_vit_mae(name: str, options: MaskedOptions) -> NetworkObserver:
    """The encoder of a masked autoencoder, by its repository on the model hub: "facebook/vit-mae-base".

    With random weights the name must end in "base", "large" or "huge".
    """
    from transformers import ViTMAEModel

    full = f"vit_mae:{name}"
    with seeded() if options.random_weights else hub_weights(full):
        module = ViTMAEModel(vit_mae_config(name)) if options.random_weights else ViTMAEModel.from_pretrained(name)
    return mae_observer(full, module, options.random_weights, options.mask_seed, **options.looking)


def vit_mae_config(name: str) -> Any:
    """The architecture of a masked autoencoder of He et al., whose name ends in "base", "large" or "huge"."""
    from transformers import ViTMAEConfig

    return ViTMAEConfig(**dict(zip(_MAE_FIELDS, _architecture(f"vit_mae:{name}", name, _MAE), strict=True)))


def mae_observer(
    full: str, module: Any, random_weights: bool = False, mask_seed: int | None = None, **options: Any
) -> NetworkObserver:
    """A masked autoencoder that is in memory already, a ``transformers.ViTMAEModel``, as an observer called `full`."""
    import torch

    config = module.config
    patches = (config.image_size // config.patch_size) ** 2
    config.mask_ratio = 0.0 if mask_seed is None else MASK_RATIO
    # The library shuffles patches by this noise even where it keeps all of them.
    order = torch.arange(patches, dtype=torch.float32)[None]
    if mask_seed is not None:
        order = torch.rand(1, _PUBLISHED_PATCHES, generator=torch.Generator().manual_seed(mask_seed))

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
        weights=RANDOM if random_weights else f"transformers, {full.partition(':')[2]}",
        random_weights=random_weights,
        licence=None if random_weights else "CC-BY-NC-4.0",
        paper="He et al. 2022, Masked autoencoders are scalable vision learners, CVPR",
        options={} if mask_seed is None else {"mask_seed": mask_seed, "mask_ratio": MASK_RATIO},
        packages=("torch", "transformers"),
        mean=_MEAN,
        std=_STD,
    )
    return NetworkObserver(network, **options)


@register_observer(
    "sam2",
    form="sam2:OWNER/MODEL",
    summary="the image embedding of Segment Anything 2, after its neck",
    requires=("torch", "transformers"),
    install=INSTALL,
    options=HubOptions,
)
def load_sam2(name: str, options: HubOptions) -> NetworkObserver:
    """The image encoder of Segment Anything 2: the map of 256 x 64 x 64 that its mask decoder gets.

    The name is that of a repository on the model hub, "facebook/sam2.1-hiera-tiny"; with random weights it must end in
    "tiny", "small", "base-plus" or "large".
    """
    from transformers import Sam2Model

    full = f"sam2:{name}"
    random = options.random_weights
    with seeded() if random else hub_weights(full):
        module = Sam2Model(sam2_config(name)) if random else Sam2Model.from_pretrained(name)
    side = int(module.config.vision_config.backbone_config.image_size[0])

    network = Network(
        full,
        module,
        lambda images: module.get_image_embeddings(images)[-1],
        input_size=(side, side),
        weights=RANDOM if random else f"transformers, {name}",
        random_weights=random,
        licence=None if random else "Apache-2.0",
        paper="Ravi et al. 2024, SAM 2: segment anything in images and videos, arXiv 2408.00714",
        packages=("torch", "transformers"),
        mean=_MEAN,
        std=_STD,
    )
    return NetworkObserver(network, **options.looking)


def sam2_config(name: str) -> Any:
    """The architecture of a SAM 2.1 model, whose name ends in "tiny", "small", "base-plus" or "large"."""
    from transformers import Sam2Config, Sam2HieraDetConfig, Sam2VisionConfig

    width, heads, blocks, everywhere, background, windows = _architecture(f"sam2:{name}", name, _SAM2)
    widths = [width * 2**stage for stage in range(4)]
    backbone = Sam2HieraDetConfig(
        hidden_size=width,
        num_attention_heads=heads,
        blocks_per_stage=list(blocks),
        embed_dim_per_stage=widths,
        num_attention_heads_per_stage=[heads * 2**stage for stage in range(4)],
        window_size_per_stage=list(windows),
        global_attention_blocks=list(everywhere),
        window_positional_embedding_background_size=[background, background],
    )
    return Sam2Config(vision_config=Sam2VisionConfig(backbone_config=backbone, backbone_channel_list=widths[::-1]))


def _architecture(full: str, name: str, known: Mapping[str, Any]) -> Any:
    for size, architecture in known.items():
        if name.endswith(size):
            return architecture
    raise unknown_name("observer", full, [f"{full.partition(':')[0]}:...-{size}" for size in known])
