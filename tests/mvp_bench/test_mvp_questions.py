"""The questions of MVP-Bench: the released files with their quirks, and rotations made by
ourselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_bench import (
    check_questions,
    read_questions,
    rotated,
    split_choices,
)

ROW: dict[str, Any] = {
    "question_id": 1,
    "id": 3,
    "image": "Single_Images/3_s.jpg",
    "question": "Is it?\nPlease answer yes or no.",
    "answer": "yes",
    "type": "y/n-s",
    "level": "low",
}
CHOICE = {
    **ROW,
    "question_id": 2,
    "image": "Single_Images/3_e.jpg",
    "question": "What?\nA. a dog\nB. a cat\nC. a cow\nAnswer with the letter.",
    "answer": "B",
    "type": "mcq-e",
    "level": "high",
}


@pytest.fixture(scope="module")
def released(beside_checkout: Callable[[str], Path]) -> Path:
    return beside_checkout("mvp_bench/released")


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "questions.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_counts_of_the_release(released: Path) -> None:
    main, rotations = (
        read_questions(released / name)
        for name in ("all_questions.json", "mcq_questions.json")
    )
    report = check_questions(pd.concat([main, rotations]))
    assert report.counts == {
        ("main", "yes_no N", "low"): 270,
        ("main", "yes_no N", "high"): 230,
        ("main", "yes_no M", "low"): 270,
        ("main", "yes_no M", "high"): 230,
        ("main", "single_mcq", "high"): 418,
        ("main", "cross_mcq", "low"): 227,
        ("main", "cross_mcq", "high"): 227,
        ("circular", "single_mcq", "high"): 2089,
        ("circular", "cross_mcq", "low"): 1135,
        ("circular", "cross_mcq", "high"): 1135,
    }
    assert (report.pairs, report.images) == (530, 884)
    pairs = [pair for pair, _ in report.same_answer]
    assert sorted(pairs) == [
        196,
        238,
        379,
        452,
        452,
        550,
        550,
        580,
        580,
        581,
        581,
        588,
        588,
    ]
    assert (report.rotations_checked, report.rotations_wrong) == (872, ())
    assert report.malformed == ()


def test_rotations_are_told_apart_by_their_image(tmp_path: Path) -> None:
    rows = [
        {
            **CHOICE,
            "question_id": f"0__{i}__0",
            "mcq_id": i,
            "index": "1/3",
            "image": image,
        }
        for i, image in enumerate(
            ["Single_Images/3_e.jpg", "Cross_Images/3_concat.jpg"]
        )
    ]
    assert read_questions(write(tmp_path, *rows))["task"].tolist() == [
        "single_mcq",
        "cross_mcq",
    ]


@given(st.integers(2, 5), st.data())
def test_n_rotations_are_none_and_the_key_moves_along(
    n: int, data: st.DataObject
) -> None:
    options = data.draw(
        st.lists(st.text("abc ?.,", min_size=1), min_size=n, max_size=n, unique=True)
    )
    lines = [
        f"{letter}. {option}" for letter, option in zip("ABCDE", options, strict=False)
    ]
    question = "\n".join(["Which?", *lines, "Answer."])
    key = data.draw(st.sampled_from("ABCDE"[:n]))
    for shift in range(n):
        moved, answer = rotated(question, key, shift)
        assert (
            split_choices(moved)[1]["ABCDE".index(answer)]
            == options["ABCDE".index(key)]
        )
        assert rotated(moved, answer, n - shift) == (question, key)


def test_options_repeated_in_the_stem_are_no_options() -> None:
    stem = "Which? A) one B) two\nA) one"
    assert split_choices(f"{stem}\nA. one\nB. two\nAnswer.") == (
        stem,
        ("one", "two"),
        "Answer.",
    )


def test_missing_images_are_listed(tmp_path: Path) -> None:
    table = read_questions(write(tmp_path, ROW, CHOICE))
    (tmp_path / "Single_Images").mkdir()
    (tmp_path / "Single_Images" / "3_s.jpg").touch()
    assert check_questions(table, tmp_path).missing_images == ("Single_Images/3_e.jpg",)


def test_a_key_that_is_no_option_is_reported(tmp_path: Path) -> None:
    table = read_questions(write(tmp_path, {**CHOICE, "answer": "D"}))
    assert check_questions(table).malformed == ("2: 3 options and the key D",)


def test_a_row_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    assert len(read_questions(write(tmp_path, ROW, ROW))) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**ROW, "type": "essay"}], "line 1: type is 'essay'; give 'y/n-s'"),
        ([{**ROW, "level": "middle"}], "level is 'middle'"),
        ([{**ROW, "answer": "maybe"}], "answer is 'maybe'; give yes or no"),
        ([{**ROW, "id": "three"}], "id is 'three'"),
        (
            [{name: value for name, value in ROW.items() if name != "level"}],
            "line 1: there is no 'level'",
        ),
        (
            [ROW, {**ROW, "answer": "no"}],
            "question 1 is there twice with different contents",
        ),
        ([{**CHOICE, "mcq_id": 0, "index": "first"}], "index is 'first'"),
        ([], "is empty"),
    ],
)
def test_bad_rows_are_one_sentence(
    tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_questions(write(tmp_path, *rows))


def test_bad_files_are_one_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"question_id": 1,\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 1: this is no JSON"):
        read_questions(broken)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it is not UTF-8"):
        read_questions(broken)
    with pytest.raises(InputError, match="No such file"):
        read_questions(tmp_path / "absent.json")
