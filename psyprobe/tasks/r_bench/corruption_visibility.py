"""How visible a corruption is, and which parameter makes it so visible: strengths with a meaning.

R-Bench calls a low strength just noticeable and publishes no parameter. Here ColorVideoVDP (Mantiuk et al. 2024) says
how much worse the corrupted image looks on a display, in just-objectionable differences (JOD): 10 is no difference, and
at one below it three of four people prefer the original.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.corruption import STEPS, STRENGTHS, Dimension, corrupt, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from psyprobe.observers import DifferenceObserver

#: No difference, in JOD.
SAME = 10.0
#: A standard dynamic range monitor.
_DISPLAY = Display(peak=200.0, black=0.2)
#: Spans over more than this are searched on a logarithmic scale.
_WIDE = 8.0


@dataclass(frozen=True)
class Visibility:
    """A parameter and how visible it is."""

    #: The dimension.
    name: str
    #: In the unit of the dimension.
    parameter: float
    #: JOD below 10 at this parameter; the mean over images.
    loss: float
    #: Whether the loss that was asked for is within the span that was searched; if not, the parameter is its end.
    reached: bool


def visible_loss(
    image: Any,
    name: str,
    strength: str | float | Sequence[str | float],
    *,
    seed: int = 0,
    display: Display = _DISPLAY,
    ppd: float = 60.0,
    metric: DifferenceObserver | None = None,
) -> Any:
    """How much worse a corrupted image looks, in JOD.

    Parameters
    ----------
    image : array_like, shape (H, W, 3)
        sRGB: uint8, or float from 0 to 1.
    name : str
        A dimension.
    strength : str, float or sequence of these
        As for `corrupt`; several are passed through the metric together.
    seed : int
        Of the corruption.
    display : Display
        What shows both images.
    ppd : float
        Pixels per degree at which they are seen.
    metric : DifferenceObserver, optional
        By default ColorVideoVDP.

    Returns
    -------
    float or ndarray
        JOD below 10; 0 is no difference.
    """
    several = [strength] if isinstance(strength, str | int | float) else list(strength)
    judge = _metric() if metric is None else metric
    original = np.asarray(image)
    shown = np.stack([_drive(corrupt(original, name, each, seed)) for each in several])
    light = display.decode(shown)
    reference = np.broadcast_to(display.decode(_drive(original)[None]), light.shape)
    loss = SAME * np.asarray(judge.difference(light, reference, ppd=ppd))
    return float(loss[0]) if isinstance(strength, str | int | float) else loss


def parameter_for(
    images: Sequence[Any],
    name: str,
    loss: float = 1.0,
    *,
    seed: int = 0,
    display: Display = _DISPLAY,
    ppd: float = 60.0,
    metric: DifferenceObserver | None = None,
    tolerance: float = 0.05,
    most: int = 10,
) -> Visibility:
    """The parameter of a dimension at which images look so much worse.

    Parameters
    ----------
    images : sequence of array_like, each (H, W, 3)
        One for a parameter of its own, or a set for one in common; sRGB.
    name : str
        A dimension.
    loss : float
        Wanted loss, JOD; 1 is about one just-objectionable difference.
    seed, display, ppd, metric
        As for `visible_loss`.
    tolerance : float
        How near the loss shall come, JOD.
    most : int
        Passes at most.

    Returns
    -------
    Visibility
        By bisection between no effect and an effect beyond the high strength, with the same chance in every pass.

    Raises
    ------
    UnknownNameError
        There is no such dimension.
    InputError
        The loss is not above 0, or there is no image.
    """
    known = dimensions()
    if name not in known:
        raise unknown_name("corruption", name, known)
    if not (loss > 0 and math.isfinite(loss)):
        raise InputError(f"a loss of {loss:g} JOD is not above 0; usual are 1 (low) to 5 (high)")
    if not images:
        raise InputError("there is no image to look at; give at least one")
    judge = _metric() if metric is None else metric

    def at(share: float) -> tuple[float, float]:
        parameter = _between(known[name], share)
        losses = [
            visible_loss(image, name, parameter, seed=seed, display=display, ppd=ppd, metric=judge) for image in images
        ]
        return parameter, float(np.mean(losses))

    parameter, found = at(1.0)
    if found < loss - tolerance:
        return Visibility(name, parameter, found, reached=False)
    low, high = 0.0, 1.0
    for _ in range(most):
        if abs(found - loss) <= tolerance:
            break
        middle = (low + high) / 2
        parameter, found = at(middle)
        low, high = (middle, high) if found < loss else (low, middle)
    return Visibility(name, parameter, found, reached=True)


def _between(dimension: Dimension, share: float) -> float:
    """The parameter between no effect (0) and the strongest searched (1)."""
    mild, severe = dimension.span
    if min(mild, severe) > 0 and max(mild, severe) / min(mild, severe) > _WIDE:
        value = mild * (severe / mild) ** share
    else:
        value = mild + (severe - mild) * share
    return float(round(value)) if dimension.whole else float(value)


def _metric() -> Any:
    from psyprobe.observers import load_observer

    return load_observer("cvvdp")


def _drive(image: Any) -> Any:
    values = np.asarray(image)
    return (values / np.float32(255) if values.dtype == np.uint8 else values).astype(np.float32)


def plot_visibility(losses: dict[str, Sequence[float]], axes: Sequence[Axes] | None = None) -> list[Axes]:
    """Draw quality against strength, one panel a step on the way of an image.

    Parameters
    ----------
    losses : dict of str to sequence of float
        JOD below 10 at low, mid and high strength, by dimension.
    axes : sequence of matplotlib.axes.Axes, optional
        Seven, one a step; without them, on a new pyplot figure.
    """
    if axes is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(10.5, 5.4), layout="constrained")
        axes = figure.subplots(2, 4, sharex=True, sharey=True).ravel().tolist()
        axes[-1].set_visible(False)
        axes = axes[:-1]
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
    known = dimensions()
    for ax, (step, title) in zip(axes, STEPS.items(), strict=True):
        members = [name for name in losses if known[name].step == step]
        for name, colour, mark in zip(members, colours, "osD^vX", strict=False):
            label = f"{known[name].title}{' *' if known[name].captured else ''}"
            quality = SAME - np.asarray(losses[name])
            ax.plot(range(3), quality, marker=mark, color=colour, markersize=4, linewidth=1.2, label=label)
        ax.axhline(SAME - 1, color="0.6", linewidth=0.8, linestyle=":")
        ax.set_title(title, fontsize=9, loc="left")
        ax.set_xticks(range(3), STRENGTHS)
        ax.legend(fontsize=6.5, frameon=False, loc="lower left")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    for ax in axes[::4]:
        ax.set_ylabel("Quality (JOD)")
    axes[0].set_ylim(top=10.2)
    return list(axes)
