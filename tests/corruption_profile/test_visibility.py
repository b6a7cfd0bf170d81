"""How visible a corruption is, and the parameter that makes it so: by a metric of known truth, and
by the real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psyprobe.corruption import dimensions
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.light.display import Display
from psyprobe.tasks.r_bench.visibility import parameter_for, visible_loss

pytest.importorskip("cv2", reason="the corruption extra is not installed")
IMAGE = np.random.default_rng(0).integers(60, 200, (48, 64, 3), dtype=np.uint8)


class MeanDifference:
    """A tenth of the mean absolute difference of light, over 200 cd/m²: a loss that can be computed
    by hand."""

    def difference(self, test: Any, reference: Any, *, ppd: float) -> Any:
        return (
            np.abs(np.asarray(test) - np.asarray(reference)).mean(axis=(1, 2, 3)) / 200
        )


METRIC: Any = MeanDifference()


def test_no_corruption_costs_nothing_and_more_costs_more() -> None:
    assert visible_loss(IMAGE, "motion_blur", 1.0, metric=METRIC) == 0
    losses = visible_loss(IMAGE, "minimum_darken", [0.1, 0.2, 0.4], metric=METRIC)
    assert (np.diff(losses) > 0).all()


@pytest.mark.parametrize(
    "name", ["minimum_darken", "white_noise", "gaussian_filter", "contrast_change"]
)
def test_the_parameter_found_has_the_loss_that_was_asked_for(name: str) -> None:
    most = visible_loss(IMAGE, name, dimensions()[name].span[1], metric=METRIC)
    wanted = most / 3
    found = parameter_for([IMAGE], name, wanted, metric=METRIC, tolerance=wanted / 50)
    assert found.reached
    again = visible_loss(IMAGE, name, found.parameter, metric=METRIC)
    assert found.loss == pytest.approx(again, rel=1e-6)
    assert found.loss == pytest.approx(wanted, rel=0.03)


def test_the_parameter_belongs_to_the_display_and_the_draws_that_were_named() -> None:
    how: Any = {
        "display": Display(peak=100.0),
        "ppd": 30.0,
        "seed": 3,
        "metric": METRIC,
    }
    found = parameter_for([IMAGE], "white_noise", 1.0, **how)
    assert found.loss == pytest.approx(
        visible_loss(IMAGE, "white_noise", found.parameter, **how), rel=1e-6
    )
    assert (
        found.parameter
        > 1.5 * parameter_for([IMAGE], "white_noise", 1.0, metric=METRIC).parameter
    )


def test_a_loss_out_of_reach_is_said() -> None:
    found = parameter_for([IMAGE], "minimum_darken", 9.0, metric=METRIC)
    assert not found.reached
    assert found.parameter == dimensions()["minimum_darken"].span[1]


def test_every_span_holds_every_level() -> None:
    for dimension in dimensions().values():
        low, high = sorted(dimension.span)
        assert all(low <= level <= high for level in dimension.levels), dimension.name
        away = [abs(level - dimension.span[0]) for level in dimension.levels]
        assert away == sorted(away), dimension.name


@pytest.mark.slow
def test_colour_video_vdp_sees_stronger_compression_better() -> None:
    pytest.importorskip("pycvvdp", reason="the metrics extra is not installed")
    losses = visible_loss(IMAGE, "jpeg", ["low", "high"])
    assert 0 < losses[0] < losses[1] < 10


def test_bad_requests_are_one_sentence() -> None:
    with pytest.raises(InputError, match="a loss of 0 JOD is not above 0"):
        parameter_for([IMAGE], "jpeg", 0.0, metric=METRIC)
    with pytest.raises(InputError, match="there is no image"):
        parameter_for([], "jpeg", metric=METRIC)
    with pytest.raises(UnknownNameError, match="did you mean 'jpeg'"):
        parameter_for([IMAGE], "jpg", metric=METRIC)
