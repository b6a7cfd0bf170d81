"""Manipulate a photograph as a plan says: which mask is the subject, and where it goes.

The mask is that of equation 1 of the paper, with the ties it leaves open; an image comes with all
that made it. That account stands in a text field of the PNG ("psyprobe", JSON) and in a JSON file
beside the manipulated image.

References
----------
Li et al. (2024). MVP-Bench: Can large vision-language models conduct multi-level visual perception
like humans? Findings of EMNLP, equation 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture
from PIL.PngImagePlugin import PngInfo

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import json_text, write_text, write_whole
from psyprobe.tasks.mvp_construction.tools import (
    Editor,
    Image,
    Inpainter,
    Mask,
    Segmenter,
    ToolCard,
    resized,
)

#: Shapes in which a part is cut out: the whole box, or the mask in it by equation 1.
REGIONS = ("box", "mask")
#: Range of scales of the subject: it stays what one looks at, and leaves room for a background.
SCALES = (0.6, 1.0)


@dataclass(frozen=True)
class Box:
    """A rectangle on an image, in fractions of its width and height, so that it holds at any size.

    Raises
    ------
    InputError
        It is empty or reaches beyond the image.

    Examples
    --------
    >>> Box(0.5, 0.0, 0.25, 1.0)
    Traceback (most recent call last):
    psyprobe.errors.InputError: box [0.5, 0.0, 0.25, 1.0] is empty or leaves the image; ...
    0 <= left < right <= 1 ...
    """

    #: From 0 at the left and top edges to 1 at the right and bottom ones.
    left: float
    top: float
    right: float
    bottom: float

    def __post_init__(self) -> None:
        if not (0 <= self.left < self.right <= 1 and 0 <= self.top < self.bottom <= 1):
            raise InputError(
                f"box {self.to_list()} is empty or leaves the image; give left, top, right, "
                "bottom in fractions of its "
                "size: 0 <= left < right <= 1 and 0 <= top < bottom <= 1"
            )

    def to_list(self) -> list[float]:
        """Return the box as left, top, right and bottom, fractions of the image."""
        return [self.left, self.top, self.right, self.bottom]

    def mask(self, height: int, width: int) -> Mask:
        """Build the mask of pixels whose centres lie in the box.

        Examples
        --------
        >>> Box(0, 0.5, 0.5, 1).mask(2, 4).astype(int)
        array([[0, 0, 0, 0],
               [1, 1, 0, 0]])
        """
        x = (np.arange(width) + 0.5) / width
        y = (np.arange(height) + 0.5) / height
        columns = (x >= self.left) & (x < self.right)
        rows = (y >= self.top) & (y < self.bottom)
        inside: Mask = rows[:, None] & columns
        return inside


def overlap(masks: Mask, box: Box) -> npt.NDArray[np.int64]:
    """Count the pixels that each mask shares with a box.

    Parameters
    ----------
    masks : ndarray of bool, shape (..., H, W)
        One or more masks.
    box : Box
        Box of the subject.

    Returns
    -------
    ndarray of int, shape (...)
        Number of true pixels inside the box: plain intersection, not over union.

    Examples
    --------
    >>> int(overlap(np.ones((2, 4), dtype=bool), Box(0, 0.5, 0.5, 1)))
    2
    """
    masks = np.asarray(masks, dtype=bool)
    return np.asarray(
        np.sum(masks & box.mask(*masks.shape[-2:]), axis=(-2, -1)), dtype=np.int64
    )


def choose_mask(masks: Mask, box: Box) -> int:
    """Choose the mask that shares the greatest area with a box.

    Parameters
    ----------
    masks : ndarray of bool, shape (N, H, W)
        Masks of one image.
    box : Box
        Box of the subject.

    Returns
    -------
    int
        Index of the mask. The paper leaves ties open: of masks that share the same area with the
        box the smallest is taken (it has least around the subject), and of equally small ones the
        first.

    Raises
    ------
    InputError
        There is no mask, or none touches the box.

    Examples
    --------
    >>> full, left = np.ones((2, 4), dtype=bool), Box(0, 0, 0.5, 1).mask(2, 4)
    >>> choose_mask(np.stack([full, left]), Box(0, 0.5, 0.5, 1))
    1
    """
    if not len(masks):
        raise InputError(
            "there is no mask to choose from; take another segmenter or other settings of it"
        )
    shared = overlap(masks, box)
    if not shared.max():
        raise InputError(
            f"none of {len(masks)} masks touches the box {box.to_list()}; take another "
            "segmenter or other settings"
        )
    size = np.asarray(masks, dtype=bool).sum(axis=(-2, -1))
    return int(np.lexsort((size, -shared))[0])


@dataclass(frozen=True)
class Placement:
    """Where a subject goes."""

    #: Scale of its size.
    scale: float
    #: Corner of its new bounding box, px.
    left: int
    top: int


def draw_placement(mask: Mask, seed: int) -> Placement:
    """Draw a random size (0.6 to 1) and a place where the whole subject is in the image.

    Examples
    --------
    >>> mask = np.zeros((40, 60), dtype=bool)
    >>> mask[10:30, 10:30] = True
    >>> draw_placement(mask, 1) == draw_placement(mask, 1) != draw_placement(mask, 2)
    True
    """
    rows, columns = _find_bounds(mask)
    random = np.random.default_rng(seed)
    scale = float(random.uniform(*SCALES))
    height = _scale_length(rows, scale)
    width = _scale_length(columns, scale)
    left = int(random.integers(0, mask.shape[1] - width + 1))
    top = int(random.integers(0, mask.shape[0] - height + 1))
    return Placement(scale, left, top)


def place(image: Image, mask: Mask, placement: Placement) -> tuple[Image, Mask]:
    """Draw the subject alone at a new place and size.

    Returns
    -------
    image : ndarray of uint8, shape (H, W, 3)
        Black where the subject is not.
    mask : ndarray of bool, shape (H, W)
        Mask of the subject at its new place; true where at least half of a pixel is covered.
    """
    rows, columns = _find_bounds(mask)
    height = _scale_length(rows, placement.scale)
    width = _scale_length(columns, placement.scale)
    cover = mask[rows, columns, None].astype(np.float32)
    # Colours are averaged over the subject alone, so that no fringe of the old background comes
    # along.
    layers = np.concatenate([image[rows, columns] * cover, cover], axis=-1)
    small = resized(layers, (height, width), Picture.Resampling.BOX)
    small_cover = small[..., 3:]
    covered = small_cover[..., 0] >= 0.5
    subject = small[..., :3].astype(np.float64) / np.maximum(small_cover, 0.5)
    window = (
        slice(placement.top, placement.top + height),
        slice(placement.left, placement.left + width),
    )
    moved = np.zeros_like(image)
    moved_mask = np.zeros(mask.shape, dtype=np.bool_)
    colours = np.clip(np.rint(subject), 0, 255)
    moved[window] = np.where(covered[..., None], colours, 0)
    moved_mask[window] = covered
    return moved, moved_mask


def _find_bounds(mask: Mask) -> tuple[slice, slice]:
    """Compute the slices (rows, columns) that hold a mask, refusing an empty one."""
    rows = np.flatnonzero(mask.any(axis=1))
    columns = np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        raise InputError(
            "the subject's mask is empty; take another segmenter or other settings of it"
        )
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(
        int(columns[0]), int(columns[-1]) + 1
    )


def _scale_length(extent: slice, scale: float) -> int:
    """Compute the length of a slice times a scale, at least 1 px."""
    return max(1, round(int(extent.stop - extent.start) * scale))


@dataclass(frozen=True)
class Plan:
    """A manipulation of a photograph, before it is carried out."""

    #: Kind of manipulation: "background", "part" or "direct".
    editing: str
    #: Caption of the manipulated image.
    caption: str
    #: Boxes of the main subject and of the part to replace.
    subject: Box
    part: Box | None = None
    #: Instruction of a direct alteration.
    instruction: str = ""
    #: Shape in which a part is cut out: "box" or "mask".
    region: str = "box"
    #: Seed of all draws.
    seed: int = 0

    def to_dict(self) -> JsonObject:
        """Return the plan of an edit as JSON values."""
        return {
            **vars(self),
            "subject": self.subject.to_list(),
            "part": self.part and self.part.to_list(),
        }


@dataclass(frozen=True)
class Tools:
    """The tools of the image steps."""

    #: Finds masks.
    segmenter: Segmenter
    #: Fills holes.
    inpainter: Inpainter
    #: Alters by an instruction.
    editor: Editor

    def used(self, plan: Plan) -> dict[str, ToolCard]:
        """Select the cards of the tools that a planned edit needs."""
        if plan.editing == "direct":
            return {"editor": self.editor.card}
        cards = {"inpainter": self.inpainter.card}
        if plan.editing == "background" or plan.region == "mask":
            cards["segmenter"] = self.segmenter.card
        return cards


@dataclass(frozen=True)
class Manipulated:
    """A manipulated image."""

    #: Image of the photograph's size, shape (H, W, 3).
    image: Image
    #: "mask" by equation 1 and "hole", what was filled, where there are any; shape (H, W).
    masks: Mapping[str, Mask]
    #: Choice of mask, placement and size of the hole; plain values that JSON can hold.
    facts: JsonMapping


def manipulate(photograph: Image, plan: Plan, tools: Tools) -> Manipulated:
    """Edit a photograph as planned, and return the manipulated image.

    Parameters
    ----------
    photograph : ndarray of uint8, shape (H, W, 3)
        The natural image.
    plan : Plan
        The manipulation.
    tools : Tools
        Tools to carry it out with.

    Returns
    -------
    Manipulated
        Outside of the hole, pixels are those of the photograph, or of the moved subject, whatever
        the inpainter did.

    Raises
    ------
    InputError
        No mask touches the subject, a mask leaves nothing to replace, or the plan is of no known
        kind.
    """
    if plan.editing == "direct":
        edited = tools.editor.edit(photograph, plan.instruction, plan.seed)
        return Manipulated(_checked(edited, photograph, tools.editor.card), {}, {})
    box = {"background": plan.subject, "part": plan.part}.get(plan.editing)
    if box is None:
        raise InputError(
            f"a plan of kind {plan.editing!r} cannot be carried out; give background, direct, "
            "or part with a box"
        )
    start = photograph
    hole = box.mask(*photograph.shape[:2])
    masks: dict[str, Mask] = {}
    facts: JsonObject = {}
    if "segmenter" in tools.used(plan):
        candidates = np.asarray(tools.segmenter.masks(photograph), dtype=np.bool_)
        index = choose_mask(candidates, box)
        mask = candidates[index]
        facts["mask"] = {
            "chosen": index,
            "of": len(candidates),
            "overlap": int(overlap(mask, box)),
            "area": int(mask.sum()),
            "box_area": int(hole.sum()),
        }
        masks["mask"] = mask
        hole = mask
    if plan.editing == "background":
        placement = draw_placement(hole, plan.seed)
        start, subject = place(photograph, hole, placement)
        hole = ~subject
        facts["placement"] = asdict(placement)
    if not hole.any():
        raise InputError(
            "the hole is empty: nothing of the image would be replaced; take another segmenter"
        )
    # The network must not see what it is to replace.
    blanked = np.where(hole[..., None], np.uint8(0), start)
    inpainted = tools.inpainter.inpaint(blanked, hole, plan.caption, plan.seed)
    inpainted = _checked(inpainted, start, tools.inpainter.card)
    pasted = np.where(hole[..., None], inpainted, start)
    return Manipulated(
        pasted, {**masks, "hole": hole}, {**facts, "hole_area": int(hole.sum())}
    )


def _checked(image: Image, photograph: Image, card: ToolCard) -> Image:
    """Return a tool's image, refusing one of another size or type than the photograph."""
    if image.shape != photograph.shape or image.dtype != np.uint8:
        raise InputError(
            f"{card.name} returned an image of shape {image.shape} and type {image.dtype}; it "
            "must be uint8 of shape "
            f"{photograph.shape}"
        )
    return image


def image_names(number: int) -> dict[str, str]:
    """Name the image files of a pair: "N" natural, "M" manipulated, "pair" side by side.

    Examples
    --------
    >>> image_names(1001)["pair"]
    'Cross_Images/1001_concat.png'
    """
    return {
        "N": f"Single_Images/{number}_s.png",
        "M": f"Single_Images/{number}_e.png",
        "pair": f"Cross_Images/{number}_concat.png",
    }


def drawn_before(folder: Path, number: int, key: str) -> bool:
    """Tell whether a pair's images exist and were made from the same inputs."""
    files = {kind: folder / name for kind, name in image_names(number).items()}
    try:
        account = json.loads(
            files["M"].with_suffix(".json").read_text(encoding="utf-8")
        )
    except (OSError, ValueError):
        return False
    same_key = isinstance(account, dict) and account.get("key") == key
    return same_key and all(file.is_file() for file in files.values())


def write_pair(
    folder: Path,
    number: int,
    photograph: Image,
    manipulated: Manipulated,
    account: JsonMapping,
) -> None:
    """Write the images of a pair, and last the record of what made them."""
    names = image_names(number)
    natural = {
        "photograph": account["photograph"],
        "sha256": account["sha256"],
        "manipulated": False,
    }
    facts = {**account, **manipulated.facts, "manipulated": True}
    for name in ("Single_Images", "Cross_Images", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for kind, mask in manipulated.masks.items():
        pixels = mask.astype(np.uint8) * np.uint8(255)
        _write_png(folder / "masks" / f"{number}_{kind}.png", pixels, facts)
    _write_png(folder / names["N"], photograph, natural)
    _write_png(folder / names["M"], manipulated.image, facts)
    _write_png(
        folder / names["pair"], np.hstack([photograph, manipulated.image]), facts
    )
    write_text((folder / names["M"]).with_suffix(".json"), json_text(facts))


def _write_png(path: Path, pixels: Image, facts: JsonMapping) -> None:
    """Write an image as PNG, with facts about it in a text field."""
    info = PngInfo()
    info.add_itxt("psyprobe", json.dumps(facts, sort_keys=True))
    write_whole(path, lambda part: Picture.fromarray(pixels).save(part, pnginfo=info))
