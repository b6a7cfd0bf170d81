"""``psyprobe r-bench`` build, export, import, example and gallery: sets of images and pages of them."""

from __future__ import annotations

import argparse
from pathlib import Path

from psyprobe.files.terminal import say, say_json, tell


def build_action(arguments: argparse.Namespace) -> int:
    """Build a set.

    Parameters
    ----------
    arguments : Namespace
        ``photographs``, ``questions``, ``output``, ``items``, ``seed``, ``scale``, ``skip_bad``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.tasks.r_bench.build import build_set

    built = build_set(
        arguments.photographs,
        arguments.questions,
        arguments.output,
        items_per_cell=arguments.items,
        seed=arguments.seed,
        scale=arguments.scale,
        skip=arguments.skip_bad,
    )
    if arguments.json:
        say_json(
            {
                "folder": str(built.folder),
                "items": built.items,
                "skipped": list(built.skipped),
                "unchanged": list(built.unchanged),
            }
        )
        return 0
    for problem in built.skipped:
        tell(f"left out: {problem}")
    if built.unchanged:
        tell(
            f"{len(built.unchanged)} corrupted images are no different from their references; manifest.json lists them"
        )
    say(f"{built.items} items in {built.folder}; look at contact_sheet.png before you ask anybody.")
    return 0


def export_action(arguments: argparse.Namespace) -> int:
    """Write a set's multiple choice for VLMEvalKit.

    Parameters
    ----------
    arguments : Namespace
        ``set``, ``output``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.tasks.r_bench import read_set
    from psyprobe.tasks.r_bench.vlmevalkit import export_tsv

    written = export_tsv(read_set(arguments.set), arguments.output)
    if arguments.json:
        say_json({kind: str(path) for kind, path in written.items()})
    else:
        say("\n".join(str(path) for path in written.values()))
    return 0


def import_action(arguments: argparse.Namespace) -> int:
    """Make a set of VLMEvalKit's tables.

    Parameters
    ----------
    arguments : Namespace
        ``corrupted``, ``reference``, ``output``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.tasks.r_bench.vlmevalkit import import_tsv

    items = import_tsv(arguments.corrupted, arguments.reference, arguments.output)
    if arguments.json:
        say_json({"folder": arguments.output, "items": items})
    else:
        say(f"{items} items in {arguments.output}")
    return 0


def example_action(arguments: argparse.Namespace) -> int:
    """Write photographs and questions to try things with.

    Parameters
    ----------
    arguments : Namespace
        ``output``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.tasks.r_bench.example import write_example

    photographs, questions = write_example(arguments.output)
    if arguments.json:
        say_json({"photographs": str(photographs), "questions": str(questions)})
    else:
        say(f"psyprobe r-bench build {photographs} {questions} --output SET")
    return 0


def gallery_action(arguments: argparse.Namespace) -> int:
    """Write a page with an image in all 33 ways.

    Parameters
    ----------
    arguments : Namespace
        ``image``, ``seed``, ``scale``, ``output``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.files.images import read_image
    from psyprobe.report.page import write_page
    from psyprobe.tasks.r_bench.report import gallery

    image = read_image(arguments.image)
    text = gallery(image, name=Path(arguments.image).stem, seed=arguments.seed, scale=arguments.scale)
    path = write_page(text, arguments.output)
    if arguments.json:
        say_json({"page": str(path)})
    else:
        say(str(path))
    return 0
