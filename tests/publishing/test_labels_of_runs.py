"""Two nights of one observer stand side by side, in one store and in all that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from local_server import listed, local
from small_questions import Seeing, write_questions

import psyprobe as pp
from psyprobe.cli import _parser, main
from psyprobe.cli.running import _options_of, _pairs, result_stem
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.running.maintenance import verify
from psyprobe.running.protocol import Question
from psyprobe.running.registry_run import run_folders
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]


def run_night(page: Path, folder: Path, *options: str, **server: str) -> int:
    """Run a page with a served model, whose server says what the test wants of itself."""
    reply = server.pop("reply", "Yes")
    with local(reply, listed(server.pop("listed", "m3")), **server) as served:
        words = ["run", str(page), "--observer", "openai:m3", "--output", str(folder)]
        words += ["--observer-option", f"base_url={served.url}", "retries=1"]
        return main([*words, *options])


def test_two_nights_stand_side_by_side(tmp_path: Path, capsys: Output) -> None:
    page, folder = write_questions(tmp_path), tmp_path / "results"
    for night, reply in (("2026-11-20", "Yes"), ("2026-11-21", "No")):
        code = run_night(
            page, folder, "--label", night, reply=reply, fingerprint=f"fp_{night}"
        )
        assert code == 0
    store = folder / "runs.sqlite"
    first, second = pp.load_results(store)
    assert first.attrs["observer"] == "openai:m3, 2026-11-20"
    assert second.attrs["observer"] == "openai:m3, 2026-11-21"
    assert (first["response"].values != second["response"].values).all()
    assert first.attrs["label"] == "2026-11-20" and first.attrs["started"]
    assert {path.name for path in folder.glob("*.nc")} == {
        "words-openai-m3-2026-11-20.nc",
        "words-openai-m3-2026-11-21.nc",
    }
    capsys.readouterr()
    assert main(["score", str(store)]) == 0
    table = capsys.readouterr().out
    assert "openai:m3, 2026-11-20" in table and "openai:m3, 2026-11-21" in table
    assert main(["store", "info", str(store)]) == 0
    lines = capsys.readouterr().out.splitlines()
    (origin,) = (line for line in lines if "fp_2026-11-20" in line)
    assert "fp_2026-11-21" not in origin
    report = tmp_path / "report.html"
    assert main(["report", str(store), "-o", str(report)]) == 0
    text = report.read_text(encoding="utf-8")
    assert "openai:m3, 2026-11-20" in text and "fp_2026-11-21" in text


def test_a_label_changes_no_key_where_it_is_empty(tmp_path: Path) -> None:
    parts = ("5e" * 32, "a5" * 32, "0b" * 32, "yes_no 1")
    # A key of a store that was written before there were labels.
    assert Question(*parts).key == "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e0d2509420312a85b"
    assert Question(*parts, label="a").key not in {
        Question(*parts).key,
        Question(*parts, label="b").key,
    }
    with pytest.raises(InputError, match="letters, digits"):
        pp.run("area", "pixels", label="two words")


def test_another_model_on_another_night_is_no_contradiction(tmp_path: Path) -> None:
    page, folder = write_questions(tmp_path), tmp_path / "results"
    assert run_night(page, folder, "--label", "a", listed="old", model="old") == 0
    assert run_night(page, folder, "--label", "b", listed="new", model="new") == 0
    # The same night of another model is one.
    assert run_night(page, folder, "--label", "a", listed="new", model="new") == 2


def test_a_labelled_run_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    page, store = write_questions(tmp_path), tmp_path / "runs.sqlite"
    observer = Seeing()
    for label in ("", "a", "a", ""):
        pp.run(page, observer, store=store, label=label)
    with Store(store) as opened:
        assert verify(opened)["run"] == 2
        assert opened.database.count("answer") == 2 * len(
            {
                answer.question.stimulus + answer.question.request
                for answer, _ in opened.all_answers()
            }
        )


def test_merge_keeps_both_nights_of_stores_without_labels(
    tmp_path: Path, capsys: Output
) -> None:
    page = write_questions(tmp_path)
    stores = [tmp_path / f"{reply}.sqlite" for reply in ("Yes", "No")]
    for store in stores:
        code = run_night(
            page, tmp_path / "results", "--store", str(store), reply=store.stem
        )
        assert code == 0
    output = tmp_path / "nights.sqlite"
    words = ["store", "merge", *map(str, stores), "-o", str(output)]
    assert main(words) == 2
    assert "--keep both" in capsys.readouterr().err
    for _ in range(2):
        assert main([*words, "--keep", "both"]) == 0
        first, second = pp.load_results(output)
        assert (first["response"].values != second["response"].values).all()
        assert second.attrs["observer"].startswith("openai:m3, 20")
        with Store(output) as opened:
            verify(opened)


def test_files_are_named_alike_whichever_way_the_observer_was_given(
    tmp_path: Path,
) -> None:
    page = write_questions(tmp_path)
    listing = tmp_path / "observers.toml"
    listing.write_text(
        '[[observers]]\nname = "simulated:watson-malo"\nguess = 0.2\n', encoding="utf-8"
    )
    plain = "simulated:watson-malo"
    ways = [
        [f"{plain}?guess=0.2"],
        [str(listing)],
        [plain, "--observer-option", "guess=0.2"],
        [f"{plain}?guess=0.2", "pixels"],
    ]
    names = set()
    for observer_arguments in ways:
        words = ["run", str(page), "--observer", *observer_arguments]
        arguments = _parser(words).parse_args(words)
        experiment, _, load = next(_pairs(arguments, [load_experiment(page)]))
        observer = load()
        options = _options_of(observer, experiment)
        names.add(result_stem(arguments, experiment, observer.card, options))
    assert len(names) == 1 and "words-simulated-watson-malo-" in names.pop()


def test_published_nights_keep_their_labels(tmp_path: Path, capsys: Output) -> None:
    store, registry = tmp_path / "runs.sqlite", tmp_path / "registry"
    single = load_experiment("area").with_variants({})
    for label in ("a", "b"):
        pp.run(single, "pixels", store=store, score_only=True, label=label)
    assert main(["publish", str(store), "-o", str(registry), "--contributor", "E"]) == 0
    runs = [
        json.loads((folder / "run.json").read_text(encoding="utf-8"))
        for folder in run_folders(registry)
    ]
    assert sorted(run["label"] for run in runs) == ["a", "b"]
    names = [result.attrs["observer"] for result in pp.load_results(registry)]
    assert sorted(names) == ["pixels, a", "pixels, b"]


def test_a_program_is_told_what_happens(tmp_path: Path, capsys: Output) -> None:
    words = ["run", "area", "--observer", "pixels", "no-such:observer", "--jsonl"]
    words += ["--score-only", "--label", "a", "--output", str(tmp_path)]
    words += ["--variants", "none"]
    runs = []
    for _ in range(2):
        assert main(words) == 4
        runs.append([*map(json.loads, capsys.readouterr().out.splitlines())])
    first, second = runs
    assert [line["event"] for line in first] == ["start", "pair", "pair", "end"]
    start, run_event, failed, end = first
    assert start["pairs"] == 2 and start["label"] == "a"
    assert (
        run_event["status"] == "done" and run_event["main"][0]["metric"] == "alignment"
    )
    assert (
        run_event["revision"].startswith("n-")
        and run_event["asked"] > 0
        and run_event["from_store"] == 0
    )
    assert (second[1]["asked"], second[1]["from_store"]) == (0, run_event["asked"])
    assert failed["failure"]["kind"] == "not_found"
    assert (end["done"], end["failed"], end["exit"]) == (1, 1, 4)
