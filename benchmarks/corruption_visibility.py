"""How visible each corruption is at its three strengths, by ColorVideoVDP: a table and
visibility.png.

    python benchmarks/corruption_visibility.py -o docs/images     # at 512 x 384 px, for which the levels are meant

Means over three photographs of scikit-image, on a monitor of 200 cd/m² at 60 pixels per degree;
then the parameter of each dimension that costs one JOD, beside the low strength.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image
from skimage import data

from psyprobe.corruption import STRENGTHS, dimensions
from psyprobe.observers import load_observer
from psyprobe.tasks.r_bench.corruption_profile import parameter_for, plot_visibility, visible_loss


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--size", type=int, nargs=2, default=(512, 384), metavar=("WIDTH", "HEIGHT"), help="px"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path(), help="folder for the figure")
    options = parser.parse_args()
    pictures = [
        Image.fromarray(picture()).resize(options.size)
        for picture in (data.astronaut, data.coffee, data.chelsea)
    ]
    photographs = [np.asarray(picture) for picture in pictures]
    metric = load_observer("cvvdp")
    losses = {}
    print(f"{'':24} {'JOD at low':>10} {'mid':>6} {'high':>6}   parameter at 1 JOD (low)")
    for name, dimension in dimensions().items():
        found = [
            visible_loss(photograph, name, STRENGTHS, metric=metric) for photograph in photographs
        ]
        losses[name] = np.mean(found, axis=0)
        one = parameter_for(photographs[1:2], name, 1.0, metric=metric, most=6)
        quality = " ".join(f"{10 - loss:6.2f}" for loss in losses[name])
        reached = "" if one.reached else " (not reached)"
        print(
            f"{name:24}     {quality}   {one.parameter:.3g} ({dimension.levels[0]:g}){reached}",
            flush=True,
        )
    mpl.use("agg")
    axes = plot_visibility(losses)
    axes[0].figure.savefig(options.output / "visibility.png", dpi=110)


if __name__ == "__main__":
    main()
