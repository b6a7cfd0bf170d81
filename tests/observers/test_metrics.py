"""Metrics: what they say of equal and of different light, and how they are asked by a detection
experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.light.display import Display
from psyprobe.observers import DifferenceObserver, load_observer
from psyprobe.observers.metrics import CastleCsf
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card
from psyprobe.probes.displayed_images import presented, show
from psyprobe.probes.experiments import observer_for
from psyprobe.stimulus import Gabor, Noise

PPD = 60


@pytest.fixture(params=["castlecsf", "cvvdp"])
def metric(request: pytest.FixtureRequest) -> Any:
    if request.param == "cvvdp":
        pytest.importorskip(
            "pycvvdp", reason="the metrics extra is not installed", exc_type=ImportError
        )
        return load_observer("cvvdp", device="cpu")
    return load_observer(request.param)


def light(size: int = 64, **parameters: Any) -> FloatArray:
    """Grey light, (n, size, size, 3), of Gabors on 100 cd/m²."""
    plane = Gabor(
        **{"frequency": 4, "luminance": 100, "radius": 0.3, "ppd": PPD, "size": size}
        | parameters
    ).draw()
    return np.broadcast_to(plane.pixels[..., None], (*plane.pixels.shape, 3))


def test_a_metric_is_a_difference_observer(metric: Any) -> None:
    assert isinstance(metric, DifferenceObserver)
    assert metric.card.ability == "difference"
    assert metric.card.features == ("difference",)
    assert Card.from_dict(metric.card.to_dict()) == metric.card


def test_equal_images_do_not_differ(metric: Any) -> None:
    images = light(contrast=[0.0, 0.1, 0.9])
    np.testing.assert_array_equal(metric.difference(images, images, ppd=PPD), 0)


def test_more_contrast_differs_more(metric: Any) -> None:
    # ColorVideoVDP says 0 somewhat below threshold
    images = light(contrast=[0.0, 0.003, 0.03, 0.3])
    differences = metric.difference(images, images[[0] * 4], ppd=PPD)
    assert differences.shape == (4,)
    assert differences.dtype == np.float64
    assert (np.diff(differences) > 0).all()


def test_batch_is_what_single_images_are(metric: Any) -> None:
    images = light(contrast=[0.0, 0.01, 0.1, 0.4])
    references = images[[0, 0, 1, 0]]
    alone = [
        metric.difference(images[[i]], references[[i]], ppd=PPD)[0] for i in range(4)
    ]
    np.testing.assert_allclose(
        metric.difference(images, references, ppd=PPD), alone, rtol=1e-5, atol=1e-9
    )


def test_grey_view_is_what_three_planes_are(metric: Any) -> None:
    images = light(contrast=[0.0, 0.05])
    copied = np.ascontiguousarray(images)
    views, planes = (
        metric.difference(view, view[[0, 0]], ppd=PPD) for view in (images, copied)
    )
    np.testing.assert_allclose(views, planes, rtol=1e-6, atol=1e-12)


def test_resolution_matters(metric: Any) -> None:
    images = light(contrast=[0.0, 0.05], frequency=10)
    near, far = (
        metric.difference(images[[1]], images[[0]], ppd=ppd)[0] for ppd in (60, 120)
    )
    assert near > far


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: x[:, :32], "compares images of one size"),
        (lambda x: -x, "light is 0 or more"),
        (lambda x: x * np.nan, "NaN or infinity"),
        (lambda x: x.astype(int), "floating point"),
        (lambda x: x[0], "shape"),
    ],
)
def test_what_is_no_light_is_refused(metric: Any, wrong: Any, message: str) -> None:
    images = light(contrast=[0.1])
    with pytest.raises(InputError, match=message):
        metric.difference(wrong(images), images, ppd=PPD)


def test_black_reference_is_refused() -> None:
    black = np.zeros((1, 8, 8, 3))
    with pytest.raises(InputError, match="adapts to no light"):
        CastleCsf().difference(black, black, ppd=PPD)


@given(
    frequency=st.floats(1, 16),
    luminance=st.floats(1, 400),
    radius=st.floats(0.4, 0.6),
    direction=st.sampled_from(["achromatic", "red_green", "yellow_violet"]),
    orientation=st.floats(0, 180),
    phase=st.floats(0, 360),
)
def test_castlecsf_puts_one_half_at_the_human_threshold(
    frequency: float,
    luminance: float,
    radius: float,
    direction: Any,
    orientation: float,
    phase: float,
) -> None:
    fixed = {
        "frequency": frequency,
        "luminance": luminance,
        "radius": radius,
        "direction": direction,
    }
    sensitivity = pp.castle_csf(
        frequency, luminance=luminance, direction=direction, area=np.pi * radius**2
    )
    spec = Gabor(
        contrast=1 / sensitivity,
        orientation=orientation,
        phase=phase,
        ppd=PPD,
        size=192,
        **fixed,
    )
    display = Display(peak=1000.0, extended=True, eotf="linear")
    target_and_reference = (
        presented(
            ImagePlanes.of(display.encode(stimulus.draw(), dtype="float64")[None]),
            display,
            True,
        ).rgb
        for stimulus in (spec, spec.reference())
    )
    response = CastleCsf().difference(*target_and_reference, ppd=PPD)[0]
    # a Gabor holds a band of frequencies, of which the curve's formula takes the middle
    assert response / (1 - response) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize(
    ("frequency", "orientation"), [(15, 0), (15, 90), (15 * 2**0.5, 45), (16, 30)]
)
def test_castlecsf_sees_a_phase_like_any_other(
    frequency: float, orientation: float
) -> None:
    """At 4 pixels a cycle along an axis, or along both, the pixels lie alike on each cycle."""
    responses = []
    for phase in (0, 20, 45, 90):
        images = light(
            192,
            frequency=frequency,
            orientation=orientation,
            phase=phase,
            contrast=[0.0, 0.02],
        )
        responses.append(CastleCsf().difference(images[1:], images[:1], ppd=PPD)[0])
    assert np.ptp(responses) < 1e-3 * responses[0]


def test_castlecsf_masks() -> None:
    mask = (
        Noise(frequency=5, contrast=0.2, luminance=100, ppd=PPD, size=64).draw().pixels
    )
    plane = np.broadcast_to(mask[None, ..., None], (1, 64, 64, 3))
    target = light(contrast=[0.0, 0.05])
    increment = target[[1]] - target[[0]]
    alone = CastleCsf().difference(target[[1]], target[[0]], ppd=PPD)
    masked = CastleCsf().difference(plane + increment, plane, ppd=PPD)
    assert 0 < masked[0] < alone[0]


def test_cvvdp_can_be_told_the_resolution_of_the_published_runs() -> None:
    pytest.importorskip(
        "pycvvdp", reason="the metrics extra is not installed", exc_type=ImportError
    )
    images = light(contrast=[0.0, 0.05])
    at_published_ppd = load_observer("cvvdp", ppd=75.4, device="cpu")
    true = load_observer("cvvdp", device="cpu")
    at_60 = at_published_ppd.difference(images[[1]], images[[0]], ppd=60)
    np.testing.assert_array_equal(
        at_60, true.difference(images[[1]], images[[0]], ppd=75.4)
    )
    assert at_60 != true.difference(images[[1]], images[[0]], ppd=60)
    assert at_published_ppd.card.digest != true.card.digest
    with pytest.raises(InputError, match="ppd is 0"):
        load_observer("cvvdp", ppd=0)
    with pytest.raises(InputError, match="up to 10000 cd/m²"):
        true.difference(images * 1000, images, ppd=60)


def test_published_experiments_tell_a_metric_their_resolution(tmp_path: Path) -> None:
    pytest.importorskip(
        "pycvvdp", reason="the metrics extra is not installed", exc_type=ImportError
    )
    path = write_experiment(
        tmp_path,
        ("[display]", "[observer]\nmetric_ppd = 75.4\n[display]"),
        stimulus=(("ppd = 16", "ppd = 64"), ("size = 16", "size = 64")),
    )
    published = load_experiment(path)
    assert observer_for(published, "cvvdp").card.options["ppd"] == 75.4
    assert observer_for(published, "cvvdp", ppd=60).card.options["ppd"] == 60
    assert "ppd" not in observer_for(published, "castlecsf").card.options
    result = pp.run(published, "cvvdp", score_only=True, progress=False)
    assert json.loads(result.attrs["observer_card"])["options"]["ppd"] == 75.4
    metric = load_observer("cvvdp")
    with pytest.raises(
        InputError,
        match=r"75.4 pixels per degree, .* load it with ppd=75.4, or with the ppd you",
    ):
        pp.run(published, metric, progress=False)
    assert (
        observer_for(load_experiment("gabor_achromatic"), "cvvdp").card == metric.card
    )


def test_dim_light_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip(
        "pycvvdp", reason="the metrics extra is not installed", exc_type=ImportError
    )
    images = light(contrast=[0.0, 0.05], luminance=0.1)
    assert (
        load_observer("cvvdp", device="cpu").difference(
            images[[1]], images[[0]], ppd=60
        )
        >= 0
    )
    assert not caplog.records


def test_metric_sees_the_light_of_the_display() -> None:
    display = Display(peak=200.0, black=0.5)
    spec = Gabor(frequency=4, contrast=0.3, luminance=50, radius=0.2, ppd=PPD, size=32)
    displayed = show([spec], display)
    light = presented(displayed, display, True)
    np.testing.assert_allclose(
        light.planes[..., 0], spec.draw().pixels[None], rtol=1e-5
    )
    assert light.is_grey and light.rgb.strides[-1] == 0
    assert presented(displayed, display, False) is displayed


def test_detection_with_a_metric(tmp_path: Path) -> None:
    result = pp.run(
        write_experiment(tmp_path),
        "castlecsf",
        store=tmp_path / "runs.sqlite",
        progress=False,
    )
    assert list(result["layer"].values) == ["difference"]
    assert json.loads(result.attrs["measures"]) == ["difference"]
    np.testing.assert_array_equal(result["noise_floor_difference"], 0)
    assert result.attrs["score_measure"] == "difference"
    score = pp.score(result)
    assert score.measure == "difference"
    assert score.float32_floor is None
    pixels = pp.run(write_experiment(tmp_path), "pixels", progress=False)
    # the pixel baseline of a metric is that of every other observer
    np.testing.assert_array_equal(
        result["pixels_scored_response_difference"],
        pixels["pixels_scored_response_angular"],
    )
    pp.plot(result)


@pytest.mark.parametrize(
    ("answer", "message"), [(np.zeros(1000), "shape"), (None, "finite")]
)
def test_metric_with_a_wrong_answer_is_told(
    tmp_path: Path, answer: FloatArray | None, message: str
) -> None:
    class Wrong:
        card = Card("wrong", "difference", ("difference",))

        def difference(
            self, test: FloatArray, reference: FloatArray, *, ppd: float
        ) -> FloatArray:
            return np.full(len(test), np.nan) if answer is None else answer

    with pytest.raises(InputError, match=message):
        pp.run(write_experiment(tmp_path), Wrong(), progress=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("experiment", "level"),
    [
        ("gabor_achromatic", "frequency"),
        ("gabor_red_green", "frequency"),
        ("gabor_yellow_violet", "frequency"),
        ("luminance", "luminance"),
        ("area", "area"),
    ],
)
def test_castlecsf_scores_what_can_be_reached(experiment: str, level: str) -> None:
    page = load_experiment(experiment).with_settings({f"levels.{level}.n": 8})
    result = pp.run(page, "castlecsf", score_only=True, progress=False)
    alignment = pp.score(result).score.alignment
    assert alignment.value is not None
    assert alignment.value > alignment.attainable - 0.002
