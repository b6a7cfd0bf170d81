"""The recipe of every night: two nights, an observer that fails, and one that became another model."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from children import child
from local_server import listed, local

from psyprobe.cli import main
from psyprobe.running.registry_run import run_folders

RECIPE = Path(__file__).resolve().parents[2] / "docs" / "nightly.sh"
PAGE = """
title = "A small experiment in words"
source = "psyprobe's own tests"
probe = "yes_no"
differences = ["it is small"]
[stimulus]
kind = "gabor"
parameters = { frequency = 2, contrast = 0.1, luminance = 40, ppd = 16, size = 32, radius = 0.4 }
[human]
model = "watson_malo_csf"
[levels]
frequency = { values = [1, 2, 4] }
contrast = { values = [0.01, 0.03, 0.1] }
[asking]
prompts = "base"
readout = "text"
repeats = { text = 2, p_yes = 1 }
seed = 3
[display]
peak = 185.3
"""
#: Stands for the command: hands its words to the test, which runs them in its own process.
COMMAND = """#!/bin/sh
printf '%s\\n' "$@" > "$CALLS/part"
mv "$CALLS/part" "$CALLS/words"
while [ ! -f "$CALLS/code" ]; do sleep 0.02; done
cat "$CALLS/out"
code=$(cat "$CALLS/code")
rm "$CALLS/code"
exit "$code"
"""


def git(*words: str) -> None:
    """Run git."""
    subprocess.run(["git", *words], check=True, capture_output=True, timeout=300)


def run_recipe(folder: Path, night: str) -> int:
    """Run the recipe as it is, each of its commands by this process."""
    calls = folder / "calls"
    calls.mkdir(exist_ok=True)
    command = calls / "psyprobe"
    command.write_text(COMMAND, encoding="utf-8")
    command.chmod(0o755)
    words = ["page.toml", "observers.toml", "registry", "site", "Example Laboratory"]
    environment = {"PATH": f"{calls}:/usr/local/bin:/usr/bin:/bin", "CALLS": str(calls)}
    options = {"cwd": folder, "env": environment}
    with child(["sh", RECIPE, *words, night], 300, **options) as recipe:
        while recipe.poll() is None:
            if not (calls / "words").exists():
                time.sleep(0.01)
                continue
            arguments = (calls / "words").read_text(encoding="utf-8").splitlines()
            (calls / "words").unlink()
            with redirect_stdout(StringIO()) as output:
                code = main(arguments)
            (calls / "out").write_text(output.getvalue(), encoding="utf-8")
            (calls / "code.part").write_text(str(code), encoding="utf-8")
            (calls / "code.part").rename(calls / "code")
        return int(recipe.returncode)


@contextmanager
def observers(folder: Path, **server: str) -> Iterator[None]:
    """A simulated observer, a served one, and one whose server is down."""
    with local("Yes", listed(server["model"]), **server) as served:
        rows = [
            '[[observers]]\nname = "simulated:watson-malo"',
            f'[[observers]]\nname = "openai:m3"\nbase_url = "{served.url}"\nretries = 0',
            '[[observers]]\nname = "openai:gone"\nbase_url = "http://127.0.0.1:9/v1"\n'
            "retries = 0",
        ]
        (folder / "observers.toml").write_text("\n".join(rows), encoding="utf-8")
        yield


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")
def test_two_nights_are_published_and_what_changed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Figures take half of the time, and the recipe publishes none.
    monkeypatch.setattr("psyprobe.cli.running.write_result", lambda *_: {})
    (tmp_path / "page.toml").write_text(PAGE, encoding="utf-8")
    registry = tmp_path / "registry"
    registry.mkdir()
    text = 'schema = "psyprobe-registry/1"\nlicence = "CC0-1.0"\n'
    (registry / "registry.toml").write_text(text, encoding="utf-8")
    git("-C", str(registry), "init", "-q")
    for name in ("user.name", "user.email"):
        git("-C", str(registry), "config", name, "a@example.org")
    git("-C", str(registry), "add", ".")
    git("-C", str(registry), "commit", "-qm", "one")
    for night, model in (("first", "m3-may"), ("second", "m3-june")):
        with observers(tmp_path, model=model):
            assert run_recipe(tmp_path, night) == 4
    lines = (tmp_path / "second.jsonl").read_text(encoding="utf-8")
    assert '"unreachable"' in lines and "openai:gone" in lines
    assert len(run_folders(registry)) == 6
    assert len(list((registry / "results").glob("openai-m3-*/*"))) == 2
    # The observer whose server is down has a run of each night, which says so.
    failed = (registry / "results").glob("openai-gone-*/*/*/*/*")
    for path in failed:
        failure = json.loads(path.read_text(encoding="utf-8"))["failure"]
        assert path.name == "run.json" and failure["kind"] == "unreachable"
    page = (tmp_path / "site" / "changes.html").read_text(encoding="utf-8")
    assert "What second changed" in page and "another revision" in page
    (row,) = (row for row in page.split("<tr>") if "openai:m3" in row)
    assert "another revision" in row
    # The simulated observer answered alike, and is not named.
    assert "simulated:watson-malo" not in page
