"""Export stimuli to PsychoPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus.stimulus import Stimulus

#: How much the resolutions of a window and a stimulus may differ, as a fraction.
_PPD_TOLERANCE = 0.005


@dataclass(frozen=True)
class PsychoPyImage:
    """One stimulus as PsychoPy's ``ImageStim`` takes it, by `for_psychopy`."""

    #: Shape (H, W) or (H, W, 3), -1 to 1, the lowest row first, as textures have it.
    image: FloatArray
    #: Width and height, deg.
    size: tuple[float, float]
    #: Width and height in pixels of the stimulus.
    pixels: tuple[int, int]
    #: Pixels per degree for which it was drawn.
    ppd: float
    #: Whether drive is linear in light, since PsychoPy linearises the screen.
    linear: bool

    def stim(self, window: Any, **options: Any) -> Any:
        """Build PsychoPy's `ImageStim` for a window, one image pixel on one screen pixel.

        Parameters
        ----------
        window : psychopy.visual.Window
            Its monitor must give the resolution that the stimulus was drawn for.
        **options
            Further arguments of ``ImageStim``, for example ``pos``.

        Raises
        ------
        InputError
            If the window has another resolution, or if both or neither of PsychoPy and the display
            model undo gamma.
        """
        from psychopy.visual import ImageStim

        self.check(window)
        return ImageStim(
            window,
            image=self.image,
            units="pix",
            size=self.pixels,
            colorSpace="rgb",
            interpolate=False,
            **options,
        )

    def check(self, window: Any) -> None:
        """Refuse a PsychoPy window that would show the image otherwise than it was drawn."""
        monitor = window.monitor
        pixels = monitor.getSizePix()
        width = monitor.getWidth()
        distance = monitor.getDistance()
        if not (pixels and width and distance):
            raise InputError(
                f"the monitor {monitor.name!r} has no size in pixels, width and distance; set "
                f"them in PsychoPy, so that {self.ppd:g} pixels per degree can be checked"
            )
        degrees_per_pixel = np.degrees(
            2 * np.arctan(width / pixels[0] / (2 * distance))
        )
        ppd = 1 / degrees_per_pixel
        if abs(ppd / self.ppd - 1) > _PPD_TOLERANCE:
            raise InputError(
                f"the monitor {monitor.name!r} has {ppd:.4g} pixels per degree, and the "
                f"stimulus was drawn for {self.ppd:.4g}; draw it with ppd={ppd:.4g}"
            )
        linearised = not monitor.gammaIsDefault()
        if linearised == self.linear:
            return
        state = "linearises the screen"
        remedy = 'give eotf="linear"'
        if not linearised:
            state = "does not linearise the screen"
            remedy = "give the measured curve as eotf, not linear"
        raise InputError(
            f"PsychoPy's monitor {monitor.name!r} {state}, and the display model says "
            f"otherwise; {remedy}"
        )


def for_psychopy(stimulus: Stimulus, display: Display) -> PsychoPyImage:
    """Export one stimulus to PsychoPy's ``ImageStim``.

    Parameters
    ----------
    stimulus : Stimulus
        One image.
    display : Display
        The screen as PsychoPy leaves it: its measured curve, or ``eotf="linear"`` where the monitor
        file linearises.

    Raises
    ------
    InputError
        There are several images or frames, the display is of extended range, or it cannot show the
        stimulus.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> screen = Display(peak=200, eotf="linear")
    >>> export = for_psychopy(gabor(frequency=4, contrast=0.5, size=120), screen)
    >>> export.image.shape, export.size, float(export.image[60, 60].round(3))
    ((120, 120), (2.0, 2.0), 0.489)
    """
    if stimulus.batch:
        raise InputError(
            f"an ImageStim holds one image, and these are {stimulus.batch}; take them one by one"
        )
    if stimulus.spec.is_clip:
        raise InputError(
            f"an ImageStim holds one image, and this clip has {len(stimulus.pixels)}; take them "
            "one by one: for frames in clip.chunks(): for_psychopy(frames[0], display), ..."
        )
    if display.extended:
        raise InputError(
            "PsychoPy shows drive up to 1, and this display is of extended range; give "
            "extended=False"
        )
    drive = np.asarray(display.encode(stimulus, dtype="float64"))
    plane = (
        drive[..., 0]
        if stimulus.space == "luminance" and not display.guns_differ
        else drive
    )
    height, width = stimulus.shape
    size = (width / stimulus.ppd, height / stimulus.ppd)
    image = np.ascontiguousarray(2 * plane[::-1] - 1)
    return PsychoPyImage(
        image, size, (width, height), stimulus.ppd, display.eotf == "linear"
    )
