"""Assertions of calibration: they measure pixels and compare them with what was requested.

A failure names the likely cause.
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
from psyprobe.stimulus.certificate import Certificate, Measurement
from psyprobe.stimulus.certificate_table import format_measurements
from psyprobe.stimulus.measuring import certify
from psyprobe.stimulus.tolerances import precision_of, roundoff, tolerance
from psyprobe.testing.diagnosis import (
    Cause,
    describe_measurement,
    diagnose,
    explain_failures,
    roots_first,
)
from psyprobe.testing.light import Light, read_light


class JudgingOptions(TypedDict, total=False):
    """Options for judging an image, as in `assert_calibrated`."""

    space: str | None
    display: Display | None
    precision: str | None


class CalibrationError(AssertionError):
    """A stimulus is not what was requested."""

    def __init__(
        self,
        message: str,
        certificate: Certificate | None = None,
        causes: tuple[Cause, ...] = (),
    ) -> None:
        super().__init__(message)
        #: certificate, measurements: Everything that was measured.
        self.certificate = certificate
        self.measurements = certificate.measurements if certificate else ()
        #: Likely causes; empty if no signature is known.
        self.causes = causes


class DisplayModel(Protocol):
    """Anything that turns light into drive values and back, as `Display` does."""

    def encode(self, image: Any) -> Any:
        """Encode light in cd/m² to drive values."""

    def decode(self, drive: Any) -> Any:
        """Decode drive values to light in cd/m²."""


def assert_calibrated(
    image: Stimulus | Array,
    spec: Specification | None = None,
    *,
    space: str | None = None,
    display: Display | None = None,
    precision: str | None = None,
) -> Certificate:
    """Assert that an image is what its specification requests, in all that can be measured.

    Parameters
    ----------
    image : Stimulus or array
        A stimulus, or a numpy array or torch tensor of any dtype, shape (..., H, W), (..., H, W, 3)
        or (..., 3, H, W).
    spec : Specification, optional
        What the image was meant to be, for example ``Gabor(frequency=4, contrast=0.5, ppd=60,
        size=224)``. A stimulus knows its own; an array needs it.
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
    >>> spec = Grating(frequency=15, contrast=0.5, size=64)
    >>> x = (np.arange(64) - 31.5) / 60
    >>> wave = np.cos(2 * np.pi * 15 * x) * np.ones((64, 1))
    >>> assert_calibrated(100 * (1 + 0.5 * wave), spec, space="luminance").passed
    True
    >>> stretched = 2 * (wave - wave.min()) / np.ptp(wave) - 1
    >>> assert_calibrated(100 * (1 + 0.5 * stretched), spec, space="luminance")
    Traceback (most recent call last):
        ...
    psyprobe.testing.assertions.CalibrationError: Grating(...) was asked:
      contrast: requested 0.5, delivered 0.707107 (+41.4 %); ...
    """
    return check_certificate(
        *judge(image, spec, space=space, display=display, precision=precision)
    )


def assert_contrast(
    image: Stimulus | Array,
    spec: Specification | None = None,
    **options: Unpack[JudgingOptions],
) -> Certificate:
    """Assert that an image has the requested contrast.

    That of waves and discs is fitted by least squares, that of noise is the SD over the mean.
    Arguments and errors are as in `assert_calibrated`.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> round(assert_contrast(gabor(frequency=4, contrast=0.2, size=64))["contrast"].delivered, 9)
    0.2
    """
    return check_certificate(
        *judge(image, spec, ("contrast", "rms contrast"), **options)
    )


def assert_frequency(
    image: Stimulus | Array,
    spec: Specification | None = None,
    **options: Unpack[JudgingOptions],
) -> Certificate:
    """Assert that a Gabor or grating has the requested spatial frequency.

    Arguments and errors are as in `assert_calibrated`.
    """
    return check_certificate(*judge(image, spec, ("frequency",), **options))


def assert_orientation(
    image: Stimulus | Array,
    spec: Specification | None = None,
    **options: Unpack[JudgingOptions],
) -> Certificate:
    """Assert that a Gabor or grating has the requested orientation.

    Arguments and errors are as in `assert_calibrated`.
    """
    return check_certificate(*judge(image, spec, ("orientation",), **options))


def assert_band(
    image: Stimulus | Array,
    spec: Specification | None = None,
    **options: Unpack[JudgingOptions],
) -> Certificate:
    """Assert that noise fills its frequency band up to the edges.

    Arguments and errors are as in `assert_calibrated`.
    """
    return check_certificate(
        *judge(
            image,
            spec,
            ("energy outside band", "band edge low", "band edge high"),
            **options,
        )
    )


def assert_cone_contrast(
    image: Stimulus | Array,
    spec: Specification | None = None,
    **options: Unpack[JudgingOptions],
) -> Certificate:
    """Assert the contrast of each cone class, 0 for those that must not respond.

    Arguments and errors are as in `assert_calibrated`.
    """
    cones = (f"{cone} cone contrast" for cone in "LMS")
    return check_certificate(
        *judge(image, spec, (*cones, "off-direction cone contrast"), **options)
    )


def assert_mean_luminance(
    image: Stimulus | Array,
    expected: Specification | float | None = None,
    **options: Unpack[JudgingOptions],
) -> Certificate:
    """Assert that an image has the requested mean luminance and background.

    Parameters
    ----------
    image, space, display, precision
        As for `assert_calibrated`.
    expected : Specification or float
        What the image was meant to be, or its mean luminance in cd/m².

    Examples
    --------
    >>> import numpy as np
    >>> field = np.full((8, 8), 50.0)
    >>> certificate = assert_mean_luminance(field, 50, space="luminance")
    >>> float(certificate["mean luminance"].delivered)
    50.0
    """
    if expected is None or isinstance(expected, Specification):
        return check_certificate(
            *judge(image, expected, ("mean luminance", "background"), **options)
        )
    light = read_light(image, None, **options)
    luminance = _luminance(light, "cie1931", options.get("display"))
    means = luminance.mean(axis=(-2, -1)).ravel()
    worst = float(means[np.argmax(np.abs(means - expected))])
    measurement = Measurement(
        "mean luminance",
        "cd/m²",
        float(expected),
        worst,
        tolerance("mean luminance", light.precision),
        True,
        "mean over pixels",
    )
    title = f"mean luminance of {expected:g} cd/m²"
    return check_certificate(
        Certificate((measurement,), title, light.precision, len(means))
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
        As for `assert_calibrated`.
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
    allowed = tolerance("luminance modulation", light.precision) + 30 * roundoff(
        light.precision
    )
    measurement = Measurement(
        "luminance modulation",
        "",
        0.0,
        float(change.max()),
        allowed,
        False,
        f"largest change from the median, {observer}",
    )
    title = f"isoluminance for {observer}"
    return check_certificate(
        Certificate((measurement,), title, light.precision, len(flat))
    )


def assert_in_gamut(
    image: Stimulus | Array, display: Display, *, space: str | None = None
) -> Certificate:
    """Assert that a display can show every value.

    Parameters
    ----------
    image, space
        As for `assert_calibrated`.
    display : Display
        The display that should show them.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> assert_in_gamut(gabor(frequency=4, contrast=0.9, size=64), Display(peak=150))
    Traceback (most recent call last):
        ...
    psyprobe.testing.assertions.CalibrationError: the gamut of a display from 0 to 150 cd/m² ...:
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
    counted = f"count of {values} values"
    distance = "distance to the nearer limit over the range"
    measurements = (
        Measurement(
            "values outside gamut", "", 0.0, float(outside), 0.0, False, counted
        ),
        Measurement("gamut margin", "", None, float(margin), None, False, distance),
    )
    title = (
        f"the gamut of a display from {display.floor:g} to {display.ceiling:g} cd/m²"
    )
    return check_certificate(Certificate(measurements, title, light.precision, 1))


def assert_round_trip(light: Stimulus | Array, display: DisplayModel) -> Certificate:
    """Assert that light is the same after encoding to drive and decoding.

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
    if isinstance(light, Stimulus) and light.space != "luminance":
        raise InputError(f"a round trip needs luminance, not {light.space}")
    pixels = light.pixels if isinstance(light, Stimulus) else light
    requested = to_numpy(pixels)
    drive = display.encode(pixels)
    precisions = (precision_of(pixels), precision_of(drive))
    precision = max(precisions, key=lambda name: tolerance("contrast", name))
    delivered = to_numpy(display.decode(to_numpy(drive).astype(np.float64)))
    if delivered.ndim == requested.ndim + 1:
        requested = requested[..., None]
    scale = np.maximum(np.abs(requested), 1e-3 * np.abs(requested).max())
    measurement = Measurement(
        "light round trip",
        "",
        0.0,
        float((np.abs(delivered - requested) / scale).max()),
        tolerance("light round trip", precision),
        False,
        "largest change relative to the light of the pixel (at least 0.1 % of the brightest)",
    )
    title = "the same light after encode and decode"
    return check_certificate(Certificate((measurement,), title, precision, 1))


def judge(
    image: Stimulus | Array,
    spec: Specification | None = None,
    quantities: tuple[str, ...] | None = None,
    **options: Unpack[JudgingOptions],
) -> tuple[Certificate, tuple[Cause, ...]]:
    """Measure an image against its specification, and find the likely causes of errors.

    Parameters are those of `assert_calibrated`, and the quantities to judge by; without them, all.
    Errors as in `assert_calibrated`, but nothing is raised for what is off.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> spec = Gabor(frequency=4, contrast=0.5, orientation=30, size=64)
    >>> certificate, causes = judge(spec.draw().luminance.T, spec, space="luminance")
    >>> certificate.passed, [cause.name for cause in causes]
    (False, ['rows and columns exchanged'])
    """
    if spec is None:
        if not isinstance(image, Stimulus):
            raise InputError(
                "an array does not know what was asked; give a specification, such as Gabor(...)"
            )
        spec = image.spec
    light = read_light(image, spec, **options)
    display = options.get("display")
    certificate = certify(
        light.pixels,
        light.space,
        spec,
        precision=light.precision,
        display=display,
        decoded=light.drive is not None,
    )
    if quantities is not None:
        selected = [
            entry
            for entry in certificate
            if _part_quantity(entry.quantity) in quantities
        ]
        certificate = replace(certificate, measurements=tuple(selected))
    if not certificate.measurements:
        raise InputError(
            f"{', '.join(quantities or ())} cannot be measured in {spec!r}"
        )
    if certificate.passed or isinstance(spec, Sum):
        return certificate, ()
    worst = max(certificate.failures, key=lambda failure: failure.severity)
    index = worst.image or 0
    single = [*spec.singles()][index]
    light = _single_light(light, len(spec.batch), index)
    detail = certify(
        light.pixels, light.space, single, precision=light.precision, display=display
    )
    return certificate, diagnose(detail.measurements, light, single, display)


def _single_light(light: Light, dimensions: int, index: int) -> Light:
    """Select one image of a batch by index."""
    arrays = {"pixels": light.pixels, "drive": light.drive}
    images: Any = {
        name: values.reshape(-1, *values.shape[dimensions:])[index]
        for name, values in arrays.items()
        if values is not None
    }
    return replace(light, **images)


def _part_quantity(quantity: str) -> str:
    """Return a quantity's name without the part of a sum it belongs to."""
    return quantity.split(" ", 2)[2] if quantity.startswith("part ") else quantity


def check_certificate(
    certificate: Certificate, causes: tuple[Cause, ...] = ()
) -> Certificate:
    """Return a certificate that passed, and raise an error with causes for another."""
    if certificate.passed:
        return certificate
    roots, _ = roots_first(certificate.failures, causes)
    lines = [f"{certificate.stimulus} was asked:"]
    lines += [
        f"  {describe_measurement(failure, certificate.precision)}" for failure in roots
    ]
    lines += explain_failures(certificate.failures, causes)
    if len(certificate.measurements) > 1:
        lines += [
            "All that was measured:",
            format_measurements(certificate.measurements),
        ]
    raise CalibrationError("\n".join(lines), certificate, causes)


def _luminance(light: Light, observer: str, display: Display | None) -> Any:
    """Compute CIE 1931 luminance, or L + M of a cone observer, of light."""
    if light.space == "luminance":
        return light.pixels
    to_xyz = cone_observer(light.observer).to_xyz
    if light.space == "rgb":
        to_xyz = (display or Display()).rgb_to_xyz
    xyz = light.pixels @ to_xyz.T
    if observer == "cie1931":
        return xyz[..., 1]
    return xyz_to_lms(xyz, observer)[..., :2].sum(axis=-1)


def to_numpy(values: Array) -> Any:
    """Convert a tensor or an array to a numpy array."""
    return (
        values.detach().cpu().numpy()
        if hasattr(values, "detach")
        else np.asarray(values)
    )


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
        copy = specification_from_dict(draw.to_dict())
        if copy != draw or copy.digest != draw.digest:
            raise CalibrationError(
                f"{draw!r} read back from its dictionary is {copy!r}"
            )
        first = _draw_pixels(draw)
        second = _draw_pixels(copy)
        name = repr(draw)
    else:
        first = to_numpy(draw())
        second = to_numpy(draw())
        name = getattr(draw, "__name__", repr(draw))
    if np.array_equal(first, second):
        return
    change = np.abs(first - second).max() if first.shape == second.shape else np.inf
    raise CalibrationError(
        f"{name} drawn twice differs by up to {change:.3g}. Likely cause: a random "
        "generator without its own seed. "
        "Give each image a generator of its own, seeded by a number that is kept with it."
    )


def assert_batch_equals_loop(
    draw: Specification | Callable[..., Array],
    parameters: Mapping[str, Iterable[float]] | None = None,
) -> None:
    """Assert that a batch holds the same images as drawn one by one.

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
        If an image of the batch differs from the one drawn alone.

    Examples
    --------
    >>> import numpy as np
    >>> def ramp(slope):
    ...     return np.asarray(slope)[..., None, None] * np.arange(4.0) * np.ones((4, 1))
    >>> assert_batch_equals_loop(ramp, {"slope": [1.0, 2.0]})
    """
    if isinstance(draw, Specification):
        batch = _draw_pixels(draw)
        images = [_draw_pixels(single) for single in draw.singles()]
        batch = batch.reshape(len(images), *images[0].shape)
    else:
        columns = {
            name: np.asarray(list(values))
            for name, values in (parameters or {}).items()
        }
        if not columns:
            raise InputError(
                "a function needs parameters to draw a batch of: a mapping of names to sequences"
            )
        batch = to_numpy(draw(**columns))
        images = [
            to_numpy(draw(**dict(zip(columns, values, strict=True))))
            for values in zip(*columns.values(), strict=True)
        ]
    allowed = tolerance("batch", precision_of(batch))
    for index, image in enumerate(images):
        scale = float(np.abs(image).max()) or 1.0
        change = float(np.abs(batch[index] - image).max()) / scale
        if change > allowed:
            raise CalibrationError(
                f"image {index} of the batch differs from the one drawn alone by {change:.3g} "
                f"of its largest value; tolerance {allowed:.2g}. Likely cause: parameters or "
                "seeds that depend on the place in the batch."
            )


def _draw_pixels(spec: Specification) -> Any:
    """Draw a specification as a numpy array of pixels."""
    return to_numpy(spec.draw().pixels)
