"""The certificate of a stimulus: what was requested and what its pixels deliver, by quantity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import Levels
from psyprobe.errors import unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.stimulus.certificate_table import format_measurements
from psyprobe.stimulus.tolerances import TOLERANCES, roundoff, tolerance

if TYPE_CHECKING:
    import pandas as pd

    from psyprobe.light.display import Display


@dataclass(frozen=True)
class Measurement:
    """One quantity of a stimulus: requested and delivered."""

    quantity: str
    #: Unit of `requested` and `delivered`; empty for a ratio.
    unit: str
    #: What the specification implies; None where it says nothing, and the measurement only informs.
    requested: float | None
    #: What the pixels hold.
    delivered: float
    #: Largest error that counts as rounding.
    tolerance: float | None
    #: Whether error and tolerance are fractions of `requested`; otherwise they are in `unit`.
    relative: bool
    #: How it was measured.
    estimator: str
    #: Index of the image in the flattened batch; None where there is one image.
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
        """Tell whether the error is within the tolerance."""
        return (
            self.error is None
            or self.tolerance is None
            or abs(self.error) <= self.tolerance
        )

    @property
    def severity(self) -> float:
        """Error in units of the tolerance; 0 where there is none."""
        if self.error is None or self.tolerance is None:
            return 0.0
        if self.tolerance > 0:
            return abs(self.error) / self.tolerance
        return float(abs(self.error) > 0) * np.inf

    def to_dict(self) -> JsonObject:
        """Return the measurement as a table, with its error and whether it is within tolerance."""
        return asdict(self) | {"error": self.error, "passed": self.passed}


@dataclass
class ImageMeasurements:
    """Measurements of images as they are collected, with what their tolerances depend on."""

    #: Luminance of the background, cd/m².
    luminance: Levels
    #: Column of the tolerance table.
    precision: str
    #: {"luminance", "lms", "rgb"}: What the pixels are.
    space: str = "luminance"
    #: The display that gives the primaries of RGB light; None for those of sRGB.
    display: Display | None = None
    #: For light that went through drive values: how many times more than sRGB's these round it; 0
    #: for light as it was drawn.
    display_gain: float = 0.0
    #: Whether to search for where a wave really lies.
    refined: bool = True
    #: Index of each image in the flattened batch; None where there is one image.
    images: Sequence[int | None] = (None,)
    entries: list[Measurement] = field(default_factory=list)

    def empty(self) -> ImageMeasurements:
        """Return a list without measurements under the same conditions."""
        return replace(self, entries=[])

    def add(
        self,
        quantity: str,
        requested: Levels | None,
        delivered: Levels,
        estimator: str,
        *,
        key: str | None = None,
        extra: Levels = 0.0,
    ) -> None:
        """Add a measurement with the tolerance of its quantity, or of `key`, plus `extra`.

        `extra` is in the unit of the error. Numbers may be arrays, one for each image.
        """
        key = key or quantity
        entry = TOLERANCES[key]
        allowed = None
        if requested is not None:
            allowed = tolerance(key, self.precision) + extra
            allowed = allowed * (self.display_gain or 1.0)
        columns = (self._column(value) for value in (requested, delivered, allowed))
        for image, request, delivery, limit in zip(self.images, *columns, strict=True):
            measurement = Measurement(
                quantity,
                entry.unit,
                request,
                delivery,
                limit,
                relative=entry.relative and request != 0,
                estimator=estimator,
                image=image,
            )
            self.entries.append(measurement)

    def _column(self, value: Levels | None) -> Sequence[float | None]:
        """Return the value of each image, from a number for all or an array of one for each."""
        if isinstance(value, np.ndarray) and value.ndim:
            return list(value.tolist())
        return [value if value is None else float(value)] * len(self.images)

    def add_contrast(
        self,
        quantity: str,
        requested: Levels,
        delivered: Levels,
        estimator: str,
        *,
        extra: Levels,
        key: str = "contrast",
    ) -> None:
        """Add a contrast, whose tolerance allows for float32 drive on a display."""
        if self.display_gain:
            key = "shown contrast"
            extra = extra + 1e-7 / abs(requested)
        self.add(quantity, requested, delivered, estimator, key=key, extra=extra)

    def pixel_error(self, contrast: Levels, phase_range: Levels = 0.0) -> Levels:
        """Bound the rounding error of a pixel, cd/m².

        Parameters
        ----------
        contrast : float or array
            Amplitude over the background.
        phase_range : float or array
            Radians that the phase covers within the field.
        """
        return (
            roundoff(self.precision)
            * self.luminance
            * (2 + contrast * (2 + phase_range))
        )


@dataclass(frozen=True, repr=False)
class Certificate:
    """Requested against delivered, quantity by quantity.

    For a batch each measurement is that of the image furthest from what was requested, in units of
    the tolerance.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> certificate = gabor(frequency=4, contrast=0.1, size=128).measure()
    >>> certificate.passed, round(certificate["contrast"].delivered, 9)
    (True, 0.1)
    """

    measurements: tuple[Measurement, ...]
    #: The specification, as a line of code.
    stimulus: str
    #: Column of the tolerance table: the dtype of the pixels.
    precision: str
    #: Number of images that were measured.
    images: int

    @property
    def passed(self) -> bool:
        """Tell whether every measurement is within its tolerance."""
        return all(measurement.passed for measurement in self.measurements)

    @property
    def failures(self) -> tuple[Measurement, ...]:
        """The measurements that are not within their tolerance."""
        return tuple(
            measurement for measurement in self.measurements if not measurement.passed
        )

    def __getitem__(self, quantity: str) -> Measurement:
        for measurement in self.measurements:
            if measurement.quantity == quantity:
                return measurement
        quantities = (measurement.quantity for measurement in self.measurements)
        raise unknown_name("quantity", quantity, quantities)

    def __contains__(self, quantity: object) -> bool:
        return any(
            measurement.quantity == quantity for measurement in self.measurements
        )

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.measurements)

    def to_dict(self) -> JsonObject:
        """Return the certificate as numbers, text and lists, for JSON."""
        return {
            "stimulus": self.stimulus,
            "precision": self.precision,
            "images": self.images,
            "passed": self.passed,
            "rows": [measurement.to_dict() for measurement in self.measurements],
        }

    def to_frame(self) -> pd.DataFrame:
        """Convert the certificate to a pandas table: requested, delivered, error, verdict."""
        import pandas as pd

        rows = [measurement.to_dict() for measurement in self.measurements]
        return pd.DataFrame(rows).set_index("quantity")

    def _repr_html_(self) -> str:
        """Show the certificate as an HTML table in a notebook."""
        from psyprobe.stimulus.notebook import certificate_html

        return certificate_html(self)

    def __repr__(self) -> str:
        images = (
            "1 image"
            if self.images == 1
            else f"{self.images} images, the worst of each row"
        )
        failures = ", ".join(failure.quantity for failure in self.failures)
        verdict = f"FAILED in {failures}" if failures else "passed"
        heading = (
            f"Certificate of {self.stimulus} ({images}, {self.precision}): {verdict}"
        )
        return f"{heading}\n{format_measurements(self.measurements)}"


#: Share of its tolerance below which an error is rounding.
_ROUNDING = 0.02


def worst_measurements(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """Select for each quantity the measurement that is furthest from what was requested.

    Where all errors are rounding, it is the first.
    """
    worst: dict[str, Measurement] = {}
    for measurement in measurements:
        previous = worst.get(measurement.quantity)
        if previous is None or _rank_error(measurement) > _rank_error(previous):
            worst[measurement.quantity] = measurement
    return tuple(worst.values())


def _rank_error(measurement: Measurement) -> tuple[float, float]:
    """Rank a measurement by error over tolerance, then by error; rounding counts as none."""
    # Rounding differs between machines: it makes no image worse than another.
    severity = measurement.severity
    if measurement.tolerance is not None and severity < _ROUNDING:
        return 0.0, 0.0
    return severity, abs(measurement.error or 0.0)
