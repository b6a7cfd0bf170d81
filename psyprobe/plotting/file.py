"""Figures as files, the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What each format would say about the time and the software, left out so that equal figures are equal files.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
}


def save_figure(figure: Figure | Axes, path: str | Path, *, dpi: float = 200) -> Path:
    """Write a figure to a file, in the format of its suffix.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
        What the drawing functions return.
    path : str or Path
        Ending in ".png", ".svg" or ".pdf". An existing file is replaced.
    dpi : float, optional
        Pixels per inch of a PNG.

    Returns
    -------
    Path
        Where the figure is.

    Raises
    ------
    UnknownNameError
        If the suffix is none of these.
    InputError
        If the file cannot be written.

    Notes
    -----
    Text stays text in a PDF (TrueType, as journals ask) and becomes outlines in an SVG. The same figure gives the
    same bytes, with the same version of matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _METADATA:
        raise unknown_name("figure format", suffix or target.name, _METADATA)
    whole = figure if isinstance(figure, Figure) else cast("Figure", figure.figure)
    try:
        with mpl.rc_context({"svg.hashsalt": "psyprobe", "pdf.fonttype": 42}):
            whole.savefig(target, dpi=dpi, format=suffix[1:], metadata=_METADATA[suffix])
    except OSError as error:
        raise InputError(f"the figure cannot be written to {target}: {error.strerror or error}") from error
    return target
