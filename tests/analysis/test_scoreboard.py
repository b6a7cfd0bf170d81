"""The scoreboard: every score once, beside its baselines, flagged, sorted, in five formats; the
published table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from detection_results import (
    PUBLISHED,
    human_csf,
    published_along,
    published_result,
    simulated_result,
)
from matching_results import simulated_matching

from psyprobe.analysis import published_scores, replay
from psyprobe.analysis.detection import ALIGNMENT
from psyprobe.analysis.matching import ERROR_MEAN, ERROR_POOLED
from psyprobe.analysis.score import CONTRAST, PIXELS, Entry, Metric
from psyprobe.analysis.scoreboards import BoardRow, Scoreboard, Test
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.probes.results import score, scoreboard

GABOR = Test("gabor_achromatic", ALIGNMENT)


def like_people(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    return 0.3 * np.tanh(human_csf(x) * contrast / 100)


def flat(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    return 0.2 * contrast + 0 * x


def fading(frequency: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    return 0.2 * contrast * np.exp(-frequency / 10)


@pytest.fixture(scope="module")
def board() -> Scoreboard:
    return scoreboard(
        [
            simulated_result(flat, observer="ruler"),
            simulated_result(like_people, observer="sim:person"),
            simulated_matching(fading, observer="ruler"),
        ]
    )


def row(board: Scoreboard, name: str) -> dict[Test, object]:
    return dict(next(row.entries for row in board.rows if row.name == name))


# -- the published table
# ------------------------------------------------------------------------------------------


def test_published_scores_in_the_package_are_the_published_ones(
    oracle_data: Path,
) -> None:
    metrics = {
        "spearman_rs": "alignment",
        "rmse_log10_mean_over_frequencies": "error_mean",
        "rmse_log10_pooled": "error_pooled",
    }
    with (oracle_data / "encoder_protocol" / "published_alignment_scores.csv").open(
        encoding="utf-8"
    ) as file:
        rows = list(csv.DictReader(file))
    expected_scores = {
        (r["model"], r["test"], metrics[r["metric"]], r["version"]): float(r["score"])
        for r in rows
    }
    package_scores = {
        (s.model, s.test, s.metric, "final"): s.score for s in published_scores()
    }
    package_scores |= {
        (s.model, s.test, s.metric, "submission"): s.submission
        for s in published_scores()
        if s.submission
    }
    assert package_scores == expected_scores
    assert len({s.model for s in published_scores()}) == 45
    assert len({(s.test, s.experiment) for s in published_scores()}) == 9


def test_published_shares_at_the_float32_floor_are_those_of_the_stored_responses(
    oracle_data: Path,
) -> None:
    stored = published_along(oracle_data / "encoder_protocol")
    published_shares = {
        (s.model, s.test): s.float32_floor
        for s in published_scores()
        if s.float32_floor is not None
    }
    # ColorVideoVDP's responses are no angles.
    assert set(published_shares) == {key for key in stored if key[0] != "cvvdp_hdr"}
    for key, share in published_shares.items():
        assert share == pytest.approx((stored[key][:, 3] <= 1.1e-4).mean(), abs=5e-5)


def test_published_models_stand_beside_own_ones(board: Scoreboard) -> None:
    joint_board = scoreboard([simulated_result(flat)], published=True)
    assert len([row for row in joint_board.rows if row.kind == "published"]) == 45
    assert row(joint_board, "No Encoder")[GABOR].value == 0.4688
    alone = scoreboard(published=True)
    assert [test.name for test in alone.tests][-2:] == [
        "contrast_matching mean",
        "contrast_matching pooled",
    ]
    assert len(alone.tests) == 10
    assert not {"published"} & {row.kind for row in board.rows}


def test_replayed_models_score_as_published(oracle_data: Path) -> None:
    folder = oracle_data / "encoder_protocol"
    results = [published_result(folder, test, "dinov2_vits14") for test in PUBLISHED]
    own_board = scoreboard(results, resamples=100)
    printed = {
        s.test: s.score for s in published_scores() if s.model == "dinov2_vits14"
    }
    for test, entry in row(own_board, "dinov2_vits14").items():
        assert entry.value == pytest.approx(printed[test.experiment], abs=5.1e-5)


# -- own scores
# ------------------------------------------------------------------------------------------


def test_each_score_stands_in_its_place_with_interval_and_baselines(
    board: Scoreboard,
) -> None:
    detection_score = score(simulated_result(flat, observer="ruler"))
    entry = row(board, "ruler")[GABOR]
    assert (entry.value, entry.low, entry.high) == (
        detection_score.score.alignment.value,
        detection_score.score.alignment.low,
        detection_score.score.alignment.high,
    )
    assert row(board, PIXELS)[GABOR].value == detection_score.pixels.alignment.value
    assert row(board, CONTRAST)[GABOR].value == detection_score.contrast.alignment.value
    assert row(board, CONTRAST)[
        Test("contrast_matching", ERROR_MEAN)
    ].value == pytest.approx(0.2645, abs=5e-5)
    assert set(row(board, "sim:person")) == {GABOR}


def test_flags_say_what_is_wrong(board: Scoreboard) -> None:
    assert row(board, "sim:person")[GABOR].flags == ""
    assert {"p", "c"} <= set(row(board, "ruler")[GABOR].flags)
    matching = row(board, "ruler")[Test("contrast_matching", ERROR_POOLED)]
    assert "s" in matching.flags and matching.note.endswith("of 72 matches saturated")
    near_floor = scoreboard(
        [simulated_result(lambda x, c: 3e-4 * flat(x, c), noise_floor=1e-6)]
    )
    assert set("fn") <= set(row(near_floor, "simulated")[GABOR].flags)
    silent = scoreboard([simulated_result(lambda x, c: 0 * x * c)])
    assert row(silent, "simulated")[GABOR].value is None
    assert "e" in row(silent, "simulated")[GABOR].flags


def test_every_observer_states_its_share_at_the_float32_floor(
    board: Scoreboard,
) -> None:
    for board_row in board.rows:
        assert (board_row.float32_floor is not None) == (board_row.kind == "observer")
    assert "f32 floor" in board.table().splitlines()[0]


def test_sorting_puts_the_best_first_whichever_way_is_better(board: Scoreboard) -> None:
    assert board.sort("gabor_achromatic").rows[0].name == "sim:person"
    errors = [
        r.entries.get(Test("contrast_matching", ERROR_MEAN))
        for r in board.sort("contrast_matching").rows
    ]
    values = [entry.value for entry in errors if entry is not None]
    assert values == sorted(values)
    assert errors[-1] is None
    with pytest.raises(UnknownNameError, match="contrast_matching pooled"):
        board.sort("contrast_matching poled")


def test_layers_and_random_weights_are_named() -> None:
    result = simulated_result([flat, like_people], observer="two")
    result.attrs["random_weights"] = 1
    names = [row.name for row in scoreboard([result]).rows if row.kind == "observer"]
    assert names == ["two / layer0 (random weights)", "two / layer1 (random weights)"]


def test_contradictions_are_refused_and_repetitions_are_not() -> None:
    result = simulated_result(flat)
    assert len(scoreboard([result, result]).rows) == 3
    with pytest.raises(InputError, match="two different scores in gabor_achromatic"):
        scoreboard([result, simulated_result(like_people)])
    with pytest.raises(InputError, match="angular and l2"):
        scoreboard(
            [
                score(result),
                score(simulated_result(flat, observer="other"), measure="l2"),
            ]
        )
    with pytest.raises(InputError, match="no results"):
        scoreboard()
    with pytest.raises(InputError, match="no published scores of my_own"):
        scoreboard([result.assign_attrs(experiment="my_own")], published=True)


def test_observers_of_one_size_share_their_row_of_pixels() -> None:
    small = simulated_result(flat, observer="small")
    fading_away = small["pixels_scored_response_angular"] / (
        1 + small["scored_frequency"]
    )
    wide, also_wide = (
        small.assign(pixels_scored_response_angular=fading_away).assign_attrs(
            observer=name
        )
        for name in ("wide", "W")
    )
    names = [
        board_row.name
        for board_row in scoreboard([small, wide, also_wide]).rows
        if board_row.kind == "baseline"
    ]
    assert names == [PIXELS, CONTRAST, f"{PIXELS}, as shown to wide"]


def test_a_metric_stands_beside_encoders(oracle_data: Path) -> None:
    folder = oracle_data / "encoder_protocol"
    results = replay(
        folder / "published_sac_along_curve.csv.gz",
        folder / "published_sac_grids",
        models=["cvvdp_hdr", "dinov2_vits14"],
        tests=["area"],
    )
    board = scoreboard(results, resamples=100)
    assert [board_row.name for board_row in board.rows[:2]] == [
        "replay:cvvdp_hdr",
        "replay:dinov2_vits14",
    ]
    assert board.rows[0].float32_floor is None


# -- formats
# ------------------------------------------------------------------------------------------


def test_text_is_narrow_and_explains_its_flags(board: Scoreboard) -> None:
    text = scoreboard(published=True).table()
    assert max(map(len, text.splitlines())) <= 120
    assert "p: no better than the pixels" in str(board)
    assert "saturated" in str(board)


def test_the_legend_is_that_of_the_columns(board: Scoreboard) -> None:
    robustness = Metric("absolute", "Absolute robustness", True, 4, "absolute")
    jnd = Metric("rmse", "Thresholds, RMSE ($log_{10}$)", False, 2, "jnd")
    cells = {
        Test("r_bench", robustness): Entry(0.5, 0.4, 0.6),
        Test("mine", jnd): Entry(0.1),
    }
    rows = (BoardRow("model", "observer", "openai", cells),)
    text = Scoreboard((*cells,), rows, 0.95).table()
    assert "absolute: Absolute robustness (larger is better)." in text
    assert "jnd: Thresholds, RMSE (log10) (smaller is better)." in text
    assert "Brackets: 95 % intervals over unnamed units." in text
    assert not [word for word in ("r_s", "f32", "levels") if word in text]
    mixed = Scoreboard((GABOR, *cells), (*board.rows, *rows), 0.95).table()
    assert "absolute: " in mixed and "Each other cell is Spearman's r_s" in mixed
    assert "Each cell is Spearman's r_s" in board.table() and "f32" in board.table()


def test_csv_and_json_hold_every_digit(board: Scoreboard) -> None:
    rows = list(csv.DictReader(io.StringIO(board.table("csv"))))
    parsed = json.loads(board.table("json"))
    assert (
        len(rows)
        == len(parsed["scores"])
        == sum(len(board_row.entries) for board_row in board.rows)
    )
    for line, record in zip(rows, parsed["scores"], strict=True):
        assert float(line["value"]) == record["value"]
    assert {test["name"]: test["more_is_better"] for test in parsed["tests"]}[
        "contrast_matching mean"
    ] is False


@pytest.mark.parametrize("format", ["markdown", "latex"])
def test_tables_for_papers_hold_each_row(board: Scoreboard, format: str) -> None:
    text = board.table(format)
    for board_row in board.rows:
        assert board_row.name in text


def test_an_unknown_format_is_an_error(board: Scoreboard) -> None:
    with pytest.raises(UnknownNameError, match="markdown"):
        board.table("html")


def test_a_hostile_name_cannot_steer_a_terminal() -> None:
    assert (
        "\x1b"
        not in scoreboard([simulated_result(flat, observer="\x1b[31mred")]).table()
    )
