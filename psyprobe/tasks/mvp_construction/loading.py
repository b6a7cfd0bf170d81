"""Tools by name, as they stand on a command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.tasks.mvp_construction.tools import Editor, Inpainter, Segmenter

Tool = TypeVar("Tool")

SEGMENTERS = ("felzenszwalb", "slic", "sam:MODEL")
INPAINTERS = ("pull_push", "inpaint:MODEL")
EDITORS = ("recolour", "instruct:MODEL")


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
    from psyprobe.tasks.mvp_construction.classical_tools import RegionSegmenter
    from psyprobe.tasks.mvp_construction.model_tools import SamSegmenter

    kind, _, model = name.partition(":")
    if name in ("felzenszwalb", "slic"):
        return RegionSegmenter(name, **settings)
    if kind == "sam" and model:
        return SamSegmenter(model, **settings)
    raise unknown_name("segmenter", name, SEGMENTERS)


def load_inpainter(name: str, **settings: Any) -> Inpainter:
    """An inpainter: "pull_push", a classical substitute, or "inpaint:MODEL"; raises as `load_segmenter` does."""
    from psyprobe.tasks.mvp_construction.classical_tools import SmoothInpainter
    from psyprobe.tasks.mvp_construction.model_tools import DiffusionInpainter

    kind, _, model = name.partition(":")
    if name == "pull_push":
        return _made(SmoothInpainter, name, settings)
    if kind == "inpaint" and model:
        return _made(DiffusionInpainter, name, {"model": model, **settings})
    raise unknown_name("inpainter", name, INPAINTERS)


def load_editor(name: str, **settings: Any) -> Editor:
    """An editor: "recolour", a classical substitute, or "instruct:MODEL"; raises as `load_segmenter` does."""
    from psyprobe.tasks.mvp_construction.classical_tools import RecolourEditor
    from psyprobe.tasks.mvp_construction.model_tools import InstructEditor

    kind, _, model = name.partition(":")
    if name == "recolour":
        return _made(RecolourEditor, name, settings)
    if kind == "instruct" and model:
        return _made(InstructEditor, name, {"model": model, **settings})
    raise unknown_name("editor", name, EDITORS)


def _made(tool: Callable[..., Tool], name: str, settings: dict[str, Any]) -> Tool:
    try:
        return tool(**settings)
    except PsyprobeError:
        raise
    except TypeError as error:
        raise InputError(
            f"{name}: {str(error).partition('() ')[2]}; its settings are in docs/mvp_construction.md"
        ) from None
