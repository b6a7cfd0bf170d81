"""Which quantities each kind of stimulus promises, and how each is measured from one image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psyprobe.light.colour import direction_vector
from psyprobe.stimulus import estimate, spectrum
from psyprobe.stimulus.annulus import AnnulusNoise
from psyprobe.stimulus.band_noise import Noise
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.field import Disc, Uniform
from psyprobe.stimulus.measure import Row
from psyprobe.stimulus.planes import Planes, luminance_share
from psyprobe.stimulus.refine import refine_sine
from psyprobe.stimulus.specification import Modulation
from psyprobe.stimulus.tolerances import TOLERANCES, roundoff, tolerance
from psyprobe.stimulus.wave import Gabor, Grating

#: Standard errors of a fit to pixels with rounding errors that count as rounding still: errors are not quite
#: independent from pixel to pixel, and the worst of thousands of images is looked at.
_STANDARD_ERRORS = 30.0

_LINEAR = "least squares on {E cos, E sin, 1}"
_REFINED = "Gauss-Newton on all parameters"


@dataclass
class Sheet:
    """Rows of one image, with what their tolerances depend on."""

    luminance: float
    precision: str
    shown: float = 0.0
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

    def noise(self, contrast: float, phase_error: float = 0.0) -> float:
        """Rounding error of a pixel, cd/m²; `phase_error` counts the radians by which phases reach in the field."""
        return roundoff(self.precision) * self.luminance * (2 + contrast * (2 + phase_error))


def plain_rows(light: Float64, sheet: Sheet) -> list[Row]:
    """What can be told of a kind whose promises are unknown here."""
    sheet.add("mean luminance", None, light.mean(), "mean over pixels")
    sheet.add("peak luminance", None, light.max(), "largest pixel")
    sheet.add("rms contrast", None, float(estimate.rms_contrast(light)), "SD over mean")
    return sheet.rows


def uniform_rows(planes: Planes, spec: Uniform, sheet: Sheet) -> list[Row]:
    sheet.add("mean luminance", spec.luminance, planes.light.mean(), "mean over pixels")
    sheet.add("uniformity", 0.0, planes.light.std() / spec.luminance, "SD over luminance")
    if planes.cones is not None:
        cast = np.abs(planes.cones - planes.cones.mean(axis=0)).max()
        sheet.add("colour cast", 0.0, cast, "largest difference between cone contrasts")
    return sheet.rows


def wave_rows(planes: Planes, spec: Gabor | Grating, sheet: Sheet) -> None:
    envelope = envelope_of(spec)
    balanced = bool(getattr(spec, "balanced", False))
    where = {"ppd": spec.ppd, "orientation": spec.orientation, "x": spec.x, "y": spec.y}
    wave = estimate.carrier(
        spec.shape, spec.ppd, *estimate.wave_vector(spec.frequency, spec.orientation), spec.x, spec.y
    )
    unit = (wave * np.exp(1j * np.radians(spec.phase))).real
    if envelope is not None:
        unit = unit * envelope
    if balanced and envelope is not None:
        unit = unit - envelope * (unit.sum() / envelope.sum())
    depth = spec.contrast * luminance_share(spec)
    level = spec.luminance
    sheet.add("mean luminance", level * (1 + depth * unit.mean()), planes.light.mean(), "mean over pixels")
    reach = 2 * np.pi * spec.frequency * max(spec.field)
    noise = sheet.noise(spec.contrast, reach)
    fit = estimate.fit_sine(planes.light, frequency=spec.frequency, envelope=envelope, pedestal=balanced, **where)
    background = float(fit.background)
    sheet.add(
        "background", level, background, _LINEAR, extra=_STANDARD_ERRORS * float(fit.background_gain) * noise / level
    )
    if planes.cones is not None:
        fit = estimate.fit_sine(planes.pattern, frequency=spec.frequency, envelope=envelope, pedestal=balanced, **where)
        sheet.add("background modulation", 0.0, float(fit.background) / level - 1, _LINEAR, key="cone contrast")
    if spec.contrast == 0:
        sheet.add("distortion", 0.0, planes.pattern.std() / level, "SD over background")
        return
    scale = _STANDARD_ERRORS * noise / (spec.contrast * level)
    requested = spec.contrast
    extra = scale * float(fit.gain)
    if sheet.shown:
        sheet.add(
            "contrast",
            requested,
            float(fit.amplitude) / background,
            _LINEAR,
            key="shown contrast",
            extra=extra + 1e-7 / requested,
        )
    else:
        sheet.add("contrast", requested, float(fit.amplitude) / background, _LINEAR, extra=extra)
    if planes.cones is None:
        rms = level * depth * unit.std() / (level * (1 + depth * unit.mean()))
        delivered = planes.light.std() / planes.light.mean()
        sheet.add(
            "rms contrast", rms, delivered, "SD over mean", extra=scale / np.sqrt(unit.size) / max(unit.std(), 1e-6)
        )
    sheet.add("peak luminance", level * (1 + (depth * unit).max()), planes.light.max(), "largest pixel")
    if sheet.refined:
        _refined_rows(planes.pattern, spec, envelope, balanced, noise, sheet)


def _refined_rows(
    pattern: Float64, spec: Gabor | Grating, envelope: Float64 | None, balanced: bool, noise: float, sheet: Sheet
) -> None:
    gaussian = isinstance(spec, Gabor) or spec.window == "gaussian"
    aspect = spec.aspect if isinstance(spec, Gabor) else 1.0
    fit = refine_sine(
        pattern,
        ppd=spec.ppd,
        frequency=spec.frequency,
        orientation=spec.orientation,
        x=spec.x,
        y=spec.y,
        radius=spec.radius if gaussian else None,
        aspect=aspect,
        window=envelope,
        pedestal=balanced,
    )

    def slack(name: str, unit: float = 1.0) -> float:
        error = _STANDARD_ERRORS * fit.gain[name] * noise / unit
        return error if np.isfinite(error) else 0.0

    sheet.add("frequency", spec.frequency, fit.frequency, _REFINED, extra=slack("frequency", spec.frequency))
    turned = (fit.orientation - spec.orientation + 90) % 180 - 90
    sheet.add("orientation", spec.orientation, spec.orientation + turned, _REFINED, extra=slack("orientation"))
    ahead = (fit.phase - spec.phase + 180) % 360 - 180
    sheet.add("phase", spec.phase, spec.phase + ahead, _REFINED, extra=slack("phase"))
    if gaussian:
        for axis, asked, found in (("x", spec.x, fit.x), ("y", spec.y, fit.y)):
            extra = slack(axis) * spec.ppd
            sheet.add(f"position {axis}", asked * spec.ppd, found * spec.ppd, _REFINED, key="position", extra=extra)
        sheet.add("radius", spec.radius, fit.radius, _REFINED, extra=slack("radius", spec.radius))
        sheet.add("aspect", aspect, fit.aspect, _REFINED, extra=slack("aspect", aspect))
    sheet.add(
        "distortion",
        0.0,
        fit.residual / spec.luminance,
        "RMS that no Gabor or grating explains, over background",
        extra=_ambiguous_edge(spec) * spec.contrast + 2 * noise / spec.luminance,
    )


def envelope_of(spec: Any) -> Float64 | None:
    """The envelope that was asked for; None is 1 everywhere."""
    if isinstance(spec, Gabor):
        return estimate.gaussian(
            spec.shape, spec.ppd, spec.radius, aspect=spec.aspect, orientation=spec.orientation, x=spec.x, y=spec.y
        )
    if spec.window == "gaussian":
        return estimate.gaussian(spec.shape, spec.ppd, spec.radius, x=spec.x, y=spec.y)
    if spec.window == "none":
        return None
    edge = spec.edge if spec.window == "raised_cosine" else 0.0
    return estimate.round_window(spec.shape, spec.ppd, spec.radius, edge=edge, x=spec.x, y=spec.y)


def noise_rows(planes: Planes, spec: Noise | AnnulusNoise, sheet: Sheet) -> None:
    level, noise = spec.luminance, sheet.noise(spec.contrast)
    sheet.add("mean luminance", level, planes.light.mean(), "mean over pixels")
    sheet.add("peak luminance", None, planes.light.max(), "largest pixel")
    if planes.cones is not None:
        sheet.add(
            "background modulation", 0.0, planes.pattern.mean() / level - 1, "mean over pixels", key="cone contrast"
        )
    if spec.contrast == 0:
        sheet.add("distortion", 0.0, planes.pattern.std() / level, "SD over background")
        return
    ratio = noise / (level * spec.contrast)
    sinusoid = isinstance(spec, AnnulusNoise)
    name, unit = ("contrast", np.sqrt(2)) if sinusoid else ("rms contrast", 1.0)
    estimator = "SD over mean, times sqrt(2)" if sinusoid else "SD over mean"
    delivered = unit * planes.pattern.std() / planes.light.mean()
    extra = _STANDARD_ERRORS * ratio / np.sqrt(planes.pattern.size)
    if sheet.shown:
        sheet.add(name, spec.contrast, delivered, estimator, key="shown contrast", extra=extra + 1e-7 / spec.contrast)
    else:
        sheet.add(name, spec.contrast, delivered, estimator, key="rms contrast of noise", extra=extra)
    if delivered < 1e-12:
        return
    low, high = (float(edge) for edge in spec.band)
    if isinstance(spec, AnnulusNoise):
        if not spec.window:
            _annulus_rows(planes.pattern, spec, low, high, ratio, sheet)
        return
    soft = 2.0 ** (spec.edge / 2)
    outside = float(spectrum.out_of_band_energy(planes.pattern, spec.ppd, low / soft, high * soft))
    sheet.add("energy outside band", 0.0, outside, "Fourier sum", extra=10 * ratio**2)
    if spec.edge == 0 and ratio < 1e-5 and sheet.precision in ("float64", "float32"):
        _edge_rows(planes.pattern, spec, low, high, ratio, sheet)


def _edge_rows(pattern: Float64, spec: Noise, low: float, high: float, ratio: float, sheet: Sheet) -> None:
    """The outermost coefficients that hold energy are those that the stated band holds."""
    radius = spectrum.radial_frequency(spec.shape, spec.ppd)
    # Coefficients at the Nyquist frequency have no partner of opposite sign; psyprobe leaves them out.
    vertical = np.abs(np.fft.fftfreq(spec.shape[0])) == 0.5
    radius[vertical] = 0
    radius[:, np.fft.rfftfreq(spec.shape[1]) == 0.5] = 0
    inside = radius[(radius > 0) & (radius >= low * (1 - spectrum.EDGE)) & (radius <= high * (1 + spectrum.EDGE))]
    if inside.size == 0:
        return
    floor = max(1e-12, 1e3 * ratio**2)
    if spec.exponent:
        floor *= (inside.min() / inside.max()) ** (2 * abs(spec.exponent))
    found = spectrum.band_limits(pattern, spec.ppd, floor=floor)
    for name, asked, edge in zip(("low", "high"), (inside.min(), inside.max()), found, strict=True):
        sheet.add(
            f"band edge {name}", float(asked), float(edge), "outermost coefficient that holds energy", key="band edge"
        )


def _annulus_rows(pattern: Float64, spec: AnnulusNoise, low: float, high: float, ratio: float, sheet: Sheet) -> None:
    """Nothing outside the ring, whose edges are outside; and the same amplitude for every component inside."""
    amplitude = np.abs(np.fft.fft2(pattern - pattern.mean()))
    down, across = (np.fft.fftfreq(pixels, 1 / pixels) * spec.ppd / pixels for pixels in spec.shape)
    radius = np.sqrt(down[:, None] ** 2 + across**2)
    inside = (radius > low) & (radius < high)
    power = float((amplitude**2).sum())
    outside = float((amplitude[~inside] ** 2).sum()) / power
    sheet.add("energy outside band", 0.0, outside, "Fourier sum, edges outside", extra=10 * ratio**2)
    if ratio < 1e-5 and sheet.precision in ("float64", "float32"):
        spread = float(amplitude[inside].std() / amplitude[inside].mean())
        extra = _STANDARD_ERRORS * ratio
        sheet.add("flatness", 0.0, spread, "SD over mean of the amplitudes in the band", extra=extra)


def disc_rows(planes: Planes, spec: Disc, sheet: Sheet) -> None:
    level = spec.luminance
    disc = estimate.round_window(spec.shape, spec.ppd, spec.radius, edge=spec.edge, x=spec.x, y=spec.y)
    depth = spec.contrast * luminance_share(spec)
    doubt = _ambiguous_edge(spec)
    noise = sheet.noise(abs(spec.contrast))
    mean = level * (1 + depth * disc.mean())
    sheet.add(
        "mean luminance", mean, planes.light.mean(), "mean over pixels", extra=abs(depth) * doubt**2 * level / mean
    )
    sheet.add("peak luminance", level * (1 + float((depth * disc).max())), planes.light.max(), "largest pixel")
    if np.ptp(disc) == 0 or spec.contrast == 0:
        sheet.add("uniformity", 0.0, planes.light.std() / level, "SD over luminance")
        return
    fit = estimate.fit_patterns(planes.pattern, disc[None])
    step = float(fit.coefficients[0])
    extra = _STANDARD_ERRORS * float(fit.gain[-1]) * noise / level + abs(spec.contrast) * doubt**2
    if planes.cones is None:
        sheet.add("background", level, float(fit.background), "least squares on {disc, 1}", extra=extra)
    else:
        sheet.add(
            "background modulation",
            0.0,
            float(fit.background) / level - 1,
            "least squares on {disc, 1}",
            key="cone contrast",
            extra=extra,
        )
    base = level if planes.cones is not None else float(fit.background)
    share = doubt**2 / min(float(disc.mean()), 1 - float(disc.mean()))
    extra = _STANDARD_ERRORS * float(fit.gain[0]) * noise / (abs(spec.contrast) * level) + share
    if sheet.shown:
        # A flat disc rounds as one: its two levels may be off by half a step of drive in opposite directions.
        extra += 5e-7 / abs(spec.contrast)
    sheet.add("contrast", spec.contrast, step / base, "least squares on {disc, 1}", extra=extra)
    weight = (planes.pattern - float(fit.background)) / step
    delivered = float(np.sqrt(max(weight.sum(), 0.0) / np.pi)) / spec.ppd
    asked = float(np.sqrt(disc.sum() / np.pi)) / spec.ppd
    sheet.add(
        "radius",
        asked,
        delivered,
        "of the circle of equal area",
        extra=share + _STANDARD_ERRORS * noise / (abs(spec.contrast) * level) / np.sqrt(disc.sum()),
    )
    sheet.add(
        "distortion",
        0.0,
        float(fit.residual) / level,
        "RMS that no disc explains, over background",
        extra=doubt * abs(spec.contrast) + 2 * noise / level,
    )


def _ambiguous_edge(spec: Any) -> float:
    """Root of the share of pixels that lie on a hard edge, where rounding decides on which side."""
    hard = spec.window == "disc" if isinstance(spec, Grating) else isinstance(spec, Disc) and spec.edge == 0
    if not hard:
        return 0.0
    x, y = estimate.pixel_centres(spec.shape, spec.ppd)
    distance = np.hypot((x - spec.x)[None, :], (y - spec.y)[:, None])
    return float(np.sqrt(np.mean(np.abs(distance - spec.radius) < 1e-9 * spec.radius)))


def cone_rows(planes: Planes, spec: Modulation, sheet: Sheet) -> None:
    assert planes.cones is not None
    wanted = direction_vector(spec.direction, spec.background_lms)
    along = planes.pattern / spec.luminance - 1
    slack = _STANDARD_ERRORS * roundoff(sheet.precision) * (1 + abs(spec.contrast))
    if abs(spec.contrast) > 0:
        fit = estimate.fit_patterns(planes.cones, along[None])
        rows = [row for row in sheet.rows if row.quantity in ("contrast", "rms contrast")]
        delivered = rows[0].delivered if rows else spec.contrast
        for name, asked, slope in zip("LMS", wanted, fit.coefficients[:, 0], strict=True):
            extra = slack + tolerance("contrast", sheet.precision) * abs(spec.contrast * asked)
            extra += rows[0].tolerance * abs(spec.contrast * asked) if rows and rows[0].tolerance else 0.0
            sheet.add(
                f"{name} cone contrast",
                float(spec.contrast * asked),
                float(delivered * slope),
                "least squares on the pattern",
                key="cone contrast",
                extra=extra,
            )
    off = planes.cones - wanted[:, None, None] * along
    sheet.add(
        "off-direction cone contrast",
        0.0,
        float(np.sqrt((off**2).sum(axis=0).max())),
        "largest distance of a pixel from the line through the background",
        extra=slack,
    )
    if luminance_share(spec) == 0:
        sheet.add(
            "luminance modulation",
            0.0,
            float(np.abs(planes.light / spec.luminance - 1).max()),
            f"largest change of L + M of {spec.observer}",
            extra=slack,
        )
