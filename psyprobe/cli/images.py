"""``psyprobe render`` writes images with certificates, ``psyprobe corrupt`` corrupts images."""

from __future__ import annotations

import itertools
import json
import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe import __version__
from psyprobe._typing import ByteArray, FloatArray
from psyprobe.analysis.score import csv_text
from psyprobe.cli.checking import beside, measure_file, specification_from
from psyprobe.corruption.apply import corrupt_files, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import encode_png, file_digest, images_in
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import json_text, write_text, write_whole
from psyprobe.files.terminal import say, say_json, settings, show, tell
from psyprobe.light.codes import Codes, pack, spread, to_codes
from psyprobe.light.display import Display
from psyprobe.light.screen import display_from
from psyprobe.observers.planes import ImagePlanes
from psyprobe.stimulus import Specification, Stimulus

#: What a file of each ending holds, in words.
_CONTENTS = {
    ".png": "drive values as {bits}-bit codes (drive = code / {most})",
    ".tiff": "drive values, float32, shape (..., H, W, 3)",
    ".npy": "drive values, float32, shape (..., H, W, 3)",
    ".npz": "drive: drive values, float32; pixels: light in cd/m² (space: luminance, lms or "
    "rgb), float64; ppd",
}

#: Most images of a grid.
_MOST_FILES = 10_000
#: Side of an image in a contact sheet, px.
_THUMBNAIL = 128


@dataclass(frozen=True)
class _Encoding:
    """How drive values are written; bits, dither and packing are of a PNG."""

    bits: int = 8
    dither: str = "none"
    seed: int = 0
    packing: str | None = None
    clip: bool = False

    def describe(self, ending: str) -> str:
        """Describe what numbers a file of a given ending holds."""
        if self.packing:
            return f"drive values of 14 bits, packed as {self.packing} into 8-bit RGB"
        text = _CONTENTS[ending].format(
            bits=self.bits, most=255 if self.bits == 8 else 65535
        )
        if self.dither == "none":
            return text
        return f"{text}, {self.dither} dither of seed {self.seed}"


def render_command(arguments: Namespace) -> int:
    """Draw a stimulus, or a grid of them, to files with a certificate of what each holds.

    The exit code is 0 whatever the certificate says; see `check_command`.
    """
    path = Path(arguments.output)
    if path.suffix.lower() not in _CONTENTS:
        raise unknown_name("image format", path.suffix or path.name, _CONTENTS)
    encoding = _read_encoding(arguments, path)
    display = display_from(arguments.display)
    if arguments.grid:
        return _render_grid(arguments, path, display, encoding)
    if arguments.sheet:
        raise InputError("a contact sheet shows a grid; give --grid NAME=V,V as well")
    spec = specification_from(arguments.stimulus, arguments.set)
    record = _render(path, spec, display, encoding)
    if arguments.json:
        say_json(record)
    else:
        say(f"{path}: {record['holds']}; certificate in {beside(path)}")
        _remark(record)
    return 0


def _read_encoding(arguments: Namespace, path: Path) -> _Encoding:
    """Read from the arguments how to round drive values to codes, refusing what contradicts."""
    rounded = arguments.bits or arguments.pack or arguments.dither != "none"
    if rounded and path.suffix.lower() != ".png":
        raise InputError(
            f"{path.name} holds floats, which need no bits, dither or packing; write a .png for "
            "these"
        )
    if arguments.bits and arguments.pack:
        raise InputError("packed drive has 14 bits; leave out --bits")
    return _Encoding(
        arguments.bits or 8,
        arguments.dither,
        arguments.seed,
        arguments.pack,
        arguments.clip,
    )


def _render(
    path: Path, spec: Specification, display: Display, encoding: _Encoding
) -> JsonObject:
    """Write one image file with its JSON record beside it, and return the record."""
    stimulus = spec.draw()
    clipped_values = display.gamut(stimulus).outside if encoding.clip else 0
    drive = np.asarray(display.encode(stimulus, clip=encoding.clip))
    record: JsonObject = {}

    def write_and_measure(partial: Path) -> None:
        _write(partial, drive, stimulus, encoding)
        certificate, _ = measure_file(partial, spec, display, encoding.packing)
        record.update(
            psyprobe=__version__,
            file=path.name,
            sha256=file_digest(partial),
            holds=encoding.describe(path.suffix.lower()),
            stimulus=spec.to_dict(),
            display=display.to_dict(),
            clipped_values=clipped_values,
            certificate=certificate.to_dict(),
        )
        if encoding.packing:
            record["packing"] = encoding.packing

    write_whole(path, write_and_measure)
    write_text(beside(path), json_text(record))
    return record


def _remark(record: JsonObject) -> None:
    """Tell on stderr how many values were clipped, and what missed its tolerance."""
    if record["clipped_values"]:
        tell(
            f"{record['clipped_values']} values that the display cannot show were clipped, as asked"
        )
    for row in record["certificate"]["rows"]:
        if not row["passed"]:
            tell(
                f"note: {row['quantity']} is {row['delivered']:.6g} {row['unit']}, requested "
                f"{row['requested']:.6g}, beyond the tolerance of {row['tolerance']:.2g}; more "
                "bits or a float format hold it better"
            )


def _render_grid(
    arguments: Namespace, path: Path, display: Display, encoding: _Encoding
) -> int:
    """Write a numbered file for each combination of parameter values, and a table of them."""
    axes = _axes(arguments.grid)
    count = math.prod(map(len, axes.values()))
    if count > _MOST_FILES:
        raise InputError(
            f"the grid has {count:,} combinations; give up to {_MOST_FILES:,}"
        )
    digits = max(3, len(str(count)))
    rows = []
    pictures = []
    for number, values in enumerate(itertools.product(*axes.values()), 1):
        parameters = dict(zip(axes, values, strict=True))
        words = [f"{name}={json.dumps(value)}" for name, value in parameters.items()]
        file = path.with_name(f"{path.stem}-{number:0{digits}}{path.suffix}")
        spec = specification_from(arguments.stimulus, [*arguments.set, *words])
        # Each image has dither of its own.
        seeded = replace(encoding, seed=encoding.seed + number)
        record = _render(file, spec, display, seeded)
        certificate = record["certificate"]
        delivered = {
            f"delivered {row['quantity']}": row["delivered"]
            for row in certificate["rows"]
            if row["quantity"] in _TABLED
        }
        rows.append(
            {
                "file": file.name,
                **parameters,
                **delivered,
                "passed": certificate["passed"],
                "sha256": record["sha256"],
            }
        )
        if arguments.sheet:
            pictures.append(_thumbnail(spec, display))
    table = path.with_suffix(".csv")
    write_text(table, csv_text(rows) + "\n")
    summary = {
        "files": count,
        "table": str(table),
        "passed": sum(row["passed"] for row in rows),
    }
    line = (
        f"{count} files beside {path}, {summary['passed']} within all tolerances; {table} lists "
        "them"
    )
    if arguments.sheet:
        sheet = path.with_name(f"{path.stem}-sheet.png")
        data = encode_png(_contact_sheet(pictures, digits))
        write_whole(sheet, lambda partial: partial.write_bytes(data))
        summary["sheet"] = str(sheet)
        line += f", {sheet} shows them"
    show(summary, line, arguments)
    return 0


#: Delivered quantities that the table of a grid lists for each file.
_TABLED = (
    "contrast",
    "rms contrast",
    "mean luminance",
    "frequency",
    "orientation",
    "radius",
)


def _axes(words: Sequence[str]) -> dict[str, list[Any]]:
    """Read from NAME=VALUES words the values of each parameter of a grid."""
    axes = {}
    for word in words:
        name, _, values = word.partition("=")
        axes[name] = [
            settings([f"{name}={value}"], "--grid")[name]
            for value in values.split(",")
            if value
        ]
        if not axes[name]:
            raise InputError(f"--grid {word!r} has no values; write --grid NAME=V,V")
    return axes


def _thumbnail(spec: Specification, display: Display) -> Any:
    """Draw a stimulus as a small picture."""
    from PIL import Image

    drive = np.asarray(display.encode(spec.draw(), clip=True))
    picture = Image.fromarray(np.rint(255 * drive.clip(0, 1)).astype(np.uint8))
    picture.thumbnail((_THUMBNAIL, _THUMBNAIL))
    return picture


def _contact_sheet(pictures: Sequence[Any], digits: int) -> ByteArray:
    """Arrange pictures in rows, each with its number below."""
    from PIL import Image, ImageDraw

    columns = min(len(pictures), 8)
    cell = _THUMBNAIL + 20
    sheet = Image.new(
        "RGB", (columns * cell, math.ceil(len(pictures) / columns) * cell), "white"
    )
    pen = ImageDraw.Draw(sheet)
    for index, picture in enumerate(pictures):
        row, column = divmod(index, columns)
        left = column * cell + 10
        top = row * cell
        sheet.paste(picture, (left, top + 2))
        number = f"{index + 1:0{digits}}"
        pen.text((left, top + _THUMBNAIL + 4), number, fill="black")
    return np.asarray(sheet)


def _write(
    path: Path, drive: FloatArray, stimulus: Stimulus, encoding: _Encoding
) -> None:
    """Write an image in the format that the path's ending names."""
    match path.suffix.lower():
        case ".png":
            path.write_bytes(_encode_drive(drive, encoding))
        case ".tiff":
            import tifffile

            tifffile.imwrite(path, np.ascontiguousarray(drive), photometric="rgb")
        case ".npy":
            np.save(path, np.ascontiguousarray(drive))
        case _:
            pixels = np.asarray(stimulus.pixels)
            space = stimulus.space
            np.savez(path, drive=drive, pixels=pixels, space=space, ppd=stimulus.ppd)


def _encode_drive(drive: FloatArray, encoding: _Encoding) -> bytes:
    """Encode drive values (0 to 1) of one image as the bytes of a PNG."""
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
    if encoding.packing:
        image: Codes = pack(drive, encoding.packing, encoding.dither, encoding.seed)
    else:
        plane = drive[..., 0] if ImagePlanes.of(drive).is_grey else drive
        codes = to_codes(plane, encoding.bits, encoding.dither, encoding.seed)
        image = spread(codes, encoding.bits)
    return encode_png(image, noise=encoding.dither != "none")


def corrupt_command(arguments: Namespace) -> int:
    """Corrupt image files, or list the kinds of corruption if no file is named."""
    if not arguments.images:
        return _list_corruptions(arguments)
    paths = [
        path
        for name in arguments.images
        for path in (images_in(name) if Path(name).is_dir() else [Path(name)])
    ]
    corrupted = corrupt_files(
        paths,
        arguments.output,
        names=arguments.name,
        strengths=arguments.strength,
        seed=arguments.seed,
        scale=arguments.scale,
        skip=arguments.skip_bad,
    )
    if not arguments.json:
        for problem in corrupted.skipped:
            tell(f"left out: {problem}")
    originals = len(paths) - len(corrupted.skipped)
    manifest = corrupted.manifest
    record = {
        "files": len(corrupted.files),
        "manifest": str(manifest),
        "skipped": list(corrupted.skipped),
    }
    line = (
        f"{len(corrupted.files)} images of {originals} originals in {manifest.parent}; "
        f"{manifest.name} lists them."
    )
    show(record, line, arguments)
    return 0


def _list_corruptions(arguments: Namespace) -> int:
    """Print the corruptions with their levels, and return the exit code 0."""
    lines = []
    for dimension in dimensions().values():
        levels = ", ".join(f"{level:g}" for level in dimension.levels)
        simulated = "; simulated, R-Bench photographed it" if dimension.captured else ""
        lines.append(
            f"{dimension.id:2}  {dimension.name:24} {dimension.step}  {dimension.group:12} "
            f"{levels} ({dimension.parameter}){simulated}"
        )
    records = [vars(dimension) for dimension in dimensions().values()]
    show(records, "\n".join(lines), arguments)
    return 0
