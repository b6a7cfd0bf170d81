"""Public signatures say their types: a table of every public name, in which no `Any` stands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import psyprobe as pp

ROOMS = [
    "psyprobe",
    *(f"psyprobe.{name}" for name in pp.__all__ if inspect.ismodule(getattr(pp, name))),
]


def public_signatures() -> Iterator[tuple[str, str]]:
    """Every public function, class and method by its full name, with its signature."""
    for room in ROOMS:
        module = import_module(room)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if not callable(value) or inspect.ismodule(value):
                continue
            # pydantic spells aliases out.
            signature = str(inspect.signature(value)).replace(
                "dict[str, typing.Any]", "JsonObject"
            )
            yield f"{room}.{name}", signature
            if inspect.isclass(value):
                for method, function in vars(value).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield (
                            f"{room}.{name}.{method}",
                            str(inspect.signature(function)),
                        )


def test_no_public_signature_says_any(tmp_path: Path) -> None:
    table = dict(public_signatures())
    text = "\n".join(f"{name}{signature}" for name, signature in sorted(table.items()))
    (tmp_path / "signatures.txt").write_text(text, encoding="utf-8")
    assert len(table) > 250 and {"psyprobe.run", "psyprobe.gabor"} <= set(table)
    vague = [
        name for name, signature in table.items() if re.search(r"\bAny\b", signature)
    ]
    assert vague == []
