"""People by person, paired or in two groups, beside scipy and statsmodels; and curves by qCSF."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from chat_results import chat_result
from scipy import stats
from seated import seated
from statsmodels.stats.meta_analysis import combine_effects

import psyprobe as pp
from psyprobe.analysis.comparison import conditions
from psyprobe.analysis.psychometric.trials import fit_trials, read_trials
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.cli import main
from psyprobe.errors import InputError

NAMES = ("ANNA", "BEN", "CLEO", "DORA")


def write_trials(path: Path, thresholds: dict[str, dict[float, float]], seed: int):
    """A table of 150 trials a level of two-alternative answers, by person and frequency."""
    rng = np.random.default_rng(seed)
    rows = []
    for person, levels in thresholds.items():
        for frequency, log10_threshold in levels.items():
            contrast = np.repeat(
                10 ** (log10_threshold + np.linspace(-0.5, 0.5, 5)), 30
            )
            share = 1 / (
                1
                + np.exp(-2 * np.log(19) * (np.log10(contrast) - log10_threshold) / 0.5)
            )
            right = rng.random(contrast.size) < 0.5 + 0.48 * share
            rows += [
                (person, frequency, c, int(r))
                for c, r in zip(contrast, right, strict=True)
            ]
    columns = ["observer", "frequency", "contrast", "correct"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return read_trials(path, by="observer")


def planted(
    shift: float, names: tuple[str, ...] = NAMES
) -> dict[str, dict[float, float]]:
    """log10 thresholds of people who differ by a tenth, raised at 4 cpd by `shift`."""
    return {
        name: {1.0: -1.5 + 0.1 * place, 4.0: -2.0 + 0.1 * place + shift}
        for place, name in enumerate(names)
    }


def of_people(trials, value: float) -> tuple[np.ndarray, np.ndarray]:
    """log10 sensitivity of each person at a frequency, and its standard error."""
    fits = [fit_trials(trials.sel(observer=name)) for name in trials.observer.values]
    place = 0 if value == 1.0 else 1
    sensitivity = np.array([-fit.log10_threshold[place] for fit in fits])
    width = [
        fit.log10_threshold_high[place] - fit.log10_threshold_low[place] for fit in fits
    ]
    return sensitivity, np.array(width) / (2 * stats.norm.ppf(0.975))


def test_the_same_people_in_two_conditions_are_paired_as_statsmodels_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second condition raises thresholds at 4 cpd threefold, and nothing at 1 cpd."""
    first = write_trials(tmp_path / "a.csv", planted(0.0), 1)
    second = write_trials(tmp_path / "b.csv", planted(0.5), 2)
    compared = pp.compare(first, second)
    assert [row.verdict for row in compared.people[:2]] == [
        "not told apart",
        "more sensitive",
    ]
    for row in compared.people[:2]:
        ours, errors = of_people(first, row.value)
        theirs, other_errors = of_people(second, row.value)
        expected = combine_effects(
            ours - theirs, errors**2 + other_errors**2, "iterated", use_t=True
        )
        assert row.paired and row.people == (4, 4)
        assert (row.low, row.high) == pytest.approx(expected.conf_int()[3], abs=1e-4)
    mean = compared.people[2]
    assert mean.value is None and mean.low < 0.25 < mean.high
    assert "The same people did both" in str(compared)
    paths = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    assert main(["compare", *paths, "--by", "observer"]) == 0
    assert "mean over levels" in capsys.readouterr().out


def test_two_groups_of_equal_errors_are_compared_as_scipy_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    groups = [rng.normal(mean, 0.2, size) for mean, size in ((0.4, 7), (0.0, 5))]

    def table(values: np.ndarray) -> pd.DataFrame:
        names = [f"{values.size}-{place}" for place in range(values.size)]
        frame = pd.DataFrame(
            {"value": 4.0, "sensitivity": values, "error": 0.01, "person": names}
        )
        frame.attrs["level"] = "frequency"
        return frame

    monkeypatch.setattr(conditions, "_estimates", table)
    (row,), notes = conditions.compare_people(*groups)
    welch = stats.ttest_ind(*groups, equal_var=False)
    assert row.p == pytest.approx(welch.pvalue, rel=1e-9)
    assert (row.low, row.high) == pytest.approx(welch.confidence_interval())
    assert not row.paired and row.people == (7, 5) and not notes


def test_other_people_are_two_groups_and_what_is_left_out_is_named(
    tmp_path: Path,
) -> None:
    first = write_trials(tmp_path / "a.csv", planted(0.0), 1)
    second = write_trials(tmp_path / "b.csv", planted(0.6, ("EVE", "FRED", "GUS")), 2)
    groups = pp.compare(first, second)
    assert not groups.people[0].paired and groups.people[0].people == (4, 3)
    assert [row.verdict for row in groups.people[:2]] == [
        "not told apart",
        "more sensitive",
    ]
    assert "Two groups of people" in str(groups)
    at_one_frequency = planted(0.5, NAMES[:3])
    at_one_frequency = {
        name: {4.0: levels[4.0]} for name, levels in at_one_frequency.items()
    }
    fewer = pp.compare(first, write_trials(tmp_path / "c.csv", at_one_frequency, 4))
    assert len(fewer.people) == 1 and fewer.people[0].people == (3, 3)
    assert fewer.notes == (
        "left out DORA, who did not do both",
        "left out frequency 1, which fewer than two on a side did",
    )
    with pytest.raises(InputError, match="ANNA alone did both"):
        mixed = [first.sel(observer=["ANNA"]), second.sel(observer=["EVE"])]
        pp.compare(first, xr.concat(mixed, "observer", combine_attrs="override"))
    with pytest.raises(InputError, match="1 people tell nothing of others"):
        pp.compare(first, first.sel(observer=["ANNA"]))


def test_people_s_runs_are_compared_by_person_and_curves_by_qcsf_with_others() -> None:
    """Two persons at qCSF, four times as sensitive in the second condition."""
    names = NAMES[:2]
    before = [seated(None, name, seed) for seed, name in enumerate(names)]
    after = [
        seated(None, name, seed, session="second", shift=0.6)
        for seed, name in enumerate(names)
    ]
    compared = pp.compare(after, before)
    mean = compared.people[-1]
    assert mean.paired and mean.value is None
    assert mean.low < 0.6 < mean.high and mean.difference > 0.3
    # One of them beside an observer of constant stimuli whose thresholds are known.
    csf = chat_csf(before[0])
    constant = chat_result(
        csf["log10_threshold"].values + 0.8,
        frequencies=csf["frequency"].values,
        contrast=np.geomspace(1e-3, 1, 12),
        observer="constant",
        seed=3,
    )
    constant.attrs["experiment"] = before[0].attrs["experiment"]
    curves = pp.compare(before[0], constant)
    for row in curves.levels:
        assert row.low < 0.8 < row.high
    assert "more sensitive" in {row.verdict for row in curves.levels}
