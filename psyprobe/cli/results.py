"""``psyprobe score``, ``compare``, ``plot``, ``report``, ``replay``: what stored answers say."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.comparison.conditions import is_people
from psyprobe.analysis.comparison.ppd import score_over_ppd
from psyprobe.analysis.psychometric.trials import read_trials
from psyprobe.analysis.published import replay
from psyprobe.analysis.run_names import name_apart
from psyprobe.analysis.score import FailedScore, score_table
from psyprobe.analysis.scoreboards import Scoreboard
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import write_netcdf
from psyprobe.files.output import file_stem, make_folder, write_whole
from psyprobe.files.terminal import say, show, tell
from psyprobe.probes.experiments import load_results, load_runs, merge_results
from psyprobe.probes.results import (
    all_scores,
    compare,
    has_thresholds,
    plot,
    scoreboard,
    scores_and_failures,
)
from psyprobe.reporting.report import report

if TYPE_CHECKING:
    import xarray


def score_command(arguments: Namespace) -> int:
    """Print the scores of all finished runs, in a table for each experiment or a scoreboard."""
    if arguments.scoreboard:
        results, failures = _load_named_results(arguments.results)
        board, unscored = _make_scoreboard(arguments, results)
        say(board.table("json" if arguments.json else arguments.format))
        return _tell_failures([*failures, *unscored])
    _check_options(arguments, "--scoreboard")
    if arguments.over is not None:
        results, failures = _load_results(arguments.results)
        over_ppd = score_over_ppd(results, measure=arguments.measure)
        show(over_ppd.to_dict(), over_ppd.table(arguments.format), arguments)
        return _tell_failures(failures)
    if arguments.judge is None:
        results, failures = _load_named_results(arguments.results)
    else:
        results = _judge(arguments)
        failures = []
    scores = [*all_scores(results, measure=arguments.measure), *failures]
    show(
        [score.to_dict() for score in scores],
        score_table(scores, arguments.format),
        arguments,
    )
    return 4 if any(isinstance(score, FailedScore) for score in scores) else 0


def compare_command(arguments: Namespace) -> int:
    """Print the differences of all finished runs from a baseline, of people, or of nights."""
    if arguments.label is not None:
        return _compare_nights(arguments)
    if arguments.against is not None or arguments.fail_on is not None:
        raise InputError("--against and --fail-on are for nights; add --label NIGHT")
    if arguments.by is not None:
        compared = compare(
            *_groups_of_people(arguments), confidence=arguments.confidence
        )
        show(compared.to_dict(), compared.table(arguments.format), arguments)
        return 0
    results, failures = _load_named_results(arguments.results)
    answered = list(filter(has_thresholds, results))
    others = [result for result in results if not has_thresholds(result)]
    _, scores, unscored = scores_and_failures(others, measure=arguments.measure)
    names = ("baseline", "margin", "confidence")
    options = {name: getattr(arguments, name) for name in names}
    compared = compare(answered, scores, **options)
    show(compared.to_dict(), compared.table(arguments.format), arguments)
    return _tell_failures([*failures, *unscored])


def _compare_nights(arguments: Namespace) -> int:
    """Print what changed from one night to another; code 1 where --fail-on looks for it."""
    from psyprobe.reporting.publishing.nights import PREVIOUS, compare_nights

    if len(arguments.results) != 1 or arguments.baseline or arguments.by:
        raise InputError(
            "--label compares two nights of one store or registry; give one, and neither "
            "--baseline nor --by"
        )
    against = arguments.against or PREVIOUS
    compared = compare_nights(
        arguments.results[0], arguments.label, against, arguments.confidence
    )
    show(compared.to_dict(), compared.table(arguments.format), arguments)
    outcomes = {
        "change": any(row.changed for row in compared.rows),
        "worse": any(row.worse for row in compared.rows),
    }
    return 1 if outcomes.get(arguments.fail_on) else 0


def _groups_of_people(arguments: Namespace) -> list[Any]:
    """Read two groups of people: a store or a table of trials each, or two pages of one store."""
    paths = arguments.results
    if Path(paths[0]).suffix == ".csv":
        groups: list[Any] = [read_trials(path, by=arguments.by) for path in paths]
    else:
        groups = [load_results(path) for path in paths]
    if len(groups) == 1 and isinstance(groups[0], list):
        pages: dict[str, list[xarray.Dataset]] = {}
        for result in groups[0]:
            pages.setdefault(result.attrs["experiment"], []).append(result)
        groups = list(pages.values())
    if len(groups) != 2 or not all(map(is_people, groups)):
        raise InputError(
            f"--by compares two groups of people, and {', '.join(paths)} hold {len(groups)}; give "
            "two stores of people's runs, one store of two pages, or two tables of trials (.csv)"
        )
    return groups


def _judge(arguments: Namespace) -> list[xarray.Dataset]:
    """Ask a judge to read the replies of results, and store its verdicts beside the replies."""
    from psyprobe.tasks.items import Judge, load_answerer
    from psyprobe.tasks.judged_replies import judge_replies

    judge = Judge(load_answerer(arguments.judge, arguments.observer_option))
    return [
        judge_replies(result, judge, store=None if Path(path).suffix == ".nc" else path)
        for path in arguments.results
        for result in load_results(path)
    ]


def plot_command(arguments: Namespace) -> int:
    """Draw all finished runs, or the scoreboard of them, into one figure."""
    import matplotlib as mpl

    from psyprobe.plotting.axes import fit_width, save_figure, typeset
    from psyprobe.plotting.scores import bar_panels, heat_map, ppd_curves

    mpl.use("agg")
    load = _load_named_results if arguments.over is None else _load_results
    results, failures = load(arguments.results)
    figure: Any
    if arguments.over is not None:
        with typeset(arguments.width):
            figure = ppd_curves(
                score_over_ppd(results, measure=arguments.measure)
            ).figure
        fit_width(figure, arguments.width)
    elif arguments.scoreboard is None:
        _check_options(arguments, "--scoreboard heat-map or bars")
        names = ("measure", "layer", "levels", "human", "cmap", "width")
        options = {name: getattr(arguments, name) for name in names}
        try:
            figure = plot(results, **options)
        except PsyprobeError:
            results, undrawn = _drawable(results, options)
            if not results:
                raise
            failures += undrawn
            figure = plot(results, **options)
    elif arguments.layer is not None:
        raise InputError(
            "--layer is for contours and matches; the scoreboard shows every layer as a model "
            "of its own"
        )
    else:
        board, unscored = _make_scoreboard(arguments, results)
        failures += unscored
        with typeset(arguments.width):
            figure = (
                heat_map(board, cmap=arguments.cmap)
                if arguments.scoreboard == "heat-map"
                else bar_panels(board)
            )
        fit_width(figure, arguments.width)
    path = Path(arguments.output)
    save_figure(figure, path)
    panels = [
        [result.attrs["experiment"], result.attrs["observer"]] for result in results
    ]
    line = f"{path}: {len(results)} result{'s' * (len(results) != 1)}"
    show({"file": str(path), "panels": panels}, line, arguments)
    return _tell_failures(failures)


def _drawable(
    results: list[xarray.Dataset], options: JsonObject
) -> tuple[list[xarray.Dataset], list[FailedScore]]:
    """Draw each result to try, and return those that can be drawn, and the failures."""
    import matplotlib.pyplot as plt

    drawable = []
    failures = []
    for result in results:
        try:
            plot(result, **options)
            drawable.append(result)
        except PsyprobeError as problem:
            failures.append(FailedScore.of_result(result, problem))
        plt.close("all")
    return drawable, failures


def _tell_failures(failures: Sequence[FailedScore]) -> int:
    """Print what was left out, one line each, and return the exit code."""
    for failure in failures:
        tell(
            f"Note: {failure.experiment} with {failure.observer} is left out: "
            f"{failure.failure}"
        )
    return 4 if failures else 0


def report_command(arguments: Namespace) -> int:
    """Write one HTML report of all finished runs."""
    names = ("title", "measure", "published", "sort")
    options = {name: getattr(arguments, name) for name in names}
    path = report(arguments.results, arguments.output, **options)
    size = path.stat().st_size
    show(
        {"file": str(path), "bytes": size},
        f"{path}: {size / 1e3:.0f} kB",
        arguments,
    )
    return 0


def replay_command(arguments: Namespace) -> int:
    """Write a result file for each published model and test whose responses are stored."""
    results = replay(
        arguments.table, arguments.grids, models=arguments.model, tests=arguments.test
    )
    folder = make_folder(arguments.output)
    files = []
    for result in results:
        name = file_stem(f"{result.attrs['experiment']}-{result.attrs['observer']}")
        files.append(folder / f"{name}.nc")
        write_whole(files[-1], partial(write_netcdf, result))
    show(
        {"files": list(map(str, files))},
        "\n".join(map(str, files)),
        arguments,
    )
    return 0


def _make_scoreboard(
    arguments: Namespace, results: list[xarray.Dataset]
) -> tuple[Scoreboard, list[FailedScore]]:
    """Score results and set them up as a scoreboard, with those that could not be scored."""
    _, scores, failures = scores_and_failures(results, measure=arguments.measure)
    names = ("published", "sort")
    options = {name: getattr(arguments, name) for name in names}
    return scoreboard(scores, **options), failures


def _check_options(arguments: Namespace, option: str) -> None:
    """Refuse --published and --sort where no scoreboard is asked for."""
    if arguments.published or arguments.sort is not None:
        raise InputError(f"--published and --sort are for the scoreboard; add {option}")


def _load_named_results(
    paths: list[str],
) -> tuple[list[xarray.Dataset], list[FailedScore]]:
    """Load results as `_load_results` does, and name those of one observer apart."""
    results, failures = _load_results(paths)
    return name_apart(results), failures


def _load_results(paths: list[str]) -> tuple[list[xarray.Dataset], list[FailedScore]]:
    """Load the results of files and stores, merge those of one run, and list failures."""
    loaded = [load_runs(path) for path in paths]
    results = [result for file_results, _ in loaded for result in file_results]
    return merge_results(results), [
        failure for _, failures in loaded for failure in failures
    ]
