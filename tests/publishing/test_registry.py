"""Registries: what is planted in them is found, and what is published is what was answered."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import load_experiment
from psyprobe.files.output import json_text
from psyprobe.probes.results import score_layers
from psyprobe.reporting.publishing import check as checking
from psyprobe.reporting.publishing import publish as publishing
from psyprobe.reporting.publishing.check import check_registry
from psyprobe.reporting.publishing.identity import revision, run_path
from psyprobe.reporting.publishing.publish import (
    Published,
    Terms,
    check_terms,
    publish,
)
from psyprobe.reporting.publishing.schema import run_schema, schema_errors
from psyprobe.running import registry_run
from psyprobe.running.protocol import RunRecord
from psyprobe.running.registry_run import (
    UnsoundError,
    pack,
    parse_json,
    refuse_many,
    run_folders,
    unpack,
)

REGISTRIES = Path(__file__).resolve().parents[1] / "data" / "registry"
CASES = list(
    csv.DictReader(
        (REGISTRIES / "expected.csv").read_text(encoding="utf-8").splitlines()
    )
)
TERMS = Terms("Example Laboratory")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_planted_fault_is_found(
    case: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    registry = REGISTRIES / case["case"]
    assert main(["registry", "check", str(registry)]) == int(case["exit"])
    *lines, _ = capsys.readouterr().out.splitlines()
    codes = [line.split(": ")[1] for line in lines]
    assert codes[:1] == [case["code"]] * bool(case["code"])


def test_faults_of_one_registry_are_named_and_the_others_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_two_nights", tmp_path / "registry")
    night, other_night = run_folders(registry)
    shutil.rmtree(other_night)
    codes: dict[str, list[str]] = {night.relative_to(registry).as_posix(): []}
    for case in CASES:
        if case["code"]:
            (run,) = run_folders(REGISTRIES / case["case"])
            place = run.parts[-4:]
            # What another run's place is gets one of its own.
            if registry.joinpath("results", *place).exists():
                place = (case["case"], *place[1:])
            shutil.copytree(run, registry.joinpath("results", *place))
            codes["/".join(("results", *place))] = [case["code"]]
    assert main(["registry", "check", str(registry), "--json"]) == 1
    *lines, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert {line["path"]: line["codes"][:1] for line in lines} == codes
    assert summary["unsound"] == len(codes) - 1


def test_paths_and_digests_are_those_of_the_answers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.sqlite"
    single = load_experiment("area").with_variants({})
    pp.run(single, "pixels", store=store, score_only=True)
    (first,) = publish(store, tmp_path / "registry", TERMS)
    copy = shutil.copy(store, tmp_path / "copy.sqlite")
    # Another version of zlib packs otherwise.
    monkeypatch.setattr(publishing, "pack", lambda text: gzip.compress(text, 1))
    (second,) = publish(copy, tmp_path / "other", TERMS)
    assert first.path == second.path
    texts = [
        tmp_path.joinpath(name, first.path, "run.json").read_text(encoding="utf-8")
        for name in ("registry", "other")
    ]
    assert texts[0] == texts[1]
    (present,) = publish(copy, tmp_path / "registry", TERMS)
    assert present.present


def test_what_is_published_scores_as_the_store(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    result = pp.run("area", "pixels", store=store, score_only=True)
    (first,) = publish(store, tmp_path / "registry", TERMS)
    (second,) = publish(store, tmp_path / "registry", TERMS)
    assert second.path == first.path and second.present and not first.present
    got = tmp_path / "got.sqlite"
    registry = str(tmp_path / "registry")
    run = str(tmp_path / "registry" / first.path)
    for _ in range(2):
        assert main(["registry", "get", registry, run, "-o", str(got)]) == 0
    for source in (registry, got):
        (published,) = pp.load_results(source)
        assert json_text(pp.score(published).to_dict()) == json_text(
            pp.score(result).to_dict()
        )


def test_every_kind_of_result_scores_as_its_store(
    published_kinds: tuple[Path, Path, list[Published]],
) -> None:
    store, registry, outcomes = published_kinds
    assert [outcome.reason for outcome in outcomes if outcome.reason] == []
    stored, published = (
        sorted(
            json_text(score.to_dict())
            for result in pp.load_results(source)
            for score in score_layers(result)
        )
        for source in (store, registry)
    )
    assert published == stored and len(stored) == 12
    # An adaptive design is gone through again; training is not.
    names = ("decided-coarse", "simulated-letters")
    folders = [run for run in run_folders(registry) if run.parts[-4].startswith(names)]
    decided, adaptive = check_registry(registry, folders)
    assert (adaptive.problems, adaptive.notes, decided.problems) == ((), (), ())
    assert "not derived again" in decided.notes[0]


def test_score_and_report_take_a_registry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = str(REGISTRIES / "valid_encoder")
    assert main(["score", registry]) == 0
    assert "packaged:efficientnet_lite0" in capsys.readouterr().out
    page = tmp_path / "report.html"
    assert main(["report", registry, "-o", str(page)]) == 0
    assert "efficientnet_lite0" in page.read_text(encoding="utf-8")


def test_what_a_registry_does_not_take_is_left_out(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    pp.run("area", "pixels", store=store, score_only=True)
    registry = tmp_path / "registry"
    registry.mkdir()
    (registry / "registry.toml").write_text(
        'schema = "psyprobe-registry/1"\nlicence = "CC0-1.0"\ntakes = ["model"]\n'
    )
    (outcome,) = publish(store, registry, TERMS)
    assert "takes model" in outcome.reason and not outcome.path
    assert [path.name for path in registry.iterdir()] == ["registry.toml"]


@pytest.mark.parametrize(
    ("name", "is_random", "reason"),
    [("person:ada", False, "consent"), ("timm:resnet18", True, "--also-random")],
)
def test_people_and_random_weights_are_refused(
    name: str, is_random: bool, reason: str
) -> None:
    card = {"name": name, "ability": "features", "random_weights": is_random}
    record = RunRecord("area", "", "", name, "", card, "detection", {}, {})
    with pytest.raises(InputError, match=reason):
        check_terms(record, {}, TERMS)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": 1e999}',
        b'"\\ud800"',
        b"[" * 10_000 + b"]" * 10_000,
        b"[" * 40 + b"]" * 40,
        b"\xff",
    ],
)
def test_json_that_is_not_strict_is_refused(text: bytes) -> None:
    with pytest.raises(UnsoundError) as refusal:
        parse_json(text, "run.json")
    assert refusal.value.code == "json"


def test_links_and_other_files_are_refused(tmp_path: Path) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "registry")
    first, second = run_folders(registry)
    (first / "page.toml").unlink()
    (first / "page.toml").symlink_to(second / "page.toml")
    (second / "evil.py").write_text("raise SystemExit")
    assert [run.problems[0][0] for run in check_registry(registry)] == ["path", "path"]


def test_twins_of_another_case_and_thousands_of_files_are_a_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "registry")
    first, second = run_folders(registry)
    for number in range(2000):
        (second / f"{number}.txt").touch()
    observer = first.parents[2]
    twin = observer.with_name(observer.name.upper())
    if twin.exists():
        pytest.skip("names of this disk have no case")
    shutil.copytree(observer, twin)
    assert main(["registry", "check", str(registry)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(": path: " in line for line in lines[:3])


@pytest.mark.parametrize("level", range(4))
def test_files_without_end_among_runs_are_one_line(
    level: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # benchmarks/many_files.py has 100,000.
    monkeypatch.setattr(registry_run, "_MOST_FOLDERS", 1000)
    registry = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "registry")
    place = run_folders(registry)[0].parents[level]
    for number in range(1001):
        (place / f"{number}.txt").touch()
    assert main(["registry", "check", str(registry)]) == 1
    line, summary = capsys.readouterr().out.splitlines()
    assert line.startswith("results: size: more than 1,000 files")
    assert summary == "1 runs, 1 not sound, 0 with notes"


def test_many_workers_find_what_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Processes take seconds to start; benchmarks/many_runs.py has them.
    def open_pool(jobs: int, mp_context: Any) -> ThreadPoolExecutor:
        assert mp_context.get_start_method() == "spawn"
        return ThreadPoolExecutor(jobs)

    monkeypatch.setattr(checking, "ProcessPoolExecutor", open_pool)
    registry = shutil.copytree(REGISTRIES / "licence_missing", tmp_path / "registry")
    (observer,) = (registry / "results").iterdir()
    for number in range(19):
        shutil.copytree(observer, observer.with_name(f"pixels{number}"))
    alone, by_two = (list(check_registry(registry, jobs=jobs)) for jobs in (1, 2))
    assert [run.path for run in alone] == [run.path for run in by_two]
    assert {run.problems[0][0] for run in by_two} == {"licence"}
    with pytest.raises(InputError, match="at least 1"):
        next(check_registry(registry, jobs=0))


def test_a_scoring_change_is_noted_and_scores_alone_are_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "registry")
    (run,) = registry.glob("results/pixels/*/*/*")
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    number = scores["main"][0]["value"]
    scores["main"][0]["value"] = 0.99
    scores["scored_by"]["psyprobe"] = "0.0.1"
    (run / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    check = ["registry", "check", str(registry), str(run)]
    assert main(check) == 3
    assert "note: main[0].value" in capsys.readouterr().out
    assert main([*check, "--rescore"]) == 3
    after = {path.name: path.read_bytes() for path in run.iterdir()}
    assert [name for name in after if after[name] != before[name]] == ["scores.json"]
    assert json.loads(after["scores.json"])["main"][0]["value"] == number
    # A line an entry, and no spaces.
    assert after["scores.json"].splitlines()[1].startswith(b'"board":[{"confidence":')
    assert main(check) == 0


def test_a_revision_is_of_weights_or_of_what_the_server_lists() -> None:
    def served(**fields: str) -> list[dict[str, Any]]:
        return [{"served": {"listed": "m3", "model": "m3", **fields}}]

    card = {"name": "openai:m3"}
    nights = [served(fingerprint="fp_1"), served(fingerprint="fp_2")]
    assert len({revision(card, "ca2d", origins) for origins in nights}) == 1
    nights.append(served(listed="m4"))
    assert len({revision(card, "ca2d", origins) for origins in nights}) == 2
    weights = [{"name": "torch:n", "weights_digest": digit * 64} for digit in "ab"]
    assert len({revision(table, "ca2d", []) for table in weights}) == 2


def test_a_run_too_large_for_a_registry_is_refused_before_it_is_read() -> None:
    def record(count: int) -> RunRecord:
        keys = [sha256(b"%d" % i).hexdigest() for i in range(count)]
        layout = {"pairs": [[key, keys[0]] for key in keys]}
        return RunRecord("page", "", "", "pixels", "", {}, "detection", layout, {})

    refuse_many([record(20_000)])
    # A whole run of them is larger still: their digests alone do not fit.
    with pytest.raises(UnsoundError, match="more than 87,381 questions") as refusal:
        refuse_many([record(87_400)])
    assert refusal.value.code == "size"
    with pytest.raises(UnsoundError, match=r"answers\.jsonl\.gz has .* give at most"):
        pack(np.random.default_rng(36).bytes(5 * 2**20))


def test_the_schema_names_the_place_of_each_fault() -> None:
    folder = run_folders(REGISTRIES / "valid_encoder")[0]
    run = parse_json((folder / "run.json").read_bytes(), "run.json")
    assert not list(schema_errors(run, run_schema()))
    assert run_path(run) == folder.parts[-4:]
    failed = {**run, "status": "failed", "extra": 1}
    places = [place for place, _ in schema_errors(failed, run_schema())]
    assert sorted(places) == ["extra", "failure"]
    assert unpack((folder / "answers.jsonl.gz").read_bytes()).endswith(b"\n")
