"""How visible each corruption is at its three strengths, by ColorVideoVDP: a table and
visibility.png.

    python benchmarks/corruption_visibility.py -o docs/images     # at 512 x 384 px, for which the levels are meant

Means over three photographs of scikit-image, on a monitor of 200 cd/m² at 60 pixels per degree;
then the parameter of each dimension that costs one JOD, beside the low strength.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from PIL import Image
from scipy.optimize import brentq
from skimage import data

from psyprobe.corruption import STEPS, STRENGTHS, dimensions
from psyprobe.observers import load_observer
from psyprobe.plotting.axes import COLOURS, panels_in
from psyprobe.tasks.r_bench.figures import starred
from psyprobe.tasks.r_bench.visibility import SAME, visible_loss


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--size",
        type=int,
        nargs=2,
        default=(512, 384),
        metavar=("WIDTH", "HEIGHT"),
        help="px",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(), help="folder for the figure"
    )
    options = parser.parse_args()
    pictures = [
        Image.fromarray(picture()).resize(options.size)
        for picture in (data.astronaut, data.coffee, data.chelsea)
    ]
    photographs = [np.asarray(picture) for picture in pictures]
    metric = load_observer("cvvdp")
    losses = {}
    print(
        f"{'':24} {'JOD at low':>10} {'mid':>6} {'high':>6}   parameter at 1 JOD (low)"
    )
    for name, dimension in dimensions().items():
        photograph_losses = [
            visible_loss(photograph, name, STRENGTHS, metric=metric)
            for photograph in photographs
        ]
        losses[name] = np.mean(photograph_losses, axis=0)
        parameter = parameter_of_one_jod(photographs[1], name, metric)
        quality = " ".join(f"{10 - loss:6.2f}" for loss in losses[name])
        print(
            f"{name:24}     {quality}   {parameter} ({dimension.levels[0]:g})",
            flush=True,
        )
    mpl.use("agg")
    axes = plot_visibility(losses)
    axes[0].figure.savefig(options.output / "visibility.png", dpi=110)


def parameter_of_one_jod(photograph: Any, name: str, metric: Any) -> str:
    """Search the span of a dimension for the parameter that costs one JOD."""

    def excess(parameter: float) -> float:
        level = round(parameter) if dimension.whole else parameter
        return visible_loss(photograph, name, level, metric=metric) - 1.0

    dimension = dimensions()[name]
    mild, severe = dimension.span
    if excess(severe) < 0:
        return f"{severe:.3g} (not reached)"
    return f"{brentq(excess, mild, severe, rtol=0.05, maxiter=10, disp=False):.3g}"


def plot_visibility(losses: dict[str, Sequence[float]]) -> list[Axes]:
    """Draw quality against strength, one panel for each step at which corruption arises.

    Parameters
    ----------
    losses : dict of str to sequence of float
        JOD below 10 at low, mid and high strength, by dimension.
    """
    _, axes = panels_in(None, len(STEPS), 4, (2.625, 3.3))
    for ax in axes[1:]:
        ax.sharex(axes[0])
        ax.sharey(axes[0])
    for ax, (step, title) in zip(axes, STEPS.items(), strict=True):
        members = [
            dimensions()[name] for name in losses if dimensions()[name].step == step
        ]
        for dimension, colour, marker in zip(members, COLOURS, "osD^vX", strict=False):
            quality = SAME - np.asarray(losses[dimension.name])
            label = starred(dimension.title, dimension.captured)
            ax.plot(
                quality,
                marker=marker,
                color=colour,
                markersize=4,
                linewidth=1.2,
                label=label,
            )
        ax.axhline(SAME - 1, color="0.6", linewidth=0.8, linestyle=":")
        ax.set_title(title, fontsize=9, loc="left")
        ax.set_xticks(range(3), STRENGTHS)
        # Under the panel: lines go through every corner of it.
        ax.legend(
            fontsize=6.5,
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(0, 0),
            borderaxespad=2.8,
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelbottom=True, labelleft=ax in axes[::4])
    for ax in axes[::4]:
        ax.set_ylabel("Quality (JOD)")
    axes[0].set_ylim(top=10.2)
    return axes


if __name__ == "__main__":
    main()
