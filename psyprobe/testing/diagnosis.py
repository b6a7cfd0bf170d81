"""From a failed measurement to its likely cause, the root before what follows from it.

An image is compared, pixel by pixel, with the stimulus that was requested as it comes out with one
fault; the faults that leave nothing to explain are named. Where several came together, what is
wrong with the place and size of the wave is read off its parameters (half a pixel, N/(N - 1),
224/256), and contrast and encoding are judged where the wave lies. Samples of noise differ from one
another: for them numbers are compared, and not pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import packaged_toml
from psyprobe.light.colour import CONE_OBSERVERS, cone_observer
from psyprobe.light.display import Display
from psyprobe.stimulus import (
    AnnulusNoise,
    Gabor,
    Grating,
    Modulation,
    Noise,
    Specification,
    Uniform,
    estimate,
)
from psyprobe.stimulus.certificate import Measurement
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.measuring import measure_images, to_lms
from psyprobe.stimulus.sines import wave_vector
from psyprobe.testing.faults import (
    FULL_WIDTH,
    WAVE_PARAMETERS,
    ExpectedImage,
    Fault,
    encode_linear,
    faults,
    faults_of_level,
    has_failed,
    is_resized,
    measured_faults,
    measured_levels,
)

if TYPE_CHECKING:
    from psyprobe.testing.light import Light

#: Measurements of one image by quantity.
Measurements = Mapping[str, Measurement]


@dataclass(frozen=True)
class Cause:
    """What probably went wrong.

    Examples
    --------
    >>> print(Cause("upside down", "rows were read from below", "Turn the rows"))
    upside down: rows were read from below. Turn the rows.
    """

    #: The cause in a few words.
    name: str
    #: How it comes about.
    explanation: str
    #: What to do.
    remedy: str
    #: Quantities of the certificate that it changes itself; what else is off follows from them.
    shows: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.explanation}. {self.remedy}."


#: Every fault that can be named, by its key in ``causes.toml``. An explanation states the number
#: that was measured, where it has a place for it.
CAUSES = {
    key: Cause(**table | {"shows": tuple(table["shows"])})
    for key, table in packaged_toml("psyprobe.testing", "causes.toml").items()
}

#: Shares of an image's error that a fault may leave unexplained: a fault without a number, whose
#: constants are rounded (2.35 for 2.3548), a fault with a number, and one without beside one with
#: that leaves less.
_UNEXPLAINED = 0.02
_UNEXPLAINED_IF_MEASURED = 1e-3
_UNEXPLAINED_BESIDE = 5e-3
#: Share of a pattern that a fault may leave unexplained, however much of the level it explains.
_UNEXPLAINED_PATTERN = 0.2

#: Faults that are dropped where another fault fits as well: centred, a mirror image is only
#: turned.
_YIELDS = {
    "flipped": {"mirrored"},
    "root_two": {"stretched_sine"},
    "square": {"stretched_sine"},
    "frequency": {"wrong_ppd", "resized"},
}

#: Where a wave lies: all else is measured where it should lie.
_PLACE = (
    "frequency",
    "orientation",
    "radius",
    "aspect",
    "position x",
    "position y",
    "phase",
)

#: Quantities in which a fault in contrast or level shows.
_LEVELS = ("contrast", "rms contrast", "mean luminance", "background")
_COLOURS = (
    "L cone contrast",
    "M cone contrast",
    "S cone contrast",
    "luminance modulation",
)


def diagnose(
    measurements: tuple[Measurement, ...],
    light: Light,
    spec: Specification,
    display: Display | None,
) -> tuple[Cause, ...]:
    """Find likely causes of an image's failed measurements, the most telling first.

    There are none if no signature is known.

    Parameters
    ----------
    measurements : tuple of Measurement
        What was measured in the image.
    light : Light
        The image.
    spec : Specification
        What it was meant to be.
    display : Display or None
        Without it, faults of encoding are not looked for.
    """
    delivered = {measurement.quantity: measurement for measurement in measurements}
    passed = all(measurement.passed for measurement in measurements)
    if passed or not isinstance(spec, Modulation | Uniform):
        return ()
    if isinstance(spec, Noise) and _is_stretched(light, spec):
        return (CAUSES["stretched_noise"],)
    expected = ExpectedImage.like(light, spec, display)
    rounding = _rounding_cause(light, expected)
    if rounding:
        return (rounding,)
    if expected.light.shape == light.pixels.shape:
        measured = measured_faults(expected, light, delivered)
        single = _fitting_causes(light, expected, faults(expected), measured)
        if single:
            return single
    if isinstance(spec, Noise | AnnulusNoise):
        causes = [*_other_band(light, spec), *_recreated(delivered, light, expected)]
    else:
        causes = _joint_causes(light, expected, delivered)
    if isinstance(spec, Modulation) and has_failed(delivered, "luminance modulation"):
        swapped = [cause for cause in causes if cause == CAUSES["swapped"]]
        causes = swapped or [_leak(light, spec, display)]
    if not causes and _is_rounding(light, expected):
        causes = [_cause_for_codes("rounded", light.codes)]
    return tuple(dict.fromkeys(causes))


def roots_first(
    failures: Iterable[Measurement], causes: Iterable[Cause]
) -> tuple[list[Measurement], list[Measurement]]:
    """Separate the failures that causes explain directly from those that follow.

    Without a cause none follows. Where a wave lies comes before its contrast, which is measured
    where it should lie; within that, the largest error comes first.

    Returns
    -------
    roots : list of Measurement
    consequences : list of Measurement
    """
    explained = {quantity for cause in causes for quantity in cause.shows}

    def order(failure: Measurement) -> tuple[int, float]:
        place = (*_PLACE, failure.quantity).index(failure.quantity)
        # Two digits, since rounding differs between machines.
        return place, -float(f"{abs(failure.error or 0.0):.1e}")

    ordered = sorted(failures, key=order)
    roots = [failure for failure in ordered if failure.quantity in explained] or ordered
    return roots, [failure for failure in ordered if failure not in roots]


def explain_failures(
    failures: Iterable[Measurement], causes: Iterable[Cause]
) -> list[str]:
    """Describe the likely causes of failures, and what follows from them, in lines."""
    lines = [f"Likely cause: {cause}" for cause in causes]
    _, consequences = roots_first(failures, causes)
    if consequences:
        descriptions = "; ".join(map(describe_measurement, consequences))
        lines.append(f"What follows from it: {descriptions}.")
    return lines


def describe_measurement(failure: Measurement, precision: str | None = None) -> str:
    """Describe a failed measurement in words, with its tolerance if a precision is given."""
    where = "" if failure.image is None else f" in image {failure.image}"
    unit = f" {failure.unit}" if failure.unit else ""
    percentage = ""
    if failure.relative and failure.error is not None:
        percentage = f"{100 * failure.error:+.3g} %"
    if precision is None:
        return f"{failure.quantity} {percentage or f'{failure.delivered:.3g}{unit}'}{where}"
    requested = f"requested {failure.requested:.6g}{unit}"
    delivered = f"delivered {failure.delivered:.6g}{unit}"
    if percentage:
        delivered += f" ({percentage})"
    tolerance = f"tolerance {failure.tolerance:.2g}{'' if failure.relative else unit}"
    return f"{failure.quantity}: {requested}, {delivered}{where}; {tolerance} ({precision})"


# -- one fault that explains all
# --------------------------------------------------------------------------------------------------


def _fitting_causes(
    light: Light,
    expected: ExpectedImage,
    plain_faults: Iterable[Fault],
    measured: Iterable[Fault],
) -> tuple[Cause, ...]:
    """Find the faults that explain an image but for next to nothing.

    A fault with a number counts only where no fault without one fits.
    """
    error = _distance(light.pixels, expected.light)
    rounding = _rounding_error(light, expected.display)
    if error <= max(rounding, 1e-7 * expected.spec.luminance):
        return ()
    fits = _fit_faults(plain_faults, light)
    measured_fits = _fit_faults(measured, light)
    best = _smallest_distance(fits)
    best_measured = _smallest_distance(measured_fits)
    # Where the level is off by more than the pattern, the pattern itself must be explained too.
    pattern = float(np.sqrt(np.mean(np.square(expected.change)))) or error
    largest = max(min(_UNEXPLAINED * error, _UNEXPLAINED_PATTERN * pattern), rounding)
    if best > largest or best > max(
        20 * best_measured, _UNEXPLAINED_BESIDE * error, rounding
    ):
        fits = measured_fits
        best = best_measured
        largest = max(
            min(_UNEXPLAINED_IF_MEASURED * error, _UNEXPLAINED * pattern),
            min(rounding, _UNEXPLAINED_PATTERN * pattern),
        )
    if best > largest:
        return ()
    causes = {
        fit.fault.key: _cause_of(fit.fault.key, fit.fault.number, expected.spec)
        for fit in sorted(fits, key=lambda fit: fit.distance)
        if fit.distance <= 1.2 * best + 1e-3 * error
    }
    remaining = [
        cause
        for key, cause in causes.items()
        if not _YIELDS.get(key, set()) & causes.keys()
    ]
    return tuple(dict.fromkeys(remaining))


class _Fit(NamedTuple):
    """How far an image is from the stimulus with a fault, cd/m² (RMS)."""

    distance: float
    fault: Fault


def _fit_faults(candidates: Iterable[Fault], light: Light) -> list[_Fit]:
    """Compute how far an image is from what each candidate fault would draw."""
    return [_Fit(_distance(light.pixels, fault.light), fault) for fault in candidates]


def _smallest_distance(fits: list[_Fit]) -> float:
    """Return the smallest distance among fits, infinite if there are none."""
    return min((fit.distance for fit in fits), default=np.inf)


def _distance(image: Float64, other: Float64) -> float:
    """Compute the root mean square difference of two images, cd/m²."""
    if image.shape != other.shape:
        return np.inf
    return float(np.sqrt(np.mean(np.square(image - other))))


def _rounding_error(light: Light, display: Display | None) -> float:
    """Estimate the error that rounding to codes leaves, cd/m² (RMS); 0 without codes."""
    if light.drive is None or display is None or not light.codes:
        return 0.0
    half = 0.5 / light.codes
    drive = np.clip(light.drive, half, 1 - half)
    step = np.asarray(display.decode(drive + half)) - np.asarray(
        display.decode(drive - half)
    )
    # Rounding a uniform value leaves 0.29 of a step; it varies by chance.
    return 0.4 * float(np.sqrt(np.mean(np.square(step))))


def _is_rounding(light: Light, expected: ExpectedImage) -> bool:
    """Tell whether an image differs from the requested one by rounding alone."""
    distance = _distance(light.pixels, expected.light)
    if isinstance(expected.spec, Noise | AnnulusNoise):
        # Another sample has other pixels, of the same mean and spread.
        shift = light.pixels.mean() - expected.light.mean()
        distance = float(
            np.sqrt(shift**2 + abs(light.pixels.var() - expected.light.var()))
        )
    return 0 < distance <= 2 * _rounding_error(light, expected.display)


def _cause_of(key: str, number: float, spec: Any) -> Cause:
    """Build a cause whose explanation states the number that was measured."""
    if key in CAUSES:
        explanation = CAUSES[key].explanation.format(number=number, spec=spec)
        return replace(CAUSES[key], explanation=explanation)
    requested = getattr(spec, key)
    return Cause(
        name=f"another {key}",
        explanation=f"{key} is {number:.4g} where {requested:.4g} was asked, and all else is "
        "right",
        remedy=f"Look where {key} enters the drawing, and in which unit",
        shows=(key,),
    )


# -- several faults together
# --------------------------------------------------------------------------------------------------


def _joint_causes(
    light: Light, expected: ExpectedImage, measurements: Measurements
) -> list[Cause]:
    """Find faults of place, then of contrast and encoding, that together explain an image."""
    spec = expected.spec
    causes = list(_geometry_causes(measurements, spec))
    placed = _placed_as_delivered(measurements, spec)
    # Resizing blurs: what it takes from the contrast is no fault by itself.
    if placed != spec and CAUSES["resized"] not in causes:
        expected = ExpectedImage.like(light, placed, expected.display)
        levels = faults_of_level(expected)
        causes += _fitting_causes(
            light, expected, levels, measured_levels(expected, light)
        )
    return causes


def _placed_as_delivered(
    measurements: Measurements, spec: Specification
) -> Specification:
    """Copy the specification with frequency, place and phase as measured.

    Its contrast can then be judged by itself.
    """
    if not isinstance(spec, Gabor | Grating):
        return spec
    changes: JsonObject = {}
    for name in WAVE_PARAMETERS:
        if has_failed(measurements, name):
            changes[name] = measurements[name].delivered
    for axis in "xy":
        if has_failed(measurements, f"position {axis}"):
            changes[axis] = measurements[f"position {axis}"].delivered / spec.ppd
    if not changes:
        return spec
    if "phase" in changes or "position x" in measurements:
        changes["phase"] = _phase_at_centre(measurements, spec)
    try:
        return replace(spec, **changes)
    except InputError:
        return spec


def _phase_at_centre(measurements: Measurements, spec: Gabor | Grating) -> float:
    """Compute the phase at the centre of the delivered envelope, deg.

    The phase of the certificate is that at the centre that was requested.
    """
    shift = []
    for axis in "xy":
        position = measurements.get(f"position {axis}")
        shift.append(position.error or 0.0 if position else 0.0)
    frequency = measurements["frequency"].delivered
    vector = wave_vector(frequency, measurements["orientation"].delivered)
    return float(
        measurements["phase"].delivered + 360 * np.dot(vector, shift) / spec.ppd
    )


def _geometry_causes(
    measurements: Measurements, spec: Specification
) -> Iterator[Cause]:
    """Iterate over the faults of size, angle, place or phase that explain failed measurements."""
    if not isinstance(spec, Gabor | Grating):
        return
    radius_failed = has_failed(measurements, "radius")
    if has_failed(measurements, "frequency"):
        ratio = measurements["frequency"].delivered / spec.frequency
        includes_ends = False
        for pixels in set(spec.shape):
            step = 1 / (pixels - 1) if pixels > 1 else 0.0
            if min(abs(ratio - 1 - step), abs(1 / ratio - 1 - step)) < 0.05 * step:
                includes_ends = True
                yield CAUSES["both_ends"]
        if is_resized(ratio):
            yield CAUSES["resized"]
            return
        inverse = (
            measurements["radius"].delivered / spec.radius if radius_failed else 1.0
        )
        smaller_change = min(abs(ratio - 1), abs(inverse - 1))
        if not includes_ends and abs(ratio * inverse - 1) < 0.05 * smaller_change:
            yield _cause_of("wrong_ppd", spec.ppd / ratio, spec)
    if has_failed(measurements, "orientation"):
        angle = measurements["orientation"].delivered
        if abs((angle + spec.orientation + 90) % 180 - 90) < 0.01:
            yield CAUSES["mirrored"]
            return
    if radius_failed:
        radius = measurements["radius"].delivered
        if abs(radius * FULL_WIDTH / spec.radius - 1) < 0.01:
            yield CAUSES["full_width"]
    if _is_half_pixel(measurements, spec):
        yield CAUSES["half_pixel"]
    if has_failed(measurements, "phase"):
        lag = (_phase_at_centre(measurements, spec) - spec.phase + 180) % 360 - 180
        if abs(abs(lag) - 90) < 0.5:
            yield CAUSES["sine_phase"]
        elif abs(abs(lag) - 180) < 0.5:
            yield CAUSES["inverted"]


def _is_half_pixel(measurements: Measurements, spec: Gabor | Grating) -> bool:
    """Tell whether a pattern is shifted by half a pixel along x, y or both."""
    if "position x" in measurements:
        shifts = [abs(measurements[f"position {axis}"].error or 0.0) for axis in "xy"]
        gaps = [abs(shift - 0.5) for shift in shifts]
        return min(gaps) < 0.02 and max(map(min, shifts, gaps)) < 0.02
    if not has_failed(measurements, "phase"):
        return False
    vector = np.array(wave_vector(spec.frequency, spec.orientation))
    lag_x, lag_y = vector * 360 * 0.5 / spec.ppd
    lag = abs(measurements["phase"].error or 0.0)
    half_pixels = (
        abs(dx * lag_x + dy * lag_y) for dx, dy in product((-1, 0, 1), repeat=2)
    )
    return any(
        half_pixel > 0 and abs(lag - half_pixel) < 0.02 * half_pixel + 1e-3
        for half_pixel in half_pixels
    )


# -- noise
# --------------------------------------------------------------------------------------------------


def _is_stretched(light: Light, spec: Noise) -> bool:
    """Tell whether pixels were stretched to a range centred on the requested mean."""
    if light.space != "luminance":
        return False
    low = float(light.pixels.min())
    high = float(light.pixels.max())
    mean_error = abs(float(light.pixels.mean()) / spec.luminance - 1)
    centre_error = abs((low + high) / (2 * float(spec.luminance)) - 1)
    return bool(mean_error > 1e-5 and centre_error < min(1e-5, 0.1 * mean_error))


def _other_band(light: Light, spec: Noise | AnnulusNoise) -> Iterator[Cause]:
    """Yield the cause of a band of the right width at another frequency, if it fits."""
    if light.space != "luminance" or not spec.contrast:
        return
    bin_width = spec.ppd / min(spec.shape)
    edges = estimate.band_limits(light.pixels, spec.ppd, floor=1e-3)
    low, high = np.asarray(edges, dtype=float) / spec.band
    doubts = 1.5 * bin_width / np.asarray(spec.band, dtype=float)
    if abs(low - high) > sum(doubts) * max(low, high) or abs(high - 1) <= doubts[1]:
        return
    if any(abs(high * side - 1) < doubts[1] for side in spec.field):
        yield CAUSES["cycles_per_image"]
    else:
        yield _cause_of("wrong_ppd", spec.ppd / high, spec)


def _recreated(
    delivered: Measurements, light: Light, expected: ExpectedImage
) -> list[Cause]:
    """Find faults of contrast and encoding that reproduce the measured errors."""
    quantities = _LEVELS if light.space == "luminance" else (*_LEVELS, *_COLOURS)
    if not any(has_failed(delivered, quantity) for quantity in quantities):
        return []
    gaps: dict[str, float] = {}
    for fault in faults_of_level(expected):
        try:
            recreated = measure_images(
                fault.light,
                light.space,
                expected.spec,
                light.precision,
                expected.display,
                refined=False,
            )
        except InputError:
            continue
        predicted = {measurement.quantity: measurement for measurement in recreated}
        gap = _error_gap(delivered, predicted, quantities)
        if gap is not None:
            gaps[fault.key] = min(gap, gaps.get(fault.key, np.inf))
    best = min(gaps.values(), default=0.0)
    return [CAUSES[key] for key, gap in gaps.items() if gap <= 1.5 * best + 1e-3]


def _error_gap(
    delivered: Measurements, predicted: Measurements, quantities: tuple[str, ...]
) -> float | None:
    """Compute how far reproduced errors are from those measured, as a fraction.

    None if they are too far.
    """
    worst = 0.0
    explains = False
    for quantity in quantities:
        if quantity not in delivered or quantity not in predicted:
            continue
        measurement = delivered[quantity]
        other = predicted[quantity]
        if (
            measurement.error is None
            or other.error is None
            or measurement.tolerance is None
        ):
            continue
        gap = abs(measurement.error - other.error)
        larger = max(abs(measurement.error), abs(other.error))
        if not measurement.passed and not other.passed and gap < 0.2 * larger:
            explains = True
        # Errors below a tenth of a percent may come with another fault: they do not speak against
        # this one.
        worst = max(worst, gap / max(larger, 3 * measurement.tolerance, 1e-3))
    return worst if explains and worst < 0.1 else None


# -- colour and codes
# --------------------------------------------------------------------------------------------------


def _leak(light: Light, spec: Modulation, display: Display | None) -> Cause:
    """Build the cause of luminance left in an isoluminant pattern, naming who would see none."""
    lms = to_lms(light.pixels, light.space, spec, display)
    xyz = lms @ cone_observer(spec.observer).to_xyz.T
    weights = {"CIE 1931 luminance": np.array([0.0, 1.0, 0.0])}
    for name, observer in CONE_OBSERVERS.items():
        weights[f"L + M of {name}"] = observer.from_xyz[:2].sum(axis=0)
    for name, weight in weights.items():
        luminance = xyz @ weight
        if np.abs(luminance / luminance.mean() - 1).max() < 1e-4:
            return replace(
                CAUSES["leak"],
                explanation=f"it is isoluminant for {name}, not for L + M of {spec.observer}",
            )
    return CAUSES["leak"]


def _rounding_cause(light: Light, expected: ExpectedImage) -> Cause | None:
    """Find how drive became codes (rounded, cut off, wrapped), where that gives just these."""
    if light.drive is None or expected.display is None or not light.codes:
        return None
    rgb = expected.rgb()
    if rgb.ndim < light.drive.ndim:
        rgb = np.repeat(rgb[..., None], 3, axis=-1)
    if rgb.shape != light.drive.shape:
        return None
    exact = encode_linear(rgb, expected.display) * light.codes
    codes = light.drive * light.codes
    candidates = {"rounded": np.round(exact), "truncated": np.floor(exact)}
    if exact.max() >= light.codes + 1:
        candidates["wrapped"] = np.mod(np.floor(exact), light.codes + 1)
    agreement = {
        key: np.mean(np.abs(codes - candidate) < 0.5)
        for key, candidate in candidates.items()
    }
    best = max(agreement, key=agreement.__getitem__)
    if agreement[best] <= 0.99:
        if not _is_dithered(codes - exact, exact):
            return None
        best = "dithered"
    return _cause_for_codes(best, light.codes)


def _cause_for_codes(key: str, codes: int) -> Cause:
    """Build a cause that is described for 8 bits, for another number of codes."""
    cause = CAUSES[key]
    if codes == 255:
        return cause
    return replace(cause, name=cause.name.replace("8", str(codes.bit_length()), 1))


def _is_dithered(error: Float64, exact: Float64) -> bool:
    """Tell whether codes differ from exact ones by noise of one or two steps.

    The noise must not depend on the pattern.
    """
    share = exact - np.floor(exact)
    largest = np.abs(error).max()
    variance = float((share * (1 - share)).mean()) if largest <= 1 else 0.25
    if not variance > 1e-3 or largest > 1.5:
        return False
    doubt = 5 * np.sqrt(variance / error.size)
    pattern = exact - exact.mean()
    deviation = pattern.std()
    projection = float((error * pattern).mean() / deviation) if deviation else 0.0
    independent = abs(error.mean()) < doubt and abs(projection) < doubt
    return bool(independent and abs(error.var() / variance - 1) < 0.1)
