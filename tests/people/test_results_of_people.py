"""What people and models answered in a qCSF run, as figures, scores and reports tell it: what was put in comes back."""

from __future__ import annotations

import json

import numpy as np
from seated import seated
from simulated_person import FREQUENCIES, true_sensitivity

import psyprobe as pp
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.readers import reread
from psyprobe.experiment import read_experiment
from psyprobe.observers import load_observer


def test_the_curve_of_a_run_by_qcsf_is_that_of_its_design() -> None:
    observer = load_observer("simulated:watson-malo")
    page = read_experiment("orientation_csf").with_settings({"asking.options.n_max": 40})
    result = pp.run(page, observer, progress=False)
    csf = chat_csf(result)
    patterns = [page.spec(frequency=frequency, contrast=0.1) for frequency in FREQUENCIES]
    true = np.log10([float(observer.true_sensitivity(pattern)) for pattern in patterns])
    (told,) = json.loads(result.attrs["design_estimates"]).values()
    found = np.log10(csf["mean_sensitivity"].values)
    assert np.abs(found - true).max() < 0.03
    np.testing.assert_allclose(found, told["log10_sensitivity"], atol=1e-12)
    np.testing.assert_allclose(-csf["threshold_high"].values[0], told["low"], atol=1e-12)
    assert (csf["status"] == "ok").all() and (csf["method"] == "posterior").all()
    assert pp.score(result).scores["castle_csf"].n_frequencies == 6  # type: ignore[attr-defined]
    # Each frequency by itself, where it is asked for.
    alone = chat_csf(result, function="logistic")
    assert not (alone["status"] == "ok").all()


def test_the_truth_of_people_comes_back() -> None:
    errors, inside = [], []
    for seed in range(6):
        csf = chat_csf(seated(None, "ANNA", seed))
        true = np.array([true_sensitivity(seed)(frequency) for frequency in FREQUENCIES])
        errors.append(np.log10(csf["mean_sensitivity"].values) - true)
        inside.append((csf["threshold_low"].values[0] < -true) & (-true < csf["threshold_high"].values[0]))
    # The precision table of the reference: 0.082 with 100 trials.
    assert np.sqrt(np.mean(np.square(errors))) < 0.11
    assert np.mean(inside) > 0.9


def test_answers_that_are_read_otherwise_give_another_curve() -> None:
    result = seated(None, "ANNA", 1)
    read = result["read"].values.astype(str)
    turned = np.where(np.arange(read.size) % 4 == 0, np.where(read == "yes", "no", "yes"), read).astype(object)
    own, other = chat_csf(result), chat_csf(reread(result, turned))
    assert (other["mean_sensitivity"] < own["mean_sensitivity"]).all()
