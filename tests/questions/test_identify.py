"""Naming one of m labels: what is shown, asked, read and stored, and known truths that come back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_letters import STILL, knowing

import psyprobe as pp
from psyprobe.analysis import chat_csf, count_confusions, trials
from psyprobe.analysis.efficiency.ideal_observer import ideal_identification
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment, load_experiment
from psyprobe.running.task import task_of


def page(name: str = "letter_acuity", **settings: Any) -> Experiment:
    return load_experiment(name).with_settings(
        {key.replace("__", "."): value for key, value in settings.items()}
    )


def weibull(threshold: float, slope: float = 4.0) -> Any:
    """Share of trials in which a label is seen, half at the threshold."""
    return lambda level: 1 - 0.5 ** ((level / threshold) ** slope)


@pytest.mark.parametrize(
    ("name", "alternatives"),
    [("letter_acuity", 10), ("landolt_4", 4), ("landolt_8", 8), ("tumbling_e", 4)],
)
def test_a_planted_threshold_comes_back_at_a_guess_rate_of_one_in_m(
    name: str, alternatives: int
) -> None:
    experiment = page(name, asking__options__n_max=80, **still_settings())
    result = pp.run(experiment, knowing(experiment, weibull(0.1)), progress=False)
    task = task_of(result)
    assert task.alternatives == alternatives and task.chance == 1 / alternatives
    csf = chat_csf(result)
    assert float(csf["guess"].squeeze()) == pytest.approx(1 / alternatives)
    low, high = (float(csf[f"threshold_{end}"].squeeze()) for end in ("low", "high"))
    assert low < 0.1 < high < 1.6 * low


def test_a_planted_contrast_of_dark_letters_comes_back() -> None:
    """Levels of the page are negative; thresholds are of the contrast without its sign."""
    experiment = page(
        "letter_contrast", levels__letter_size={"values": [0.4]}, **still_settings()
    )
    result = pp.run(experiment, knowing(experiment, weibull(0.03)), progress=False)
    csf = chat_csf(result)
    low, high = (float(csf[f"threshold_{end}"].squeeze()) for end in ("low", "high"))
    assert low < 0.03 < high < 2 * low
    assert "threshold with C and O counted" in " ".join(str(pp.score(result)).split())


def still_settings() -> dict[str, Any]:
    return {key.replace(".", "__"): value for key, value in STILL.items()}


@pytest.fixture(scope="module")
def constant_run() -> Any:
    """Twenty letters at each of two sizes; every O is taken for a C."""
    experiment = page(
        asking__design="constant",
        asking__repeats=20,
        asking__options={},
        levels__logmar={"values": [0.0, 0.6]},
        stimulus__parameters__ppd=60,
        **still_settings(),
    )
    observer = knowing(
        experiment,
        weibull(0.1),
        confusions={"O": "C"},
        spoken=lambda label: f"The letter is **{label.lower()}**.",
    )
    return pp.run(experiment, observer, progress=False)


def test_each_label_is_shown_as_often_at_each_level_and_options_come_in_any_order(
    constant_run: Any,
) -> None:
    table = trials(constant_run)
    for size in np.unique(table["letter_size"]):
        labels_shown = table["shown"].values[table["letter_size"].values == size]
        labels, counts = np.unique(labels_shown.astype(str), return_counts=True)
        assert labels.tolist() == sorted("CDHKNORSVZ") and (counts == 2).all()
    orders = [json.loads(text) for text in table["options"].values]
    assert all(sorted(order) == sorted("CDHKNORSVZ") for order in orders)
    assert len({tuple(order) for order in orders}) > 30


def test_what_was_said_is_stored_and_confusions_are_counted_from_it(
    constant_run: Any,
) -> None:
    table = trials(constant_run)
    # Nothing was listed, so that there are no columns of log-probabilities.
    assert not [name for name in table if str(name).startswith("logprob_")]
    named_labels = [reply.split("**")[1].upper() for reply in table["text"].values]
    assert table["answer"].values.tolist() == named_labels
    assert "outside" in constant_run["answer"].attrs["flag_meanings"].split()
    right = table["answer"].values == table["shown"].values
    np.testing.assert_array_equal(table["response"], right)
    confusions = count_confusions(constant_run)
    assert confusions.counts.shape == (10, 14) and confusions.counts.sum() == 40
    stimulus, response, count = confusions.largest(1)[0]
    assert (stimulus, response) == ("O", "C") and count >= 2


def test_the_score_has_labels_confusions_and_a_forgiving_reading(
    constant_run: Any,
) -> None:
    score = pp.score(constant_run)
    by_label = {label.label: label for label in score.labels}
    assert by_label["O"].correct == 0 and by_label["C"].share > 0.1
    text = " ".join(str(score).split())
    assert "C for O" in text and "guessing is right in 10 %" in text
    assert "px a stroke; logMAR" in text
    assert score.to_dict()["confusions"][5][0] == by_label["C"].answered


def test_jitter_moves_each_letter_by_up_to_its_reach() -> None:
    from psyprobe.probes import load_probe
    from psyprobe.probes.words.schedule import WordsSchedule

    experiment = page()
    observer = pp.observer(lambda images, prompt: "C", name="c", bits=8)
    schedule = load_probe("identify").plan(experiment, observer)
    assert isinstance(schedule, WordsSchedule)
    places = [
        float(schedule.scene.plan_trial(-1.0, 0.2, repeat, 0).specs[0].value("x"))
        for repeat in range(20)
    ]
    assert len(set(places)) == 20
    assert 0.01 < max(np.abs(places)) <= 0.0167


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {}}, r"there is no \[options\]"),
        ({"options.label": "size"}, "size"),
        ({"options.values": ["C"]}, "give 2 to 26"),
        ({"options.values": ["C", "Q"]}, "'Q'"),
        ({"options.names": ["a", "A"], "options.values": ["C", "D"]}, "different word"),
        ({"options.aliases": {"X": ["ex"]}}, "none of C, D"),
        ({"options.aliases": {"C": ["o"]}}, "aliases of its own"),
        ({"options.values": [0, 1], "options.names": ["a_b", "c"]}, "'a_b'"),
        ({"options.values": [0, 1], "options.names": ["outside", "c"]}, "'outside'"),
        ({"options.values": [0, 1], "options.names": ["\x1b[2J", "c"]}, "x1b"),
        ({"options.jitter": {"z": 0.1}}, "'z'"),
        ({"asking.prompts": "base"}, "options"),
        ({"asking.axis": "orientation"}, r"\[levels\] has no 'orientation'"),
    ],
)
def test_a_wrong_page_is_told_in_one_sentence(
    settings: dict[str, Any], message: str
) -> None:
    observer = pp.observer(lambda images, prompt: "C", name="c", bits=8)
    with pytest.raises(InputError, match=message):
        pp.run(load_experiment("letter_acuity").with_settings(settings), observer)


def test_an_encoder_names_letters_by_a_stage_for_each_size() -> None:
    experiment = page(
        asking__design="constant",
        asking__options={},
        asking__repeats=4,
        levels__logmar={"values": [0.3, 0.6]},
        options__values=["C", "O", "H", "V"],
        stimulus__parameters={
            "letter": "C",
            "contrast": -1,
            "luminance": 100,
            "letter_size": 0.4,
            "ppd": 60,
            "size": 32,
        },
    )
    observer = pp.decide("pixels", stage="lda", pairs=16)
    result = pp.run(experiment, observer, progress=False)
    stages = json.loads(result.attrs["training"])
    assert [stage["contrasts"] for stage in stages] == [
        [pytest.approx(size, rel=1e-6)] for size in (5 / 60 * 10**0.3, 5 / 60 * 10**0.6)
    ]
    assert [stage["level"] for stage in stages] == [
        stage["contrasts"][0] for stage in stages
    ]
    # Without noise, and placed within 2 px, nothing is mistaken.
    np.testing.assert_array_equal(result["answer"], result["shown"])


@pytest.mark.parametrize(
    ("name", "letters", "contrast_over_sigma"),
    [("letter_contrast", "sloan", 0.2), ("tumbling_e", "tumbling_e", 0.15)],
)
def test_the_ideal_observer_of_letters_in_white_noise(
    name: str, letters: str, contrast_over_sigma: float, oracle_data: Path
) -> None:
    with (oracle_data / "letters" / "ideal.csv").open(encoding="utf-8") as file:
        (row,) = [
            row
            for row in csv.DictReader(file)
            if row["letters"] == letters
            and float(row["contrast_over_sigma"]) == contrast_over_sigma
        ]
    sigma = 0.1
    contrast = contrast_over_sigma * sigma
    experiment = page(
        name,
        noise={"density": (sigma / 60) ** 2},
        levels={"contrast": {"values": [-contrast * 1.0001, -contrast]}},
        asking__axis="contrast",
        asking__design="constant",
        asking__options={},
        asking__repeats=100,
        options__jitter={},
        stimulus__parameters={
            **({"letter": "C"} if letters == "sloan" else {}),
            "contrast": -1,
            "luminance": 40,
            "letter_size": 20 / 60,
            "ppd": 60,
            "size": 32,
        },
    )
    result = pp.run(experiment, pp.decide("pixels", stage="ideal"), progress=False)
    share = float(np.nanmean(result["response"]))
    expected = float(row["p_correct"])
    error = (expected * (1 - expected) / 200) ** 0.5
    assert abs(share - expected) < 4 * error


@pytest.mark.parametrize("letters", ["sloan", "tumbling_e", "landolt_4", "landolt_8"])
def test_the_ideal_observer_is_right_as_often_as_the_reference_says(
    letters: str, oracle_data: Path
) -> None:
    """Exactly, in place of by the trials of a run."""
    field = {
        "luminance": 1,
        "contrast": 1,
        "letter_size": 20 / 60,
        "ppd": 60,
        "size": 32,
    }
    shapes = (
        pp.optotype(letter=list("CDHKNORSVZ"), **field)
        if letters == "sloan"
        else pp.tumbling_e(orientation=[0, 90, 180, 270], **field)
        if letters == "tumbling_e"
        else pp.landolt(orientation=np.arange(0, 360, 360 // int(letters[-1])), **field)
    )
    coverage = np.asarray(shapes.luminance) - 1
    with (oracle_data / "letters" / "ideal.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["letters"] == letters]
    for row in rows:
        energy = (coverage**2).sum(axis=(1, 2)).mean()
        assert energy == pytest.approx(float(row["mean_energy_px"]), rel=1e-8)
        signals = float(row["contrast_over_sigma"]) * coverage
        share = ideal_identification(signals, 1 / 60**2, 60)
        bound = 4 * float(row["standard_error"]) + 1e-5
        assert share == pytest.approx(float(row["p_correct"]), abs=bound)


def test_first_tokens_tell_the_probability_of_the_label_shown() -> None:
    experiment = load_experiment("orientation_csf").with_settings(
        {
            "probe": "identify",
            "asking.prompts": "identify",
            "asking.readout": "p_yes",
            "asking.design": "constant",
            "asking.options": {},
            "asking.repeats": 4,
            "levels.contrast.n": 6,
            "levels.frequency.values": [4],
            "options": {
                "label": "orientation",
                "values": [0, 90, 135, 45],
                "names": ["vertical", "horizontal", "rising", "falling"],
            },
        }
    )
    observer = pp.load_observer("simulated:castlecsf")
    result = pp.run(experiment, observer, progress=False)
    table = trials(result)
    p = table["p_yes"].values
    assert (table["answer_mass"].values > 0.9).all()
    labels = ["vertical", "horizontal", "rising", "falling"]
    logs = np.array([table[f"logprob_{label}"].values for label in labels])
    np.testing.assert_allclose(
        np.exp(logs).sum(axis=0), table["answer_mass"], rtol=1e-6
    )
    stimulus_indices = [labels.index(label) for label in table["shown"].values]
    probability = (
        np.exp(logs[stimulus_indices, range(len(stimulus_indices))])
        / table["answer_mass"].values
    )
    np.testing.assert_allclose(probability, p, atol=1e-6)
    faint = table["contrast"].values == table["contrast"].values.min()
    clear = table["contrast"].values == table["contrast"].values.max()
    np.testing.assert_allclose(p[faint], 0.25, atol=0.02)
    assert (p[clear] > 0.9).all()
    truth = float(
        observer.true_sensitivity(experiment.spec(frequency=4.0, contrast=0.1)).item()
    )
    csf = chat_csf(result, resamples=20)
    sensitivity = float(csf["sensitivity"].squeeze())
    assert float(csf["guess"].squeeze()) == pytest.approx(0.25)
    assert abs(np.log10(sensitivity / truth)) < 0.1


def test_a_figure_and_a_report_have_the_confusions(
    constant_run: Any, tmp_path: Path
) -> None:
    from psyprobe.probes import load_probe

    figure = pp.plot(constant_run)
    labels = [ax.get_xlabel() for ax in figure.axes]
    assert labels[0] == "Named" and "letter size" in labels[1].lower()
    parts = load_probe("identify").report([constant_run])  # type: ignore[attr-defined]
    table = parts[-1]
    assert table.title == "Confusions" and len(table.rows) == 10
    assert table.heading[-4:] == ["outside", "ambiguous", "refusal", "invalid"]
