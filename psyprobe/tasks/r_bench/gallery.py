"""Write a page with an image under every corruption of R-Bench."""

from __future__ import annotations

from typing import Any

from psyprobe.corruption import STEPS, STRENGTHS, corrupt, dimensions
from psyprobe.reporting.page import detail, picture, render

#: Largest width of a picture, px.
_WIDTH = 300


def gallery(image: Any, *, name: str = "", seed: int = 0, scale: bool = False) -> str:
    """Write a page that shows an image under all 33 corruptions at three strengths.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    name : str
        Title and image_id of the image.
    seed : int
        Seed of the corruptions.
    scale : bool
        As for `corrupt`.

    Returns
    -------
    str
        HTML in one file that loads nothing. Pictures are made smaller where they are wider, which
        hides some of what is small; lossless or JPEG, whichever is smaller. Each opens on its
        middle, lossless and enlarged.
    """
    steps: dict[str, list[Any]] = {}
    for dimension in dimensions().values():
        images = []
        for strength, level in zip(STRENGTHS, dimension.levels, strict=True):
            changed = corrupt(
                image, dimension.name, strength, seed, image_id=name, scale=scale
            )
            images.append(
                (picture(changed, _WIDTH), detail(changed), f"{strength}: {level:g}")
            )
        steps.setdefault(dimension.step, []).append((dimension, images))
    return render(
        "tasks/r_bench/gallery.html",
        title=f"33 corruptions{f' of {name}' if name else ''}",
        name=name,
        seed=seed,
        size=f"{image.shape[1]} x {image.shape[0]} px",
        scale=scale,
        original=(picture(image, _WIDTH), detail(image)),
        steps=[(step, STEPS[step], rows) for step, rows in steps.items()],
    )
