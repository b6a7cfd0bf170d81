"""The image step: from a photograph and a proposal to the manipulated image, with everything that made it told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psyprobe.errors import InputError, unknown_name
from psyprobe.tasks.mvp_construction.manipulation import Box, Image, Mask, choose_mask, draw_placement, overlap, place
from psyprobe.tasks.mvp_construction.tools import Editor, Inpainter, Segmenter, ToolCard

#: How a part is cut out: the whole box, or the mask in it by equation 1.
REGIONS = ("box", "mask")


@dataclass(frozen=True)
class Plan:
    """What shall be done to a photograph."""

    #: {"background", "part", "direct"}: Kind of manipulation.
    editing: str
    #: Of the manipulated image.
    caption: str
    #: Of the main subject, and of what is replaced.
    subject: Box
    part: Box | None = None
    #: For direct alteration.
    instruction: str = ""
    #: {"box", "mask"}: How a part is cut out.
    region: str = "box"
    #: Of all draws.
    seed: int = 0

    def __post_init__(self) -> None:
        if self.region not in REGIONS:
            raise unknown_name("region of a part", self.region, REGIONS)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values that JSON can hold."""
        part = None if self.part is None else self.part.to_list()
        return {**vars(self), "subject": self.subject.to_list(), "part": part}


@dataclass(frozen=True)
class Tools:
    """What the image steps are done with."""

    #: Finds masks.
    segmenter: Segmenter
    #: Fills holes.
    inpainter: Inpainter
    #: Alters by an instruction.
    editor: Editor

    def used(self, plan: Plan) -> dict[str, ToolCard]:
        """The cards of the tools that a plan needs."""
        if plan.editing == "direct":
            return {"editor": self.editor.card}
        cards = {"inpainter": self.inpainter.card}
        if plan.editing == "background" or plan.region == "mask":
            cards["segmenter"] = self.segmenter.card
        return cards


@dataclass(frozen=True)
class Manipulated:
    """A manipulated image."""

    #: Shape (H, W, 3). Of the photograph's size.
    image: Image
    #: Shape (H, W). "mask" by equation 1, and "hole", what was filled; where there were any.
    masks: Mapping[str, Mask]
    #: How it came about; plain values that JSON can hold.
    facts: Mapping[str, Any]


def manipulate(photograph: Image, plan: Plan, tools: Tools) -> Manipulated:
    """Carry out a plan.

    Parameters
    ----------
    photograph : ndarray of uint8, shape (H, W, 3)
        The natural image.
    plan : Plan
        What to do.
    tools : Tools
        With what.

    Returns
    -------
    Manipulated
        Outside of the hole, pixels are those of the photograph, or of the moved subject, whatever the inpainter did.

    Raises
    ------
    InputError
        No mask touches the subject, a mask leaves nothing to replace, or the plan is of no known kind.
    """
    if plan.editing == "direct":
        made = tools.editor.edit(photograph, plan.instruction, plan.seed)
        return Manipulated(_checked(made, photograph, tools.editor.card), {}, {})
    if plan.editing == "background":
        mask, facts = _by_equation_1(photograph, plan.subject, tools.segmenter)
        placement = draw_placement(mask, plan.seed)
        start, moved = place(photograph, mask, placement)
        return _filled(start, ~moved, plan, tools, {"mask": mask}, {"mask": facts, "placement": placement.to_dict()})
    if plan.editing == "part" and plan.part is not None:
        if plan.region == "box":
            return _filled(photograph, plan.part.mask(*photograph.shape[:2]), plan, tools, {}, {})
        mask, facts = _by_equation_1(photograph, plan.part, tools.segmenter)
        return _filled(photograph, mask, plan, tools, {"mask": mask}, {"mask": facts})
    raise InputError(
        f"a plan of kind {plan.editing!r} cannot be carried out; give background, direct, or part with a box"
    )


def _by_equation_1(photograph: Image, box: Box, segmenter: Segmenter) -> tuple[Mask, dict[str, int]]:
    masks = np.asarray(segmenter.masks(photograph), dtype=np.bool_)
    chosen = choose_mask(masks, box)
    mask: Mask = masks[chosen]
    facts = {
        "chosen": chosen,
        "of": len(masks),
        "overlap": int(overlap(mask, box)),
        "area": int(mask.sum()),
        "box_area": int(box.mask(*mask.shape).sum()),
    }
    return mask, facts


def _filled(
    start: Image, hole: Mask, plan: Plan, tools: Tools, masks: dict[str, Mask], facts: dict[str, Any]
) -> Manipulated:
    if not hole.any():
        raise InputError("the hole is empty: nothing of the image would be replaced; take another segmenter")
    # The network must not see what it is to replace.
    blanked = np.where(hole[..., None], np.uint8(0), start)
    made = _checked(tools.inpainter.inpaint(blanked, hole, plan.caption, plan.seed), start, tools.inpainter.card)
    pasted = np.where(hole[..., None], made, start)
    return Manipulated(pasted, {**masks, "hole": hole}, {**facts, "hole_area": int(hole.sum())})


def _checked(made: Image, photograph: Image, card: ToolCard) -> Image:
    if made.shape != photograph.shape or made.dtype != np.uint8:
        raise InputError(
            f"{card.name} returned an image of shape {made.shape} and type {made.dtype}; it must be uint8 of shape "
            f"{photograph.shape}"
        )
    return made
