"""What is wrong with a page, in one line that names the key, its value and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from psyprobe.errors import InputError, PsyprobeError, unknown_name

#: What is wanted, by the kind of error that pydantic tells.
_WANTED = {
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
    """Turn what a schema finds wrong into our one line; of several slips the first."""
    try:
        yield
    except ValidationError as error:
        # An unknown key is the likeliest cause of one that is missing.
        found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        raise _slip(page, found[0]) from None


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Put the name of the file in front of what is wrong with it, where it is not there yet."""
    try:
        yield
    except PsyprobeError as error:
        if str(error).startswith(name):
            raise
        raise type(error)(f"{name}: {error}") from error


def _slip(page: type[BaseModel], error: ErrorDetails) -> PsyprobeError:
    *tables, key = (str(part) for part in error["loc"])
    where, place = ".".join(tables), ".".join([*tables, key])
    owner = _table(page, tables)
    kind, value = error["type"], error["input"]
    original = error.get("ctx", {}).get("error")
    if isinstance(original, PsyprobeError):
        return original
    if kind == "extra_forbidden":
        return unknown_name(f"key in [{where}]" if where else "key", key, owner.model_fields)
    if kind == "missing":
        return InputError(f"[{where}] has no {key!r}; give it" if where else f"there is no {key!r}; give it")
    field = owner.model_fields.get(key)
    return InputError(f"{place} is {value!r}; give {_wanted(kind, field, error.get('ctx', {}))}")


def _table(page: type[BaseModel], tables: list[str]) -> type[BaseModel]:
    for name in tables:
        field = page.model_fields.get(name)
        inner = None if field is None else next((each for each in _parts(field.annotation) if _is_table(each)), None)
        if inner is not None:
            page = inner
    return page


def _parts(annotation: Any) -> tuple[Any, ...]:
    return (annotation, *get_args(annotation))


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _wanted(kind: str, field: FieldInfo | None, context: dict[str, Any]) -> str:
    if kind == "literal_error":
        choices = [repr(each) for part in _parts(field.annotation if field else None) for each in get_args(part) or ()]
        return " or ".join(choices or [str(context["expected"])])
    limits = {name: value for each in (field.metadata if field else ()) for name, value in _limits(each)}
    unit = f" ({field.description})" if field is not None and field.description else ""
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal") or (
        limits.keys() >= {"ge", "le"} and kind in ("int_type", "float_type", "int_from_float", "finite_number")
    ):
        number = "whole number" if field is not None and int in _parts(field.annotation) else "number"
        if limits.keys() >= {"ge", "le"}:
            return f"a {number} from {limits['ge']:g} to {limits['le']:g}{unit}"
        return f"a finite {number} above 0{unit}"
    return _WANTED.get(kind, "{unit}").format(unit=unit) or "another value"


def _limits(constraint: Any) -> Iterator[tuple[str, float]]:
    for name in ("ge", "le", "gt"):
        if getattr(constraint, name, None) is not None:
            yield name, getattr(constraint, name)
