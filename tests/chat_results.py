"""Results of questioning runs without an observer: a logistic one of known thresholds, drawn with
numpy."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr

from psyprobe.human import watson_malo_csf
from psyprobe.running.task import CONTRAST_AXIS, Task

FREQUENCIES = (1.0, 2.0, 4.0, 8.0, 16.0, 24.0)
#: Slope of the logistic function from 5 to 95 %, k in k (x - t) / w.
LOGISTIC = 2 * np.log(19)


def log_thresholds(
    prompts: int = 1,
    sd: float = 0.0,
    seed: int = 0,
    frequencies: Sequence[float] = FREQUENCIES,
):
    """Log10 thresholds, shape (prompts, frequencies): Watson-Malo, each prompt moved as a whole."""
    shift = (
        np.random.default_rng(seed).normal(0, sd, (prompts, 1))
        if sd
        else np.zeros((prompts, 1))
    )
    return -np.log10(watson_malo_csf(frequencies)) + shift


def chat_result(
    thresholds: np.ndarray | None = None,
    *,
    frequencies: Sequence[float] = FREQUENCIES,
    contrast: Sequence[float] | np.ndarray | None = None,
    repeats: int = 10,
    catch: int = 40,
    width: float = 0.6,
    guess: float = 0.0,
    lapse: float = 0.0,
    readout: str = "text",
    logit_sd: float = 0.5,
    invalid: float = 0.0,
    delivered: float = 1.0,
    groups: Sequence[str] | None = None,
    observer: str = "simulated:watson-malo",
    seed: int = 0,
) -> xr.Dataset:
    """The dataset of a yes/no run, from a logistic observer on log10 of the delivered contrast."""
    rng = np.random.default_rng(seed)
    t = (
        log_thresholds(frequencies=frequencies)
        if thresholds is None
        else np.asarray(thresholds)
    )
    levels = np.geomspace(1e-3, 0.28, 12) if contrast is None else np.asarray(contrast)
    rows: list[dict] = []

    def add(p: int, frequency: float, c: float, logit: float, repeat: int) -> None:
        logit += rng.normal(0, logit_sd)
        p_yes = 1 / (1 + np.exp(-logit))
        response = float(rng.random() < p_yes) if readout == "text" else p_yes
        reading = "yes" if response > 0.5 else "no"
        if rng.random() < invalid:
            response, reading = np.nan, "invalid"
        rows.append(
            {
                "frequency": frequency,
                "contrast": c,
                "delivered_contrast": delivered * c,
                "coherent_gain": delivered,
                "catch": c == 0,
                "was_shown": True,
                "repeat": repeat,
                "image_seed": repeat,
                "prompt": f"p{p:02d}",
                "prompt_text": f"Is there pattern {p}?",
                "polarity": 1,
                "text": reading.title(),
                "reply_requested": bool(rng.random() < 0.05 or readout == "text"),
                "readout": readout,
                "first_tokens": "",
                "reading": reading,
                "p_yes": p_yes if readout == "p_yes" else np.nan,
                "logit": logit if readout == "p_yes" else np.nan,
                "answer_mass": 0.99,
                "logit_censored": False,
                "response": response,
                "tokens_in": 300,
                "tokens_out": 1,
                "cost": 0.0,
                "finish": "stop",
            }
        )

    with np.errstate(divide="ignore"):
        floor = float(np.clip(np.log(guess) - np.log1p(-guess), -9, 9))
    for p in range(len(t)):
        for k in range(catch):
            add(p, frequencies[0], 0.0, floor, k)
        for i, frequency in enumerate(frequencies):
            for c in levels:
                share = 1 / (
                    1 + np.exp(-LOGISTIC * (np.log10(delivered * c) - t[p, i]) / width)
                )
                psi = np.clip(guess + (1 - guess - lapse) * share, 1e-6, 1 - 1e-6)
                for k in range(repeats):
                    add(p, frequency, c, float(np.log(psi / (1 - psi))), k)
    names = list(groups or ["noun"] * len(t))
    prompts = [
        {"id": f"p{p:02d}", "text": f"Is there pattern {p}?", "group": names[p]}
        for p in range(len(t))
    ]
    attributes = {
        "frequency": {"units": "cycles/degree", "long_name": "Spatial frequency"}
    }
    return xr.Dataset(
        {
            name: (
                "trial",
                np.array([row[name] for row in rows]),
                attributes.get(name, {}),
            )
            for name in rows[0]
        },
        attrs={
            "experiment": "hernandez2025",
            "experiment_toml": "",
            "experiment_digest": "0",
            "observer": observer,
            "observer_card": "{}",
            "display": "{}",
            "software": "{}",
            "psyprobe_version": "0",
            "random_weights": 0,
            "probe": "yes_no",
            "task": json.dumps(Task(("yes", "no"), "yes", CONTRAST_AXIS).to_dict()),
            "levels": '["frequency"]',
            "prompts": json.dumps(prompts),
            "delivery": "{}",
            "readout": readout,
            "design": "constant",
        },
    )
