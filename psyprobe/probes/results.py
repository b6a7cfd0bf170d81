"""Score and plot any result by the probe that produced it.

A probe has ``score(result, **options)``, which returns a tuple of `psyprobe.analysis.Score` (one a
layer where there are layers, none where there is nothing to compare with), and ``plot(results,
ax=None, *, figure, observer, measure, layer, levels)``, which returns Axes, a figure or the
subfigure that it draws on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from psyprobe._typing import Option
from psyprobe.analysis.efficiency.side_by_side import side_by_side
from psyprobe.analysis.score import NO_SCORE, FailedScore, Score, Scores
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonObject
from psyprobe.plotting.axes import check_new, fit_width, legend_lines, title_of, typeset
from psyprobe.plotting.people import Human
from psyprobe.probes import load_probe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike
    from xarray import Dataset

    from psyprobe.analysis.comparison.table import Comparison
    from psyprobe.analysis.scoreboards import Scoreboard


def score(result: Dataset, **options: Option) -> Score | Scores:
    """Score a result against people, each layer by itself.

    Parameters
    ----------
    result : xarray.Dataset
        Result of any run.
    **options
        Options of the probe's ``score``; for encoders and metrics measure, layer, confidence,
        resamples and seed.

    Returns
    -------
    Score or Scores
        One score, or one a layer where the observer has several; printing them gives a table.

    Raises
    ------
    InputError
        This is no result, there is no human reference, or values are not finite.
    UnknownNameError
        The probe, measure or layer is not known.

    See Also
    --------
    score_layers : one score for each layer.
    psyprobe.analysis.score_table : several scores as text, Markdown, LaTeX, CSV or JSON.
    scoreboard : models and tests in one table.
    """
    scores = score_layers(result, **options)
    if not scores:
        raise InputError(
            f"{result.attrs.get('experiment', 'this result')} has {NO_SCORE}; give its page a "
            "[human]"
        )
    return scores[0] if len(scores) == 1 else Scores(scores)


def score_layers(result: Dataset, **options: Option) -> tuple[Score, ...]:
    """Score each layer of a result; an empty list without a human reference.

    Parameters
    ----------
    result, **options
        As for `score`.

    Raises
    ------
    InputError, UnknownNameError
        As for `score`.
    """
    return tuple(_probe_function(result, "score", "scored")(result, **options))


def all_scores(results: Sequence[Dataset], **options: Option) -> list[Score]:
    """Score each result, and several results jointly where their probe does so.

    A result that cannot be scored is a `psyprobe.analysis.score.FailedScore`, at the end.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of any runs.
    **options
        As for `score`.

    Raises
    ------
    PsyprobeError
        No result can be scored.
    """
    scored_results, scores, failures = scores_and_failures(results, **options)
    pairs = side_by_side(scores)
    return [*scores, *joint_scores(scored_results), *pairs, *failures]


def scores_and_failures(
    results: Sequence[Dataset], **options: Option
) -> tuple[list[Dataset], list[Score], list[FailedScore]]:
    """Score each result; return the results scored, their scores, and the failures.

    Raises
    ------
    PsyprobeError
        No result can be scored: the first failure.
    """
    scored_results: list[Dataset] = []
    scores: list[Score] = []
    problems: list[PsyprobeError] = []
    failures: list[FailedScore] = []
    for result in results:
        try:
            scores += score_layers(result, **options)
            scored_results.append(result)
        except PsyprobeError as problem:
            problems.append(problem)
            failures.append(FailedScore.of_result(result, problem))
    if problems and not scored_results:
        raise problems[0]
    return scored_results, scores, failures


def joint_scores(results: Sequence[Dataset]) -> list[Score]:
    """Score several results jointly, such as people against each other, where probes do so."""
    scores: list[Score] = []
    for name in dict.fromkeys(map(_probe_name, results)):
        score_together = getattr(load_probe(name), "score_together", None)
        if score_together is not None:
            scores += score_together(
                [result for result in results if _probe_name(result) == name]
            )
    return scores


def scoreboard(
    results_or_scores: Iterable[Dataset | Score] = (),
    *,
    published: bool = False,
    sort: str | None = None,
    **options: Option,
) -> Scoreboard:
    """Build a table of observers' scores in all tests, with trivial baselines.

    Parameters
    ----------
    results_or_scores : iterable of xarray.Dataset or Score
        Results or scores of any observers, experiments and layers.
    published, sort
        As for `psyprobe.analysis.scoreboard`.
    **options
        As for `score`.

    Raises
    ------
    InputError
        As for `psyprobe.analysis.scoreboard` and `score`.
    """
    from xarray import Dataset

    from psyprobe.analysis import scoreboards

    scores: list[Score] = []
    for entry in results_or_scores:
        scores += (
            score_layers(entry, **options) if isinstance(entry, Dataset) else [entry]
        )
    return scoreboards.scoreboard(scores, published=published, sort=sort)


def compare(
    *results_or_scores: Dataset | Score | Iterable[Dataset | Score],
    baseline: str | None = None,
    margin: float = 0.05,
    confidence: float = 0.95,
    **options: Option,
) -> Comparison:
    """Compare observers on the same variants or items: differences, and which are certain.

    Of answers to questions (of chat models, people or decision stages), the curves of sensitivity
    are compared at each level, with a band that holds all levels at once.

    Two groups of people, each a list of their runs or what ``read_trials(path, by="observer")``
    gave, are compared by person, paired where the same people did both.

    Printed intervals of two scores that overlap say little about their difference: what both saw
    alike cancels in it.

    Parameters
    ----------
    *results_or_scores : xarray.Dataset, Score, or iterable of these
        Results or scores of observers, in the same experiments; or two groups of people.
    baseline : str, optional
        "pixels", or the name of an observer, whom all others are compared with; without it the
        second of two observers, else the pixels.
    margin : float, optional
        Difference of a score within which observers are called equivalent.
    confidence : float, optional
        Coverage of the intervals, in (0, 1).
    **options
        As for `score`.

    Returns
    -------
    Comparison
        Printing it gives a table, a row a comparison: the difference with its interval, p by Holm,
        ranks, the smallest difference that could have been found, and a verdict.

    Raises
    ------
    InputError
        Nothing can be compared: a single variant was shown, or not the same ones; or answers
        without a baseline.
    UnknownNameError
        There is no such baseline.

    Examples
    --------
    >>> import psyprobe as pp
    >>> variants = {"phase": [0, 90]}
    >>> result = pp.run("area", "pixels", score_only=True, variants=variants)
    >>> pp.compare(result, baseline="pixels").rows[0].verdict
    'equivalent'
    """
    from xarray import Dataset

    from psyprobe.analysis.comparison.conditions import compare_people, is_people
    from psyprobe.analysis.comparison.table import Comparison as ComparisonTable
    from psyprobe.analysis.comparison.table import compare as compare_scores
    from psyprobe.analysis.words.difference import compare_curves

    if len(results_or_scores) == 2 and all(map(is_people, results_or_scores)):
        first, second = cast("tuple[Any, Any]", results_or_scores)
        people, notes = compare_people(first, second, confidence)
        return ComparisonTable(
            "the second", (), tuple(notes), confidence, margin, people=tuple(people)
        )
    scores: list[Score] = []
    answered: list[Dataset] = []
    for argument in results_or_scores:
        single = isinstance(argument, Dataset) or hasattr(argument, "rows")
        entries: Iterable[Any] = (
            [argument] if single else cast("Iterable[Any]", argument)
        )
        for entry in entries:
            if not isinstance(entry, Dataset):
                scores.append(entry)
            elif has_thresholds(entry):
                answered.append(entry)
            else:
                scores += score_layers(entry, **options)
    levels, notes = compare_curves(answered, baseline, confidence)
    if answered and not scores:
        if not levels:
            raise InputError(notes[0])
        return ComparisonTable(
            baseline or levels[0].baseline,
            (),
            tuple(notes),
            confidence,
            margin,
            tuple(levels),
        )
    compared = compare_scores(
        scores, baseline=baseline, margin=margin, confidence=confidence
    )
    return replace(compared, levels=tuple(levels), notes=(*compared.notes, *notes))


def has_thresholds(result: Dataset) -> bool:
    """Tell whether a result holds answers to trials, from which thresholds are fitted."""
    from psyprobe.analysis.words.trial_table import is_in_words

    return {"prompt", "response"} <= set(result.variables) and is_in_words(result)


def plot(
    result: Dataset | Iterable[Dataset],
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
    levels: str | ArrayLike | None = None,
    human: Human = "both",
    cmap: str | None = None,
    width: float | None = None,
) -> Axes | Figure:
    """Draw the figure that fits each result: contours, matches, sensitivity and others.

    Parameters
    ----------
    result : xarray.Dataset or iterable of xarray.Dataset
        Results of any runs.
    ax : matplotlib.axes.Axes, optional
        Axes for a single panel; by default a new pyplot figure is made.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2", "learning"}, optional
        Measure to draw; by default the one that the experiment names, else "angular". "learning" is
        d' of decision stages over the fields that they were trained on.
    layer : str, optional
        Name of a layer that all results hold; by default one panel for each layer of each result.
    levels : "log", "linear" or array_like of float, optional
        Levels of contours, as for `psyprobe.plotting.contour`.
    human : {"both", "model", "measured", "none"}, optional
        Human data to draw: the curve of a model, measured thresholds with the spread between
        people, or both.
    cmap : str, optional
        A colour map of matplotlib, for figures that use one.
    width : float, optional
        Width of a new figure in mm: 85 for one column of a journal, 178 for two, with type as
        journals print it.

    Returns
    -------
    matplotlib Axes or Figure
        Axes of a single panel, or the figure of several, with the results of each probe in a row of
        their own.

    Raises
    ------
    InputError
        Something is no result, or several panels are to go on one Axes.

    See Also
    --------
    psyprobe.plotting : each figure with all its options.
    """
    from xarray import Dataset

    results = [result] if isinstance(result, Dataset) else list(result)
    if not results:
        raise InputError("there are no results to draw; give at least one")
    groups: dict[str, list[Dataset]] = {}
    for member in results:
        groups.setdefault(_probe_name(member), []).append(member)
    check_new(width, ax)
    options = {
        "measure": measure,
        "layer": layer,
        "levels": levels,
        "human": human,
        "cmap": cmap,
    }
    if len(groups) > 1 and ax is not None:
        raise InputError(
            f"ax holds one panel, and there are results of {', '.join(groups)}; leave ax out"
        )
    with typeset(width):
        if len(groups) == 1:
            figure = _probe_function(results[0], "plot", "drawn")(
                results, ax, **options
            )
        else:
            figure = _stack_figures(list(groups.values()), options)
    fit_width(figure, width)
    return cast("Axes | Figure", figure)


def _stack_figures(groups: list[list[Dataset]], options: JsonObject) -> Figure:
    """Draw the figures of several probes one below another."""
    import matplotlib.pyplot as plt

    columns = max(min(len(group), 3) for group in groups)
    figure: Figure = plt.figure(
        layout="constrained", figsize=(4.8 * columns, 3.6 * len(groups))
    )
    names = {title_of(result, width=80) for group in groups for result in group}
    title = names.pop() if len(names) == 1 else ""
    figure.suptitle(title, fontsize="large")
    spec = figure.add_gridspec(len(groups), 1)
    widths = []
    heights = []
    for row, group in enumerate(groups):
        subfigure = figure.add_subfigure(spec[row])
        plot_group = _probe_function(group[0], "plot", "drawn")
        plot_group(group, None, figure=subfigure, observer=not title, **options)
        grid = subfigure.axes[0].get_subplotspec() if subfigure.axes else None
        rows, columns = grid.get_gridspec().get_geometry() if grid else (1, 1)
        widths.append(4.8 * min(columns, 3))
        heights.append(3.6 * rows + 0.13 * legend_lines(subfigure))
    spec.set_height_ratios(heights)
    figure.set_size_inches(max(widths), sum(heights) + 0.2)
    return figure


def _probe_name(result: Dataset) -> str:
    """Read the name of its probe from a result, refusing what is no result."""
    name = getattr(result, "attrs", {}).get("probe")
    if not name:
        raise InputError(
            "this is no result of a run: it does not name its probe; pass what psyprobe.run() gave"
        )
    return str(name)


def _probe_function(result: Dataset, name: str, participle: str) -> Any:
    """Find a function of the probe that produced a result, refusing a probe without it."""
    probe = _probe_name(result)
    function = getattr(load_probe(probe), name, None)
    if function is None:
        raise InputError(
            f"probe {probe!r} does not say how its results are {participle}; give it a function "
            f"{name!r}"
        )
    return function
