"""From answers to a sensitivity function: known observers come back, biased, lapsing, evasive and
blind ones too."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from chat_results import FREQUENCIES, chat_result, log_thresholds

import psyprobe as pp
from psyprobe.analysis import flag_words, score_table
from psyprobe.analysis.psychometric import psychometric_function
from psyprobe.analysis.words import fit
from psyprobe.analysis.words.comparison import bridge, human_curve, human_names
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.fit import count_answers
from psyprobe.analysis.words.score import answer_agreement
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.probes.results import score_layers, scoreboard

TEN = np.geomspace(1e-3, 0.28, 10)


def error_of(csf: xr.Dataset, truth: np.ndarray) -> float:
    """Root mean square error of log10 sensitivity over what has a threshold."""
    usable = csf["usable"].values
    return float(np.sqrt(((csf["log10_threshold"].values - truth)[usable] ** 2).mean()))


def p_yes_run(prompts: int = 4, **options) -> tuple[xr.Dataset, np.ndarray]:
    truth = log_thresholds(prompts, 0.15, seed=prompts)
    settings = {
        "readout": "p_yes",
        "repeats": 3,
        "catch": 20,
        "contrast": TEN,
    } | options
    return chat_result(truth, **settings), truth


# -- counting
# ------------------------------------------------------------------------------------------


def test_replies_that_say_neither_are_left_out_and_counted() -> None:
    result = chat_result(repeats=20, invalid=0.2, seed=1)
    counts = count_answers(result)
    lost = result["reading"].values == "invalid"
    assert (
        counts.excluded[..., 2].sum() + counts.catch_excluded[:, 2].sum() == lost.sum()
    )
    assert counts.trials.sum() + counts.catch_trials.sum() == (~lost).sum()
    np.testing.assert_allclose(counts.excluded_rate, 0.2, atol=0.1)
    assert counts.contrast.shape == (1, 6, 12)


def test_what_was_not_shown_is_no_answer() -> None:
    result = chat_result(repeats=2)
    hidden = (
        (result["frequency"].values == 24)
        & (result["contrast"].values > 0.2)
        & (result["catch"].values == 0)
    )
    result["was_shown"].values[hidden] = 0
    result["response"].values[hidden] = np.nan
    counts = count_answers(result)
    assert counts.not_shown.tolist() == [0, 0, 0, 0, 0, hidden.sum()]
    assert counts.trials[0, 5].sum() == 2 * 11


@pytest.mark.parametrize("readout", ["p_yes", "text"])
def test_patterns_that_rounding_wiped_out_have_no_place_on_a_log_axis(
    readout: str,
) -> None:
    result = chat_result(
        log_thresholds()[:, :3],
        frequencies=FREQUENCIES[:3],
        readout=readout,
        contrast=TEN,
    )
    faint = result["contrast"].values == TEN[0]
    tiny = np.random.default_rng(0).normal(0, 1e-30, faint.sum())
    result["delivered_contrast"].values[faint] = tiny
    counts = count_answers(result)
    assert "10 questions could not be shown" in str(pp.score(result))
    assert (counts.not_shown == 10).all() and np.nanmin(
        counts.contrast
    ) == pytest.approx(TEN[1])
    csf = chat_csf(result, resamples=20)
    assert (flag_words(csf["status"]) == "ok").all() and error_of(
        csf, log_thresholds()[:, :3]
    ) < 0.15


def test_levels_stand_in_the_order_in_which_they_arrive() -> None:
    result = chat_result(log_thresholds(), contrast=TEN)
    contrast = result["contrast"].values
    # One-bit images, as rounding makes them without dither: the faintest stands out most.
    result["delivered_contrast"].values[contrast == TEN[0]] = 1.5 * TEN[1]
    counts = count_answers(result)
    assert (np.diff(counts.contrast, axis=-1) > 0).all() and counts.contrast[
        0, 0, 1
    ] == pytest.approx(1.5 * TEN[1])


def test_adaptive_designs_have_other_levels_for_each_wording() -> None:
    first, other = (
        chat_result(contrast=levels, repeats=2) for levels in (TEN, TEN[2:7] * 1.1)
    )
    other["prompt"] = ("trial", np.full(other.sizes["trial"], "p01"))
    counts = count_answers(
        xr.concat([first, other], dim="trial", combine_attrs="override")
    )
    np.testing.assert_allclose(counts.contrast[0, 0], TEN)
    np.testing.assert_allclose(counts.contrast[1, 0, :5], TEN[2:7] * 1.1)
    assert (
        np.isnan(counts.contrast[1, 0, 5:]).all()
        and (counts.trials[1, 0, 5:] == 0).all()
    )


def test_what_is_no_questioning_run_is_refused() -> None:
    with pytest.raises(InputError, match="no result of a questioning run"):
        chat_csf(xr.Dataset())
    silent = chat_result(repeats=1, catch=0, invalid=1.0)
    silent["text"].values[:] = "Which?"
    with pytest.raises(
        InputError, match=r"says yes or no \(72 of 72 are 'Which\?'\); do the prompts"
    ):
        chat_csf(silent)
    silent["finish"] = ("trial", np.full(72, "length"))
    with pytest.raises(
        InputError,
        match=r"all 72 replies .* cut off .* \(72 of 72 are 'Which\?'\); set asking.max_tokens",
    ):
        chat_csf(silent)
    with pytest.raises(InputError, match="guess is"):
        chat_csf(chat_result(repeats=1), guess=(0.5, 0.2))
    with pytest.raises(UnknownNameError, match="axis"):
        chat_csf(chat_result(repeats=1), axis="cubic")


# -- probabilities of yes
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guess", [0.0, 0.25])
def test_probabilities_recover_thresholds(guess: float) -> None:
    result, truth = p_yes_run(8, guess=guess)
    csf = chat_csf(result, resamples=50)
    assert (flag_words(csf["status"]) == "ok").all() and (
        flag_words(csf["method"]) == "logits"
    ).all()
    assert error_of(csf, truth) <= (0.03 if guess == 0 else 0.05)
    assert abs(float(csf["guess"].mean()) - guess) < 0.03


def test_thresholds_are_of_the_contrast_that_arrived() -> None:
    result, truth = p_yes_run(3, delivered=0.8)
    assert error_of(chat_csf(result, resamples=20), truth) <= 0.03


def test_a_question_the_other_way_round_is_turned_round() -> None:
    result, _ = p_yes_run(3)
    turned = result.copy(deep=True)
    for name, value in (
        ("polarity", -1),
        ("logit", -result["logit"]),
        ("p_yes", 1 - result["p_yes"]),
    ):
        turned[name] = ("trial", np.broadcast_to(value, result.sizes["trial"]).copy())
    upright_threshold = chat_csf(result, resamples=20)["log10_threshold"].values
    np.testing.assert_allclose(
        chat_csf(turned, resamples=20)["log10_threshold"].values, upright_threshold
    )


def test_the_mean_over_wordings_is_geometric_and_its_interval_is_over_wordings() -> (
    None
):
    result, _ = p_yes_run(8)
    csf = chat_csf(result, resamples=50)
    expected = 10 ** -csf["log10_threshold"].values.mean(axis=0)
    np.testing.assert_allclose(csf["mean_sensitivity"], expected)
    assert csf.attrs["interval_over"] == "prompts"
    assert (csf["mean_sensitivity_low"] < expected).all() and (
        csf["mean_sensitivity_high"] > expected
    ).all()
    single_prompt_csf = chat_csf(p_yes_run(1)[0], resamples=50)
    assert single_prompt_csf.attrs["interval_over"] == "trials"


def test_a_curve_without_a_threshold_enters_no_mean() -> None:
    truth = log_thresholds(5)
    truth[0, 2], truth[1, 3] = 1.0, -5.0
    csf = chat_csf(
        chat_result(truth, readout="p_yes", repeats=3, contrast=TEN), resamples=20
    )
    assert (
        flag_words(csf["status"])[0, 2] == "censored_above"
        and flag_words(csf["status"])[1, 3] == "censored_below"
    )
    assert csf["n_usable"].values.tolist() == [5, 5, 4, 4, 5, 5]
    assert (
        np.isnan(csf["log10_threshold"].values[0, 2])
        and np.isfinite(csf["mean_sensitivity"]).all()
    )


def test_evasive_answers_flag_a_curve_and_then_take_its_threshold() -> None:
    mostly_valid = chat_csf(p_yes_run(2, invalid=0.3, repeats=8)[0], resamples=20)
    assert mostly_valid["low_validity"].all() and mostly_valid["usable"].all()
    mostly_evasive = chat_csf(p_yes_run(2, invalid=0.75, repeats=8)[0], resamples=20)
    assert (flag_words(mostly_evasive["status"]) == "unreadable").all() and np.isnan(
        mostly_evasive["log10_threshold"]
    ).all()
    assert np.isnan(mostly_evasive["guess"]).all()


def test_dprime_threshold_needs_no_function() -> None:
    result, truth = p_yes_run(4, guess=0.1)
    at_one = chat_csf(result, resamples=20)["log10_dprime_threshold"].values
    assert np.isfinite(at_one).all() and np.abs(at_one - truth).max() < 0.3


# -- counts of yes
# ------------------------------------------------------------------------------------------


def text_run(**options) -> tuple[xr.Dataset, np.ndarray]:
    truth = log_thresholds()
    settings = {"contrast": TEN} | options
    return chat_result(truth, **settings), truth


def test_text_answers_recover_thresholds() -> None:
    result, truth = text_run()
    csf = chat_csf(result)
    assert (flag_words(csf["method"]) == "counts").all() and csf["usable"].all()
    assert error_of(csf, truth) <= 0.08
    assert (csf["log10_threshold_low"] < csf["log10_threshold"]).all() and (
        csf["log10_threshold"] < csf["log10_threshold_high"]
    ).all()


def test_a_bias_to_yes_moves_a_plain_fit_and_not_ours() -> None:
    result, truth = text_run(guess=0.25, repeats=40, width=0.8, catch=80)
    plain = chat_csf(result, guess=0, lapse=0)["log10_threshold"].values - truth
    ours = chat_csf(result)["log10_threshold"].values - truth
    assert plain.mean() < -0.25 and abs(ours.mean()) <= 0.05


@pytest.mark.parametrize("function", ["logistic", "weibull"])
def test_the_raw_threshold_is_where_the_fitted_function_is_one_half(
    function: str,
) -> None:
    sloping_result = chat_result(
        log_thresholds()[:, 1:4], frequencies=FREQUENCIES[1:4], contrast=TEN, guess=0.2
    )
    csf = chat_csf(sloping_result, function=function)
    sloping = csf["log10_width"].values > 0
    assert sloping.any()
    parameters = {
        name: csf[name].values[sloping]
        for name in (
            "log10_threshold",
            "log10_width",
            "guess",
            "lapse",
            "log10_raw_threshold",
        )
    }
    half = psychometric_function(
        parameters.pop("log10_raw_threshold"), *parameters.values(), function=function
    )
    assert half == pytest.approx(0.5)


def test_goodness_of_fit_is_found_on_request() -> None:
    result = chat_result(
        log_thresholds()[:, :2], frequencies=FREQUENCIES[:2], contrast=TEN
    )
    assert np.isnan(chat_csf(result)["p_value"]).all()
    p_value = chat_csf(result, goodness=True)["p_value"].values
    assert ((p_value > 0.01) & (p_value <= 1)).all()


def test_the_papers_axis_takes_counts_and_probabilities() -> None:
    for readout in ("text", "p_yes"):
        result, truth = text_run(readout=readout, repeats=5)
        csf = chat_csf(result, axis="linear", guess=0, lapse=0)
        assert (flag_words(csf["method"]) == "counts").all() and error_of(
            csf, truth
        ) < 0.2
        assert (csf["log10_threshold_high"] > csf["log10_threshold"]).all()
        assert np.isnan(csf["log10_width"]).all()


def test_settings_of_the_experiment_file_are_the_default() -> None:
    result, _ = text_run()
    result.attrs["experiment_toml"] = (
        '[fit]\naxis = "log"\nguess = 0\nlapse = [0, 0.02]\n'
    )
    csf = chat_csf(result)
    assert json.loads(csf.attrs["fit"])["lapse"] == [0, 0.02]
    assert (csf["guess"] == 0).all()


# -- scores, tables, effects
# ------------------------------------------------------------------------------------------


def test_score_says_how_near_a_human_observer_is_to_people() -> None:
    score = pp.score(p_yes_run(5)[0])
    human_score = score.scores[score.human]
    assert (
        human_score.rmse_log10.value < 0.2 and human_score.shape_rmse_log10.value < 0.03
    )
    assert human_score.pearson_linear.value > 0.99 and human_score.n_valid == 5
    assert score.flat["rmse_log10"] > 0.3 and score.blind["rmse_linear"] > 100
    assert [point.value for point in score.curve] == list(FREQUENCIES)
    assert (
        json.loads(json.dumps(score.to_dict(), allow_nan=False))["human"] == score.human
    )
    assert [score.human for score in score_layers(p_yes_run(5)[0], measure=None)] == [
        score.human
    ]


def test_human_curves_are_those_of_the_stimulus() -> None:
    csf = chat_csf(p_yes_run(1)[0], resamples=5)
    curves = {name: human_curve(csf, name)[1] for name in human_names()}
    assert all(
        np.isfinite(curve).all()
        for name, curve in curves.items()
        if name != "modelfest"
    )
    # Four cycles per degree, of the reference's tables.
    assert curves["watson_malo"][2] == pytest.approx(188.84, abs=0.01)
    assert curves["watson_malo_noise"][2] == pytest.approx(147.386, abs=0.01)
    assert curves["watson_ahumada_noise"][2] == pytest.approx(206.699, abs=0.01)
    assert curves["modelfest"][2] == pytest.approx(127.8, abs=0.1) and np.isnan(
        curves["modelfest"][0]
    )
    assert human_curve(csf, {"mine": np.ones(6)})[0] == "mine"
    with pytest.raises(UnknownNameError, match="human curve"):
        human_curve(csf, "watson_mallo")
    with pytest.raises(InputError, match="do not fit 6 frequencies"):
        human_curve(csf, [1.0, 2.0])


def test_tables_say_it_in_every_format() -> None:
    score = pp.score(p_yes_run(3)[0])
    text = str(score)
    assert (
        "flat curve" in text
        and "blind observer" in text
        and "3/3" in text
        and "CSF (cpd)" in text
    )
    assert score_table(score, "latex").count(r"\begin{tabular}") == 2
    assert "| ---" in score_table(score, "markdown")
    header, *rows = score_table(score, "csv").splitlines()
    assert "shape_rmse_log10_prompt_sd" in header and len(rows) == len(score.scores)
    assert (
        json.loads(score_table(score, "json"))[0]["observer"] == "simulated:watson-malo"
    )


def test_a_blind_observer_gets_a_table_and_no_scores() -> None:
    result, _ = p_yes_run(3)
    blind = chat_result(np.full((3, 6), 2.0), readout="p_yes", repeats=3, contrast=TEN)
    score = pp.score(blind)
    assert score.scores[score.human].rmse_log10.value is None
    assert "3 censored_above" in str(score) and "0/3" in str(score)
    json.dumps(score.to_dict(), allow_nan=False)
    score_table([score, pp.score(result)], "csv")


def test_options_of_features_are_refused() -> None:
    result, _ = p_yes_run(1)
    with pytest.raises(InputError, match="have no measure"):
        pp.score(result, measure="angular")
    with pytest.raises(InputError, match="was asked in words"):
        scoreboard([result])


def test_agreement_of_first_token_and_text() -> None:
    result, _ = p_yes_run(2)
    assert answer_agreement(result).agreement == 1
    has_text = result["reply_requested"].values == 1
    turned = np.flatnonzero(has_text)[::4]
    result["reading"].values[turned] = np.where(
        result["reading"].values[turned] == "yes", "no", "yes"
    )
    agreement = answer_agreement(result)
    assert agreement.n == has_text.sum() and not agreement.enough
    assert agreement.agreement == pytest.approx(1 - len(turned) / has_text.sum())
    assert agreement.kappa == pytest.approx(0.5, abs=0.12)
    assert answer_agreement(chat_result(repeats=1)) is None


def test_a_bridge_finds_the_response_that_answers_stand_for() -> None:
    from detection_results import simulated_result

    result, truth = p_yes_run(3)
    human = 10 ** -truth.mean(axis=0)

    def response(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
        return (
            0.02
            * contrast
            * 10 ** np.interp(np.log10(x), np.log10(FREQUENCIES), np.log10(human))
        )

    tower = simulated_result(response)
    tower.attrs["contrast_kind"] = "sinusoid_rms"
    bridged = bridge(result, tower)
    assert bridged.rmse < 0.03 and bridged.level == pytest.approx(0.02, rel=0.2)
    tower.attrs["contrast_kind"] = "michelson"
    with pytest.raises(InputError, match="same stimuli"):
        bridge(result, tower)


def test_answers_that_did_not_change_are_not_fitted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted: list[object] = []
    real = fit._count_fields
    monkeypatch.setattr(
        fit, "_count_fields", lambda *args: (fitted.append(args), real(*args))[1]
    )
    result = chat_result(
        repeats=4, seed=20261122, frequencies=(1.0, 2.0), contrast=TEN[::2]
    )
    first = chat_csf(result)
    first["log10_threshold"].values[...] = 0.0
    second_csf = chat_csf(result)
    assert len(fitted) == 1 and (second_csf["log10_threshold"].values != 0).all()
    result["response"].values[0] = 1 - result["response"].values[0]
    chat_csf(result)
    chat_csf(result, confidence=0.9)
    assert len(fitted) == 3
