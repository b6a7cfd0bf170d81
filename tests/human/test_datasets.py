"""The shipped thresholds of people: the authors' own tables joined, and figures computed from these
by others."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import (
    list_human,
    load_reference,
    modelfest_gabors,
    observers,
    thresholds,
)

FOLDER = Path(str(files("psyprobe.human"))) / "data" / "castlecsf"
#: Columns that make a condition.
CONDITION = [
    "colour_id",
    "background_id",
    "stimulus",
    "frequency",
    "temporal_frequency",
    "sigma",
    "area",
    "eccentricity",
    "visual_field",
    "orientation",
]


@pytest.fixture(scope="module")
def published(oracle_data: Path) -> pd.DataFrame:
    """`datasets.csv` of the oracle, which shares no code with the package."""
    return pd.read_csv(oracle_data / "human_measured" / "datasets.csv").set_index(
        "dataset"
    )


def test_the_means_are_the_tables_of_the_authors(oracle_data: Path) -> None:
    folder = oracle_data / "castlecsf" / "human_data"
    rows = pd.read_csv(folder / "data_aggregated.csv")
    rows = rows.merge(
        pd.read_csv(folder / "backgrounds.csv").drop(columns="dataset"),
        "left",
        "bkg_id",
    )
    rows = rows.merge(
        pd.read_csv(folder / "color_directions.csv"), "left", ["dataset", "col_dir_id"]
    )
    table = thresholds()
    assert len(table) == len(rows) == 2295
    for name in ("dataset", "stimulus"):
        assert (table[name] == rows[name]).all()
    columns = {
        "frequency": "s_frequency",
        "temporal_frequency": "t_frequency",
        "sigma": "ge_sigma",
        "visual_field": "vis_field",
        "n": "N",
        "colour_id": "col_dir_id",
        "sensitivity": "sensitivity",
        "L": "L",
        "M": "M",
        "S": "S",
        "background_id": "bkg_id",
        "area": "area",
        "eccentricity": "eccentricity",
        "luminance": "luminance",
        "orientation": "orientation",
    }
    for ours, theirs in columns.items():
        np.testing.assert_allclose(table[ours], rows[theirs], rtol=1e-5, err_msg=ours)
    np.testing.assert_allclose(
        table["log10_threshold"], rows["log_cone_contrast"], atol=1e-6
    )
    direction = rows[["L_delta", "M_delta", "S_delta"]].to_numpy()
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    np.testing.assert_allclose(table[["dL", "dM", "dS"]], direction, atol=1e-6)


def test_the_people_are_those_counted_by_the_oracle(published: pd.DataFrame) -> None:
    people = observers().groupby("dataset")["observer"]
    with_people = published[published["persons"] > 0]
    assert people.nunique().to_dict() == with_people["persons"].to_dict()
    assert people.size().to_dict() == with_people["rows"].to_dict()
    assert len(with_people) == 13
    assert len(observers()) == 6389
    assert (
        thresholds().groupby("dataset").size().to_dict()
        == published["rows_mean"].to_dict()
    )


def test_people_differ_as_much_as_the_oracle_says(published: pd.DataFrame) -> None:
    """People's means differ as much as the oracle says, pooled over conditions."""
    table = observers()
    means = table.groupby(["dataset", *CONDITION, "observer"], dropna=False)[
        "log10_threshold"
    ].mean()
    groups = means.groupby(["dataset", *CONDITION], dropna=False)
    spread = pd.DataFrame(
        {"squares": groups.var() * (groups.size() - 1), "freedom": groups.size() - 1}
    )
    pooled = spread.groupby("dataset").sum()
    sd = np.sqrt(pooled["squares"] / pooled["freedom"])
    expected = published["sd_between_persons"].dropna()
    assert len(expected) == 8
    np.testing.assert_allclose(sd[expected.index], expected, atol=6e-5)


@pytest.mark.parametrize(
    "dataset",
    ["colorfest", "modelfest", "hdr_csf_disc", "kong2018", "wright1983", "rovamo1993"],
)
def test_means_are_those_of_the_single_thresholds(dataset: str) -> None:
    single = observers(dataset).groupby(CONDITION, dropna=False)["log10_threshold"]
    means = thresholds(dataset).set_index(CONDITION)
    pd.testing.assert_series_equal(
        single.mean().sort_index(),
        means["log10_threshold"].sort_index(),
        check_exact=False,
        atol=2e-6,
        rtol=0,
    )
    assert (single.size().sort_index() == means["n"].sort_index()).all()


def test_modelfest_is_the_same_in_both_tables() -> None:
    table, gabors = thresholds("modelfest"), modelfest_gabors()
    ours = table[table["sigma"] == 0.5].sort_values("frequency")
    wide = gabors.radius == 0.5
    np.testing.assert_allclose(ours["frequency"], gabors.frequency[wide])
    np.testing.assert_allclose(
        ours["log10_threshold"], gabors.log10_threshold[wide], atol=1e-5
    )


def test_tables_say_units_licence_and_whom_to_cite() -> None:
    for table in (thresholds(), observers("hdr_csf")):
        assert set(table.attrs["citations"]) == set(table["dataset"])
        assert set(table.attrs["units"]) <= set(table.columns)
        assert table.attrs["units"]["temporal_frequency"] == "Hz"
        assert table.attrs["licence"].startswith("MIT")
    assert (
        "doi:10.1167/jov.20.4.23" in observers("hdr_csf").attrs["citations"]["hdr_csf"]
    )
    assert "Graphics and Displays" in (FOLDER / "LICENSE").read_text(encoding="utf-8")
    rows = {row.name: row for row in list_human()}
    assert {name for name, row in rows.items() if row.licence} == {
        *thresholds()["dataset"],
        "flicker",
    }
    assert "Ashraf et al. (2024)" in rows["kong2018"].source


def test_an_unknown_variance_is_no_zero() -> None:
    for table in (thresholds(), observers()):
        assert (table["log10_threshold_variance"].dropna() > 0).all()
        assert table["log10_threshold_variance"].notna().any()


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'modelfest'"):
        thresholds("modelfst")
    with pytest.raises(UnknownNameError, match="did you mean 'kim2013'"):
        observers("kim2012")
    with pytest.raises(
        InputError, match=r"means of people only; take thresholds\('laird2006'\)"
    ):
        observers("laird2006")
    with pytest.raises(
        InputError, match=r"'hdr_csf' goes with one level of frequency, luminance, area"
    ):
        load_reference({"data": "hdr_csf"}, Path()).within(
            {"phase": np.array([0.0, 90.0])}, {}
        )  # type: ignore[union-attr]


def test_a_caller_cannot_change_the_shipped_table() -> None:
    table = thresholds("robson1966")
    table["sensitivity"] = 0.0
    assert (thresholds("robson1966")["sensitivity"] > 0).all()


def test_every_table_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.rglob("*.csv")}
    assert len(sizes) == 16
    assert max(sizes.values()) < 1_000_000
