"""``psyprobe mvp-build``: from a folder of photographs to image pairs with questions, resumable."""

from __future__ import annotations

import argparse
from typing import Any

from psyprobe.files.terminal import settings, show
from psyprobe.observers import load_observer
from psyprobe.tasks.mvp_construction.build import build_set
from psyprobe.tasks.mvp_construction.manipulation import Tools
from psyprobe.tasks.mvp_construction.steps import gather_items
from psyprobe.tasks.mvp_construction.tools import load_editor, load_inpainter, load_segmenter

_WITH_OPTIONS = ("chat", "captioner", "segmenter", "inpainter", "editor")


def add_mvp_build_options(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add("photographs", metavar="PHOTOGRAPHS", help="folder of images")
    add(
        "--chat",
        required=True,
        metavar="NAME",
        help="chat model that proposes and writes questions",
    )
    add(
        "--captioner", metavar="NAME", help="chat model that looks at photographs (default: --chat)"
    )
    for tool, default, known in (
        ("segmenter", "felzenszwalb", "felzenszwalb, slic or sam:MODEL"),
        ("inpainter", "pull_push", "pull_push or inpaint:MODEL"),
        ("editor", "recolour", "recolour or instruct:MODEL"),
    ):
        add(f"--{tool}", default=default, metavar="NAME", help=f"{known} (default %(default)s)")
    for tool in _WITH_OPTIONS:
        given: dict[str, Any] = {
            "nargs": "+",
            "action": "extend",
            "default": [],
            "metavar": "NAME=VALUE",
        }
        add(f"--{tool}-option", help="what it takes besides", **given)
    add(
        "--category",
        nargs="+",
        default=[],
        metavar="CODE",
        help="low-level categories that may be proposed (B1 to S2)",
    )
    add("--region", default="box", help="cut parts out by their box, or mask (default %(default)s)")
    add("--seed", type=int, default=0, help="of every draw (default %(default)s)")
    add("--retry", action="store_true", help="try failed steps again")
    add(
        "--plan",
        action="store_true",
        help="say how far the set is and what is to do, and do nothing",
    )
    add(
        "--output",
        required=True,
        metavar="SET",
        help="folder of the set; goes on with one that is there",
    )


def mvp_build_command(arguments: argparse.Namespace) -> int:
    """Build a set, or go on with one that was begun."""
    if arguments.plan:
        items = gather_items(arguments.photographs, arguments.output)
        count = len(items)
        states = {str(item.number): item.state for item in items}
        plan = {
            "photographs": count,
            "questions_about_images": 5 * count,
            "questions_in_words": 3 * count,
        }
        lines = [
            f"{count} photographs: up to {5 * count} questions about images, {3 * count} in "
            "words and "
            f"{count} images to draw; what the set holds is not asked or drawn again.",
            *(f"  {number}: {state}" for number, state in states.items()),
        ]
        show({**plan, "states": states}, "\n".join(lines), as_json=arguments.json)
        return 0
    given = {
        name: settings(getattr(arguments, f"{name}_option"), f"--{name}-option")
        for name in _WITH_OPTIONS
    }
    tools = Tools(
        load_segmenter(arguments.segmenter, **given["segmenter"]),
        load_inpainter(arguments.inpainter, **given["inpainter"]),
        load_editor(arguments.editor, **given["editor"]),
    )
    chat = load_observer(arguments.chat, **given["chat"])
    captioner = (
        chat
        if arguments.captioner is None
        else load_observer(arguments.captioner, **given["captioner"])
    )
    report = build_set(
        arguments.photographs,
        arguments.output,
        captioner=captioner,
        chat=chat,
        tools=tools,
        offered=arguments.category,
        region=arguments.region,
        seed=arguments.seed,
        retry=arguments.retry,
    )
    show(report.to_dict(), str(report), as_json=arguments.json)
    return 0
