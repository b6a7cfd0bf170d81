"""R-Bench from raw files to the printed table: all 18 cells, every other split, and what must not
matter."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.cli import main
from psyprobe.corruption import GROUPS, STEPS, dimensions
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.tasks.r_bench import (
    check_items,
    rbench_metrics,
    rbench_table,
    read_answers,
    read_items,
    read_judgements,
    score_items,
)
from psyprobe.tasks.r_bench.items import split_options
from psyprobe.tasks.r_bench.metrics import beside_published

KINDS = ("dis", "ref", "com")


@pytest.fixture(scope="module")
def folder(beside_checkout: Callable[[str], Path]) -> Path:
    return beside_checkout("r_bench/released")


@pytest.fixture(scope="module")
def released(folder: Path) -> dict[str, pd.DataFrame]:
    """The released answers and judgements of LLaVA-1.5, scored by both rules that the oracle
    has."""
    items = read_items(folder / "Ref_Release.csv")
    answers = {
        kind: read_answers(folder / f"llava15_{kind}.csv") for kind in ("dis", "ref")
    }
    judged = {
        kind: read_judgements(folder / f"Result_{kind}_llava15.csv") for kind in KINDS
    }
    return {
        rule: score_items(items, answers=answers, judged=judged, mcq_rule=rule)
        for rule in ("published", "judge", "letter_then_judge")
    }


def test_every_expected_value_of_the_released_answers(
    oracle_data: Path, released: dict[str, pd.DataFrame]
) -> None:
    rules = {"judge_only": "judge", "letter_or_judge": "published"}
    metrics_by_rule = {rule: rbench_metrics(table) for rule, table in released.items()}
    with (oracle_data / "r_bench" / "rbench_expected_metrics.csv").open(
        encoding="utf-8"
    ) as file:
        expected = list(csv.DictReader(file))
    for row in expected:
        metrics = metrics_by_rule[rules[row["mcq_rule"]]]
        name = {"cell": f"{row['task']}-{row['strength']}"}.get(
            row["breakdown"], row["name"]
        )
        rows = metrics[
            (metrics["measure"] == row["measure"])
            & (metrics["breakdown"] == row["breakdown"])
        ]
        rows = rows[rows["name"] == name]
        assert len(rows) == 1, row
        assert rows["value"].iloc[0] == pytest.approx(
            float(row["value"]), abs=5.1e-7
        ), row
        assert rows["n"].iloc[0] == int(row["n"]), row
        assert rows["half_width"].iloc[0] == pytest.approx(
            float(row["ci90_half_width_normal"]), abs=1e-5
        ), row
    assert len(expected) == 52


def test_all_18_printed_cells_and_both_overall_values(
    released: dict[str, pd.DataFrame],
) -> None:
    comparison = beside_published(rbench_metrics(released["published"]), "LLaVA1.5")
    assert len(comparison) == 20
    assert comparison["agrees"].all()
    judge = beside_published(rbench_metrics(released["judge"]), "LLaVA1.5")
    assert set(judge[~judge["agrees"]]["name"]) == {
        "MCQ-low",
        "MCQ-mid",
        "MCQ-high",
        "overall",
    }


def test_first_character_counts_and_not_the_letter(
    released: dict[str, pd.DataFrame],
) -> None:
    # "Black" with key B is right by the published rule; read as a letter it goes to the judge.
    table = released["published"]
    mid = table[(table["task"] == "MCQ") & (table["strength"] == "mid")]
    assert round(mid["absolute"].mean(), 4) == 0.4596


def test_from_raw_files_to_the_table_in_one_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"{kind}={folder}/llava15_{kind}.csv" for kind in ("dis", "ref")]
    files += [f"judged_{kind}={folder}/Result_{kind}_llava15.csv" for kind in KINDS]
    command = [
        "r-bench",
        "score",
        str(folder / "Ref_Release.csv"),
        "--model",
        "LLaVA1.5",
        *files,
        "--mcq-rule",
        "published",
    ]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "0.4701 [0.4" in out
    assert "*" not in out
    assert "1485 items, read as GBK" in err
    assert main([*command, "--format", "latex"]) == 0


def test_the_release_as_it_is(folder: Path) -> None:
    items = read_items(folder / "Ref_Release.csv")
    report = check_items(items)
    assert report.encoding == "GBK"
    assert report.cells == (15, 15)
    assert [report.counts["MCQ", strength] for strength in ("low", "mid", "high")] == [
        170,
        161,
        164,
    ]
    assert report.keys_without_option == ("RealWorldQA_74.jpg",)
    captured = {
        dimension.id for dimension in dimensions().values() if dimension.captured
    }
    assert (
        set(items["dimension"][items["name"].str.startswith("Wild")])
        == captured
        == {2, 3, 4, 7, 8}
    )


def test_dimensions_are_those_of_the_reference_page(oracle_data: Path) -> None:
    with (oracle_data / "r_bench" / "rbench_dimensions.csv").open(
        encoding="utf-8"
    ) as file:
        rows = list(csv.DictReader(file))
    ours = [(d.id, d.title, d.step, d.group) for d in dimensions().values()]
    assert ours == [
        (int(row["id"]), row["name"], row["step"], row["group"]) for row in rows
    ]
    assert {d.step for d in dimensions().values()} == set(STEPS)
    assert {d.group for d in dimensions().values()} == set(GROUPS)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("A.one; B: two；C. three;", ("one", "two", "three")),
        ("A.one; two; B.three", ("one; two", "three")),
        ("N", ()),
        ("B.one; C.two", ()),
    ],
)
def test_options_as_the_release_writes_them(
    text: str, options: tuple[str, ...]
) -> None:
    assert split_options(text) == options


# -- a made-up set
# ------------------------------------------------------------------------------------------


def items_of(keys: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": [f"{i}.jpg" for i in range(len(keys))],
            "question": "?",
            "options": [("one", "two", "three")] * len(keys),
            "key": list(keys),
            "task": "MCQ",
            "quality": 3.0,
            "dimension": [1 + i % 33 for i in range(len(keys))],
            "strength": [("low", "mid", "high")[i % 3] for i in range(len(keys))],
        }
    )


def series(items: pd.DataFrame, values: list[object]) -> pd.Series:
    return pd.Series(values, index=items["name"])


def test_each_rule_reads_choices_as_it_says() -> None:
    items = items_of("ABCA")
    dis, ref = (
        series(items, ["A", "Black", "dog", "B"]),
        series(items, ["A", "B", "C.", "(A)"]),
    )
    judged = {
        "dis": series(items, [0.0, 0.0, 1.0, 1.0]),
        "ref": series(items, [1.0, 1.0, 1.0, 1.0]),
    }
    judged["com"] = series(items, [1.0, 0.0, 1.0, 1.0])
    scores = {
        rule: score_items(
            items, answers={"dis": dis, "ref": ref}, judged=judged, mcq_rule=rule
        )
        for rule in ("published", "judge", "letter", "letter_then_judge")
    }
    assert scores["published"]["absolute"].tolist() == [1, 1, 1, 1]
    assert scores["judge"]["absolute"].tolist() == [0, 0, 1, 1]
    assert scores["letter"]["absolute"].tolist() == [1, 1, 0, 0]
    assert scores["letter_then_judge"]["absolute"].tolist() == [1, 0, 1, 0]
    assert scores["letter_then_judge"]["relative"].tolist() == [1, 0, 1, 0]
    assert scores["judge"]["relative"].tolist() == [1, 0, 1, 1]


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_order_and_further_columns_do_not_matter(order: object) -> None:
    rng = np.random.default_rng(1)
    items = items_of("ABC" * 33).assign(
        absolute=rng.random(99), relative=rng.random(99)
    )
    rows = list(range(99))
    order.shuffle(rows)  # type: ignore[attr-defined]
    other = items.iloc[rows].assign(mood=range(99))
    pd.testing.assert_frame_equal(rbench_metrics(other), rbench_metrics(items))


def test_bad_input_is_one_sentence(tmp_path: Path) -> None:
    header = "name,question,choice,answer,type,score,distortion,strength\n"
    good = "a.jpg,?,A.one; B.two,A,MCQ,3.1,1,1\n"
    for text, message in (
        (header + good + good, "a.jpg is there twice"),
        (
            header + good.replace("MCQ", "Essay"),
            "type is 'Essay'; give MCQ or VQA or CAP",
        ),
        (
            header + good.replace(",1,1", ",34,1"),
            "distortion is '34'; give a whole number from 1 to 33",
        ),
        (header + good.replace(",1,1", ",1,4"), "strength is '4'"),
        (header + good.replace(",A,", ",yes,"), "answer is 'yes'; give a letter"),
        (header + good.replace("MCQ", "CAP"), "give reference captions"),
        (header + good.replace("3.1", "fair"), "score is 'fair'; give a number"),
        (header, "has no rows"),
        ("name,answer\na,b\n", "has no column 'question'"),
        ("", "is no CSV"),
    ):
        path = tmp_path / "items.csv"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_items(path)
    path.write_bytes(b"\xff\xff\xff")
    with pytest.raises(InputError, match="neither UTF-8 nor GBK"):
        read_items(path)
    with pytest.raises(InputError, match="No such file"):
        read_items(tmp_path / "absent.csv")


def test_missing_or_wrong_answers_are_one_sentence(tmp_path: Path) -> None:
    items = items_of("ABC")
    dis = series(items, ["A", "B", "C"])
    with pytest.raises(
        InputError, match=r"answers dis: 1 of 3 items are missing, the first 2\.jpg"
    ):
        score_items(items, answers={"dis": dis.iloc[:2]}, mcq_rule="letter")
    with pytest.raises(InputError, match="judgements of 'dis' are missing"):
        score_items(items, answers={"dis": dis}, mcq_rule="published")
    with pytest.raises(InputError, match="nothing can be scored"):
        score_items(items)
    with pytest.raises(UnknownNameError, match="did you mean 'letter'"):
        score_items(items, answers={"dis": dis}, mcq_rule="leter")
    path = tmp_path / "judged.csv"
    path.write_text("name,result\na.jpg,2\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"result of a\.jpg is not a number from 0 to 1"
    ):
        read_judgements(path)
    path.write_text("name,mood\na.jpg,2\n", encoding="utf-8")
    with pytest.raises(
        InputError, match="an answer stands in prediction, answer or reply"
    ):
        read_answers(path)


def test_a_letter_alone_needs_no_judge() -> None:
    items = items_of("ABC")
    answers = {
        "dis": series(items, ["A", "B", "A"]),
        "ref": series(items, ["A", "C", "C"]),
    }
    table = score_items(items, answers=answers, mcq_rule="letter")
    assert table["absolute"].tolist() == [1, 1, 0]
    assert table["relative"].tolist() == [1, 0, 0]
    assert "Relative robustness" in rbench_table({"mine": rbench_metrics(table)})
