"""Run the command ``psyprobe``: results on standard output, all else on standard error.

Exit codes: 0 done; 1 a check found that delivered is not what was requested; 2 the input is wrong
or something is missing; 3 nothing is wrong, and it is not finished; 4 some of several observers or
runs failed, and the others are done; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, NoReturn

from psyprobe import __version__
from psyprobe.cli.commands import Commands, all_commands, extensions_of, load_function
from psyprobe.errors import (
    ConditionWarning,
    PsyprobeError,
    UnfinishedError,
    clipped,
    describe_failure,
    locate_failure,
)
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.terminal import printable, tell

_TYPES = {"int": int, "float": float}
#: Longest quotation of what others wrote, and longest line, in characters.
_QUOTATION = 240
_LINE = 390


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print a wrong use of the command line in one line, and exit with code 2."""
        tell(f"{self.prog}: error: {_cut(message)} (see {self.prog} --help)")
        sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What stands after ``psyprobe``; by default those of the process.

    Examples
    --------
    >>> main(["list", "probes"])
      acuity ...
      detection ... its background...
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no "²" gets a question mark and not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # What libraries log, as tifffile does of a damaged file, is no line of ours.
    logging.basicConfig(handlers=[logging.NullHandler()])
    parsed = _parser(words).parse_args(words)
    try:
        with warnings.catch_warnings():
            # A warning is one line each time it comes, without the source that Python would show.
            warnings.simplefilter("always", ConditionWarning)
            warnings.showwarning = lambda message, *_: tell(f"Note: {message}")
            code = _run(parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of our output has enough of it (| head); Python must not complain on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UnfinishedError as stop:
        tell(_cut(f"psyprobe {parsed.command}: not finished: {stop}", _LINE))
        return 3
    except (Exception, SystemExit) as error:
        report_error(error, parsed)
        return 2
    except KeyboardInterrupt:
        resumes = all_commands().commands[parsed.command].get("resumes", False)
        remedy = (
            f"; what was answered is kept, go on with: psyprobe {shlex.join(words)}"
        )
        tell(f"psyprobe {parsed.command}: stopped{remedy if resumes else ''}")
        return 130


def report_error(
    error: BaseException, parsed: argparse.Namespace, place: str = ""
) -> str:
    """Print an error as one line, its trace first if the command line asks for it.

    Returns
    -------
    str
        The error as a sentence.
    """
    if parsed.debug:
        print(
            printable("".join(traceback.format_exception(error))),
            end="",
            file=sys.stderr,
        )
    sentence = _sentence(error)
    tell(_cut(f"psyprobe {parsed.command}: error: {place}{sentence}", _LINE))
    return sentence


def _run(parsed: argparse.Namespace) -> int:
    """Run a command, or what an installed package runs in its place."""
    for run_instead in extensions_of(parsed.command, "before"):
        code: int | None = run_instead(parsed)
        if code is not None:
            return code
    function = load_function(all_commands().commands[parsed.command]["function"])
    defer_dask()
    code = function(parsed)
    assert code is not None
    return code


class _DeferredDask:
    """Stand for dask in xarray's table of array libraries until somebody imports dask."""

    @property
    def type(self) -> tuple[type, ...]:
        core = sys.modules.get("dask.array.core")
        return () if core is None else (core.Array,)


def defer_dask() -> None:
    """Keep xarray, where it is imported, from importing dask to test the type of an array.

    While nobody has imported dask, no array is dask's, and its import takes a fifth of a small run.
    Another version of xarray, without these names, imports dask as it likes.
    """
    library_table = getattr(
        sys.modules.get("xarray.namedarray.pycompat"),
        "_cached_duck_array_modules",
        None,
    )
    utils: Any = sys.modules.get("xarray.namedarray.utils")
    is_collection = getattr(utils, "is_dask_collection", None)
    if library_table is None or is_collection is None or "dask" in library_table:
        return
    library_table["dask"] = _DeferredDask()
    utils.is_dask_collection = lambda value: (
        "dask.base" in sys.modules and is_collection(value)
    )


def _sentence(error: BaseException) -> str:
    """Describe an error in a sentence, naming whose code failed if it was not foreseen."""
    if isinstance(error, PsyprobeError):
        return str(error)
    if locate_failure(error):
        return (
            f"code that is not psyprobe's fails at {_cut(describe_failure(error))}; --debug shows "
            "the trace"
        )
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return _cut(f"{error.filename}: {reason}" if error.filename else reason)
    return (
        f"psyprobe did not foresee this: {_cut(describe_failure(error))}; --debug shows the trace, "
        "and psyprobe doctor what a report of it should hold"
    )


def _cut(text: str, longest: int = _QUOTATION) -> str:
    """Put a text on one line, and cut out its middle if it is too long."""
    return clipped(printable(" ".join(text.split())), longest)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Build the argument parser, with options only of the command among the words."""
    page = all_commands()
    broken = [
        f"\ncommands of {name} cannot be used: {reason}"
        for name, reason in page.broken.items()
    ]
    parser = _Parser(
        prog="psyprobe",
        description=page.description,
        epilog=page.examples + "\n" * bool(broken) + "".join(broken),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"psyprobe {__version__}",
        help="print the version and end",
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=_Parser
    )
    current = next((word for word in words if not word.startswith("-")), None)
    for name, command in page.commands.items():
        summary = command["summary"]
        # Options of the other commands, which nobody can give, would take half of the time.
        subparser = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example:\n  psyprobe {command['example']}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=name == current,
        )
        if name == current:
            subparser.add_argument("--json", action="store_true", help="print JSON")
            subparser.add_argument(
                "--debug",
                action="store_true",
                help="show the trace of an error, besides its line",
            )
            for table in (command, *page.extensions.get(name, ())):
                _add_options(subparser, table, page)
    return parser


def _add_options(
    parser: argparse.ArgumentParser, command: JsonMapping, page: Commands
) -> None:
    """Add the options that the TOML page gives a command to its argument parser."""
    if "adds" in command:
        load_function(command["adds"])(parser)
    shared = (page.shared[name] for name in command.get("shares", ()))
    for options in (command.get("options", {}), *shared):
        for names, option in options.items():
            keywords = dict(option)
            if "type" in option:
                keywords["type"] = _TYPES[option["type"]]
            if group := keywords.pop("choices_of", None):
                keywords["choices"] = sorted(
                    point.name for point in entry_points(group=group)
                )
            parser.add_argument(*names.split(), **keywords)
