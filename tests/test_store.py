"""The store gives back what it was given, once, whatever happens to its process or its file."""

from __future__ import annotations

import json
import sqlite3
import sys
import tracemalloc
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from children import child
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psyprobe.errors import StoreError
from psyprobe.files.output import digest
from psyprobe.running.database import APPLICATION_ID, SCHEMA_VERSION
from psyprobe.running.protocol import Answered, Origin, Question, RunRecord
from psyprobe.running.store import Store

finite = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | finite | st.text(),
    lambda c: st.lists(c) | st.dictionaries(st.text(), c),
)


def question(stimulus: str = "s", observer: str = "o") -> Question:
    return Question(digest(stimulus), digest("asked"), digest(observer), "1")


def answers(count: int = 2, value: float = 1.0, observer: str = "o") -> list[Answered]:
    return [
        Answered(question(str(i), observer), {"values": [[value]]})
        for i in range(count)
    ]


def values(store: Store, keys: list[str]) -> list[float]:
    answers_by_key = store.require_answers(keys)
    return [answers_by_key[key]["values"][0][0] for key in keys]


def record(**changes: object) -> RunRecord:
    fields: dict[str, object] = {
        "experiment": "e",
        "experiment_digest": "1",
        "experiment_toml": "title = 'é'",
        "observer": "pixels",
        "observer_card": {"name": "pixels"},
        "observer_digest": "2",
        "probe": "detection",
        "layout": {"x": [0.1]},
        "software": {"psyprobe": "0"},
        "grouping": {
            "batch_size": 32,
            "batches": [{"references": ["r"], "pairs": [0]}],
        },
    }
    return RunRecord(**(fields | changes))  # type: ignore[arg-type]


@given(
    values=arrays(np.float64, (3, 2, 4), elements=finite),
    order=st.permutations(range(3)),
)
@settings(max_examples=40)
def test_answers_come_back_bit_for_bit_in_any_order(
    values: np.ndarray, order: list[int]
) -> None:
    questions = [question(str(i)) for i in range(3)]
    with Store(None) as store:
        store.add(
            Answered(question_asked, {"values": value.tolist()})
            for question_asked, value in zip(questions, values, strict=True)
        )
        answers_by_key = store.answers(questions[i].key for i in order)
    np.testing.assert_array_equal(
        [answers_by_key[questions[i].key]["values"] for i in order], values[list(order)]
    )


@given(plain.filter(lambda value: value is not None))
@settings(max_examples=40)
def test_contents_come_back(content: object) -> None:
    with Store(None) as store:
        store.add_contents([(digest(content), "stimulus", content)])
        assert store.content(digest(content)) == content


@given(st.dictionaries(st.text(), plain))
@settings(max_examples=40)
def test_an_answer_is_kept_as_it_came_with_what_its_digests_stand_for(
    answer: dict[str, object],
) -> None:
    with Store(None) as store:
        store.add([Answered(question(), answer, ((digest("s"), "shown", "s"),))])
        assert store.answers([question().key]) == {question().key: answer}
        assert store.content(digest("s")) == "s"


def test_digest_depends_on_content_only() -> None:
    assert digest({"a": 1, "b": [1.5]}) == digest({"b": [1.5], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest(float("nan"))


def test_every_part_of_a_question_makes_another() -> None:
    parts = ("a", "b", "c", "d")
    changed_questions = [
        Question(*("x" if i == j else part for j, part in enumerate(parts)))
        for i in range(4)
    ]
    assert (
        len({Question(*parts).key, *(changed.key for changed in changed_questions)})
        == 5
    )


def test_first_answer_stays() -> None:
    with Store(None) as store:
        store.add(answers(value=1.0))
        store.add(answers(count=3, value=2.0))
        assert values(store, [question(str(i)).key for i in range(3)]) == [
            1.0,
            1.0,
            2.0,
        ]


def test_what_begins_alike_is_told_apart() -> None:
    """Stimuli whose digests begin alike."""
    questions = [
        Question(f"{'ab' * 4}{i:024x}", digest("asked"), digest("o"), "1")
        for i in range(5)
    ]
    with Store(None) as store:
        for value in (1.0, 2.0):
            store.add(
                Answered(asked_question, {"values": [[value + i]]})
                for i, asked_question in enumerate(questions[:4])
            )
        assert values(
            store, [asked_question.key for asked_question in questions[:4]]
        ) == [1.0, 2.0, 3.0, 4.0]
        assert store.missing(asked_question.key for asked_question in questions) == {
            questions[4].key
        }
        store.delete_answers([questions[1].key])
        assert store.missing(asked_question.key for asked_question in questions) == {
            questions[1].key,
            questions[4].key,
        }


def test_one_call_keeps_one_answer_to_a_question() -> None:
    with Store(None) as store:
        store.add([*answers(2, value=1.0), *answers(3, value=2.0)])
        assert values(store, [question(str(i)).key for i in range(3)]) == [
            1.0,
            1.0,
            2.0,
        ]
        assert store.database.count("answer") == 3


def test_missing_names_what_is_not_answered() -> None:
    answered_key, unknown = question("0").key, question("9").key
    with Store(None) as store:
        store.add(answers(2))
        assert store.missing([answered_key, unknown]) == {unknown}
        assert set(store.answers([answered_key, unknown])) == {answered_key}
        with pytest.raises(StoreError, match="1 of 2 questions have no answer yet"):
            store.require_answers([answered_key, unknown])
        with pytest.raises(StoreError, match="nothing is stored"):
            store.content(digest(0))


def test_answers_are_iterated_up_to_the_first_that_is_missing() -> None:
    with Store(None) as store:
        store.add(answers(500))
        keys = [question(str(i)).key for i in range(502)]
        iterator = store.iterate_answers(keys)
        assert [next(iterator) for _ in range(500)] == [
            store.answers([key])[key] for key in keys[:500]
        ]
        with pytest.raises(StoreError, match="2 of 502 questions have no answer yet"):
            next(iterator)


def test_what_is_computed_of_answers_is_computed_once_for_all_labels() -> None:
    with Store(None) as store:
        first = store.remember("mean", lambda: [1.0])
        assert store.with_label("night").remember("mean", lambda: [2.0]) is first
        assert store.remember("sum", lambda: [3.0]) == [3.0]
    with Store(None) as other:
        assert other.remember("mean", lambda: [4.0]) == [4.0]


def test_the_text_of_a_run_is_not_kept_beside_its_record() -> None:
    size = 4_000_000
    with Store(None) as store:
        for name in ("a", "b", "c"):
            store.begin_run(record(experiment=name, layout={"text": name * size}))
        iterator = store.iterate_runs()
        tracemalloc.start()
        try:
            run = next(iterator)
            in_memory, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert size <= in_memory < 1.1 * size
        assert [run.experiment, *(other.experiment for other in iterator)] == [*"abc"]


def test_many_questions_are_looked_up_at_once() -> None:
    with Store(None) as store:
        store.add(answers(2000))
        keys = [question(str(i)).key for i in range(2001)]
        assert store.missing(keys) == {keys[-1]}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with Store(None) as store:
        with pytest.raises(StoreError, match="NaN or infinite"):
            store.add(answers(value=value))
        assert len(store.missing([question("0").key])) == 1


def test_a_batch_is_written_whole_or_not_at_all() -> None:
    with Store(None) as store:

        def fails_midway() -> object:
            yield from answers(2)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.add(fails_midway())  # type: ignore[arg-type]
        assert store.missing([question("0").key])


def test_run_goes_on_with_the_recorded_batches(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.sqlite") as store:
        first = store.begin_run(record())
        assert first.started is not None and first.finished is None
        resumed = store.begin_run(
            record(
                grouping={"batch_size": 8, "batches": []}, software={"psyprobe": "1"}
            )
        )
        assert resumed == first == store.find_run(record().key)
        store.begin_run(record(layout={"x": [0.2]}))
        store.finish_run(first, {"trials": [1]})
    with Store(tmp_path / "runs.sqlite", create=False) as store:
        finished = [(run.finished is not None, run.outcome) for run in store.runs()]
        assert finished == [(True, {"trials": [1]}), (False, {})]
        assert store.find_run(digest(0)) is None


def test_two_connections_share_a_store(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "runs.sqlite") as first,
        Store(tmp_path / "runs.sqlite") as other,
    ):
        first.add(answers(2))
        other.add(answers(4, value=3.0))
        assert not first.missing([question("3").key])


def test_many_processes_make_one_store_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from psyprobe.running.store import *; from psyprobe.files.output import "
        "digest\n"
        "from psyprobe.running.protocol import *; asked, observer = digest('asked'), digest('o')\n"
        "with Store(sys.argv[1]) as store:\n"
        "    for i in range(20):\n"
        "        store.add([Answered(Question(digest(str(i)), asked, observer, '1'), {'values': "
        "[[i / 3]]})])\n"
    )
    path = tmp_path / "runs.sqlite"
    with ExitStack() as stack:
        processes = [
            stack.enter_context(child([sys.executable, "-c", code, str(path)]))
            for _ in range(5)
        ]
        assert [process.wait() for process in processes] == [0] * 5
    with Store(path, create=False) as store:
        assert values(store, [question(str(i)).key for i in range(20)]) == [
            i / 3 for i in range(20)
        ]


def test_no_store_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(
        "no database, and long enough not to be taken for an empty one " * 20
    )
    with pytest.raises(StoreError, match="is not a store"):
        Store(tmp_path / "text")
    with pytest.raises(StoreError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="there is no folder"):
        Store(tmp_path / "no" / "runs.sqlite")
    with pytest.raises(StoreError, match="does not exist"):
        Store(tmp_path / "runs.sqlite", create=False)
    assert not (tmp_path / "runs.sqlite").exists()


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", "file:runs.sqlite"])
def test_a_path_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    batch = answers()
    with Store(f"./{name}") as store:
        store.add(batch)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with Store(tmp_path / name, create=False) as store:
        assert len(store.answers([answered.question.key for answered in batch])) == 2


def test_what_keeps_nothing_is_no_store() -> None:
    with pytest.raises(StoreError, match="a device or a pipe, which keeps nothing"):
        Store("/dev/null")


def test_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        Store(tmp_path / "other.sqlite")


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_a_store_of_another_schema_is_refused(tmp_path: Path, version: int) -> None:
    Store(tmp_path / "runs.sqlite").close()
    connection = sqlite3.connect(tmp_path / "runs.sqlite")
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(
        StoreError,
        match=f"has schema {version}, and this psyprobe reads schema {SCHEMA_VERSION} only",
    ):
        Store(tmp_path / "runs.sqlite")


def test_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        store.add(answers(400))
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x99" * (len(data) - 4096)
    path.write_bytes(data)
    with (
        pytest.raises(StoreError, match=r"runs\.sqlite is damaged"),
        Store(path) as store,
    ):
        store.answers([question("0").key])


def test_unwritable_store_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    Store(path).close()
    with Store(path) as store:
        # Rights do not bind the superuser under whom tests may run; SQLite's own switch does.
        store.database._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreError, match="cannot be written"):
            store.add(answers())


def test_a_commit_is_synced_to_the_disk_before_it_counts(tmp_path: Path) -> None:
    """What the page on the store calls durable: 2 is FULL; no write-ahead log that a copy would
    miss."""
    with Store(tmp_path / "runs.sqlite") as store:
        pragma = store.database._connection.execute
        assert pragma("PRAGMA synchronous").fetchone()[0] >= 2
        assert pragma("PRAGMA journal_mode").fetchone()[0] == "delete"


@settings(max_examples=60)
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=9))
@example(values=[-0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2])
def test_numbers_of_the_text_are_those_of_the_observer(values: list[float]) -> None:
    with Store(None) as store:
        store.add([Answered(question(), {"values": [values]})])
        (text,) = store.database._connection.execute(
            "SELECT answer FROM answer"
        ).fetchone()
    assert list(map(repr, json.loads(text)["values"][0])) == list(map(repr, values))


def test_the_view_shows_an_answer_in_words(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    request = {"prompt": "Do you see a pattern?"}
    card = {"name": "gpt"}
    question_asked = Question(
        digest("image"), digest(request), digest(card), "yes_no 1"
    )
    reply = {"reply": {"text": "Yes. \u00dc"}, "refused": ""}
    contents = ((digest(request), "request", request), (digest(card), "observer", card))
    levels = {"frequency": 4.0, "contrast": 0.1}
    with Store(path) as store:
        store.add(
            [
                Answered(
                    question_asked, reply, contents, Origin({}, "cpu"), "csf", levels
                )
            ]
        )
        store.add([Answered(question(), {"values": [[0.5, 0.25]]})])
        store.add([Answered(question("other"), {"reply": None, "refused": "too dark"})])
    with closing(sqlite3.connect(path)) as connection:
        columns = "experiment, observer, levels, prompt, response, refused, device"
        rows = connection.execute(f"SELECT {columns} FROM answers").fetchall()
        (time,) = connection.execute("SELECT time FROM answers LIMIT 1").fetchone()
    assert rows[0] == (
        "csf",
        "gpt",
        '{"frequency":4.0,"contrast":0.1}',
        "Do you see a pattern?",
        "Yes. \u00dc",
        None,
        "cpu",
    )
    assert rows[1] == ("", digest("o")[:32], "{}", None, "[[0.5,0.25]]", None, "")
    assert rows[2][4:6] == (None, "too dark")
    assert abs(datetime.fromisoformat(time) - datetime.now(UTC)) < timedelta(minutes=1)
