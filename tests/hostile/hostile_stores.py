"""Stores edited by SQL, cut and flipped, and results in NetCDF likewise."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from functools import cache, partial
from pathlib import Path

from hostile_cases import ANY, REFUSED, Case, mutation
from small_experiment import write_experiment

import psyprobe as pp

CHAT = """
title = "chat"
probe = "yes_no"
stimulus = { kind = "gabor", parameters = { frequency = 2, contrast = 0.1, luminance = 40, radius = 0.1, size = 32 } }
levels = { frequency.values = [2, 4], contrast.values = [0.01, 0.05, 0.2] }
asking = { prompts = ["Do you see a pattern?"], repeats = 1 }
display = { peak = 186.8805 }
"""


@cache
def store_and_page(kind: str) -> dict[str, bytes]:
    """Return the files of a store and the page that made it; for an encoder, its result too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "chat":
            (folder / "small.toml").write_text(CHAT, encoding="utf-8")
        else:
            write_experiment(folder)
        observer = "simulated:watson-malo" if kind == "chat" else "pixels"
        result = pp.run(
            folder / "small.toml",
            observer,
            store=folder / "runs.sqlite",
            progress=False,
        )
        if kind != "chat":
            result.to_netcdf(folder / "result.nc", engine="scipy")
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def edited(kind: str, statement: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "runs.sqlite"
        path.write_bytes(store_and_page(kind)["runs.sqlite"])
        with closing(sqlite3.connect(path, isolation_level=None)) as store:
            store.execute("PRAGMA foreign_keys = off")
            store.executescript(statement)
        return {**store_and_page(kind), "runs.sqlite": path.read_bytes()}


#: Texts that replace a cell of JSON.
TEXTS = {
    "empty": "''",
    "no JSON": "'{'",
    "null": "'null'",
    "a number": "'3'",
    "a text": "'\"x\"'",
    "an empty table": "'{}'",
    "a list": "'[]'",
    "deep": f"'{'[' * 5000}{']' * 5000}'",
    "a big number": f"'{'9' * 5000}'",
    "bytes": "x'ff00fe'",
}
CELLS = {
    "layout": "run",
    "outcome": "run",
    "answer.answer": "answer",
    "answer.levels": "answer",
    "content.value": "content",
}
STATEMENTS = {
    "no runs": "DELETE FROM run",
    "no answers": "DELETE FROM answer",
    "no contents": "DELETE FROM content",
    "no procedures": "DELETE FROM procedure",
    "half the answers": "DELETE FROM answer WHERE question < '8'",
    "no table of answers": "DROP TABLE answer",
    "no table of runs": "DROP TABLE run",
    "another column": "ALTER TABLE answer RENAME COLUMN answer TO text",
    "schema 1": "PRAGMA user_version = 1",
    "schema 99": "PRAGMA user_version = 99",
    "another program's": "PRAGMA application_id = 7",
    "answers of text": """UPDATE answer SET answer = '{"text": 3}'""",
    "answers of lists": """UPDATE answer SET answer = '{"angular": [1, 2], "text": ["a"]}'""",
    "answers of texts": """UPDATE answer SET answer = '{"angular": "a", "cosine": "b"}'""",
    "answers of NaN": """UPDATE answer SET answer = '{"angular": NaN, "text": NaN}'""",
    "a probe of nothing": "UPDATE run SET probe = 'nothing'",
    "a probe of a number": "UPDATE run SET probe = 3",
    "a column too much": "ALTER TABLE run ADD COLUMN surplus",
    "no layout": "UPDATE run SET layout = ''",
    "a layout of a list": "UPDATE run SET layout = '[]'",
    "an empty layout": "UPDATE run SET layout = '{}'",
    "no page": "UPDATE run SET experiment_toml = ''",
    "a page of a number": "UPDATE run SET experiment_toml = 3",
    "no card": "UPDATE run SET observer_card = '{}'",
    "a card of a list": "UPDATE run SET observer_card = '[]'",
    "a name that is a screen": "UPDATE run SET observer = char(27) || '[2J'",
}
#: Changes that leave enough to score.
FINE = {
    "a column too much",
    "no contents",
    "no procedures",
    "a name that is a screen",
    "a page of a number",
    "no card",
    "no page",
}


def _edits() -> dict[str, str]:
    cells = {
        f"{cell} is {name}": f"UPDATE {table} SET {cell.rpartition('.')[2]} = {text}"
        for cell, table in CELLS.items()
        for name, text in TEXTS.items()
    }
    return cells | STATEMENTS


def mutated(name: str, number: int) -> dict[str, bytes]:
    return {name: mutation(store_and_page("encoder")[name], number)}


def replaced(old: bytes, new: bytes) -> dict[str, bytes]:
    return {"result.nc": store_and_page("encoder")["result.nc"].replace(old, new)}


def _stores() -> list[Case]:
    score = ("score", "runs.sqlite")
    cases = []
    for kind in ("encoder", "chat"):
        for name, statement in _edits().items():
            may = name in FINE or name.startswith(("content.value", "outcome"))
            files = partial(edited, kind, statement)
            cases.append(
                Case(
                    f"{kind} store: {name}", score, files, codes=ANY if may else REFUSED
                )
            )
    return cases + [
        Case(
            f"store: mutation {number}",
            score,
            partial(mutated, "runs.sqlite", number),
            codes=ANY,
        )
        for number in range(20)
    ]


def _other_cases() -> list[Case]:
    texts = {
        "empty": b"",
        "text": b"no store",
        "a picture": b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
    }
    cases = [
        Case(f"store: {name}", ("score", "runs.sqlite"), {"runs.sqlite": data})
        for name, data in texts.items()
    ]
    doctor = ("doctor", "runs.sqlite")
    return cases + [
        Case(f"doctor: {name}", doctor, {"runs.sqlite": data}, codes=(0, 1))
        for name, data in texts.items()
    ]


def _results() -> list[Case]:
    score = ("score", "result.nc")
    odd = {
        "empty": b"",
        "text": b"no result",
        "huge": b"CDF\x01\x7f\xff\xff\xff" * 9,
        "hdf": b"\x89HDF\r\n\x1a\n",
    }
    cases = [
        Case(f"result: {name}", score, {"result.nc": data})
        for name, data in odd.items()
    ]
    cases += [
        Case(
            f"result: mutation {number}",
            score,
            partial(mutated, "result.nc", number),
            codes=ANY,
        )
        for number in range(30)
    ]
    changes = {
        "no probe": (b"probe", b"prabe"),
        "a probe of nothing": (b"detection", b"defection"),
        "no response": (b"response", b"rexponse"),
        "no human": (b"human", b"humbn"),
        "no card": (b"observer_card", b"observer_curd"),
        "a card of no JSON": (b'{"', b"{{"),
    }
    return cases + [
        Case(f"result: {name}", score, partial(replaced, *change), codes=ANY)
        for name, change in changes.items()
    ]


STORE_CASES = [*_stores(), *_other_cases(), *_results()]
