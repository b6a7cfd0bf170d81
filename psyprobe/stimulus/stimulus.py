"""Stimuli as they are drawn: pixels in physical units, with the specification they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.units import unit_attributes
from psyprobe.light.display import Display
from psyprobe.stimulus.certificate import Certificate
from psyprobe.stimulus.estimate import pixel_centres
from psyprobe.stimulus.measuring import certify, luminance_of, observer_of

if TYPE_CHECKING:
    import xarray

    from psyprobe.stimulus.specification import Specification

#: What pixels are, by their space.
_PIXELS = {
    "luminance": "luminance in cd/m²",
    "lms": "LMS",
    "rgb": "linear RGB light in cd/m²",
}
#: Dimension of the colours, and their names, by the space of the pixels.
_COLOURS = {"lms": ("cone", ["L", "M", "S"]), "rgb": ("primary", ["R", "G", "B"])}


@dataclass(frozen=True, repr=False)
class Stimulus:
    """Pixels in physical units: one image or clip, or a batch of them.

    ``stimulus[0]`` is the first of a batch.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> stimulus = gabor(frequency=4, contrast=[0.1, 0.2])
    >>> stimulus[0]
    <Stimulus 224 x 224 px at 60 ppd, luminance in cd/m²: Gabor(contrast=0.1, frequency=4.0)>
    """

    #: Luminance in cd/m², or LMS or linear RGB light; numpy or torch.
    pixels: Array
    #: {"luminance", "lms", "rgb"}: What the pixels are.
    space: str
    #: Pixels per degree.
    ppd: float
    #: What was requested.
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
        return luminance_of(self.pixels, self.space, self.spec)

    @property
    def background(self) -> Stimulus:
        """The uniform field without target and masks, as a stimulus."""
        spec = self.spec
        while spec.reference() != spec:
            spec = spec.reference()
        return spec.draw()

    def measure(self, display: Display | None = None) -> Certificate:
        """Measure the pixels and return the certificate: requested against delivered values.

        Parameters
        ----------
        display : Display, optional
            Measure also what this display shows: values outside its gamut, the margin to the
            nearer limit, and contrast and background after encoding to float32 drive and decoding
            again.

        Examples
        --------
        >>> from psyprobe.stimulus import gabor
        >>> certificate = gabor(frequency=4, contrast=0.5, size=128).measure(Display(peak=200))
        >>> certificate["values outside gamut"].delivered
        0.0
        >>> round(certificate["gamut margin"].delivered, 2)
        0.25
        """
        return certify(self.pixels, self.space, self.spec, display=display)

    def __getitem__(self, index: Any) -> Stimulus:
        """Select images of the batch, by the rules of numpy for an array of the batch's shape."""
        if not self.batch:
            raise InputError(
                f"{self!r} is one stimulus, and an index selects from a batch; its pixels are "
                "stimulus.pixels"
            )
        positions = np.arange(np.prod(self.batch)).reshape(self.batch)[index]
        if not positions.size:
            raise InputError(
                f"no stimulus of the batch of shape {self.batch} is at {index!r}"
            )
        first = len(self.batch)
        pixels = self.pixels.reshape(-1, *self.pixels.shape[first:])[positions]
        if positions.ndim:
            spec = self.spec.select(self.batch, positions)
        else:
            spec = self.spec.single(self.batch, np.unravel_index(positions, self.batch))
        return Stimulus(pixels, self.space, self.ppd, spec)

    def to_xarray(self) -> xarray.DataArray:
        """Return the pixels with named dimensions, coordinates and units.

        Returns
        -------
        xarray.DataArray
            Dimensions are those of the batch, each named after the one parameter that varies along
            it (``batch_0``, ``batch_1`` ... where several do), then ``time`` (s) of a clip, ``y``
            and ``x`` (deg), and of a stimulus in colour ``cone`` or ``primary``. Every parameter
            that varies is a coordinate; those called x and y are ``position_x`` and
            ``position_y``.

        Examples
        --------
        >>> from psyprobe.stimulus import gabor
        >>> images = gabor(frequency=[2, 4, 8], contrast=0.1, size=64).to_xarray()
        >>> images.sizes["frequency"], images.sel(frequency=4).dims
        (3, ('y', 'x'))
        >>> images.attrs["units"], images.y.attrs["units"], images.frequency.attrs["units"]
        ('cd m-2', 'degree', 'cycles/degree')
        """
        import xarray

        columns, rows = pixel_centres(self.shape, self.ppd)
        degrees = unit_attributes("deg")
        coordinates: JsonObject = {
            "y": ("y", rows, degrees | {"long_name": "Vertical position"}),
            "x": ("x", columns, degrees | {"long_name": "Horizontal position"}),
        }
        dimensions = ["y", "x"]
        times = getattr(self.spec, "times", None)
        if times is not None:
            dimensions.insert(0, "time")
            coordinates["time"] = (
                "time",
                times,
                unit_attributes("s") | {"long_name": "Time"},
            )
        if self.space in _COLOURS:
            dimension, names = _COLOURS[self.space]
            dimensions.append(dimension)
            coordinates[dimension] = names
        batch_dimensions, parameters = self._batch_coordinates()
        label = _PIXELS[self.space].removesuffix(" in cd/m²")
        return xarray.DataArray(
            np.asarray(self),
            dims=[*batch_dimensions, *dimensions],
            coords=parameters | coordinates,
            name=self.space,
            attrs=unit_attributes("cd/m²")
            | {
                "long_name": label[0].upper() + label[1:],
                "pixels_per_degree": self.ppd,
                "specification": repr(self.spec),
            },
        )

    def _batch_coordinates(self) -> tuple[list[str], JsonObject]:
        """Name the dimensions of the batch, and describe the parameters that vary along them."""
        batch = self.batch
        levels = self.spec.levels()
        varying = self.spec.varying()
        axes: dict[str, list[int]] = {}
        for name, value in varying.items():
            sizes = [1] * (len(batch) - value.ndim) + list(value.shape)
            first = len(batch) - value.ndim
            axes[name] = [
                axis for axis in range(first, len(batch)) if sizes[axis] == batch[axis]
            ]
        dimensions = []
        for axis in range(len(batch)):
            names = [name for name in axes if axes[name] == [axis]]
            dimensions.append(
                _coordinate_name(names[0]) if len(names) == 1 else f"batch_{axis}"
            )
        coordinates = {}
        for name, value in varying.items():
            attributes = unit_attributes(levels[name].unit) | {
                "long_name": levels[name].label
            }
            values = value.reshape([batch[axis] for axis in axes[name]])
            along = [dimensions[axis] for axis in axes[name]]
            coordinates[_coordinate_name(name)] = (along, values, attributes)
        return dimensions, coordinates

    def __add__(self, other: Stimulus) -> Stimulus:
        """Add a target to a mask: the sum of their modulations of the same background."""
        if not isinstance(other, Stimulus):
            return NotImplemented
        dtype = str(self.pixels.dtype).rpartition(".")[2]
        device = str(self.pixels.device) if hasattr(self.pixels, "is_cuda") else None
        return (self.spec + other.spec).draw(dtype=dtype, device=device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """Return the pixels, for `numpy.asarray`."""
        pixels = np.asarray(
            self.pixels.cpu() if hasattr(self.pixels, "is_cuda") else self.pixels
        )
        return np.asarray(
            pixels.astype(pixels.dtype if dtype is None else dtype, copy=bool(copy))
        )

    def _repr_html_(self) -> str:
        """Show the stimulus as a picture with its parameters, HTML in a notebook."""
        from psyprobe.stimulus.notebook import stimulus_html

        return stimulus_html(self)

    def __repr__(self) -> str:
        *frames, height, width = self.spec.extent
        prefix = ""
        if self.batch:
            things = "clips" if frames else "images"
            prefix = f"{' x '.join(map(str, self.batch))} {things} of "
        for count in frames:
            prefix += f"{count} frames of "
        size = f"{prefix}{height} x {width} px at {self.ppd:g} ppd"
        return f"<Stimulus {size}, {_PIXELS[self.space]}: {self.spec!r}>"


def _coordinate_name(parameter: str) -> str:
    """Name the xarray coordinate of a parameter: `position_x` for `x`, else as it is."""
    return f"position_{parameter}" if parameter in ("x", "y") else parameter
