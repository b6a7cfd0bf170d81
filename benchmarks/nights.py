"""How often nights without a change alarm, and how often a planted change is named.

Simulated observers are asked once in words, with the probability of each answer; from these all
answers of so many nights are drawn and scored (0.3 s of processor each), and each night is one of
them at random, never that of the night before. Observers of eight variants scatter from night to
night by a tenth of what variants differ by. `psyprobe compare --label` then judges every night
beside the one before and the last ten.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import psyprobe as pp
from psyprobe.analysis.words.comparison import compare_with_human
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.experiment import load_experiment
from psyprobe.reporting.publishing.nights import NightRun, compare_runs

PAGE = """
title = "Gabors in words"
source = "psyprobe's own benchmarks"
probe = "yes_no"
differences = ["it is small"]
[stimulus]
kind = "gabor"
parameters = { frequency = 2, contrast = 0.1, luminance = 40, ppd = 32, size = 64, radius = 0.4 }
[human]
model = "watson_malo_csf"
[levels]
frequency = { values = [1, 2, 4, 8, 14] }
contrast = { from = 0.001, to = 0.5, n = 10, scale = "log" }
[asking]
prompts = "base"
readout = "text"
temperature = 1
catch = 0.1
repeats = { text = 10, p_yes = 10 }
seed = 3
[delivery]
bits = 8
dither = "rpdf"
[display]
peak = 185.3
"""
IN_WORDS = ("simulated:watson-malo", "simulated:flat")
VARIANTS = 8
OF_VARIANTS = 10
#: Differences between variants, and of one variant between nights, of scores in [0, 1].
BETWEEN_VARIANTS = 0.1
BETWEEN_NIGHTS = 0.01
#: What the planted nights change: so much of a score, and the first observer in words is the
#: second one.
PLANTED = 0.02
#: Nights before the first that is judged.
FIRST = 10


def ask(name: str) -> tuple[Any, Any]:
    """Ask an observer in words, and once more for the probability of each answer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nights.toml"
        path.write_text(PAGE, encoding="utf-8")
        page = load_experiment(path)
        observer = pp.load_observer(name)
        result = pp.run(page, observer, progress=False)
        read = page.with_settings({"asking.readout": "p_yes"})
        return result, pp.run(read, observer, progress=False)


def draw_answers(asked: tuple[Any, Any], random: np.random.Generator) -> Any:
    """Draw all answers of a night."""
    result, probabilities = asked
    night = result.copy()
    for name in ("response", "catch_response"):
        chances = probabilities[name].values
        night[name] = night[name].dims, (random.random(chances.shape) < chances) * 1.0
    return night


def score_words(asked: tuple[Any, Any], random: np.random.Generator) -> dict[str, Any]:
    """Score a night in words, as a board has it."""
    scores = compare_with_human(chat_csf(draw_answers(asked, random)), "watson_malo")
    shape = scores.shape_rmse_log10
    ends = {"value": shape.value, "low": shape.low, "high": shape.high}
    return {**ends, "sample": None, "confidence": 0.95, "lower_is_better": True}


def score_variants(shift: float, random: np.random.Generator, number: int) -> Any:
    """Score a night of an observer of eight variants, as a board has it."""
    variants = np.random.default_rng(number).normal(0.5, BETWEEN_VARIANTS, VARIANTS)
    values = variants + random.normal(shift, BETWEEN_NIGHTS, VARIANTS)
    sample = {
        "population": "variants",
        "keys": [*map(str, range(VARIANTS))],
        "values": values.tolist(),
        "scale": "linear",
        "clusters": [],
    }
    nothing = {"low": None, "high": None, "confidence": 0.95, "lower_is_better": False}
    return {"value": float(values.mean()), "sample": sample, **nothing}


def make_run(observer: str, night: int, entry: dict[str, Any]) -> NightRun:
    """Make a run of a night with one number on its board."""
    board = [
        {"responder": "observer", "metric": "m", "layer": "", "measure": "", **entry}
    ]
    name = f"{night:06}"
    return NightRun(observer, "", "nights", name, name, "", {}, lambda: board)


def main() -> None:
    """Print how many nights alarm, and how many planted changes are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=1000)
    parser.add_argument("--scored", type=int, default=150, help="nights in words")
    arguments = parser.parse_args()
    count = arguments.nights
    scored = arguments.scored
    warnings.simplefilter("ignore")
    pools: dict[str, list[dict[str, Any]]] = {}
    for place, name in enumerate(IN_WORDS):
        asked = ask(name)
        pools[name] = []
        for number in range(scored):
            random = np.random.default_rng([place, number])
            pools[name].append(score_words(asked, random))
        print(f"{name}: {scored} nights scored", flush=True)
    past: list[NightRun] = []
    alarms: dict[str, int] = {"any": 0, "words": 0, "variants": 0}
    named = {"words": 0, "variants": 0}
    planted = max(count // 10, 1)
    places = np.zeros(len(IN_WORDS), int)
    for night in range(count + FIRST):
        random = np.random.default_rng([35, night])
        # Never the night before, which would differ by nothing.
        places = (places + random.integers(1, scored, len(places))) % scored
        tonight = [
            make_run(name, night, pool[place])
            for (name, pool), place in zip(pools.items(), places, strict=True)
        ]
        tonight += [
            make_run(f"variants {k}", night, score_variants(0.0, random, k))
            for k in range(OF_VARIANTS)
        ]
        if night >= FIRST:
            rows = compare_runs([*past, *tonight], f"{night:06}").rows
            changed = {row.observer for row in rows if row.changed}
            in_words = changed & {*IN_WORDS}
            alarms["any"] += bool(changed)
            alarms["words"] += bool(in_words)
            alarms["variants"] += bool(changed - in_words)
        if FIRST <= night < FIRST + planted:
            # The same night, with one observer in words and one of variants changed.
            first = make_run(IN_WORDS[0], night, pools[IN_WORDS[1]][places[1]])
            last = make_run("variants 0", night, score_variants(-PLANTED, random, 0))
            changed_night = [first, *tonight[1:2], last, *tonight[3:]]
            rows = compare_runs([*past, *changed_night], f"{night:06}").rows
            changed = {row.observer for row in rows if row.changed}
            named["words"] += IN_WORDS[0] in changed
            named["variants"] += "variants 0" in changed
        size = len(tonight)
        past = [*past, *tonight][-FIRST * size :]
    print("| nights | alarm |\n|---|---|")
    for name, number in alarms.items():
        share = number / count
        error = np.sqrt(share * (1 - share) / count)
        print(f"| {count} without a change: {name} | {share:.1%} ± {error:.1%} |")
    for name, number in named.items():
        print(
            f"| {planted} with one planted: {name} | named in {number / planted:.0%} |"
        )


if __name__ == "__main__":
    main()
