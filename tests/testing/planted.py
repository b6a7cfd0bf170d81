"""Stimuli drawn in plain numpy, rightly and with one fault, as scripts that people use draw them.

Nothing of psyprobe draws here: what is asked is told in its words, and what is delivered is made
without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from psyprobe.light.display import Display
from psyprobe.stimulus import Disc, Gabor, Grating, Noise, Specification

Image = np.ndarray[Any, Any]


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

    @property
    def asked(self) -> Gabor:
        """The Gabor that is asked for."""
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
        """The disc that is asked for."""
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
        """The screen, sRGB."""
        return Display(peak=self.peak, black=self.black)

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

    what: str
    cause: str
    #: What is delivered, what was asked, and the space of the numbers.
    make: Callable[[Scene], tuple[Image, Specification, str]]
    #: Parameters of a scene that tells it from others.
    scene: dict[str, float] | None = None


def light(
    make: Callable[[Scene], Image],
) -> Callable[[Scene], tuple[Image, Specification, str]]:
    """A Gabor in cd/m²."""
    return lambda scene: (make(scene), scene.asked, "luminance")


def drive(
    make: Callable[[Scene], Image],
) -> Callable[[Scene], tuple[Image, Specification, str]]:
    """A Gabor in drive values, as floats or codes."""
    return lambda scene: (make(scene), scene.asked, "encoded")


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
    spec = replace(scene.asked, contrast=0.05, direction="red_green")
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
    most = min((luminance - black) / luminance, (peak - luminance) / luminance, 1.0)
    radius = field * float(np.exp(rng.uniform(np.log(0.06), np.log(0.3))))
    return Scene(
        frequency=float(
            np.exp(
                rng.uniform(np.log(max(1.5 / field, 0.4 / radius)), np.log(0.45 * ppd))
            )
        ),
        contrast=most * float(np.exp(rng.uniform(np.log(0.003), 0))),
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
        return scene.gabor(), scene.asked
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
    most = 255 if form == "8 bits" else 65535
    return np.rint(most * scene.drive(light)).astype(
        "uint8" if most == 255 else "uint16"
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
