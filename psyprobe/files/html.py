"""Build HTML by which values show themselves in a notebook; all text in it is inert."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from psyprobe.files.images import encode_png
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.terminal import printable

#: Longer side of a picture, size of a curve, and margins for axes and titles, px.
_SIDE = 168
_CURVE = (220, 140)
_LEFT = 44
_BELOW = 34
_ABOVE = 18
#: Readable on a light page and on a dark one.
_INK = "#808080"
_TEXT = f'fill="{_INK}" font-size="11" font-family="sans-serif" text-anchor="middle"'


def inert(value: Any) -> str:
    r"""Escape text for HTML, so that no tag, quote or control character in it has an effect.

    Examples
    --------
    >>> inert("<script>'\x1b")
    '&lt;script&gt;&#x27;\\x1b'
    """
    return escape(printable(str(value)))


def table(rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Build an HTML table whose first row is its heading; cells are text.

    Examples
    --------
    >>> table([["observer", "r_s"], ["<b>", 0.5]])
    '<table><thead><tr><th>observer</th><th>r_s</th></tr></thead><tbody><tr><td>&lt;b&gt;...'
    """
    header, *body = [[inert(cell) for cell in row] for row in rows]
    title = f"<caption>{inert(caption)}</caption>" if caption else ""
    heading = "".join(f"<th>{cell}</th>" for cell in header)
    cells = ["".join(f"<td>{cell}</td>" for cell in row) for row in body]
    lines = "".join(f"<tr>{row}</tr>" for row in cells)
    return (
        f"<table>{title}<thead><tr>{heading}</tr></thead><tbody>{lines}</tbody></table>"
    )


def fields(values: JsonMapping, caption: str = "") -> str:
    """Build an HTML table of names and their values."""
    return table(
        [["", ""], *([name, value] for name, value in values.items())], caption
    )


def paragraphs(text: str) -> str:
    """Build an HTML paragraph for each line of a text."""
    return "".join(f"<p>{inert(line)}</p>" for line in text.split("\n") if line.strip())


def preformatted(text: str) -> str:
    """Build an HTML block of text whose columns stay aligned."""
    return f"<pre>{inert(text)}</pre>"


def folded(summary: str, content: str) -> str:
    """Fold HTML so that a click on its summary, which is text, opens it."""
    return f"<details><summary>{inert(summary)}</summary>{content}</details>"


def beside(parts: Sequence[str]) -> str:
    """Put pieces of HTML side by side, as many as fit."""
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:0.5em">'
        + "".join(parts)
        + "</div>"
    )


def picture(codes: Any, degrees: tuple[float, float], title: str = "") -> str:
    """Draw an image as HTML, with axes in degrees of visual angle.

    Parameters
    ----------
    codes : ndarray of uint8, shape (H, W, 3)
        sRGB, drawn pixel for pixel or larger, without smoothing.
    degrees : (float, float)
        Height and width of the image.
    title : str
        Title above it.
    """
    height, width = codes.shape[:2]
    scale = _SIDE / max(height, width)
    high = height * scale
    wide = width * scale
    data = base64.b64encode(encode_png(codes)).decode()
    image = (
        f'<image x="{_LEFT}" y="{_ABOVE}" width="{wide:.1f}" height="{high:.1f}" '
        'preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )
    spans = (-degrees[1] / 2, degrees[1] / 2), (-degrees[0] / 2, degrees[0] / 2)
    return _draw_frame(image, (wide, high), spans, ("x (deg)", "y (deg)"), title)


def curve(x: Any, y: Any, labels: tuple[str, str], title: str = "") -> str:
    """Draw a line through points as SVG, in a frame from 0 to the largest value of both axes."""
    wide, high = _CURVE
    right = float(np.max(x))
    top = float(np.max(y))
    points = " ".join(
        f"{_LEFT + wide * a / right:.1f},{_ABOVE + high * (1 - b / top):.1f}"
        for a, b in zip(x, y, strict=True)
    )
    line = (
        f'<polyline points="{points}" fill="none" stroke="#3b82c4" stroke-width="2"/>'
    )
    return _draw_frame(line, _CURVE, ((0.0, right), (0.0, top)), labels, title)


def _draw_frame(
    content: str,
    size: tuple[float, float],
    spans: tuple[tuple[float, float], tuple[float, float]],
    labels: tuple[str, str],
    title: str,
) -> str:
    """Draw an SVG frame around content, with the ends and the middle of both axes."""
    wide, high = size
    parts = [
        content,
        f'<rect x="{_LEFT}" y="{_ABOVE}" width="{wide:.1f}" height="{high:.1f}" fill="none" '
        f'stroke="{_INK}"/>',
        f'<text x="{_LEFT + wide / 2:.1f}" y="12" {_TEXT}>{inert(title)}</text>',
    ]
    bottom = _ABOVE + high
    for share in (0, 0.5, 1):
        x, y = (low + share * (top - low) for low, top in spans)
        parts.append(
            f'<text x="{_LEFT + share * wide:.1f}" y="{bottom + 14:.1f}" {_TEXT}>{x:.3g}</text>'
        )
        parts.append(
            f'<text x="{_LEFT - 16}" y="{bottom - share * high + 4:.1f}" {_TEXT}>{y:.3g}</text>'
        )
    parts.append(
        f'<text x="{_LEFT + wide / 2:.1f}" y="{bottom + 28:.1f}" {_TEXT}>{inert(labels[0])}</text>'
    )
    middle = f"{_ABOVE + high / 2:.1f}"
    parts.append(
        f'<text x="10" y="{middle}" transform="rotate(-90 10 {middle})" '
        f"{_TEXT}>{inert(labels[1])}</text>"
    )
    name = inert(f"{title}: {labels[1]} over {labels[0]}".removeprefix(": "))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{name}" '
        f'width="{_LEFT + wide + 14:.0f}" '
        f'height="{bottom + _BELOW:.0f}">{"".join(parts)}</svg>'
    )
