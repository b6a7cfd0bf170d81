"""Images: ``psyprobe render`` with certificates, ``psyprobe corrupt`` in the 33 ways of R-Bench."""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe import __version__
from psyprobe._typing import FloatArray
from psyprobe.cli.checking import beside, held_in, measure_file, specification_from
from psyprobe.corruption.apply import corrupt_files, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import encode_png, file_digest, images_in
from psyprobe.files.output import json_text, write_text, write_whole
from psyprobe.files.terminal import harmless, say, say_json, settings, show, tell
from psyprobe.light.codes import Codes, pack, spread, to_codes
from psyprobe.light.display import Display
from psyprobe.light.screen import display_from
from psyprobe.observers.planes import ImagePlanes
from psyprobe.stimulus import Specification, Stimulus

#: What a file of each ending holds.
_HOLDS = {
    ".png": "drive values as {bits}-bit codes (drive = code / {most})",
    ".tiff": "drive values, float32, shape (..., H, W, 3)",
    ".npy": "drive values, float32, shape (..., H, W, 3)",
    ".npz": "drive: drive values, float32; pixels: light in cd/m² (space: luminance, lms or "
    "rgb), float64; ppd",
}

#: Images of a grid, and pixels of a side in a contact sheet.
_MOST_FILES = 10_000
_THUMBNAIL = 128


@dataclass(frozen=True)
class _How:
    """How drive is written: of a PNG its bits, dither and packing."""

    bits: int = 8
    dither: str = "none"
    seed: int = 0
    packing: str | None = None
    clip: bool = False

    def holds(self, kind: str) -> str:
        if self.packing:
            return f"drive values of 14 bits, packed as {self.packing} into 8-bit RGB"
        told = _HOLDS[kind].format(bits=self.bits, most=255 if self.bits == 8 else 65535)
        return (
            f"{told}, {self.dither} dither of seed {self.seed}" if self.dither != "none" else told
        )


def render_command(arguments: argparse.Namespace) -> int:
    """Draw a stimulus, or each of a grid, write it, read it back and write the certificate of what
    the file holds.

    The exit code is 0 whatever the certificate says; see `check_command`.
    """
    path = Path(arguments.output)
    if path.suffix.lower() not in _HOLDS:
        raise unknown_name("image format", path.suffix or path.name, _HOLDS)
    how = _how(arguments, path)
    display = display_from(arguments.display)
    if arguments.grid:
        return _render_grid(arguments, path, display, how)
    if arguments.sheet:
        raise InputError("a contact sheet shows a grid; give --grid NAME=V,V as well")
    record = _render(path, specification_from(arguments.stimulus, arguments.set), display, how)
    if arguments.json:
        say_json(record)
    else:
        say(f"{path}: {record['holds']}; certificate in {beside(path)}")
        _remark(record)
    return 0


def _how(arguments: argparse.Namespace, path: Path) -> _How:
    how = _How(
        arguments.bits or 8, arguments.dither, arguments.seed, arguments.pack, arguments.clip
    )
    rounded = arguments.bits or arguments.pack or arguments.dither != "none"
    if rounded and path.suffix.lower() != ".png":
        raise InputError(
            f"{path.name} holds floats, which need no bits, dither or packing; write a .png for "
            "these"
        )
    if arguments.bits and arguments.pack:
        raise InputError("packed drive has 14 bits; leave out --bits")
    return how


def _render(path: Path, spec: Specification, display: Display, how: _How) -> dict[str, Any]:
    """Write one file with its record beside it, and give the record."""
    stimulus = spec.draw()
    outside = display.gamut(stimulus).outside if how.clip else 0
    drive = np.asarray(display.encode(stimulus, clip=how.clip))
    write = _writer(path, drive, stimulus, how)
    record: dict[str, Any] = {}

    def write_and_measure(partial: Path) -> None:
        write(partial)
        found, _ = measure_file(partial, spec, display, how.packing)
        record.update(
            psyprobe=__version__,
            file=path.name,
            sha256=file_digest(partial),
            holds=how.holds(path.suffix.lower()),
            stimulus=spec.to_dict(),
            display=display.to_dict(),
            clipped_values=outside,
            certificate=found.to_dict(),
        )
        if how.packing:
            record["packing"] = how.packing

    write_whole(path, write_and_measure)
    write_text(beside(path), json_text(record))
    return record


def _remark(record: dict[str, Any]) -> None:
    if record["clipped_values"]:
        tell(
            f"{record['clipped_values']} values that the display cannot show were clipped, as asked"
        )
    for row in record["certificate"]["rows"]:
        if not row["passed"]:
            tell(
                f"note: {row['quantity']} is {row['delivered']:.6g} {row['unit']}, requested "
                f"{row['requested']:.6g}, beyond the tolerance of {row['tolerance']:.2g}; more "
                "bits or a float "
                "format hold it better"
            )


def _render_grid(arguments: argparse.Namespace, path: Path, display: Display, how: _How) -> int:
    """A numbered file for each combination of values, and one table of them all."""
    axes = {name: _values(name, text) for name, text in _split(arguments.grid)}
    count = math.prod(map(len, axes.values()))
    if count > _MOST_FILES:
        raise InputError(f"the grid has {count:,} combinations; give up to {_MOST_FILES:,}")
    digits = max(3, len(str(count)))
    rows = []
    records = []
    for number, values in enumerate(itertools.product(*axes.values()), 1):
        one = dict(zip(axes, values, strict=True))
        words = [*arguments.set, *(f"{name}={json.dumps(value)}" for name, value in one.items())]
        file = path.with_name(f"{path.stem}-{number:0{digits}}{path.suffix}")
        # Each image has dither of its own.
        record = _render(
            file,
            specification_from(arguments.stimulus, words),
            display,
            replace(how, seed=how.seed + number),
        )
        measured = {row["quantity"]: row["delivered"] for row in record["certificate"]["rows"]}
        told = {f"delivered {name}": measured[name] for name in _TOLD if name in measured}
        rows.append(
            {
                "file": file.name,
                **one,
                **told,
                "passed": record["certificate"]["passed"],
                "sha256": record["sha256"],
            }
        )
        records.append(file)
    table = path.with_suffix(".csv")
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows({key: harmless(value) for key, value in row.items()} for row in rows)
    write_text(table, text.getvalue())
    done = {"files": count, "table": str(table), "passed": sum(row["passed"] for row in rows)}
    if arguments.sheet:
        sheet = path.with_name(f"{path.stem}-sheet.png")
        data = encode_png(_contact_sheet(records, display, how))
        write_whole(sheet, lambda partial: partial.write_bytes(data))
        done["sheet"] = str(sheet)
    told_text = (
        f"{count} files beside {path}, {done['passed']} within all tolerances; {table} lists them"
    )
    show(
        done,
        told_text + (f", {done['sheet']} shows them" if arguments.sheet else ""),
        as_json=arguments.json,
    )
    return 0


#: What the table of a grid tells of each file.
_TOLD = ("contrast", "rms contrast", "mean luminance", "frequency", "orientation", "radius")


def _split(words: Sequence[str]) -> list[tuple[str, str]]:
    for word in words:
        if "=" not in word:
            raise InputError(f"--grid {word!r} has no values; write --grid NAME=V,V")
    return [(word.partition("=")[0], word.partition("=")[2]) for word in words]


def _values(name: str, text: str) -> list[Any]:
    values = [settings([f"{name}={part}"], "--grid")[name] for part in text.split(",") if part]
    if not values:
        raise InputError(f"--grid {name} has no values; write --grid {name}=V,V")
    return values


def _contact_sheet(files: Sequence[Path], display: Display, how: _How) -> npt.NDArray[np.uint8]:
    """The images in rows, each with the number of its file under it."""
    from PIL import Image, ImageDraw

    columns = min(len(files), 8)
    side = _THUMBNAIL
    room = _THUMBNAIL + 20
    sheet = Image.new("RGB", (columns * room, math.ceil(len(files) / columns) * room), "white")
    pen = ImageDraw.Draw(sheet)
    for place, file in enumerate(files):
        held = held_in(file, packing=how.packing)
        drive = np.asarray(
            held.pixels
            if held.space == "encoded"
            else display.encode(held.pixels, space=held.space)
        )
        most = {"uint8": 255, "uint16": 65535}.get(str(drive.dtype), 1)
        codes = np.rint(255 * np.clip(drive / most, 0, 1)).astype(np.uint8)
        picture = Image.fromarray(codes).convert("RGB")
        picture.thumbnail((side, side))
        left = place % columns * room + 10
        top = place // columns * room
        sheet.paste(picture, (left, top + 2))
        pen.text((left, top + side + 4), file.stem.rpartition("-")[2], fill="black")
    return np.asarray(sheet)


def _writer(
    path: Path, drive: FloatArray, stimulus: Stimulus, how: _How
) -> Callable[[Path], object]:
    kind = path.suffix.lower()
    if kind == ".png":
        if drive.ndim != 3:
            raise InputError(
                f"a PNG holds one image, and these are {drive.shape[:-3]}; write them as .npy, "
                ".npz or .tiff"
            )
        if drive.max() > 1:
            raise InputError(
                "a PNG holds drive values up to 1, and this extended-range image goes beyond; "
                "write .tiff"
            )
        if how.packing:
            image: Codes = pack(drive, how.packing, how.dither, how.seed)
        else:
            plane = drive[..., 0] if ImagePlanes.of(drive).is_grey else drive
            image = spread(to_codes(plane, how.bits, how.dither, how.seed), how.bits)
        data = encode_png(image, noise=how.dither != "none")
        return lambda partial: partial.write_bytes(data)
    if kind == ".tiff":
        import tifffile

        return lambda partial: tifffile.imwrite(
            partial, np.ascontiguousarray(drive), photometric="rgb"
        )
    if kind == ".npy":
        return lambda partial: np.save(partial, np.ascontiguousarray(drive))
    pixels = np.asarray(stimulus.pixels)
    return lambda partial: np.savez(
        partial, drive=drive, pixels=pixels, space=stimulus.space, ppd=stimulus.ppd
    )


def corrupt_command(arguments: argparse.Namespace) -> int:
    """Corrupt images; without any, list the dimensions."""
    if not arguments.images:
        return _list_corruptions(arguments.json)
    paths = [
        path
        for name in arguments.images
        for path in (images_in(name) if Path(name).is_dir() else [Path(name)])
    ]
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
        lines.append(
            f"{each.id:2}  {each.name:24} {each.step}  {each.group:12} {levels} "
            f"({each.parameter}){simulated}"
        )
    show([vars(each) for each in known], "\n".join(lines), as_json=as_json)
    return 0
