"""One person in the place of a model: the oracle's persons, ceilings and fractions, and observers
of known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from detection_results import MULTIPLIER, PUBLISHED, dataset, published_along
from scipy.stats import spearmanr

import psyprobe as pp
from psyprobe.analysis import score_detection
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.detection import DetectionScore
from psyprobe.analysis.human_observer import (
    fraction_of,
    people,
    persons,
    scores_in_range,
    shape_alignment,
)
from psyprobe.analysis.result_stimulus import conditions_of
from psyprobe.analysis.score import NO_PEOPLE, PERSON
from psyprobe.experiment import load_experiment
from psyprobe.human.castle import castle_csf
from psyprobe.human.points import Conditions, matched_thresholds
from psyprobe.probes.results import scoreboard

#: The tests of Cai et al. (2025), and what each is called here.
TESTS = dict(
    zip(
        (
            "gabor_achromatic",
            "noise_achromatic",
            "gabor_red_green",
            "gabor_yellow_violet",
            "luminance",
            "area",
        ),
        PUBLISHED,
        strict=True,
    )
)
#: Range in which the oracle looks for measured values; 0.5 to 30.5 cpd for tests not named here.
SPANS = {
    "noise_achromatic": (0.5, 23.0),
    "luminance": (0.1, 200.0),
    "area": (0.02, 8.0),
}
#: Lower ends of ranges are rounded in the oracle, to five digits.
EXACT = 1e-4


def run_of(
    name: str,
    response: Callable[[np.ndarray, np.ndarray], np.ndarray],
    observer: str = "simulated",
):  # type: ignore[no-untyped-def]
    """A result of an experiment of the catalogue, of an observer whose response is a formula of
    level and contrast."""
    page = load_experiment(name)
    (level,) = (axis for axis in page.levels if axis != "contrast")
    x, contrast = np.array(page.levels[level]), np.array(page.levels["contrast"])
    bare = dataset(
        x,
        contrast,
        x,
        MULTIPLIER,
        np.ones((len(x), 10)),
        (x, np.ones(len(x))),
        [np.ones((len(x), len(contrast)))],
        [np.ones((len(x), 10))],
        (np.ones((len(x), len(contrast))), np.ones((len(x), 10))),
        level=level,
        experiment=name,
        observer=observer,
    ).assign_attrs(experiment_toml=page.toml)
    conditions = conditions_of(bare)
    assert conditions is not None
    people_see = castle(conditions, x)
    shown_contrast = MULTIPLIER / people_see[:, None]
    grid, line = (
        np.broadcast_arrays(x[:, None], contrast),
        np.broadcast_arrays(x[:, None], shown_contrast),
    )
    return dataset(
        x,
        contrast,
        x,
        MULTIPLIER,
        shown_contrast,
        (x, people_see),
        [response(*grid)],
        [response(*line)],
        (grid[1], line[1]),
        level=level,
        experiment=name,
        observer=observer,
    ).assign_attrs(experiment_toml=page.toml)


def castle(conditions: Conditions, x: np.ndarray) -> np.ndarray:
    fixed = {
        name: getattr(conditions, name) for name in ("frequency", "luminance", "area")
    }
    return conditions.gain * castle_csf(
        direction=conditions.direction, **{**fixed, conditions.level: x}
    )


def scored(result) -> DetectionScore:  # type: ignore[no-untyped-def]
    (detection_score,) = score_detection(result, resamples=100)
    return detection_score


def conditions_and_levels(name: str) -> tuple[Conditions, np.ndarray]:
    result = run_of(name, lambda x, c: c + 0 * x)
    conditions = conditions_of(result)
    assert conditions is not None
    (level,) = (axis for axis in load_experiment(name).levels if axis != "contrast")
    return conditions, result[level].values


@pytest.fixture(scope="module")
def everybody() -> dict[str, tuple[Conditions, np.ndarray]]:
    return {name: conditions_and_levels(name) for name in TESTS}


def test_the_persons_are_those_of_the_oracle(
    oracle_data: Path, everybody: dict[str, tuple[Conditions, np.ndarray]]
) -> None:
    table = pd.read_csv(oracle_data / "human_measured" / "detection_persons.csv")
    person_count = 0
    for name, (conditions, levels) in everybody.items():
        matched_persons = persons(
            replace(conditions, span=SPANS.get(name, (0.5, 30.5))), tuple(levels)
        )
        person_count += len(matched_persons)
        by_name = {
            (person.dataset, person.observer): person for person in matched_persons
        }
        for row in table[table["experiment"] == name].to_dict("records"):
            person = by_name[row["dataset"], row["observer"]]
            statistics = {
                "alignment_grid": person.published,
                "flat_grid": person.flat,
                "x_low": person.low,
                "x_high": person.high,
            }
            for column, value in statistics.items():
                assert value == pytest.approx(row[column], rel=EXACT, abs=EXACT), (
                    row["observer"],
                    column,
                )
    assert person_count == 188


def test_the_ceilings_are_those_of_the_oracle(
    oracle_data: Path, everybody: dict[str, tuple[Conditions, np.ndarray]]
) -> None:
    table = pd.read_csv(oracle_data / "human_measured" / "detection_ceilings.csv")
    table = table[table["score"] == "alignment_grid"].set_index(
        ["experiment", "dataset"]
    )
    group_by_key = {
        (name, group.dataset): group
        for name, at in everybody.items()
        for group in people(*at)
    }
    for key, row in table.iterrows():
        group = group_by_key[key]  # type: ignore[index]
        published = group.published
        assert group.ceiling.persons == published.persons == row["n_persons"]
        for value, column in (
            (published.value, "ceiling"),
            (published.sd, "sd_persons"),
            (group.flat, "flat"),
        ):
            assert value == pytest.approx(row[column], abs=EXACT)
        assert group.span == pytest.approx((row["x_low"], row["x_high"]), rel=EXACT)
        half = (np.arctanh(row["high"]) - np.arctanh(row["low"])) / 2
        for value, column in ((published.low, "low"), (published.high, "high")):
            assert abs(np.arctanh(value) - np.arctanh(row[column])) < 0.05 * half
        # Where a flat CSF scores as people do, nothing is divided.
        assert group.determined == (row["ceiling"] - row["flat"] >= 0.1)


#: The reference's ceilings (statistics, section 3a): published, and without the people's study.
WITHOUT_THEM = {
    "gabor_achromatic": {
        "modelfest": (0.846, 0.809),
        "hdr_csf": (0.875, 0.876),
        "hdrvdp_csf": (0.917, 0.872),
        "colorfest": (0.825, 0.766),
    },
    "gabor_red_green": {
        "hdr_csf": (0.861, 0.865),
        "colorfest": (0.850, 0.926),
        "kim2013": (0.945, 0.977),
    },
    "gabor_yellow_violet": {
        "hdr_csf": (0.888, 0.873),
        "colorfest": (0.844, 0.877),
        "kim2013": (0.699, 0.740),
    },
    "luminance": {"hdr_csf": (0.958, 0.962), "hdrvdp_csf": (0.968, 0.967)},
}


@pytest.mark.parametrize("name", WITHOUT_THEM)
def test_the_ceilings_without_the_study_are_those_of_the_reference(
    name: str, everybody: dict[str, tuple[Conditions, np.ndarray]]
) -> None:
    conditions, levels = everybody[name]
    if name == "gabor_yellow_violet":
        levels = np.geomspace(0.5, 16, 16)
    ceilings = {
        group.dataset: (group.published.value, group.ceiling.value)
        for group in people(conditions, levels)
    }
    assert ceilings.keys() == WITHOUT_THEM[name].keys()
    for study, values in ceilings.items():
        assert values == pytest.approx(WITHOUT_THEM[name][study], abs=0.001)


def test_the_fractions_are_those_of_the_oracle(
    oracle_data: Path, everybody: dict[str, tuple[Conditions, np.ndarray]]
) -> None:
    table = pd.read_csv(oracle_data / "human_measured" / "fractions.csv")
    along = published_along(oracle_data / "encoder_protocol")
    group_by_key = {
        (f"{name}_published", group.dataset): group
        for name, at in everybody.items()
        for group in people(*at)
    }
    for row in table.to_dict("records"):
        group, test = (
            group_by_key[row["experiment"], row["dataset"]],
            TESTS[row["experiment"].removesuffix("_published")],
        )
        rows = along[row["model"], test]
        levels, multiplier = np.unique(rows[:, 0]), 1 / np.round(rows[:10, 1], 12)
        response = rows[:, 3].reshape(len(levels), 10)
        in_range = scores_in_range(group, levels, multiplier, response[None])[0]
        # The oracle has castleCSF as published.
        group = replace(group, ceiling=group.published)
        fraction = fraction_of(group, Sample("variants", ("shown",), (in_range,), "z"))
        assert fraction.in_range == pytest.approx(row["alignment_in_range"], abs=EXACT)
        if not group.determined:
            assert (
                fraction.fraction is None
                and fraction.above_flat is None
                and np.isnan(row["above_flat"])
            )
            continue
        # The oracle divides by the mean of the people's r_s, and this by that of their z.
        top = np.tanh(np.arctanh(group.ceiling.scores).mean())
        expected = row["fraction"] * group.ceiling.value / top
        assert fraction.fraction == pytest.approx(expected, abs=2 * EXACT)
        assert fraction.fraction_low < fraction.fraction < fraction.fraction_high
        if fraction.above_flat is None:
            assert group.sample.interval()[0] <= group.flat
            continue
        gain = (
            row["above_flat"] * (group.ceiling.value - group.flat) / (top - group.flat)
        )
        assert fraction.above_flat == pytest.approx(gain, abs=3e-4)
        assert (
            fraction.above_flat_low <= fraction.above_flat <= fraction.above_flat_high
        )
    assert len(table) == 216


def test_data_sets_to_compare_with_first(
    everybody: dict[str, tuple[Conditions, np.ndarray]],
) -> None:
    """The first choice of the reference page: most people, where a flat CSF does not do as well."""
    first = {name: people(*at)[0].dataset for name, at in everybody.items()}
    spatial = dict.fromkeys(("gabor_achromatic", "noise_achromatic"), "modelfest")
    colour = dict.fromkeys(("gabor_red_green", "gabor_yellow_violet"), "colorfest")
    assert first == {**spatial, **colour, "luminance": "hdr_csf", "area": "hdr_csf"}


@pytest.mark.parametrize(
    "d", [[0.0, 0.1, -0.05, 0.3], [0.2, 0.2, 0.2], np.linspace(-0.4, 0.5, 20)]
)
def test_a_person_responds_as_a_model_would(d: list[float]) -> None:
    """Spearman of the responses themselves, by scipy: what rises with contrast over one's own
    threshold."""
    multiplier = np.tile(np.geomspace(0.5, 2, 10), len(d))
    response = np.round(
        np.log10(multiplier) + np.repeat(np.asarray(d) - np.mean(d), 10), 12
    )
    assert shape_alignment(np.asarray(d)) == pytest.approx(
        spearmanr(multiplier, response).statistic, abs=1e-12
    )


@pytest.mark.parametrize("name", TESTS)
def test_castle_csf_reaches_the_ceiling_and_a_flat_csf_does_not(name: str) -> None:
    conditions, _ = conditions_and_levels(name)
    human_like = scored(run_of(name, lambda x, c: np.tanh(castle(conditions, x) * c)))
    flat = scored(run_of(name, lambda x, c: c + 0 * x))
    for of, group in zip(human_like.score.fractions, human_like.people, strict=True):
        assert of.in_range > 0.994
        assert of.in_range >= group.ceiling.value
        assert of.fraction is None or of.fraction >= 1
    for of, group in zip(flat.score.fractions, flat.people, strict=True):
        assert of.in_range == pytest.approx(group.flat, abs=1e-9)
        assert of.above_flat is None or abs(of.above_flat) < 1e-9
        if group.determined:
            assert of.in_range < group.ceiling.value - 0.1 and of.fraction < 0.9
        else:
            assert of.fraction is None
    assert flat.people[0].determined


@pytest.mark.parametrize("name", TESTS)
def test_a_person_in_the_place_of_a_model_scores_within_the_range_of_persons(
    name: str,
) -> None:
    conditions, levels = conditions_and_levels(name)
    first = people(conditions, levels)[0]
    by_range = [
        person
        for person in persons(conditions, tuple(levels))
        if person.dataset == first.dataset
    ]
    assert [(person.low, person.high) for person in by_range] == list(first.ranges)
    for place in (0, -1):
        # The thresholds that the data give this person, anew from the tables.
        person = by_range[place]
        rows = matched_thresholds(conditions)
        rows = rows[
            (rows["dataset"] == person.dataset) & (rows["observer"] == person.observer)
        ]
        ratio = (
            np.log10(rows["sensitivity"] / rows["castle"])
            .groupby(rows["x"].round(6))
            .mean()
        )
        sensitivity = 10 ** np.interp(
            np.log(levels), np.log(ratio.index), ratio.to_numpy()
        ) * castle(conditions, levels)
        result = run_of(
            name,
            lambda x, c, sensitivity=sensitivity: np.tanh(
                np.interp(x, levels, sensitivity) * c / 4
            ),
        )  # type: ignore[misc]
        points = result["scored_response_angular"].sel(layer="out").values
        alone = replace(first, ranges=((person.low, person.high),))
        in_range = scores_in_range(alone, levels, MULTIPLIER, points[None])[0]
        assert in_range == pytest.approx(person.published, abs=2e-3)
        scores = first.published.scores
        assert min(scores) - 2e-3 <= in_range <= max(scores) + 2e-3


def test_the_table_says_who_how_many_and_on_which_range() -> None:
    text = str(scored(run_of("gabor_achromatic", lambda x, c: c + 0 * x)))
    flattened = " ".join(text.split())
    assert (
        "one person: 16 people of modelfest, 1.12 to 30 cpd, from 0.52 to 0.99 with castleCSF "
        "refitted without them (0.85 as published); a flat CSF scores 0.52 there."
        in flattened
    )
    assert "1 is as good as another person; a model may exceed it" in flattened
    assert "best possible" not in flattened
    (row,) = [line for line in text.splitlines() if line.startswith("one person ")]
    assert "0.81 [0.71, 0.88]" in row


def test_not_determined_is_said_where_a_flat_csf_does_as_well() -> None:
    result = run_of("gabor_red_green", lambda x, c: c + 0 * x)
    only = result.isel(scored_frequency=slice(0, 12))
    detection_score = scored(only)
    assert not detection_score.people[0].determined
    text = " ".join(str(detection_score).split())
    assert "not determined" in text
    assert "as people do, so that a fraction says nothing" in text


def test_the_scoreboard_has_a_row_of_one_person() -> None:
    results = [
        run_of(name, lambda x, c: np.tanh(c * x), "mine")
        for name in ("gabor_achromatic", "luminance")
    ]
    board = scoreboard(results)
    (row,) = [row for row in board.rows if row.name == PERSON]
    assert row.kind == "people" and len(row.entries) == 2
    (mine,) = [row for row in board.rows if row.name == "mine"]
    for test, entry in mine.entries.items():
        assert entry.of_person == scored_of(results, test.experiment).score.fractions[0]
    text = " ".join(board.table().split())
    assert (
        "16 people of modelfest, 1.12 to 30 cpd" in text
        and "as good as another person, and an observer may exceed it" in text
    )


def scored_of(results: list, experiment: str) -> DetectionScore:  # type: ignore[type-arg]
    return scored(
        next(result for result in results if result.attrs["experiment"] == experiment)
    )


def test_masks_and_matching_say_that_there_is_no_ceiling() -> None:
    masked = pp.run("mask_coherent", "pixels", score_only=True, progress=False)
    matched = pp.run("contrast_matching", "pixels", score_only=True, progress=False)
    for result in (masked, matched):
        detection_score = pp.score(result, resamples=100)
        assert NO_PEOPLE in " ".join(str(detection_score).split())
        assert PERSON not in [row.responder for row in detection_score.rows()]
