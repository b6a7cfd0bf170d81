"""``psyprobe mvp-build``: from a folder of photographs to image pairs with questions, resumable."""

from __future__ import annotations

import argparse

from psyprobe.files.terminal import settings, show
from psyprobe.tasks.items import load_answerer
from psyprobe.tasks.mvp_construction.build import build_set
from psyprobe.tasks.mvp_construction.manipulation import Tools
from psyprobe.tasks.mvp_construction.steps import gather_items
from psyprobe.tasks.mvp_construction.tools import load_tool


def mvp_build_command(arguments: argparse.Namespace) -> int:
    """Build a set of image pairs with questions, or resume one that was begun."""
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
        show({**plan, "states": states}, "\n".join(lines), arguments)
        return 0
    tools = {}
    for kind in ("segmenter", "inpainter", "editor"):
        options = settings(getattr(arguments, f"{kind}_option"), f"--{kind}-option")
        tools[kind] = load_tool(kind, getattr(arguments, kind), **options)
    chat = captioner = load_answerer(
        arguments.chat, arguments.chat_option, "--chat-option"
    )
    if arguments.captioner is not None:
        captioner = load_answerer(
            arguments.captioner, arguments.captioner_option, "--captioner-option"
        )
    report = build_set(
        arguments.photographs,
        arguments.output,
        captioner=captioner,
        chat=chat,
        tools=Tools(**tools),
        offered=arguments.category,
        region=arguments.region,
        seed=arguments.seed,
        retry=arguments.retry,
    )
    show(report.to_dict(), str(report), arguments)
    return 0
