"""What is wrong with a page, in one line that names file, key, value and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.files.json_types import JsonObject

#: What is allowed, by the kind of pydantic's error.
_ALLOWED = {
    "string_type": "text",
    "bool_type": "true or false",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "mapping_type": "a table",
    "float_type": "a number{unit}, without the unit",
    "finite_number": "a finite number{unit}",
    "int_type": "a whole number",
    "tuple_type": "a list",
    "list_type": "a list",
}


@contextmanager
def one_line(page: type[BaseModel]) -> Iterator[None]:
    """Turn a schema's validation errors within the block into one line, the first of them."""
    try:
        yield
    except ValidationError as error:
        # An unknown key is the likeliest cause of one that is missing.
        details = sorted(
            error.errors(), key=lambda detail: detail["type"] != "extra_forbidden"
        )
        raise _page_error(page, details[0]) from None


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Put a file's name in front of errors raised within the block that lack it."""
    try:
        yield
    except PsyprobeError as error:
        if str(error).startswith(name):
            raise
        raise type(error)(f"{name}: {error}") from error


def _page_error(page: type[BaseModel], detail: ErrorDetails) -> PsyprobeError:
    """Turn the first complaint of pydantic about a page into one clear error."""
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, PsyprobeError):
        return cause
    # Where a key takes several kinds, the kind that failed comes last.
    parts = map(str, detail["loc"])
    path = [part for part in parts if not re.fullmatch(r"(literal|dict)\[.*\]", part)]
    *tables, key = path
    table_name = ".".join(tables)
    table = _table(page, tables)
    kind = detail["type"]
    if kind == "extra_forbidden":
        where = f"key in [{table_name}]" if tables else "key"
        return unknown_name(where, key, table.model_fields)
    if kind == "missing":
        where = f"[{table_name}] has" if tables else "there is"
        return InputError(f"{where} no {key!r}; give it")
    allowed = _allowed(kind, table.model_fields.get(key), detail.get("ctx", {}))
    return InputError(f"{'.'.join(path)} is {detail['input']!r}; give {allowed}")


def _table(page: type[BaseModel], names: list[str]) -> type[BaseModel]:
    """Find the schema of a nested table of a TOML page."""
    for name in names:
        for alternative in _alternatives(page.model_fields.get(name)):
            if isinstance(alternative, type) and issubclass(alternative, BaseModel):
                page = alternative
                break
    return page


def _alternatives(field: FieldInfo | None) -> tuple[Any, ...]:
    """List the types that a key of the page may have."""
    return () if field is None else (field.annotation, *get_args(field.annotation))


def _allowed(kind: str, field: FieldInfo | None, context: JsonObject) -> str:
    """Describe in words what values a key allows."""
    alternatives = _alternatives(field)
    if kind == "literal_error":
        choices: list[str] = []
        for alternative in alternatives:
            if get_origin(alternative) is Literal:
                choices += map(repr, get_args(alternative))
        if any(get_origin(alternative) is dict for alternative in alternatives):
            choices.append("a table")
        return " or ".join(choices or [str(context["expected"])])
    limits = {}
    for constraint in field.metadata if field else ():
        for name in ("ge", "le"):
            if hasattr(constraint, name):
                limits[name] = getattr(constraint, name)
    bounded = limits.keys() >= {"ge", "le"}
    unit = f" ({field.description})" if field is not None and field.description else ""
    compared = kind.startswith(("greater_than", "less_than"))
    no_number = kind in ("int_type", "float_type", "int_from_float", "finite_number")
    if compared or (bounded and no_number):
        number = "whole number" if int in alternatives else "number"
        if bounded:
            return f"a {number} from {limits['ge']:g} to {limits['le']:g}{unit}"
        return f"a finite {number} above 0{unit}"
    return _ALLOWED.get(kind, "{unit}").format(unit=unit) or "another value"
