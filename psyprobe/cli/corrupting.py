"""``psyprobe corrupt``: images and folders of them, in the 33 ways of R-Bench."""

from __future__ import annotations

import argparse
from pathlib import Path

from psyprobe.files.terminal import show, tell


def add_corrupt_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("images", nargs="*", metavar="IMAGE|FOLDER", help="image files, and folders of them")
    parser.add_argument(
        "--name", nargs="+", metavar="NAME", help="dimensions (default: all 33; without images: listed)"
    )
    parser.add_argument(
        "--strength", nargs="+", default=["low", "mid", "high"], metavar="LEVEL", help="low, mid, high (all)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (default %(default)s)")
    parser.add_argument(
        "--scale", action="store_true", help="scale lengths and counts, meant for 512 x 384, to the image"
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave out images that cannot be read, and count them")
    parser.add_argument("--output", default="corrupted", metavar="DIR", help="folder (default %(default)s)")


def corrupt_command(arguments: argparse.Namespace) -> int:
    """Corrupt images; without any, list the dimensions."""
    from psyprobe.corruption.apply import corrupt_files
    from psyprobe.files.images import images_in

    if not arguments.images:
        return _list(arguments.json)
    paths = [path for name in arguments.images for path in (images_in(name) if Path(name).is_dir() else [Path(name)])]
    done = corrupt_files(
        paths,
        arguments.output,
        names=arguments.name,
        strengths=arguments.strength,
        seed=arguments.seed,
        scale=arguments.scale,
        skip=arguments.skip_bad,
    )
    if not arguments.json:
        for problem in done.skipped:
            tell(f"left out: {problem}")
    originals = len(paths) - len(done.skipped)
    show(
        {"files": len(done.files), "manifest": str(done.manifest), "skipped": list(done.skipped)},
        f"{len(done.files)} images of {originals} originals in {done.manifest.parent}; "
        f"{done.manifest.name} lists them.",
        as_json=arguments.json,
    )
    return 0


def _list(as_json: bool) -> int:
    from psyprobe.corruption import dimensions

    known = dimensions().values()
    lines = []
    for each in known:
        levels = ", ".join(f"{level:g}" for level in each.levels)
        simulated = "; simulated, R-Bench photographed it" if each.captured else ""
        lines.append(f"{each.id:2}  {each.name:24} {each.step}  {each.group:12} {levels} ({each.parameter}){simulated}")
    show([vars(each) for each in known], "\n".join(lines), as_json=as_json)
    return 0
