"""The same stimuli put to a chat model in words and to its own vision tower by features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.alignment import IsoResponse, fit_iso_response
from psyprobe.analysis.responses import levels_of, select
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


def bridge(
    asked: xr.Dataset, tower: xr.Dataset, *, measure: str | None = None, layer: str | None = None
) -> IsoResponse:
    """The iso-response curve of a vision tower that lies nearest to what the whole model says it sees.

    Features have no criterion of their own, so a tower has a contrast sensitivity function for each level of response.
    The level is chosen whose curve is nearest (root mean square of log10) to the model's answers.

    Parameters
    ----------
    asked : xarray.Dataset
        Of a questioning run, or of `chat_csf`.
    tower : xarray.Dataset
        Of a detection run with the same stimuli, with a level grid.
    measure, layer : str, optional
        As for `psyprobe.analysis.responses.select`, of the tower.

    Returns
    -------
    IsoResponse
        In which the answers stand for the human curve: `shift` and `shape_rmse` are the tower's against the answers.

    Raises
    ------
    InputError
        If the runs have no two frequencies in common, contrasts are of different kinds, the tower's run has no grid
        or no level of response is crossed at two frequencies.
    """
    (csf,) = chat_csfs([asked])
    kind = str(tower.attrs.get("contrast_kind", "sinusoid_rms"))
    if kind != "sinusoid_rms":
        raise InputError(
            f"the tower was shown contrasts of kind {kind!r} and the model was asked about "
            f"'sinusoid_rms'; show both the same stimuli"
        )
    found = select(tower, measure=measure, layer=layer)
    if levels_of(csf) != ("frequency",) or tuple(found.levels) != ("frequency",):
        raise InputError("a bridge is over frequency alone; vary only that in both runs, or take it with result.sel")
    shown = found.levels["frequency"]
    log_s = np.log10(csf["mean_sensitivity"].values)
    known = np.isfinite(log_s)
    log_f = np.log10(csf["frequency"].values[known])
    inside = np.zeros(shown.shape, dtype=bool)
    if known.sum() >= 2:
        log_x = np.log10(shown)
        inside = (log_x >= log_f[0] - 1e-9) & (log_x <= log_f[-1] + 1e-9)
    if not found.grid.size or inside.sum() < 2:
        raise InputError(
            f"the tower's result has {int(inside.sum())} frequencies among those at which the model has a "
            f"threshold; two are needed, and a level grid: run both over the same frequencies"
        )
    answers = 10 ** np.interp(np.log10(shown[inside]), log_f, log_s[known])
    nearest = fit_iso_response(
        shown[inside], found.difference, found.grid[inside], answers, criterion="absolute", floor=found.noise_floor
    )
    if nearest is None:
        raise InputError(
            "no level of response is crossed at two frequencies; show the tower a wider range of contrasts"
        )
    return nearest
