"""`psyprobe score` prints again what it printed, and never what another store, page, line or code
would give."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.cli import again, main
from psyprobe.files import cache


class Scoring:
    """Counts how often the command is loaded, which it is to score, and what it does besides."""

    def __init__(self) -> None:
        self.times = 0
        self.meanwhile: Callable[[], Any] = int

    def load(self, place: str) -> Callable[[Namespace], int]:
        from psyprobe.cli.results import score_command

        assert place == "psyprobe.cli.results:score_command"
        self.times += 1

        def command(arguments: Namespace) -> int:
            code = score_command(arguments)
            self.meanwhile()
            return code

        return command


@pytest.fixture
def scoring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scoring:
    scoring = Scoring()
    monkeypatch.setattr(again, "load_function", scoring.load)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return scoring


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answered")
    pp.run(write_experiment(folder), "pixels", store=folder / "runs.sqlite")
    return folder


@pytest.fixture
def store(answered: Path, tmp_path: Path) -> Path:
    for path in answered.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path / "runs.sqlite"


def score(store: Path, *words: str) -> int:
    cache._IN_MEMORY.clear()  # as another process
    return main(["score", str(store), *words])


def run_again(store: Path, *changes: tuple[str, str]) -> None:
    page = write_experiment(store.parent, *changes)
    pp.run(page, "pixels", store=store, progress=False)


def edit(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement)


def ask_again(store: Path) -> None:
    """As when a night is run anew: all answers go, and others take their place."""
    edit(store, "DELETE FROM answer")
    run_again(store)


def merge(store: Path) -> None:
    other = store.with_name("other.sqlite")
    page = write_experiment(store.parent, ("0.5, to = 2", "0.6, to = 2"), name="other")
    pp.run(page, "pixels", store=other, progress=False)
    merged = store.with_name("merged.sqlite")
    assert main(["store", "merge", str(store), str(other), "-o", str(merged)]) == 0
    merged.replace(store)


def test_what_was_printed_is_printed_again(
    scoring: Scoring, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ((), ("--json",)):
        first = score(store, *words), capsys.readouterr()
        assert first[1].out
        assert (score(store, *words), capsys.readouterr()) == first
    assert scoring.times == 2


@pytest.mark.parametrize(
    "change",
    [
        ask_again,
        merge,
        lambda store: edit(store, "DELETE FROM answer WHERE id = 3"),
        lambda store: edit(store, "UPDATE answer SET answer = '{}' WHERE id = 3"),
        lambda store: edit(store, "UPDATE run SET finished = NULL"),
        lambda store: run_again(store, ("0.5, to = 2", "0.6, to = 2")),
        lambda store: run_again(store, ("castle_csf", "stela_csf")),
    ],
    ids=["asked", "merged", "deleted", "edited", "unfinished", "score", "human"],
)
def test_a_store_that_changed_is_scored(
    scoring: Scoring, store: Path, change: Callable[[Path], None]
) -> None:
    score(store)
    change(store)
    score(store)
    assert scoring.times == 2


@pytest.mark.parametrize(
    "words", ["--measure l2", "--format csv", "--json", "--scoreboard", "--debug"]
)
def test_other_words_are_scored(scoring: Scoring, store: Path, words: str) -> None:
    score(store)
    score(store, *words.split())
    assert scoring.times == 2


@pytest.mark.parametrize("module", [cache, again])
def test_other_code_or_catalogue_is_scored(
    scoring: Scoring, store: Path, monkeypatch: pytest.MonkeyPatch, module: Any
) -> None:
    score(store)
    monkeypatch.setattr(module, "code_digest", lambda folder: "other")
    score(store)
    assert scoring.times == 2


def test_other_versions_are_scored(
    scoring: Scoring, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score(store)
    monkeypatch.setattr(again, "version", lambda name: "9")
    score(store)
    assert scoring.times == 2


def test_the_digest_of_code_holds_tables_too(tmp_path: Path) -> None:
    cache.code_digest.cache_clear()
    (tmp_path / "people.csv").write_text("1", encoding="utf-8")
    before = cache.code_digest(tmp_path)
    cache.code_digest.cache_clear()
    (tmp_path / "people.csv").write_text("2", encoding="utf-8")
    assert cache.code_digest(tmp_path) != before


def test_what_changes_while_it_is_scored_is_not_kept(
    scoring: Scoring, store: Path
) -> None:
    before = store.read_bytes()
    scoring.meanwhile = lambda: edit(store, "UPDATE run SET started = '2020'")
    score(store)
    store.write_bytes(before)
    scoring.meanwhile = int
    score(store)
    assert scoring.times == 2


def test_nothing_is_kept_where_more_than_stores_may_count(
    scoring: Scoring, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(**arguments: Any) -> str | None:
        return again.digest_input(Namespace(results=[str(store)], **arguments))

    assert digest() is not None
    assert digest(judge="simulated:watson-malo") is None
    journal = Path(f"{store}-journal")
    journal.touch()
    assert digest() is None
    journal.unlink()
    with monkeypatch.context() as context:
        context.setattr(again, "_has_plugins", lambda: True)
        assert digest() is None
    for text in ("file = ''", "parameters = {'font'=''}", "model = 'mine.py:csf'"):
        edit(store, f'UPDATE run SET experiment_toml = "{text}"')
        assert digest() is None
    assert again.digest_input(Namespace(results=[str(store.parent)])) is None
    assert again.digest_input(Namespace(results=["result.nc"])) is None


def test_an_error_is_told_each_time(
    scoring: Scoring, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for times in (1, 2):
        assert score(store, "--measure", "l3") == 2
        assert "l3" in capsys.readouterr().err
        assert scoring.times == times


def test_scoring_opens_nothing_but_what_is_in_the_digest(
    scoring: Scoring, store: Path, tmp_path: Path
) -> None:
    """What Python tells of opened files: stores, the packages, and what is kept."""
    opened: set[str] = set()
    hearing = True

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if hearing and event in ("open", "sqlite3.connect"):
            opened.add(str(arguments[0]))

    sys.addaudithook(hear)
    score(store)
    hearing = False
    root = Path(pp.__file__).parents[1]
    inside = (str(root), str(tmp_path / "cache"), sys.prefix, sys.base_prefix)
    others = {path for path in opened if not path.startswith(inside)}
    assert {path for path in others if Path(path).is_absolute()} == {str(store)}
