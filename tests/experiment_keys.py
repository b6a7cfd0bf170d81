"""The keys of an experiment's page as the schema has them; `python tests/experiment_keys.py` prints
their table."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from psyprobe.experiment.page import Page
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import _COMMON_KEYS

#: Those of other packages are not ours to document.
PROBES = {
    "detection": "detection",
    "discrimination": "discrimination",
    "acuity": "acuity",
    "matching": "matching",
    "yes_no": "words",
    "two_interval": "words",
    "orientation": "words",
    "mvp_bench": "benchmarks",
    "r_bench": "benchmarks",
    "corruption_profile": "corruption_profile",
}
#: Words in place of a type that says little.
TYPES = {
    "stimulus": "name, file or table",
    "items": "folder",
    "levels": "levels by name",
    "variants": "numbers by name",
    "human": "table",
    "decision": "table",
    "display": "table, or name of a preset",
    "options": "table",
    "asking.options": "table",
    "changed": "table",
    "judge.options": "table",
    "asking.prompts": "name, file or list",
    "asking.repeats": "whole number, or both",
    "asking.response_format": '`"words"` or table',
    "asking.extra_body": "table",
    "asking.examples": "list of tables",
    "asking.hold": "numbers by name",
    "difference.levels": "levels",
    "difference.against.levels": "levels",
    "score.anchor": '`"detection"` `"contrast"`, or a contrast',
    "score.multiplier": "levels",
    "fit.guess": "rate, or bounds",
    "fit.lapse": "rate, or bounds",
}
WORDS = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    tuple: "list of text",
}


def key_rows() -> list[tuple[str, str, str, str]]:
    """Key, type, default and probes that read it, in the words of docs/experiments.md."""
    return [
        row
        for name, field in Page.model_fields.items()
        for row in _rows(name, field, _readers(name))
    ]


def _rows(name: str, field: FieldInfo, readers: str) -> list[tuple[str, str, str, str]]:
    inner = next(
        (
            section
            for section in (field.annotation, *get_args(field.annotation))
            if _is_section(section)
        ),
        None,
    )
    if inner is None or name in TYPES:
        return [(f"`{name}`", _type(name, field.annotation), _default(field), readers)]
    rows: list[tuple[str, str, str, str]] = []
    for key, inner_field in inner.model_fields.items():
        rows += _rows(f"{name}.{key}", inner_field, readers)
    return rows


def _readers(name: str) -> str:
    if name in _COMMON_KEYS:
        return "all"
    groups = dict.fromkeys(
        group for probe, group in PROBES.items() if name in load_probe(probe).SECTIONS
    )
    return ", ".join(groups).replace(
        "detection, discrimination, acuity, matching", "pairs"
    )


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _type(name: str, annotation: Any) -> str:
    if name in TYPES:
        return TYPES[name]
    if get_origin(annotation) is Literal:
        return " ".join(
            f"`{choice!r}`".replace("'", '"') for choice in get_args(annotation)
        )
    parts = [
        alternative
        for alternative in get_args(annotation) or (annotation,)
        if alternative is not type(None)
    ]
    if get_origin(parts[0]) is Literal:
        return _type(name, parts[0])
    base = get_origin(annotation) or parts[0]
    if base not in WORDS:
        base = get_args(parts[0])[0] if get_args(parts[0]) else parts[0]
    return WORDS[base]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value in ("", (), {}):
        return "none"
    if isinstance(value, BaseModel):
        return ", ".join(f"{key} {item}" for key, item in value)
    if isinstance(value, tuple):
        return str(list(value))
    return (
        value
        if isinstance(value, str)
        else f"{value:g}"
        if isinstance(value, int | float)
        else "`Display()`"
    )


if __name__ == "__main__":
    for row in key_rows():
        print("|", " | ".join(row), "| |")
