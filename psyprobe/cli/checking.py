"""``psyprobe check``: certify a stimulus as drawn, a rendered file, or anyone's image."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from psyprobe._typing import AnyArray
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
from psyprobe.testing.diagnosis import Cause, explain_failures

#: Endings of images that are measured.
_READ = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".npy", ".npz", ".mat")


@dataclass(frozen=True)
class FilePixels:
    """The numbers of an image file, and what they are."""

    #: Codes, or floats, shape (..., H, W), or (..., H, W, 3) where channels differ.
    pixels: AnyArray
    #: What the numbers are, as `psyprobe.testing` names it.
    space: str
    #: Column of the tolerance table; None for that of the dtype.
    precision: str | None = None


def check_command(arguments: Namespace) -> int:
    """Print requested against delivered values of a stimulus or file, and the likely faults.

    The exit code is 1 if a quantity is beyond its tolerance; a file that measures well and is not
    the one that was rendered is an `InputError`.
    """
    path = Path(arguments.target)
    unchanged = True
    if arguments.kind:
        certificate, causes = _check_foreign(arguments, path)
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
        certificate, causes, unchanged = _check_file(path)
    else:
        display = display_from(arguments.display)
        certificate = specification_from(arguments.target, arguments.set).measure(
            display
        )
        causes = ()
    lines = [repr(certificate), *explain_failures(certificate.failures, causes)]
    if not unchanged:
        problem = (
            f"{path} is not the file that was rendered: its checksum differs from that in "
            f"{beside(path)}"
        )
        if certificate.passed:
            raise InputError(f"{problem}; render it again")
        lines.append(problem)
    record = {
        **certificate.to_dict(),
        "unchanged": unchanged,
        "causes": list(map(asdict, causes)),
    }
    show(record, "\n".join(lines), arguments)
    return 0 if certificate.passed else 1


def specification_from(stimulus: str, words: Sequence[str]) -> Specification:
    """Load a stimulus with the NAME=VALUE settings of --set, refusing too many pixels."""
    spec = load_stimulus(stimulus).spec(**settings(words, "--set"))
    pixels = math.prod((*spec.batch, *spec.shape))
    if pixels > MAX_PIXELS:
        raise InputError(
            f"{stimulus} would have {pixels:,} pixels in all; give up to {MAX_PIXELS:,}"
        )
    return spec


def beside(path: Path) -> Path:
    """Return the path of the JSON record that lies beside a rendered file."""
    return path.with_name(f"{path.name}.json")


def _check_foreign(
    arguments: Namespace, path: Path
) -> tuple[Certificate, tuple[Cause, ...]]:
    """Measure a file made elsewhere as the stimulus that the command line names."""
    content = read_pixels(
        path,
        packing=arguments.pack,
        key=arguments.key,
        space=arguments.space,
        bits=arguments.bits,
    )
    pixels = content.pixels
    values = settings(arguments.set, "--set")
    # Three values along the last axis are channels: nobody draws stimuli three pixels wide.
    shape = (
        pixels.shape[:-1] if pixels.ndim > 2 and pixels.shape[-1] == 3 else pixels.shape
    )
    if len(shape) != 2:
        raise InputError(
            f"{path} has shape {pixels.shape}; give one image, (H, W) or (H, W, 3)"
        )
    values.setdefault("size", list(shape))
    if arguments.kind in KINDS:
        spec = specification_from_dict({"kind": arguments.kind, **values})
    else:
        spec = load_stimulus(arguments.kind).spec(**values)
    display = display_from(arguments.display)
    is_drive = content.space == "encoded" and pixels.dtype.kind == "f"
    if is_drive and pixels.max() > 1 and not display.extended:
        raise InputError(
            f"{path} holds values from {pixels.min():g} to {pixels.max():g}, and drive is 0 to 1; "
            "tell what they are: --space luminance (cd/m²), rgb, xyz, lms or linear"
        )
    return _measure_content(content, spec, display)


def _check_file(path: Path) -> tuple[Certificate, tuple[Cause, ...], bool]:
    """Measure a rendered file by the certificate beside it, and tell whether it is unchanged."""
    if not beside(path).exists():
        raise InputError(
            f"{path} has no certificate {beside(path).name} beside it, so nobody knows what was "
            "requested; say it with --as KIND --set NAME=VALUE"
        )
    record = parse_json(read_text(beside(path)), str(beside(path)))
    try:
        spec = specification_from_dict(record["stimulus"])
        display = Display.from_dict(record["display"])
        checksum = record["sha256"]
        packing = record.get("packing")
    except InputError as error:
        raise InputError(f"{beside(path)}: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{beside(path)} is no certificate that psyprobe render wrote: {error!r}"
        ) from None
    return *measure_file(path, spec, display, packing), file_digest(path) == checksum


def measure_file(
    path: Path, spec: Specification, display: Display, packing: str | None = None
) -> tuple[Certificate, tuple[Cause, ...]]:
    """Measure the light in a file, or that a display makes of its drive values."""
    return _measure_content(read_pixels(path, packing=packing), spec, display)


def _measure_content(
    content: FilePixels, spec: Specification, display: Display
) -> tuple[Certificate, tuple[Cause, ...]]:
    """Measure a file's pixels against a specification, taking equal channels for one of grey."""
    pixels = content.pixels
    in_colour = getattr(spec, "in_colour", False) or getattr(spec, "chromatic", False)
    equal = pixels.ndim > len(spec.batch) + 2 and bool(
        (pixels == pixels[..., :1]).all()
    )
    if (
        content.space in ("encoded", "linear")
        and equal
        and not in_colour
        and not display.guns_differ
    ):
        pixels = pixels[..., 0]
    return judge(
        pixels, spec, space=content.space, display=display, precision=content.precision
    )


def read_pixels(
    path: Path,
    *,
    packing: str | None = None,
    key: str | None = None,
    space: str | None = None,
    bits: int | None = None,
) -> FilePixels:
    """Read an image file's numbers: drive values, unless `space` says otherwise.

    Parameters
    ----------
    path : Path
        PNG, JPEG, TIFF, ``.npy``, ``.npz`` or ``.mat``.
    packing : str, optional
        How codes are packed, as `psyprobe.light.codes.pack` names it.
    key : str, optional
        Name of the array in a ``.mat`` or ``.npz`` that holds several.
    space : str, optional
        What the numbers are, as `psyprobe.testing` names it.
    bits : int, optional
        Bits of codes in a wider type, such as 10 in uint16.
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
            file_space = str(arrays["space"])
            if file_space not in ("luminance", "lms", "rgb"):
                raise InputError(
                    f"{path} is no image that psyprobe wrote: its pixels are {file_space[:40]!r}"
                )
            light = _check_finite(path, arrays["pixels"]).astype(np.float64)
            return FilePixels(light, file_space, "float64")
        pixels = _select(path, arrays, key)
    elif kind == ".mat":
        pixels = _select(path, read_mat(path), key)
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
        raise InputError(
            f"{path.name} is no image that is read; give {', '.join(_READ)}"
        )
    if packing:
        return FilePixels(unpack(pixels, packing), "encoded", "float16")
    pixels = _check_finite(path, pixels)
    if pixels.dtype.kind in "ui" and bits:
        return FilePixels(
            pixels / (2.0**bits - 1), "encoded", "uint8" if bits <= 10 else "float16"
        )
    if pixels.dtype == np.float32 and kind in (".tiff", ".npy"):
        return FilePixels(pixels.astype(np.float64), space or "encoded", "float32")
    return FilePixels(pixels, space or "encoded")


def _select(path: Path, arrays: dict[str, AnyArray], key: str | None) -> AnyArray:
    """Select the image called `key` among a file's arrays, or the only one."""
    images = {
        name: array
        for name, array in arrays.items()
        if array.ndim >= 2 and min(array.shape) > 1
    }
    names = ", ".join(images)[:120] or "none"
    if key is None:
        if len(images) != 1:
            raise InputError(
                f"{path} holds {len(images)} images ({names}); name one with --key"
            )
        return images.popitem()[1]
    if key not in images:
        raise InputError(f"{path} has no image {key!r}; it holds {names}")
    return images[key]


def _check_finite(path: Path, values: AnyArray) -> AnyArray:
    """Return a file's array, refusing one that is empty or has values that are not finite."""
    if (
        values.dtype.kind not in "uif"
        or not values.size
        or not np.isfinite(values).all()
    ):
        raise InputError(
            f"{path} holds {values.dtype} that are not all finite numbers; render it again"
        )
    return values
