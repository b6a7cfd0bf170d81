"""Trials of people as one row a question, and read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from seated import seated

from psyprobe.analysis.psychometric import read_trials
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment


def test_people_stand_with_their_sessions(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    page = load_experiment("orientation_csf").with_settings(
        {
            "levels.frequency": {"values": [2, 8]},
            "levels.contrast": {"values": [0.01, 0.1]},
            "asking.design": "constant",
            "asking.options": {},
            "asking.repeats": 2,
        }
    )
    for person, seed in (("anna", 1), ("ben", 2)):
        seated(store, person, seed, experiment=page)
    seated(store, "anna", 1, session="second", experiment=page)
    path = tmp_path / "trials.csv"
    assert main(["store", "export", str(store), "--tidy", "-o", str(path)]) == 0
    with pytest.raises(InputError, match=r"trials of 2 people \(person: anna, ben\)"):
        read_trials(path)
    trials = read_trials(path, by=["person", "session"])
    assert trials["person"].values.tolist() == ["anna", "ben"]
    count = trials["trials"].sum(["frequency", "contrast_level"])
    assert (
        count.sel(person="ben", session="second") == 0 < count.sel(person="anna").min()
    )
    alone = read_trials(path, where={"person": "anna"})
    assert float(alone["trials"].sum()) == float(count.sel(person="anna").sum())
