"""Images: ``psyprobe render`` and ``check`` with certificates, ``psyprobe corrupt`` in the 33 ways of R-Bench."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe import __version__
from psyprobe._typing import FloatArray
from psyprobe.corruption.apply import corrupt_files, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.arrays import read_npy, read_npz, read_tiff
from psyprobe.files.images import MOST_PIXELS, decode_png, encode_png, file_digest, images_in
from psyprobe.files.output import json_text, write_text, write_whole
from psyprobe.files.parsing import parse_json, read_bytes, read_text
from psyprobe.files.terminal import say, say_json, settings, show, tell
from psyprobe.light.display import Display
from psyprobe.light.screen import display_of
from psyprobe.observers.images import is_grey_view
from psyprobe.stimulus import Specification, Stimulus, specification_from_dict
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.stimulus.certificate import Certificate, certify

#: What a file of each ending holds.
_HOLDS = {
    ".png": "drive values as {bits}-bit codes (drive = code / {most})",
    ".tiff": "drive values, float32, shape (..., H, W, 3)",
    ".npy": "drive values, float32, shape (..., H, W, 3)",
    ".npz": "drive: drive values, float32; pixels: light in cd/m² (space: luminance, lms or rgb), float64; ppd",
}


def render_command(arguments: argparse.Namespace) -> int:
    """Draw a stimulus, write it, read it back and write the certificate of what the file holds.

    The exit code is 0 whatever the certificate says; see `check_command`.
    """
    path = Path(arguments.output)
    if path.suffix.lower() not in _HOLDS:
        raise unknown_name("image format", path.suffix or path.name, _HOLDS)
    spec, display = specification_from(arguments.stimulus, arguments.set), display_from(arguments.display)
    stimulus = spec.draw()
    outside = display.gamut(stimulus).outside if arguments.clip else 0
    drive = np.asarray(display.encode(stimulus, clip=arguments.clip))
    holds = _HOLDS[path.suffix.lower()].format(bits=arguments.bits, most=2**arguments.bits - 1)
    write = _writer(path, drive, stimulus, arguments.bits)
    record: dict[str, Any] = {}

    def write_and_measure(partial: Path) -> None:
        write(partial)
        record.update(
            psyprobe=__version__,
            file=path.name,
            sha256=file_digest(partial),
            holds=holds,
            stimulus=spec.to_dict(),
            display=display.to_dict(),
            clipped_values=outside,
            certificate=_measure_file(partial, spec, display).to_dict(),
        )

    write_whole(path, write_and_measure)
    write_text(_beside(path), json_text(record))
    if arguments.json:
        say_json(record)
    else:
        say(f"{path}: {holds}; certificate in {_beside(path)}")
        if outside:
            tell(f"{outside} values that the display cannot show were clipped, as asked")
        for row in record["certificate"]["rows"]:
            if not row["passed"]:
                tell(
                    f"note: {row['quantity']} is {row['delivered']:.6g} {row['unit']}, requested "
                    f"{row['requested']:.6g}, beyond the tolerance of {row['tolerance']:.2g}; more bits or a float "
                    "format hold it better"
                )
    return 0


def check_command(arguments: argparse.Namespace) -> int:
    """Print requested against delivered for a stimulus as drawn, or for a file as it lies there.

    The exit code is 1 if a quantity is beyond its tolerance; a file that measures well and is not the one that was
    rendered is an `InputError`.
    """
    path = Path(arguments.target)
    if path.suffix.lower() in _HOLDS:
        if (arguments.set or arguments.display) and _beside(path).exists():
            raise InputError(f"{path} has its parameters in {_beside(path)}; leave out --set and --display")
        found, unchanged = _check_file(path)
    else:
        display = display_from(arguments.display)
        found, unchanged = specification_from(arguments.target, arguments.set).draw().measure(display), True
    changed = f"{path} is not the file that was rendered: its checksum differs from that in {_beside(path)}"
    if found.passed and not unchanged:
        raise InputError(f"{changed}; render it again")
    text = repr(found) if unchanged else f"{found!r}\n{changed}"
    show({**found.to_dict(), "unchanged": unchanged}, text, as_json=arguments.json)
    return 0 if found.passed else 1


def display_from(words: Sequence[str]) -> Display:
    """A display from the words after ``--display``: the name of a preset, or fields with values; none for the default.

    >>> display_from(["peak=200", "black=0.2"]).peak
    200.0
    """
    if len(words) == 1 and "=" not in words[0]:
        return Display.preset(words[0])
    return display_of(settings(words, "--display"), Path())


def specification_from(stimulus: str, words: Sequence[str]) -> Specification:
    spec = load_stimulus(stimulus).spec(**settings(words, "--set"))
    pixels = math.prod((*spec.batch, *spec.shape))
    if pixels > MOST_PIXELS:
        raise InputError(f"{stimulus} would have {pixels:,} pixels in all; give up to {MOST_PIXELS:,}")
    return spec


def _writer(path: Path, drive: FloatArray, stimulus: Stimulus, bits: int) -> Callable[[Path], object]:
    kind = path.suffix.lower()
    if kind == ".png":
        if drive.ndim != 3:
            raise InputError(
                f"a PNG holds one image, and these are {drive.shape[:-3]}; write them as .npy, .npz or .tiff"
            )
        if drive.max() > 1:
            raise InputError("a PNG holds drive values up to 1, and this extended-range image goes beyond; write .tiff")
        plane = drive[..., 0] if is_grey_view(drive) else drive
        most = 2**bits - 1
        codes = np.rint(plane.astype(np.float64) * most).astype(np.uint8 if bits == 8 else np.uint16)
        data = encode_png(codes)
        return lambda partial: partial.write_bytes(data)
    if kind == ".tiff":
        import tifffile

        return lambda partial: tifffile.imwrite(partial, np.ascontiguousarray(drive), photometric="rgb")
    if kind == ".npy":
        return lambda partial: np.save(partial, np.ascontiguousarray(drive))
    pixels = np.asarray(stimulus.pixels)
    return lambda partial: np.savez(partial, drive=drive, pixels=pixels, space=stimulus.space, ppd=stimulus.ppd)


def _check_file(path: Path) -> tuple[Certificate, bool]:
    beside = _beside(path)
    if not beside.exists():
        raise InputError(
            f"{path} has no certificate {beside.name} beside it, so nobody knows what was requested; "
            "check what psyprobe render wrote"
        )
    record = parse_json(read_text(beside), str(beside))
    try:
        spec, display = specification_from_dict(record["stimulus"]), Display.from_dict(record["display"])
        rendered = record["sha256"]
    except InputError as error:
        raise InputError(f"{beside}: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{beside} is no certificate that psyprobe render wrote: {error!r}") from None
    return _measure_file(path, spec, display), file_digest(path) == rendered


def _measure_file(path: Path, spec: Specification, display: Display) -> Certificate:
    """Measure the light that a display makes of the drive values in a file, or the light that the file holds."""
    pixels, space, precision = _read(path, display)
    decoded = path.suffix.lower() != ".npz"
    return certify(pixels, space, spec, precision=precision, display=display, decoded=decoded)


def _read(path: Path, display: Display) -> tuple[FloatArray, str, str]:
    """Light in cd/m², its space, and the precision in which the file holds it."""
    kind = path.suffix.lower()
    if kind == ".png":
        try:
            codes = decode_png(read_bytes(path))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        # Sixteen-bit codes are about as fine as half-precision numbers.
        most, precision = (255, "uint8") if codes.dtype == np.uint8 else (65535, "float16")
        return display.decode(codes / most), "luminance" if codes.ndim == 2 else "rgb", precision
    if kind == ".npz":
        held = read_npz(path)
        space = str(held.get("space"))
        if space not in ("luminance", "lms", "rgb") or "pixels" not in held:
            raise InputError(f"{path} is no image that psyprobe wrote: it lacks pixels, or their space")
        return _finite(path, held["pixels"]), space, "float64"
    drive = _finite(path, read_npy(path) if kind == ".npy" else read_tiff(path))
    if drive.ndim < 3 or drive.shape[-1] != 3:
        raise InputError(f"{path} has shape {drive.shape}; drive values have shape (..., H, W, 3)")
    light = display.decode(drive)
    grey = bool((light == light[..., :1]).all())
    return (light[..., 0], "luminance", "float32") if grey else (light, "rgb", "float32")


def _finite(path: Path, values: npt.NDArray[Any]) -> FloatArray:
    if values.dtype.kind not in "uif" or not np.isfinite(values).all():
        raise InputError(f"{path} holds {values.dtype} that are not all finite numbers; render it again")
    return values.astype(np.float64)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def corrupt_command(arguments: argparse.Namespace) -> int:
    """Corrupt images; without any, list the dimensions."""
    if not arguments.images:
        return _list_corruptions(arguments.json)
    paths = [path for name in arguments.images for path in (images_in(name) if Path(name).is_dir() else [Path(name)])]
    done = corrupt_files(
        paths,
        arguments.output,
        names=arguments.name,
        strengths=arguments.strength,
        seed=arguments.seed,
        scale=arguments.scale,
        skip=arguments.skip_bad,
    )
    if not arguments.json:
        for problem in done.skipped:
            tell(f"left out: {problem}")
    originals = len(paths) - len(done.skipped)
    show(
        {"files": len(done.files), "manifest": str(done.manifest), "skipped": list(done.skipped)},
        f"{len(done.files)} images of {originals} originals in {done.manifest.parent}; "
        f"{done.manifest.name} lists them.",
        as_json=arguments.json,
    )
    return 0


def _list_corruptions(as_json: bool) -> int:
    known = dimensions().values()
    lines = []
    for each in known:
        levels = ", ".join(f"{level:g}" for level in each.levels)
        simulated = "; simulated, R-Bench photographed it" if each.captured else ""
        lines.append(f"{each.id:2}  {each.name:24} {each.step}  {each.group:12} {levels} ({each.parameter}){simulated}")
    show([vars(each) for each in known], "\n".join(lines), as_json=as_json)
    return 0
