"""A page as one file: a template in which every value is escaped, with its images as data."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from psyprobe.files.images import encode_png
from psyprobe.files.output import write_text
from psyprobe.files.terminal import printable


@dataclass(frozen=True)
class Picture:
    """An image as ``figure`` of ``reporting/parts.html`` takes it."""

    #: data: with the whole file.
    url: str
    #: px.
    width: int
    height: int


def render(template: str, **values: Any) -> str:
    r"""A page that loads nothing, and runs no script and takes no style but those whose digests its
    policy names.

    Parameters
    ----------
    template : str
        Path inside psyprobe of a template that extends ``reporting/page.html``:
        "tasks/r_bench/report.html".
    **values
        What the template names, all of it. Tags and quotes in text do nothing, and control
        characters are seen.

    Examples
    --------
    >>> print(render("reporting/page.html", title="<script>\x1b")[:85])
    <!doctype html>
    <html lang="en"><head><meta charset="utf-8"><title>&lt;script&gt;\x1b
    """
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("psyprobe", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: (
            printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = _asset
    environment.filters |= {"policy": _policy, "compact_json": _compact_json}
    return environment


def _asset(name: str) -> Markup:
    """A file of ours, to stand in a page as it is."""
    return Markup(files("psyprobe.reporting").joinpath(name).read_text(encoding="utf-8"))


def _policy(text: str) -> Markup:
    """The digest by which a content security policy allows a script or a style."""
    return Markup(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")


def _compact_json(value: Any) -> Markup:
    """JSON that no tag in it can end."""
    return htmlsafe_json_dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def picture(image: Any, width: int = 320) -> Picture:
    """An image inside a page, as PNG or, where that is smaller, JPEG.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    width : int
        Largest width, px; wider ones are made smaller.
    """
    from PIL import Image

    shown = Image.fromarray(np.asarray(image, dtype=np.uint8))
    if shown.width > width:
        shown = shown.resize(
            (width, max(1, round(shown.height * width / shown.width))), Image.Resampling.LANCZOS
        )
    streams = {}
    for kind, options in (("png", {}), ("jpeg", {"quality": 88})):
        stream = io.BytesIO()
        shown.save(stream, kind.upper(), **options)
        streams[kind] = stream.getvalue()
    kind = min(streams, key=lambda name: len(streams[name]))
    return Picture(
        f"data:image/{kind};base64,{base64.b64encode(streams[kind]).decode()}",
        shown.width,
        shown.height,
    )


def detail(image: Any, side: int = 96) -> Picture:
    """The middle of an image inside a page, lossless, to be shown larger: what a codec did is seen
    there.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    side : int
        Of the part, px, at most.
    """
    top, left = (max(0, (length - side) // 2) for length in image.shape[:2])
    part = np.ascontiguousarray(image[top : top + side, left : left + side], dtype=np.uint8)
    url = f"data:image/png;base64,{base64.b64encode(encode_png(part)).decode()}"
    return Picture(url, part.shape[1], part.shape[0])


def write_page(text: str, path: str | Path) -> Path:
    """Write a page as `render` gives it, whole or not at all, and give its path."""
    target = Path(path)
    write_text(target, text)
    return target
