"""The page about testing shows the message that is really printed, and its list of properties is
complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
MEASUREMENTS = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")


def test_the_failing_message_on_the_page_is_the_one_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, object] = {"__name__": "page"}
    function, failure, mended = re.findall(
        r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )[:3]
    exec(function, names)
    exec(failure, names)
    message = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    assert capsys.readouterr().out.startswith(message)
    exec(mended.replace("test_my_gabor()", ""), names)
    names["test_my_gabor"]()  # type: ignore[operator]


def test_the_test_on_the_page_has_fifteen_lines() -> None:
    function = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    assert len([line for line in function.splitlines() if line.strip()]) <= 16


def test_every_property_is_asserted_or_excused() -> None:
    _, _, properties = MEASUREMENTS.partition("| 1 | contrast delivered |")
    table, _, _ = f"| 1 | contrast delivered |{properties}".partition("\n\n")
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", table, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 53))
    written = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "tests" / "testing").glob("*.py")
    )
    defined = set(re.findall(r"^def (test_p\d\d_\w+)", written, re.MULTILINE))
    listed: set[str] = set()
    for number, where in rows:
        names = re.findall(r"`(test_\w+)`", where)
        assert names or "not asserted: " in where, (
            f"property {number} has neither a test nor a reason"
        )
        assert all(name.startswith(f"test_p{int(number):02d}_") for name in names)
        listed |= set(names)
    assert listed == defined
