"""Contrast sensitivity functions that installed packages bring, sound and broken ones."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import (
    castle_csf,
    csf,
    evaluate_csf,
    human_names,
    list_human,
    load_reference,
    models,
    noise_matched_csf,
)

PLUGIN = """
def falling(frequency, luminance=100, orientation=0):
    "Falls with frequency."
    return 100 / frequency

def any_keyword(**conditions):
    return 1

number = 3
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_people.py").write_text(PLUGIN)
    (tmp_path / "broken_people.py").write_text("raise RuntimeError('no\\nlicence')")
    (tmp_path / "quitting_people.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    places = {
        "falling": "my_people:falling",
        "any_keyword": "my_people:any_keyword",
        "number": "my_people:number",
        "absent": "my_people:absent",
        "broken": "broken_people:csf",
        "quitting": "quitting_people:csf",
        "castle_csf": "my_people:falling",
    }
    points = [
        EntryPoint(name, place, models.ENTRY_POINTS) for name, place in places.items()
    ]
    monkeypatch.setattr(models, "entry_points", lambda group: points)


@pytest.mark.usefixtures("plugins")
def test_a_model_of_a_package_works_as_ours_do() -> None:
    frequency = np.array([1.0, 4.0])
    np.testing.assert_array_equal(csf("falling")(frequency, luminance=10), [100, 25])
    people = load_reference({"model": "falling"}, Path())
    np.testing.assert_array_equal(
        people.sensitivity(frequency=frequency, area=1.0), [100, 25]
    )
    assert noise_matched_csf(4, "falling", oblique=False) == pytest.approx(25, rel=0.05)
    with pytest.raises(InputError, match="red_green' cannot be given to falling"):
        csf("falling")(frequency, direction="red_green")
    assert "falling" in human_names()


@pytest.mark.usefixtures("plugins")
def test_a_broken_one_is_one_row_and_touches_nothing_else() -> None:
    rows = {(row.name, row.source): row for row in list_human()}
    assert rows["falling", "my_people:falling"].summary == "Falls with frequency."
    obstacles = {
        "any_keyword": "give its inputs names",
        "number": "not a function",
        "absent": "AttributeError",
        "broken": "RuntimeError: no licence",
        "quitting": "SystemExit: 3",
        "castle_csf": "the name is taken",
    }
    for (name, source), row in rows.items():
        assert (name in obstacles and "people" in source) == bool(row.obstacle)
        assert obstacles.get(name, "") in row.obstacle or not row.obstacle
        assert "\n" not in row.obstacle
    assert csf("castle_csf") is castle_csf
    with pytest.raises(
        InputError,
        match=r"broken of broken_people:csf cannot be loaded: broken_people.py, line 1: "
        r"RuntimeError",
    ):
        csf("broken")
    with pytest.raises(UnknownNameError, match="did you mean 'falling'"):
        csf("faling")


def test_a_function_of_ones_own_works_where_ours_does() -> None:
    def flat(frequency: float, luminance: float = 100.0) -> float:
        """Flat."""
        return 0 * frequency + 7

    assert noise_matched_csf(4.0, flat, oblique=False) == 7
    with pytest.raises(InputError, match="flat has no oblique effect"):
        noise_matched_csf(4.0, flat)
    table = {
        "dataset": ["mine"],
        "stimulus": ["gabor"],
        "frequency": [4],
        "area": [1],
        "sigma": [0.56],
        "temporal_frequency": [0],
        "eccentricity": [0],
        "visual_field": [180],
        "L": [69.91],
        "M": [30.09],
        "S": [1.98],
        "dL": [0.6855],
        "dM": [0.2951],
        "dS": [0.0194],
        "sensitivity": [7.0],
    }
    assert evaluate_csf(table, lambda **condition: 7.0).rmse_db == 0
