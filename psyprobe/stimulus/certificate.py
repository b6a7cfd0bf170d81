"""The certificate of a stimulus: what was asked and what its pixels deliver, quantity by quantity.

How far they may lie apart is one table, a column for each precision, with origins. float64 and
float32 are 10 to 30 times the error that a faithful drawing was measured to reach at 224 x 224 px,
60 pixels per degree and contrasts from 0.001 to 1. The low-precision columns are what faithful
encoding in that precision leaves at high contrast; where it leaves more, because the contrast is
too low for its steps, the image fails, as it should.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from psyprobe._typing import Array
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import cone_observer, direction_vector, white_xyz
from psyprobe.light.display import Display
from psyprobe.stimulus.estimate import Float64, to_float64

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification

#: Precisions, in the order of the columns below.
PRECISIONS = ("float64", "float32", "float16", "bfloat16", "uint8")


@dataclass(frozen=True)
class Tolerance:
    """The largest error of one quantity that still counts as rounding, in each precision.

    Examples
    --------
    >>> TOLERANCES["frequency"].relative
    True
    """

    #: Whether errors are relative to what was asked; otherwise they are in `unit`.
    relative: bool
    #: Unit of the quantity.
    unit: str
    #: One for each of `PRECISIONS`.
    values: tuple[float, ...]
    #: Where the numbers come from.
    origin: str


def _read() -> dict[str, Tolerance]:
    lines = (
        files("psyprobe.stimulus")
        .joinpath("data", "tolerances.csv")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return {
        row["quantity"]: Tolerance(
            row["error"] == "relative",
            row["unit"],
            tuple(float(row[name]) for name in PRECISIONS),
            row["origin"],
        )
        for row in rows
    }


#: By quantity.
TOLERANCES = _read()

#: Unit roundoff, half the spacing of numbers just above 1: what a fit to few cycles or a low
#: contrast makes of it is allowed for. Not so in short formats, which are too coarse for low
#: contrasts and should be told so.
_ROUNDOFF = (2.0**-53, 2.0**-24, 0.0, 0.0, 0.0)


def tolerance(quantity: str, precision: str) -> float:
    """The entry of the table.

    Parameters
    ----------
    quantity : str
        A key of `TOLERANCES`.
    precision : str
        One of `PRECISIONS`.

    Raises
    ------
    UnknownNameError
        If there is no such quantity or precision.

    Examples
    --------
    >>> tolerance("contrast", "float32")
    2e-05
    """
    if quantity not in TOLERANCES:
        raise unknown_name("quantity", quantity, TOLERANCES)
    return TOLERANCES[quantity].values[_column(precision)]


def roundoff(precision: str) -> float:
    """Unit roundoff of a precision that is allowed for; 0 for short formats.

    Examples
    --------
    >>> roundoff("float32")
    5.960464477539063e-08
    """
    return _ROUNDOFF[_column(precision)]


def _column(precision: str) -> int:
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    return PRECISIONS.index(precision)


def precision_of(image: Array) -> str:
    """The column that an array belongs to, by its dtype.

    Whole numbers of 16 bits and more are finer than float32 near mid-grey only at low contrast;
    they count as float16.

    Examples
    --------
    >>> import numpy as np
    >>> precision_of(np.zeros(3, np.float32)), precision_of(np.zeros(3, np.uint8)), precision_of([1.0])
    ('float32', 'uint8', 'float64')
    """
    name = str(getattr(image, "dtype", "float64")).rpartition(".")[2]
    if name in PRECISIONS:
        return name
    return "float16" if name == "uint16" else "float64"


#: Standard errors of a fit to pixels with rounding errors that count as rounding still: errors are
#: not quite independent from pixel to pixel, and the worst of thousands of images is looked at.
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
        return (
            abs(self.error) / self.tolerance
            if self.tolerance > 0
            else float(abs(self.error) > 0) * np.inf
        )

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
    #: How many times more than those of sRGB the drive values round light that went through them; 0
    #: if none did.
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
        allowed = (
            None if asked is None else float(tolerance(key or quantity, self.precision) + extra)
        )
        if allowed is not None and self.shown:
            allowed *= self.shown
        relative = entry.relative and asked != 0
        self.rows.append(
            Row(quantity, entry.unit, asked, float(delivered), allowed, relative, estimator)
        )

    def add_contrast(
        self,
        quantity: str,
        requested: float,
        delivered: float,
        estimator: str,
        *,
        extra: float,
        key: str = "contrast",
    ) -> None:
        """As `add`; what was shown may be off by what float32 drive leaves of a low contrast."""
        if self.shown:
            key = "shown contrast"
            extra = extra + 1e-7 / abs(requested)
        self.add(quantity, requested, delivered, estimator, key=key, extra=extra)

    def noise(self, contrast: float, phase_error: float = 0.0) -> float:
        """Rounding error of a pixel, cd/m²; `phase_error` counts the radians by which phases reach
        in the field.
        """
        return roundoff(self.precision) * self.luminance * (2 + contrast * (2 + phase_error))


@dataclass(frozen=True, repr=False)
class Certificate:
    """Requested against delivered, quantity by quantity.

    Of a batch each row tells the image that is furthest from what was asked, measured in
    tolerances.

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

    def _repr_html_(self) -> str:
        from psyprobe.stimulus.notebook import certificate_html

        return certificate_html(self)

    def __repr__(self) -> str:
        images = "1 image" if self.images == 1 else f"{self.images} images, the worst of each row"
        verdict = (
            "passed"
            if self.passed
            else f"FAILED in {', '.join(row.quantity for row in self.failures)}"
        )
        return (
            f"Certificate of {self.stimulus} ({images}, {self.precision}): "
            f"{verdict}\n{format_rows(self.rows)}"
        )


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
    columns = [
        column for column in zip(*cells, strict=True) if column[0] != "image" or any(column[1:])
    ]
    widths = [max(1, *map(len, column)) for column in columns]
    lines = [
        [
            f"{cell:{'<' if column[0] in ('', 'quantity', 'estimator') else '>'}{width}}"
            for cell in column
        ]
        for column, width in zip(columns, widths, strict=True)
    ]
    return "\n".join(
        f"{mark} {'  '.join(rest)}".rstrip() for mark, *rest in zip(*lines, strict=True)
    )


#: Share of its tolerance below which an error is rounding.
_ROUNDING = 0.02


def worst_of(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Of each quantity the row that is furthest from what was asked; where rounding alone is, the
    first.
    """
    worst: dict[str, Row] = {}
    for row in rows:
        kept = worst.get(row.quantity)
        if kept is None or _badness(row) > _badness(kept):
            worst[row.quantity] = row
    return tuple(worst.values())


def _badness(row: Row) -> tuple[float, float]:
    """What rows are compared by: rounding alone, which differs between machines, makes no image
    worse than another.
    """
    rounding = row.tolerance is not None and row.severity < _ROUNDING
    return (0.0, 0.0) if rounding else (row.severity, abs(row.error or 0.0))


def observer_of(spec: Specification | None) -> str:
    """Name of the cone observer that a specification refers to."""
    return str(getattr(spec, "observer", "cie2006_led_lcd"))


@dataclass(frozen=True)
class Planes:
    """One image as the quantities that estimators work on, (H, W) each."""

    #: Light along the direction that was asked: ``luminance * (1 + modulation)``, cd/m².
    pattern: Float64
    #: Luminance (of the named observer, L + M, if the image has colour), cd/m².
    light: Float64
    #: lms, background: LMS, shape (3, H, W), and that of the background, (3, 1, 1), if this states
    #: its chromaticity.
    lms: Float64 | None = None
    background: Float64 | None = None

    @property
    def in_colour(self) -> bool:
        """Whether there are cone contrasts."""
        return self.lms is not None

    def cones(self, rows: slice = slice(None)) -> Float64:
        """Cone contrasts of some rows, shape (3, h, W)."""
        assert self.lms is not None and self.background is not None
        contrasts = self.lms[:, rows] / self.background
        contrasts -= 1
        return np.asarray(contrasts)


def planes_of(image: Float64, space: str, spec: Any, display: Display | None) -> Planes:
    """The planes of an image; LMS only of a background that states its chromaticity."""
    if not hasattr(spec, "white"):
        light = luminance_of(image, space, spec, display)
        return Planes(light, light)
    direction = getattr(spec, "direction", "achromatic")
    if space == "luminance":
        if direction != "achromatic" or getattr(spec, "chromatic", False):
            raise InputError(
                f"{spec!r} has colour, and a luminance image has none: give lms or rgb"
            )
        return Planes(image, image)
    lms = to_lms(image, space, spec, display)
    background = cone_observer(spec.observer).from_xyz @ white_xyz(spec.white)
    planes = np.moveaxis(lms, -1, 0)
    along = direction_vector(direction, background) / 3
    pattern = np.einsum("k,kij->ij", along / background, planes)
    pattern += spec.luminance * (1 - along.sum())
    light = planes[0] + planes[1]
    light /= background[:2].sum()
    return Planes(pattern, np.asarray(light), planes, (background * spec.luminance)[:, None, None])


def to_lms(image: Float64, space: str, spec: Specification, display: Display | None) -> Float64:
    """LMS of the observer that the specification refers to."""
    if space == "lms":
        return image
    rgb_to_xyz = (display or Display()).rgb_to_xyz
    return np.asarray(image @ (cone_observer(observer_of(spec)).from_xyz @ rgb_to_xyz).T)


def luminance_of(
    image: Array, space: str, spec: Specification, display: Display | None = None
) -> Array:
    """CIE 1931 luminance, of numpy arrays and torch tensors."""
    if space == "luminance":
        return image
    weights = (
        (display or Display()).rgb_to_xyz
        if space == "rgb"
        else cone_observer(observer_of(spec)).to_xyz
    )
    return image @ array_namespace(image).asarray(
        weights[1], dtype=image.dtype, device=image.device
    )


def certify(
    pixels: Array,
    space: str,
    spec: Specification,
    *,
    precision: str | None = None,
    display: Display | None = None,
    decoded: bool = False,
) -> Certificate:
    """The certificate of pixels of any origin that were meant to be what a specification says.

    Parameters
    ----------
    pixels : array, shape (..., H, W) or (..., H, W, 3)
        In the units of `space`; leading dimensions as the batch of the specification.
    space : {"luminance", "lms", "rgb"}
        cd/m²; LMS of the specification's observer; or linear RGB light in cd/m² (of sRGB primaries
        without a display).
    spec : Specification
        What was asked.
    precision : str, optional
        Column of the tolerance table; by default that of the dtype of the pixels.
    display : Display, optional
        As in `Stimulus.measure`.
    decoded : bool
        Whether drive values made this light: then it is in gamut, and the display only tells its
        primaries.
    """
    precision = precision or precision_of(pixels)
    rows = image_rows(pixels, space, spec, precision, display)
    if display is not None and not decoded:
        rows += _display_rows(pixels, space, spec, display)
    return Certificate(rows, repr(spec), precision, int(np.prod(spec.batch, dtype=int)))


def image_rows(
    pixels: Array,
    space: str,
    spec: Specification,
    precision: str,
    display: Display | None,
    *,
    shown: float = 0.0,
    refined: bool = True,
) -> tuple[Row, ...]:
    """Rows of every image of a batch, folded to the worst of each quantity.

    Parameters
    ----------
    pixels, space, spec, precision, display
        As in `certify`.
    shown, refined
        As in `Sheet`. What was shown is measured in levels and contrasts only: the rest was known
        before.
    """
    images = to_float64(pixels)
    one = (*spec.extent, *(() if space == "luminance" else (3,)))
    axes = len(one)
    if images.shape[-axes:] != one:
        wanted = (*spec.batch, *one)
        raise InputError(
            f"the image has shape {images.shape}; {spec!r} in {space} has shape {wanted}"
        )
    if images.shape[:-axes] != spec.batch:
        raise InputError(
            f"{images.shape[:-axes]} images do not go with {spec.batch} specifications"
        )
    flat = images.reshape(-1, *images.shape[-axes:])
    if not (flat.max(axis=tuple(range(1, flat.ndim))) > 0).all():
        raise InputError(f"the image is black; {spec!r} has light everywhere")
    rows: list[Row] = []
    for index, (image, single) in enumerate(zip(flat, spec.singles(), strict=True)):
        sheet = Sheet(single.luminance, precision, shown, refined and not shown)
        # What is far from what was asked may have no mean to divide by: its quantities are
        # infinite, and fail.
        with np.errstate(divide="ignore", invalid="ignore"):
            found = single.rows(image, space, sheet, display)
        rows += found if len(flat) == 1 else [replace(row, image=index) for row in found]
    return worst_of(rows)


#: What is worth measuring again on the light that a display shows.
_SHOWN = ("background", "mean luminance", "contrast", "rms contrast")


def _display_rows(
    pixels: Array, space: str, spec: Specification, display: Display
) -> tuple[Row, ...]:
    observer = observer_of(spec)
    gamut = display.gamut(pixels, space, observer)
    light, seen, (low, high) = shown_light(pixels, space, observer, display)
    shown = image_rows(light, seen, spec, "float32", display, shown=strain(display, low, high))
    return (*gamut_rows(display, gamut.values, gamut.outside, gamut.margin), *shown_rows(shown))


def shown_light(
    pixels: Array, space: str, observer: str, display: Display
) -> tuple[Float64, str, tuple[float, float]]:
    """Light that a display shows of pixels, its space, and the smallest and the largest drive."""
    drive = display.encode(pixels, space=space, observer=observer, clip=True)
    grey = space == "luminance" and not display.guns_differ
    values = to_float64(drive[..., 0] if grey else drive)
    light = np.asarray(display.decode(values))
    if space == "luminance" and not grey:
        # Guns that differ show a grey of their own white.
        light = light @ display.rgb_to_xyz[1]
        grey = True
    return light, "luminance" if grey else "rgb", (float(values.min()), float(values.max()))


def gamut_rows(display: Display, values: int, outside: int, margin: float) -> list[Row]:
    """How many values lie outside a display's gamut, and how far the others lie inside."""
    counted = f"count of {values} values outside {display.floor:.6g} to {display.ceiling:.6g} cd/m²"
    return [
        Row("values outside gamut", "", 0.0, float(outside), 0.0, False, counted),
        Row(
            "gamut margin",
            "",
            None,
            margin,
            None,
            False,
            "distance to the nearer limit over the range",
        ),
    ]


def shown_rows(rows: Iterable[Row]) -> list[Row]:
    """Of rows of light that a display showed those worth telling, by names of their own."""
    how = "after encoding to float32 drive and decoding"
    return [
        replace(row, quantity=f"shown {row.quantity}", estimator=f"{row.estimator}, {how}")
        for row in rows
        if row.quantity in _SHOWN
    ]


def strain(display: Display, low: float, high: float) -> float:
    """How much a relative change of drive changes the light, over the 4 that sRGB stays below; at
    least 1.
    """
    if display.guns_differ:
        return max(strain(gun, low, high) for gun in display.guns)
    drive = np.linspace(max(low, 1e-3), max(high, 2e-3), 513)
    light = np.asarray(display.decode(drive))
    gain = np.asarray(display.decode(drive * (1 + 1e-6))) / light - 1
    return float(max(1.0, gain.max() / 1e-6 / 4))
