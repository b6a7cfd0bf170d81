"""Every public name is told about: what it takes, what it raises, and at work in an example that
tests run."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import psyprobe as pp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import reference  # noqa: E402

from psyprobe.testing import strategies  # noqa: E402

NAMES = list(reference.public_names())
#: Rooms of the package that ``psyprobe`` names.
ROOMS = [name for name in pp.__all__ if inspect.ismodule(getattr(pp, name))]
TAKING = [name for name in NAMES if name.kind == "function"]
#: Parameters that are described once, where they belong, and named from elsewhere.
BY_REFERENCE = re.compile(
    r"\b([Aa]s|[Aa]s in|[Aa]s for|[Aa]s of|[Tt]hose of|of) `|[Cc]all(ed)? (as|and errors as in) "
    r"|fields of `"
)


def doc(name: reference.Name) -> str:
    return inspect.getdoc(name.value) or ""


def test_the_reference_has_every_public_name() -> None:
    listed = {(name.module, name.name) for name in NAMES}
    assert set(pp.__all__) - set(ROOMS) == {
        name.name for name in NAMES if name.module == "psyprobe"
    }
    values = [name.value for name in NAMES]
    for room in ROOMS:
        module = import_module(f"psyprobe.{room}")
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            is_public = (module.__name__, name) in listed or any(
                value is value_listed for value_listed in values
            )
            assert is_public or inspect.ismodule(value), f"psyprobe.{room}.{name}"
    assert len(NAMES) > 250


def test_all_that_pages_import_is_public() -> None:
    """What a page shows is what others will build on; the few that stay inside are named here."""
    inside = {
        "psyprobe.analysis.words.signal_detection",
        "psyprobe.observers.chat.protocol",
        "psyprobe.tasks.r_bench.build",
        "psyprobe.observers.simulated.serving",
        "psyprobe.probes.detection",
        "psyprobe.probes.pairs",
        "psyprobe.probes.words.schedule",
        "psyprobe.running.store",
        "psyprobe.tasks.r_bench.probe",
        "psyprobe.tasks.r_bench.corruption_profile",
        "psyprobe.tasks.r_bench.visibility",
        "psyprobe.stimulus.parameters",
        "psyprobe.reporting.citing",
        "psyprobe.tasks.items",
        "psyprobe.tasks.judged_replies",
    }
    modules = set()
    for page in (ROOT / "docs").glob("*.md"):
        for module in re.findall(
            r"^from (psyprobe[\w.]*) import",
            page.read_text(encoding="utf-8"),
            re.MULTILINE,
        ):
            modules.add(module)
    assert (
        modules
        - set(reference.MODULES)
        - inside
        - {f"psyprobe.{room}" for room in ROOMS}
        == set()
    )


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.full)
def test_a_name_is_told_about(name: reference.Name) -> None:
    if name.kind == "data":
        return
    assert doc(name).split("\n")[0].rstrip(".,;:"), "a summary"
    assert "undocumented" not in doc(name)
    if name.kind != "exception" and name.value is not strategies.Patterns:
        has_example = (
            ">>>" in doc(name) or reference.pages_with(name) or reference.used_by(name)
        )
        assert has_example, (
            "an example in its docstring or on a page, or a function with one that gives or "
            "takes it"
        )


@pytest.mark.parametrize("name", TAKING, ids=lambda name: name.full)
def test_what_a_function_takes_and_raises_is_described(name: reference.Name) -> None:
    text = doc(name)
    missing = [
        parameter
        for parameter in inspect.signature(name.value).parameters
        if not re.search(rf"\b{parameter}\b", text)
    ]
    assert missing == [] or BY_REFERENCE.search(text), missing
    if _raises(name.value):
        assert re.search(r"Raises\n---|Error\b|[Ee]rrors? as in", text), (
            "what it raises"
        )


def _raises(function: object) -> bool:
    """Say whether a function itself raises, if its source is there."""
    try:
        source = textwrap.dedent(inspect.getsource(function))  # type: ignore[arg-type]
    except OSError:
        return False
    return any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.kind == "class"], ids=lambda name: name.full
)
def test_fields_are_described(name: reference.Name) -> None:
    """By a comment above each, or in the docstring; names that say all alone are rare and few."""
    fields = [
        field
        for field in vars(name.value).get("__annotations__", {})
        if not field.startswith("_")
    ]
    if not fields or name.value.__module__.startswith("hypothesis"):
        return
    source = inspect.getsource(name.value)
    # A parameter of a stimulus has its unit and what it is called beside it.
    above = r"#:[^\n]*\n(\s*\w+:[^\n]*\n)*\s*"
    described = [
        field
        for field in fields
        if re.search(rf"{above}{field}:|{field}: .* = parameter\(", source)
        or field in doc(name)
    ]
    assert len(described) >= len(fields) / 2 or BY_REFERENCE.search(doc(name)), set(
        fields
    ) - set(described)
