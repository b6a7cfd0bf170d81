"""Drawing in one call: a function for each kind that is drawn often, with all its parameters in the signature."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from numpy.typing import ArrayLike

from psyprobe.errors import InputError
from psyprobe.light.colour import Direction
from psyprobe.stimulus.kinds.annulus import AnnulusNoise
from psyprobe.stimulus.kinds.discs import Disc
from psyprobe.stimulus.kinds.noise import Noise
from psyprobe.stimulus.kinds.uniform import Uniform
from psyprobe.stimulus.kinds.waves import Gabor, Grating
from psyprobe.stimulus.parameters import check_names
from psyprobe.stimulus.specification import Specification
from psyprobe.stimulus.stimulus import Stimulus

P = ParamSpec("P")
R = TypeVar("R")


def _tells_names(function: Callable[P, R]) -> Callable[P, R]:
    """Answers a keyword that is none with the right one, and a missing one with its name."""
    name, known = function.__name__, signature(function).parameters
    needed = [word for word, each in known.items() if each.default is Parameter.empty]

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        if args:
            raise InputError(f"{name} takes its parameters by name, such as {name}({next(iter(known))}=...)")
        check_names(name, keywords, known)
        if missing := [word for word in needed if word not in keywords]:
            raise InputError(f"{name} needs {' and '.join(missing)}")
        return function(*args, **keywords)

    return checked


def _drawn(kind: type[Specification], values: dict[str, Any]) -> Stimulus:
    how = {name: values.pop(name) for name in ("dtype", "device")}
    return kind(**values).draw(**how)


@_tells_names
def gabor(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 1.0,
    orientation: ArrayLike = 0.0,
    phase: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    aspect: ArrayLike = 1.0,
    balanced: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Gabors: sinusoids under a Gaussian envelope.

    Parameters
    ----------
    frequency : float or array
        Spatial frequency, cpd, below Nyquist (ppd/2). Arrays, here and below, broadcast to a grid of images.
    contrast : float or array
        Amplitude over luminance at the centre of the envelope (Michelson), 0 to 1. In colour: RMS over the three cone
        contrasts, the unit of castleCSF.
    luminance : float or array
        Of the background, cd/m².
    radius : float or array
        Standard deviation of the envelope across the stripes, deg.
    orientation : float or array
        deg counter-clockwise; 0 is vertical stripes.
    phase : float or array
        deg; 0 puts a peak at the centre of the envelope.
    x, y : float or array
        Centre, deg to the right and up.
    aspect : float or array
        Standard deviation along the stripes over that across; 1 is round.
    balanced : bool
        Subtract the multiple of the envelope that makes the mean equal to `luminance`.
    direction : str or (dL, dM, dS)
        "achromatic", "red_green", "yellow_violet", or a modulation in LMS.
    white : str or (x, y)
        Chromaticity of the background of a chromatic stimulus.
    observer : str
        Named cone observer of a chromatic stimulus.
    ppd : float
        Pixels per degree of visual angle.
    size : int or (H, W)
        Pixels.
    dtype : {"float64", "float32"}
        Precision of the pixels.
    device : str, optional
        A torch device ("cpu", "cuda:0") to draw tensors there; numpy without it.

    Examples
    --------
    >>> import numpy as np
    >>> f, c = np.geomspace(1, 16, 5), np.geomspace(0.01, 1, 4)
    >>> gabor(frequency=f[:, None], contrast=c, size=64).luminance.shape
    (5, 4, 64, 64)
    """
    return _drawn(Gabor, locals())


@_tells_names
def grating(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    orientation: ArrayLike = 0.0,
    phase: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    window: str = "none",
    radius: ArrayLike = 1.0,
    edge: ArrayLike = 0.25,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw gratings: sinusoids over the whole field, or behind a window.

    Parameters
    ----------
    window : {"none", "gaussian", "raised_cosine", "disc"}
        What the grating is seen through.
    radius : float or array
        Of the window, deg: standard deviation of a Gaussian, at half height of a raised cosine, all
        of a disc.
    edge : float or array
        Width of the ramp of a raised cosine, deg.
    frequency, contrast, luminance, orientation, phase, x, y, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> grating(frequency=2.0, contrast=0.5, orientation=90).luminance.shape
    (224, 224)
    """
    return _drawn(Grating, locals())


@_tells_names
def noise(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    bandwidth: ArrayLike = 1.0,
    exponent: ArrayLike = 0.0,
    edge: ArrayLike = 0.0,
    seed: ArrayLike = 0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Gaussian noise in a ring of spatial frequencies.

    Parameters
    ----------
    frequency : float or array
        Geometric centre of the ring, cpd.
    contrast : float or array
        Population standard deviation over mean (RMS), exactly, in each image.
    bandwidth : float or array
        Full width of the ring, octaves: the edges, both included, are ``frequency 2^(-bandwidth/2)`` and
        ``frequency 2^(+bandwidth/2)``.
    exponent : float or array
        Amplitude falls as 1/f^exponent inside the ring: 0 white, 1 pink.
    edge : float or array
        Width of raised-cosine edges of the power, octaves, half power at the stated edges; 0 is a brick wall.
    seed : int or array of int
        Of each image; the same seed and ring give the same pattern in every batch, precision and backend.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> noise(frequency=4.0, contrast=0.1, seed=[3, 4, 5]).luminance.shape
    (3, 224, 224)
    """
    return _drawn(Noise, locals())


@_tells_names
def disc(
    *,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 1.0,
    edge: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw discs on a uniform background.

    Parameters
    ----------
    contrast : float or array
        Weber contrast of the disc, -1 to 10 (a chromatic disc: RMS cone contrast).
    radius : float or array
        deg.
    edge : float or array
        Width of a raised-cosine edge, deg; 0 is hard (pixels whose centres lie within the radius).
    luminance, x, y, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> disc(contrast=-0.2, radius=0.5).luminance.shape
    (224, 224)
    """
    return _drawn(Disc, locals())


@_tells_names
def annulus_noise(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 40.0,
    low: ArrayLike = 0.75,
    high: ArrayLike = 1.25,
    window: ArrayLike = 0.0,
    seed: ArrayLike = 0,
    chromatic: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 64.0,
    size: int | tuple[int, int] = 256,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw noise that fills a ring of spatial frequencies evenly.

    Parameters
    ----------
    frequency : float or array
        Nominal frequency, cpd, up to the Nyquist frequency; a ring that reaches beyond it is cut there.
    contrast : float or array
        Sinusoid-equivalent RMS: ``sqrt(2) * SD / mean`` of the light, exactly, in each image. It is the Michelson
        contrast of a grating of the same energy. 0 gives a uniform field.
    low, high : float or array
        Edges of the ring as multiples of `frequency`; components on an edge are outside.
    window : float or array
        Size s of a round Gaussian window ``exp(-r²/s²)``, deg (its standard deviation is s/sqrt(2)); 0 is none. A
        window spreads the spectrum beyond the ring, and contrast stays that of the whole image.
    seed : int or array of int
        Of the phases.
    chromatic : bool
        Draw the grey in LMS of `observer` with the chromaticity `white`, not as the display's own grey.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> annulus_noise(frequency=4.0, contrast=0.1, luminance=40.0).pixels.shape
    (256, 256)
    """
    return _drawn(AnnulusNoise, locals())


@_tells_names
def uniform(
    *,
    luminance: ArrayLike = 100.0,
    chromatic: bool = False,
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw uniform fields.

    Parameters
    ----------
    chromatic : bool
        Draw the field in LMS of `observer` with the chromaticity `white`, as the background of a chromatic stimulus.
    luminance, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> uniform(luminance=[10.0, 20.0]).luminance.shape
    (2, 224, 224)
    """
    return _drawn(Uniform, locals())
