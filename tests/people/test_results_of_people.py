"""What people and models answered in a qCSF run, as figures, scores and reports tell it: what was
put in comes back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from seated import screen, seated
from simulated_person import FREQUENCIES, true_sensitivity

import psyprobe as pp
from psyprobe.analysis import flag_words, trials
from psyprobe.analysis.words.comparison import STATISTICS, csf_statistics
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.group import people_ceiling, people_curve, score_people
from psyprobe.analysis.words.readers import reread
from psyprobe.analysis.words.sessions import screen_error
from psyprobe.experiment import load_experiment
from psyprobe.observers import load_observer
from psyprobe.probes.experiments import merge_results
from psyprobe.probes.results import all_scores


def test_the_curve_of_a_run_by_qcsf_is_that_of_its_design() -> None:
    observer = load_observer("simulated:watson-malo")
    page = load_experiment("orientation_csf").with_settings(
        {"asking.options.n_max": 40}
    )
    result = pp.run(page, observer, progress=False)
    csf = chat_csf(result)
    patterns = [
        page.spec(frequency=frequency, contrast=0.1) for frequency in FREQUENCIES
    ]
    true = np.log10([float(observer.true_sensitivity(pattern)) for pattern in patterns])
    (estimate,) = json.loads(result.attrs["design_estimates"]).values()
    log_sensitivity = np.log10(csf["mean_sensitivity"].values)
    assert np.abs(log_sensitivity - true).max() < 0.03
    np.testing.assert_allclose(
        log_sensitivity, estimate["log10_sensitivity"], atol=1e-12
    )
    np.testing.assert_allclose(
        -csf["log10_threshold_high"].values[0], estimate["low"], atol=1e-12
    )
    assert (flag_words(csf["status"]) == "ok").all() and (
        flag_words(csf["method"]) == "posterior"
    ).all()
    assert pp.score(result).scores["castle_csf"].n_frequencies == 6  # type: ignore[attr-defined]
    # Each frequency by itself, where it is asked for.
    alone = chat_csf(result, function="logistic")
    assert not (flag_words(alone["status"]) == "ok").all()


def test_the_truth_of_people_comes_back() -> None:
    errors, inside = [], []
    for seed in range(6):
        csf = chat_csf(seated(None, "ANNA", seed))
        true = np.array(
            [true_sensitivity(seed)(frequency) for frequency in FREQUENCIES]
        )
        errors.append(np.log10(csf["mean_sensitivity"].values) - true)
        inside.append(
            (csf["log10_threshold_low"].values[0] < -true)
            & (-true < csf["log10_threshold_high"].values[0])
        )
    # The precision table of the reference: 0.082 with 100 trials.
    assert np.sqrt(np.mean(np.square(errors))) < 0.11
    assert np.mean(inside) > 0.9


def test_answers_that_are_read_otherwise_give_another_curve() -> None:
    result = seated(None, "ANNA", 1)
    readings = trials(result)["reading"].values.astype(str)
    turned = np.where(
        np.arange(readings.size) % 4 == 0,
        np.where(readings == "yes", "no", "yes"),
        readings,
    ).astype(object)
    plain, other = chat_csf(result), chat_csf(reread(result, turned))
    assert (other["mean_sensitivity"] < plain["mean_sensitivity"]).all()


SHORT = load_experiment("orientation_csf").with_settings({"asking.options.n_max": 30})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three people; ANNA sat twice, at two screens, once more sensitive than the other time."""
    path = tmp_path_factory.mktemp("people") / "runs.sqlite"
    seated(
        path,
        "ANNA",
        1,
        at=screen("guess"),
        experiment=SHORT,
        session="first",
        shift=-0.1,
    )
    seated(
        path,
        "ANNA",
        1,
        at=screen("measured", 900.0),
        experiment=SHORT,
        session="second",
        shift=0.1,
    )
    for seed, person in ((2, "BERT"), (3, "CARL")):
        seated(path, person, seed, at=screen("guess"), experiment=SHORT)
    return path


def test_sessions_of_one_person_are_one_result(store: Path) -> None:
    anna, bert, carl = pp.load_results(store)
    assert (
        trials(anna).sizes["trial"],
        trials(bert).sizes["trial"],
        trials(carl).sizes["trial"],
    ) == (60, 30, 30)
    assert [session["session"] for session in json.loads(anna.attrs["sessions"])] == [
        "first",
        "second",
    ]
    assert "design_estimates" not in anna.attrs and bert.sizes["session"] == 1
    # The same sessions from two files are there once.
    (twice,) = merge_results([anna, anna])
    assert trials(twice).sizes["trial"] == 60
    csf = chat_csf(anna)
    low, high = csf["log10_session_offset"].values[::-1]
    assert low < 0 < high
    assert csf["session_area"].values[0] < csf["session_area"].values[1]
    notes = " ".join(pp.score(anna).rows()[0].notes)
    assert "60 answers in 2 sessions" in notes and "of each session, in order" in notes


def test_sessions_at_one_screen_are_pooled_as_they_are() -> None:
    halves = [
        seated(None, "ANNA", 1, experiment=SHORT, session=session)
        for session in ("first", "second")
    ]
    csf = chat_csf(*merge_results(halves))
    assert (csf["log10_session_offset"].values == 0).all()
    alone = [chat_csf(half) for half in halves]
    widths = [
        np.log10(
            csf_of_part["mean_sensitivity_high"] / csf_of_part["mean_sensitivity_low"]
        ).mean()
        for csf_of_part in (csf, *alone)
    ]
    assert float(widths[0]) < float(min(widths[1:]))


def test_the_error_of_the_screen_is_in_the_interval() -> None:
    measured, guessed = (
        chat_csf(seated(None, "ANNA", 1, at=screen(light), experiment=SHORT))
        for light in ("measured", "guess")
    )
    mean = measured["mean_sensitivity"].values
    np.testing.assert_array_equal(mean, guessed["mean_sensitivity"].values)
    below = mean > 1 / 0.03
    assert (
        below.any()
        and (guessed["unsure"].values == below).all()
        and not measured["unsure"].values.any()
    )
    for csf, at in ((measured, screen("measured")), (guessed, screen("guess"))):
        error = np.hypot(at.offset, np.where((csf is guessed) & below, 0.15, 0.0))
        np.testing.assert_allclose(at.threshold_sd(1 / mean), error)
        answers = (
            -csf["log10_threshold"].values[0] + csf["log10_threshold_high"].values[0]
        )
        interval = np.log10(mean / csf["mean_sensitivity_low"].values)
        np.testing.assert_allclose(
            interval, np.hypot(answers, 1.959964 * error), rtol=1e-5
        )
    ax = pp.plotting.plot_csf(guessed)
    hollow = [
        line
        for line in ax.lines
        if line.get_markerfacecolor() == "white" and line.get_label() == "_hollow"
    ]
    assert sum(len(line.get_xdata()) for line in hollow) == below.sum()
    assert "contrast < 0.03, screen not measured" in [
        text.get_text() for text in ax.figure.legends[0].get_texts()
    ]
    plt.close(ax.figure)


def test_equal_screens_share_their_error_and_others_average_it() -> None:
    threshold = np.array([-1.0, -2.0])
    first, two, other = (
        screen("guess"),
        screen("guess", 900.0),
        replace(screen("guess"), device_pixel_ratio=2.0),
    )
    shared, apart = (
        screen_error([first, two], [1, 1], threshold),
        screen_error([first, other], [1, 1], threshold),
    )
    np.testing.assert_allclose(shared.total, first.threshold_sd(10**threshold))
    np.testing.assert_allclose(apart.total, shared.total / np.sqrt(2))
    assert apart.unsure.tolist() == [False, True]


def test_several_people_have_a_mean_and_a_noise_ceiling(store: Path) -> None:
    results = pp.load_results(store)
    csfs = [chat_csf(result) for result in results]
    group_curve = people_curve(csfs)
    assert group_curve is not None and group_curve.persons == ("ANNA", "BERT", "CARL")
    log_s = np.log10([csf["mean_sensitivity"].values for csf in csfs])
    np.testing.assert_allclose(np.log10(group_curve.mean), log_s.mean(axis=0))
    # Student's t with two degrees of freedom, and the screens in squares.
    reach = np.log10(group_curve.high / group_curve.mean)
    assert (reach > 4.30 * log_s.std(axis=0, ddof=1) / np.sqrt(3) * 0.9).all()
    rest_means = [np.delete(log_s, i, axis=0).mean(axis=0) for i in range(3)]
    by_hand = [
        csf_statistics(10**log_curve, 10**rest)
        for log_curve, rest in zip(log_s, rest_means, strict=True)
    ]
    ceiling = people_ceiling(group_curve)
    for name in STATISTICS:
        assert ceiling[name].value == pytest.approx(
            np.mean([statistics[name] for statistics in by_hand])
        )
    assert people_curve(csfs[:2]) is None and score_people(results[:2]) == ()


def test_people_and_models_stand_in_one_figure_and_one_table(store: Path) -> None:
    results = pp.load_results(store)
    model = pp.run(SHORT, "simulated:watson-malo", progress=False)
    (score,) = score_people([*results, model])
    assert list(score.scores) == ["simulated:watson-malo"]
    assert score.scores["simulated:watson-malo"].n_frequencies == 6
    assert score in all_scores([*results, model])
    assert "one person (noise ceiling)" in str(score) and "mean of 3 people" in str(
        score
    )
    ax = pp.plot([*results, model])
    labels = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    expected = {
        "mean of 3 people, 95 % interval",
        "person:ANNA (60 answers in 2 sessions)",
        "simulated:watson-malo",
    }
    assert expected | {"Human (castleCSF)"} <= set(labels)
    plt.close(ax.figure)
