"""Print again what a command printed of the same stores, where nothing that counts has changed.

What counts is hashed whole: bytes of the stores, words of the command line, all files of psyprobe
and its catalogue, and the versions of what computes.
"""

from __future__ import annotations

import hashlib
import io
import platform
import re
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import entry_points, version
from pathlib import Path

import numpy as np

from psyprobe._typing import AnyArray
from psyprobe.cli.commands import load_function
from psyprobe.errors import PsyprobeError
from psyprobe.files.cache import cached, code_digest
from psyprobe.files.json_types import JsonObject
from psyprobe.running.store import Store
from psyprobe.stimulus.catalogue import catalogue_folder

#: Files that SQLite lays beside a store while somebody writes to it.
_JOURNALS = ("-journal", "-wal")
#: What in a page names a file outside of the store: a photograph, a font, or code.
_FILE = re.compile(r"""\b(file|font)["']?\s*=|\.py\b""")


class _Changed(Exception):
    """What was read changed meanwhile, so that what was printed belongs to no digest."""

    def __init__(self, printed: JsonObject) -> None:
        super().__init__()
        self.printed = printed


def score_command(arguments: Namespace) -> int:
    """Print the scores of all finished runs, from the cache where nothing has changed."""
    return print_again("psyprobe.cli.results:score_command", arguments)


def print_again(command: str, arguments: Namespace) -> int:
    """Run a command on stores, or print what it printed before, and return its exit code.

    Parameters
    ----------
    command : str
        A function of the command line's arguments, as "module:name", loaded if it has to run.
    arguments : Namespace
        Of the command line; its `results` are the stores.
    """
    input_digest = digest_input(arguments)
    if input_digest is None:
        code: int = load_function(command)(arguments)
        return code

    def compute() -> JsonObject:
        printed = _run(load_function(command), arguments)
        if digest_input(arguments) != input_digest:
            raise _Changed(printed)
        return printed

    try:
        printed = cached(input_digest, Path(__file__).parents[1], compute)
    except _Changed as changed:
        printed = changed.printed
    sys.stderr.write(_text(printed["remarks"]))
    sys.stdout.write(_text(printed["output"]))
    return int(printed["code"])


def digest_input(arguments: Namespace) -> str | None:
    """Compute the digest of all that a command on stores reads; None where it may read more.

    It may where results are no stores, somebody is writing to one, replies go to a judge, a page
    names a file, or an installed package adds to psyprobe.
    """
    paths = [Path(path) for path in arguments.results]
    if (
        getattr(arguments, "judge", None) is not None
        or any(path.suffix == ".nc" or not path.is_file() for path in paths)
        or _has_plugins()
    ):
        return None
    versions = [version(name) for name in ("pandas", "xarray")]
    catalogues = [
        code_digest(catalogue_folder(name)) for name in ("stimuli", "experiments")
    ]
    words = (sorted(vars(arguments).items()), platform.python_version(), versions)
    whole = hashlib.sha256(repr((*words, catalogues)).encode())
    try:
        for path in paths:
            with Store(path, create=False) as store:
                pages = store.database.pages()
            if any(map(_FILE.search, pages)):
                return None
            with path.open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
    except (OSError, PsyprobeError):
        return None
    # Seen last: whoever began to write while the bytes were read, has a journal or other bytes now.
    journals = [Path(f"{path}{ending}") for path in paths for ending in _JOURNALS]
    return None if any(map(Path.exists, journals)) else whole.hexdigest()


def _has_plugins() -> bool:
    """Tell whether an installed package adds to psyprobe: its code is not in the digest."""
    points = entry_points()
    return any(
        point.module.partition(".")[0] != "psyprobe"
        for group in points.groups
        if group.startswith("psyprobe.")
        for point in points.select(group=group)
    )


def _run(command: Callable[[Namespace], int], arguments: Namespace) -> JsonObject:
    """Run a command, and return its exit code and what it printed, as arrays."""
    output = io.StringIO()
    remarks = io.StringIO()
    try:
        with redirect_stdout(output), redirect_stderr(remarks):
            code = command(arguments)
    except BaseException:
        sys.stderr.write(remarks.getvalue())
        sys.stdout.write(output.getvalue())
        raise
    return {
        "code": np.array(code),
        "output": _bytes(output.getvalue()),
        "remarks": _bytes(remarks.getvalue()),
    }


def _bytes(text: str) -> AnyArray:
    """Turn a text into the array of its bytes, which keeps it exactly."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


def _text(values: AnyArray) -> str:
    """Turn an array of bytes into the text."""
    return values.tobytes().decode("utf-8", "surrogatepass")
