"""Check ``run.json`` by its JSON schema, as far as that goes, without a package for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from psyprobe.files.json_types import JsonMapping

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


@cache
def run_schema() -> JsonMapping:
    """Read the schema of ``run.json``."""
    text = (
        files("psyprobe.reporting.publishing")
        .joinpath("run.schema.json")
        .read_text("utf-8")
    )
    schema: JsonMapping = json.loads(text)
    return schema


def schema_errors(
    value: Any, schema: JsonMapping, place: str = ""
) -> Iterator[tuple[str, str]]:
    """Iterate over the violations of a schema in a value: the place and what is wrong there.

    Parameters
    ----------
    value : JSON value
        What is checked.
    schema : mapping
        The schema, of the words that `run_schema` uses.
    place : str
        Where the value stands.

    Examples
    --------
    >>> list(schema_errors({"a": 1}, {"required": ["b"]}))
    [('b', 'it is missing')]
    """
    if "$ref" in schema:
        schema = run_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    if not _has_type(value, schema.get("type")):
        yield place, f"it is no {schema['type']}"
        return
    if "const" in schema and value != schema["const"]:
        yield place, f"it is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield place, f"it is not one of {', '.join(map(str, schema['enum']))}"
    yield from _size_errors(value, schema, place)
    if isinstance(value, dict):
        yield from _object_errors(value, schema, place)
    if isinstance(value, list) and "items" in schema:
        for index, entry in enumerate(value):
            yield from schema_errors(entry, schema["items"], f"{place}[{index}]")
    for part in schema.get("allOf", ()):
        if "if" not in part:
            yield from schema_errors(value, part, place)
        elif not any(schema_errors(value, part["if"], place)):
            yield from schema_errors(value, part["then"], place)
    for word in ("oneOf", "anyOf"):
        choices = schema.get(word, ())
        if choices and all(any(schema_errors(value, part, place)) for part in choices):
            yield place, "it has none of the forms that are allowed"


def _has_type(value: Any, name: Any) -> bool:
    """Tell whether a value has a type of JSON, or one of several."""
    if name is None:
        return True
    names = [name] if isinstance(name, str) else name
    types = tuple(kind for entry in names for kind in _TYPES[entry])
    return isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _size_errors(
    value: Any, schema: JsonMapping, place: str
) -> Iterator[tuple[str, str]]:
    """Iterate over values that are too long, too large, or of another pattern."""
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1e9):
            yield place, f"its length is {len(value)}"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield (
                place,
                f"it is {value[:60]!r} and has not the form {schema['pattern']}",
            )
    if isinstance(value, list) and len(value) > schema.get("maxItems", 1e9):
        yield place, f"it has {len(value)} entries"
    if isinstance(value, int | float):
        lowest = schema.get("minimum", -float("inf"))
        if not lowest <= value <= schema.get("maximum", float("inf")):
            yield place, f"it is {value}"


def _object_errors(
    value: JsonMapping, schema: JsonMapping, place: str
) -> Iterator[tuple[str, str]]:
    """Iterate over keys of a table that are missing, unknown or wrong."""
    prefix = f"{place}." if place else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{prefix}{name}", "it is missing"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, entry in value.items():
        if name in properties:
            yield from schema_errors(entry, properties[name], f"{prefix}{name}")
        elif others is False:
            yield f"{prefix}{name[:60]}", "no such key is allowed"
        elif isinstance(others, dict):
            yield from schema_errors(entry, others, f"{prefix}{name[:60]}")
