"""Pairs that differ in one parameter, against values of an independent implementation
(``data/discrimination``)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from psyprobe._typing import FloatArray
from psyprobe.analysis import angular_distance
from psyprobe.analysis.jnd import ideal_jnd, jnd
from psyprobe.human.acuity import resolution_limit, resolution_limits
from psyprobe.human.castle import castle_csf
from psyprobe.human.discrimination import (
    foley_response,
    increment,
    legge_foley_response,
    meese_response,
)
from psyprobe.light.display import Display
from psyprobe.stimulus import Grating, gabor, grating, uniform
from psyprobe.stimulus.kinds.gratings import Ring
from psyprobe.stimulus.pattern import pixel_positions
from psyprobe.stimulus.stimulus import Stimulus

Row = dict[str, Any]
SRGB, LINEAR = Display(peak=400), Display(peak=400, eotf=1.0)
#: Of the thresholds: the response to the row's own target at this contrast, against uniform.
ANCHOR = 0.01


@pytest.fixture(scope="module")
def rows(oracle_data: Path) -> Callable[[str], list[Row]]:
    def load(name: str) -> list[Row]:
        with (oracle_data / "discrimination" / f"{name}.csv").open(
            newline="", encoding="utf-8"
        ) as file:
            return [
                {key: _value(text) for key, text in row.items()}
                for row in csv.DictReader(file)
            ]

    return load


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text or None


def drive(stimulus: Stimulus, display: Display = SRGB) -> FloatArray:
    return np.asarray(display.encode(stimulus, dtype="float64"))[..., 0]


def compared(test: Stimulus, reference: Stimulus) -> tuple[float, float, float]:
    """S_ac, and the root mean square of the difference of drive, of both displays."""
    apart = [
        float(np.sqrt(np.mean((drive(test, display) - drive(reference, display)) ** 2)))
        for display in (SRGB, LINEAR)
    ]
    return float(
        angular_distance(drive(test).ravel(), drive(reference).ravel())
    ), *apart


def assert_distances(row: Row, test: Stimulus, reference: Stimulus) -> None:
    expected = [row["s_ac"], row["rms_drive"], row["rms_drive_linear"]]
    np.testing.assert_allclose(compared(test, reference), expected, rtol=1e-12)


def s_ac(test: Stimulus, reference: Stimulus) -> float:
    return float(angular_distance(drive(test).ravel(), drive(reference).ravel()))


def threshold(
    test: Callable[[float], Stimulus],
    reference: Stimulus,
    criterion: float,
    low: float,
    high: float,
) -> float:
    """The difference at which a test is as far from its reference as the criterion says."""
    from scipy.optimize import brentq

    return float(
        brentq(
            lambda by: s_ac(test(by), reference) - criterion,
            low,
            high,
            xtol=1e-15,
            rtol=1e-13,
        )
    )


# -- contrast
# ------------------------------------------------------------------------------------------


def on_pedestal(row: Row, pedestal: float, increment: float) -> Stimulus:
    common = {
        "frequency": row["frequency_cpd"],
        "luminance": row["luminance_cd_m2"],
        "dtype": "float64",
    }
    if row["set"] == "grating_on_grating":
        return grating(contrast=pedestal + increment, **common)
    if row["set"] == "gabor_on_grating":
        scene = gabor(contrast=increment, radius=row["radius_deg"], **common) + grating(
            contrast=pedestal, **common
        )
        return scene.spec.draw(dtype="float64")
    return gabor(contrast=pedestal + increment, radius=row["radius_deg"], **common)


def test_contrast_on_pedestals(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("contrast_pixels"):
        assert_distances(
            row,
            on_pedestal(row, row["pedestal"], row["increment"]),
            on_pedestal(row, row["pedestal"], 0.0),
        )


def test_thresholds_on_pedestals(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("contrast_jnd_pixels"):
        criterion = s_ac(on_pedestal(row, 0.0, ANCHOR), on_pedestal(row, 0.0, 0.0))
        assert criterion == pytest.approx(row["criterion_s_ac"], rel=1e-12)
        reference = on_pedestal(row, row["pedestal"], 0.0)
        increment = threshold(
            partial(on_pedestal, row, row["pedestal"]),
            reference,
            criterion,
            0.005,
            0.02,
        )
        assert increment == pytest.approx(row["jnd_contrast"], rel=1e-9)


#: Response, its step at threshold, and what it takes besides contrast.
MODELS: dict[str, tuple[Callable[..., FloatArray], float, tuple[float, ...]]] = {
    "legge_foley1980": (legge_foley_response, 1.0, ()),
    "meese2007_rjs": (meese_response, 0.436, ()),
    "meese2007_rjs_mask10": (meese_response, 0.436, (0.10,)),
    "meese2007_rjs_mask75": (meese_response, 0.436, (0.75,)),
}


def threshold_of(response: Callable[[FloatArray], FloatArray], step: float) -> float:
    return float(increment(response, step, ()))


def test_transducers(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("transducer"):
        response, step, arguments = MODELS[row["model"]]

        def risen(
            by: Any,
            c: float = row["pedestal"],
            r: Any = response,
            arguments: Any = arguments,
        ) -> FloatArray:
            return np.asarray(r(c + by, *arguments))

        assert threshold_of(risen, step) == pytest.approx(
            row["threshold_increment"], rel=1e-12
        )
        assert float(risen(0.01) - risen(0.0)) / step == pytest.approx(
            row["dprime_of_increment_0.01"], rel=1e-12
        )


def test_foleys_model(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("foley_fit"):
        at = {
            "mask_contrast": row["mask_contrast"],
            "mask_orientation": row["mask_orientation_deg"],
        }
        respond = partial(foley_response, **at)
        assert threshold_of(respond, 1.0) == pytest.approx(
            row["threshold_contrast"], rel=1e-12
        )
        assert float(respond(0.05) - respond(0.0)) == pytest.approx(
            row["dprime_of_target_0.05"], rel=1e-12
        )


# -- orientation and frequency
# ---------------------------------------------------------------------------------------


def patch(row: Row, contrast: float, turn: float = 0.0, weber: float = 0.0) -> Stimulus:
    return gabor(
        frequency=row["frequency_cpd"] * (1 + weber),
        orientation=row.get("orientation_deg", 0.0) + turn,
        contrast=contrast,
        radius=row["radius_deg"],
        luminance=100.0,
        dtype="float64",
    )


def test_orientation_and_frequency(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("orientation_pixels"):
        assert_distances(
            row,
            patch(row, row["contrast"], turn=row["difference_deg"]),
            patch(row, row["contrast"]),
        )
    for row in rows("frequency_pixels"):
        assert_distances(
            row,
            patch(row, row["contrast"], weber=row["weber_fraction"]),
            patch(row, row["contrast"]),
        )


def test_just_noticeable_turns_and_fractions(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("orientation_frequency_jnd_pixels"):
        criterion = s_ac(patch(row, ANCHOR), uniform(luminance=100.0, dtype="float64"))
        assert criterion == pytest.approx(row["criterion_s_ac"], rel=1e-12)
        at, reference = (
            partial(patch, row, row["contrast"]),
            patch(row, row["contrast"]),
        )
        turn = threshold(at, reference, criterion, 0.01, 6)
        weber = threshold(partial(at, 0.0), reference, criterion, 1e-4, 0.1)
        assert np.radians(turn) == pytest.approx(row["orientation_jnd_rad"], rel=1e-9)
        assert weber == pytest.approx(row["frequency_jnd_weber"], rel=1e-9)


def ideal_dprime(
    task: str,
    difference: npt.ArrayLike,
    *,
    frequency: npt.ArrayLike,
    radius: npt.ArrayLike,
    contrast: npt.ArrayLike,
    density: float = 4e-5,
) -> FloatArray:
    """d' of the linear ideal observer that tells two known Gabors in cosine phase apart in white
    noise, on a field without end."""
    by, f, r, c2 = (
        np.asarray(values, float)
        for values in (difference, frequency, radius, contrast)
    )
    by, f = np.broadcast_arrays(by, f)
    turn = np.radians(by) if task == "orientation" else np.zeros_like(by)
    c1 = c2 + by if task == "contrast" else c2
    reference = 2 * np.pi * np.stack([f, np.zeros_like(f)])
    longer = f * (1 + by) if task == "frequency" else f
    test = 2 * np.pi * np.stack([longer * np.cos(turn), longer * np.sin(turn)])

    def overlap(a: FloatArray, b: FloatArray) -> FloatArray:
        difference, total = (((a + side * b) ** 2).sum(axis=0) for side in (-1, 1))
        return np.asarray(
            np.pi
            * r**2
            / 2
            * (np.exp(-(r**2) * difference / 4) + np.exp(-(r**2) * total / 4))
        )

    energy = (
        c1**2 * overlap(test, test)
        + c2**2 * overlap(reference, reference)
        - 2 * c1 * c2 * overlap(test, reference)
    )
    return np.asarray(np.sqrt(np.maximum(energy, 0) / density))


def test_the_ideal_observer(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("ideal"):
        at = {
            "frequency": row["frequency_cpd"],
            "radius": row["radius_deg"],
            "contrast": row["contrast"],
        }
        d_prime = ideal_dprime(row["task"], row["difference"], **at)
        # Energies of near-equal patterns cancel: rounding of 1e-16 in either leaves this much.
        assert float(d_prime) == pytest.approx(row["dprime"], rel=1e-9)


def test_the_ideal_threshold_is_as_visible_as_the_faint_gabor() -> None:
    at = {"frequency": 4.0, "radius": 1.0}
    faint = ideal_dprime("contrast", 0.01, **at, contrast=0.0)
    for task in ("orientation deg", "frequency weber"):
        difference = ideal_jnd(task, 0.01, **at, contrast=0.2)
        assert difference is not None
        d_prime = ideal_dprime(task.split()[0], difference, **at, contrast=0.2)
        assert float(d_prime) == pytest.approx(float(faint), rel=1e-2)


# -- context
# ------------------------------------------------------------------------------------------


def in_context(row: Row, contrast: float) -> Stimulus:
    common = {"frequency": 4.0, "luminance": 100.0}
    target = Grating(
        contrast=contrast, window="raised_cosine", radius=0.5, edge=0.125, **common
    )
    turned = {
        "orientation": row["context_orientation_deg"],
        "contrast": row["context_contrast"],
        **common,
    }
    ring = (
        Ring(radius=1.5, inner=0.5625, edge=0.125, **turned)
        if row["layout"] == "surround"
        else Grating(**turned)
    )
    return (target + ring).draw(dtype="float64")


def test_targets_in_context(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("context_pixels"):
        assert_distances(row, in_context(row, row["contrast"]), in_context(row, 0.0))


def test_thresholds_in_context(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("context_threshold_pixels"):
        none = {**row, "context_contrast": 0.0}
        criterion = s_ac(in_context(none, ANCHOR), in_context(none, 0.0))
        assert criterion == pytest.approx(row["criterion_s_ac"], rel=1e-12)
        increment = threshold(
            partial(in_context, row), in_context(row, 0.0), criterion, 0.005, 0.02
        )
        assert (increment, increment / ANCHOR) == pytest.approx(
            (row["threshold_contrast"], row["elevation"]), rel=1e-9
        )


def test_thresholds_of_divisive_suppression(rows: Callable[[str], list[Row]]) -> None:
    contrast = np.geomspace(0.005, 0.5, 400)
    for row in rows("context_simulated"):
        weight = 0.1 + 0.5 * np.exp(
            -(row["context_orientation_deg"] ** 2) / (2 * 20**2)
        )
        assert weight == pytest.approx(row["weight"], rel=1e-12)
        pools = [
            0.01**2 + contrast**2 + (weight * c) ** 2
            for c in (row["context_contrast"], 0.0)
        ]
        thresholds, _ = jnd(
            contrast, np.stack([contrast**2.4 / pool for pool in pools]), [0.2, 0.2]
        )
        # Between contrasts of the grid log response is taken as straight.
        threshold_and_ratio = (thresholds[0], thresholds[0] / thresholds[1])
        assert threshold_and_ratio == pytest.approx(
            (row["threshold_contrast"], row["elevation"]), rel=1e-4
        )


# -- acuity
# ------------------------------------------------------------------------------------------


def fine(row: Row) -> Stimulus:
    """Sine waves are a Gabor; of square waves only the Gabor's envelope and wave are the
    package's."""
    at = {
        "frequency": row["frequency_cpd"],
        "radius": row["radius_deg"],
        "luminance": 100.0,
        "ppd": row["ppd"],
    }
    if row["waveform"] == "sine":
        return gabor(contrast=row["contrast"], dtype="float64", **at)
    scene = gabor(contrast=1.0, dtype="float64", **at)
    envelope = np.exp(
        -(
            np.add.outer(
                *[pixel_positions(n, row["ppd"]) ** 2 for n in scene.spec.shape]
            )
        )
        / (2 * row["radius_deg"] ** 2)
    )
    wave = np.where(
        np.cos(
            2
            * np.pi
            * row["frequency_cpd"]
            * pixel_positions(scene.spec.shape[1], row["ppd"])
        )
        >= 0,
        1,
        -1,
    )
    return replace(scene, pixels=100.0 * (1 + row["contrast"] * envelope * wave))


def test_fine_stripes_against_uniform(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("acuity_pixels"):
        assert_distances(
            row, fine(row), uniform(luminance=100.0, ppd=row["ppd"], dtype="float64")
        )


def test_limits_of_castlecsf(rows: Callable[[str], list[Row]]) -> None:
    for row in rows("acuity_castlecsf"):
        sensitivity = castle_csf(
            row["limit_cpd"],
            direction=row["direction"],
            luminance=row["luminance_cd_m2"],
            area=row["area_deg2"],
            eccentricity=row["eccentricity_deg"],
        )
        assert sensitivity == pytest.approx(row["sensitivity"], rel=1e-9)


def test_the_fit_of_measured_limits() -> None:
    table = resolution_limits()
    assert len(table) == 9 and len(resolution_limits(observers=True)) == 146
    for row in table.to_dict("records"):
        limit = resolution_limit(
            row["shown_cone_contrast"], row["direction"], row["eccentricity_deg"]
        )
        assert float(limit) == pytest.approx(row["watson2018_fit_cpd"], rel=1e-5)
        assert abs(limit / row["limit_cpd"] - 1) < 0.23
