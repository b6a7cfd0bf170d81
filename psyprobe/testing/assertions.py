"""Assertions of calibration: they measure pixels, compare with what was asked, and say why when it
is not delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.light.colour import cone_observer, xyz_to_lms
from psyprobe.light.display import Display
from psyprobe.stimulus import Specification, Stimulus, Sum, specification_from_dict
from psyprobe.stimulus.certificate import (
    Certificate,
    Row,
    certify,
    format_rows,
    precision_of,
    roundoff,
    tolerance,
)
from psyprobe.testing.diagnosis import Cause, diagnose, roots_first, told
from psyprobe.testing.light import Light, read_light


class How(TypedDict, total=False):
    """How an image is judged, as of `assert_calibrated`."""

    space: str | None
    display: Display | None
    precision: str | None


class CalibrationError(AssertionError):
    """A stimulus that is not what was asked."""

    def __init__(
        self, message: str, certificate: Certificate | None = None, causes: tuple[Cause, ...] = ()
    ) -> None:
        super().__init__(message)
        #: certificate, rows: Everything that was measured.
        self.certificate = certificate
        self.rows = certificate.rows if certificate else ()
        #: Likely causes; empty if no signature is known.
        self.causes = causes


class DisplayModel(Protocol):
    """Anything that turns light into drive values and back, as `Display` does."""

    def encode(self, image: Any) -> Any:
        """Drive values of light in cd/m²."""

    def decode(self, drive: Any) -> Any:
        """Light in cd/m² of drive values."""


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
        A stimulus, or a numpy array or torch tensor of any dtype, shape (..., H, W), (..., H, W, 3)
        or (..., 3, H, W).
    asked : Specification, optional
        What the image was meant to be, for example ``Gabor(frequency=4, contrast=0.5, ppd=60,
        size=224)``. A stimulus knows; an array needs it.
    space : {"luminance", "rgb", "xyz", "lms", "linear", "encoded"}, optional
        What the numbers of an array are: cd/m², linear RGB light in cd/m², XYZ, LMS, light as a
        fraction of the display's range, or drive values (codes, if whole numbers).
    display : Display, optional
        Needed for "linear" and "encoded"; with it, light must also lie in its gamut.
    precision : str, optional
        Column of the tolerance table to judge by; that of the array's dtype by default. An array of
        float64 may have gone through coarser steps, such as coordinates rounded to five digits:
        "float16" allows for those.

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
    return _judge(image, asked, None, space=space, display=display, precision=precision)


def assert_contrast(
    image: Stimulus | Array, asked: Specification | None = None, **how: Unpack[How]
) -> Certificate:
    """Assert the contrast: of waves and discs by least squares, of noise the SD over the mean; as
    `assert_calibrated`.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> round(assert_contrast(gabor(frequency=4, contrast=0.2, size=64))["contrast"].delivered, 9)
    0.2
    """
    return _judge(image, asked, ("contrast", "rms contrast"), **how)


def assert_frequency(
    image: Stimulus | Array, asked: Specification | None = None, **how: Unpack[How]
) -> Certificate:
    """Assert the spatial frequency of a Gabor or grating; called as `assert_calibrated`."""
    return _judge(image, asked, ("frequency",), **how)


def assert_orientation(
    image: Stimulus | Array, asked: Specification | None = None, **how: Unpack[How]
) -> Certificate:
    """Assert the orientation of a Gabor or grating; called as `assert_calibrated`."""
    return _judge(image, asked, ("orientation",), **how)


def assert_band(
    image: Stimulus | Array, asked: Specification | None = None, **how: Unpack[How]
) -> Certificate:
    """Assert that noise lies in its band, and reaches both edges of it; called as
    `assert_calibrated`.
    """
    return _judge(image, asked, ("energy outside band", "band edge low", "band edge high"), **how)


def assert_cone_contrast(
    image: Stimulus | Array, asked: Specification | None = None, **how: Unpack[How]
) -> Certificate:
    """Assert the contrast of each cone class, and silence where there should be; called as
    `assert_calibrated`.
    """
    cones = (f"{cone} cone contrast" for cone in "LMS")
    return _judge(image, asked, (*cones, "off-direction cone contrast"), **how)


def assert_mean_luminance(
    image: Stimulus | Array, asked: Specification | float | None = None, **how: Unpack[How]
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
        return _judge(image, asked, ("mean luminance", "background"), **how)
    light = read_light(image, None, **how)
    means = _luminance(light, "cie1931", how.get("display")).mean(axis=(-2, -1)).ravel()
    allowed = tolerance("mean luminance", light.precision)
    worst = float(means[np.argmax(np.abs(means - asked))])
    row = Row("mean luminance", "cd/m²", float(asked), worst, allowed, True, "mean over pixels")
    return _verdict(
        Certificate((row,), f"mean luminance of {asked:g} cd/m²", light.precision, len(means))
    )


def assert_isoluminant(
    image: Stimulus | Array,
    *,
    observer: str,
    space: str | None = None,
    display: Display | None = None,
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
    luminance = _luminance(light, observer, display)
    flat = luminance.reshape(-1, luminance.shape[-2] * luminance.shape[-1])
    change = np.abs(flat / np.median(flat, axis=1, keepdims=True) - 1).max(axis=1)
    allowed = tolerance("luminance modulation", light.precision) + 30 * roundoff(light.precision)
    method = f"largest change from the median, {observer}"
    row = Row("luminance modulation", "", 0.0, float(change.max()), allowed, False, method)
    return _verdict(Certificate((row,), f"isoluminance for {observer}", light.precision, len(flat)))


def assert_in_gamut(
    image: Stimulus | Array, display: Display, *, space: str | None = None
) -> Certificate:
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
    if light.drive is None:
        gamut = display.gamut(light.pixels, light.space, light.observer)
        outside = gamut.outside
        values = gamut.values
        margin = gamut.margin
    else:
        low = float(light.drive.min())
        high = float(light.drive.max())
        top = np.inf if display.extended else 1.0
        outside = int(np.count_nonzero((light.drive < 0) | (light.drive > top)))
        values = light.drive.size
        margin = min(low, top - high)
    rows = (
        Row(
            "values outside gamut", "", 0.0, float(outside), 0.0, False, f"count of {values} values"
        ),
        Row(
            "gamut margin",
            "",
            None,
            float(margin),
            None,
            False,
            "distance to the nearer limit over the range",
        ),
    )
    what = f"the gamut of a display from {display.floor:g} to {display.ceiling:g} cd/m²"
    return _verdict(Certificate(rows, what, light.precision, 1))


def assert_round_trip(light: Stimulus | Array, display: DisplayModel) -> Certificate:
    """Assert that decoding what was encoded gives the same light.

    Parameters
    ----------
    light : Stimulus or array
        Luminance in cd/m², (..., H, W).
    display : DisplayModel
        `Display`, or anything with `encode` and `decode`.

    Raises
    ------
    CalibrationError
        If the light is off by more than rounding.

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
    precision = max(
        precision_of(asked), precision_of(drive), key=lambda name: tolerance("contrast", name)
    )
    delivered = to_numpy(display.decode(to_numpy(drive).astype(np.float64)))
    if delivered.ndim == wanted.ndim + 1:
        wanted = wanted[..., None]
    scale = np.maximum(np.abs(wanted), 1e-3 * np.abs(wanted).max())
    worst = float((np.abs(delivered - wanted) / scale).max())
    allowed = tolerance("light round trip", precision)
    method = "largest change relative to the light of the pixel (at least 0.1 % of the brightest)"
    row = Row("light round trip", "", 0.0, worst, allowed, False, method)
    return _verdict(Certificate((row,), "the same light after encode and decode", precision, 1))


def judged(
    image: Stimulus | Array, asked: Specification | None = None, **how: Unpack[How]
) -> tuple[Certificate, tuple[Cause, ...]]:
    """All that was measured of an image, and the likely causes of what is off; parameters as of
    `assert_calibrated`.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> asked = Gabor(frequency=4, contrast=0.5, orientation=30, size=64)
    >>> found, causes = judged(asked.draw().luminance.T, asked, space="luminance")
    >>> found.passed, [cause.name for cause in causes]
    (False, ['rows and columns exchanged'])
    """
    return _measured(image, asked, None, **how)


def _judge(
    image: Stimulus | Array,
    asked: Specification | None,
    quantities: tuple[str, ...] | None,
    **how: Unpack[How],
) -> Certificate:
    return _verdict(*_measured(image, asked, quantities, **how))


def _measured(
    image: Stimulus | Array,
    asked: Specification | None,
    quantities: tuple[str, ...] | None,
    **how: Unpack[How],
) -> tuple[Certificate, tuple[Cause, ...]]:
    if asked is None and not isinstance(image, Stimulus):
        raise InputError(
            "an array does not know what was asked; give a specification, such as Gabor(...)"
        )
    spec: Specification = image.spec if asked is None else asked
    light = read_light(image, spec, **how)
    display = how.get("display")
    decoded = light.drive is not None
    found = certify(
        light.pixels, light.space, spec, precision=light.precision, display=display, decoded=decoded
    )
    if quantities is not None:
        found = replace(
            found, rows=tuple(row for row in found if _bare(row.quantity) in quantities)
        )
    if not found.rows:
        raise InputError(f"{', '.join(quantities or ())} cannot be measured in {spec!r}")
    causes: tuple[Cause, ...] = ()
    if not found.passed and not isinstance(spec, Sum):
        index = max(found.failures, key=lambda row: row.severity).image or 0
        one = [*spec.singles()][index]
        light = _single(light, len(spec.batch), index)
        detail = certify(light.pixels, light.space, one, precision=light.precision, display=display)
        causes = diagnose(detail.rows, light, one, display)
    return found, causes


def _single(light: Light, dimensions: int, index: int) -> Light:
    """One image of a batch of so many dimensions."""
    found = (
        {"pixels": light.pixels}
        if light.drive is None
        else {"pixels": light.pixels, "drive": light.drive}
    )
    flat = {
        name: values.reshape(-1, *values.shape[dimensions:])[index]
        for name, values in found.items()
    }
    return replace(light, **flat) if dimensions else light


def _bare(quantity: str) -> str:
    """A quantity without the part of a sum that it is about."""
    return quantity.split(" ", 2)[2] if quantity.startswith("part ") else quantity


def _verdict(found: Certificate, causes: tuple[Cause, ...] = ()) -> Certificate:
    if found.passed:
        return found
    lines = [f"{found.stimulus} was asked:"]
    roots, rest = roots_first(found.failures, causes)
    lines += [f"  {told(row, found.precision)}" for row in roots]
    lines += [f"Likely cause: {cause}" for cause in causes]
    if rest:
        lines += [f"What follows from it: {'; '.join(told(row) for row in rest)}."]
    if len(found.rows) > 1:
        lines += ["All that was measured:", format_rows(found.rows)]
    raise CalibrationError("\n".join(lines), found, causes)


def _luminance(light: Light, observer: str, display: Display | None) -> Any:
    if light.space == "luminance":
        return light.pixels
    if light.space == "rgb":
        xyz = light.pixels @ (display or Display()).rgb_to_xyz.T
    else:
        xyz = light.pixels @ cone_observer(light.observer).to_xyz.T
    return xyz[..., 1] if observer == "cie1931" else xyz_to_lms(xyz, observer)[..., :2].sum(axis=-1)


def to_numpy(values: Array) -> Any:
    """A tensor or an array as a numpy array."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)


def assert_reproducible(draw: Specification | Callable[[], Array]) -> None:
    """Assert that drawing twice gives the same bits, whatever was drawn or seeded in between.

    Parameters
    ----------
    draw : Specification or callable
        A specification, which is also written to a dictionary and read back; or a function without
        arguments that returns an array.

    Raises
    ------
    CalibrationError
        If a bit differs.

    Examples
    --------
    >>> import numpy as np
    >>> assert_reproducible(lambda: np.random.default_rng(1).normal(size=(8, 8)))
    """
    if isinstance(draw, Specification):
        again = specification_from_dict(draw.to_dict())
        if again != draw or again.digest != draw.digest:
            raise CalibrationError(f"{draw!r} read back from its dictionary is {again!r}")
        first = _drawn(draw)
        second = _drawn(again)
        name = repr(draw)
    else:
        first = to_numpy(draw())
        second = to_numpy(draw())
        name = getattr(draw, "__name__", repr(draw))
    if first.shape != second.shape or not np.array_equal(first, second):
        change = (
            float(np.abs(first - second).max()) if first.shape == second.shape else float("inf")
        )
        raise CalibrationError(
            f"{name} drawn twice differs by up to {change:.3g}. Likely cause: a random "
            "generator without its own seed. "
            "Give each image a generator of its own, seeded by a number that is kept with it."
        )


def assert_batch_equals_loop(
    draw: Specification | Callable[..., Array],
    parameters: Mapping[str, Iterable[float]] | None = None,
) -> None:
    """Assert that a batch holds the images that are drawn one by one.

    Parameters
    ----------
    draw : Specification or callable
        A specification with arrays in it; or a function that takes `parameters` by name, arrays or
        single numbers.
    parameters : mapping of str to sequence, optional
        For a function: parameters of equal length.

    Raises
    ------
    CalibrationError
        If an image of the batch is another than that drawn alone.

    Examples
    --------
    >>> import numpy as np
    >>> def ramp(slope):
    ...     return np.asarray(slope)[..., None, None] * np.arange(4.0) * np.ones((4, 1))
    >>> assert_batch_equals_loop(ramp, {"slope": [1.0, 2.0]})
    """
    if isinstance(draw, Specification):
        batch = _drawn(draw)
        images = [_drawn(single) for single in draw.singles()]
        batch = batch.reshape(len(images), *images[0].shape)
    else:
        values = {name: np.asarray(list(value)) for name, value in (parameters or {}).items()}
        if not values:
            raise InputError(
                "a function needs parameters to draw a batch of: a mapping of names to sequences"
            )
        batch = to_numpy(draw(**values))
        images = [
            to_numpy(draw(**dict(zip(values, row, strict=True))))
            for row in zip(*values.values(), strict=True)
        ]
    allowed = tolerance("batch", precision_of(batch))
    for index, image in enumerate(images):
        scale = float(np.abs(image).max()) or 1.0
        change = float(np.abs(batch[index] - image).max()) / scale
        if change > allowed:
            raise CalibrationError(
                f"image {index} of the batch differs from the one drawn alone by {change:.3g} "
                "of its largest value; "
                f"tolerance {allowed:.2g}. Likely cause: parameters or seeds that depend on the "
                "place in the batch."
            )


def _drawn(spec: Specification) -> Any:
    return to_numpy(spec.draw().pixels)
