"""The certificate of a stimulus: what was asked and what its pixels deliver, quantity by quantity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from psyprobe.errors import unknown_name
from psyprobe.stimulus.tolerances import TOLERANCES, roundoff, tolerance

#: Standard errors of a fit to pixels with rounding errors that count as rounding still: errors are not quite
#: independent from pixel to pixel, and the worst of thousands of images is looked at.
STANDARD_ERRORS = 30.0


@dataclass(frozen=True)
class Row:
    """One quantity of a stimulus."""

    quantity: str
    #: Of `requested` and `delivered`; empty for a ratio.
    unit: str
    #: What the specification implies; None where it says nothing, and the row only informs.
    requested: float | None
    #: What the pixels hold.
    delivered: float
    #: Largest error that counts as rounding.
    tolerance: float | None
    #: Whether error and tolerance are fractions of `requested`; otherwise they are in `unit`.
    relative: bool
    #: How it was measured.
    estimator: str
    #: In a batch, the image (counted along the flattened batch) that this row is about.
    image: int | None = None

    @property
    def error(self) -> float | None:
        """Delivered less requested, over requested if relative; None if nothing was requested."""
        if self.requested is None:
            return None
        difference = self.delivered - self.requested
        return difference / self.requested if self.relative else difference

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.error is None or self.tolerance is None or abs(self.error) <= self.tolerance

    @property
    def severity(self) -> float:
        """Error in units of the tolerance; 0 where there is none."""
        if self.error is None or self.tolerance is None:
            return 0.0
        return abs(self.error) / self.tolerance if self.tolerance > 0 else float(abs(self.error) > 0) * np.inf

    def to_dict(self) -> dict[str, Any]:
        """All fields with the error and the verdict."""
        return asdict(self) | {"error": self.error, "passed": self.passed}


@dataclass
class Sheet:
    """Rows of one image, with what their tolerances depend on."""

    #: Of the background, cd/m².
    luminance: float
    #: Column of the tolerance table.
    precision: str
    #: How many times more than those of sRGB the drive values round light that went through them; 0 if none did.
    shown: float = 0.0
    #: Whether to look for where a wave really lies.
    refined: bool = True
    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        quantity: str,
        requested: float | None,
        delivered: float,
        estimator: str,
        *,
        key: str | None = None,
        extra: float = 0.0,
    ) -> None:
        """A row whose tolerance is that of `key`, and `extra` in the unit of the error."""
        entry = TOLERANCES[key or quantity]
        asked = None if requested is None else float(requested)
        allowed = None if asked is None else float(tolerance(key or quantity, self.precision) + extra)
        if allowed is not None and self.shown:
            allowed *= self.shown
        relative = entry.relative and asked != 0
        self.rows.append(Row(quantity, entry.unit, asked, float(delivered), allowed, relative, estimator))

    def add_contrast(
        self, quantity: str, requested: float, delivered: float, estimator: str, *, extra: float, key: str = "contrast"
    ) -> None:
        """As `add`; what was shown may be off by what float32 drive leaves of a low contrast."""
        if self.shown:
            key, extra = "shown contrast", extra + 1e-7 / abs(requested)
        self.add(quantity, requested, delivered, estimator, key=key, extra=extra)

    def noise(self, contrast: float, phase_error: float = 0.0) -> float:
        """Rounding error of a pixel, cd/m²; `phase_error` counts the radians by which phases reach in the field."""
        return roundoff(self.precision) * self.luminance * (2 + contrast * (2 + phase_error))


@dataclass(frozen=True, repr=False)
class Certificate:
    """Requested against delivered, quantity by quantity.

    Of a batch each row tells the image that is furthest from what was asked, measured in tolerances.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> certificate = gabor(frequency=4, contrast=0.1, size=128).measure()
    >>> certificate.passed, round(certificate["contrast"].delivered, 9)
    (True, 0.1)
    """

    rows: tuple[Row, ...]
    #: The specification, as a line of code.
    stimulus: str
    #: Column of the tolerance table: the dtype of the pixels.
    precision: str
    images: int

    @property
    def passed(self) -> bool:
        """Whether every row is within its tolerance."""
        return all(row.passed for row in self.rows)

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rows that are not."""
        return tuple(row for row in self.rows if not row.passed)

    def __getitem__(self, quantity: str) -> Row:
        for row in self.rows:
            if row.quantity == quantity:
                return row
        raise unknown_name("quantity", quantity, (row.quantity for row in self.rows))

    def __contains__(self, quantity: object) -> bool:
        return any(row.quantity == quantity for row in self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Numbers, text and lists, for JSON."""
        return {
            "stimulus": self.stimulus,
            "precision": self.precision,
            "images": self.images,
            "passed": self.passed,
            "rows": [row.to_dict() for row in self.rows],
        }

    def __repr__(self) -> str:
        images = "1 image" if self.images == 1 else f"{self.images} images, the worst of each row"
        verdict = "passed" if self.passed else f"FAILED in {', '.join(row.quantity for row in self.failures)}"
        return f"Certificate of {self.stimulus} ({images}, {self.precision}): {verdict}\n{format_rows(self.rows)}"


def format_rows(rows: Iterable[Row]) -> str:
    """The rows as an aligned table of text.

    Examples
    --------
    >>> print(format_rows([Row("contrast", "", 0.5, 0.25, 1e-9, True, "least squares")]))
      quantity  requested  delivered     error  tolerance  estimator
    ! contrast        0.5       0.25  -5.0e-01      1e-09  least squares
    """
    cells = [["", "quantity", "requested", "delivered", "error", "tolerance", "estimator", "image"]]
    for row in rows:
        unit = f" {row.unit}" if row.unit else ""
        cells.append(
            [
                "" if row.passed else "!",
                row.quantity,
                "" if row.requested is None else f"{row.requested:.6g}{unit}",
                f"{row.delivered:.6g}{unit}",
                "" if row.error is None else f"{row.error:+.1e}{'' if row.relative else unit}",
                "" if row.tolerance is None else f"{row.tolerance:.2g}",
                row.estimator,
                "" if row.image is None else str(row.image),
            ]
        )
    columns = [column for column in zip(*cells, strict=True) if column[0] != "image" or any(column[1:])]
    widths = [max(1, *map(len, column)) for column in columns]
    lines = [
        [f"{cell:{'<' if column[0] in ('', 'quantity', 'estimator') else '>'}{width}}" for cell in column]
        for column, width in zip(columns, widths, strict=True)
    ]
    return "\n".join(f"{mark} {'  '.join(rest)}".rstrip() for mark, *rest in zip(*lines, strict=True))


def worst_of(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Of each quantity the row that is furthest from what was asked, in order of first appearance."""
    worst: dict[str, Row] = {}
    for row in rows:
        kept = worst.get(row.quantity)
        if kept is None or (row.severity, abs(row.error or 0.0)) > (kept.severity, abs(kept.error or 0.0)):
            worst[row.quantity] = row
    return tuple(worst.values())
