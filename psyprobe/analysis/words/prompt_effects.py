"""Estimate how much of a sensitivity is due to the prompt: a mixed-effects model.

References
----------
Laird, Ware (1982). Random-effects models for longitudinal data. Biometrics 38(4), 963-974.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.analysis.intervals import normal_quantile
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError
from psyprobe.files.listing import frame_of
from psyprobe.files.units import unit_symbol

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Effect:
    """A fixed effect, in log10 sensitivity."""

    #: Name of the effect: "4 cpd" for the mean of the reference group there, or "group adjective"
    #: for the difference from that group.
    name: str
    value: float
    #: Interval (normal, from the restricted likelihood).
    low: float
    high: float


@dataclass(frozen=True)
class PromptEffects(Recorded):
    """Effects of prompt and level on log10 sensitivity."""

    observer: str
    #: Levels, and kinds of prompt where there are several.
    effects: tuple[Effect, ...]
    #: The kind of prompt that stands in the levels' means; empty where there is only one.
    reference_group: str
    #: Standard deviation between prompts that all levels share, log10.
    prompt_sd: float
    #: Standard deviation of the rest: prompts that differ in shape, and the error of thresholds.
    residual_sd: float
    #: Share of the variance at one level that all levels have in common, 0 to 1.
    share: float
    #: P-value of the hypothesis that kinds of prompt do not differ (likelihood ratio,
    #: chi-square); None with one kind.
    group_p: float | None
    #: Thresholds that entered.
    n: int
    #: Prompts that entered.
    n_prompts: int
    #: Whether the fit converged. A `prompt_sd` of 0 is the end of its range and no failure.
    converged: bool
    #: Confidence of the intervals.
    confidence: float

    def table(self, format: str = "text") -> str:
        """Lay the effects out as a table.

        Parameters
        ----------
        format : {"text", "markdown", "latex"}, optional
            For reading.

        Raises
        ------
        UnknownNameError
            If there is no such layout.
        """
        from psyprobe.files.terminal import lay_out, printable

        rows = [
            [printable(f"{self.observer}: log10 sensitivity"), "effect", "interval"]
        ]
        rows += [
            [printable(e.name), f"{e.value:+.3f}", f"[{e.low:+.3f}, {e.high:+.3f}]"]
            for e in self.effects
        ]
        rows += [
            ["SD between wordings", f"{self.prompt_sd:.3f}", ""],
            ["SD of the rest", f"{self.residual_sd:.3f}", ""],
        ]
        lines = [
            f"{self.n} thresholds of {self.n_prompts} wordings; {100 * self.share:.0f} % of the "
            "variance at one "
            f"level is shared by all levels of a wording. Intervals: {100 * self.confidence:g} %."
        ]
        if self.group_p is not None:
            lines.append(
                f"Kinds of wording differ from {self.reference_group!r} by the effects shown; p = "
                f"{self.group_p:.2g} (likelihood ratio)."
            )
        if not self.converged:
            lines.append(
                "The fit did not converge; take no number of this table for more than a guess."
            )
        return lay_out(format, rows, lines)

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the effects, one a row, in log10 sensitivity."""
        return frame_of(self.effects).set_index("name")

    def __str__(self) -> str:
        return self.table()


def prompt_effects(csf: xr.Dataset) -> PromptEffects:
    """Part the spread of sensitivities into prompt and level: a linear mixed-effects model.

    log10 sensitivity = level + kind of prompt + prompt (random) + rest (random).

    Parameters
    ----------
    csf : xarray.Dataset
        Of `chat_csf`, with three prompts at least.

    Returns
    -------
    PromptEffects
        Printing it gives a table.

    Raises
    ------
    InputError
        If fewer than three prompts have usable thresholds at two frequencies, or statsmodels is
        not installed.
    """
    try:
        model: Any = import_module("statsmodels.regression.mixed_linear_model").MixedLM
    except ImportError:
        raise InputError(
            "the mixed-effects model needs statsmodels; install it with pip install "
            '"psyprobe[chat]"'
        ) from None
    from scipy.special import chdtrc

    usable = csf["usable"].values.astype(bool)
    prompt, level_index = np.nonzero(usable)
    if len(np.unique(prompt)) < 3 or len(np.unique(level_index)) < 2 or len(prompt) < 6:
        raise InputError(
            f"{len(np.unique(prompt))} wordings have usable thresholds at "
            f"{len(np.unique(level_index))} levels; a "
            f"mixed-effects model needs three wordings and two levels at least"
        )
    log_s = -csf["log10_threshold"].values[usable]
    (level,) = levels_of(csf)
    unit = unit_symbol(csf[level].attrs)
    values = csf[level].values
    present = np.unique(level_index)
    names = [
        f"{values[i]:g}" if unit == "1" else f"{values[i]:g} {unit}" for i in present
    ]
    by_level = (level_index[:, None] == present).astype(float)
    groups = csf["group"].values.astype(str)[prompt]
    reference, *other_groups = dict.fromkeys(groups.tolist())
    by_group = (groups[:, None] == np.array(other_groups, dtype=groups.dtype)).astype(
        float
    )
    design = np.concatenate([by_level, by_group], axis=1)
    confidence = float(csf.attrs["confidence"])
    with warnings.catch_warnings():
        # A standard deviation between prompts of 0 lies at the end of its range, and is said to be
        # singular.
        warnings.simplefilter("ignore")
        fitted = model(log_s, design, groups=prompt).fit(reml=True)
        p_value = None
        if other_groups:
            with_groups = model(log_s, design, groups=prompt).fit(reml=False)
            without = model(log_s, by_level, groups=prompt).fit(reml=False)
            p_value = float(
                chdtrc(len(other_groups), max(0.0, 2 * (with_groups.llf - without.llf)))
            )
    fixed = np.asarray(fitted.fe_params, float)
    reach = normal_quantile(confidence) * np.asarray(fitted.bse_fe, float)
    between = float(np.asarray(fitted.cov_re).ravel()[0])
    rest = float(fitted.scale)
    return PromptEffects(
        observer=str(csf.attrs.get("observer", "")),
        effects=tuple(
            Effect(name, float(value), float(value - r), float(value + r))
            for name, value, r in zip(
                [*names, *(f"group {g}" for g in other_groups)],
                fixed,
                reach,
                strict=True,
            )
        ),
        reference_group=reference if other_groups else "",
        prompt_sd=float(np.sqrt(max(between, 0.0))),
        residual_sd=float(np.sqrt(rest)),
        share=max(between, 0.0) / max(between + rest, 1e-300),
        group_p=p_value,
        n=len(log_s),
        n_prompts=len(np.unique(prompt)),
        converged=bool(fitted.converged),
        confidence=confidence,
    )
