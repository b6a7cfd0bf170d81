"""Rows of an export as columns, and JSON that only the slower parser reads."""

import json
from typing import Any

from psyprobe.probes.export import _arrange
from psyprobe.running.protocol import Answered, Question
from psyprobe.running.store import Store


def flatten(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten one row by itself."""
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells |= flatten(value, f"{prefix}{key}.")
        else:
            cells[prefix + key] = (
                json.dumps(value, separators=(",", ":"))
                if isinstance(value, list)
                else value
            )
    return cells


def test_uneven_rows_become_the_columns_that_they_have_one_by_one() -> None:
    rows: list[dict[str, Any]] = [
        {"a": {"x": 1, "y": [1.5]}, "b": {"c": {}}, "z": None},
        {"a": {"x": {"deep": True}}, "b": {"c": {"d": "text"}}, "z": 2},
        {"a": {"w": 0}, "b": {"c": {}, "e": []}, "z": 3, "more": "end"},
        {"a": {"x": 4, "y": None}, "b": {"c": {}}, "z": 4},
    ]
    for part in (rows, rows[:1] * 2, rows[1:2], rows[::-1]):
        flat = [flatten(row) for row in part]
        names = dict.fromkeys(name for row in flat for name in row)
        expected = {name: [row.get(name) for row in flat] for name in names}
        columns = _arrange(part)
        assert columns == expected
        assert list(columns) == list(expected)


def test_lists_are_json_whatever_is_in_them() -> None:
    deep: list[Any] = [1]
    for _ in range(300):
        deep = [deep]
    lists = [[[0.1 + 0.2, 1e-300, 2**90]], ["é", 'a "quote"', None], ["\ud83d"], deep]
    texts = _arrange([{"cell": values} for values in lists])["cell"]
    assert [json.loads(text) for text in texts] == lists
    assert texts[0] == "[[0.30000000000000004,1e-300,1237940039285380274899124224]]"


def test_what_the_fast_parser_refuses_or_could_round_is_read_as_written() -> None:
    answer = {"text": "half \ud83d", "seed": 2**90, "value": 0.1 + 0.2, "deep": 7}
    nested: Any = 1
    for _ in range(300):
        nested = [nested]
    question = Question("5e", "a5ced0", "ca2d", "1")
    with Store(None) as store:
        store.add([Answered(question, {**answer, "deep": nested})])
        read = store.answers([question.key])[question.key]
    assert read == {**answer, "deep": nested}
