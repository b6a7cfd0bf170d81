"""The wordings: sets that come with psyprobe, a user's own, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from psyprobe.errors import InputError, UnknownNameError
from psyprobe.experiment.prompts import Prompt, load_prompts, prompt_sets


def test_25_wordings_are_ten_nouns_ten_adjectives_and_five_orders() -> None:
    prompts = load_prompts("hernandez2025")
    assert Counter(prompt.group for prompt in prompts) == {
        "noun": 10,
        "adjective": 10,
        "order": 5,
    }
    assert len({prompt.text for prompt in prompts}) == 25
    assert all(
        prompt.full == f"{prompt.text} Answer with yes or no." for prompt in prompts
    )


@pytest.mark.parametrize("name", prompt_sets())
def test_every_set_loads_and_survives_json(name: str) -> None:
    prompts = load_prompts(name)
    reloaded = [
        Prompt.from_dict(json.loads(json.dumps(prompt.to_dict()))) for prompt in prompts
    ]
    assert tuple(reloaded) == prompts
    assert len({prompt.text for prompt in prompts}) == len(prompts)


def test_ids_are_unique_over_the_sets_that_may_be_asked_together() -> None:
    prompts = load_prompts([name for name in prompt_sets() if name != "two_image"])
    assert len({prompt.id for prompt in prompts}) == len(prompts)


def test_polarity_and_words_come_from_the_set() -> None:
    assert {prompt.polarity for prompt in load_prompts("reversed")} == {-1}
    (first, *_) = load_prompts("german")
    assert (first.yes, first.no, first.language) == (("ja",), ("nein",), "de")
    assert first.words == ("ja", "nein")
    assert (
        load_prompts("chinese")[0].full
        == "图像中是否有可见的图案？请只回答“是”或“否”。"
    )


def test_suffix_is_switchable() -> None:
    assert (
        load_prompts("base", suffix="")[0].full
        == "Is there a pattern visible in the image?"
    )


def test_own_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'suffix = "Ja of nee?"\nyes = ["ja"]\nno = ["nee"]\nlanguage = "nl"\n'
        'prompts = [{ id = "a", text = "Zie je een patroon?" }, { id = "b", text = "Leeg?", '
        'polarity=-1, suffix=""}]\n',
        encoding="utf-8",
    )
    a, b = load_prompts(str(path))
    assert (a.full, a.polarity, a.no) == ("Zie je een patroon? Ja of nee?", 1, ("nee",))
    assert (b.full, b.polarity) == ("Leeg?", -1)
    assert load_prompts(["base", path])[1] == a


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ('suffix = "x"', "lacks 'prompts'"),
        ('prompts = [{ id = "a" }]', "lacks 'text'"),
        ('prompts = [{ id = "a", txt = "x" }]', "did you mean 'text'"),
        ('sufix = "x"\nprompts = []', "did you mean 'suffix'"),
        (
            'prompts = [{ id = "a", text = "x", polarity = 0 }]',
            "polarity of prompt 'a' is 0",
        ),
        (
            'prompts = [{ id = "a", text = "x", yes = ["No"] }]',
            "counts 'no' as both answers",
        ),
        ('prompts = [{ id = "a", text = "x", yes = [] }]', "at least one word"),
        ("prompts = []", "no prompt to ask"),
        ("prompts = [", "not valid TOML"),
    ],
)
def test_own_file_with_a_fault(tmp_path: Path, page: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_prompts(path)


def test_refusals() -> None:
    with pytest.raises(UnknownNameError, match="hernandez2025"):
        load_prompts("hernandez225")
    with pytest.raises(UnknownNameError, match="base"):
        load_prompts(["bse", "Is there anything?"])
    with pytest.raises(InputError, match="the id 'base'"):
        load_prompts(["base", "base"])
    with pytest.raises(InputError, match="cannot be read"):
        load_prompts("nowhere.toml")
