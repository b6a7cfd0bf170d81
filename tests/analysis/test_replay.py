"""Replayed responses: published scores come back, broken files are refused."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from psyprobe.analysis import published_scores, replay
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import masking_data
from psyprobe.probes.experiments import load_results
from psyprobe.probes.results import score, scoreboard

MULTIPLIER = np.geomspace(0.5, 2, 4)


def test_published_responses_replay_to_the_published_scores(oracle_data: Path) -> None:
    folder = oracle_data / "encoder_protocol"
    models = ["dino_vits16", "dinov2_vitl14", "ViT-B-32_openai"]
    results = replay(
        folder / "published_sac_along_curve.csv.gz",
        folder / "published_sac_grids",
        models=models,
    )
    assert len(results) == 3 * 8
    printed = {
        (f"replay:{s.model}", f"{s.experiment}_published"): s
        for s in published_scores()
        if s.metric == "alignment"
    }
    for result in results:
        detection_score = score(result, resamples=100)
        published = printed[detection_score.observer, detection_score.experiment]
        assert detection_score.score.alignment.value == pytest.approx(
            published.score, abs=5.1e-5
        )
        assert detection_score.float32_floor == pytest.approx(
            published.float32_floor, abs=5e-5
        )
        assert detection_score.pixels.alignment.value == pytest.approx(
            printed["replay:no_encoder", detection_score.experiment].score, abs=5.1e-5
        )


def test_replayed_masks_stand_on_the_human_points(oracle_data: Path) -> None:
    folder = oracle_data / "encoder_protocol"
    for test, study in (
        ("mask_coherent", "foley1994"),
        ("mask_incoherent", "gegenfurtner_kiper1992"),
    ):
        (result,) = replay(
            folder / "published_sac_along_curve.csv.gz",
            folder / "published_sac_grids",
            models=["dinov2_vits14"],
            tests=[test],
        )
        human = masking_data(study)
        np.testing.assert_allclose(
            result["scored_mask_contrast"], human.mask_contrast[human.scored], rtol=1e-6
        )
        np.testing.assert_allclose(
            1 / result["human_curve"], human.threshold[human.scored], rtol=1e-6
        )
        assert result.attrs["replayed"] == 1


def test_a_metric_is_no_angle_and_has_no_float32_floor(oracle_data: Path) -> None:
    folder = oracle_data / "encoder_protocol"
    (result,) = replay(
        folder / "published_sac_along_curve.csv.gz",
        folder / "published_sac_grids",
        models=["cvvdp_hdr"],
        tests=["area"],
    )
    detection_score = score(result, resamples=100)
    assert (detection_score.measure, detection_score.float32_floor) == (
        "difference",
        None,
    )
    assert detection_score.score.alignment.value == pytest.approx(0.8937, abs=5.1e-5)


# -- files of one's own
# ------------------------------------------------------------------------------------------


def write(
    folder: Path,
    response: Callable[[np.ndarray], np.ndarray] = lambda c: 0.3 * c,
    **change: object,
) -> tuple[Path, Path]:
    """A model "mine" and the baseline in the area test: human sensitivity 10 everywhere."""
    x, contrast, models = (
        np.array([0.1, 1.0]),
        np.geomspace(0.01, 1, 5),
        ["no_encoder", "mine"],
    )
    with (folder / "along.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["model", "test", "x", "multiplier", "stimulus_contrast", "s_ac"]
        )
        for model in models:
            for a in x:
                for m in MULTIPLIER:
                    writer.writerow(
                        [
                            model,
                            "area",
                            a,
                            m,
                            1 / (10 * m),
                            float(response(np.array(0.1 / m))),
                        ]
                    )
    grid = {
        "s_ac": np.broadcast_to(response(contrast), (2, 2, 5)),
        "x": x,
        "contrast": contrast,
        "models": np.array(models),
        **change,
    }
    np.savez(
        folder / "area.npz",
        **{name: values for name, values in grid.items() if values is not None},
    )
    return folder / "along.csv", folder


def test_a_file_of_ones_own_becomes_a_result_that_is_stored_and_read_again(
    tmp_path: Path,
) -> None:
    (result,) = replay(*write(tmp_path))
    assert (result.attrs["observer"], result.attrs["experiment"]) == (
        "replay:mine",
        "area_published",
    )
    np.testing.assert_allclose(result["human_sensitivity"], 10)
    result.to_netcdf(tmp_path / "mine.nc", engine="scipy")
    (loaded,) = load_results(tmp_path / "mine.nc")
    board = scoreboard([loaded], published=True)
    assert board.rows[0].name == "replay:mine"
    assert board.rows[0].entries[board.tests[0]].value == pytest.approx(
        score(result).score.alignment.value
    )
    for variable in result.variables.values():
        assert {"units", "long_name"} <= set(variable.attrs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s_ac": np.zeros((2, 2, 4))}, r"\(2, 2, 4\)"),
        ({"models": np.array(["no_encoder", "other"])}, "other"),
        ({"contrast": None}, "no level grid"),
        ({"models": np.array([{}, {}])}, "no level grid"),
    ],
)
def test_broken_grids_are_refused(tmp_path: Path, change: dict, message: str) -> None:
    along, grids = write(tmp_path, **change)
    with pytest.raises(InputError, match=message):
        replay(along, grids)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("s_ac", "response", "no column s_ac"),
        ("no_encoder", "pixels", "no_encoder"),
        ("mine,area,0.1,0.5,0.2,", "mine,area,0.1,0.5,0.3,", "one human threshold"),
        ("mine,area,0.1,0.5,0.2,", "mine,area,0.2,0.5,0.2,", "score points are not"),
        ("mine,area,0.1,0.5,0.2,", "mine,area,0.1,half,0.2,", "line 10"),
    ],
)
def test_broken_tables_are_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    along, grids = write(tmp_path)
    text = along.read_text(encoding="utf-8")
    assert old in text
    along.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        replay(along, grids)


def test_unknown_names_and_missing_files_are_errors(tmp_path: Path) -> None:
    along, grids = write(tmp_path)
    with pytest.raises(UnknownNameError, match="mine"):
        replay(along, grids, models=["mime"])
    with pytest.raises(UnknownNameError, match="area"):
        replay(along, grids, tests=["aria"])
    with pytest.raises(InputError, match="cannot be read"):
        replay(tmp_path / "none.csv", grids)
    with pytest.raises(InputError, match="no level grid"):
        replay(along, tmp_path / "elsewhere")
