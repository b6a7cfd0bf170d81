"""Fields of elements: Gabors or blobs at places of one's own, textures, paths and Glass patterns.

Places are drawn from a seed with a smallest spacing, and the certificate finds them again in the
pixels, without a look at the parameters.

References
----------
Field, Hayes & Hess (1993), Vision Research 33:173 (paths). Glass (1969), Nature 223:578.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray, Levels, Size
from psyprobe.errors import InputError
from psyprobe.light.colour import Direction
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.kinds.element_fit import Elements as FittedElements
from psyprobe.stimulus.kinds.element_fit import find_elements
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import check_keywords, common, parameter
from psyprobe.stimulus.pattern import Modulation, cos_sin_degrees, pixel_positions
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import STANDARD_ERRORS

_METHOD = "peaks of the element's filter, Gauss-Newton on all elements"

#: Smallest spacing of elements, in standard deviations of their envelope.
_CLOSEST = 4.0
#: Places tried for each element before a field counts as full.
_TRIES = 200


class ElementField(Modulation):
    """Equal elements at places that a kind lays out."""

    radius: Levels = common("radius", default=0.1)

    contrast_kind = "michelson"
    deepest = None
    # Of kinds whose elements are blobs.
    frequency = 0.0
    phase = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = f"elements have a standard deviation of a pixel ({1 / self.ppd:.4g} deg) or more"
        self._require("radius", self.radius * self.ppd >= 1 - 1e-9, allowed)

    def layout(self) -> FloatArray:
        """Compute x, y and orientation (deg) of each element of one image, (k, 3)."""
        raise NotImplementedError

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw ``offset + amplitude * elements``, shape (n, H, W)."""
        images = np.stack([single._draw_elements() for single in self.singles()])
        return backend.array(images * amplitude[:, None, None] + offset[:, None, None])

    def _draw_elements(self) -> FloatArray:
        """Draw all elements of one image about 0, (H, W)."""
        x, y, orientation = self.layout().T[..., None]
        dx = pixel_positions(self.shape[1], self.ppd) - x
        dy = -pixel_positions(self.shape[0], self.ppd) - y
        cosine, sine = cos_sin_degrees(orientation)
        wave = 2j * np.pi * self.frequency
        variance = 2 * self.radius**2
        across = np.exp(wave * cosine * dx - dx**2 / variance)
        up = np.exp(wave * sine * dy - dy**2 / variance)
        return np.asarray((up.T @ (across * np.exp(1j * np.deg2rad(self.phase)))).real)

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure levels and contrast, and place, orientation and spacing of the elements."""
        super().measure_planes(planes, measurements)
        if not measurements.refined or self.contrast == 0:
            return
        elements = find_elements(
            planes.pattern / self.luminance - 1,
            self.frequency / self.ppd,
            self.radius * self.ppd,
        )
        layout = self.layout()
        measurements.add("elements", len(layout), len(elements.x), _METHOD)
        if not len(elements.x):
            return
        doubt = STANDARD_ERRORS * measurements.pixel_error(self.contrast)
        doubt /= self.luminance
        places = np.stack([elements.x, elements.y], axis=1) / self.ppd
        distance = np.hypot(*(layout[:, None, :2] - places).transpose(2, 0, 1))
        nearest = distance.argmin(axis=1)
        extra = doubt * float(elements.gain[:2].max())
        furthest = float(distance.min(axis=1).max()) * self.ppd
        measurements.add("element position", 0.0, furthest, _METHOD, extra=extra)
        if self.frequency:
            turn = np.degrees(elements.angle[nearest]) - layout[:, 2]
            turn = np.abs((turn + 90) % 180 - 90).max()
            doubt *= float(np.degrees(elements.gain[2].max()))
            measurements.add("element orientation", 0.0, turn, _METHOD, extra=doubt)
        if len(places) > 1 and len(layout) > 1:
            measurements.add(
                "smallest spacing",
                _smallest_spacing(layout[:, :2]),
                _smallest_spacing(places),
                _METHOD,
                extra=2 * extra / (_CLOSEST * self.radius * self.ppd),
            )
        self._measure_layout(elements, measurements)

    def _measure_layout(
        self, elements: FittedElements, measurements: ImageMeasurements
    ) -> None:
        """Measure what defines this kind's layout, such as spacing or coherence."""


def _smallest_spacing(places: FloatArray) -> float:
    """Compute the distance between the two places that are nearest to each other."""
    gaps = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    return float(gaps[~np.eye(len(places), dtype=bool)].min())


class _Field:
    """Places in a field that keep their distance from each other."""

    def __init__(
        self, field: tuple[float, float], margin: float, distance: float
    ) -> None:
        self.half = np.array([field[1], field[0]]) / 2 - margin
        self.distance = distance
        self.places = np.empty((0, 2))

    def add(self, group: FloatArray) -> bool:
        """Add places, (k, 2), if all lie inside and far enough from others, and tell so."""
        if (np.abs(group) > self.half).any():
            return False
        gaps = np.hypot(*(group[:, None] - self.places).transpose(2, 0, 1))
        if (gaps < self.distance).any():
            return False
        self.places = np.concatenate([self.places, group])
        return True

    def fill(
        self, count: int, groups: Iterator[FloatArray], obstacle: str
    ) -> list[FloatArray]:
        """Add `count` groups of places out of an iterator, and return those added."""
        added: list[FloatArray] = []
        for _ in range(count * _TRIES):
            if len(added) == count:
                break
            group = next(groups)
            if self.add(group):
                added.append(group)
        if len(added) < count:
            raise InputError(
                f"only {len(added)} of {count} {obstacle} find a place at least "
                f"{self.distance:g} deg from all others; lower density or distance, or enlarge "
                "the field"
            )
        return added

    def scatter(self, count: int, generator: np.random.Generator) -> None:
        """Add single places at random."""
        places = (generator.uniform(-self.half, self.half)[None] for _ in repeat(None))
        self.fill(count, places, "elements")


class _GaborField(ElementField):
    """Gabors at places that a kind lays out."""

    frequency: Levels = common("frequency")
    phase: Levels = common("phase", default=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = f"waves must stay below {self.ppd / 2:g} cpd (Nyquist)"
        self._require("frequency", self.frequency < self.ppd / 2, allowed)


@stimulus_kind("elements")
class Elements(_GaborField):
    """Gabors at places of one's own; parameters as in `psyprobe.elements`.

    Examples
    --------
    >>> places = [[-0.5, 0, 45], [0.5, 0, -45]]
    >>> Elements(places=places, frequency=4.0, contrast=0.5).measure()["elements"].delivered
    2.0
    """

    places: tuple[tuple[float, float, float], ...]
    orientation: Levels = common("orientation", default=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            places = np.array(self.places, dtype=np.float64)
        except (TypeError, ValueError):
            places = np.empty(0)
        if places.ndim != 2 or places.shape[1] != 3 or not np.isfinite(places).all():
            raise InputError(
                f"places is {self.places!r}; give [x, y, orientation] of each element, deg"
            )
        object.__setattr__(self, "places", tuple(map(tuple, places.tolist())))
        height, width = self.field
        half = np.array([width, height]) / 2 - np.max(self.radius)
        outside = (np.abs(places[:, :2]) > half).any(axis=1)
        if outside.any():
            x, y, _ = places[outside][0]
            raise InputError(
                f"the place {x:g}, {y:g} deg lies outside the field of {width:.4g} x {height:.4g} "
                "deg, or less than a radius from its rim"
            )

    def layout(self) -> FloatArray:
        """Compute the places, each turned by `orientation`."""
        layout = np.array(self.places)
        layout[:, 2] += self.orientation
        return layout


class _ScatteredField(_GaborField):
    """Gabors at random places of a stated density and smallest spacing."""

    density: Levels = parameter("1/deg²", "Density", default=3.5, low=0, above=True)
    distance: Levels = parameter("deg", "Smallest spacing", default=0.4, low=0)
    jitter: Levels = parameter("deg", "Orientation jitter", default=0.0, low=0, high=90)
    seed: Levels = common("seed", default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_spacing(self, "distance")

    @property
    def _count(self) -> int:
        """The number of elements in the field."""
        height, width = self.field
        return max(1, round(float(self.density) * height * width))


def _check_spacing(spec: ElementField, name: str) -> None:
    """Refuse a spacing at which elements cannot be told apart."""
    allowed = f"elements are told apart at {_CLOSEST:g} times their radius and more"
    closest = _CLOSEST * np.asarray(spec.radius) * (1 - 1e-9)
    spec._require(name, getattr(spec, name) >= closest, allowed)


@stimulus_kind("texture")
class Texture(_ScatteredField):
    """Gabors at random places, turned about one orientation; parameters as in `psyprobe.texture`.

    Examples
    --------
    >>> texture = Texture(frequency=5.0, contrast=0.5, orientation=30.0, jitter=10.0, seed=1)
    >>> certificate = texture.measure()
    >>> certificate["elements"].delivered, certificate["smallest spacing"].delivered >= 0.4
    (49.0, True)
    """

    orientation: Levels = common("orientation", default=0.0)

    def layout(self) -> FloatArray:
        """Draw random places and orientations of the elements."""
        sampling = (self.field, self.radius, self.distance)
        scatter = _scatter(*sampling, self._count, int(self.seed))
        layout = scatter.copy()
        layout[:, 2] = self.orientation + layout[:, 2] * self.jitter / 90
        return layout


@lru_cache(maxsize=64)
def _scatter(
    size: tuple[float, float], radius: float, distance: float, count: int, seed: int
) -> FloatArray:
    """Draw random places, deg, and turns from -90 to 90 deg, (count, 3)."""
    generator = np.random.default_rng(seed)
    field = _Field(size, 2 * radius, distance)
    field.scatter(count, generator)
    turns = generator.uniform(-90, 90, (count, 1))
    return np.concatenate([field.places, turns], axis=1)


@stimulus_kind("contour")
class Contour(_ScatteredField):
    """A path of Gabors among others of random orientation; parameters as in `psyprobe.contour`.

    Examples
    --------
    >>> contour = Contour(frequency=5.0, contrast=0.5, path_angle=[0.0, 20.0, 40.0], seed=2)
    >>> contour.measure().passed
    True
    """

    path_angle: Levels = parameter("deg", "Path angle", default=0.0, low=0, high=90)
    path_elements: Levels = parameter(
        "1", "Elements of the path", default=6.0, low=2, whole=True
    )
    spacing: Levels = parameter("deg", "Spacing on the path", default=0.45, low=0)
    tilt: Levels = parameter("deg", "Tilt to the path", default=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = "elements of the path keep at least the distance of all others"
        self._require("spacing", self.spacing >= self.distance, allowed)

    def layout(self) -> FloatArray:
        """Draw the places of the path, then of the other elements."""
        layout = _lay_path(
            self.field,
            self.radius,
            self.distance,
            self._count,
            int(self.seed),
            self.path_angle,
            int(self.path_elements),
            self.spacing,
        ).copy()
        path = slice(0, int(self.path_elements))
        layout[path, 2] = layout[path, 2] + self.tilt
        layout[path, 2] += layout[path, 3] * self.jitter / 90
        return layout[:, :3]


@lru_cache(maxsize=64)
def _lay_path(
    size: tuple[float, float],
    radius: float,
    distance: float,
    count: int,
    seed: int,
    path_angle: float,
    path_elements: int,
    spacing: float,
) -> FloatArray:
    """Draw places and orientations, the path first, with random turns, (count, 4)."""
    generator = np.random.default_rng(seed)
    field = _Field(size, 2 * radius, distance)
    paths = (_path(generator, path_angle, path_elements, spacing) for _ in repeat(None))
    straight = (
        path
        for path in paths
        if _smallest_spacing(path[:, :2]) >= distance * (1 - 1e-9)
    )
    headings = {}

    def places() -> Iterator[FloatArray]:
        for path in straight:
            headings["path"] = path[:, 2]
            yield path[:, :2]

    field.fill(1, places(), f"path of {path_elements} elements")
    field.scatter(max(count - path_elements, 0), generator)
    turns = generator.uniform(-90, 90, (len(field.places), 2))
    turns[:path_elements, 0] = headings["path"]
    return np.concatenate([field.places, turns], axis=1)


def _path(
    generator: np.random.Generator, angle: float, count: int, spacing: float
) -> FloatArray:
    """Draw a path about the middle: places and orientations of its elements, (count, 3).

    Elements lie in the middle of segments, along them, and neighbours are `spacing` apart.
    """
    start = generator.uniform(0, 360)
    turns = np.cumsum(generator.choice([-1, 1], count - 1)) * angle
    headings = start + np.concatenate([[0.0], turns])
    cosine, sine = cos_sin_degrees(headings)
    length = spacing / np.cos(np.radians(angle / 2))
    segments = length * np.stack([cosine, sine], axis=1)
    places = np.cumsum(segments, axis=0) - segments / 2
    places -= (places.max(axis=0) + places.min(axis=0)) / 2
    # Stripes of orientation 0 are vertical.
    return np.concatenate([places, headings[:, None] - 90], axis=1)


@stimulus_kind("glass")
class Glass(ElementField):
    """Pairs of dots about a centre, of which some point along a flow; as in `psyprobe.glass`.

    Examples
    --------
    >>> rings = Glass(contrast=0.5, coherence=0.5, radius=0.03)
    >>> rings.measure()["pair coherence"].delivered
    0.5
    """

    coherence: Levels = parameter("1", "Coherence", default=1.0, low=0, high=1)
    flow: Levels = parameter("deg", "Angle of the flow to the radius", default=90.0)
    separation: Levels = parameter("deg", "Separation in a pair", default=0.15, low=0)
    density: Levels = parameter(
        "1/deg²", "Density of pairs", default=4.0, low=0, above=True
    )
    distance: Levels = parameter("deg", "Spacing of pairs", default=0.2, low=0)
    seed: Levels = common("seed", default=0)
    radius: Levels = common("radius", default=0.03)

    contrast_kind = "weber"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("separation", "distance"):
            _check_spacing(self, name)
        allowed = "pairs are told apart where they are further from each other than their own dots"
        self._require("distance", self.distance > self.separation, allowed)

    def layout(self) -> FloatArray:
        """Draw the places of pairs of dots, one after its partner."""
        height, width = self.field
        count = max(1, round(self.density * height * width))
        return _lay_pairs(
            self.field,
            self.radius,
            self.distance,
            count,
            int(self.seed),
            round(self.coherence * count),
            self.flow,
            self.separation,
        )

    def _measure_layout(
        self, elements: FittedElements, measurements: ImageMeasurements
    ) -> None:
        """Measure the share of pairs along the flow, by dots' nearest neighbours."""
        places = (elements.x + 1j * elements.y) / self.ppd
        gaps = np.abs(places[:, None] - places)
        np.fill_diagonal(gaps, np.inf)
        partner = gaps.argmin(axis=1)
        pair = places[partner] - places
        middle = (places[partner] + places) / 2
        turn = np.degrees(np.angle(pair / middle)) - self.flow
        along = np.abs((turn + 90) % 180 - 90) < 0.1
        count = len(self.layout()) // 2
        method = "share of nearest neighbours along the flow, within 0.1 deg"
        requested = round(self.coherence * count) / count
        measurements.add(
            "pair coherence", requested, along.mean(), method, extra=2 / count
        )
        measurements.add(
            "pair separation", self.separation, np.median(np.abs(pair)), _METHOD
        )


@lru_cache(maxsize=64)
def _lay_pairs(
    size: tuple[float, float],
    radius: float,
    distance: float,
    count: int,
    seed: int,
    coherent: int,
    flow: float,
    separation: float,
) -> FloatArray:
    """Draw places of pairs of dots, some along a flow and others at random, (2 * count, 3)."""
    generator = np.random.default_rng(seed)
    field = _Field(size, 2 * radius, distance)

    def pairs(along: bool) -> Iterator[FloatArray]:
        while True:
            x, y = generator.uniform(-field.half, field.half)
            angle = np.radians(flow) + np.arctan2(y, x)
            if not along:
                angle = generator.uniform(0, np.pi)
            half = separation / 2 * np.exp(1j * angle)
            ends = np.array([x + 1j * y - half, x + 1j * y + half])
            yield np.stack([ends.real, ends.imag], axis=1)

    field.fill(coherent, pairs(along=True), "pairs")
    field.fill(count - coherent, pairs(along=False), "pairs")
    return np.concatenate([field.places, np.zeros((2 * count, 1))], axis=1)


@check_keywords
def elements(
    *,
    places: Sequence[tuple[float, float, float]],
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 0.1,
    orientation: ArrayLike = 0.0,
    phase: ArrayLike = 0.0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Gabors at given places.

    Parameters
    ----------
    places : sequence of (x, y, orientation)
        Of each element: deg to the right and up of the middle, and deg counter-clockwise.
    orientation : float or array
        Degrees by which all are turned besides.
    radius : float or array
        Standard deviation of an element, deg.
    frequency, contrast, luminance, phase, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> places = [(x, 0.0, 90.0 * x) for x in (-1, 0, 1)]
    >>> elements(places=places, frequency=4, contrast=0.5).luminance.shape
    (224, 224)
    """
    return draw_kind(Elements, locals())


@check_keywords
def texture(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 0.1,
    orientation: ArrayLike = 0.0,
    phase: ArrayLike = 0.0,
    density: ArrayLike = 3.5,
    distance: ArrayLike = 0.4,
    jitter: ArrayLike = 0.0,
    seed: ArrayLike = 0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw textures: Gabors at random places, turned about one orientation.

    Parameters
    ----------
    density : float or array
        Elements in a square degree.
    distance : float or array
        Smallest spacing of any two, centre to centre, deg; 4 `radius` at least.
    orientation, jitter : float or array
        Orientations are uniform within `jitter` (0 to 90 deg) of `orientation`.
    seed : int or array of int
        Seed of places and turns; the same for all orientations and jitters.
    radius : float or array
        Standard deviation of an element, deg.
    frequency, contrast, luminance, phase, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> texture(frequency=5, contrast=0.5, jitter=[0, 45, 90]).luminance.shape
    (3, 224, 224)
    """
    return draw_kind(Texture, locals())


@check_keywords
def contour(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 0.1,
    phase: ArrayLike = 0.0,
    path_angle: ArrayLike = 0.0,
    path_elements: ArrayLike = 6,
    spacing: ArrayLike = 0.45,
    tilt: ArrayLike = 0.0,
    density: ArrayLike = 3.5,
    distance: ArrayLike = 0.4,
    jitter: ArrayLike = 0.0,
    seed: ArrayLike = 0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw a path of Gabors among others of random orientation.

    Parameters
    ----------
    path_angle : float or array
        By how much the path turns from element to element, to either side at random, deg.
    path_elements : int or array of int
        Elements of the path, whose middle is that of the field.
    spacing : float or array
        From one element of the path to the next, deg, at every path angle.
    tilt : float or array
        Turn of its elements from the path, deg; 90 makes a ladder.
    jitter : float or array
        Elements of the path are turned by up to so much besides, deg; at 90 there is no path.
    density : float or array
        Elements in a square degree.
    distance : float or array
        Smallest spacing of any two, centre to centre, deg; 4 `radius` at least.
    seed : int or array of int
        Seed of the path and of all else.
    radius : float or array
        Standard deviation of an element, deg.
    frequency, contrast, luminance, phase, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> contour(frequency=5, contrast=0.5, path_angle=[0, 30]).luminance.shape
    (2, 224, 224)
    """
    return draw_kind(Contour, locals())


@check_keywords
def glass(
    *,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    coherence: ArrayLike = 1.0,
    flow: ArrayLike = 90.0,
    separation: ArrayLike = 0.15,
    density: ArrayLike = 4.0,
    distance: ArrayLike = 0.2,
    radius: ArrayLike = 0.03,
    seed: ArrayLike = 0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Glass patterns: pairs of Gaussian dots, of which some point along a flow.

    Parameters
    ----------
    contrast : float or array
        Weber contrast at the middle of a dot.
    coherence : float or array
        Share of the pairs that point along the flow; all others point anywhere.
    flow : float or array
        Angle of the flow to the radius, deg: 0 expansion, 90 rotation, between them spirals.
    separation : float or array
        From dot to dot in a pair, deg.
    density : float or array
        Pairs in a square degree.
    distance : float or array
        Smallest spacing of dots of two pairs, deg; above `separation`.
    radius : float or array
        Standard deviation of a dot, deg; spacings are 4 of it at least.
    seed : int or array of int
        Seed of the places.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> glass(contrast=0.5, flow=[0, 90], coherence=0.8).luminance.shape
    (2, 224, 224)
    """
    return draw_kind(Glass, locals())
