"""Files of experiments that ask in words: each slip is one line with the file, the key and what is
allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_questions import write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment, load_suite


def test_reads_what_it_says(tmp_path: Path) -> None:
    experiment = load_experiment(write_questions(tmp_path))
    assert experiment.name == "words" and experiment.probe == "yes_no"
    assert experiment.levels == {"frequency": (2.0, 4.0), "contrast": (0.03, 0.08, 0.2)}
    assert experiment.asking is not None
    assert [prompt.polarity for prompt in experiment.asking.prompts] == [1, -1]
    assert experiment.asking.repeats.text == 4 and experiment.asking.readout == "auto"
    assert (
        experiment.delivery.bits == 8
        and experiment.delivery.dither is None
        and experiment.delivery.refuse
    )
    assert experiment.human is None
    assert load_suite(tmp_path / "words.toml") == (experiment,)


def test_digest_depends_on_what_is_said_only(tmp_path: Path) -> None:
    plain = load_experiment(write_questions(tmp_path)).digest
    assert (
        load_experiment(
            write_questions(tmp_path, ("seed = 3", "seed=3  # three"))
        ).digest
        == plain
    )
    assert (
        load_experiment(write_questions(tmp_path, ("seed = 3", "seed = 4"))).digest
        != plain
    )
    # Prompts in a file of their own count by what they say.
    copy = tmp_path / "own.toml"
    file_digests = []
    for text in ("Is it blank?", "Is it empty?"):
        copy.write_text(
            f'title = "Own"\nprompts = [{{ id = "a", text = "{text}" }}]\n',
            encoding="utf-8",
        )
        path = write_questions(
            tmp_path,
            (
                '["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]',
                '"own.toml"',
            ),
        )
        experiment = load_experiment(path)
        assert [prompt.text for prompt in experiment.asking.prompts] == [text]
        file_digests.append(experiment.digest)
    assert file_digests[0] != file_digests[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[levels]", "[levels", "words.toml"),
        ("[levels]", "[level]", "did you mean 'levels'?"),
        ('"yes_no"', '"yes_or_no"', "did you mean 'yes_no'?"),
        ('"small_noise.toml"', '"other.toml"', "other.toml cannot be read"),
        ("frequency =", "frequncy =", "did you mean 'frequency'?"),
        ("[2, 4]", '["2 cpd"]', "without units"),
        ("[2, 4]", "[4, 2]", "ascending"),
        ("[2, 4]", "[]", "at least one"),
        ("[0.03, 0.08, 0.2]", "[0, 0.1]", "above 0"),
        ("[0.03, 0.08, 0.2]", "[0.1]", "at least two levels"),
        ("[0.03, 0.08, 0.2]", "[0.03, 20]", "contrast"),
        ('prompts = ["base",', 'prompts = ["bse",', "did you mean 'base'?"),
        ("prompts =", "prompt =", "did you mean 'prompts'?"),
        (
            '["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]',
            "[]",
            "at least one",
        ),
        (
            '["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]',
            "3",
            "asking.prompts is 3",
        ),
        ("polarity = -1", "polarity = 2", "polarity"),
        ("polarity = -1", "polarty = -1", "did you mean 'polarity'?"),
        ('id = "blank"', 'id = "base"', "two prompts have the id 'base'"),
        (
            "repeats = { text = 4, p_yes = 2 }",
            "repeats = 0",
            "asking.repeats.text is 0",
        ),
        (
            "repeats = { text = 4, p_yes = 2 }",
            "repeats = { text = 2, p_yes = 4 }",
            "at least as many",
        ),
        ("repeats = { text = 4, p_yes = 2 }", "repeats = { txt = 2 }", "txt"),
        (
            "repeats = { text = 4, p_yes = 2 }",
            'repeats = "ten"',
            "{ text = 10, p_yes = 3 }",
        ),
        ("catch = 0.1", "catch = 1", "asking.catch is 1; give a number from 0 to 0.9"),
        ("seed = 3", "seed = -1", "asking.seed is -1"),
        ("seed = 3", "seed = true", "asking.seed is True"),
        (
            "seed = 3",
            'readout = "logits"',
            "asking.readout is 'logits'; give 'auto' or 'text' or 'p_yes'",
        ),
        (
            "seed = 3",
            'design = "quest"',
            "give 'constant' or 'ladder' or 'quest_plus' or 'quick_csf'",
        ),
        (
            "seed = 3",
            "temperature = 3",
            "asking.temperature is 3; give a number from 0 to 2",
        ),
        ("seed = 3", "max_tokens = 0", "asking.max_tokens is 0"),
        ("seed = 3", "check = nan", "asking.check is nan"),
        ("seed = 3", "options = { n_max = 3 }", "n_max"),
        (
            "seed = 3",
            'design = "quest_plus"\noptions = { n_mx = 3 }',
            "did you mean 'n_max'?",
        ),
        ("seed = 3", 'design = "quest_plus"\noptions = { n_max = 0 }', "n_max is 0"),
        ("seed = 3", 'design = "quest_plus"\noptions = { n_max = "a" }', "n_max"),
        ("[display]", "[delivery]\nbits = 10\n[display]", "delivery.bits is 10"),
        (
            "[display]",
            '[delivery]\ndither = "fs"\n[display]',
            "delivery.dither is 'fs'",
        ),
        ("[display]", '[delivery]\nformat = "jpeg"\n[display]', "format"),
        (
            "[display]",
            "[delivery]\nnative = 1\n[display]",
            "delivery.native is 1; give true or false",
        ),
        (
            "[display]",
            '[human]\nmodel = "watson_mallo_csf"\n[display]',
            "did you mean 'watson_malo_csf'?",
        ),
        (
            "[display]",
            '[fit]\nfunction = "probit"\n[display]',
            "fit.function is 'probit'",
        ),
        (
            "[display]",
            "[fit]\nguess = [0.5, 0.1]\n[display]",
            "fit.guess is [0.5, 0.1]",
        ),
        ("[display]", "[fit]\nlapse = 2\n[display]", "fit.lapse is 2"),
        ("peak = 185.3", 'peak = "bright"', "display.peak is the text 'bright'"),
        ("title =", "tilte =", "tilte"),
    ],
)
def test_slips_are_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write_questions(tmp_path, (old, new))
    with pytest.raises(InputError) as caught:
        experiment = load_experiment(path)
        # A level that cannot be drawn shows when an observer's size is known; still before anything
        # is asked.
        pp.plan(experiment, "simulated:flat")
    assert message in str(caught.value) and "words" in str(caught.value)


def test_contrast_may_be_the_one_level(tmp_path: Path) -> None:
    path = write_questions(tmp_path, ("frequency = { values = [2, 4] }\n", ""))
    result = pp.run(load_experiment(path), "simulated:flat")
    assert set(trials(result)["frequency"].values) == {4.0}
