"""``psyprobe check``: requested against delivered, of a stimulus as drawn, a rendered file, or
anyone's image.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError
from psyprobe.files.arrays import read_mat, read_npy, read_npz, read_tiff
from psyprobe.files.images import MAX_PIXELS, decode_png, file_digest, read_image
from psyprobe.files.parsing import parse_json, read_bytes, read_text
from psyprobe.files.terminal import settings, show, tell
from psyprobe.light.codes import unpack
from psyprobe.light.display import Display
from psyprobe.light.screen import display_from
from psyprobe.stimulus import Specification, specification_from_dict
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.stimulus.certificate import Certificate
from psyprobe.stimulus.registry import KINDS
from psyprobe.testing import judge
from psyprobe.testing.diagnosis import Cause, describe_measurement, roots_first

#: Endings of images that are measured.
_READ = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".npy", ".npz", ".mat")


@dataclass(frozen=True)
class Held:
    """What an image file holds."""

    #: Codes, or floats; (..., H, W) where all channels are one.
    pixels: npt.NDArray[Any]
    #: As `psyprobe.testing` names what numbers are.
    space: str
    #: Column of the tolerance table; None for that of the dtype.
    precision: str | None = None


def check_command(arguments: argparse.Namespace) -> int:
    """Print requested against delivered, and why they differ.

    The exit code is 1 if a quantity is beyond its tolerance; a file that measures well and is not
    the one that was rendered is an `InputError`.
    """
    path = Path(arguments.target)
    unchanged = True
    if arguments.kind:
        found, causes = _check_foreign(arguments, path)
    elif arguments.space or arguments.bits or arguments.pack or arguments.key:
        raise InputError(
            "--space, --bits, --pack and --key tell how to read a file made elsewhere; give "
            "--as KIND too"
        )
    elif path.suffix.lower() in _READ:
        if (arguments.set or arguments.display) and beside(path).exists():
            raise InputError(
                f"{path} has its parameters in {beside(path)}; leave out --set and --display"
            )
        found, causes, unchanged = _check_file(path)
    else:
        display = display_from(arguments.display)
        found = specification_from(arguments.target, arguments.set).measure(display)
        causes = ()
    changed = (
        f"{path} is not the file that was rendered: its checksum differs from that in "
        f"{beside(path)}"
    )
    if found.passed and not unchanged:
        raise InputError(f"{changed}; render it again")
    lines = [repr(found), *_explained(found, causes), *([] if unchanged else [changed])]
    told_of = [
        {"name": cause.name, "explanation": cause.explanation, "remedy": cause.remedy}
        for cause in causes
    ]
    show(
        {**found.to_dict(), "unchanged": unchanged, "causes": told_of},
        "\n".join(lines),
        as_json=arguments.json,
    )
    return 0 if found.passed else 1


def _explained(found: Certificate, causes: Sequence[Cause]) -> list[str]:
    if not causes:
        return []
    _, rest = roots_first(found.failures, causes)
    lines = [f"Likely cause: {cause}" for cause in causes]
    return lines + (
        [f"What follows from it: {'; '.join(map(describe_measurement, rest))}."] if rest else []
    )


def specification_from(stimulus: str, words: Sequence[str]) -> Specification:
    spec = load_stimulus(stimulus).spec(**settings(words, "--set"))
    pixels = math.prod((*spec.batch, *spec.shape))
    if pixels > MAX_PIXELS:
        raise InputError(
            f"{stimulus} would have {pixels:,} pixels in all; give up to {MAX_PIXELS:,}"
        )
    return spec


def beside(path: Path) -> Path:
    """Where the record of a rendered file lies."""
    return path.with_name(f"{path.name}.json")


def _check_foreign(
    arguments: argparse.Namespace, path: Path
) -> tuple[Certificate, tuple[Cause, ...]]:
    """A file made elsewhere, as the stimulus that the command line says it should be."""
    held = held_in(
        path, packing=arguments.pack, key=arguments.key, space=arguments.space, bits=arguments.bits
    )
    values = settings(arguments.set, "--set")
    # What has three values along its last axis are channels: nobody draws stimuli three pixels
    # wide.
    flat = (
        held.pixels.shape[:-1]
        if held.pixels.ndim > 2 and held.pixels.shape[-1] == 3
        else held.pixels.shape
    )
    if len(flat) != 2:
        raise InputError(
            f"{path} has shape {held.pixels.shape}; give one image, (H, W) or (H, W, 3)"
        )
    values.setdefault("size", list(flat))
    if arguments.kind in KINDS:
        spec = specification_from_dict({"kind": arguments.kind, **values})
    else:
        spec = load_stimulus(arguments.kind).spec(**values)
    display = display_from(arguments.display)
    if (
        held.space == "encoded"
        and held.pixels.dtype.kind == "f"
        and held.pixels.max() > 1
        and not display.extended
    ):
        raise InputError(
            f"{path} holds values from {held.pixels.min():g} to {held.pixels.max():g}, and "
            "drive is 0 to 1; tell what "
            "they are: --space luminance (cd/m²), rgb, xyz, lms or linear"
        )
    return _judged(held, spec, display)


def _check_file(path: Path) -> tuple[Certificate, tuple[Cause, ...], bool]:
    if not beside(path).exists():
        raise InputError(
            f"{path} has no certificate {beside(path).name} beside it, so nobody knows what was "
            "requested; say it with "
            "--as KIND --set NAME=VALUE"
        )
    record = parse_json(read_text(beside(path)), str(beside(path)))
    try:
        spec = specification_from_dict(record["stimulus"])
        display = Display.from_dict(record["display"])
        rendered = record["sha256"]
        packing = record.get("packing")
    except InputError as error:
        raise InputError(f"{beside(path)}: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{beside(path)} is no certificate that psyprobe render wrote: {error!r}"
        ) from None
    return *measure_file(path, spec, display, packing), file_digest(path) == rendered


def measure_file(
    path: Path, spec: Specification, display: Display, packing: str | None = None
) -> tuple[Certificate, tuple[Cause, ...]]:
    """Measure the light that a display makes of the drive values in a file, or the light that the
    file holds.
    """
    return _judged(held_in(path, packing=packing), spec, display)


def _judged(
    held: Held, spec: Specification, display: Display
) -> tuple[Certificate, tuple[Cause, ...]]:
    pixels = held.pixels
    in_colour = getattr(spec, "in_colour", False) or getattr(spec, "chromatic", False)
    equal = pixels.ndim > len(spec.batch) + 2 and bool((pixels == pixels[..., :1]).all())
    if held.space in ("encoded", "linear") and equal and not in_colour and not display.guns_differ:
        pixels = pixels[..., 0]
    return judge(pixels, spec, space=held.space, display=display, precision=held.precision)


def held_in(
    path: Path,
    *,
    packing: str | None = None,
    key: str | None = None,
    space: str | None = None,
    bits: int | None = None,
) -> Held:
    """The numbers of an image file, and what they are: drive values, unless something else is told.

    Parameters
    ----------
    path : Path
        PNG, JPEG, TIFF, ``.npy``, ``.npz`` or ``.mat``.
    packing : str, optional
        As of `psyprobe.light.codes.pack`.
    key : str, optional
        Of the array in a ``.mat`` or ``.npz`` that holds several.
    space : str, optional
        What the numbers are, as `psyprobe.testing` names it.
    bits : int, optional
        Of codes in a wider type, such as 10 in uint16.
    """
    kind = path.suffix.lower()
    if kind == ".npz":
        arrays = read_npz(path)
        if key is None and "space" in arrays:
            if "pixels" not in arrays:
                raise InputError(
                    f"{path} says in which space it is, as files of psyprobe do, and holds no "
                    "pixels"
                )
            told = str(arrays["space"])
            if told not in ("luminance", "lms", "rgb"):
                raise InputError(
                    f"{path} is no image that psyprobe wrote: its pixels are {told[:40]!r}"
                )
            return Held(_finite(path, arrays["pixels"]).astype(np.float64), told, "float64")
        pixels = _chosen(path, arrays, key)
    elif kind == ".mat":
        pixels = _chosen(path, read_mat(path), key)
    elif kind == ".png":
        try:
            pixels = decode_png(read_bytes(path))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    elif kind in (".jpg", ".jpeg"):
        pixels = read_image(path)
        tell(
            f"note: {path.name} is a JPEG, which takes faint and fine contrast away; keep "
            "stimuli as PNG or TIFF"
        )
    elif kind in _READ:
        pixels = read_npy(path) if kind == ".npy" else read_tiff(path)
    else:
        raise InputError(f"{path.name} is no image that is read; give {', '.join(_READ)}")
    if packing:
        return Held(unpack(pixels, packing), "encoded", "float16")
    pixels = _finite(path, pixels)
    if pixels.dtype.kind in "ui" and bits:
        return Held(pixels / (2.0**bits - 1), "encoded", "uint8" if bits <= 10 else "float16")
    if pixels.dtype.kind == "f" and kind in (".tiff", ".npy") and pixels.dtype == np.float32:
        return Held(pixels.astype(np.float64), space or "encoded", "float32")
    return Held(pixels, space or "encoded")


def _chosen(path: Path, arrays: dict[str, npt.NDArray[Any]], key: str | None) -> npt.NDArray[Any]:
    images = {name: each for name, each in arrays.items() if each.ndim >= 2 and min(each.shape) > 1}
    names = ", ".join(images)[:120] or "none"
    if key is None and len(images) != 1:
        raise InputError(f"{path} holds {len(images)} images ({names}); name one with --key")
    if key is not None and key not in images:
        raise InputError(f"{path} has no image {key!r}; it holds {names}")
    return images[key if key is not None else next(iter(images))]


def _finite(path: Path, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind not in "uif" or not values.size or not np.isfinite(values).all():
        raise InputError(
            f"{path} holds {values.dtype} that are not all finite numbers; render it again"
        )
    return values
