"""Runs of a registry that were made to cost time or memory: a line each, soon, and little read."""

from __future__ import annotations

import json
import random
import shutil
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from psyprobe.files.output import json_text
from psyprobe.observers.protocol import card_digest
from psyprobe.reporting.publishing.check import check_registry
from psyprobe.running.registry_run import pack, run_folders

VALID = Path(__file__).resolve().parents[1] / "data" / "registry" / "valid_encoder"
LONG = 200_000


def edit_run(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what run.json holds."""
    path = run / "run.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    change(table)
    path.write_text(json_text(table), encoding="utf-8")


def replace_page(run: Path, text: str) -> None:
    """Put another page in its place."""
    (run / "page.toml").write_text(text, encoding="utf-8")
    digest = sha256(text.encode()).hexdigest()
    edit_run(run, lambda table: table["page"].update(sha256=digest))


def replace_answers(run: Path, unpacked: bytes) -> None:
    """Put other answers in their place, with their digest and size."""
    (run / "answers.jsonl.gz").write_bytes(pack(unpacked))
    numbers = {"sha256": sha256(unpacked).hexdigest(), "bytes": len(unpacked)}
    edit_run(run, lambda table: table["answers"].update(numbers))


def add_long_word(run: Path) -> None:
    """A word in which each letter may begin a mail address."""

    def change(table: dict[str, Any]) -> None:
        observer = table["observer"]
        observer["card"]["options"] = {"note": "a" * LONG}
        observer["digest"] = card_digest(observer["card"])

    edit_run(run, change)


def write_long_line(run: Path) -> None:
    """A line that packs too badly to be a bomb."""
    text = random.Random(1).randbytes(2**21).hex()
    replace_answers(run, f'{{"k":"record","v":"{text}"}}'.encode())


def write_many_lines(run: Path) -> None:
    """Many lines of a few bytes."""
    digits = random.Random(1).choices("123456789", k=LONG // 10)
    replace_answers(run, "".join(f'{{"k":"{digit}"}}\n' for digit in digits).encode())


def nest_page(run: Path) -> None:
    """A page of nested lists."""
    replace_page(run, "x = " + "[" * LONG + "]" * 9)


def add_backslashes(run: Path) -> None:
    """A text in which each character may end the name of a folder."""
    text = (run / "page.toml").read_text(encoding="utf-8")
    replace_page(run, "\n".join((f"note = '{LONG // 2 * chr(92)} a'", text)))


def take_ability(run: Path) -> None:
    """A card that does not say what it can do."""
    edit_run(run, lambda table: table["observer"]["card"].pop("ability"))


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (add_long_word, {"path"}),
        (write_long_line, {"size"}),
        (write_many_lines, {"json"}),
        (nest_page, {"page-digest"}),
        (add_backslashes, {"experiment-digest", "record"}),
        (take_ability, {"record"}),
        (
            lambda run: (run / "answers.jsonl.gz").write_bytes(pack(bytes(10**7))),
            {"size"},
        ),
    ],
)
def test_what_would_cost_time_or_memory_is_refused_soon(
    make: Callable[[Path], Any], codes: set[str], tmp_path: Path
) -> None:
    registry = shutil.copytree(VALID, tmp_path / "registry")
    (run,) = (
        run for run in run_folders(registry) if run.parts[-4].startswith("packaged")
    )
    make(run)
    tracemalloc.start()
    try:
        (checked,) = check_registry(registry, [run])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    ((code, words),) = checked.problems
    print(code, words, f"{checked.seconds:.2f} s, {peak / 2**20:.0f} MB")
    assert code in codes and "\n" not in words and len(words) < 300
    assert checked.seconds < 2 and peak < 300 * 2**20
