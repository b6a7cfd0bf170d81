"""The store gives back what it was given, once, whatever happens to its process or its file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from psyprobe.errors import StoreError
from psyprobe.store import APPLICATION_ID, SCHEMA_VERSION, Answers, Question, RunRecord, Store, digest

names = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3, unique=True).map(tuple)
finite = st.floats(allow_nan=False, allow_infinity=False)


def question(stimulus: str = "s", observer: str = "o") -> Question:
    return Question(stimulus, "reference", "display", observer, "1")


def answers(count: int = 2, value: float = 1.0, observer: str = "o") -> Answers:
    questions = tuple(question(str(i), observer) for i in range(count))
    return Answers(questions, ("layer",), ("angular",), np.full((count, 1, 1), value))


def record(**changes: object) -> RunRecord:
    values: dict[str, object] = {
        "experiment": "e",
        "experiment_digest": "1",
        "experiment_toml": "title = 'é'",
        "observer": "pixels",
        "observer_card": {"name": "pixels"},
        "observer_digest": "2",
        "baseline_digest": "3",
        "display_digest": "4",
        "layout": {"x": [0.1], "batch_size": 32, "batches": [{"references": ["r"], "pairs": [0]}]},
        "software": {"psyprobe": "0"},
    }
    return RunRecord(**(values | changes))  # type: ignore[arg-type]


@given(layers=names, measures=names, data=st.data())
@settings(max_examples=40)
def test_answers_come_back_bit_for_bit_in_any_order(
    layers: tuple[str, ...], measures: tuple[str, ...], data: st.DataObject
) -> None:
    values = data.draw(arrays(np.float64, (3, len(layers), len(measures)), elements=finite))
    questions = tuple(question(str(i)) for i in range(3))
    with Store(None) as store:
        store.add([Answers(questions, layers, measures, values)])
        order = data.draw(st.permutations(range(3)))
        found = store.read([questions[i].key for i in order], layers[::-1], measures)
    np.testing.assert_array_equal(found, values[list(order)][:, ::-1])


@given(
    st.recursive(st.none() | st.booleans() | finite | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c))
)
@settings(max_examples=40)
def test_contents_come_back(content: object) -> None:
    with Store(None) as store:
        store.keep("stimulus", {digest(content): content})
        assert store.content(digest(content)) == content


def test_digest_depends_on_content_only() -> None:
    assert digest({"a": 1, "b": [1.5]}) == digest({"b": [1.5], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest(float("nan"))


def test_first_answer_stays() -> None:
    with Store(None) as store:
        store.add([answers(value=1.0)])
        store.add([answers(count=3, value=2.0)])
        keys = [question(str(i)).key for i in range(3)]
        assert store.read(keys, ["layer"], ["angular"]).ravel().tolist() == [1.0, 1.0, 2.0]


def test_missing_names_what_is_not_answered() -> None:
    with Store(None) as store:
        store.add([answers(2)])
        assert store.missing([question("0").key, question("9").key]) == [question("9").key]
        with pytest.raises(StoreError, match="1 of 2 questions have no answer yet"):
            store.read([question("0").key, question("9").key], ["layer"], ["angular"])
        with pytest.raises(StoreError, match="no answer yet"):
            store.read([question("0").key], ["another layer"], ["angular"])
        with pytest.raises(StoreError, match="nothing is kept"):
            store.content("0")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(StoreError, match="NaN or infinite"):
        answers(value=value)


def test_shape_must_fit() -> None:
    with pytest.raises(StoreError, match="shape"):
        Answers((question(),), ("a", "b"), ("angular",), np.zeros((1, 1, 1)))


def test_a_batch_is_written_whole_or_not_at_all() -> None:
    with Store(None) as store:

        def fails_midway() -> object:
            yield answers(2)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.add(fails_midway())  # type: ignore[arg-type]
        assert store.missing([question("0").key])


def test_run_goes_on_with_the_recorded_batches(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.sqlite") as store:
        first = store.begin(record())
        assert first.started is not None and first.finished is None
        other = {**record().layout, "batch_size": 8, "batches": []}
        again = store.begin(record(layout=other, software={"psyprobe": "1"}))
        assert again == first == store.find(record().key)
        store.begin(record(layout={**other, "x": [0.2]}))
        store.finish(first.key)
    with Store(tmp_path / "runs.sqlite", create=False) as store:
        finished = [run.finished is not None for run in store.runs()]
        assert finished == [True, False]
        assert store.find("0") is None


def test_two_connections_share_a_store(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.sqlite") as one, Store(tmp_path / "runs.sqlite") as other:
        one.add([answers(2)])
        other.add([answers(4, value=3.0)])
        assert not one.missing([question("3").key])


def test_many_processes_make_one_store_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np; from psyprobe.store import *\n"
        "with Store(sys.argv[1]) as store:\n"
        "    for i in range(20):\n"
        "        q = Question(str(i), 'r', 'd', 'o', '1')\n"
        "        store.add([Answers((q,), ('layer',), ('angular',), np.full((1, 1, 1), i / 3))])\n"
    )
    path = tmp_path / "runs.sqlite"
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with Store(path, create=False) as store:
        keys = [Question(str(i), "r", "d", "o", "1").key for i in range(20)]
        assert store.read(keys, ["layer"], ["angular"]).ravel().tolist() == [i / 3 for i in range(20)]


def test_no_store_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, and long enough not to be taken for an empty one " * 20)
    with pytest.raises(StoreError, match="is not a store"):
        Store(tmp_path / "text")
    with pytest.raises(StoreError, match="is a folder"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="there is no folder"):
        Store(tmp_path / "no" / "runs.sqlite")
    with pytest.raises(StoreError, match="does not exist"):
        Store(tmp_path / "runs.sqlite", create=False)
    assert not (tmp_path / "runs.sqlite").exists()


def test_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        Store(tmp_path / "other.sqlite")


def test_newer_schema_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "runs.sqlite").close()
    connection = sqlite3.connect(tmp_path / "runs.sqlite")
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(StoreError, match="update psyprobe"):
        Store(tmp_path / "runs.sqlite")


def test_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        store.add([answers(400)])
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x99" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"runs\.sqlite is damaged"), Store(path) as store:
        store.read([question("0").key], ["layer"], ["angular"])


def test_unwritable_store_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    Store(path).close()
    with Store(path) as store:
        # Rights do not bind the superuser under whom tests may run; SQLite's own switch does.
        store._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(StoreError, match="cannot be written"):
            store.add([answers()])
