"""A drawn stimulus: pixels in physical units, with the specification that they were drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from array_api_compat import array_namespace

from psyprobe._typing import Array
from psyprobe.light.colour import cone_observer
from psyprobe.light.display import Display
from psyprobe.stimulus.certificate import Certificate
from psyprobe.stimulus.measure import certificate, certify
from psyprobe.stimulus.planes import observer_of
from psyprobe.stimulus.tolerances import precision_of

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification


@dataclass(frozen=True, repr=False)
class Stimulus:
    """Pixels in physical units.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> stimulus = gabor(frequency=4, contrast=0.1)
    >>> stimulus
    <Stimulus 224 x 224 px at 60 ppd, luminance in cd/m²: Gabor(contrast=0.1, frequency=4.0)>
    """

    #: Luminance in cd/m², or LMS or linear RGB light; numpy or torch.
    pixels: Array
    #: {"luminance", "lms", "rgb"}: What the pixels are.
    space: str
    #: Pixels per degree.
    ppd: float
    #: What was asked for.
    spec: Specification

    @property
    def shape(self) -> tuple[int, int]:
        """Pixels (H, W)."""
        return self.spec.shape

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; empty for one image."""
        return self.spec.batch

    @property
    def observer(self) -> str:
        """Name of the cone observer that LMS pixels refer to."""
        return observer_of(self.spec)

    @property
    def luminance(self) -> Array:
        """Luminance (CIE 1931 Y), cd/m², shape (..., H, W)."""
        if self.space == "luminance":
            return self.pixels
        xp = array_namespace(self.pixels)
        weights = Display().rgb_to_xyz[1] if self.space == "rgb" else cone_observer(self.observer).to_xyz[1]
        return self.pixels @ xp.asarray(weights, dtype=self.pixels.dtype, device=self.pixels.device)

    @property
    def background(self) -> Stimulus:
        """The same field without the target and without masks."""
        spec = self.spec
        while spec.reference() != spec:
            spec = spec.reference()
        return spec.draw()

    def measure(self, display: Display | None = None) -> Certificate:
        """Requested against delivered: the calibration certificate.

        Parameters
        ----------
        display : Display, optional
            Measure also what this display shows of it: values outside its gamut, the margin to the nearer limit, and
            contrast and background after encoding to float32 drive and decoding again.

        Examples
        --------
        >>> from psyprobe.stimulus import gabor
        >>> shown = gabor(frequency=4, contrast=0.5, size=128).measure(Display(peak=200))
        >>> shown["values outside gamut"].delivered, round(shown["gamut margin"].delivered, 2)
        (0.0, 0.25)
        """
        rows = certify(self.pixels, self.space, self.spec, display=display)
        return certificate(rows, self.spec, precision_of(self.pixels))

    def __add__(self, other: Stimulus) -> Stimulus:
        """A target on a mask: modulations of the same background, added."""
        if not isinstance(other, Stimulus):
            return NotImplemented
        dtype = str(self.pixels.dtype).rpartition(".")[2]
        device = None if not hasattr(self.pixels, "is_cuda") else str(self.pixels.device)
        return (self.spec + other.spec).draw(dtype=dtype, device=device)

    def __repr__(self) -> str:
        height, width = self.shape
        batch = f"{' x '.join(map(str, self.batch))} images of " if self.batch else ""
        unit = {"luminance": "luminance in cd/m²", "lms": "LMS", "rgb": "linear RGB light in cd/m²"}[self.space]
        return f"<Stimulus {batch}{height} x {width} px at {self.ppd:g} ppd, {unit}: {self.spec!r}>"
