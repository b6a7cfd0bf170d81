"""Figures of corruptions: how far they take an encoder, and how visible they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.corruption.dimensions import STEPS, STRENGTHS, dimensions
from psyprobe.tasks.r_bench.corruption_visibility import SAME

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


def plot_profile(profile: xarray.Dataset, ax: Any = None, *, measure: str = "angular", layer: str | None = None) -> Any:
    """Draw a robustness profile as coloured cells: dimensions downwards, strengths to the right.

    Parameters
    ----------
    profile : xarray.Dataset
        As `robustness_profile` gives it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    measure : str
        Which response.
    layer : str, optional
        Which layer; by default the last.

    Returns
    -------
    matplotlib.axes.Axes
        Means over photographs; a star marks a dimension that is simulated where R-Bench photographed it.
    """
    found = profile["response"].sel(measure=measure, layer=layer or str(profile["layer"].values[-1])).mean("photograph")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(4.2, 1.2 + 0.2 * profile.sizes["dimension"]), layout="constrained").add_subplot()
    drawn = ax.imshow(found.values, cmap="YlGnBu", aspect="auto", vmin=0, interpolation="nearest")
    middle = float(found.max()) * 0.55
    for (i, j), value in np.ndenumerate(found.values):
        ax.text(
            j, i, f"{value:.3f}", ha="center", va="center", fontsize=6, color="white" if value > middle else "black"
        )
    known = dimensions()
    labels = [
        f"{known[str(name)].title}{' *' if known[str(name)].captured else ''}" for name in profile["dimension"].values
    ]
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.set_xticks(range(profile.sizes["strength"]), [str(each) for each in profile["strength"].values])
    ax.tick_params(length=0)
    steps = profile["step"].values
    for i in np.flatnonzero(steps[1:] != steps[:-1]):
        ax.axhline(i + 0.5, color="black", linewidth=0.8)
    card = json.loads(profile.attrs["observer_card"])
    ax.set_title(f"{card['name']}{' [RANDOM WEIGHTS]' if profile.attrs['random_weights'] else ''}", fontsize=9)
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label("Angular distance $S_{ac}$" if measure == "angular" else measure)
    ax.set_xlabel("Strength" + (" (* simulated)" if profile["simulated"].values.any() else ""))
    return ax


def plot_visibility(losses: dict[str, Sequence[float]], axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw quality against strength, one panel a step on the way of an image.

    Parameters
    ----------
    losses : dict of str to sequence of float
        JOD below 10 at low, mid and high strength, by dimension.
    axes : sequence of matplotlib.axes.Axes, optional
        Seven, one a step; without them, on a new pyplot figure.

    Returns
    -------
    list of matplotlib.axes.Axes
    """
    if axes is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(10.5, 5.4), layout="constrained")
        axes = figure.subplots(2, 4, sharex=True, sharey=True).ravel().tolist()
        axes[-1].set_visible(False)
        axes = axes[:-1]
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
    known = dimensions()
    for ax, (step, title) in zip(axes, STEPS.items(), strict=True):
        members = [name for name in losses if known[name].step == step]
        for name, colour, mark in zip(members, colours, "osD^vX", strict=False):
            label = f"{known[name].title}{' *' if known[name].captured else ''}"
            quality = SAME - np.asarray(losses[name])
            ax.plot(range(3), quality, marker=mark, color=colour, markersize=4, linewidth=1.2, label=label)
        ax.axhline(SAME - 1, color="0.6", linewidth=0.8, linestyle=":")
        ax.set_title(title, fontsize=9, loc="left")
        ax.set_xticks(range(3), STRENGTHS)
        ax.legend(fontsize=6.5, frameon=False, loc="lower left")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    for ax in axes[::4]:
        ax.set_ylabel("Quality (JOD)")
    axes[0].set_ylim(top=10.2)
    return list(axes)
