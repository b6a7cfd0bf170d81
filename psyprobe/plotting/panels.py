"""Room for several panels in a figure or a part of it, and their titles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError
from psyprobe.plotting.axes import printable, title_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

#: Panels abreast, at most.
_ACROSS = 3


def shown_layers(
    results: Sequence[xr.Dataset], layer: str | None, names_of: Callable[[xr.Dataset], list[str]]
) -> list[tuple[xr.Dataset, str]]:
    """Each result with each of its layers, or with the one that was named."""
    return [(one, name) for one in results for name in (names_of(one) if layer is None else [layer])]


def check_room(ax: Axes | None, panels: int) -> None:
    """Refuse several panels on one Axes."""
    if ax is not None and panels != 1:
        raise InputError(f"ax holds one panel, and there are {panels}; name one layer of one result, or leave ax out")


def panels_in(figure: SubFigure | None, count: int, height: float) -> tuple[Any, list[Axes]]:
    """Where panels are, and their axes in rows, none more than wanted."""
    across = min(_ACROSS, count)
    down = -(-count // across)
    place: Any = figure
    if place is None:
        import matplotlib.pyplot as plt

        place = plt.figure(figsize=(4.8 * across, height * down + 0.2), layout="constrained")
    axes: list[Axes] = list(place.subplots(down, across, squeeze=False).flat)
    for empty in axes[count:]:
        empty.remove()
    return place, axes[:count]


def panel_title(result: xr.Dataset, layer: str, *, experiment: bool, observer: bool) -> str:
    """Of a panel, a line for each of what tells it apart."""
    lines = [printable(str(result.attrs.get("experiment", "")))] * experiment + [title_of(result)] * observer
    return "\n".join([*lines, *[printable(layer)] * (len(result["layer"]) > 1)])
