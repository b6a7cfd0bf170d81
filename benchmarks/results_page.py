"""The tables and figures of docs/results.md, from stores of finished runs of the nine tests.

    python benchmarks/results_page.py runs.sqlite metrics.sqlite

Figures go to docs/images, in 256 colours, since contour plots in true colour are three times as large. Tables are
printed in Markdown.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from psyprobe.experiment import read_suite
from psyprobe.plotting import bar_panels, heat_map, matched_contrast
from psyprobe.probes.conduct import load_results
from psyprobe.probes.results import plot, score_layers, scoreboard

IMAGES = Path(__file__).parents[1] / "docs" / "images"
TESTS = [experiment.name for experiment in read_suite("cai2025")]


def save(drawn: Figure | Axes, name: str, dpi: float) -> None:
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    with io.BytesIO() as stream:
        figure.savefig(stream, dpi=dpi, format="png", metadata={"Software": None})
        with Image.open(stream) as image:
            image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
    print(f"{name}.png: {(IMAGES / f'{name}.png').stat().st_size / 1000:.0f} kB", file=sys.stderr)


def main(stores: list[str]) -> None:
    results = [one for store in stores for one in load_results(store) if one.attrs["experiment"] in TESTS]
    results.sort(key=lambda one: TESTS.index(one.attrs["experiment"]))
    gridded = [one for one in results if "response" in one and one.attrs["observer"].startswith("packaged:")]
    board = scoreboard(results)
    print(board.table("markdown"))
    save(heat_map(board), "results_scores", 90)
    save(bar_panels(board), "results_bars", 90)
    observers = list(dict.fromkeys(one.attrs["observer"] for one in gridded))
    for observer in observers:
        own = [one for one in gridded if one.attrs["observer"] == observer]
        save(plot(own), f"results_{observer.partition(':')[2]}", 75)
    matching = [one for one in gridded if one.attrs["experiment"] == "contrast_matching"]
    figure = Figure(figsize=(10.5, 8), layout="constrained")
    for one, panel in zip(matching, figure.subplots(2, 2).flat, strict=False):
        matched_contrast(one, panel)
    save(figure, "results_matching", 80)
    print(f"\n| share at the float32 floor | {' | '.join(TESTS)} |\n|{'---|' * (len(TESTS) + 1)}")
    for observer in observers:
        floors = {
            one.attrs["experiment"]: score_layers(one)[0].float32_floor
            for one in gridded
            if one.attrs["observer"] == observer
        }
        print(f"| `{observer}` | {' | '.join(f'{100 * floors[test]:.1f} %' for test in TESTS if test in floors)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
