"""Naming one of m labels: what is shown, asked, read and stored, and known truths that come back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from planted_letters import STILL, knowing

import psyprobe as pp
from psyprobe.analysis import chat_csf, trials
from psyprobe.analysis.identification.confusions import count_confusions
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
    experiment = page(name, asking__options__n_max=60, **still())
    result = pp.run(experiment, knowing(experiment, weibull(0.2)), progress=False)
    task = task_of(result)
    assert task.alternatives == alternatives and task.chance == 1 / alternatives
    csf = chat_csf(result)
    assert float(csf["guess"].squeeze()) == pytest.approx(1 / alternatives)
    low, high = (float(csf[f"threshold_{end}"].squeeze()) for end in ("low", "high"))
    assert low < 0.2 < high < 1.6 * low


def still() -> dict[str, Any]:
    return {key.replace(".", "__"): value for key, value in STILL.items()}


@pytest.fixture(scope="module")
def constant_run() -> Any:
    """Twenty letters at each of two sizes; every O is taken for a C."""
    experiment = page(
        asking__design="constant",
        asking__repeats=20,
        asking__options={},
        levels__logmar={"values": [0.0, 0.6]},
        **still(),
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
        shown = table["shown"].values[table["letter_size"].values == size]
        labels, counts = np.unique(shown.astype(str), return_counts=True)
        assert labels.tolist() == sorted("CDHKNORSVZ") and (counts == 2).all()
    orders = [json.loads(text) for text in table["options"].values]
    assert all(sorted(order) == sorted("CDHKNORSVZ") for order in orders)
    assert len({tuple(order) for order in orders}) > 30


def test_what_was_said_is_stored_and_confusions_are_counted_from_it(
    constant_run: Any,
) -> None:
    table = trials(constant_run)
    said = [reply.split("**")[1].upper() for reply in table["text"].values]
    assert table["answer"].values.tolist() == said
    assert "outside" in constant_run["answer"].attrs["flag_meanings"].split()
    right = table["answer"].values == table["shown"].values
    np.testing.assert_array_equal(table["response"], right)
    confusions = count_confusions(constant_run)
    assert confusions.counts.shape == (10, 14) and confusions.counts.sum() == 40
    shown, named, count = confusions.largest(1)[0]
    assert (shown, named) == ("O", "C") and count >= 2


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
        float(schedule.scene.plan_trial(-1.0, 0.4, repeat, 0).specs[0].value("x"))
        for repeat in range(20)
    ]
    assert len(set(places)) == 20
    assert 0.02 < max(np.abs(places)) <= 0.0333


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": {}}, r"there is no \[options\]"),
        ({"options.label": "size"}, "size"),
        ({"options.values": ["C"]}, "give 2 to 26"),
        ({"options.values": ["C", "Q"]}, "'Q'"),
        ({"options.names": ["a", "A"], "options.values": ["C", "D"]}, "different word"),
        ({"options.aliases": {"X": ["ex"]}}, "none of C, D"),
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
