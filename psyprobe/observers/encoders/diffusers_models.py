"""Image autoencoders of the diffusers library: "diffusers:OWNER/MODEL"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psyprobe.observers.encoders.images import checked_size
from psyprobe.observers.encoders.network import Network, NetworkObserver
from psyprobe.observers.encoders.options import EncoderOptions
from psyprobe.observers.encoders.weights import RANDOM, hub_weights, seeded
from psyprobe.observers.registry import register_observer

#: The architecture that Stable Diffusion 1 and XL share.
_STABLE_DIFFUSION = {
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "latent_channels": 4,
}


@dataclass(frozen=True)
class AutoencoderOptions(EncoderOptions):
    """A latent autoencoder, which is trained for no size of its own: 224 px unless said otherwise.

    Parameters
    ----------
    sample_seed : int, optional
        One sample of the posterior with this seed, the same noise for every image, instead of its mean. The
        published runs took an unseeded one.
    """

    sample_seed: int | None = None


@register_observer(
    "diffusers",
    form="diffusers:OWNER/MODEL",
    summary="the image encoder of a latent diffusion model; the mean of its latent posterior",
    requires=("torch", "diffusers"),
    install="pip install 'psyprobe[zoo]'",
    options=AutoencoderOptions,
)
def load_diffusers(name: str, options: AutoencoderOptions) -> NetworkObserver:
    """The variational autoencoder of a latent diffusion model, by the hub's repository whose folder "vae" holds it.

    Whatever `input` says, drive v goes in as 2 v - 1, which is the range it was trained in.
    """
    import torch
    from diffusers import AutoencoderKL

    sample_seed = options.sample_seed
    full = f"diffusers:{name}"
    random = options.random_weights
    with seeded() if random else hub_weights(full):
        module = AutoencoderKL(**_STABLE_DIFFUSION) if random else AutoencoderKL.from_pretrained(name, subfolder="vae")
    # only the encoder looks
    module.decoder = torch.nn.Identity()

    def embed(images: Any) -> Any:
        posterior = module.encode(2 * images - 1).latent_dist
        if sample_seed is None:
            return posterior.mean
        generator = torch.Generator().manual_seed(sample_seed)
        noise = torch.randn(posterior.mean.shape[1:], generator=generator).to(posterior.mean)
        return posterior.mean + posterior.std * noise

    network = Network(
        full,
        module,
        embed,
        input_size=checked_size(224 if options.input_size is None else options.input_size),
        resizable=True,
        weights=RANDOM if random else f"diffusers, {name}",
        random_weights=random,
        options={} if sample_seed is None else {"sample_seed": sample_seed},
        packages=("torch", "diffusers"),
    )
    return NetworkObserver(network, **options.looking)
