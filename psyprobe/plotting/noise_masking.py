"""Draw threshold energy over the density of external noise.

References
----------
Pelli & Farell (1999). Why use noise? Journal of the Optical Society of America A 16(3), 647-653.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.efficiency.noise_masking import NoiseMasking, noise_masking
from psyprobe.analysis.efficiency.scores import NOISE_LEVEL
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.result_stimulus import page_of
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.errors import InputError
from psyprobe.plotting import axes
from psyprobe.plotting.figure_data import (
    Axis,
    Figure,
    Line,
    Panel,
    level_axis,
    name_of,
)
from psyprobe.plotting.participants import participant_name

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

_MARKERS = ("o", "s", "D", "v", "P", "X")
#: Points of a fitted curve.
_CURVE_POINTS = 120
_ENERGY = "Threshold energy (deg²)"
_DENSITY = "Noise density N (deg²)"
_IDEAL = "ideal observer"


def plot_noise_masking(
    results: xr.Dataset | Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    title: str | None = None,
) -> Axes:
    """Draw threshold energy over the density of noise, with fits of a linear amplifier.

    Parameters
    ----------
    results : xarray.Dataset or sequence of xarray.Dataset
        Results of a page over `noise_density`, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    title : str, optional
        By default none.

    Returns
    -------
    matplotlib.axes.Axes
        Density to the right, energy upwards, both logarithmic, with no noise at the left end.
        The ideal observer is dotted.

    Raises
    ------
    InputError
        A result is not over densities of noise, or no threshold is known.
    """
    csfs = chat_csfs(results if isinstance(results, Sequence) else [results])
    series = [_fit_masking(csf) for csf in csfs]
    ax = ax or axes.new_axes()
    heights: list[FloatArray] = []
    styles = zip(cycle(axes.COLOURS), cycle(_MARKERS), strict=False)
    for csf, masking, (colour, marker) in zip(csfs, series, styles, strict=False):
        density, energy, low, high = _columns(masking)
        heights += [np.maximum(low, energy / 5), np.minimum(high, energy * 5)]
        ax.errorbar(
            density,
            energy,
            yerr=[energy - low, high - energy],
            fmt="none",
            ecolor=colour,
            elinewidth=1,
            capsize=2,
            zorder=3,
        )
        name = axes.printable(participant_name(csf))
        ax.plot(density, energy, marker, color=colour, markersize=5, label=name)
        if masking.fit is not None:
            x, y = _fitted_curve(masking)
            cells = masking.cells()
            label = (
                f"efficiency {cells['efficiency']}\n"
                f"$N_{{eq}}$ {cells['N_eq (deg²)']} deg²"
            )
            ax.plot(x, y, color=colour, linewidth=1.3, label=label)
    x, y = _ideal_curve(series)
    if x.size:
        ax.plot(x, y, ":", color="0.35", label=_IDEAL)
        heights.append(y)
    values = np.concatenate([csf[NOISE_LEVEL].values for csf in csfs])
    axes.level_axis(ax.xaxis, values, margin=1.25)
    axes.log_axis(ax.yaxis, np.concatenate(heights), 1.2)
    axes.label(ax, _DENSITY, _ENERGY, title or "", framed=False)
    axes.legend_below(ax, axes.labelled_lines([ax]), "")
    return ax


def over_noise(result: xr.Dataset) -> bool:
    """Tell whether a result has thresholds over densities of noise."""
    return levels_of(result) == (NOISE_LEVEL,) and "noise" in page_of(result)


def masking_figure(csfs: Sequence[xr.Dataset]) -> Figure | None:
    """Build a report's figure of threshold energy over noise; None without a threshold."""
    try:
        series = [_fit_masking(csf) for csf in csfs]
    except InputError:
        return None
    lines = []
    for i, (csf, masking) in enumerate(zip(csfs, series, strict=True)):
        density, energy, low, high = _columns(masking)
        name = name_of(csf)
        lines.append(
            Line(name, density, energy, low=low, high=high, style="points", colour=i)
        )
        if masking.fit is not None:
            lines.append(Line(f"{name}, fit", *_fitted_curve(masking), colour=i))
    values = np.concatenate([csf[NOISE_LEVEL].values for csf in csfs])
    return Figure(
        "Threshold energy over noise",
        x=level_axis(_DENSITY, values),
        y=Axis(_ENERGY, log=True),
        panels=[Panel("", {"": {"": lines}})],
        caption="Lines: a linear amplifier with equivalent input noise. The ideal observer's "
        "energy is in proportion to the density.",
        over=[Line(_IDEAL, *_ideal_curve(series), style="people")],
    )


def _fit_masking(csf: xr.Dataset) -> NoiseMasking:
    """Fit a result's thresholds over noise densities, refusing a result without any."""
    masking = noise_masking(csf)
    if masking is None or not any(point.energy for point in masking.thresholds):
        raise InputError(
            "there is no threshold over densities of noise; give a result of a page with [noise] "
            f"whose level is {NOISE_LEVEL}"
        )
    return masking


def _columns(
    masking: NoiseMasking,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """List densities, threshold energies and interval ends; an open end runs off the axis."""
    rows = np.array(
        [
            (
                point.density,
                point.energy,
                point.energy_low or point.energy * 1e-6,
                point.energy_high or point.energy * 1e6,
            )
            for point in masking.thresholds
            if point.energy
        ]
    )
    density, energy, low, high = rows.T
    return density, energy, low, high


def _fitted_curve(masking: NoiseMasking) -> tuple[FloatArray, FloatArray]:
    """Compute the fitted threshold energy over a grid of noise densities."""
    assert masking.fit is not None
    # Without an equivalent noise there is no energy to draw at 0.
    density = _grid([masking], with_zero=masking.fit.density is not None)
    return density, np.array([masking.energy(value) for value in density])


def _ideal_curve(series: Sequence[NoiseMasking]) -> tuple[FloatArray, FloatArray]:
    """Compute the ideal observer's threshold energy over a grid of noise densities."""
    density = _grid(series, with_zero=False)
    return density, series[0].ideal_energy * density


def _grid(series: Sequence[NoiseMasking], *, with_zero: bool) -> FloatArray:
    """Compute noise densities spaced evenly in log over all that were shown."""
    densities = [point.density for masking in series for point in masking.thresholds]
    noisy = [density for density in densities if density]
    grid = np.geomspace(min(noisy), max(noisy), _CURVE_POINTS)
    if with_zero and 0 in densities:
        # Where the axis passes from its lowest density to 0, the curve does too.
        grid = np.concatenate([[0.0], grid])
    return np.asarray(grid)
