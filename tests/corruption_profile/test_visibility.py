"""How visible a corruption is: by a metric of known truth, and by the real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from psyprobe.corruption import dimensions
from psyprobe.errors import UnknownNameError
from psyprobe.light.display import Display
from psyprobe.observers import Card
from psyprobe.tasks.r_bench.visibility import visible_loss

pytest.importorskip("cv2", reason="the corruption extra is not installed")
IMAGE = np.random.default_rng(0).integers(60, 200, (48, 64, 3), dtype=np.uint8)


class MeanDifference:
    """A tenth of the mean absolute difference of light, over 200 cd/m²: a loss that can be computed
    by hand."""

    card = Card("mean difference", "difference", ("difference",))

    def difference(self, test: Any, reference: Any, *, ppd: float) -> Any:
        return (
            np.abs(np.asarray(test) - np.asarray(reference)).mean(axis=(1, 2, 3)) / 200
        )


METRIC: Any = MeanDifference()


def test_no_corruption_costs_nothing_and_more_costs_more() -> None:
    assert visible_loss(IMAGE, "motion_blur", 1.0, metric=METRIC) == 0
    losses = visible_loss(IMAGE, "minimum_darken", [0.1, 0.2, 0.4], metric=METRIC)
    assert (np.diff(losses) > 0).all()


def test_the_parameter_of_a_loss_is_found_by_any_root_finder() -> None:
    span = dimensions()["minimum_darken"].span
    how: Any = {"display": Display(peak=100.0), "ppd": 30.0, "metric": METRIC}
    target_loss = visible_loss(IMAGE, "minimum_darken", span[1], **how) / 3

    def excess(parameter: float) -> float:
        return visible_loss(IMAGE, "minimum_darken", parameter, **how) - target_loss

    parameter = brentq(excess, *span)
    loss = visible_loss(IMAGE, "minimum_darken", parameter, **how)
    assert loss == pytest.approx(target_loss, rel=0.03)
    # A brighter display shows more of it.
    assert visible_loss(IMAGE, "minimum_darken", parameter, metric=METRIC) > loss


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


def test_an_unknown_corruption_is_one_sentence() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'jpeg'"):
        visible_loss(IMAGE, "jpg", 1.0, metric=METRIC)
