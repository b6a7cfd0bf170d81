"""Provide the tools of the image steps: segmenters, inpainters and editors, by name.

Some have no weights: classical substitutes that say what they are. The others run SAM through
transformers, and inpainting and instruction editing through diffusers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture

from psyprobe._typing import FloatArray
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError, PsyprobeError, WeightsError, unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject

Mask = npt.NDArray[np.bool_]
Image = npt.NDArray[np.uint8]

#: Latents are an eighth of the image, and the network halves them up to three times more.
_MULTIPLE = 64


@dataclass(frozen=True)
class ToolCard(Recorded):
    """Description of a tool, to be written beside the images that it made."""

    #: Name by which it is loaded: "felzenszwalb", "sam:FOLDER".
    name: str
    #: Settings with which it runs; plain values that JSON can hold.
    settings: JsonMapping = field(default_factory=dict)
    #: Versions by package.
    software: Mapping[str, str] = field(default_factory=dict)
    #: Folder or name of its weights; empty for a tool without any.
    weights: str = ""
    #: Whether its weights are random, so that its images only show that the machinery works.
    random_weights: bool = False


class Tool(Protocol):
    """Any tool."""

    @property
    def card(self) -> ToolCard:
        """The card that describes the tool."""


class Segmenter(Tool, Protocol):
    """Finds the parts of an image."""

    def masks(self, image: Image) -> Mask:
        """Segment an image (H, W, 3) into masks (N, H, W) of its parts, which may overlap."""


class Inpainter(Tool, Protocol):
    """Fills a hole in an image."""

    def inpaint(self, image: Image, hole: Mask, caption: str, seed: int) -> Image:
        """Fill a hole (H, W) of an image (H, W, 3) with what a caption describes."""


class Editor(Tool, Protocol):
    """Changes an image as a whole, by an instruction."""

    def edit(self, image: Image, instruction: str, seed: int) -> Image:
        """Edit an image (H, W, 3) by an instruction: "change the smile into a frown"."""


@contextmanager
def _loading(tool: str, library: str, extra: str, model: str = "") -> Iterator[None]:
    """Turn errors of loading a tool within the block into one sentence of what it lacks."""
    try:
        yield
    except ImportError as error:
        raise PsyprobeError(
            f"tool {tool} needs {library}: pip install 'psyprobe[{extra}]'"
        ) from error
    except (OSError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise WeightsError(
            f"{tool}:{model} cannot be loaded ({first}); give a folder that holds it, or a name "
            "on the model hub while "
            "there is a network"
        ) from error


def _versions(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages by name."""
    return {
        name: str(getattr(import_module(name), "__version__", "unknown"))
        for name in packages
    }


# -- without weights


class RegionSegmenter:
    """The regions of a classical segmentation, one mask each.

    Parameters
    ----------
    method : {"felzenszwalb", "slic"}
        Graph-based segmentation (scale, sigma, min_size), or superpixels (n_segments, compactness,
        sigma).
    **settings : float
        Settings of scikit-image's method, which the card repeats.

    Raises
    ------
    InputError
        There is no such setting.
    PsyprobeError
        scikit-image is not installed.

    References
    ----------
    Felzenszwalb & Huttenlocher (2004). Efficient graph-based image segmentation. IJCV 59. Achanta
    et al. (2012). SLIC superpixels compared to state-of-the-art superpixel methods. IEEE TPAMI 34.
    """

    def __init__(self, method: str = "felzenszwalb", **settings: Any) -> None:
        defaults = {
            "felzenszwalb": {"scale": 400.0, "sigma": 0.8, "min_size": 400},
            "slic": {"n_segments": 12, "compactness": 10.0, "sigma": 1.0},
        }
        unknown = sorted(set(settings) - set(defaults[method]))
        if unknown:
            raise InputError(
                f"{method} has no setting {unknown[0]!r}; it has {', '.join(defaults[method])}"
            )
        self._method = method
        self._settings = {**defaults[method], **settings}
        with _loading(method, "scikit-image", "corruption"):
            self.card = ToolCard(method, self._settings, _versions("skimage"))

    def masks(self, image: Image) -> Mask:
        """Segment an image by colour regions, each with what it encloses."""
        from scipy.ndimage import binary_fill_holes
        from skimage import segmentation

        segment = getattr(segmentation, self._method)
        labels = np.asarray(segment(image, channel_axis=-1, **self._settings))
        return np.stack(
            [binary_fill_holes(labels == label) for label in np.unique(labels)]
        )


class SmoothInpainter:
    """Fills a hole smoothly from its rim (pull-push); it does not know what the caption says.

    The image is halved until no hole is left, averaging known pixels alone; then the holes of each
    size are filled from the next smaller one.

    References
    ----------
    Gortler, Grzeszczuk, Szeliski & Cohen (1996). The lumigraph. SIGGRAPH, section 3.4.
    """

    card = ToolCard("pull_push", {"caption": "not used"})

    def inpaint(self, image: Image, hole: Mask, caption: str, seed: int) -> Image:
        """Fill a hole of an image smoothly from its rim."""
        light: FloatArray = np.asarray(image, dtype=np.float32)
        weight: FloatArray = (~hole).astype(np.float32)[..., None]
        levels = [(light, weight)]
        while (weight == 0).any() and weight.size > 1:
            size = (-(-weight.shape[0] // 2), -(-weight.shape[1] // 2))
            weighted = resized(light * weight, size, Picture.Resampling.BOX)
            weight = resized(weight, size, Picture.Resampling.BOX)
            light = weighted / np.maximum(weight, 1e-6)
            levels.append((light, weight))
        filled: FloatArray = np.where(weight > 0, light, np.float32(127.5))
        for light, weight in levels[-2::-1]:
            enlarged = resized(filled, weight.shape[:2], Picture.Resampling.BILINEAR)
            filled = np.where(weight > 0, light, enlarged)
        return np.clip(np.rint(filled), 0, 255).astype(np.uint8)


def resized(channels: FloatArray, size: tuple[int, ...], kind: Any) -> FloatArray:
    """Resize channels (H, W, C) to another height and width, in float32."""
    height, width = size
    planes = [
        Picture.fromarray(channels[..., k].astype(np.float32))
        for k in range(channels.shape[-1])
    ]
    return np.stack(
        [np.asarray(plane.resize((width, height), kind)) for plane in planes], axis=-1
    )


class RecolourEditor:
    """Turns the colours of an image by a drawn angle; it does not know what the instruction says.

    A stand-in where no editing model is at hand. In opponent channels (grey, red-green,
    yellow-blue) the two colour channels are turned, so lightness stays about the same.
    """

    card = ToolCard("recolour", {"instruction": "not used"})

    def edit(self, image: Image, instruction: str, seed: int) -> Image:
        """Edit an image by turning its colours, whatever the instruction."""
        angle = np.deg2rad(np.random.default_rng(seed).uniform(90, 270))
        axes = np.array([[1, 1, 1], [1, -1, 0], [1, 1, -2]]) / np.sqrt([[3], [2], [6]])
        cosine = np.cos(angle)
        sine = np.sin(angle)
        turn = np.array(
            [[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]], dtype=np.float64
        )
        turned = np.asarray(image, dtype=np.float64) @ (axes.T @ turn @ axes).T
        return np.clip(np.rint(turned), 0, 255).astype(np.uint8)


# -- with weights


class SamSegmenter:
    """SAM or SAM 2, run over a grid of points by transformers' mask-generation pipeline.

    Parameters
    ----------
    model : str
        Folder, or name on the model hub; "facebook/sam-vit-huge" is what the paper names.
    device : str
        Torch device.
    **settings : float
        Settings of the pipeline's call (points_per_crop, pred_iou_thresh, stability_score_thresh
        ...).

    Raises
    ------
    PsyprobeError
        transformers is not installed.
    WeightsError
        The model is not to be had.
    """

    def __init__(self, model: str, *, device: str = "cpu", **settings: Any) -> None:
        with _loading("sam", "transformers", "zoo", model):
            from transformers import pipeline

            self._pipeline = pipeline("mask-generation", model=model, device=device)
        self._settings = {"points_per_batch": 64, **settings}
        random = bool(getattr(self._pipeline.model.config, "random_weights", False))
        software = _versions("torch", "transformers")
        self.card = ToolCard(f"sam:{model}", self._settings, software, model, random)

    def masks(self, image: Image) -> Mask:
        """Segment an image by SAM, keeping the masks that pass its thresholds."""
        output = self._pipeline(Picture.fromarray(image), **self._settings)
        masks = [np.asarray(mask) for mask in output["masks"]]
        return np.array(masks, dtype=bool).reshape(-1, *image.shape[:2])


class _DiffusionTool:
    """A pipeline of diffusers that takes an image and words, and its scales of guidance."""

    _kind: str
    _class: str

    def __init__(
        self,
        model: str,
        guidance: Mapping[str, float],
        *,
        steps: int = 50,
        longest: int = 512,
        device: str = "cpu",
    ) -> None:
        if longest < _MULTIPLE:
            raise InputError(
                f"longest is {longest} px; give at least {_MULTIPLE}, and what the model was "
                "trained at"
            )
        with _loading(self._kind, "diffusers", "zoo", model):
            import diffusers

            self._pipeline = (
                getattr(diffusers, self._class).from_pretrained(model).to(device)
            )
        self._pipeline.set_progress_bar_config(disable=True)
        self._longest = longest
        self._call = {"num_inference_steps": steps, **guidance}
        # diffusers drops what it does not know from a loaded configuration, so the mark is read
        # from the file.
        config = Path(model) / "unet" / "config.json"
        random = config.is_file() and bool(
            json.loads(config.read_text(encoding="utf-8")).get("random_weights", False)
        )
        settings = {
            **self._call,
            "longest": longest,
            "scheduler": type(self._pipeline.scheduler).__name__,
        }
        software = _versions("torch", "diffusers", "transformers")
        self.card = ToolCard(f"{self._kind}:{model}", settings, software, model, random)

    def _run(
        self, image: Image, words: str, seed: int, hole: Mask | None = None
    ) -> Image:
        """Run the diffusion network at a size it takes, as near in proportion as can be."""
        import torch

        height, width = image.shape[:2]
        scale = self._longest / max(height, width)
        size = tuple(
            max(_MULTIPLE, round(side * scale / _MULTIPLE) * _MULTIPLE)
            for side in (width, height)
        )
        inputs: JsonObject = {}
        if hole is not None:
            mask = Picture.fromarray(hole.astype(np.uint8) * np.uint8(255))
            mask = mask.resize(size, Picture.Resampling.NEAREST)
            inputs = {"mask_image": mask, "width": size[0], "height": size[1]}
        output = self._pipeline(
            prompt=words,
            image=Picture.fromarray(image).resize(size, Picture.Resampling.LANCZOS),
            # On the CPU whatever the device: so the same seed is the same noise everywhere.
            generator=torch.Generator().manual_seed(seed),
            **inputs,
            **self._call,
        ).images[0]
        picture = output.convert("RGB").resize(
            (width, height), Picture.Resampling.LANCZOS
        )
        return np.asarray(picture, dtype=np.uint8)


class DiffusionInpainter(_DiffusionTool):
    """Stable Diffusion for inpainting: the hole is filled with what the caption says.

    Parameters
    ----------
    model : str
        Folder, or name on the model hub.
    steps : int
        Steps of denoising; 50 in the paper.
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

    _kind = "inpaint"
    _class = "StableDiffusionInpaintPipeline"

    def __init__(self, model: str, *, guidance: float = 10.0, **settings: Any) -> None:
        super().__init__(model, {"guidance_scale": guidance}, **settings)

    def inpaint(self, image: Image, hole: Mask, caption: str, seed: int) -> Image:
        """Fill a hole of an image by a diffusion network, with what a caption describes."""
        return self._run(image, caption, seed, hole)


class InstructEditor(_DiffusionTool):
    """InstructPix2Pix: the image after an instruction in words.

    Parameters
    ----------
    model : str
        Folder, or name on the model hub; the paper's is "timbrooks/instruct-pix2pix".
    steps : int
        Steps of denoising.
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

    _kind = "instruct"
    _class = "StableDiffusionInstructPix2PixPipeline"

    def __init__(
        self,
        model: str,
        *,
        guidance: float = 7.5,
        image_guidance: float = 1.5,
        **settings: Any,
    ) -> None:
        scales = {"guidance_scale": guidance, "image_guidance_scale": image_guidance}
        super().__init__(model, scales, **settings)

    def edit(self, image: Image, instruction: str, seed: int) -> Image:
        """Edit an image by a diffusion network that follows an instruction."""
        return self._run(image, instruction, seed)


# -- by name, as they stand on a command line

#: Tools by kind and name; a MODEL is a folder or a name on the model hub.
_TOOLS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "segmenter": {
        "felzenszwalb": partial(RegionSegmenter, "felzenszwalb"),
        "slic": partial(RegionSegmenter, "slic"),
        "sam:MODEL": SamSegmenter,
    },
    "inpainter": {"pull_push": SmoothInpainter, "inpaint:MODEL": DiffusionInpainter},
    "editor": {"recolour": RecolourEditor, "instruct:MODEL": InstructEditor},
}


def load_tool(kind: str, name: str, **settings: Any) -> Any:
    """Load a segmenter, an inpainter or an editor of images.

    Parameters
    ----------
    kind : {"segmenter", "inpainter", "editor"}
        Step of the image that it carries out.
    name : str
        "felzenszwalb", "slic" or "sam:MODEL"; "pull_push" or "inpaint:MODEL"; "recolour" or
        "instruct:MODEL": MODEL is a folder or a name on the model hub.
    **settings
        Settings of the tool.

    Raises
    ------
    UnknownNameError
        There is none of that name.
    PsyprobeError
        A library or a model that it needs is missing.

    Examples
    --------
    >>> type(load_tool("segmenter", "slic")).__name__
    'RegionSegmenter'
    """
    family, _, model = name.partition(":")
    entry = f"{family}:MODEL" if model else name
    if entry not in _TOOLS[kind] or name.endswith(":MODEL"):
        raise unknown_name(kind, name, _TOOLS[kind])
    try:
        return _TOOLS[kind][entry](*([model] if model else []), **settings)
    except TypeError as error:
        raise InputError(
            f"{name}: {str(error).partition('() ')[2]}; its settings are in "
            "docs/mvp_construction.md"
        ) from None
