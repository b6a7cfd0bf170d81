"""Stimuli drawn in plain numpy, rightly and with one fault, as scripts that people use draw them.

Nothing of psyprobe draws here: what is asked is told in its words, and what is delivered is made
without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from psyprobe.light.display import Display
from psyprobe.stimulus import Disc, Gabor, Grating, Noise, Specification

Image = np.ndarray[Any, Any]
Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Scene:
    """A Gabor, or a disc, on a screen, in the units of a specification."""

    frequency: float = 4.0
    contrast: float = 0.5
    orientation: float = 30.0
    phase: float = 20.0
    radius: float = 0.3
    x: float = 0.1
    y: float = -0.15
    luminance: float = 100.0
    ppd: float = 60.0
    size: int = 128
    peak: float = 400.0
    black: float = 2.0
    #: One of `SCREENS`.
    screen: str = "sRGB"

    @property
    def gabor_specification(self) -> Gabor:
        """Return the requested Gabor."""
        names = (
            "frequency",
            "contrast",
            "orientation",
            "phase",
            "radius",
            "x",
            "y",
            "luminance",
            "ppd",
            "size",
        )
        return Gabor(**{name: getattr(self, name) for name in names})

    @property
    def disc(self) -> Disc:
        """Return the requested disc."""
        names = ("contrast", "radius", "x", "y", "luminance", "ppd", "size")
        return Disc(**{name: getattr(self, name) for name in names})

    @property
    def noise(self) -> Noise:
        """Noise of this contrast and frequency."""
        return Noise(
            frequency=self.frequency,
            contrast=self.contrast,
            luminance=self.luminance,
            ppd=self.ppd,
            size=self.size,
        )

    @property
    def display(self) -> Display:
        """The screen."""
        return SCREENS[self.screen](self.peak, self.black)

    def mesh(self, shift: float = 0.5) -> tuple[Image, Image]:
        """x to the right and y up, deg; pixel i lies at i - N/2 + shift."""
        along = (np.arange(self.size) - self.size / 2 + shift) / self.ppd
        x, y = np.meshgrid(along, -along)
        return x, y

    def gabor(
        self,
        carrier: Callable[[Image], Image] = np.cos,
        where: tuple[Image, Image] | None = None,
        power: float = 2.0,
        angle: float | None = None,
    ) -> Image:
        """Light in cd/m²."""
        x, y = where or self.mesh()
        x, y = x - self.x, y - self.y
        theta = np.deg2rad(self.orientation) if angle is None else angle
        wave = carrier(
            2 * np.pi * self.frequency * (x * np.cos(theta) + y * np.sin(theta))
            + np.deg2rad(self.phase)
        )
        return self.luminance * (
            1 + self.contrast * np.exp(-(x**2 + y**2) / (power * self.radius**2)) * wave
        )

    def disc_image(self, inside: float) -> Image:
        """Light of a hard disc of this luminance, cd/m²."""
        x, y = self.mesh()
        return np.where(
            np.hypot(x - self.x, y - self.y) <= self.radius, inside, self.luminance
        )

    def drive(self, light: Image, black: float | None = None) -> Image:
        """Drive of light by IEC 61966-2-1, which ends at 0 and 1."""
        black = self.black if black is None else black
        relative = np.clip((light - black) / (self.peak - black), 0, None)
        return np.clip(srgb(relative), 0, 1)

    def relative(self, light: Image) -> Image:
        """Light as a fraction of the range of each gun, shape (H, W, 3)."""
        floor = np.array([gun.black for gun in self.display.guns])
        return np.clip((light[..., None] - floor) / self.display.span, 0, 1)

    def by_curves(self, relative: Image) -> Image:
        """Drive by the inverse curve of each gun."""
        channels = np.moveaxis(relative, -1, 0)
        drives = [
            inverse(channel, gun.eotf)
            for channel, gun in zip(channels, self.display.guns, strict=True)
        ]
        return np.stack(drives, axis=-1)


def simulated_curve(gamma: float, seed: int) -> Curve:
    """Readings at 17 levels of a simulated gun of this gamma, each off by about 1 %."""
    levels = np.linspace(0, 1, 17)
    noise = 0.01 * np.random.default_rng(seed).standard_normal(levels.size)
    light = levels**gamma * (1 + noise)
    readings = zip(levels.tolist(), (light / light[-1]).tolist(), strict=True)
    return tuple(readings)


def _three_guns(peak: float, black: float) -> Display:
    curves = tuple(
        simulated_curve(gamma, seed) for seed, gamma in enumerate((2.1, 2.25, 2.4))
    )
    # A black that is darker in blue leaves less room for white: the peak is that much brighter.
    blacks = (0.6 * black, black, 0.3 * black)
    return Display(peak=peak + black, black=blacks, eotf=curves)  # type: ignore[arg-type]


#: Screens by name, of a peak and a black in cd/m².
SCREENS: dict[str, Callable[[float, float], Display]] = {
    "three guns measured, simulated": _three_guns,
    "white measured, simulated": lambda peak, black: Display(
        peak=peak, black=black, eotf=simulated_curve(2.2, 3)
    ),
    "gamma 2.2": lambda peak, black: Display(peak=peak, black=black, eotf=2.2),
    "sRGB": lambda peak, black: Display(peak=peak, black=black),
}


def inverse(relative: Image, eotf: Any) -> Image:
    """Drive of relative light by the inverse of a transfer function."""
    if eotf == "srgb":
        return srgb(relative)
    if isinstance(eotf, float):
        return relative ** (1 / eotf)
    drive, light = np.array(eotf).T
    fine = np.linspace(0, 1, 1 + 16 * 1024)
    return np.interp(relative, PchipInterpolator(drive, light)(fine), fine)


def srgb(relative: Image) -> Image:
    """The inverse transfer function of sRGB, by IEC's constants."""
    return np.where(
        relative <= 0.0031308,
        12.92 * relative,
        1.055 * np.maximum(relative, 1e-9) ** (1 / 2.4) - 0.055,
    )


@dataclass(frozen=True)
class Planted:
    """A fault, and the key of the cause that names it."""

    description: str
    cause: str
    #: Makes the delivered image, the requested specification and the space of the numbers.
    make: Callable[[Scene], tuple[Image, Specification, str]]
    #: Parameters of a scene that tells it from others.
    scene: dict[str, float] | None = None


def light(
    make: Callable[[Scene], Image],
) -> Callable[[Scene], tuple[Image, Specification, str]]:
    """A Gabor in cd/m²."""
    return lambda scene: (make(scene), scene.gabor_specification, "luminance")


def drive(
    make: Callable[[Scene], Image],
) -> Callable[[Scene], tuple[Image, Specification, str]]:
    """A Gabor in drive values, as floats or codes."""
    return lambda scene: (make(scene), scene.gabor_specification, "encoded")


def other(**values: float) -> Callable[[Scene], tuple[Image, Specification, str]]:
    """The Gabor drawn with other parameters, told as factors."""
    return light(
        lambda scene: replace(
            scene, **{n: getattr(scene, n) * factor for n, factor in values.items()}
        ).gabor()
    )


def _noise_off(factor: float) -> Callable[[Scene], tuple[Image, Specification, str]]:
    def make(scene: Scene) -> tuple[Image, Specification, str]:
        scene = replace(scene, contrast=min(scene.contrast, 0.15))
        sample = np.random.default_rng(7).standard_normal((scene.size, scene.size))
        spectrum = np.fft.fft2(sample)
        along = np.fft.fftfreq(scene.size, 1 / scene.ppd)
        radius = np.hypot(*np.meshgrid(along, along))
        half = np.sqrt(2)
        spectrum[
            (radius < scene.frequency / half) | (radius > scene.frequency * half)
        ] = 0
        noise = np.fft.ifft2(spectrum).real
        image = scene.luminance * (1 + factor * scene.contrast * noise / noise.std())
        return image, scene.noise, "luminance"

    return make


def _swapped(scene: Scene) -> tuple[Image, Specification, str]:
    spec = replace(scene.gabor_specification, contrast=0.05, direction="red_green")
    drive = np.asarray(scene.display.encode(spec.draw(), dtype="float64"))
    return drive[..., ::-1], spec, "encoded"


def _other_screen(scene: Scene, encode: Callable[[Image], Image]) -> Image:
    return np.clip(
        encode(
            np.clip((scene.gabor() - scene.black) / (scene.peak - scene.black), 0, None)
        ),
        0,
        1,
    )


#: The twenty-seven.
PLANTED = (
    Planted(
        "drawn for 48 pixels per degree, shown at 60",
        "wrong_ppd",
        other(frequency=60 / 48, radius=48 / 60, x=48 / 60, y=48 / 60),
    ),
    Planted(
        "frequency in cycles per image",
        "cycles_per_image",
        light(lambda s: replace(s, frequency=s.frequency * s.ppd / s.size).gabor()),
    ),
    Planted(
        "Michelson contrast given to a disc as Weber",
        "weber",
        lambda s: (
            s.disc_image(s.luminance * (1 + s.contrast) / (1 - s.contrast)),
            s.disc,
            "luminance",
        ),
    ),
    Planted(
        "RMS contrast of noise taken for its amplitude",
        "root_two",
        _noise_off(np.sqrt(2)),
    ),
    Planted("contrast doubled", "doubled", other(contrast=2), {"contrast": 0.3}),
    Planted(
        "gamma 2.2 for sRGB",
        "other_gamma",
        drive(lambda s: _other_screen(s, lambda v: v ** (1 / 2.2))),
    ),
    Planted(
        "black level ignored",
        "black_ignored",
        drive(lambda s: s.drive(s.gabor(), black=0.0)),
    ),
    Planted(
        "phase off by 180 degrees",
        "inverted",
        light(lambda s: replace(s, phase=s.phase + 180).gabor()),
    ),
    Planted(
        "square wave", "square", light(lambda s: s.gabor(lambda u: np.sign(np.cos(u))))
    ),
    Planted(
        "values in [-1, 1] shown as drive",
        "range",
        drive(lambda s: 2 * s.drive(s.gabor()) - 1),
    ),
    Planted(
        "horizontal for vertical",
        "turned",
        light(lambda s: replace(s, orientation=s.orientation + 90).gabor()),
    ),
    Planted("orientation counted clockwise", "mirrored", other(orientation=-1)),
    Planted("sine for cosine", "sine_phase", light(lambda s: s.gabor(np.sin))),
    Planted(
        "full width taken for the standard deviation",
        "full_width",
        other(radius=1 / 2.35),
    ),
    Planted("exp(-r²/radius²)", "gaussian_two", light(lambda s: s.gabor(power=1.0))),
    Planted(
        "degrees taken for radians",
        "radians",
        light(lambda s: s.gabor(angle=s.orientation)),
    ),
    Planted("rows and columns exchanged", "transposed", light(lambda s: s.gabor().T)),
    Planted("upside down", "flipped", light(lambda s: s.gabor()[::-1])),
    Planted(
        "half a pixel off centre",
        "half_pixel",
        light(lambda s: s.gabor(where=s.mesh(0.0))),
    ),
    Planted(
        "clipped at the peak",
        "clipped",
        drive(lambda s: s.drive(s.gabor())),
        {"luminance": 300.0, "contrast": 0.9},
    ),
    Planted(
        "rounded to 8 bits",
        "rounded",
        drive(lambda s: np.round(255 * s.drive(s.gabor())).astype(np.uint8)),
        {"contrast": 0.01},
    ),
    Planted("no gamma", "not_encoded", drive(lambda s: _other_screen(s, lambda v: v))),
    Planted("contrast of half", "halved", other(contrast=0.5), {"contrast": 0.3}),
    Planted("another mean", "mean", other(luminance=0.83)),
    Planted("red and blue swapped", "swapped", _swapped),
    Planted(
        "contrast in code values",
        "codes",
        drive(
            lambda s: s.drive(np.full((1, 1), s.luminance)) * s.gabor() / s.luminance
        ),
        {"contrast": 0.3},
    ),
    Planted(
        "samples of the sine stretched to their range",
        "stretched_sine",
        light(
            lambda s: s.gabor(
                lambda u: 2 * (np.cos(u) - np.cos(u).min()) / np.ptp(np.cos(u)) - 1
            )
        ),
        {"frequency": 15.0, "orientation": 0.0, "phase": 30.0, "x": 0.0, "y": 0.0},
    ),
)


def encoding(
    encode: Callable[[Scene, Image], Image],
) -> Callable[[Scene], tuple[Image, Specification, str]]:
    """The Gabor's light, encoded in three channels for the screen of the scene."""
    return lambda scene: (
        encode(scene, scene.gabor()),
        scene.gabor_specification,
        "encoded",
    )


def _in_codes(scene: Scene, light: Image) -> Image:
    grey = scene.by_curves(scene.relative(np.full((1, 1), scene.luminance)))
    return grey * light[..., None] / scene.luminance


#: Faults of encoding that screens of any kind can have.
ENCODED = (
    Planted("no gamma", "not_encoded", encoding(lambda s, v: s.relative(v))),
    Planted(
        "gamma twice",
        "encoded_twice",
        encoding(lambda s, v: s.by_curves(s.by_curves(s.relative(v)))),
    ),
    Planted(
        "sRGB before the screen's curves",
        "encoded_twice",
        encoding(lambda s, v: s.by_curves(srgb(s.relative(v)))),
    ),
    Planted(
        "gamma 2.4 for the screen's curves",
        "other_gamma",
        encoding(lambda s, v: s.relative(v) ** (1 / 2.4)),
    ),
    Planted("contrast in code values", "codes", encoding(_in_codes)),
    Planted(
        "values in [-1, 1] shown as drive",
        "range",
        encoding(lambda s, v: 2 * s.by_curves(s.relative(v)) - 1),
    ),
)

#: Faults that only screens with three curves can have.
ENCODED_BY_GUN = (
    Planted(
        "curve of green for all guns",
        "other_gamma",
        encoding(lambda s, v: s.by_curves(s.relative(v))[..., [1, 1, 1]]),
    ),
    Planted(
        "curves of red and blue swapped",
        "swapped",
        encoding(lambda s, v: s.by_curves(s.relative(v))[..., ::-1]),
    ),
)


#: How a right image is handed over: space, and the numbers made of its light.
FORMS = (
    "luminance",
    "float32",
    "linear",
    "encoded",
    "encoded float32",
    "8 bits",
    "16 bits",
)


def any_scene(rng: np.random.Generator) -> Scene:
    """A scene whose light the display shows."""
    size = int(rng.integers(48, 192))
    ppd = float(np.exp(rng.uniform(np.log(16), np.log(100))))
    field = size / ppd
    peak = float(rng.uniform(50, 1000))
    black = float(rng.choice([0, rng.uniform(0, peak / 200)]))
    luminance = black + (peak - black) * float(rng.uniform(0.1, 0.6))
    largest_contrast = min(
        (luminance - black) / luminance, (peak - luminance) / luminance, 1.0
    )
    radius = field * float(np.exp(rng.uniform(np.log(0.06), np.log(0.3))))
    return Scene(
        frequency=float(
            np.exp(
                rng.uniform(np.log(max(1.5 / field, 0.4 / radius)), np.log(0.45 * ppd))
            )
        ),
        contrast=largest_contrast * float(np.exp(rng.uniform(np.log(0.003), 0))),
        orientation=float(rng.uniform(-180, 180)),
        phase=float(rng.uniform(-180, 180)),
        radius=radius,
        x=float(rng.uniform(-0.2, 0.2)) * field,
        y=float(rng.uniform(-0.2, 0.2)) * field,
        luminance=luminance,
        ppd=ppd,
        size=size,
        peak=peak,
        black=black,
    )


def right(scene: Scene, kind: str) -> tuple[Image, Specification]:
    """The light of a Gabor, a grating or a disc, in plain numpy, and what it is."""
    if kind == "gabor":
        return scene.gabor(), scene.gabor_specification
    if kind == "disc":
        return scene.disc_image(scene.luminance * (1 + scene.contrast)), scene.disc
    names = (
        "frequency",
        "contrast",
        "orientation",
        "phase",
        "x",
        "y",
        "luminance",
        "ppd",
        "size",
    )
    return replace(scene, radius=1e9).gabor(), Grating(
        **{name: getattr(scene, name) for name in names}
    )


def handed_over(light: Image, form: str, scene: Scene) -> tuple[Image, str]:
    """The numbers of an image in a form, and their space."""
    if form in ("luminance", "float32"):
        return light.astype("float32" if form == "float32" else "float64"), "luminance"
    if form == "linear":
        return (light - scene.black) / (scene.peak - scene.black), "linear"
    if form.startswith("encoded"):
        # IEC's constants leave a step at the toe: drive is that of the display model, which has
        # none.
        drive = np.asarray(scene.display.encode(light, dtype="float64"))[..., 0]
        return drive.astype("float32" if form.endswith("32") else "float64"), "encoded"
    maximum = 255 if form == "8 bits" else 65535
    return np.rint(maximum * scene.drive(light)).astype(
        "uint8" if maximum == 255 else "uint16"
    ), "encoded"


def with_room(fault: Planted, scene: Scene) -> Scene:
    """The scene with what the fault needs in order to be one."""
    if fault.cause != "rounded":
        scene = replace(scene, contrast=max(scene.contrast, 0.05))
    if fault.cause in ("clipped", "rounded", "stretched_sine"):
        return replace(Scene(**(fault.scene or {})), black=0.0)
    if fault.cause in ("wrong_ppd", "cycles_per_image"):
        field = scene.size / scene.ppd
        return replace(
            scene, frequency=scene.frequency * 0.6 + 4 / field, radius=field / 8
        )
    return scene
