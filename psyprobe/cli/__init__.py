"""The command ``psyprobe``: one line an error, results on standard output, all else on standard error.

Exit codes: 0 done; 1 a check found that delivered is not what was requested; 2 the input is wrong or something is
missing; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from psyprobe import __version__
from psyprobe.errors import PsyprobeError
from psyprobe.files.terminal import tell


@dataclass(frozen=True)
class _Command:
    """What is said of a command, and the functions, as "module:name", that add its options and do it."""

    summary: str
    example: str
    options: str
    function: str


#: Modules are loaded when their command is asked for: ``psyprobe --help`` waits for none.
_COMMANDS = {
    "list": _Command(
        "list stimuli, experiments, observers, probes, displays and models of human vision",
        "list experiments",
        "cli.listing:add_list_options",
        "cli.listing:list_command",
    ),
    "render": _Command(
        "draw a stimulus into an image file, with its certificate beside it (FILE.json)",
        "render gabor_achromatic --set frequency=4 contrast=0.5 -o gabor.png --bits 16",
        "cli.options:add_render_options",
        "cli.images:render_command",
    ),
    "check": _Command(
        "measure a stimulus, or a file that render wrote: requested against delivered",
        "check gabor_achromatic --set frequency=8",
        "cli.options:add_check_options",
        "cli.images:check_command",
    ),
    "run": _Command(
        "run experiments with observers; what a store holds already is not asked again",
        "run gabor_achromatic --observer timm:resnet50.a1_in1k pixels --output results",
        "cli.options:add_run_options",
        "cli.running:run_command",
    ),
    "ask": _Command(
        "ask an observer one question about an image, and print its answer",
        'ask "Do you see a pattern?" --observer simulated:watson-malo --stimulus noise_hernandez2025',
        "cli.asking:add_ask_options",
        "cli.asking:ask_command",
    ),
    "score": _Command(
        "score stored results, without the observer",
        "score psyprobe-results/runs.sqlite",
        "cli.options:add_score_options",
        "cli.results:score_command",
    ),
    "plot": _Command(
        "draw contours of responses with the human curve and contrast matches, or the scoreboard",
        "plot result.nc -o contours.pdf --levels log\n  psyprobe plot runs.sqlite --scoreboard bars -o bars.pdf",
        "cli.options:add_plot_options",
        "cli.results:plot_command",
    ),
    "replay": _Command(
        "make results of responses that others stored (see docs/replay.md)",
        "replay published_sac_along_curve.csv.gz --grids published_sac_grids --model dinov2_vitb14",
        "cli.replaying:add_replay_options",
        "cli.replaying:replay_command",
    ),
    "corrupt": _Command(
        "corrupt images in the 33 ways of R-Bench; without images, list them",
        "corrupt photographs --name motion_blur jpeg --strength low high --output corrupted",
        "cli.corrupting:add_corrupt_options",
        "cli.corrupting:corrupt_command",
    ),
    "mvp-bench": _Command(
        "check MVP-Bench questions, and score replies to them beside the paper's",
        "mvp-bench all_questions.json mcq_questions.json --model GPT-4o GPT4o_evaluated.jsonl mcq_GPT4o.jsonl",
        "tasks.mvp_bench.commands:add_mvp_options",
        "tasks.mvp_bench.commands:mvp_bench_command",
    ),
    "r-bench": _Command(
        "R-Bench: check an item table, score answers, report on runs, build a set",
        "r-bench score Ref_Release.csv --model LLaVA1.5 dis=llava15_dis.csv ref=llava15_ref.csv "
        "judged_dis=Result_dis_llava15.csv judged_ref=Result_ref_llava15.csv judged_com=Result_com_llava15.csv",
        "tasks.r_bench.commands:add_r_bench_options",
        "tasks.r_bench.commands:r_bench_command",
    ),
    "mvp-build": _Command(
        "build image pairs with questions, like those of MVP-Bench, from photographs; resumable",
        "mvp-build photographs --chat openai:gpt-4o --segmenter sam:facebook/sam-vit-huge --output set",
        "tasks.mvp_construction.commands:add_mvp_build_options",
        "tasks.mvp_construction.commands:mvp_build_command",
    ),
    "review": _Command(
        "accept, answer or label the questions of a set on a page in the browser; say what came of it",
        "review set --annotator ann",
        "tasks.review.commands:add_review_options",
        "tasks.review.commands:review_command",
    ),
    "serve-simulated": _Command(
        "serve a simulated observer over HTTP on loopback, in the OpenAI protocol, with faults on request",
        "serve-simulated watson-malo --port 8000 --latency 0.05 0.1 --faults overload=0.1 hang=0.02",
        "cli.serving:add_serving_options",
        "cli.serving:serve_simulated_command",
    ),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        tell(f"{self.prog}: error: {message} (see {self.prog} --help)")
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
      corruption_profile ...
      detection ... its background...
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parsed = _parser(given).parse_args(given)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no "²" gets a question mark and not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code: int = _loaded(_COMMANDS[parsed.command].function)(parsed)
        sys.stdout.flush()
        return code
    except PsyprobeError as error:
        return _refuse(parsed.command, str(error))
    except BrokenPipeError:
        # Whoever read our output has enough of it (| head); Python must not complain about it on exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = error.strerror or str(error)
        return _refuse(parsed.command, f"{error.filename}: {what}" if error.filename else what)
    except KeyboardInterrupt:
        again = f"; what was answered is kept, go on with: psyprobe {shlex.join(given)}"
        tell(f"psyprobe {parsed.command}: stopped{again if parsed.command in ('run', 'mvp-build') else ''}")
        return 130


def _refuse(command: str, why: str) -> int:
    tell(f"psyprobe {command}: error: {why}")
    return 2


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the command that is given and of no other."""
    parser = _Parser(
        prog="psyprobe",
        description="Psychophysics for machines: calibrated stimuli, encoders as observers, human data beside them.",
        epilog=(
            "examples:\n"
            "  psyprobe run gabor_achromatic\n"
            "  psyprobe run gabor_achromatic --observer timm:vit_small_patch14_dinov2.lvd142m pixels\n"
            "  psyprobe render gabor_achromatic --set frequency=4 contrast=0.5 -o gabor.png\n"
            "  psyprobe list experiments"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"psyprobe {__version__}", help="print the version and end"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    asked = next((word for word in given if not word.startswith("-")), None)
    for name, command in _COMMANDS.items():
        added = commands.add_parser(
            name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=f"example:\n  psyprobe {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.add_argument("--json", action="store_true", help="print JSON")
        if name == asked:
            _loaded(command.options)(added)
    return parser


def _loaded(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(import_module(f"psyprobe.{module}"), name)
