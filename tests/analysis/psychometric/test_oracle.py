"""Fits agree with values computed elsewhere: scipy's optimisers, psignifit 4.3, statsmodels."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psyprobe.analysis.psychometric import fit_psychometric, psychometric_function

FAMILIES = {"gumbel(Weibull)": "weibull", "sech": "hyperbolic_secant", "gumbel": "weibull", "norm": "normal"}
RATES = {
    "g=0": 0.0, "g=.02": 0.02, "g=.5": 0.5, "g in[0,.5]": (0.0, 0.5),
    "l=0": 0.0, "l=.02": 0.02, "l in[0,.1]": (0.0, 0.1), "l in[0,.5]": (0.0, 0.5),
}  # fmt: skip


@cache
def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def dataset(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = [r for r in rows(folder / "psychometric_datasets.csv") if r["dataset"] == name]
    x, k, n = (np.array([float(r[column]) for r in found]) for column in ("x", "k", "n"))
    return 10.0**x, k, n


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "chat_csf"


def options(config: str) -> dict[str, Any]:
    family, *rest = config.removesuffix(" fixed").split(" ", 1)
    rates = rest[0].replace(" in[", "_in[").split(" ")
    guess, lapse = (RATES[rate.replace("_in[", " in[")] for rate in rates)
    return {"function": FAMILIES.get(family, family), "guess": guess, "lapse": lapse}


def test_sigmoids(folder: Path) -> None:
    for row in rows(folder / "sigmoid_oracle.csv"):
        given = (float(row[name]) for name in ("x", "threshold(F=.5)", "width(5-95%)", "gamma", "lapse"))
        family = FAMILIES.get(row["family"], row["family"])
        assert abs(psychometric_function(*given, function=family) - float(row["psi"])) < 1e-9


def test_maximum_likelihood(folder: Path) -> None:
    checked = 0
    for row in rows(folder / "psychometric_oracle.csv"):
        if not row["fitter"].startswith("scipy-MLE"):
            continue
        fit = fit_psychometric(*dataset(folder, row["dataset"]), **options(row["config"]), interval=None)
        what = f"{row['dataset']} {row['config']}"
        # The table has six significant digits.
        digits = 10.0 ** (np.floor(np.log10(abs(float(row["loglik"])) + 1e-300)) - 5)
        assert abs(fit.log_likelihood - float(row["loglik"])) < 1e-4 + digits, what
        assert abs(fit.deviance - float(row["deviance"])) < 1e-4 + digits, what
        assert fit.degrees_of_freedom == float(row["df"]), what
        assert fit.converged, what
        if fit.status in ("ok", "extrapolated"):
            assert abs(fit.threshold - float(row["threshold"])) < 1e-3, what
            assert abs(fit.width - float(row["width"])) < 1e-3 * max(1.0, float(row["width"])), what
            assert abs(fit.guess - float(row["gamma"])) < 1e-3, what
            assert abs(fit.lapse - float(row["lapse"])) < 1e-3, what
            checked += 1
    assert checked > 40


def test_profile_intervals(folder: Path) -> None:
    checked = 0
    for row in rows(folder / "psychometric_oracle.csv"):
        if row["ci_kind"] != "profile likelihood":
            continue
        fit = fit_psychometric(*dataset(folder, row["dataset"]), **options(row["config"]))
        if fit.status in ("non_monotone", "reversed"):
            continue
        ends = [float(fit.threshold_low), float(fit.threshold_high)]
        expected = [float(row["thr_lo95"]), float(row["thr_hi95"])]
        np.testing.assert_allclose(ends, expected, atol=2e-3, rtol=0, err_msg=f"{row['dataset']} {row['config']}")
        checked += 1
    assert checked > 40
