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
from importlib import import_module
from typing import NoReturn

from psyprobe.cli.asking import add_ask_options
from psyprobe.cli.corrupting import add_corrupt_options
from psyprobe.cli.listing import KINDS
from psyprobe.cli.serving import add_serving_options
from psyprobe.files.terminal import tell

#: Command to the module and function that does it: loaded only when it is asked for.
_COMMANDS = {
    "list": ("cli.listing", "list_command"),
    "render": ("cli.images", "render_command"),
    "check": ("cli.images", "check_command"),
    "mvp-bench": ("tasks.mvp_bench.commands", "mvp_bench_command"),
    "mvp-build": ("tasks.mvp_construction.commands", "mvp_build_command"),
    "review": ("tasks.review.commands", "review_command"),
    "r-bench": ("tasks.r_bench.commands", "r_bench_command"),
    "corrupt": ("cli.corrupting", "corrupt_command"),
    "run": ("cli.running", "run_command"),
    "ask": ("cli.asking", "ask_command"),
    "score": ("cli.results", "score_command"),
    "plot": ("cli.results", "plot_command"),
    "replay": ("cli.replaying", "replay_command"),
    "serve-simulated": ("cli.serving", "serve_simulated_command"),
}
#: Commands of benchmarks to the module and function that add their options: loaded with the benchmark's room, as above.
_TASK_OPTIONS = {
    "mvp-bench": ("tasks.mvp_bench.commands", "add_mvp_options"),
    "r-bench": ("tasks.r_bench.commands", "add_r_bench_options"),
    "mvp-build": ("tasks.mvp_construction.commands", "add_mvp_build_options"),
    "review": ("tasks.review.commands", "add_review_options"),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        tell(f"{self.prog}: error: {message} (see {self.prog} --help)")
        sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What stands after ``psyprobe``; by default those of the process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["list", "probes"])
      detection ... its background...
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parsed = _parser(next((word for word in given if word in _TASK_OPTIONS), "")).parse_args(given)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no "²" gets a question mark and not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    module, function = _COMMANDS[parsed.command]
    from psyprobe.errors import PsyprobeError

    try:
        code: int = getattr(import_module(f"psyprobe.{module}"), function)(parsed)
        sys.stdout.flush()
        return code
    except PsyprobeError as error:
        tell(f"psyprobe {parsed.command}: error: {error}")
        return 2
    except BrokenPipeError:
        # Whoever read our output has enough of it (| head); Python must not complain about it on exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        tell(f"psyprobe {parsed.command}: error: {error.filename or ''}: {error.strerror or error}".replace(" : ", " "))
        return 2
    except KeyboardInterrupt:
        again = f"; what was answered is kept, go on with: psyprobe {shlex.join(given)}"
        tell(f"psyprobe {parsed.command}: stopped{again if parsed.command in ('run', 'mvp-build') else ''}")
        return 130


def _parser(task: str) -> argparse.ArgumentParser:
    """All commands; of those of benchmarks only one has its options, and its room is loaded."""
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
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    _add_list(commands)
    _add_render(commands)
    _add_check(commands)
    _add_run(commands)
    _add_ask(commands)
    _add_score(commands)
    _add_plot(commands)
    _add_replay(commands)
    add_corrupt_options(
        _command(
            commands,
            "corrupt",
            "corrupt images in the 33 ways of R-Bench; without images, list them",
            "corrupt photographs --name motion_blur jpeg --strength low high --output corrupted",
        )
    )
    for name, summary, example in (
        (
            "mvp-bench",
            "check MVP-Bench questions, and score replies to them beside the paper's",
            "mvp-bench all_questions.json mcq_questions.json --model GPT-4o GPT4o_evaluated.jsonl mcq_GPT4o.jsonl",
        ),
        (
            "r-bench",
            "R-Bench: check an item table, score answers, report on runs, build a set",
            "r-bench score Ref_Release.csv --model LLaVA1.5 dis=llava15_dis.csv ref=llava15_ref.csv "
            "judged_dis=Result_dis_llava15.csv judged_ref=Result_ref_llava15.csv judged_com=Result_com_llava15.csv",
        ),
        (
            "mvp-build",
            "build image pairs with questions, like those of MVP-Bench, from photographs; resumable",
            "mvp-build photographs --chat openai:gpt-4o --segmenter sam:facebook/sam-vit-huge --output set",
        ),
        (
            "review",
            "accept, answer or label the questions of a set on a page in the browser; say what came of it",
            "review set --annotator ann",
        ),
    ):
        command = _command(commands, name, summary, example)
        if name == task:
            module, function = _TASK_OPTIONS[name]
            getattr(import_module(f"psyprobe.{module}"), function)(command)
    add_serving_options(
        _command(
            commands,
            "serve-simulated",
            "serve a simulated observer over HTTP on loopback, in the OpenAI protocol, with faults on request",
            "serve-simulated watson-malo --port 8000 --latency 0.05 0.1 --faults overload=0.1 hang=0.02",
        )
    )
    return parser


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and end")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from psyprobe import __version__

        print(f"psyprobe {__version__}")
        parser.exit()


def _command(
    commands: argparse._SubParsersAction[_Parser], name: str, summary: str, example: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  psyprobe {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_list(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(commands, "list", "list stimuli, experiments, observers and probes", "list experiments")
    parser.add_argument("kind", nargs="?", choices=KINDS, help="what to list; all without it")


def _add_stimulus_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="parameters of the stimulus, for example frequency=4 contrast=0.1 (units: cpd, deg, cd/m², ppd, px)",
    )
    parser.add_argument(
        "--display",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME|FIELD=VALUE",
        help="a preset, or fields such as peak=200 black=0.2 (cd/m²); by default 400 cd/m², sRGB",
    )


def _add_render(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(
        commands,
        "render",
        "draw a stimulus into an image file, with its certificate beside it (FILE.json)",
        "render gabor_achromatic --set frequency=4 contrast=0.5 -o gabor.png --bits 16",
    )
    parser.add_argument("stimulus", metavar="STIMULUS", help="a name of the catalogue, or the path of a TOML file")
    _add_stimulus_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help=".png (codes), .tiff or .npy (float32 drive), .npz (drive and the light in cd/m²)",
    )
    parser.add_argument("--bits", type=int, choices=(8, 16), default=8, help="of a PNG, a channel (default 8)")
    parser.add_argument("--clip", action="store_true", help="show the nearest light where the display cannot show it")


def _add_check(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(
        commands,
        "check",
        "measure a stimulus, or a file that render wrote: requested against delivered",
        "check gabor_achromatic --set frequency=8",
    )
    parser.add_argument("target", metavar="STIMULUS|FILE", help="a stimulus, or an image file with its FILE.json")
    _add_stimulus_options(parser)


def _add_run(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(
        commands,
        "run",
        "run experiments with observers; what a store holds already is not asked again",
        "run gabor_achromatic --observer timm:resnet50.a1_in1k pixels --output results",
    )
    parser.add_argument(
        "experiment",
        nargs="+",
        metavar="EXPERIMENT",
        help="catalogue names (cai2025: all nine), or paths of TOML files",
    )
    parser.add_argument(
        "--observer", nargs="+", action="extend", default=[], metavar="NAME", help="see psyprobe list observers"
    )
    parser.add_argument("--output", default="psyprobe-results", metavar="DIR", help="folder (default %(default)s)")
    parser.add_argument("--store", metavar="FILE", help="SQLite file of responses (default DIR/runs.sqlite)")
    parser.add_argument(
        "--plan", action="store_true", help="say what would be shown and about how long it takes, and ask nothing"
    )
    parser.add_argument(
        "--score-only", action="store_true", help="show only what the scores need, and nothing that figures need"
    )
    parser.add_argument(
        "--input", choices=("normalised", "raw"), help="how encoders are fed (default: the experiment's)"
    )
    parser.add_argument(
        "--variants",
        nargs="+",
        default=[],
        metavar="NAME=V,V",
        help="average over values of a stimulus parameter: phase=0,90,180,270 orientation=0,45 seed=1,2,3",
    )
    _add_observer_options(parser)
    parser.add_argument("--layers", nargs="+", metavar="NAME", help="layers whose outputs are measured, or all")
    parser.add_argument("--device", help="torch device, for example cuda:0")
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="images at once (default: what memory surely holds)"
    )
    parser.add_argument(
        "--random-weights", action="store_true", help="random numbers for trained weights: tests of the machinery only"
    )


def _add_ask(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(
        commands,
        "ask",
        "ask an observer one question about an image, and print its answer",
        'ask "Do you see a pattern?" --observer simulated:watson-malo --stimulus noise_hernandez2025',
    )
    add_ask_options(parser)
    _add_stimulus_options(parser)
    _add_observer_options(parser)


def _add_observer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--observer-option",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="what the observer takes besides, for example concurrency=16 base_url=http://localhost:8000/v1",
    )


def _add_score(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(
        commands, "score", "score stored results, without the observer", "score psyprobe-results/runs.sqlite"
    )
    parser.add_argument("results", nargs="+", metavar="STORE|RESULT.nc", help="stores or results that run wrote")
    parser.add_argument("--measure", help="angular, angular_float32, cosine, l1 or l2 (default: the experiment's)")
    parser.add_argument("--format", choices=("text", "markdown", "latex", "csv"), default="text", help="of the table")
    parser.add_argument("--scoreboard", action="store_true", help="one table of observers and experiments")
    parser.add_argument(
        "--published", action="store_true", help="add the published scores of 45 models to the scoreboard"
    )
    parser.add_argument(
        "--sort", metavar="TEST", help="sort the scoreboard by an experiment, from best to worst, or by name"
    )


def _add_replay(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(
        commands,
        "replay",
        "make results of responses that others stored (see docs/replay.md)",
        "replay published_sac_along_curve.csv.gz --grids published_sac_grids --model dinov2_vitb14",
    )
    parser.add_argument("table", metavar="TABLE", help="responses along the human curve: .csv or .csv.gz")
    parser.add_argument("--grids", required=True, metavar="DIR", help="folder of TEST.npz: responses on the level grid")
    parser.add_argument("--model", nargs="+", metavar="NAME", help="models of the table (default: all)")
    parser.add_argument("--test", nargs="+", metavar="NAME", help="tests of the table (default: all)")
    parser.add_argument("--output", default="psyprobe-results", metavar="DIR", help="folder (default %(default)s)")


def _add_plot(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _command(
        commands,
        "plot",
        "draw contours of responses with the human curve and contrast matches, or the scoreboard",
        "plot result.nc -o contours.pdf --levels log\n  psyprobe plot runs.sqlite --scoreboard bars -o bars.pdf",
    )
    parser.add_argument("results", nargs="+", metavar="STORE|RESULT.nc", help="stores or results that run wrote")
    parser.add_argument("-o", "--output", default="contours.png", metavar="FILE", help=".png, .svg or .pdf")
    parser.add_argument("--measure", help="angular, angular_float32, cosine, l1 or l2 (default: the experiment's)")
    parser.add_argument("--layer", help="one of the observer's layers, where there are several")
    parser.add_argument("--levels", choices=("linear", "log"), default="linear", help="spacing of the contours")
    parser.add_argument(
        "--scoreboard", choices=("heat-map", "bars"), help="draw the scores of all, as cells or as bars"
    )
    parser.add_argument(
        "--published", action="store_true", help="add the published scores of 45 models to the scoreboard"
    )
    parser.add_argument(
        "--sort", metavar="TEST", help="sort the scoreboard by an experiment, from best to worst, or by name"
    )
