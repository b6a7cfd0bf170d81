"""From a failed measurement to its likely cause, the root before what follows from it.

An image is compared, pixel by pixel, with the stimulus that was asked for as it comes out with one
fault; the faults that leave nothing to explain are named. Where several came together, what is
wrong with the place and size of the wave is read off its parameters (half a pixel, N/(N - 1),
224/256), and contrast and encoding are judged where the wave lies. Samples of noise differ from one
another: of them numbers are compared, and not pixels.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import InputError
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
from psyprobe.stimulus.certificate import Row, image_rows, to_lms
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.sines import wave_vector
from psyprobe.testing.faults import (
    FULL_WIDTH,
    Asked,
    Faulty,
    encoded,
    faults,
    faults_of_level,
    is_resized,
    measured_faults,
    measured_levels,
)

if TYPE_CHECKING:
    from psyprobe.testing.light import Light


@dataclass(frozen=True)
class Cause:
    """What probably went wrong.

    Examples
    --------
    >>> print(Cause("upside down", "rows were read from below", "Turn the rows"))
    upside down: rows were read from below. Turn the rows.
    """

    #: In a few words.
    name: str
    #: How it comes about.
    explanation: str
    #: What to do.
    remedy: str
    #: Quantities of the certificate that it changes itself; what else is off follows from them.
    shows: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.explanation}. {self.remedy}."


_PAGE = tomllib.loads(files("psyprobe.testing").joinpath("causes.toml").read_text(encoding="utf-8"))
#: Every fault that can be named, by its key in ``causes.toml``.
CAUSES = {key: Cause(**row | {"shows": tuple(row["shows"])}) for key, row in _PAGE.items()}

#: Share of what is wrong with an image that a fault may leave unexplained: one without a number of
#: its own, whose constants are rounded (2.35 for 2.3548), one with a number, and one without beside
#: one with that leaves less.
_UNEXPLAINED = 0.02
_UNMEASURED = 1e-3
_BESIDE = 5e-3

#: Faults that are another fault too where that one fits as well: centred, a mirror image is only
#: turned.
_YIELDS = {
    "flipped": {"mirrored"},
    "root_two": {"stretched_sine"},
    "square": {"stretched_sine"},
    "frequency": {"wrong_ppd", "resized"},
}

#: Where a wave lies: all else is measured where it should.
_PLACE = ("frequency", "orientation", "radius", "aspect", "position x", "position y", "phase")

#: Rows on which a fault in contrast or level shows.
_LEVEL_ROWS = ("contrast", "rms contrast", "mean luminance", "background")
_COLOUR_ROWS = ("L cone contrast", "M cone contrast", "S cone contrast", "luminance modulation")


def diagnose(
    rows: tuple[Row, ...], light: Light, asked: Specification, display: Display | None
) -> tuple[Cause, ...]:
    """Likely causes of the failures among the rows, the most telling first; none if no signature is
    known.

    Parameters
    ----------
    rows : tuple of Row
        Of one image.
    light : Light
        That image.
    asked : Specification
        What it was meant to be: one image.
    display : Display or None
        Without it, faults of encoding are not looked for.
    """
    delivered = {row.quantity: row for row in rows}
    if all(row.passed for row in rows) or not isinstance(asked, Modulation | Uniform):
        return ()
    if isinstance(asked, Noise) and _is_stretched(light, asked):
        return (CAUSES["stretched_noise"],)
    wanted = Asked.of(asked, light, display)
    if exact := _same_codes(light, wanted):
        return (exact,)
    if alone := _alone(light, wanted, delivered):
        return alone
    if isinstance(asked, Noise | AnnulusNoise):
        causes = [*_other_band(light, asked), *_recreated(delivered, light, wanted)]
    else:
        causes = _together(light, wanted, delivered)
    if isinstance(asked, Modulation) and _failed(delivered, "luminance modulation"):
        causes = [cause for cause in causes if cause == CAUSES["swapped"]] or [
            _leak(light, asked, display)
        ]
    if not causes and light.codes:
        causes = [_of_codes("rounded", light.codes)]
    return tuple(dict.fromkeys(causes))


def roots_first(failures: Iterable[Row], causes: Iterable[Cause]) -> tuple[list[Row], list[Row]]:
    """Failed rows in which the causes show themselves, and those that follow from them; without a
    cause none follows.

    Where a wave lies comes before its contrast, which is measured where it should lie; within that,
    the largest error.
    """
    shown = {quantity for cause in causes for quantity in cause.shows}
    place = {quantity: index for index, quantity in enumerate(_PLACE)}
    last = len(place)
    ordered = sorted(
        failures,
        key=lambda row: (place.get(row.quantity, last), -float(f"{abs(row.error or 0.0):.1e}")),
    )
    roots = [row for row in ordered if row.quantity in shown] or ordered
    return roots, [row for row in ordered if row not in roots]


def told(row: Row, precision: str | None = None) -> str:
    """A failed row in words; with its tolerance where the precision is given."""
    where = "" if row.image is None else f" in image {row.image}"
    off = f" ({100 * row.error:+.3g} %)" if row.relative and row.error is not None else ""
    unit = f" {row.unit}" if row.unit else ""
    if precision is None:
        return f"{row.quantity} {off.strip(' ()') or f'{row.delivered:.3g}{unit}'}{where}"
    return (
        f"{row.quantity}: requested {row.requested:.6g}{unit}, delivered "
        f"{row.delivered:.6g}{unit}{off}{where}; "
        f"tolerance {row.tolerance:.2g}{'' if row.relative else unit} ({precision})"
    )


# -- one fault that explains all
# ---------------------------------------------------------------------------------------


def _alone(light: Light, asked: Asked, rows: Mapping[str, Row]) -> tuple[Cause, ...]:
    """The faults of which each explains the image by itself."""
    if asked.light.shape != light.pixels.shape:
        return ()
    return _fitting(light, asked, faults(asked), measured_faults(asked, light, rows))


def _fitting(
    light: Light,
    asked: Asked,
    known: Iterable[Faulty],
    measured: Iterable[tuple[str, float, Float64]],
) -> tuple[Cause, ...]:
    """Those of the faults that leave next to nothing; one with a number of its own only where no
    other does.
    """
    off = _distance(light.pixels, asked.light)
    step = _rounding(light, asked.display)
    if off <= max(step, 1e-7 * asked.spec.luminance):
        return ()
    plain = [(_distance(light.pixels, pixels), CAUSES[key], key) for key, pixels in known]
    fitted = [
        (_distance(light.pixels, pixels), _told(key, number, asked), key)
        for key, number, pixels in measured
    ]
    best, second = (min((gap for gap, *_ in each), default=np.inf) for each in (plain, fitted))
    enough = max(_UNEXPLAINED * off, step)
    if best > enough or best > max(20 * second, _BESIDE * off, step):
        plain = fitted
        best = second
        enough = max(_UNMEASURED * off, step)
    if best > enough:
        return ()
    found = {key: cause for gap, cause, key in plain if gap <= 1.2 * best + 1e-3 * off}
    return tuple(
        dict.fromkeys(
            cause for key, cause in found.items() if not _YIELDS.get(key, set()) & found.keys()
        )
    )


def _distance(one: Float64, other: Float64) -> float:
    """Root mean square difference, cd/m²."""
    return float(np.sqrt(np.mean(np.square(one - other)))) if one.shape == other.shape else np.inf


def _rounding(light: Light, display: Display | None) -> float:
    """What rounding to codes leaves, cd/m² (RMS), with room for its chance; 0 where there are
    none.
    """
    if light.drive is None or display is None or not light.codes:
        return 0.0
    half = 0.5 / light.codes
    drive = np.clip(light.drive, half, 1 - half)
    width = np.asarray(display.decode(drive + half)) - np.asarray(display.decode(drive - half))
    return 0.4 * float(np.sqrt(np.mean(np.square(width))))


def _told(key: str, number: float, asked: Asked) -> Cause:
    """A cause with the number that the image tells of it."""
    spec = asked.spec
    if key == "wrong_ppd":
        what = (
            f"it is the image for {number:.4g} pixels per degree, where {spec.ppd:.4g} were asked"
        )
        return replace(
            CAUSES[key], explanation=f"{what}: frequency and sizes are off by inverse factors"
        )
    if key in ("mean", "contrast"):
        return replace(
            CAUSES[key], explanation=f"{CAUSES[key].explanation} {number:.4g} times what was asked"
        )
    if key == "stray":
        return replace(
            CAUSES[key], explanation=f"{number:+.4g} cd/m² were added to the light of every pixel"
        )
    if key in CAUSES:
        return CAUSES[key]
    return _other(key, getattr(spec, key), number)


def _other(name: str, asked: float, delivered: float) -> Cause:
    """One parameter that has another value, while all else is as asked."""
    return Cause(
        name=f"another {name}",
        explanation=f"{name} is {delivered:.4g} where {asked:.4g} was asked, and all else is right",
        remedy=f"Look where {name} enters the drawing, and in which unit",
        shows=(name,),
    )


# -- several faults together
# -------------------------------------------------------------------------------------------


def _together(light: Light, asked: Asked, rows: Mapping[str, Row]) -> list[Cause]:
    """What is wrong with the wave's place, and then with contrast and encoding where it lies."""
    causes = list(_geometry(rows, asked.spec))
    settled = _as_delivered(rows, asked.spec)
    # Resizing blurs: what it takes from the contrast is no fault of its own.
    if settled != asked.spec and CAUSES["resized"] not in causes:
        there = Asked.of(settled, light, asked.display)
        causes += _fitting(light, there, faults_of_level(there), measured_levels(there, light))
    return causes


def _as_delivered(rows: Mapping[str, Row], asked: Specification) -> Specification:
    """What was asked, but where and how the wave really lies: its contrast can then be judged by
    itself.
    """
    names = ("frequency", "orientation", "phase", "radius", "aspect")
    found: dict[str, Any] = {name: rows[name].delivered for name in names if _failed(rows, name)}
    found |= {
        axis: rows[f"position {axis}"].delivered / asked.ppd
        for axis in "xy"
        if _failed(rows, f"position {axis}")
    }
    if not found or not isinstance(asked, Gabor | Grating):
        return asked
    if "phase" in found or "position x" in rows:
        found["phase"] = _phase_at_centre(rows, asked)
    try:
        return replace(asked, **found)
    except InputError:
        return asked


def _phase_at_centre(rows: Mapping[str, Row], asked: Gabor | Grating) -> float:
    """Phase at the centre of the envelope delivered, deg; that of the certificate is at the centre
    asked for.
    """
    shift = [
        rows[f"position {axis}"].error or 0.0 if f"position {axis}" in rows else 0.0
        for axis in "xy"
    ]
    vector = wave_vector(rows["frequency"].delivered, rows["orientation"].delivered)
    return float(rows["phase"].delivered + 360 * np.dot(vector, shift) / asked.ppd)


def _failed(rows: Mapping[str, Row], quantity: str) -> bool:
    return quantity in rows and not rows[quantity].passed


def _geometry(rows: Mapping[str, Row], asked: Specification) -> Iterator[Cause]:
    if not isinstance(asked, Gabor | Grating):
        return
    if _failed(rows, "frequency"):
        row = rows["frequency"]
        ratio = row.delivered / asked.frequency
        ends = False
        for pixels in set(asked.shape):
            step = 1 / (pixels - 1) if pixels > 1 else 0.0
            if min(abs(ratio - 1 - step), abs(1 / ratio - 1 - step)) < 0.05 * step:
                ends = True
                yield CAUSES["both_ends"]
        if is_resized(ratio):
            yield CAUSES["resized"]
            return
        inverse = rows["radius"].delivered / asked.radius if _failed(rows, "radius") else 1.0
        if not ends and abs(ratio * inverse - 1) < 0.05 * min(abs(ratio - 1), abs(inverse - 1)):
            yield _told("wrong_ppd", asked.ppd / ratio, Asked(asked, None, "luminance", False))
    if _failed(rows, "orientation"):
        turned = rows["orientation"].delivered
        if abs((turned + asked.orientation + 90) % 180 - 90) < 0.01:
            yield CAUSES["mirrored"]
            return
    if (
        _failed(rows, "radius")
        and abs(rows["radius"].delivered * FULL_WIDTH / asked.radius - 1) < 0.01
    ):
        yield CAUSES["full_width"]
    if _is_half_pixel(rows, asked):
        yield CAUSES["half_pixel"]
    if _failed(rows, "phase"):
        late = (_phase_at_centre(rows, asked) - asked.phase + 180) % 360 - 180
        if abs(abs(late) - 90) < 0.5:
            yield CAUSES["sine_phase"]
        elif abs(abs(late) - 180) < 0.5:
            yield CAUSES["inverted"]


def _is_half_pixel(rows: Mapping[str, Row], asked: Gabor | Grating) -> bool:
    if "position x" in rows:
        shifts = [abs(rows[f"position {axis}"].error or 0.0) for axis in "xy"]
        if any(abs(shift - 0.5) < 0.02 for shift in shifts):
            return all(min(abs(shift), abs(shift - 0.5)) < 0.02 for shift in shifts)
        return False
    if not _failed(rows, "phase"):
        return False
    along = np.array(wave_vector(asked.frequency, asked.orientation)) * 360 * 0.5 / asked.ppd
    lags = [abs(dx * along[0] + dy * along[1]) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
    late = abs(rows["phase"].error or 0.0)
    return any(lag > 0 and abs(late - lag) < 0.02 * lag + 1e-3 for lag in lags)


# -- noise
# -------------------------------------------------------------------------------------------------------------


def _is_stretched(light: Light, asked: Noise) -> bool:
    """A range centred on the mean that was asked: by chance that does not happen."""
    if light.space != "luminance":
        return False
    low = float(light.pixels.min())
    high = float(light.pixels.max())
    off = abs(float(light.pixels.mean()) / asked.luminance - 1)
    middle = abs((low + high) / (2 * float(asked.luminance)) - 1)
    return bool(off > 1e-5 and middle < min(1e-5, 0.1 * off))


def _other_band(light: Light, asked: Noise | AnnulusNoise) -> Iterator[Cause]:
    """A band of the right width at another frequency."""
    if light.space != "luminance" or not asked.contrast:
        return
    found = [float(edge) for edge in estimate.band_limits(light.pixels, asked.ppd, floor=1e-3)]
    bin_width = asked.ppd / min(asked.shape)
    ratios = [got / float(edge) for got, edge in zip(found, asked.band, strict=True)]
    doubt = [1.5 * bin_width / float(edge) for edge in asked.band]
    if abs(ratios[0] - ratios[1]) > sum(doubt) * max(ratios) or abs(ratios[1] - 1) <= doubt[1]:
        return
    if any(abs(ratios[1] * side - 1) < doubt[1] for side in asked.field):
        yield CAUSES["cycles_per_image"]
    else:
        yield _told("wrong_ppd", asked.ppd / ratios[1], Asked(asked, None, "luminance", False))


def _recreated(delivered: Mapping[str, Row], light: Light, asked: Asked) -> list[Cause]:
    """Faults in contrast and encoding whose errors are those delivered."""
    quantities = _LEVEL_ROWS if light.space == "luminance" else (*_LEVEL_ROWS, *_COLOUR_ROWS)
    if not any(_failed(delivered, quantity) for quantity in quantities):
        return []
    found: list[tuple[float, Cause]] = []
    for key, pixels in faults_of_level(asked):
        try:
            again = image_rows(
                pixels, light.space, asked.spec, light.precision, asked.display, refined=False
            )
        except InputError:
            continue
        gap = _errors_apart(delivered, {row.quantity: row for row in again}, quantities)
        if gap is not None:
            found.append((gap, CAUSES[key]))
    best = min((gap for gap, _ in found), default=0.0)
    return [cause for gap, cause in found if gap <= 1.5 * best + 1e-3]


def _errors_apart(
    delivered: Mapping[str, Row], predicted: Mapping[str, Row], quantities: tuple[str, ...]
) -> float | None:
    """How far the errors of a re-creation are from those delivered, as a fraction; None if too
    far.
    """
    worst = 0.0
    explains = False
    for quantity in quantities:
        if quantity not in delivered or quantity not in predicted:
            continue
        row = delivered[quantity]
        other = predicted[quantity]
        if row.error is None or other.error is None or row.tolerance is None:
            continue
        gap = abs(row.error - other.error)
        larger = max(abs(row.error), abs(other.error))
        explains = explains or (not (row.passed or other.passed) and gap < 0.2 * larger)
        # Errors below a tenth of a percent may come with another fault: they do not speak against
        # this one.
        worst = max(worst, gap / max(larger, 3 * row.tolerance, 1e-3))
    return worst if explains and worst < 0.1 else None


# -- colour and codes
# --------------------------------------------------------------------------------------------------


def _leak(light: Light, asked: Modulation, display: Display | None) -> Cause:
    """The leak, with the observer for whom there is none, if one is known."""
    xyz = to_lms(light.pixels, light.space, asked, display) @ cone_observer(asked.observer).to_xyz.T
    weights = {"CIE 1931 luminance": np.array([0.0, 1.0, 0.0])}
    weights |= {
        f"L + M of {name}": other.from_xyz[:2].sum(axis=0) for name, other in CONE_OBSERVERS.items()
    }
    for name, weight in weights.items():
        luminance = xyz @ weight
        if np.abs(luminance / luminance.mean() - 1).max() < 1e-4:
            return replace(
                CAUSES["leak"],
                explanation=f"it is isoluminant for {name}, not for L + M of {asked.observer}",
            )
    return CAUSES["leak"]


def _same_codes(light: Light, asked: Asked) -> Cause | None:
    """The way of going to codes that gives just these."""
    if light.drive is None or asked.display is None or not light.codes:
        return None
    wanted = asked.rgb()
    if wanted.shape != light.drive.shape or asked.display.guns_differ:
        return None
    exact = encoded(wanted, asked.display) * light.codes
    codes = light.drive * light.codes
    ways = {"rounded": np.round(exact), "truncated": np.floor(exact)}
    ways |= (
        {"wrapped": np.mod(np.floor(exact), light.codes + 1)}
        if exact.max() >= light.codes + 1
        else {}
    )
    alike = {key: float(np.mean(np.abs(codes - each) < 0.5)) for key, each in ways.items()}
    best = max(alike, key=lambda key: alike[key])
    if alike[best] > 0.99:
        return _of_codes(best, light.codes)
    return _of_codes("dithered", light.codes) if _is_dithered(codes - exact, exact) else None


def _of_codes(key: str, codes: int) -> Cause:
    """A cause that is told of 8 bits, for codes of so many."""
    cause = CAUSES[key]
    return (
        cause
        if codes == 255
        else replace(cause, name=cause.name.replace("8", str(codes.bit_length()), 1))
    )


def _is_dithered(off: Float64, exact: Float64) -> bool:
    """Whether codes differ from the exact ones by noise of one or two steps, and by nothing that
    knows the pattern.
    """
    share = exact - np.floor(exact)
    largest = np.abs(off).max()
    expected = float((share * (1 - share)).mean()) if largest <= 1 else 0.25
    if not expected > 1e-3 or largest > 1.5:
        return False
    doubt = 5 * np.sqrt(expected / off.size)
    pattern = exact - exact.mean()
    along = float((off * pattern).mean() / pattern.std()) if pattern.std() else 0.0
    return bool(
        abs(off.mean()) < doubt and abs(along) < doubt and abs(off.var() / expected - 1) < 0.1
    )
