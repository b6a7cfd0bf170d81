"""A page as one file: a template in which every value is escaped, with its images as data."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from numpy.typing import ArrayLike

from psyprobe.analysis.score import number
from psyprobe.files.output import write_text
from psyprobe.files.parsing import packaged_text
from psyprobe.files.terminal import printable


@dataclass(frozen=True)
class Picture:
    """An image as ``figure`` of ``reporting/parts.html`` takes it."""

    #: A data URL that holds the whole file.
    url: str
    #: In px, as the next.
    width: int
    height: int


def render(template: str, **values: Any) -> str:
    r"""Fill in the HTML template of a page that loads nothing from elsewhere.

    Parameters
    ----------
    template : str
        Path inside psyprobe of a template that extends ``reporting/page.html``:
        "reporting/report.html".
    **values
        What the template names, all of it. Tags and quotes in text do nothing, and control
        characters are seen.

    Examples
    --------
    >>> print(render("reporting/page.html", title="<script>\x1b")[:85])
    <!doctype html>
    <html lang="en"><head><meta charset="utf-8"><title>&lt;script&gt;\x1b
    """
    return _make_environment().get_template(template).render(values)


@functools.cache
def _make_environment() -> Environment:
    """Set up the templates of reports, which escape and clean all text."""
    environment = Environment(
        loader=PackageLoader("psyprobe", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: (
            printable(value)
            if isinstance(value, str) and not isinstance(value, Markup)
            else value
        ),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = _asset
    environment.filters |= {
        "policy": _policy,
        "compact_json": _compact_json,
        "number": number,
    }
    return environment


def _asset(name: str) -> Markup:
    """Read a script or style of psyprobe's that stands in a page."""
    return Markup(packaged_text("psyprobe.reporting", name))


def _policy(text: str) -> Markup:
    """Build the digest by which a content security policy allows a script or style."""
    code = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(f"'sha256-{code}'")


def _compact_json(value: Any) -> Markup:
    """Write JSON for a script, so that no tag in it can end the script."""
    return htmlsafe_json_dumps(
        value, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def picture(image: ArrayLike, width: int = 320) -> Picture:
    """Encode an image for a page, as PNG or smaller JPEG.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    width : int
        Largest width, px; a wider image is made smaller.
    """
    from PIL import Image

    small = Image.fromarray(np.asarray(image, dtype=np.uint8))
    if small.width > width:
        height = max(1, round(small.height * width / small.width))
        small = small.resize((width, height), Image.Resampling.LANCZOS)
    streams = {}
    for kind, options in (("png", {}), ("jpeg", {"quality": 88})):
        stream = io.BytesIO()
        small.save(stream, kind.upper(), **options)
        streams[kind] = stream.getvalue()
    kind = min(streams, key=lambda name: len(streams[name]))
    return Picture(
        f"data:image/{kind};base64,{base64.b64encode(streams[kind]).decode()}",
        small.width,
        small.height,
    )


def write_page(text: str, path: str | Path) -> Path:
    """Write a page to a file, never leaving half of one, and return its path."""
    target = Path(path)
    write_text(target, text)
    return target
