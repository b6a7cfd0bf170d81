"""People in a registry: under codes, with consent, and nothing that tells who they are or when."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from decided_pages import smallest

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.files.output import json_text
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.reporting.publishing.check import check_registry
from psyprobe.reporting.publishing.people import Codes
from psyprobe.reporting.publishing.publish import Terms, publish
from psyprobe.running.registry_run import run_folders, unpack
from psyprobe.running.store import Store

pytest.importorskip(
    "psyprobe.observers.people.observer", reason="people are no part of the core"
)

#: Facts that a page or a laboratory has of a person, and no file of a registry may.
PLANTED = ("ANNA-LEE", "visit-0042", "Firefox 140", "2026-11-28T10:11:12", "2560x1440")
CONSENT = "I agree that my answers are published as open data."


def take_part(store: Path, light: str = "guess", text: str = "") -> Any:
    """One session of a person, whose page tells more than anybody needs."""
    from psyprobe.observers.people.observer import PersonObserver

    def press(inquiry: Inquiry) -> Answer:
        response = text or inquiry.words[int(inquiry.key[:8], 16) % 2]
        trial = {
            "session": PLANTED[1],
            "number": 1,
            "reaction_ms": 512.0,
            "key": "ArrowLeft",
            "time": PLANTED[3],
            "beginning": {"consent": True, "browser": PLANTED[2], "screen": PLANTED[4]},
        }
        return Answer(response, model="a person", session=trial)

    page = smallest("orientation_csf")
    display = Display(peak=200, black=0.2)
    screen = Screen(0.265, 1000.0, display, light=light, size=(1920, 1080))
    return pp.run(
        page,
        PersonObserver(PLANTED[0], PLANTED[1], screen, press),
        store=store,
        progress=False,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "runs.sqlite"
    take_part(path)
    return path


def open_registry(folder: Path) -> Path:
    """A registry that takes people."""
    folder.mkdir()
    text = 'schema = "psyprobe-registry/1"\nlicence = "CC0-1.0"\ntakes = ["person"]\n'
    (folder / "registry.toml").write_text(text, encoding="utf-8")
    return folder


def test_nothing_in_any_file_tells_who_or_when(store: Path, tmp_path: Path) -> None:
    registry = open_registry(tmp_path / "registry")
    codes = tmp_path / "codes.json"
    words = ["publish", str(store), "-o", str(registry), "--contributor", "E"]
    words += ["--consent", CONSENT, "--codes", str(codes), "--yes"]
    assert main(words) == 0
    (run,) = run_folders(registry)
    texts = [
        (unpack if path.suffix == ".gz" else bytes)(path.read_bytes()).decode()
        for path in run.iterdir()
    ]
    everything = "\n".join([*texts, *(str(path) for path in registry.rglob("*"))])
    for planted in (*PLANTED, "ArrowLeft", "beginning"):
        assert planted not in everything
    # Dates have the month alone.
    with Store(store) as opened:
        (record,) = opened.runs()
    assert set(re.findall(r"\d{4}-\d\d-\d\d", texts[0] + texts[1])) <= {
        f"{record.started[:7]}-01"
    }
    assert record.started[11:] not in everything
    code_table = json.loads(codes.read_text(encoding="utf-8"))
    assert set(code_table) == set(PLANTED[:2])
    assert os.name == "nt" or codes.stat().st_mode & 0o777 == 0o600
    (checked,) = check_registry(registry)
    assert checked.problems == () and "not derived again" in checked.notes[0]
    # The same numbers under the code, and the same path when it is published again.
    name = f"person:{code_table[PLANTED[0]]}"
    (stored,), (published,) = (pp.load_results(place) for place in (store, registry))
    scores = json_text(pp.score(stored).to_dict())
    assert json_text(pp.score(published).to_dict()) == scores.replace(
        f"person:{PLANTED[0]}", name
    )
    assert main(words) == 0 and run_folders(registry) == [run]


@pytest.mark.parametrize(
    ("change", "takes", "reason"),
    [
        ({"consent": ""}, "person", "consent"),
        ({}, "model", "takes no people"),
        ({"few_people": False}, "person", "1 people .* --yes"),
    ],
)
def test_people_are_left_out(
    change: dict[str, Any], takes: str, reason: str, store: Path, tmp_path: Path
) -> None:
    registry = open_registry(tmp_path / "registry")
    page = registry / "registry.toml"
    page.write_text(page.read_text().replace("person", takes), encoding="utf-8")
    terms = Terms("E", consent=CONSENT, codes=str(tmp_path / "c"), few_people=True)
    (outcome,) = publish(store, registry, replace(terms, **change))
    assert re.search(reason, outcome.reason) and not run_folders(registry)


def test_a_person_elsewhere_is_another_kind(tmp_path: Path) -> None:
    registry = open_registry(tmp_path / "registry")
    take_part(tmp_path / "runs.sqlite", "remote")
    terms = Terms("E", consent=CONSENT, few_people=True)
    (outcome,) = publish(tmp_path / "runs.sqlite", registry, terms)
    run = json.loads((registry / outcome.path / "run.json").read_text("utf-8"))
    assert run["observer"]["kind"] == "person_remote"
    assert run["consent"] == {"open_data": True, "statement": CONSENT}
    # An entry that somebody put in is refused: the day of a session.
    folder = registry / outcome.path
    run["when"]["started"] = run["when"]["finished"] = "2026-11-28T10:11:12+00:00"
    (folder / "run.json").write_text(json_text(run), encoding="utf-8")
    renamed = folder.with_name(f"20261128T101112Z-{folder.name[-8:]}")
    folder.rename(renamed)
    text = (renamed / "run.json").read_text("utf-8").replace(folder.name, renamed.name)
    (renamed / "run.json").write_text(text, encoding="utf-8")
    (checked,) = check_registry(registry)
    assert checked.problems[0][0] == "person" and "day" in checked.problems[0][1]


def test_words_of_their_own_stay_where_they_are(tmp_path: Path) -> None:
    registry = open_registry(tmp_path / "registry")
    take_part(tmp_path / "runs.sqlite", text="vertical, says Anna")
    terms = Terms("E", consent=CONSENT, few_people=True)
    (outcome,) = publish(tmp_path / "runs.sqlite", registry, terms)
    assert "words of their own" in outcome.reason


def test_codes_of_another_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "codes.json"
    for text in ("[]", '{"ANNA": "ANNA"}', "ANNA"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="codes of people"):
            Codes(path)
