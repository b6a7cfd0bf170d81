"""Draw which labels were named where each was shown, beside the psychometric functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe.analysis.identification.confusions import Confusions, count_confusions
from psyprobe.analysis.identification.replies import OTHERS
from psyprobe.analysis.words.score import refuse_features
from psyprobe.plotting import axes
from psyprobe.plotting.figure_data import Part, Table, name_of
from psyprobe.plotting.psychometric_curves import plot_psychometric
from psyprobe.plotting.word_parts import csf_parts

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Share of a row from which its number is written in white.
_DARK = 0.55


def plot_confusions(
    result: xr.Dataset, ax: Axes | None = None, *, title: str | None = None
) -> Axes:
    """Draw how often each label was named where each was shown, as coloured cells.

    Parameters
    ----------
    result : xarray.Dataset
        Of the probe `identify`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    title : str, optional
        Title; by default the observer and the experiment.

    Returns
    -------
    matplotlib.axes.Axes
        Labels shown downwards, labels named to the right, and behind a line why none was. Colour is
        the share of a row; numbers are replies.

    Raises
    ------
    InputError
        No labels were asked for.

    Examples
    --------
    >>> import psyprobe as pp
    >>> page = pp.load_experiment("landolt_4").with_settings({"asking.options.n_max": 8})
    >>> same = pp.observer(lambda images, prompt: "up", name="says up", bits=8)
    >>> ax = plot_confusions(pp.run(page, same, progress=False))
    >>> ax.get_xlabel(), ax.get_title()
    ('Named', 'says up')
    """
    confusions = count_confusions(result)
    ax = ax or axes.new_axes()
    columns = _columns(confusions)
    counts = confusions.counts[:, columns]
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    shares = counts / totals
    ax.imshow(shares, cmap=axes.COLOUR_MAP, vmin=0, vmax=1, aspect="auto")
    for row, column in zip(*np.nonzero(counts), strict=True):
        ax.text(
            column,
            row,
            f"{counts[row, column]:.0f}",
            ha="center",
            va="center",
            fontsize="x-small",
            color="white" if shares[row, column] > _DARK else "black",
        )
    every_name = [*confusions.labels, *OTHERS]
    names = [axes.printable(every_name[column]) for column in columns]
    rotation = 90 if max(map(len, names)) > 2 else 0
    ax.set_xticks(range(len(names)), names, rotation=rotation)
    ax.set_yticks(
        range(len(confusions.labels)), list(map(axes.printable, confusions.labels))
    )
    ax.axvline(len(confusions.labels) - 0.5, color="black", linewidth=0.8)
    axes.label(ax, "Named", "Shown", axes.title_of(result) if title is None else title)
    return ax


def _columns(confusions: Confusions) -> list[int]:
    """List the columns of the confusion matrix to draw: labels, and other answers given."""
    count = len(confusions.labels)
    other_columns = range(count, count + len(OTHERS))
    answered = [i for i in other_columns if confusions.counts[:, i].any()]
    return [*range(count), *answered]


def identification_panels(
    results: Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    measure: str | None = None,
    layer: str | None = None,
    **_: Any,
) -> Axes | Figure | SubFigure:
    """Draw confusions and psychometric functions of each result, side by side.

    On axes of one's own, the confusions of one run. This is ``plot`` of the probe `identify`, see
    `psyprobe.probes.results`.
    """
    refuse_features(measure=measure, layer=layer)
    axes.check_room(ax, len(results))
    if ax is not None:
        return plot_confusions(results[0], ax)
    canvas, panels = axes.panels_in(figure, 2 * len(results), 2, panel_size=(4.8, 4.0))
    for i, result in enumerate(results):
        plot_confusions(result, panels[2 * i])
        plot_psychometric(result, panels[2 * i + 1])
    return cast("Figure | SubFigure", canvas)


def identification_parts(results: Sequence[xr.Dataset]) -> list[Part]:
    """Build a report's figures of thresholds and of the confusions of labels.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of one experiment that asks for labels.
    """
    rows = []
    for result in results:
        confusions = count_confusions(result)
        rows += [
            [name_of(result), label, *(f"{count:.0f}" for count in counts)]
            for label, counts in zip(confusions.labels, confusions.counts, strict=True)
        ]
    labels = count_confusions(results[0]).labels
    heading = ["observer", "shown", *labels, *OTHERS]
    caption = (
        "Replies by the label shown (rows) and named (columns). outside: a character or direction "
        "that is none of the labels, which counts as wrong."
    )
    table = Table("Confusions", heading, rows, caption, opened=len(rows) <= 12)
    return [*csf_parts(results), table]
