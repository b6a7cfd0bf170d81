"""Stores of several processes become one: nothing lost, nothing twice, conflicts said, never half
of it."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from small_experiment import write_experiment
from small_questions import write_questions

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.cli import main
from psyprobe.errors import StoreError
from psyprobe.files.output import digest
from psyprobe.probes.experiments import run
from psyprobe.running.lease import Lease
from psyprobe.running.merge import merge
from psyprobe.running.protocol import Answered, Question
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]


def question(number: int) -> Question:
    return Question(digest(number), digest("asked"), digest("card"), "1")


def write(path: Path, values: dict[int, float]) -> Path:
    with Store(path) as store:
        store.add(
            Answered(
                question(number),
                {"values": [[value]]},
                ((digest(number), "shown", number),),
            )
            for number, value in values.items()
        )
    return path


def stored_values(path: Path) -> dict[str, float]:
    with Store(path, create=False) as store:
        return {
            answered_question.question.key: answered_question.answer["values"][0][0]
            for answered_question, _ in store.all_answers()
        }


shards = st.lists(
    st.dictionaries(st.integers(0, 5), st.sampled_from([0.5, 1 / 3]), max_size=4),
    min_size=1,
    max_size=3,
)


@given(shards=shards, keep=st.sampled_from(["first", "last"]))
@settings(max_examples=12, deadline=None)
def test_merging_keeps_every_answer_and_merging_again_changes_nothing(
    shards: list[dict[int, float]], keep: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [
            write(folder / f"{i}.sqlite", values) for i, values in enumerate(shards)
        ]
        expected_values: dict[int, float] = {}
        conflicts = 0
        for values in shards:
            conflicts += sum(
                expected_values.get(number, value) != value
                for number, value in values.items()
            )
            expected_values = (
                values | expected_values
                if keep == "first"
                else expected_values | values
            )
        for _ in range(2):
            merge(paths, folder / "one.sqlite", keep=keep)  # type: ignore[arg-type]
            assert stored_values(folder / "one.sqlite") == {
                question(number).key: value for number, value in expected_values.items()
            }
        if conflicts:
            with pytest.raises(
                StoreError, match="merge with --keep first or --keep last"
            ):
                merge(paths, folder / "other.sqlite")
            assert not (folder / "other.sqlite").exists()
        else:
            assert merge(paths, folder / "other.sqlite").conflicts == 0


def test_conflicts_are_counted_and_the_first_named(
    tmp_path: Path, capsys: Output
) -> None:
    first = write(tmp_path / "a.sqlite", dict.fromkeys(range(6), 0.5))
    two = write(tmp_path / "b.sqlite", dict.fromkeys(range(2, 9), 0.25))
    out = tmp_path / "out.sqlite"
    capsys.readouterr()
    assert main(["store", "merge", str(first), str(two), "-o", str(out)]) == 2
    message = capsys.readouterr().err
    assert (
        "4 questions have another answer in a later store" in message
        and "--keep last" in message
    )
    assert (
        question(2).key[:12] in message
        and message.count("\n") == 1
        and not out.exists()
    )
    assert (
        main(["store", "merge", str(first), str(two), "-o", str(out), "--keep", "last"])
        == 0
    )
    assert "9 answers" in capsys.readouterr().out
    assert [stored_values(out)[question(i).key] for i in (0, 2, 8)] == [0.5, 0.25, 0.25]
    # The output keeps what it has where it is there already.
    assert (
        main(
            ["store", "merge", str(first), "-o", str(out), "--keep", "first", "--json"]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["conflicts"] == 4
    assert stored_values(out)[question(2).key] == 0.25
    assert main(["store", "merge", str(out), "-o", str(out)]) == 0


@pytest.fixture(scope="module")
def finished_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one finished run of the pixels."""
    folder = tmp_path_factory.mktemp("whole")
    run(write_experiment(folder), "pixels", store=folder / "runs.sqlite")
    return folder / "runs.sqlite"


def test_three_shards_merged_give_the_result_of_one(
    finished_store: Path, tmp_path: Path
) -> None:
    paths = [tmp_path / f"{i}.sqlite" for i in range(3)]
    for i, path in enumerate(paths):
        with Store(finished_store) as store, Store(path) as shard:
            shard.add_contents(store.all_contents())
            (record,) = store.runs()
            shard.begin_run(record)
            shard.add_timed(list(store.all_answers())[i::3])
    merged = merge(paths, tmp_path / "one.sqlite")
    with Store(finished_store) as store, Store(tmp_path / "one.sqlite") as merged_store:
        assert len(list(merged_store.all_answers())) == merged.answers
        assert {
            (answered_question.question, at)
            for answered_question, at in store.all_answers()
        } == {
            (answered_question.question, at)
            for answered_question, at in merged_store.all_answers()
        }
        assert [run_record.finished for run_record in merged_store.runs()] == [None]

    def never(*_: object, **__: object) -> None:
        raise AssertionError("asked again")

    page = finished_store.parent / "small.toml"
    expected = run(page, "pixels", store=finished_store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "add", never)
        result = run(page, "pixels", store=tmp_path / "one.sqlite")
    xarray.testing.assert_identical(result, expected)


def test_a_finished_run_finishes_that_of_another_store(
    finished_store: Path, tmp_path: Path
) -> None:
    with Store(finished_store) as store, Store(tmp_path / "begun.sqlite") as begun:
        (record,) = store.runs()
        begun.begin_run(record)
    for stores in (("begun.sqlite", finished_store), (finished_store, "begun.sqlite")):
        out = tmp_path / f"out-{Path(stores[0]).stem}.sqlite"
        merge([tmp_path / name for name in stores], out)
        with Store(out) as merged_store:
            (run_record,) = merged_store.runs()
        assert (run_record.finished, run_record.outcome, run_record.origins) == (
            record.finished,
            record.outcome,
            record.origins,
        )


def observer_that_sees(contrast: float) -> Any:
    """It says yes to patterns from a contrast; its card does not tell."""

    def answer(images: list[Any], prompt: str) -> str:
        light = np.asarray(images[0], float).mean(axis=-1) ** 2.2
        is_seen = np.sqrt(2) * light.std() / light.mean() > contrast
        return "Yes" if is_seen != ("uniform" in prompt) else "No"

    return pp.observer(answer, name="m", version="1", bits=8)


@pytest.mark.parametrize("design", ["constant", "quest_plus"])
def test_a_run_of_two_stores_with_other_answers_is_that_of_the_store_that_is_kept(
    design: str, tmp_path: Path
) -> None:
    page = write_questions(tmp_path, ("seed = 3", f'seed = 3\ndesign = "{design}"'))
    stores = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"]
    results = [
        run(page, observer_that_sees(contrast), store=store, progress=False)
        for contrast, store in zip((0.05, 0.12), stores, strict=True)
    ]
    assert not np.array_equal(*(trials(result)["response"] for result in results))
    for keep, expected in zip(("first", "last"), results, strict=True):
        out = tmp_path / f"{keep}.sqlite"
        assert merge(stores, out, keep=keep).conflicts > 0  # type: ignore[arg-type]
        (merged_result,) = pp.load_results(out)
        xarray.testing.assert_equal(merged_result, expected)


@pytest.mark.parametrize(("keep", "is_finished"), [("first", False), ("last", True)])
def test_a_run_ends_as_in_the_store_whose_answers_stay(
    keep: str, is_finished: bool, tmp_path: Path
) -> None:
    page = write_questions(tmp_path)
    for contrast, name in ((0.05, "a.sqlite"), (0.12, "b.sqlite")):
        run(page, observer_that_sees(contrast), store=tmp_path / name, progress=False)
    stores = [tmp_path / "begun.sqlite", tmp_path / "b.sqlite"]
    with Store(tmp_path / "a.sqlite") as store, Store(stores[0]) as begun:
        begun.add_contents(store.all_contents())
        begun.begin_run(*store.runs())
        begun.add_timed(store.all_answers())
    merge(stores, tmp_path / "out.sqlite", keep=keep)  # type: ignore[arg-type]
    with Store(tmp_path / "out.sqlite") as store:
        assert [record.finished is not None for record in store.runs()] == [is_finished]


def test_a_damaged_store_is_one_line_and_leaves_nothing(
    finished_store: Path, tmp_path: Path, capsys: Output
) -> None:
    draw = random.Random(3)
    good, bad, out = (
        tmp_path / "good.sqlite",
        tmp_path / "bad.sqlite",
        tmp_path / "out.sqlite",
    )
    write(good, {1: 0.5})
    before = good.read_bytes()
    edits = [
        "UPDATE answer SET answer = x'00'",
        "UPDATE content SET kind = 99",
        "DROP TABLE procedure",
        "UPDATE procedure SET version = '2'",
        "DELETE FROM origin",
        "UPDATE content SET value = ''",
        "PRAGMA user_version = 4",
    ]
    whole_bytes = finished_store.read_bytes()
    for edit in [
        *edits,
        b"",
        b"no store" * 500,
        whole_bytes[: draw.randrange(5000, 20000)],
    ]:
        if isinstance(edit, bytes):
            bad.write_bytes(edit)
        else:
            shutil.copy(finished_store, bad)
            with closing(sqlite3.connect(bad)) as connection:
                connection.execute(edit)
                connection.commit()
        content_after = bad.read_bytes()
        for command in (
            ["merge", str(good), str(bad), "-o", str(out)],
            ["merge", str(bad), "-o", str(good)],
            ["export", str(bad), "-o", str(tmp_path / "out.csv")],
        ):
            capsys.readouterr()
            assert main(["store", *command]) == 2, (edit, command)
            printed = capsys.readouterr()
            assert (
                printed.out == ""
                and printed.err.count("\n") == 1
                and len(printed.err) < 400
            ), (
                edit,
                command,
            )
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "bad.sqlite",
            "good.sqlite",
        ]
        assert (good.read_bytes(), bad.read_bytes()) == (before, content_after)
    bad.write_bytes(b"no store" * 500)
    assert main(["store", "vacuum", str(bad)]) == 2


def test_vacuum_gives_back_what_is_empty_and_keeps_all_else(
    tmp_path: Path, capsys: Output
) -> None:
    path = write(tmp_path / "a.sqlite", dict.fromkeys(range(1000), 0.1))
    with Store(path) as store:
        store.delete_answers([question(i).key for i in range(800)])
        Lease(store.database).take(["work"])
    values_before, size = stored_values(path), path.stat().st_size
    capsys.readouterr()
    assert main(["store", "vacuum", str(path)]) == 0
    assert "bytes before" in capsys.readouterr().out
    assert stored_values(path) == values_before and path.stat().st_size < 0.7 * size
    assert main(["store", "verify", str(path)]) == 0


@pytest.mark.parametrize("ending", ["csv", "nc", "parquet"])
def test_export_holds_every_answer_with_what_it_was_about(
    finished_store: Path, tmp_path: Path, ending: str
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="the parquet extra is not installed")
    file = tmp_path / f"table.{ending}"
    assert main(["store", "export", str(finished_store), "-o", str(file)]) == 0
    if ending == "nc":
        with xarray.open_dataset(file, engine="scipy") as exported:
            table = exported.load().to_dataframe()
    else:
        table = pd.read_csv(file) if ending == "csv" else pd.read_parquet(file)
    with Store(finished_store) as store:
        answers = {
            answered_question.question.key: answered_question.answer
            for answered_question, _ in store.all_answers()
        }
    assert set(table["question"]) == set(answers)
    for _, row in table.iterrows():
        assert json.loads(row["answer.values"]) == answers[row["question"]]["values"]
        assert row["values.angular"] == answers[row["question"]]["values"][0][0]
        assert (
            row["experiment"] == "small"
            and json.loads(row["origin"])["device"] == "cpu"
        )
        assert row["observer"] == "pixels" and row["test.kind"] in ("gabor", "uniform")
        assert (
            row["reference.kind"] == "uniform"
            and row["test.luminance"] == row["reference.luminance"]
        )
    patterns = table[table["test.kind"] == "gabor"]
    assert (patterns["levels.frequency"] == patterns["test.frequency"]).all()
    assert (table["test.kind"] == "gabor").sum() >= 9 and table[
        "test.contrast"
    ].max() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["merge", "a"], "needs -o FILE"),
        (["info", "a", "-o", "b"], "takes no -o FILE"),
        (["export", "a", "b", "-o", "c.csv"], "takes one store"),
        (["verify", "a", "--keep", "last"], "takes no --keep"),
        (["merge", "absent.sqlite", "-o", "b.sqlite"], "absent.sqlite does not exist"),
    ],
)
def test_what_a_command_does_not_take_is_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["store", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_another_kind_is_refused(
    finished_store: Path, tmp_path: Path, capsys: Output
) -> None:
    assert (
        main(["store", "export", str(finished_store), "-o", str(tmp_path / "a.xlsx")])
        == 2
    )
    assert ".parquet, .csv, .nc" in capsys.readouterr().err
