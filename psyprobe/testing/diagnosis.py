"""From a failed measurement to its likely cause.

Two kinds of signature are looked for. A *number* that speaks for itself: half a pixel, N/(N - 1), 224/256. And a
*re-creation*: the stimulus that was asked for is drawn with one known fault and measured in the same way; a fault
whose errors agree with those delivered is named. Each fault has been seen in software that people use.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import InputError
from psyprobe.light.colour import CONE_OBSERVERS, cone_observer
from psyprobe.light.display import Display
from psyprobe.stimulus import Gabor, Grating, Modulation, Noise, Specification, Uniform, estimate
from psyprobe.stimulus.certificate import Row, image_rows, to_lms
from psyprobe.stimulus.estimate import Float64

if TYPE_CHECKING:
    from psyprobe.testing.assertions import Light


@dataclass(frozen=True)
class Cause:
    """What probably went wrong."""

    #: In a few words.
    name: str
    #: How it comes about.
    explanation: str
    #: What to do.
    remedy: str

    def __str__(self) -> str:
        return f"{self.name}: {self.explanation}. {self.remedy}."


_PAGE = tomllib.loads(files("psyprobe.testing").joinpath("causes.toml").read_text(encoding="utf-8"))
#: Every fault that can be named, by its key in ``causes.toml``.
CAUSES = {key: Cause(**row) for key, row in _PAGE.items()}

#: Rows on which a fault in contrast or level shows.
_LEVEL_ROWS = ("contrast", "rms contrast", "mean luminance", "background")
_COLOUR_ROWS = ("L cone contrast", "M cone contrast", "S cone contrast", "luminance modulation")


def diagnose(rows: tuple[Row, ...], light: Light, asked: Specification, display: Display | None) -> tuple[Cause, ...]:
    """Likely causes of the failures among the rows, the most telling first; none if no signature is known.

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
    if exact := _same_codes(light, asked, display):
        return (exact,)
    if level := _recreated(delivered, light, asked, display):
        return tuple(dict.fromkeys(level))
    causes = list(_geometry(delivered, asked))
    settled = _as_delivered(delivered, asked)
    if settled != asked:
        rows = image_rows(light.pixels, light.space, settled, light.precision, display, refined=False)
        causes += _recreated({row.quantity: row for row in rows}, light, settled, display)
    if isinstance(asked, Modulation) and _failed(delivered, "luminance modulation"):
        causes = [cause for cause in causes if cause == CAUSES["swapped"]] or [_leak(light, asked, display)]
    if not causes and _on_codes(light):
        causes = [CAUSES["rounded"]]
    return tuple(dict.fromkeys(causes))


def _as_delivered(rows: Mapping[str, Row], asked: Specification) -> Specification:
    """What was asked, but where and how the wave really lies: its contrast can then be judged by itself."""
    names = ("frequency", "orientation", "phase", "radius", "aspect")
    found: dict[str, Any] = {name: rows[name].delivered for name in names if _failed(rows, name)}
    found |= {
        axis: rows[f"position {axis}"].delivered / asked.ppd for axis in "xy" if _failed(rows, f"position {axis}")
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
    """Phase at the centre of the envelope delivered, deg; that of the certificate is at the centre asked for."""
    shift = [rows[f"position {axis}"].error or 0.0 if f"position {axis}" in rows else 0.0 for axis in "xy"]
    vector = estimate.wave_vector(rows["frequency"].delivered, rows["orientation"].delivered)
    return float(rows["phase"].delivered + 360 * np.dot(vector, shift) / asked.ppd)


def _failed(rows: Mapping[str, Row], quantity: str) -> bool:
    return quantity in rows and not rows[quantity].passed


def _geometry(rows: Mapping[str, Row], asked: Specification) -> Iterator[Cause]:
    if not isinstance(asked, Gabor | Grating):
        return
    if _failed(rows, "frequency"):
        row = rows["frequency"]
        ratio = row.delivered / asked.frequency
        for pixels in set(asked.shape):
            step = 1 / (pixels - 1) if pixels > 1 else 0.0
            if min(abs(ratio - 1 - step), abs(1 / ratio - 1 - step)) < 0.05 * step:
                yield CAUSES["both_ends"]
        if abs(ratio / 0.875 - 1) < 0.005:
            yield CAUSES["resized"]
            return
    if _failed(rows, "orientation"):
        turned = rows["orientation"].delivered
        if abs((turned + asked.orientation + 90) % 180 - 90) < 0.01:
            yield CAUSES["mirrored"]
            return
    if _failed(rows, "radius") and abs(rows["radius"].delivered * 2.3548 / asked.radius - 1) < 0.01:
        yield CAUSES["full_width"]
    if _is_half_pixel(rows, asked):
        yield CAUSES["half_pixel"]
    if _failed(rows, "phase"):
        late = (_phase_at_centre(rows, asked) - asked.phase + 180) % 360 - 180
        if abs(abs(late) - 90) < 0.5:
            yield CAUSES["sine_phase"]


def _is_half_pixel(rows: Mapping[str, Row], asked: Gabor | Grating) -> bool:
    if "position x" in rows:
        shifts = [abs(rows[f"position {axis}"].error or 0.0) for axis in "xy"]
        if any(abs(shift - 0.5) < 0.02 for shift in shifts):
            return all(min(abs(shift), abs(shift - 0.5)) < 0.02 for shift in shifts)
        return False
    if not _failed(rows, "phase"):
        return False
    along = np.array(estimate.wave_vector(asked.frequency, asked.orientation)) * 360 * 0.5 / asked.ppd
    lags = [abs(dx * along[0] + dy * along[1]) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
    late = abs(rows["phase"].error or 0.0)
    return any(lag > 0 and abs(late - lag) < 0.02 * lag + 1e-3 for lag in lags)


def _is_stretched(light: Light, asked: Noise) -> bool:
    """A range centred on the mean that was asked: by chance that does not happen."""
    if light.space != "luminance":
        return False
    low, high = float(light.pixels.min()), float(light.pixels.max())
    off = abs(float(light.pixels.mean()) / asked.luminance - 1)
    middle = abs((low + high) / (2 * float(asked.luminance)) - 1)
    return bool(off > 1e-5 and middle < min(1e-5, 0.1 * off))


def _recreated(delivered: Mapping[str, Row], light: Light, asked: Any, display: Display | None) -> list[Cause]:
    quantities = _LEVEL_ROWS if light.space == "luminance" else (*_LEVEL_ROWS, *_COLOUR_ROWS)
    if not any(_failed(delivered, quantity) for quantity in quantities):
        return []
    found: list[tuple[float, Cause]] = []
    for key, encoding, recreate in _FAULTS:
        pixels = None if encoding and display is None else recreate(asked, display or Display())
        if pixels is None:
            continue
        space = "luminance" if pixels.ndim == 2 else "rgb"
        again = image_rows(pixels, space, asked, light.precision, display, refined=False)
        distance = _distance(delivered, {row.quantity: row for row in again}, quantities)
        if distance is not None:
            found.append((distance, CAUSES[key]))
    best = min((distance for distance, _ in found), default=0.0)
    return [cause for distance, cause in found if distance <= 1.5 * best + 1e-3]


def _distance(delivered: Mapping[str, Row], predicted: Mapping[str, Row], quantities: tuple[str, ...]) -> float | None:
    """How far the errors of a re-creation are from those delivered, as a fraction; None if too far."""
    worst, explains = 0.0, False
    for quantity in quantities:
        if quantity not in delivered or quantity not in predicted:
            continue
        row, other = delivered[quantity], predicted[quantity]
        if row.error is None or other.error is None or row.tolerance is None:
            continue
        gap, larger = abs(row.error - other.error), max(abs(row.error), abs(other.error))
        explains = explains or (not (row.passed or other.passed) and gap < 0.2 * larger)
        # Errors below a tenth of a percent may come with another fault: they do not speak against this one.
        worst = max(worst, gap / max(larger, 3 * row.tolerance, 1e-3))
    return worst if explains and worst < 0.1 else None


def _leak(light: Light, asked: Modulation, display: Display | None) -> Cause:
    """The leak, with the observer for whom there is none, if one is known."""
    xyz = to_lms(light.pixels, light.space, asked, display) @ cone_observer(asked.observer).to_xyz.T
    weights = {"CIE 1931 luminance": np.array([0.0, 1.0, 0.0])}
    weights |= {f"L + M of {name}": other.from_xyz[:2].sum(axis=0) for name, other in CONE_OBSERVERS.items()}
    for name, weight in weights.items():
        luminance = xyz @ weight
        if np.abs(luminance / luminance.mean() - 1).max() < 1e-4:
            return replace(
                CAUSES["leak"], explanation=f"it is isoluminant for {name}, not for L + M of {asked.observer}"
            )
    return CAUSES["leak"]


def _same_codes(light: Light, asked: Any, display: Display | None) -> Cause | None:
    """The way of going to 8 bits that gives just these codes."""
    if light.drive is None or display is None or not _on_codes(light):
        return None
    wanted = np.asarray(display.light(asked.draw()))
    if wanted.shape != light.drive.shape:
        wanted = np.broadcast_to(wanted[..., None], light.drive.shape) if light.drive.ndim == 3 else wanted
    exact = _encode(wanted, display) * 255
    ways = {CAUSES["rounded"]: np.round(exact), CAUSES["truncated"]: np.floor(exact)}
    ways |= {CAUSES["wrapped"]: np.mod(np.floor(exact), 256)} if exact.max() >= 256 else {}
    alike = {cause: float(np.mean(np.abs(light.drive * 255 - codes) < 0.5)) for cause, codes in ways.items()}
    best = max(alike, key=lambda cause: alike[cause])
    return best if alike[best] > 0.99 else None


def _on_codes(light: Light) -> bool:
    if light.drive is None:
        return False
    codes = light.drive * 255
    return bool(np.abs(codes - np.round(codes)).max() < 1e-5)


def _ideal(asked: Any) -> Float64 | None:
    """The luminance image asked for, or None if it has colour."""
    stimulus = asked.draw()
    return np.asarray(stimulus.pixels) if stimulus.space == "luminance" else None


def _with_contrast(factor: Callable[[float], float], asked: Any, display: Display) -> Float64 | None:
    if isinstance(asked, Uniform) or asked.direction != "achromatic":
        return None
    return _ideal(replace(asked, contrast=factor(asked.contrast)))


def _stretch(whole: bool, asked: Any, display: Display) -> Float64 | None:
    """The carrier, or the whole pattern, stretched to its own range."""
    if not isinstance(asked, Gabor | Grating) or asked.direction != "achromatic" or asked.contrast == 0:
        return None
    pattern = (np.asarray(asked.draw().pixels) / asked.luminance - 1) / asked.contrast
    if not whole:
        vector = estimate.wave_vector(asked.frequency, asked.orientation)
        turn = np.exp(1j * np.radians(asked.phase))
        across, down = estimate.carrier(asked.shape, asked.ppd, *vector, asked.x, asked.y)
        pattern = (np.outer(down, across) * turn).real
    half = float(np.ptp(pattern)) / 2
    if half < 1e-9:
        return None
    pattern = (pattern - (pattern.max() + pattern.min()) / 2) / half
    envelope = None if whole else asked.envelope()
    pattern = pattern if envelope is None else pattern * envelope
    return np.asarray(asked.luminance * (1 + asked.contrast * pattern))


def _shown(transfer: Callable[[Float64, Display], Float64], asked: Any, display: Display) -> Float64 | None:
    """Light that a display makes of drive values, which a fault makes of the light asked for."""
    return _decoded(transfer(np.asarray(display.light(asked.draw())), display), display)


def _modulated_codes(grey: float | None, asked: Any, display: Display) -> Float64 | None:
    """Drive values modulated about the drive of the background, or about mid-grey."""
    ideal = _ideal(asked)
    if ideal is None:
        return None
    base = float(_encode(np.full((1, 1), asked.luminance), display)[0, 0]) if grey is None else grey
    return _decoded(base * ideal / asked.luminance, display)


def _clipped(asked: Any, display: Display) -> Float64 | None:
    return np.asarray(np.clip(display.light(asked.draw()), display.floor, display.ceiling))


def _swapped(asked: Any, display: Display) -> Float64 | None:
    stimulus = asked.draw()
    if stimulus.space == "luminance":
        return None
    return np.asarray(display.light(stimulus))[..., ::-1]


def _decoded(drive: Float64, display: Display) -> Float64:
    return np.asarray(display.decode(np.clip(drive, 0, None if display.extended else 1)))


def _relative(light: Float64, display: Display) -> Float64:
    return np.clip((light - display.floor) / (display.peak - display.black), 0, None)


def _encode(light: Float64, display: Display) -> Float64:
    """Drive in float64 without an upper end."""
    endless = replace(display, extended=True)
    clipped = np.maximum(light, display.floor)
    drive = np.asarray(endless.encode(clipped[None], space="luminance", dtype="float64"))
    return np.asarray(drive[0, ..., 0])


def _encode_twice(light: Float64, display: Display) -> Float64:
    """Drive taken for relative light, and encoded."""
    return _encode(_encode(light, display) * (display.peak - display.black) + display.floor, display)


def _decode_first(light: Float64, display: Display) -> Float64:
    """Relative light decoded where it should be encoded."""
    return _relative(np.asarray(display.decode(_relative(light, display))), display)


#: Faults by their key in `CAUSES`, whether they are of encoding for a display that is known, and the light that a
#: stimulus with this fault has; None where it cannot have it.
_FAULTS: tuple[tuple[str, bool, Callable[[Any, Display], Float64 | None]], ...] = (
    ("stretched_sine", False, partial(_stretch, False)),
    ("stretched_sine", False, partial(_stretch, True)),
    ("twice", False, partial(_with_contrast, lambda contrast: contrast * abs(contrast))),
    ("halved", False, partial(_with_contrast, lambda contrast: contrast / 2)),
    ("codes", True, partial(_modulated_codes, None)),
    ("codes", True, partial(_modulated_codes, 0.5)),
    ("not_encoded", True, partial(_shown, _relative)),
    ("encoded_twice", True, partial(_shown, _encode_twice)),
    ("decoded", True, partial(_shown, _decode_first)),
    ("clipped", True, _clipped),
    ("swapped", False, _swapped),
)
