"""Measurements as the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psyprobe.stimulus.certificate import Measurement


def table_cells(measurement: Measurement) -> list[str]:
    """Format a measurement as one row of a table: mark, quantity, numbers and estimator."""
    unit = f" {measurement.unit}" if measurement.unit else ""
    requested = error = tolerance = ""
    if measurement.requested is not None:
        requested = f"{measurement.requested:.6g}{unit}"
    if measurement.error is not None:
        error = f"{measurement.error:+.1e}{'' if measurement.relative else unit}"
    if measurement.tolerance is not None:
        tolerance = f"{measurement.tolerance:.2g}"
    return [
        "" if measurement.passed else "!",
        measurement.quantity,
        requested,
        f"{measurement.delivered:.6g}{unit}",
        error,
        tolerance,
        measurement.estimator,
    ]


#: Heading of the cells that `table_cells` formats.
TABLE_HEADING = [
    "",
    "quantity",
    "requested",
    "delivered",
    "error",
    "tolerance",
    "estimator",
]


def format_measurements(measurements: Iterable[Measurement]) -> str:
    """Format measurements as an aligned table of text.

    Examples
    --------
    >>> from psyprobe.stimulus.certificate import Measurement
    >>> contrast = Measurement("contrast", "", 0.5, 0.25, 1e-9, True, "least squares")
    >>> print(format_measurements([contrast]))
      quantity  requested  delivered     error  tolerance  estimator
    ! contrast        0.5       0.25  -5.0e-01      1e-09  least squares
    """
    table = [[*TABLE_HEADING, "image"]]
    for measurement in measurements:
        image = "" if measurement.image is None else str(measurement.image)
        table.append([*table_cells(measurement), image])
    columns = []
    for heading, *cells in zip(*table, strict=True):
        if heading == "image" and not any(cells):
            continue
        align = "<" if heading in ("", "quantity", "estimator") else ">"
        width = max(1, len(heading), *map(len, cells))
        columns.append([f"{cell:{align}{width}}" for cell in (heading, *cells)])
    lines = [
        f"{mark} {'  '.join(cells)}" for mark, *cells in zip(*columns, strict=True)
    ]
    return "\n".join(line.rstrip() for line in lines)
