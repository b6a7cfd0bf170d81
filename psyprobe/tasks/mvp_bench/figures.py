"""Figures of MVP-Bench: low-level against high-level questions, natural against manipulated images, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from psyprobe.errors import InputError, unknown_name
from psyprobe.plotting.axes import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What can be put beside each other: label, task, level, metric. Colours of Okabe and Ito (2008), and a mark each.
CONTRASTS: Mapping[str, Sequence[tuple[str, str, str, str]]] = {
    "level": (("low level", "yes/no", "low", "qAcc"), ("high level", "yes/no", "high", "qAcc")),
    "image": (("natural", "yes/no", "multi", "aAcc_N"), ("manipulated", "yes/no", "multi", "aAcc_M")),
    "image_balanced": (
        ("natural", "yes/no", "multi", "balanced_N"),
        ("manipulated", "yes/no", "multi", "balanced_M"),
    ),
    "cross": (
        ("low level", "cross-image MCQ", "low", "CircularEval"),
        ("high level", "cross-image MCQ", "high", "CircularEval"),
    ),
}
_STYLES = (("#0072B2", "o"), ("#D55E00", "s"))
_TITLES = {
    "level": "Yes/no questions right on both images (qAcc)",
    "image": "Single yes/no questions (aAcc)",
    "image_balanced": "Single yes/no questions, mean over both keys",
    "cross": "Cross-image multiple choice (CircularEval)",
}


def plot_mvp(
    metrics: Mapping[str, pd.DataFrame], contrast: str = "level", ax: Axes | None = None, *, chance: float | None = None
) -> Axes:
    """Draw two accuracies of each model beside each other.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `mvp_metrics` gives them.
    contrast : {"level", "image", "image_balanced", "cross"}
        Low against high level, natural against manipulated images (as published, or balanced over the keys, which
        differ between both kinds), or the levels of cross-image multiple choice.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    chance : float, optional
        Where a line stands for guessing, per cent.

    Returns
    -------
    matplotlib.axes.Axes
        One row a model, with 95 % intervals as the metrics have them.

    Raises
    ------
    UnknownNameError
        There is no such contrast.
    InputError
        No model has both metrics.
    """
    if contrast not in CONTRASTS:
        raise unknown_name("contrast of MVP-Bench", contrast, CONTRASTS)
    cells = CONTRASTS[contrast]
    rows = []
    for model, table in metrics.items():
        found = [
            table[(table["task"] == task) & (table["level"] == level) & (table["metric"] == metric)]
            for _, task, level, metric in cells
        ]
        if all(len(one) == 1 for one in found):
            rows.append((model, [one.iloc[0] for one in found]))
    if not rows:
        raise InputError(f"no model has the metrics of {contrast!r}; run the questions that they need")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(5.2, 1.4 + 0.36 * len(rows)), layout="constrained").add_subplot()
    for i, (label, (colour, mark)) in enumerate(zip((cell[0] for cell in cells), _STYLES, strict=True)):
        for y, (_, found) in enumerate(rows):
            one, offset = found[i], 0.13 * (2 * i - 1)
            ax.plot([one["low"], one["high"]], [y + offset] * 2, color=colour, linewidth=1.4, solid_capstyle="butt")
            shown = label if y == 0 else None
            ax.plot(one["value"], y + offset, mark, color=colour, markersize=5, label=shown, clip_on=False)
    if chance is not None:
        ax.axvline(chance, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(rows)), [printable(model) for model, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set(xlim=(0, 100), xlabel="Right (%)")
    ax.set_title(_TITLES[contrast], fontsize=9, loc="left")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="lower left", bbox_to_anchor=(0, 1.08))
    return ax
