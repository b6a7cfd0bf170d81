"""``psyprobe replay``: responses that others stored, as results."""

from __future__ import annotations

import argparse
import re
from functools import partial

from psyprobe.files.output import make_folder, write_whole
from psyprobe.files.terminal import show


def add_replay_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE", help="responses along the human curve: .csv or .csv.gz")
    parser.add_argument("--grids", required=True, metavar="DIR", help="folder of TEST.npz: responses on the level grid")
    parser.add_argument("--model", nargs="+", metavar="NAME", help="models of the table (default: all)")
    parser.add_argument("--test", nargs="+", metavar="NAME", help="tests of the table (default: all)")
    parser.add_argument("--output", default="psyprobe-results", metavar="DIR", help="folder (default %(default)s)")


def replay_command(arguments: argparse.Namespace) -> int:
    """Write a result file for each stored model and test."""
    from psyprobe.analysis.published import replay

    results = replay(arguments.table, arguments.grids, models=arguments.model, tests=arguments.test)
    folder = make_folder(arguments.output)
    files = []
    for result in results:
        # Names of models come out of files; they must not lead out of the folder.
        name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{result.attrs['experiment']}-{result.attrs['observer']}").strip("-.")
        files.append(folder / f"{name[:200]}.nc")
        write_whole(files[-1], partial(result.to_netcdf, engine="scipy"))
    show({"files": list(map(str, files))}, "\n".join(map(str, files)), as_json=arguments.json)
    return 0
