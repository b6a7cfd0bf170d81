"""Tools by name, as they stand on a command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from psyprobe.errors import InputError, unknown_name
from psyprobe.tasks.mvp_construction.classical_tools import RecolourEditor, RegionSegmenter, SmoothInpainter
from psyprobe.tasks.mvp_construction.model_tools import DiffusionInpainter, InstructEditor, SamSegmenter
from psyprobe.tasks.mvp_construction.tools import Editor, Inpainter, Segmenter

#: Of each kind of tool, those without weights, and those that take a MODEL: a folder or a name on the model hub.
_TOOLS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "segmenter": {
        "felzenszwalb": partial(RegionSegmenter, "felzenszwalb"),
        "slic": partial(RegionSegmenter, "slic"),
        "sam:MODEL": SamSegmenter,
    },
    "inpainter": {"pull_push": SmoothInpainter, "inpaint:MODEL": DiffusionInpainter},
    "editor": {"recolour": RecolourEditor, "instruct:MODEL": InstructEditor},
}


def load_segmenter(name: str, **settings: Any) -> Segmenter:
    """A segmenter.

    Parameters
    ----------
    name : str
        "felzenszwalb", "slic" or "sam:MODEL", with a folder or a name on the model hub.
    **settings
        Of the tool.

    Raises
    ------
    UnknownNameError
        There is none of that name.
    PsyprobeError
        What it needs is not installed or not on this machine.
    """
    found: Segmenter = _load("segmenter", name, settings)
    return found


def load_inpainter(name: str, **settings: Any) -> Inpainter:
    """An inpainter: "pull_push", a classical substitute, or "inpaint:MODEL"; raises as `load_segmenter` does."""
    found: Inpainter = _load("inpainter", name, settings)
    return found


def load_editor(name: str, **settings: Any) -> Editor:
    """An editor: "recolour", a classical substitute, or "instruct:MODEL"; raises as `load_segmenter` does."""
    found: Editor = _load("editor", name, settings)
    return found


def _load(kind: str, name: str, settings: dict[str, Any]) -> Any:
    family, _, model = name.partition(":")
    called = f"{family}:MODEL" if model else name
    if called not in _TOOLS[kind] or name.endswith(":MODEL"):
        raise unknown_name(kind, name, _TOOLS[kind])
    try:
        return _TOOLS[kind][called](*([model] if model else []), **settings)
    except TypeError as error:
        raise InputError(
            f"{name}: {str(error).partition('() ')[2]}; its settings are in docs/mvp_construction.md"
        ) from None
