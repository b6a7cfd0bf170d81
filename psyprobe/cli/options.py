"""Options of the commands whose modules take long to load, and those that several commands share."""

from __future__ import annotations

import argparse


def add_settings(parser: argparse.ArgumentParser, option: str, metavar: str, meaning: str) -> None:
    """An option that takes words of values, as `psyprobe.files.terminal` reads them; it may be given again."""
    parser.add_argument(option, nargs="+", action="extend", default=[], metavar=metavar, help=meaning)


def add_stimulus_options(parser: argparse.ArgumentParser) -> None:
    parameters = "parameters of the stimulus, for example frequency=4 contrast=0.1 (units: cpd, deg, cd/m², ppd, px)"
    display = "a preset, or fields such as peak=200 black=0.2 (cd/m²); by default 400 cd/m², sRGB"
    add_settings(parser, "--set", "NAME=VALUE", parameters)
    add_settings(parser, "--display", "NAME|FIELD=VALUE", display)


def add_observer_options(parser: argparse.ArgumentParser) -> None:
    options = "what the observer takes besides, for example concurrency=16 base_url=http://localhost:8000/v1"
    add_settings(parser, "--observer-option", "NAME=VALUE", options)


def add_render_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stimulus", metavar="STIMULUS", help="a name of the catalogue, or the path of a TOML file")
    add_stimulus_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help=".png (codes), .tiff or .npy (float32 drive), .npz (drive and the light in cd/m²)",
    )
    parser.add_argument("--bits", type=int, choices=(8, 16), default=8, help="of a PNG, a channel (default 8)")
    parser.add_argument("--clip", action="store_true", help="show the nearest light where the display cannot show it")


def add_check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="STIMULUS|FILE", help="a stimulus, or an image file with its FILE.json")
    add_stimulus_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        nargs="+",
        metavar="EXPERIMENT",
        help="catalogue names (cai2025: all nine), or paths of TOML files",
    )
    add_settings(parser, "--observer", "NAME", "see psyprobe list observers")
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
    add_observer_options(parser)
    parser.add_argument("--layers", nargs="+", metavar="NAME", help="layers whose outputs are measured, or all")
    parser.add_argument("--device", help="torch device, for example cuda:0")
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="images at once (default: what memory surely holds)"
    )
    parser.add_argument(
        "--random-weights", action="store_true", help="random numbers for trained weights: tests of the machinery only"
    )


def add_score_options(parser: argparse.ArgumentParser) -> None:
    _add_results(parser)
    parser.add_argument("--format", choices=("text", "markdown", "latex", "csv"), default="text", help="of the table")
    parser.add_argument("--scoreboard", action="store_true", help="one table of observers and experiments")
    _add_scoreboard(parser)


def add_plot_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="contours.png", metavar="FILE", help=".png, .svg or .pdf")
    _add_results(parser)
    parser.add_argument("--layer", help="one of the observer's layers, where there are several")
    parser.add_argument("--levels", choices=("linear", "log"), default="linear", help="spacing of the contours")
    parser.add_argument(
        "--scoreboard", choices=("heat-map", "bars"), help="draw the scores of all, as cells or as bars"
    )
    _add_scoreboard(parser)


def _add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", nargs="+", metavar="STORE|RESULT.nc", help="stores or results that run wrote")
    parser.add_argument("--measure", help="angular, angular_float32, cosine, l1 or l2 (default: the experiment's)")


def _add_scoreboard(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--published", action="store_true", help="add the published scores of 45 models to the scoreboard"
    )
    parser.add_argument(
        "--sort", metavar="TEST", help="sort the scoreboard by an experiment, from best to worst, or by name"
    )
