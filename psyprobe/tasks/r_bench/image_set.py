"""A set on disk: an item table with the reference and the corrupted image of every item.

A set is a folder with ``items.csv`` (see `read_items`), a folder ``ref`` of reference images and a folder ``dis`` of
corrupted ones. The corrupted image of an item has the item's name; the reference image too, or what the column
reference says, so that many items may share one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from psyprobe.errors import InputError
from psyprobe.files.images import decode_image
from psyprobe.tasks.r_bench.items import read_items

#: Folders of a set by which of its images they hold.
KINDS = ("ref", "dis")


@dataclass(frozen=True)
class ImageSet:
    """Items with their images, every one of which can be read.

    Attributes
    ----------
    folder : Path
        Where it lies.
    items : pandas.DataFrame
        An item table.
    digests : mapping of Path to str
        SHA-256 of every image file.
    skipped : tuple of str
        Why items were left out; empty unless that was asked for.
    """

    folder: Path
    items: pd.DataFrame
    digests: Mapping[Path, str]
    skipped: tuple[str, ...]

    def path(self, kind: str, item: Mapping[str, object]) -> Path:
        """The image file of an item, kind "ref" or "dis"."""
        return self.folder / kind / str(item["reference" if kind == "ref" else "name"])


def read_set(folder: str | Path, *, skip: bool = False) -> ImageSet:
    """Read a set, and decode each of its images once: none may fail after an hour of questions.

    Parameters
    ----------
    folder : str or Path
        Of the set.
    skip : bool
        Leave out items whose images cannot be read and say so, instead of ending with the first.

    Returns
    -------
    ImageSet

    Raises
    ------
    InputError
        There is no such set, an image is missing or cannot be read as it is, or nothing is left.
    """
    place = Path(folder)
    items = read_items(place / "items.csv")
    checked: dict[Path, str] = {}
    problems: dict[Path, str] = {}
    kept, skipped = [], []
    for row in items.to_dict("records"):
        paths = [place / "ref" / _inside(row["reference"]), place / "dis" / _inside(row["name"])]
        for path in paths:
            if path in checked or path in problems:
                continue
            try:
                raw = path.read_bytes()
                decode_image(raw, str(path))
                checked[path] = hashlib.sha256(raw).hexdigest()
            except OSError as error:
                problems[path] = f"{path} cannot be read: {error.strerror}"
            except InputError as error:
                problems[path] = str(error)
        bad = next((problems[path] for path in paths if path in problems), "")
        if bad and not skip:
            raise InputError(bad)
        kept.append(not bad)
        if bad:
            skipped.append(f"{row['name']}: {bad}")
    if not any(kept):
        raise InputError(f"no item of {folder} is left; every one has an image that cannot be read")
    left = items[kept].reset_index(drop=True)
    left.attrs.update(items.attrs)
    return ImageSet(place, left, checked, tuple(skipped))


def _inside(name: str) -> str:
    """A file name that leads out of the folder is no file name."""
    if Path(name).name != name:
        raise InputError(f"image {name!r} is not in the set's folder; give a file name without folders")
    return name
