"""A store that was damaged, or edited by hand, is one line or gives the right numbers, whatever was
done to it."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import xarray
from small_experiment import write_experiment
from small_questions import write_questions

from psyprobe import cli
from psyprobe.cli import main
from psyprobe.errors import PsyprobeError, StoreError
from psyprobe.files.output import digest
from psyprobe.probes.experiments import run
from psyprobe.running.database import COLUMNS, SCHEMA_VERSION, checksum
from psyprobe.running.maintenance import verify
from psyprobe.running.protocol import Attempt
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]

#: Cells of each table; by the first, rows are told apart.
TABLES = {table: (*columns, "checksum") for table, columns in COLUMNS.items()}
#: Values that are put into a cell, as SQL.
VALUES = (
    "NULL",
    "''",
    "'{'",
    "'[]'",
    "'null'",
    '\'{"values": "many"}\'',
    "'NaN'",
    "7",
    "1e400",
    "x'00ff'",
    "printf('%.*c', 60000, '[')",
    "CAST(x'ff' AS TEXT)",
    "substr({}, 1, 3)",
    "{} || '0'",
    "CAST({} AS BLOB)",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one finished run of the pixels."""
    folder = tmp_path_factory.mktemp("store")
    path = write_experiment(folder)
    run(path, "pixels", store=folder / "runs.sqlite")
    with Store(folder / "runs.sqlite") as opened:
        (record,) = opened.runs()
        times = ("2026-11-28T03:17:05+00:00", "2026-11-28T03:18:05+00:00")
        why = ("failed", "unreachable", "no server answers")
        opened.add_attempt(Attempt(record.key[:32], *times, *why, 12))
    with closing(sqlite3.connect(folder / "runs.sqlite")) as connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')"
        )
        connection.commit()
    return folder / "runs.sqlite"


def edits(path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Name of each edit, and what makes it; the file is a fresh copy each time."""
    draw = random.Random(12)

    def sql(*statements: str) -> Callable[[], object]:
        def edit() -> None:
            with closing(sqlite3.connect(path)) as connection:
                for statement in statements:
                    connection.execute(statement)
                connection.commit()

        return edit

    def cut(size: int) -> Callable[[], object]:
        return lambda: path.write_bytes(path.read_bytes()[:size])

    def flipped(at: int) -> Callable[[], object]:
        return lambda: path.write_bytes(
            bytes(b ^ 0x5A * (i == at) for i, b in enumerate(path.read_bytes()))
        )

    for table, columns in TABLES.items():
        for column in columns:
            for value in draw.sample(VALUES, 3):
                where = (
                    f"WHERE {columns[0]} = (SELECT {columns[0]} FROM {table} ORDER BY "
                    f"{columns[0]} DESC LIMIT 1)"
                )
                statement = f"UPDATE {table} SET {column} = {value.replace('{}', column)} {where}"
                yield statement, sql(statement)
        for statement in (
            f"DROP TABLE {table}",
            f"DELETE FROM {table}",
            f"ALTER TABLE {table} RENAME checksum TO mark",
        ):
            yield statement, sql(statement)
    swapped = (
        "UPDATE answer SET answer = (SELECT max(answer) FROM answer), "
        "checksum = (SELECT checksum FROM answer)"
    )
    yield swapped, sql(swapped)
    lines = "UPDATE run SET checksum = CAST(x'0a0d0aff' AS TEXT)"
    yield lines, sql(lines)
    yield "user_version", sql("PRAGMA user_version = 99")
    yield "application_id", sql("PRAGMA application_id = 99")
    size = path.stat().st_size
    for length in (0, 50, 100, 4096, *(draw.randrange(size) for _ in range(4))):
        yield f"cut to {length}", cut(length)
    for place in [draw.randrange(size) for _ in range(8)]:
        yield f"flipped at {place}", flipped(place)


def test_every_edit_is_one_line_or_changes_no_number(
    store: Path, tmp_path: Path, capsys: Output
) -> None:
    path, page = Path("edited.sqlite"), str(store.parent / "small.toml")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(tmp_path)
        # Parsers take as long to build as the commands here to run, and each would be built a
        # hundred times.
        parser = cache(lambda words: cli_parser(list(words)))
        cli_parser = cli._parser
        monkeypatch.setattr(cli, "_parser", lambda words: parser(tuple(words)))
        shutil.copy(store, path)
        capsys.readouterr()
        commands = (
            ["store", "verify", str(path)],
            ["store", "info", str(path)],
            ["score", str(path), "--json"],
        )
        expected = [(main(command), capsys.readouterr().out) for command in commands]
        responses = run(page, "pixels", store=path)
        assert [code for code, _ in expected] == [0, 0, 0]
        unseen, count = [], 0
        for name, edit in edits(path):
            shutil.copy(store, path)
            try:
                edit()
            except sqlite3.IntegrityError:
                continue
            if path.read_bytes() == store.read_bytes():
                continue
            count += 1
            for command, (_, right) in zip(commands, expected, strict=True):
                code = main(command)
                out, err = capsys.readouterr()
                if code:
                    assert (code, out) == (2, ""), (name, command)
                    assert err.count("\n") == 1 and len(err) < 400, (name, command, err)
                elif command[0] == "score":
                    assert out == right, (name, command)
                elif command[1] == "verify":
                    unseen.append(name)
            try:
                xarray.testing.assert_equal(run(page, "pixels", store=path), responses)
            except PsyprobeError as error:
                assert "\n" not in str(error) and len(str(error)) < 400, (name, error)
        assert count >= 90
    # What is gone with nothing left behind is asked again; a flipped byte may lie where nothing is
    # kept; a store without attempts has no table of them.
    allowed = ("DELETE", "flipped", "DROP TABLE attempt")
    assert [name for name in unseen if not name.startswith(allowed)] == []


def test_the_line_names_store_table_and_row(
    store: Path, tmp_path: Path, capsys: Output
) -> None:
    path = tmp_path / "edited.sqlite"
    shutil.copy(store, path)
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT question FROM answer ORDER BY question LIMIT 1"
        (key,) = connection.execute(query).fetchone()
        # The answer to another question, which could be one to this.
        other = "(SELECT answer FROM answer ORDER BY question DESC LIMIT 1)"
        connection.execute(
            f"UPDATE answer SET answer = {other} WHERE question = ?", (key,)
        )
        connection.commit()
    for command in (["score", str(path)], ["store", "verify", str(path)]):
        capsys.readouterr()
        assert main(command) == 2
        assert (
            f"store {path}: row {key[:16]} of table answer is damaged"
            in capsys.readouterr().err
        )


def test_info_tells_what_is_in_a_store(store: Path, capsys: Output) -> None:
    capsys.readouterr()
    assert main(["store", "info", str(store)]) == 0
    out = capsys.readouterr().out
    for phrase in (
        f"schema {SCHEMA_VERSION}",
        "1 run",
        "run small (detection) with pixels",
        "observer pixels",
        "numpy",
        "psyprobe",
    ):
        assert phrase in out


def test_one_question_has_one_answer(store: Path, tmp_path: Path) -> None:
    shutil.copy(store, tmp_path / "edited.sqlite")
    cells = ", ".join(TABLES["answer"])
    twice = f"INSERT INTO answer ({cells}) SELECT {cells} FROM answer LIMIT 1"
    connection = sqlite3.connect(tmp_path / "edited.sqlite")
    with closing(connection), pytest.raises(sqlite3.IntegrityError):
        connection.execute(twice)


def test_every_flipped_bit_of_an_answer_is_found(store: Path, tmp_path: Path) -> None:
    """In the file itself, bit after bit of the text of one answer."""
    path = tmp_path / "edited.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        (text,) = connection.execute(
            "SELECT answer FROM answer ORDER BY id LIMIT 1"
        ).fetchone()
    data = store.read_bytes()
    start = data.index(text.encode())
    unseen = []
    for bit in range(0, 8 * len(text), 5):
        flipped = bytearray(data)
        flipped[start + bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with Store(path, create=False) as edited:
            try:
                verify(edited)
                unseen.append(bit)
            except StoreError:
                continue
    assert unseen == []


#: A kind of stimulus in a file of one's own: its digest is of what the file says too.
OWN_KIND = """
from psyprobe.stimulus import Gabor

class Mine(Gabor):
    pass
"""


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with contents of all kinds: of an encoder, a chat model, and a kind in a file."""
    folder = tmp_path_factory.mktemp("contents")
    (folder / "kinds.py").write_text(OWN_KIND, encoding="utf-8")
    kind_change = ('kind = "gabor"', 'kind = "kinds.py:Mine"')
    pages = (
        (write_experiment(folder, stimulus=(kind_change,)), "pixels"),
        (write_questions(folder), "simulated:watson-malo"),
    )
    for page, observer in pages:
        run(page, observer, store=folder / "runs.sqlite", progress=False)
    with Store(folder / "runs.sqlite") as store:
        items = [{"name": "a.png", "question": "What is it?"}]
        store.add_contents([(digest(items), "items", items)])
        images = [64 * "5"]
        store.add_contents([(digest(images), "stimuli", images)])
        verify(store)
    return folder / "runs.sqlite"


def edit_number(value: Any) -> Any:
    """Change the first number or text that is found in a value, however deep."""
    if isinstance(value, dict):
        for name, entry in sorted(value.items()):
            if (edited := edit_number(entry)) != entry:
                return {**value, name: edited}
        return value
    if isinstance(value, list):
        return [edit_number(entry) for entry in value]
    return value if isinstance(value, bool) or value is None else value * 2


#: An edit of the contents of each kind, and where these have several forms, of which of them.
EDITS = {
    "stimulus": "json_extract(value, '$.kind') LIKE 'kinds.py:%'",
    "stimulus of a chat": "kind = 'stimuli' AND json_type(value) = 'object'",
    "images of an item": "kind = 'stimuli' AND json_type(value) = 'array'",
    "request": "kind = 'request'",
    "display": "kind = 'display'",
    "observer": "kind = 'observer'",
    "items": "kind = 'items'",
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_content_that_was_sealed_anew_is_found(
    contents: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "edited.sqlite"
    shutil.copy(contents, path)
    with closing(sqlite3.connect(path)) as connection:
        query = f"SELECT digest, kind, value FROM content WHERE {EDITS[name]}"
        row_name, kind, text = connection.execute(query).fetchone()
        edited = json.dumps(edit_number(json.loads(text)))
        assert edited != text
        connection.execute(
            "UPDATE content SET value = ?, checksum = ? WHERE digest = ?",
            (edited, checksum((row_name, kind, edited)), row_name),
        )
        connection.commit()
    with Store(path) as store, pytest.raises(StoreError, match=row_name[:16]):
        verify(store)


@pytest.mark.parametrize("cell", ["layout", "observer_card", "probe"])
def test_an_edited_run_that_was_sealed_anew_is_found(
    contents: Path, tmp_path: Path, cell: str
) -> None:
    path = tmp_path / "edited.sqlite"
    shutil.copy(contents, path)
    with Store(path) as store:
        row = store.database.rows("run")[0]
        cells = dict(zip(COLUMNS["run"], row, strict=True))
        if cell == "probe":
            cells["probe"] = "yes_no"
        else:
            cells[cell] = json.dumps(edit_number(json.loads(cells[cell])))
        with store.transaction():
            store.database.replace("run", tuple(cells.values()))
    with Store(path) as store, pytest.raises(StoreError, match=row[0][:16]):
        verify(store)


def test_a_content_without_sense_that_was_sealed_anew_is_found(
    contents: Path, tmp_path: Path
) -> None:
    path = tmp_path / "edited.sqlite"
    for kind in ("observer", "stimuli", "display", "stimulus"):
        for value in ("[]", "3", "null", '"x"', "{}", "NaN", '{"stimuli": 3}'):
            shutil.copy(contents, path)
            with Store(path) as store:
                row = next(row for row in store.all_contents() if row[1] == kind)[:2]
                with store.transaction():
                    store.database.replace("content", (*row, value))
                with pytest.raises(StoreError, match=row[0][:16]):
                    verify(store)
