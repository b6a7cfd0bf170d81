"""Tools with weights: SAM through transformers, inpainting and instruction editing through diffusers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.errors import InputError, PsyprobeError, WeightsError
from psyprobe.tasks.mvp_construction.manipulation import Image, Mask
from psyprobe.tasks.mvp_construction.tools import ToolCard, versions

#: Latents are an eighth of the image, and the network halves them up to three times more.
_MULTIPLE = 64


class SamSegmenter:
    """SAM or SAM 2, asked for masks over a grid of points: the mask-generation pipeline of transformers.

    Parameters
    ----------
    model : str
        Folder, or name on the model hub; "facebook/sam-vit-huge" is what the paper names.
    device : str
        Torch device.
    **settings : float
        Of the pipeline's call (points_per_crop, pred_iou_thresh, stability_score_thresh ...); its defaults without.

    Raises
    ------
    PsyprobeError
        transformers is not installed.
    WeightsError
        The model is not to be had.
    """

    def __init__(self, model: str, *, device: str = "cpu", **settings: Any) -> None:
        try:
            from transformers import pipeline
        except ImportError as error:
            raise PsyprobeError("segmenter sam needs transformers: pip install 'psyprobe[zoo]'") from error
        try:
            self._pipeline = pipeline("mask-generation", model=model, device=device)
        except (OSError, ValueError) as error:
            raise _absent("sam", model, error) from error
        self._settings = {"points_per_batch": 64, **settings}
        random = bool(getattr(self._pipeline.model.config, "random_weights", False))
        self.card = ToolCard(
            f"sam:{model}", self._settings, versions("torch", "transformers"), model, random_weights=random
        )

    def masks(self, image: Image) -> Mask:
        """The masks that pass the pipeline's thresholds."""
        from PIL import Image as Picture

        found = self._pipeline(Picture.fromarray(image), **self._settings)["masks"]
        masks = [np.asarray(mask, dtype=bool) for mask in found]
        return np.stack(masks) if masks else np.zeros((0, *image.shape[:2]), dtype=bool)


class DiffusionInpainter:
    """Stable Diffusion for inpainting: the hole is filled with what the caption says.

    Parameters
    ----------
    model : str
        Folder, or name on the model hub.
    steps : int
        Of denoising; 50 in the paper.
    guidance : float
        Scale of classifier-free guidance; 10 in the paper.
    longest : int
        Longer side that the image is shown to the network at, px.
    device : str
        Torch device.

    Raises
    ------
    PsyprobeError
        diffusers is not installed.
    WeightsError
        The model is not to be had.
    """

    def __init__(
        self, model: str, *, steps: int = 50, guidance: float = 10.0, longest: int = 512, device: str = "cpu"
    ) -> None:
        self._pipeline = _diffusion("StableDiffusionInpaintPipeline", "inpaint", model, device)
        self._call = {"num_inference_steps": steps, "guidance_scale": guidance}
        self._longest = _checked_longest(longest)
        self.card = _diffusion_card(f"inpaint:{model}", model, self._pipeline, self._call | {"longest": longest})

    def inpaint(self, image: Image, hole: Mask, caption: str, seed: int) -> Image:
        """The image with its hole filled; outside of it the autoencoder changes it slightly."""
        from PIL import Image as Picture

        width, height = _network_size(image, self._longest)
        shown = Picture.fromarray(image).resize((width, height), Picture.Resampling.LANCZOS)
        mask = Picture.fromarray(hole.astype(np.uint8) * np.uint8(255))
        mask = mask.resize((width, height), Picture.Resampling.NEAREST)
        made = self._pipeline(
            prompt=caption,
            image=shown,
            mask_image=mask,
            height=height,
            width=width,
            generator=_generator(seed),
            **self._call,
        ).images[0]
        return _at_size(made, image)


class InstructEditor:
    """InstructPix2Pix: the image after an instruction in words.

    Parameters
    ----------
    model : str
        Folder, or name on the model hub; the paper's is "timbrooks/instruct-pix2pix".
    steps : int
        Of denoising.
    guidance, image_guidance : float
        Scales of guidance by the instruction and by the image.
    longest : int
        Longer side that the image is shown to the network at, px.
    device : str
        Torch device.

    Raises
    ------
    PsyprobeError
        diffusers is not installed.
    WeightsError
        The model is not to be had.
    """

    def __init__(
        self,
        model: str,
        *,
        steps: int = 50,
        guidance: float = 7.5,
        image_guidance: float = 1.5,
        longest: int = 512,
        device: str = "cpu",
    ) -> None:
        self._pipeline = _diffusion("StableDiffusionInstructPix2PixPipeline", "instruct", model, device)
        self._call = {
            "num_inference_steps": steps,
            "guidance_scale": guidance,
            "image_guidance_scale": image_guidance,
        }
        self._longest = _checked_longest(longest)
        self.card = _diffusion_card(f"instruct:{model}", model, self._pipeline, self._call | {"longest": longest})

    def edit(self, image: Image, instruction: str, seed: int) -> Image:
        """The image after an instruction."""
        from PIL import Image as Picture

        shown = Picture.fromarray(image).resize(_network_size(image, self._longest), Picture.Resampling.LANCZOS)
        made = self._pipeline(prompt=instruction, image=shown, generator=_generator(seed), **self._call).images[0]
        return _at_size(made, image)


def _diffusion(pipeline: str, kind: str, model: str, device: str) -> Any:
    try:
        import diffusers
    except ImportError as error:
        raise PsyprobeError(f"tool {kind} needs diffusers: pip install 'psyprobe[zoo]'") from error
    try:
        loaded = getattr(diffusers, pipeline).from_pretrained(model).to(device)
    except (OSError, ValueError) as error:
        raise _absent(kind, model, error) from error
    loaded.set_progress_bar_config(disable=True)
    return loaded


def _absent(kind: str, model: str, error: Exception) -> WeightsError:
    first = str(error).strip().partition("\n")[0]
    return WeightsError(
        f"{kind}:{model} cannot be loaded ({first}); give a folder that holds it, or a name on the model hub while "
        "there is a network"
    )


def _diffusion_card(name: str, model: str, pipeline: Any, settings: dict[str, Any]) -> ToolCard:
    # diffusers drops what it does not know from a loaded configuration, so the mark is read from the file.
    config = Path(model) / "unet" / "config.json"
    random = config.is_file() and bool(json.loads(config.read_text(encoding="utf-8")).get("random_weights", False))
    software = versions("torch", "diffusers", "transformers")
    return ToolCard(
        name, settings | {"scheduler": type(pipeline.scheduler).__name__}, software, model, random_weights=random
    )


def _checked_longest(longest: int) -> int:
    if longest < _MULTIPLE:
        raise InputError(f"longest is {longest} px; give at least {_MULTIPLE}, and what the model was trained at")
    return longest


def _network_size(image: Image, longest: int) -> tuple[int, int]:
    """Width and height that the network takes, the sides as near to their proportion as it allows."""
    height, width = image.shape[:2]
    scale = longest / max(height, width)
    return (
        max(_MULTIPLE, round(width * scale / _MULTIPLE) * _MULTIPLE),
        max(_MULTIPLE, round(height * scale / _MULTIPLE) * _MULTIPLE),
    )


def _generator(seed: int) -> Any:
    import torch

    # On the CPU whatever the device: so the same seed is the same noise everywhere.
    return torch.Generator().manual_seed(seed)


def _at_size(made: Any, image: Image) -> Image:
    from PIL import Image as Picture

    height, width = image.shape[:2]
    return np.asarray(made.convert("RGB").resize((width, height), Picture.Resampling.LANCZOS), dtype=np.uint8)
