"""Elements lie where they should and keep their distance, and the certificate finds them in the
pixels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.stimulus import Contour, Elements, Glass, Specification, Texture
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.stimulus.kinds.element_fit import find_elements
from psyprobe.testing import CalibrationError, assert_calibrated, strategies

GABORS: dict[str, Any] = {
    "frequency": 5.0,
    "radius": 0.1,
    "contrast": 0.5,
    "ppd": 40.0,
    "size": 144,
}


def elements_of(spec: Any) -> FloatArray:
    """Measure x, y (deg) and orientation (deg) of the elements in the pixels of an image."""
    change = np.asarray(spec.draw().luminance) / spec.luminance - 1
    elements = find_elements(change, spec.frequency / spec.ppd, spec.radius * spec.ppd)
    turned = np.degrees(elements.angle)
    return np.stack([elements.x / spec.ppd, elements.y / spec.ppd, turned], axis=1)


def turn(first: FloatArray, second: FloatArray) -> FloatArray:
    """Angle between two orientations, deg."""
    return np.abs((first - second + 90) % 180 - 90)


def test_the_elements_of_the_pixels_are_those_of_the_list() -> None:
    places = [(-0.6, 0.3, 20.0), (0.51, 0.01, -45.0), (0.0, -0.7, 90.0)]
    elements = elements_of(Elements(places=places, **GABORS))
    order = [np.hypot(*(elements[:, :2] - place[:2]).T).argmin() for place in places]
    np.testing.assert_allclose(elements[order, :2], np.array(places)[:, :2], atol=1e-11)
    assert turn(elements[order, 2], np.array(places)[:, 2]).max() < 1e-9


@pytest.mark.parametrize("path_angle", [0.0, 20.0, 40.0])
def test_a_path_turns_by_its_angle_at_its_spacing(path_angle: float) -> None:
    spec = Contour(path_angle=path_angle, path_elements=6, seed=4, **GABORS)
    elements = elements_of(spec)
    assert len(elements) == round(spec.density * 3.6**2)
    layout = spec.layout()[:6]
    path = [np.hypot(*(elements[:, :2] - place[:2]).T).argmin() for place in layout]
    steps = np.diff(elements[path, :2], axis=0)
    np.testing.assert_allclose(np.hypot(*steps.T), spec.spacing, atol=1e-9)
    turns = turn(elements[path[1:], 2], elements[path[:-1], 2])
    np.testing.assert_allclose(turns, path_angle, atol=1e-8)
    # Each lies along the path: between the directions to its neighbours.
    along = np.degrees(np.arctan2(steps[:, 1], steps[:, 0]))
    np.testing.assert_allclose(
        turn(elements[path[1:], 2] + 90, along), path_angle / 2, atol=1e-8
    )
    gaps = np.hypot(*(elements[:, None, :2] - elements[:, :2]).transpose(2, 0, 1))
    assert gaps[gaps > 0].min() >= spec.distance - 1e-9


def test_jitter_turns_the_path_alone_and_moves_nothing() -> None:
    straight, jittered, random = (
        Contour(jitter=jitter, seed=4, **GABORS).layout() for jitter in (0, 15, 90)
    )
    assert (straight[:, :2] == random[:, :2]).all()
    assert 5 < np.abs(jittered - straight)[:6, 2].max() <= 15
    assert (jittered[6:] == straight[6:]).all()


def test_a_texture_has_the_orientation_of_its_gradients() -> None:
    def tensor(jitter: float) -> complex:
        spec = Texture(orientation=30.0, jitter=jitter, seed=3, **GABORS)
        down, across = np.gradient(np.asarray(spec.draw().luminance))
        doubled = (across - 1j * down) ** 2
        return complex(doubled.sum() / np.abs(doubled).sum())

    assert np.degrees(np.angle(tensor(0.0))) / 2 == pytest.approx(30, abs=3)
    assert abs(tensor(0.0)) > 0.6 > 0.3 > abs(tensor(90.0))


@pytest.mark.parametrize("flow", [0.0, 90.0])
def test_pairs_of_dots_follow_the_flow(flow: float) -> None:
    page = load_stimulus("glass_pattern")
    for coherence in (0.0, 0.5, 1.0):
        spec = page.spec(coherence=coherence, flow=flow)
        elements = elements_of(spec)
        places = elements[:, 0] + 1j * elements[:, 1]
        gaps = np.abs(places[:, None] - places)
        np.fill_diagonal(gaps, 9)
        np.testing.assert_allclose(gaps.min(axis=1), spec.separation, atol=1e-9)
        partner = gaps.argmin(axis=1)
        direction = (places[partner] - places) / (places[partner] + places)
        angle = np.degrees(np.angle(direction))
        aligned = (turn(angle, np.full(len(angle), flow)) < 2).mean()
        assert aligned == pytest.approx(coherence, abs=0.06)


def moved(spec: Any, index: int, by: tuple[float, float, float]) -> Specification:
    layout = spec.layout()
    layout[index] += by
    names = ("frequency", "radius", "contrast", "ppd", "size")
    values = {name: getattr(spec, name) for name in names}
    return Elements(places=layout.tolist(), **values)


@pytest.mark.parametrize(
    ("by", "quantity"),
    [
        ((0.001, 0.0, 0.0), "element position"),
        ((0.0, 0.0, 0.05), "element orientation"),
        ((9.0, 0.0, 0.0), "elements"),
    ],
)
def test_one_element_amiss_is_noticed(
    by: tuple[float, float, float], quantity: str
) -> None:
    spec = Texture(jitter=20.0, seed=1, **GABORS)
    if quantity == "elements":
        fewer = spec.layout()[1:].tolist()
        image = Elements(places=fewer, **GABORS).draw().luminance
    else:
        image = moved(spec, 5, by).draw().luminance
    with pytest.raises(CalibrationError) as failure:
        assert_calibrated(image, spec, space="luminance")
    assert not failure.value.certificate[quantity].passed  # type: ignore[index]


def test_pairs_that_do_not_follow_are_noticed() -> None:
    spec = load_stimulus("glass_pattern").spec(coherence=1.0)
    assert isinstance(spec, Glass)
    image = spec.changed(coherence=0.8).draw().luminance
    with pytest.raises(CalibrationError) as failure:
        assert_calibrated(image, spec, space="luminance")
    certificate = failure.value.certificate
    assert certificate is not None
    assert certificate["pair coherence"].delivered == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"density": 9.0}, r"only \d+ of 111 elements find a place at least 0.4 deg"),
        ({"distance": 0.3}, "told apart at 4 times their radius"),
        ({"spacing": 0.3}, "spacing is 0.3 deg; .* at least the distance"),
        ({"path_elements": 20}, "only 0 of 1 path of 20 elements"),
        ({"frequency": 21.0}, "below 20 cpd"),
        ({"path_angel": 3.0}, "did you mean 'path_angle'"),
    ],
)
def test_a_field_that_cannot_be_is_one_sentence(
    values: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        pp.contour(**(GABORS | values))


@pytest.mark.parametrize("places", [[], [[0.0, 1.0]], "here", [[5.0, 0.0, 0.0]]])
def test_places_are_places(places: Any) -> None:
    with pytest.raises(
        InputError, match=r"give \[x, y, orientation\]|outside the field"
    ):
        pp.elements(places=places, **GABORS)


@settings(max_examples=10)
@given(
    st.one_of(
        strategies.element_fields(),
        strategies.textures(),
        strategies.contours(),
        strategies.glasses(),
    )
)
def test_every_field_of_elements_is_calibrated(spec: Specification) -> None:
    assert_calibrated(spec.draw())
