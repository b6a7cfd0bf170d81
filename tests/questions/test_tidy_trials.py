"""Trials as one row a question: written by a store, read back, the same thresholds."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from planted_letters import STILL, knowing
from test_scores_of_quest_plus import page

import psyprobe as pp
from psyprobe.analysis import chat_csf
from psyprobe.analysis.psychometric import fit_trials, read_trials
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.probes.export import export_trials
from psyprobe.running.store import Store

DOCS = Path(__file__).parents[2] / "docs"


#: Two frequencies, six contrasts and eight showings.
CONSTANT = {
    "asking.design": "constant",
    "asking.repeats": 8,
    "asking.options": {},
    "levels.contrast": {"from": 0.002, "to": 0.06, "n": 6, "scale": "log"},
}


def exported(store: Path) -> Path:
    """The tidy file of a store."""
    path = store.with_suffix(".csv")
    assert main(["store", "export", str(store), "--tidy", "-o", str(path)]) == 0
    return path


def thresholds(csf: xr.Dataset) -> np.ndarray:
    """log10 thresholds of a score, with their intervals."""
    names = ("log10_threshold", "log10_threshold_low", "log10_threshold_high")
    return np.stack([csf[name].values for name in names])


def thresholds_of(fit: Any) -> np.ndarray:
    """The same of a fit to a file."""
    return np.stack(
        [fit.log10_threshold, fit.log10_threshold_low, fit.log10_threshold_high]
    )


@pytest.fixture(scope="module")
def two_interval(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.Dataset]:
    """A file of 192 questions in two intervals at contrasts set before, and its result."""
    store = tmp_path_factory.mktemp("tidy") / "runs.sqlite"
    experiment = page(**CONSTANT)
    result = pp.run(experiment, "simulated:watson-malo", store=store, progress=False)
    return exported(store), result


def test_constant_contrasts_give_the_same_thresholds(
    two_interval: tuple[Path, xr.Dataset],
) -> None:
    path, result = two_interval
    trials = read_trials(path, by="prompt")
    assert dict(trials.sizes) == {"prompt": 1, "frequency": 2, "contrast_level": 6}
    assert trials["frequency"].attrs["units"] == "cycles/degree"
    np.testing.assert_allclose(
        thresholds_of(fit_trials(trials)), thresholds(chat_csf(result)), atol=1e-9
    )


def test_yes_and_no_with_catch_trials_give_the_same_thresholds(tmp_path: Path) -> None:
    wording = {"id": "seen", "text": "Is there a pattern?", "yes": ["yes"]}
    experiment = page(probe="yes_no").with_settings(
        {
            **CONSTANT,
            "asking.catch": 0.2,
            "asking.prompts": [wording | {"no": ["no"]}],
        }
    )
    store = tmp_path / "runs.sqlite"
    result = pp.run(experiment, "simulated:watson-malo", store=store, progress=False)
    trials = read_trials(exported(store))
    csf = chat_csf(result)
    assert float(trials["catch_trials"]) == float(csf["catch_trials"].sum()) > 0
    np.testing.assert_allclose(
        thresholds_of(fit_trials(trials, interval="profile")),
        thresholds(csf)[:, 0],
        atol=1e-9,
    )


def test_quest_plus_gives_thresholds_within_its_interval(tmp_path: Path) -> None:
    """A score takes the posterior of the design, whose prior a file of trials does not hold."""
    store = tmp_path / "runs.sqlite"
    result = pp.run(page(), "simulated:watson-malo", store=store, progress=False)
    trials = read_trials(exported(store))
    fitted = thresholds_of(fit_trials(trials))
    scored = thresholds(chat_csf(result))[:, 0]
    np.testing.assert_allclose(fitted[0], scored[0], atol=0.03)
    # Told to fit each level, a score fits the very same counts.
    own_thresholds = thresholds(chat_csf(result, function="logistic"))[:, 0]
    np.testing.assert_allclose(fitted, own_thresholds, atol=1e-9)


def test_letters_give_the_same_thresholds(tmp_path: Path) -> None:
    experiment = load_experiment("landolt_4").with_settings(
        {
            "asking.design": "constant",
            "asking.repeats": 12,
            "asking.options": {},
            "levels.logmar": {"values": [0.0, 0.3, 0.6]},
            **STILL,
        }
    )
    observer = knowing(experiment, lambda level: 1 - 0.5 ** ((level / 0.2) ** 4))
    store = tmp_path / "runs.sqlite"
    result = pp.run(experiment, observer, store=store, progress=False)
    path = exported(store)
    trials = read_trials(path)
    assert trials.attrs["alternatives"] == 4
    np.testing.assert_allclose(
        thresholds_of(fit_trials(trials, function="weibull")),
        thresholds(chat_csf(result))[:, 0],
        atol=1e-9,
    )
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(
        (row["shown"] == row["answer"]) == (row["correct"] == "1") for row in rows
    )


def test_replies_are_read_a_few_at_a_time(
    two_interval: tuple[Path, xr.Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many trials there are, their replies are never all in memory."""
    path, _ = two_interval
    monkeypatch.setattr("psyprobe.running.database._CHUNK", 16)
    decode_column = Store._decode

    def decode(self: Store, table: str, row: Any, column: str) -> Any:
        value = decode_column(self, table, row, column)
        return {**value, "ballast": "x" * 100_000} if table == "answer" else value

    monkeypatch.setattr(Store, "_decode", decode)
    with Store(path.with_suffix(".sqlite"), create=False) as store:
        tracemalloc.start()
        try:
            count = export_trials(store, path.with_name("again.csv"))
            peak_memory = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert count == 192
    assert peak_memory < 40 * 100_000
    assert path.with_name("again.csv").read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def named_letters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xr.Dataset]:
    """A file of 120 letters of constant sizes, named by a reader, and its result."""
    store = tmp_path_factory.mktemp("letters") / "runs.sqlite"
    experiment = load_experiment("letter_acuity").with_settings(
        {
            "asking.design": "constant",
            "asking.options": {},
            "asking.repeats": 12,
            "levels.logmar": {"from": -0.3, "to": 0.6, "n": 10, "scale": "linear"},
        }
    )
    reader = pp.load_observer("simulated:letters", letter_px=10.0, seed=3)
    result = pp.run(experiment, reader, store=store, progress=False)
    return exported(store), result


@pytest.mark.parametrize(
    ("program", "option", "language"),
    [("Rscript", "-e", "r"), ("octave-cli", "--eval", "matlab")],
)
@pytest.mark.parametrize(
    ("file", "function"),
    [("two_interval", "logistic"), ("named_letters", "weibull")],
)
def test_scripts_for_other_programs_find_the_same_thresholds(
    program: str,
    option: str,
    language: str,
    file: str,
    function: str,
    request: pytest.FixtureRequest,
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    path, _ = request.getfixturevalue(file)
    text = (DOCS / "store.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"```{language} \(needs .*?\)\n(.*?)```", text, re.DOTALL)
    (script,) = [block for block in blocks if "trials.csv" in block]
    if function == "weibull":
        # The comment of the line has the function for names.
        script, count = re.subn(
            r"(curve <?[-=]) .*of names: (.*)\n", r"\1 \2;\n", script
        )
        assert count == 1
    run = subprocess.run(
        [program, option, script.replace("trials.csv", str(path))],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    # Octave says in words where a step fits best.
    lines = re.findall(r"^[-+.e\d ]+$", run.stdout, re.MULTILINE)
    numbers = [float(number) for number in " ".join(lines).split()]
    fit = fit_trials(
        read_trials(path), lapse=0.01, interval="profile", function=function
    )
    # R prints the levels, then the thresholds; Octave a line for each.
    printed = numbers[len(fit.threshold) :] if language == "r" else numbers[1::2]
    # Where a step fits best, any place between two contrasts does as well.
    curves = fit.status == "ok"
    assert curves.any()
    np.testing.assert_allclose(
        np.array(printed)[curves], fit.threshold[curves], rtol=1e-3
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"sf": "frequency"}}, "has no column sf; it has"),
        (
            {"where": {"prompt": "other"}},
            "no trial whose prompt is other; it has which",
        ),
        ({"where": {"person": "anna"}}, "no trial whose person is anna"),
    ],
)
def test_choices_that_fit_no_trial_are_refused(
    two_interval: tuple[Path, xr.Dataset], options: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_trials(two_interval[0], **options)


def test_files_of_several_experiments_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(
        "experiment,level,axis,frequency,area,contrast,correct\n"
        + "a,frequency,contrast,4,,0.1,1\n" * 3
        + "b,area,contrast,,0.5,0.1,0\n" * 2
    )
    with pytest.raises(InputError, match=r"2 experiments \(experiment: a, b\)"):
        read_trials(path)
    with pytest.raises(InputError, match=r"values of level \(frequency, area\)"):
        read_trials(path, by="experiment")
    trials = read_trials(path, where={"experiment": "b"})
    assert trials["area"].values.tolist() == [0.5] and trials["trials"].sum() == 2


def test_numbers_are_no_trials(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    pp.run("luminance", "pixels", store=store, score_only=True, progress=False)
    with Store(store) as opened:
        with pytest.raises(InputError, match="has no finished run in words"):
            export_trials(opened, tmp_path / "a.csv")
        with pytest.raises(InputError, match=r"give a name in \.csv"):
            export_trials(opened, tmp_path / "a.nc")
