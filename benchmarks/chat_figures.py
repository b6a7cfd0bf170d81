"""Draw the figures of docs/chat.md: ``python benchmarks/chat_figures.py FOLDER``.

All observers are simulated ones of known truth, so that no model is needed. One says yes to a
quarter of all blanks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

import psyprobe as pp
from psyprobe.analysis import chat_csf
from psyprobe.experiment import load_experiment
from psyprobe.plotting import (
    plot_bridge,
    plot_csf,
    plot_prompts,
    plot_psychometric,
    plot_yes_map,
    save_figure,
)

_TOWER = """
title    = "The same noise, by features"
stimulus = "noise_hernandez2025"
probe    = "detection"
levels   = { frequency.values = [1, 2, 4, 8, 16, 24], contrast = { from = 0.001, to = 0.25, n = 12 } }
display  = { peak = 186.8805 }
"""


def run_every_prompt(readout: str, **mind: Any) -> Any:
    """A run of `hernandez2025`, every prompt."""
    experiment = load_experiment("hernandez2025")
    assert experiment.asking is not None
    # At a temperature of 0 text is the likelier answer: a step, whatever the guess rate.
    asking = experiment.asking.model_copy(
        update={"readout": readout, "temperature": 1.0}
    )
    observer = pp.load_observer("simulated:watson-malo", **mind)
    return pp.run(
        experiment.model_copy(update={"asking": asking}), observer, progress=False
    )


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    def keep(name: str, ax: Any = None) -> None:
        save_figure(
            ax.figure if ax is not None else plt.gcf(), folder / f"chat_{name}.png"
        )
        plt.close("all")

    biased = {"guess": 0.25, "prompt_sd": 0.08}
    text = run_every_prompt("text", **biased)
    likely = run_every_prompt("p_yes", logit_sd=0.5, **biased)
    fitted = chat_csf(text)
    keep(
        "bias",
        plot_csf(
            [fitted, chat_csf(text, guess=0, lapse=0)],
            labels=["guess and lapse fitted", "plain logistic"],
            human="model",
        ),
    )
    _, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    for ax, result, title in zip(
        axes, (likely, text), ("P(yes) of the first token", "Text"), strict=True
    ):
        plot_psychometric(chat_csf(result), ax, prompt="structure")
        ax.set_title(title)
    axes[0].get_legend().remove()
    keep("psychometric")
    keep("prompts", plot_prompts(fitted))
    keep("yes_map", plot_yes_map(text))
    page = folder / "by_features.toml"
    page.write_text(_TOWER, encoding="utf-8")
    keep("bridge", plot_bridge(likely, pp.run(page, "pixels", progress=False)))
    page.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
