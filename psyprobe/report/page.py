"""A page as one file: style, images as data, and text that cannot do anything."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #111; background: #fff; margin: 2rem auto; max-width: 68rem;
padding: 0 1rem }
h1 { font-size: 1.4rem }
h2 { font-size: 1.1rem; margin-top: 2.2rem; border-top: 1px solid #ccc; padding-top: 1rem }
figure { display: inline-block; margin: 0 .8rem .4rem 0; vertical-align: top }
figcaption { font-size: .85rem; color: #555 }
img { max-width: 100%; height: auto; display: block }
table { border-collapse: collapse; margin: .5rem 0 }
td, th { border-bottom: 1px solid #ddd; padding: .25rem .7rem; text-align: left; vertical-align: top;
white-space: pre-wrap }
th { font-weight: 600 } .wrong { background: #fdeaea } .note { color: #555 }
"""


def escape(text: str) -> str:
    """Text as a browser shows it, whatever it holds: tags and quotes do nothing, control characters are seen.

    Parameters
    ----------
    text : str
        Perhaps from a model.

    Returns
    -------
    str

    Examples
    --------
    >>> escape("<script>alert('x')</script>")
    '&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;'
    """
    seen = "".join(c if c in "\n\t" or c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return html.escape(seen)


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        Plain text.
    parts : iterable of str
        HTML of the body; texts in it escaped by whoever wrote them.

    Returns
    -------
    str
        It loads nothing: no script, no font, no image from elsewhere.
    """
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def picture(image: Any, caption: str = "", width: int = 320) -> str:
    """An image inside a page.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.
    caption : str
        Plain text under it; also what is read aloud for it.
    width : int
        Largest width, px; wider ones are made smaller.

    Returns
    -------
    str
        A figure element with the image as PNG or, where that is smaller, JPEG.
    """
    from PIL import Image

    shown = Image.fromarray(np.asarray(image, dtype=np.uint8))
    if shown.width > width:
        shown = shown.resize((width, max(1, round(shown.height * width / shown.width))), Image.Resampling.LANCZOS)
    streams = {}
    for kind, options in (("png", {}), ("jpeg", {"quality": 88})):
        stream = io.BytesIO()
        shown.save(stream, kind.upper(), **options)
        streams[kind] = stream.getvalue()
    kind = min(streams, key=lambda name: len(streams[name]))
    data = base64.b64encode(streams[kind]).decode()
    return (
        f'<figure><img src="data:image/{kind};base64,{data}" alt="{escape(caption)}" width="{shown.width}" '
        f'height="{shown.height}"><figcaption>{escape(caption)}</figcaption></figure>'
    )


def table(heading: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """A table.

    Parameters
    ----------
    heading : iterable of str
        Plain text.
    rows : iterable of (str, iterable of str)
        A class of the row ("wrong", or none) and its cells, plain text.

    Returns
    -------
    str
        A table element.
    """
    lines = ["<table><tr>", *(f"<th>{escape(cell)}</th>" for cell in heading), "</tr>"]
    for kind, cells in rows:
        lines += [f'<tr class="{kind}">' if kind else "<tr>", *(f"<td>{escape(cell)}</td>" for cell in cells), "</tr>"]
    return "".join([*lines, "</table>"])


def write_page(text: str, path: str | Path) -> Path:
    """Write a page whole or not at all.

    Parameters
    ----------
    text : str
        As `page` gives it.
    path : str or Path
        Where.

    Returns
    -------
    Path
    """
    from psyprobe.files.output import write_whole

    target = Path(path)
    write_whole(target, lambda part: part.write_text(text, encoding="utf-8"))
    return target
