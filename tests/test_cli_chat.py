"""psyprobe score and psyprobe plot of a questioning run, from its file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from chat_results import chat_result, log_thresholds

from psyprobe.cli import main


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("chat") / "run.nc"
    result = chat_result(
        log_thresholds(3, 0.1),
        readout="p_yes",
        repeats=3,
        contrast=np.geomspace(1e-3, 0.28, 10),
    )
    result.to_netcdf(path, engine="scipy")
    return str(path)


def run_command(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_score_prints_tables(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_command(capsys, "score", file)
    assert code == 0 and "CSF (cpd)" in out and "flat curve" in out and "3/3" in out
    code, out, _ = run_command(capsys, "score", file, "--format", "latex")
    assert code == 0 and out.count(r"\begin{tabular}") == 2
    code, out, _ = run_command(capsys, "score", file, "--format", "csv")
    assert code == 0 and "watson_malo_noise" in out and len(out.splitlines()) == 8
    code, out, _ = run_command(capsys, "score", file, "--json")
    assert code == 0 and json.loads(out)[0]["scores"]["watson_malo"]["n_valid"] == 3


def test_plot_writes_a_figure(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "csf.png"
    code, out, _ = run_command(capsys, "plot", file, "-o", str(figure))
    assert code == 0 and figure.stat().st_size > 5000 and "1 result" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--measure", "l2"], "answers in words have no measure"),
        (["--scoreboard"], "was asked in words"),
    ],
)
def test_what_is_of_features_ends_in_one_line(
    file: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_command(capsys, "score", file, *options)
    assert code != 0 and message in err and len(err.strip().splitlines()) == 1
