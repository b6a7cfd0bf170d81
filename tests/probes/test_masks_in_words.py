"""Overlays, surrounds and masked pedestals of the catalogue asked in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import chat_csf
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.human.discrimination import legge_foley_response
from psyprobe.stimulus import Specification

#: Width of an image of the pages, deg.
DEG = 224 / 60
#: d' at which 75 % of the choices are right.
D_PRIME = 0.9539
#: Contrast at which Legge and Foley's transducer detects a pattern.
DETECTED = 0.0038206


def visible(observer: Any, spec: Specification) -> float:
    """Contrast of an image in units of the observer's threshold."""
    drive = np.asarray(
        pp.Display(peak=400).encode(spec.draw(dtype="float64"), dtype="float64")
    )
    return float(observer.visible(drive))


@pytest.mark.parametrize(
    ("name", "level", "place"),
    [
        ("gabor_masked_orthogonal", "mask_contrast", 6),
        ("surround", "mask_orientation", 4),
        ("contrast_discrimination_masked", "contrast", 3),
    ],
)
def test_a_transducer_is_recovered_in_words(name: str, level: str, place: int) -> None:
    page = load_experiment(name)
    assert page.asking is not None
    value = page.levels[level][place]
    at = {**page.asking.hold, level: value}
    # It sees the contrast of the whole image, so that masks as large as the field hide much.
    observer = pp.load_observer(
        "simulated:castlecsf",
        deg=DEG,
        luminance=page.spec().value("luminance"),
        scale=8.0,
    )
    run = pp.run(
        page.with_settings({f"levels.{level}": {"values": [value]}}),
        observer,
        progress=False,
    )
    # An observer that sees nothing is right half of the time, and no rate is fitted.
    np.testing.assert_allclose(chat_csf(run, resamples=2)["guess"], 0.5, rtol=1e-12)
    (point,) = pp.score(run).curve
    # An increment stands on a pedestal, and any other target on the mask alone.
    pedestal = value if level == "contrast" else 0.0
    alone = (
        page.spec(**at)
        if pedestal
        else page.spec(**{**at, "contrast": 0.1}).reference()
    )
    increments = np.geomspace(0.02, 0.5, 20)
    visibilities = [
        visible(observer, page.spec(**{**at, "contrast": pedestal + by}))
        for by in increments
    ]
    rise = legge_foley_response(
        np.array([*visibilities, visible(observer, alone)]) * DETECTED
    )
    truth = float(np.interp(D_PRIME, rise[:-1] - rise[-1], increments))
    assert 1 / point.high < truth < 1 / point.low, (point, truth)


def test_levels_are_held_where_questions_are_in_words() -> None:
    page = load_experiment("surround")
    assert page.asking is not None and page.asking.settings()["hold"] == {
        "mask_contrast": 0.2
    }
    with pytest.raises(
        InputError,
        match=r"over one level besides contrast: give the others a value, such as asking",
    ):
        pp.plan(page.with_settings({"asking.hold": {}}), "simulated:flat")
    with pytest.raises(
        InputError,
        match=r"level in asking.hold 'mask_contrasts'; did you mean 'mask_contrast'",
    ):
        pp.plan(
            page.with_settings({"asking.hold": {"mask_contrasts": 0.2}}),
            "simulated:flat",
        )


def test_acuity_in_words_can_be_planned() -> None:
    assert pp.plan("acuity_achromatic", "simulated:flat").questions > 0
