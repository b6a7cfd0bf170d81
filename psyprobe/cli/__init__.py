"""The command ``psyprobe``: one line an error, results on standard output, all else on standard
error.

Exit codes: 0 done; 1 a check found that delivered is not what was requested; 2 the input is wrong
or something is missing; 3 nothing is wrong, and it is not finished; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
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
from psyprobe.files.terminal import printable, tell

_TYPES = {"int": int, "float": float}
#: Characters of what others wrote, and of a line of ours: values, names and lists in it can be of
#: any length.
_QUOTED = 240
_MOST = 390


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        tell(f"{self.prog}: error: {_cut(message)} (see {self.prog} --help)")
        sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and give its exit code.

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
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no "²" gets a question mark and not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # What libraries log, as tifffile does of a damaged file, is no line of ours.
    logging.basicConfig(handlers=[logging.NullHandler()])
    parsed = _parser(given).parse_args(given)
    try:
        with warnings.catch_warnings():
            # Whatever a command is warned of is a line of ours, each time, and not Python's with
            # its source.
            warnings.simplefilter("always", ConditionWarning)
            warnings.showwarning = lambda message, *_: tell(f"Note: {message}")
            code = _run(parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has enough of it (| head); Python must not complain about it on
        # exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UnfinishedError as stop:
        tell(_cut(f"psyprobe {parsed.command}: not finished: {stop}", _MOST))
        return 3
    except (Exception, SystemExit) as error:
        if parsed.debug:
            print(printable("".join(traceback.format_exception(error))), end="", file=sys.stderr)
        return _refuse(parsed.command, _told(error))
    except KeyboardInterrupt:
        again = f"; what was answered is kept, go on with: psyprobe {shlex.join(given)}"
        resumes = all_commands().commands[parsed.command].get("resumes", False)
        tell(f"psyprobe {parsed.command}: stopped{again if resumes else ''}")
        return 130


def _run(parsed: argparse.Namespace) -> int:
    """Run the command that was given, or what a package does in its place."""
    for before in extensions_of(parsed.command, "before"):
        code: int | None = before(parsed)
        if code is not None:
            return code
    function = load_function(all_commands().commands[parsed.command]["function"])
    code = function(parsed)
    assert code is not None
    return code


def _told(error: BaseException) -> str:
    """An error as a sentence: what psyprobe foresaw and what a file system says as it is, of all
    else whose it is.
    """
    if isinstance(error, PsyprobeError):
        return str(error)
    if locate_failure(error):
        return (
            f"code that is not psyprobe's fails at {_cut(describe_failure(error))}; --debug shows "
            "the trace"
        )
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        return _cut(f"{error.filename}: {what}" if error.filename else what)
    return (
        f"psyprobe did not foresee this: {_cut(describe_failure(error))}; --debug shows the trace, "
        "and psyprobe "
        "doctor what a report of it should hold"
    )


def _refuse(command: str, why: str) -> int:
    tell(_cut(f"psyprobe {command}: error: {why}", _MOST))
    return 2


def _cut(text: str, most: int = _QUOTED) -> str:
    """A text as one line that leaves out its middle where it is longer: what to do stands at the
    end.
    """
    return clipped(printable(" ".join(text.split())), most)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the command that is given and of no other."""
    page = all_commands()
    broken = [f"\ncommands of {name} cannot be used: {why}" for name, why in page.broken.items()]
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
    asked = next((word for word in given if not word.startswith("-")), None)
    for name, command in page.commands.items():
        summary = command["summary"]
        added = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example:\n  psyprobe {command['example']}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.add_argument("--json", action="store_true", help="print JSON")
        added.add_argument(
            "--debug", action="store_true", help="show the trace of an error, besides its line"
        )
        if name == asked:
            for table in (command, *page.extensions.get(name, ())):
                _add_options(added, table, page)
    return parser


def _add_options(
    parser: argparse.ArgumentParser, command: Mapping[str, Any], page: Commands
) -> None:
    if "adds" in command:
        load_function(command["adds"])(parser)
    shared = (page.shared[name] for name in command.get("shares", ()))
    for options in (command.get("options", {}), *shared):
        for names, option in options.items():
            keywords = dict(option)
            if "type" in option:
                keywords["type"] = _TYPES[option["type"]]
            if group := keywords.pop("choices_of", None):
                keywords["choices"] = sorted(point.name for point in entry_points(group=group))
            parser.add_argument(*names.split(), **keywords)
