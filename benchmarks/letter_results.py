"""Ask readers and encoders that decide the pages of letters, paths and dots; print a table.

    python benchmarks/letter_results.py ask STORE      # 20 minutes on one thread
    python benchmarks/letter_results.py show STORE     # the table of docs/results.md

Encoders are asked few levels, since a stage is trained for each.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import psyprobe as pp
from psyprobe.analysis import chat_csf
from psyprobe.analysis.identification.score import score_identification
from psyprobe.analysis.responses import levels_of
from psyprobe.errors import PsyprobeError
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
    "crowding": {},
}


def constant(axis: str, values: list[float], repeats: int) -> dict[str, Any]:
    """Ask all values of the stimulus axis equally often."""
    return {
        f"levels.{axis}": {"values": values},
        "asking.design": "constant",
        "asking.options": {},
        "asking.repeats": repeats,
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
            put(store, page, settings, observer)


def ask_reader(store: str, name: str, page: str, settings: Settings) -> None:
    """Ask a reader one page, as often as it is quick; of crowding it reads the middle columns."""
    experiment = pp.load_experiment(page)
    options = {"within": 8} if page == "crowding" else {}
    if experiment.asking and experiment.asking.design == "quest_plus":
        settings = {**settings, "asking.options.n_max": QUESTIONS[name]}
    put(store, page, settings, pp.load_observer(name, **options))


def put(store: str, page: str, settings: Settings, observer: Any) -> None:
    """Run one page, and say what it took."""
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


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"ask": ask, "show": show}[sys.argv[1]](sys.argv[2])
