"""Ask readers and encoders that decide the pages of letters, paths and dots; print a table.

    python benchmarks/letter_results.py ask STORE      # 20 minutes on one thread
    python benchmarks/letter_results.py show STORE     # the table of docs/results.md
    python benchmarks/letter_results.py draw STORE     # docs/images/results_letters.png

Encoders are asked few levels, since a stage is trained for each.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import matplotlib as mpl
import numpy as np
import xarray as xr

mpl.use("agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import psyprobe as pp
from psyprobe.analysis import chat_csf, trials
from psyprobe.analysis.identification.score import score_identification
from psyprobe.analysis.responses import levels_of
from psyprobe.errors import PsyprobeError
from psyprobe.plotting.axes import log_axis, typeset
from psyprobe.probes.experiments import load_results

READERS = ("reader:rapidocr", "reader:tesseract")
DECIDED = ("decided:pixels", "decided:packaged:efficientnet_lite0")
#: Questions at each value of the level, by reader: tesseract takes 0.2 s an image.
QUESTIONS = {"reader:rapidocr": 60, "reader:tesseract": 25}
#: Heights of letters for encoders, px of an image of 96 px.
HEIGHTS = (1, 1.5, 2, 3, 4, 6, 9)
PAIRS = 32

Settings = Mapping[str, Any]
#: Smaller letters than people can be shown.
TINY: Settings = {
    "stimulus.parameters.allow_alias": True,
    "levels.logmar": {"from": -0.7, "to": 0.6, "n": 27, "scale": "linear"},
}


def constant(axis: str, values: list[float], repeats: int) -> dict[str, Any]:
    """Ask all values of the stimulus axis equally often."""
    return {
        f"levels.{axis}": {"values": values},
        "asking.design": "constant",
        "asking.options": {},
        "asking.repeats": repeats,
    }


#: Pages of readers, and what is changed of them: the charts fill 48 rows.
OF_READERS: dict[str, Settings] = {
    "letter_acuity": TINY,
    "letter_csf": {},
    "letter_channel": {},
    "etdrs": {
        "stimulus.parameters.ppd": 48,
        "stimulus.parameters.allow_alias": True,
        "options.jitter": {"x": 0.0417, "y": 0.0417},
    },
    "pelli_robson": {
        "stimulus.parameters.ppd": 15,
        "options.jitter": {"x": 0.133, "y": 0.133},
    },
    "crowding": constant("spacing", [0.2, 0.25, 0.3, 0.4, 0.6], 20),
}
OF_ENCODERS: dict[str, Settings] = {
    "letter_acuity": {
        "stimulus.parameters.allow_alias": True,
        **constant("logmar", [float(np.log10(px / 10)) for px in HEIGHTS], 20),
    },
    "contour": constant("path_angle", [5, 15, 30, 45, 60], 40),
    "motion_coherence": constant("coherence", [0.05, 0.1, 0.2, 0.4, 0.8], 20),
}


def ask(store: str) -> None:
    """Ask all observers all pages, into a store; what is there is not asked again."""
    for name in READERS:
        for page, settings in OF_READERS.items():
            alone = name == "reader:tesseract" and page == "crowding"
            if not alone:
                ask_reader(store, name, page, settings)
    for name in DECIDED:
        observer = pp.decide(name.removeprefix("decided:"), pairs=PAIRS)
        for page, settings in OF_ENCODERS.items():
            run_page(store, page, settings, observer)


def ask_reader(store: str, name: str, page: str, settings: Settings) -> None:
    """Ask a reader one page, as often as it is quick; of crowding it reads the middle columns."""
    experiment = pp.load_experiment(page).with_settings(settings)
    options = {"within": 8} if page == "crowding" else {}
    if experiment.asking and experiment.asking.design == "quest_plus":
        settings = {**settings, "asking.options.n_max": QUESTIONS[name]}
    run_page(store, page, settings, pp.load_observer(name, **options))


def run_page(store: str, page: str, settings: Settings, observer: Any) -> None:
    """Run one page, and print the time that it took."""
    start = time.process_time()
    experiment = pp.load_experiment(page).with_settings(settings)
    try:
        pp.run(experiment, observer, store=store, progress=False)
        problem = ""
    except PsyprobeError as error:
        problem = str(error)
    seconds = time.process_time() - start
    print(f"{observer.card.name} {page} {seconds:.0f} s {problem}", flush=True)


def show(store: str) -> None:
    """Print the thresholds of all finished runs of a store as a Markdown table."""
    print("| page | observer | questions | threshold (95 %) | chart, channel |")
    print("|---|---|---|---|---|")
    for result in load_results(store):
        csf = chat_csf(result).squeeze("prompt")
        (level,) = levels_of(csf)
        words = csf["status"].attrs["flag_meanings"].split()
        cells = []
        for value, status, *ends in zip(
            csf[level].values,
            csf["status"].values,
            *(csf[f"threshold{end}"].values for end in ("", "_low", "_high")),
            strict=True,
        ):
            text = "{:.3g} ({:.3g} to {:.3g})".format(*ends)
            cells.append(
                f"{value:.3g}: {text if np.isfinite(ends[0]) else words[status]}"
            )
        (score,) = score_identification(result)
        rest = [] if score.chart is None else [f"{score.chart:.2f}"]
        if score.channel is not None:
            rest.append(
                f"{score.channel.peak:.3g} cpd, {score.channel.width:.2g} octaves"
            )
        name = result.attrs["observer"]
        count = int(csf["trials"].sum())
        row = (
            result.attrs["experiment"],
            f"`{name}`",
            count,
            "; ".join(cells),
            ", ".join(rest),
        )
        print(f"| {' | '.join(map(str, row))} |")


FIGURE = Path(__file__).parents[1] / "docs" / "images" / "results_letters.png"
#: Panels of shares of right answers: page, what is varied, its name on the axis, chance, and where
#: people's threshold is.
SHARES: dict[str, tuple[str, str, float, float | None]] = {
    "letter_acuity": ("letter_size", "Height (px of the image seen)", 0.1, None),
    "crowding": ("spacing", "Spacing (letter widths)", 0.1, None),
    "contour": ("inverse_path_angle", "Bend of the path (deg)", 0.5, 60),
    "motion_coherence": ("coherence", "Coherence of dots", 0.25, None),
}
#: Panels of thresholds: page, the level, and its name on the axis.
CONTRASTS: dict[str, tuple[str, str]] = {
    "letter_csf": ("letter_size", "Height of letters (px)"),
    "letter_channel": ("noise_frequency", "Noise (cycles a letter)"),
}
#: The order of the panels.
DRAWN = ("letter_acuity", *CONTRASTS, "crowding", "contour", "motion_coherence")
COLOURS = {
    "reader:rapidocr": "C0",
    "decided:pixels": "C1",
    "decided:packaged:efficientnet_lite0": "C2",
}


def draw(store: str) -> None:
    """Draw acuity, contrast sensitivity, channel, crowding, paths and motion, side by side."""
    results = load_results(store)
    with typeset(178):
        figure = Figure(figsize=(7.0, 4.6), layout="constrained")
        axes = figure.subplots(2, 3).ravel()
        for ax, page in zip(axes, DRAWN, strict=True):
            for result in results:
                if result.attrs["experiment"] != page:
                    continue
                panel = draw_thresholds if page in CONTRASTS else draw_shares
                panel(ax, result, page)
            ax.set_title(page)
            points = [line for line in ax.lines if line.get_marker() == "o"]
            levels = np.concatenate([line.get_xdata() for line in points])
            log_axis(ax.xaxis, levels, 1.1)
            if page in CONTRASTS:
                contrasts = np.concatenate([line.get_ydata() for line in points])
                log_axis(ax.yaxis, contrasts, 1.3)
        lines_by_name = {}
        for ax in axes:
            for line, name in zip(*ax.get_legend_handles_labels(), strict=True):
                lines_by_name.setdefault(name, line)
        figure.legend(
            lines_by_name.values(), lines_by_name, loc="outside lower center", ncols=4
        )
        figure.savefig(FIGURE, dpi=200)
    # Few colours, since a true-colour file is three times as large.
    Image.open(FIGURE).convert("RGB").quantize(64).save(FIGURE, optimize=True)


def draw_shares(ax: Axes, result: xr.Dataset, page: str) -> None:
    """Draw the share of right answers at each level that was asked at least four times."""
    axis, label, chance, people = SHARES[page]
    table = trials(result)
    selection = ~np.isnan(table["response"].values)
    if page == "crowding":
        selection &= table["flankers"].values == 2
    levels = table[axis].values[selection]
    right = table["response"].values[selection]
    counted_levels = [
        level for level in np.unique(levels) if (levels == level).sum() >= 4
    ]
    shares = [right[levels == level].mean() for level in counted_levels]
    places = np.array(counted_levels) * scale_of(result, page)
    if axis.startswith("inverse"):
        places = 1 / places
    name = str(result.attrs["observer"])
    ax.plot(places, shares, "o-", color=COLOURS[name], label=name, markersize=3)
    ax.axhline(chance, color="0.7", linestyle=":", label="guessing")
    if people is not None:
        ax.axvline(people, color="0.4", linestyle="--", label="people's threshold")
    ax.set(xlabel=label, ylabel="Right answers", ylim=(0, 1.03))


def draw_thresholds(ax: Axes, result: xr.Dataset, page: str) -> None:
    """Draw threshold contrasts with their intervals over the level of a page."""
    level, label = CONTRASTS[page]
    csf = chat_csf(result).squeeze()
    value, low, high = (csf[f"threshold{end}"].values for end in ("", "_low", "_high"))
    places = csf[level].values * scale_of(result, page)
    name = str(result.attrs["observer"])
    ends = np.nan_to_num([value - low, high - value])
    ax.errorbar(
        places, value, ends, fmt="o-", color=COLOURS[name], label=name, markersize=3
    )
    if page == "letter_channel":
        ax.axvline(3, color="0.4", linestyle="--", label="people's peak")
    else:
        ax.axhline(
            10**-1.84, color="0.4", linestyle="-.", label="people, letters of 2.8 deg"
        )
    ax.set(xlabel=label, ylabel="Threshold contrast")


def scale_of(result: xr.Dataset, page: str) -> float:
    """Return by what a level is multiplied for its axis: pixels, widths or cycles a letter."""
    if page in ("letter_acuity", "letter_csf"):
        return float(result.attrs["ppd"])
    return {"crowding": 1 / 0.2, "letter_channel": 0.4}.get(page, 1.0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"ask": ask, "show": show, "draw": draw}[sys.argv[1]](sys.argv[2])
