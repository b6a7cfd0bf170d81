"""The image files of a pair, by the release's naming, each of which carries what made it.

The account stands in a text field of the PNG ("psyprobe", JSON) and in a JSON file beside the manipulated image.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.files.output import json_text, write_whole
from psyprobe.tasks.mvp_construction.manipulation import Manipulated
from psyprobe.tasks.mvp_construction.tools import Image

FIELD = "psyprobe"


def image_names(number: int) -> dict[str, str]:
    """Files of a pair, from the folder of the set.

    Parameters
    ----------
    number : int
        Of the pair.

    Returns
    -------
    dict of str to str
        "N" natural, "M" manipulated, "pair" both side by side.

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


def drawn_before(folder: Path, number: int, key: str) -> dict[str, Any] | None:
    """What is told beside a manipulated image, if it is there and was made from the same.

    Parameters
    ----------
    folder : Path
        Of the set.
    number : int
        Of the pair.
    key : str
        Digest of what goes into the image.

    Returns
    -------
    dict or None
    """
    names = image_names(number)
    if not all((folder / name).is_file() for name in names.values()):
        return None
    try:
        told = json.loads((folder / names["M"]).with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("key") == key else None


def write_pair(
    folder: Path, number: int, photograph: Image, made: Manipulated, account: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the images of a pair and what made them; the account last, so that it stands for all.

    Parameters
    ----------
    folder : Path
        Of the set.
    number : int
        Of the pair.
    photograph : ndarray of uint8, shape (H, W, 3)
        The natural image.
    made : Manipulated
        The manipulated one.
    account : mapping
        What went in; what came of it is added.

    Returns
    -------
    dict
        The account as written.
    """
    names = image_names(number)
    natural = {"photograph": account["photograph"], "sha256": account["sha256"], "manipulated": False}
    told = {**account, **made.facts, "manipulated": True}
    for name in ("Single_Images", "Cross_Images", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for kind, mask in made.masks.items():
        _write_png(folder / "masks" / f"{number}_{kind}.png", mask.astype(np.uint8) * np.uint8(255), told)
    _write_png(folder / names["N"], photograph, natural)
    _write_png(folder / names["M"], made.image, told)
    _write_png(folder / names["pair"], np.hstack([photograph, made.image]), told)
    text = json_text(told)
    write_whole((folder / names["M"]).with_suffix(".json"), lambda path: path.write_text(text, encoding="utf-8"))
    return told


def _write_png(path: Path, pixels: Image, told: Mapping[str, Any]) -> None:
    from PIL import Image as Picture
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_itxt(FIELD, json.dumps(told, sort_keys=True))
    write_whole(path, lambda part: Picture.fromarray(pixels).save(part, pnginfo=info))
