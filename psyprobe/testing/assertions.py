"""Assertions of calibration: they measure pixels, compare with what was asked, and say why when it is not delivered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.light.colour import cone_observer, xyz_to_lms
from psyprobe.light.display import Display
from psyprobe.stimulus import Specification, Stimulus, Sum
from psyprobe.stimulus.certificate import Certificate, Row, format_rows
from psyprobe.stimulus.measure import certificate, certify, image_rows
from psyprobe.stimulus.tolerances import precision_of, roundoff, tolerance
from psyprobe.testing.diagnosis import Cause, diagnose
from psyprobe.testing.light import Light, read_light

A = TypeVar("A", bound=Callable[..., Certificate])


class CalibrationError(AssertionError):
    """A stimulus that is not what was asked."""

    def __init__(self, message: str, rows: tuple[Row, ...] = (), causes: tuple[Cause, ...] = ()) -> None:
        super().__init__(message)
        #: Everything that was measured.
        self.rows = rows
        #: Likely causes; empty if no signature is known.
        self.causes = causes


class DisplayModel(Protocol):
    """Anything that turns light into drive values and back, as `Display` does."""

    def encode(self, image: Any) -> Any:
        """Drive values of light in cd/m²."""
        ...

    def decode(self, drive: Any) -> Any:
        """Light in cd/m² of drive values."""
        ...


def measured(
    image: Stimulus | Array,
    asked: Specification | None,
    space: str | None,
    display: Display | None,
    precision: str | None,
) -> Certificate:
    """The certificate of a stimulus or an array, without judging it; parameters as of `assert_calibrated`."""
    light, spec = _read(image, asked, space, display, precision)
    rows = _rows(light, spec, display)
    return certificate(rows, spec, light.precision)


def assert_calibrated(
    image: Stimulus | Array,
    asked: Specification | None = None,
    *,
    space: str | None = None,
    display: Display | None = None,
    precision: str | None = None,
) -> Certificate:
    """Assert that an image is what was asked, in everything that applies to its kind.

    Parameters
    ----------
    image : Stimulus or array
        A stimulus, or a numpy array or torch tensor of any dtype, shape (..., H, W), (..., H, W, 3) or (..., 3, H, W).
    asked : Specification, optional
        What the image was meant to be, for example ``Gabor(frequency=4, contrast=0.5, ppd=60, size=224)``. A stimulus
        knows; an array needs it.
    space : {"luminance", "rgb", "xyz", "lms", "linear", "encoded"}, optional
        What the numbers of an array are: cd/m², linear RGB light in cd/m², XYZ, LMS, light as a fraction of the
        display's range, or drive values (codes, if whole numbers).
    display : Display, optional
        Needed for "linear" and "encoded"; with it, light must also lie in its gamut.
    precision : str, optional
        Column of the tolerance table to judge by; that of the array's dtype by default. An array of float64 may have
        gone through coarser steps, such as coordinates rounded to five digits: "float16" allows for those.

    Raises
    ------
    CalibrationError
        With the failed quantities, the tolerance and the likely cause.

    Examples
    --------
    >>> import numpy as np
    >>> from psyprobe.stimulus import Grating
    >>> asked = Grating(frequency=15, contrast=0.5, size=64)
    >>> x = (np.arange(64) - 31.5) / 60
    >>> wave = np.cos(2 * np.pi * 15 * x) * np.ones((64, 1))
    >>> assert_calibrated(100 * (1 + 0.5 * wave), asked, space="luminance").passed
    True
    >>> stretched = 2 * (wave - wave.min()) / np.ptp(wave) - 1
    >>> assert_calibrated(100 * (1 + 0.5 * stretched), asked, space="luminance")
    Traceback (most recent call last):
        ...
    psyprobe.testing.assertions.CalibrationError: Grating(size=64, contrast=0.5, frequency=15.0) was asked:
      contrast: requested 0.5, delivered 0.707107 (+41.4 %); ... Likely cause: min-max normalisation of ...
    """
    return _judge(image, asked, None, space, display, precision)


def _about(like: A, name: str, summary: str, *quantities: str) -> A:
    """The assertion that an image keeps what it promises of these quantities; called as `like` is.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> round(assert_contrast(gabor(frequency=4, contrast=0.2, size=64))["contrast"].delivered, 9)
    0.2
    """

    @wraps(like, assigned=("__module__", "__annotations__"))
    def assertion(image: Stimulus | Array, asked: Specification | None = None, **how: Any) -> Certificate:
        return _judge(image, asked, quantities, **how)

    assertion.__name__ = assertion.__qualname__ = name
    assertion.__doc__ = f"{summary}\n\nParameters and errors are those of `assert_calibrated`."
    return cast(A, assertion)


assert_contrast = _about(
    assert_calibrated,
    "assert_contrast",
    "Assert the contrast: of waves and discs by least squares, of noise the SD over the mean.",
    "contrast",
    "rms contrast",
)
assert_frequency = _about(
    assert_calibrated, "assert_frequency", "Assert the spatial frequency of a Gabor or grating.", "frequency"
)
assert_orientation = _about(
    assert_calibrated, "assert_orientation", "Assert the orientation of a Gabor or grating.", "orientation"
)
assert_band = _about(
    assert_calibrated,
    "assert_band",
    "Assert that noise lies in its band, and reaches both edges of it.",
    "energy outside band",
    "band edge low",
    "band edge high",
)
assert_cone_contrast = _about(
    assert_calibrated,
    "assert_cone_contrast",
    "Assert the contrast of each cone class, and silence where there should be, in an image of three channels.",
    *(f"{cone} cone contrast" for cone in "LMS"),
    "off-direction cone contrast",
)


def assert_mean_luminance(
    image: Stimulus | Array,
    asked: Specification | float | None = None,
    *,
    space: str | None = None,
    display: Display | None = None,
    precision: str | None = None,
) -> Certificate:
    """Assert mean luminance and background.

    Parameters
    ----------
    image, space, display, precision
        As for `assert_calibrated`.
    asked : Specification or float
        What the image was meant to be, or its mean luminance in cd/m².

    Examples
    --------
    >>> import numpy as np
    >>> float(assert_mean_luminance(np.full((8, 8), 50.0), 50, space="luminance")["mean luminance"].delivered)
    50.0
    """
    if asked is None or isinstance(asked, Specification):
        return _judge(image, asked, ("mean luminance", "background"), space, display, precision)
    light = read_light(image, None, space, display)
    light = replace(light, precision=precision or light.precision)
    means = _luminance(light, "cie1931", display).mean(axis=(-2, -1)).ravel()
    allowed = tolerance("mean luminance", light.precision)
    worst = float(means[np.argmax(np.abs(means - asked))])
    row = Row("mean luminance", "cd/m²", float(asked), worst, allowed, True, "mean over pixels")
    return _verdict(f"mean luminance of {asked:g} cd/m²", (row,), light.precision, len(means), ())


def assert_isoluminant(
    image: Stimulus | Array, *, observer: str, space: str | None = None, display: Display | None = None
) -> Certificate:
    """Assert that no pixel differs in luminance from another, for a named observer.

    Parameters
    ----------
    image, space, display
        As for `assert_calibrated`; nothing needs to be known of what was asked.
    observer : str
        "cie1931" (Y), or a cone observer of `psyprobe.light.colour.CONE_OBSERVERS` (L + M).

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> stimulus = gabor(frequency=4, contrast=0.05, direction="red_green", size=64)
    >>> assert_isoluminant(stimulus, observer="cie2006_led_lcd").passed
    True
    """
    light = read_light(image, None, space, display)
    own = image.observer if isinstance(image, Stimulus) else "cie2006_led_lcd"
    luminance = _luminance(light, observer, display, own)
    flat = luminance.reshape(-1, luminance.shape[-2] * luminance.shape[-1])
    change = np.abs(flat / np.median(flat, axis=1, keepdims=True) - 1).max(axis=1)
    allowed = tolerance("luminance modulation", light.precision) + 30 * roundoff(light.precision)
    method = f"largest change from the median, {observer}"
    row = Row("luminance modulation", "", 0.0, float(change.max()), allowed, False, method)
    return _verdict(f"isoluminance for {observer}", (row,), light.precision, len(flat), ())


def assert_in_gamut(image: Stimulus | Array, display: Display, *, space: str | None = None) -> Certificate:
    """Assert that a display can show every value.

    Parameters
    ----------
    image, space
        As for `assert_calibrated`.
    display : Display
        The display.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> assert_in_gamut(gabor(frequency=4, contrast=0.9, size=64), Display(peak=150))
    Traceback (most recent call last):
        ...
    psyprobe.testing.assertions.CalibrationError: the gamut of a display from 0 to 150 cd/m² was asked:
      values outside gamut: requested 0, delivered 1280; ...
    """
    light = read_light(image, None, space, display)
    observer = image.observer if isinstance(image, Stimulus) else None
    if light.drive is None:
        gamut = display.gamut(light.pixels, light.space, observer)
        outside, values, margin = gamut.outside, gamut.values, gamut.margin
    else:
        low, high = float(light.drive.min()), float(light.drive.max())
        top = np.inf if display.extended else 1.0
        outside = int(np.count_nonzero((light.drive < 0) | (light.drive > top)))
        values, margin = light.drive.size, min(low, top - high)
    rows = (
        Row("values outside gamut", "", 0.0, float(outside), 0.0, False, f"count of {values} values"),
        Row("gamut margin", "", None, float(margin), None, False, "distance to the nearer limit over the range"),
    )
    what = f"the gamut of a display from {display.floor:g} to {display.ceiling:g} cd/m²"
    return _verdict(what, rows, light.precision, 1, ())


def assert_round_trip(light: Stimulus | Array, display: DisplayModel) -> Certificate:
    """Assert that decoding what was encoded gives the same light.

    Parameters
    ----------
    light : Stimulus or array
        Luminance in cd/m², (..., H, W).
    display : DisplayModel
        `Display`, or anything with `encode` and `decode`.

    Examples
    --------
    >>> assert_round_trip([[10.0, 100.0]], Display()).passed
    True
    """
    asked = light.pixels if isinstance(light, Stimulus) else light
    if isinstance(light, Stimulus) and light.space != "luminance":
        raise InputError(f"a round trip needs luminance, not {light.space}")
    wanted = to_numpy(asked)
    drive = display.encode(asked)
    precision = max(precision_of(asked), precision_of(drive), key=lambda name: tolerance("contrast", name))
    delivered = to_numpy(display.decode(to_numpy(drive).astype(np.float64)))
    if delivered.ndim == wanted.ndim + 1:
        wanted = wanted[..., None]
    scale = np.maximum(np.abs(wanted), 1e-3 * np.abs(wanted).max())
    worst = float((np.abs(delivered - wanted) / scale).max())
    allowed = tolerance("light round trip", precision)
    method = "largest change relative to the light of the pixel (at least 0.1 % of the brightest)"
    row = Row("light round trip", "", 0.0, worst, allowed, False, method)
    return _verdict("the same light after encode and decode", (row,), precision, 1, ())


def _read(
    image: Stimulus | Array,
    asked: Specification | None,
    space: str | None,
    display: Display | None,
    precision: str | None,
) -> tuple[Light, Specification]:
    spec = asked
    if spec is None:
        if not isinstance(image, Stimulus):
            raise InputError("an array does not know what was asked; give a specification, such as Gabor(...)")
        spec = image.spec
    light = read_light(image, spec, space, display)
    return replace(light, precision=precision or light.precision), spec


def _judge(
    image: Stimulus | Array,
    asked: Specification | None,
    quantities: tuple[str, ...] | None,
    space: str | None = None,
    display: Display | None = None,
    precision: str | None = None,
) -> Certificate:
    light, spec = _read(image, asked, space, display, precision)
    rows = _rows(light, spec, display)
    looked_at = rows if quantities is None else tuple(r for r in rows if _bare(r.quantity) in quantities)
    if not looked_at:
        raise InputError(f"{', '.join(quantities or ())} cannot be measured in {spec!r}")
    if all(row.passed for row in looked_at):
        return certificate(looked_at, spec, light.precision)
    one, pixels = _worst_image(looked_at, light, spec)
    detail = certify(pixels, light.space, one, precision=light.precision, display=display)
    drive = light.drive
    if drive is not None and spec.batch:
        drive = drive.reshape(-1, *drive.shape[len(spec.batch) :])[_index(looked_at)]
    causes = () if isinstance(one, Sum) else diagnose(detail, replace(light, pixels=pixels, drive=drive), one, display)
    return _verdict(repr(spec), looked_at, light.precision, int(np.prod(spec.batch, dtype=int)), causes)


def _rows(light: Light, spec: Specification, display: Display | None) -> tuple[Row, ...]:
    if light.drive is None:
        return certify(light.pixels, light.space, spec, precision=light.precision, display=display)
    # A drive is in gamut by construction; the display only tells what its primaries are.
    return image_rows(light.pixels, light.space, spec, light.precision, display)


def _bare(quantity: str) -> str:
    """A quantity without the part of a sum that it is about."""
    return quantity.split(" ", 2)[2] if quantity.startswith("part ") else quantity


def _index(rows: tuple[Row, ...]) -> int:
    worst = max((row for row in rows if not row.passed), key=lambda row: row.severity)
    return worst.image or 0


def _worst_image(rows: tuple[Row, ...], light: Light, spec: Specification) -> tuple[Specification, Any]:
    if not spec.batch:
        return spec, light.pixels
    index = _index(rows)
    flat = light.pixels.reshape(-1, *light.pixels.shape[len(spec.batch) :])
    return list(spec.singles())[index], flat[index]


def _verdict(asked: str, rows: tuple[Row, ...], precision: str, images: int, causes: tuple[Cause, ...]) -> Certificate:
    result = Certificate(rows, asked, precision, images)
    if result.passed:
        return result
    lines = [f"{asked} was asked:"]
    # The largest errors first; those that are alike stay in the order of the certificate.
    for row in sorted(result.failures, key=lambda row: -float(f"{abs(row.error or 0.0):.1e}")):
        where = "" if row.image is None else f" in image {row.image}"
        off = f" ({100 * row.error:+.3g} %)" if row.relative and row.error is not None else ""
        unit = f" {row.unit}" if row.unit else ""
        lines.append(
            f"  {row.quantity}: requested {row.requested:.6g}{unit}, delivered {row.delivered:.6g}{unit}{off}{where}; "
            f"tolerance {row.tolerance:.2g}{'' if row.relative else unit} ({precision})"
        )
    lines += [f"Likely cause: {cause}" for cause in causes]
    if len(rows) > 1:
        lines += ["All that was measured:", format_rows(rows)]
    raise CalibrationError("\n".join(lines), rows, causes)


def _luminance(light: Light, observer: str, display: Display | None, own: str = "cie2006_led_lcd") -> Any:
    if light.space == "luminance":
        return light.pixels
    if light.space == "rgb":
        xyz = light.pixels @ (display or Display()).rgb_to_xyz.T
    else:
        xyz = light.pixels @ cone_observer(own).to_xyz.T
    return xyz[..., 1] if observer == "cie1931" else xyz_to_lms(xyz, observer)[..., :2].sum(axis=-1)


def to_numpy(values: Array) -> Any:
    """A tensor or an array as a numpy array."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
