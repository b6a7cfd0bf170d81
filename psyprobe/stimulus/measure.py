"""The calibration certificate: what was asked of a stimulus, and what its pixels deliver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import unknown_name
from psyprobe.stimulus.tolerances import precision_of

if TYPE_CHECKING:
    from psyprobe.light.display import Display
    from psyprobe.stimulus.specification import Specification
    from psyprobe.stimulus.stimulus import Stimulus


@dataclass(frozen=True)
class Row:
    """One quantity of a stimulus.

    Attributes
    ----------
    quantity : str
        What was measured, for example "contrast".
    unit : str
        Unit of `requested` and `delivered`; empty for a ratio.
    requested : float or None
        What the specification implies; None where it says nothing, and the row only informs.
    delivered : float
        What the pixels hold.
    tolerance : float or None
        Largest error that counts as rounding.
    relative : bool
        Whether error and tolerance are fractions of `requested`; otherwise they are in `unit`.
    estimator : str
        How it was measured.
    image : int or None
        In a batch, the image (counted along the flattened batch) that this row is about.
    """

    quantity: str
    unit: str
    requested: float | None
    delivered: float
    tolerance: float | None
    relative: bool
    estimator: str
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


@dataclass(frozen=True, repr=False)
class Certificate:
    """Requested against delivered, quantity by quantity.

    Of a batch each row tells the image that is furthest from what was asked, measured in tolerances.

    Attributes
    ----------
    rows : tuple of Row
        One for each quantity.
    stimulus : str
        The specification, as a line of code.
    precision : str
        Column of the tolerance table: the dtype of the pixels.
    images : int
        Number of images measured.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> certificate = gabor(frequency=4, contrast=0.1, size=128).measure()
    >>> certificate.passed, round(certificate["contrast"].delivered, 9)
    (True, 0.1)
    """

    rows: tuple[Row, ...]
    stimulus: str
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
    rows = list(rows)
    several = any(row.image is not None for row in rows)
    head = ["", "quantity", "requested", "delivered", "error", "tolerance", "estimator"] + ["image"] * several
    cells = [head]
    for row in rows:
        unit = f" {row.unit}" if row.unit else ""
        error = "" if row.error is None else f"{row.error:+.1e}" + ("" if row.relative else unit)
        cells.append(
            [
                "" if row.passed else "!",
                row.quantity,
                "" if row.requested is None else f"{row.requested:.6g}{unit}",
                f"{row.delivered:.6g}{unit}",
                error,
                "" if row.tolerance is None else f"{row.tolerance:.2g}",
                row.estimator,
            ]
            + ([str(row.image) if row.image is not None else ""] if several else [])
        )
    widths = [max(len(line[k]) for line in cells) for k in range(len(head))]
    widths[0] = 1
    left = {0, 1, 6}
    lines = []
    for line in cells:
        padded = [
            cell.ljust(w) if k in left else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append((padded[0] + " " + "  ".join(padded[1:])).rstrip())
    return "\n".join(lines)


def measure(stimulus: Stimulus, display: Display | None = None) -> Certificate:
    """Measure a stimulus from its pixels and set it beside what its specification asked.

    Parameters
    ----------
    stimulus : Stimulus
        One image or a batch; numpy or torch.
    display : Display, optional
        Measure also what this display shows of it: values outside its gamut, the margin to the nearer limit, and
        contrast and background after encoding to float32 drive and decoding again.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> from psyprobe.light.display import Display
    >>> from psyprobe.stimulus import gabor
    >>> shown = gabor(frequency=4, contrast=0.5, size=128).measure(Display(peak=200))
    >>> shown["values outside gamut"].delivered, round(shown["gamut margin"].delivered, 2)
    (0.0, 0.25)
    """
    rows = certify(stimulus.pixels, stimulus.space, stimulus.spec, display=display)
    return certificate(rows, stimulus.spec, precision_of(stimulus.pixels))


def certificate(rows: tuple[Row, ...], spec: Specification, precision: str) -> Certificate:
    """Rows with the stimulus that they are about."""
    return Certificate(rows, repr(spec), precision, int(np.prod(spec.batch, dtype=int)))


def certify(
    pixels: Array, space: str, spec: Specification, *, precision: str | None = None, display: Display | None = None
) -> tuple[Row, ...]:
    """Rows for pixels of any origin that were meant to be what a specification says.

    Parameters
    ----------
    pixels : array, shape (..., H, W) or (..., H, W, 3)
        In the units of `space`; leading dimensions as the batch of the specification.
    space : {"luminance", "lms", "rgb"}
        cd/m²; LMS of the specification's observer; or linear RGB light in cd/m² (of sRGB primaries without a display).
    spec : Specification
        What was asked.
    precision : str, optional
        Column of the tolerance table; by default that of the dtype of the pixels.
    display : Display, optional
        See `measure`.
    """
    from psyprobe.stimulus.certify import image_rows

    precision = precision or precision_of(pixels)
    rows = image_rows(pixels, space, spec, precision, display)
    if display is not None:
        rows += _display_rows(pixels, space, spec, display)
    return rows


def worst_of(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Of each quantity the row that is furthest from what was asked, in order of first appearance."""
    worst: dict[str, Row] = {}
    for row in rows:
        kept = worst.get(row.quantity)
        if kept is None or (row.severity, abs(row.error or 0.0)) > (kept.severity, abs(kept.error or 0.0)):
            worst[row.quantity] = row
    return tuple(worst.values())


#: What is worth measuring again on the light that a display shows.
_SHOWN = ("background", "mean luminance", "contrast", "rms contrast")


def _display_rows(pixels: Array, space: str, spec: Specification, display: Display) -> tuple[Row, ...]:
    from psyprobe.stimulus.certify import image_rows
    from psyprobe.stimulus.planes import observer_of

    observer = observer_of(spec)
    gamut = display.gamut(pixels, space, observer)
    rows = [
        Row(
            "values outside gamut",
            "",
            0.0,
            float(gamut.outside),
            0.0,
            False,
            f"count of {gamut.values} values outside {display.floor:.6g} to {display.ceiling:.6g} cd/m²",
        ),
        Row("gamut margin", "", None, gamut.margin, None, False, "distance to the nearer limit over the range"),
    ]
    drive = display.encode(pixels, space=space, observer=observer, clip=True)
    grey = space == "luminance"
    values = _numpy(drive[..., 0] if grey else drive).astype(np.float64)
    light = np.asarray(display.decode(values))
    strain = _strain(display, float(values.min()), float(values.max()))
    shown = image_rows(light, "luminance" if grey else "rgb", spec, "float32", display, shown=strain)
    for row in shown:
        if row.quantity in _SHOWN:
            rows.append(
                Row(
                    f"shown {row.quantity}",
                    row.unit,
                    row.requested,
                    row.delivered,
                    row.tolerance,
                    row.relative,
                    f"{row.estimator}, after encoding to float32 drive and decoding",
                    row.image,
                )
            )
    return tuple(rows)


def _strain(display: Display, low: float, high: float) -> float:
    """How much a relative change of drive changes the light, over the 4 that sRGB stays below; at least 1."""
    drive = np.linspace(max(low, 1e-3), max(high, 2e-3), 513)
    light = np.asarray(display.decode(drive))
    gain = np.asarray(display.decode(drive * (1 + 1e-6))) / light - 1
    return float(max(1.0, gain.max() / 1e-6 / 4))


def _numpy(values: Array) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
