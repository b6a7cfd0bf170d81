"""Runs that were forged with care: every digest, score and record fits, and the answers do not."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.files.output import json_text
from psyprobe.probes.experiments import load_results
from psyprobe.reporting.publishing.check import (
    Findings,
    Repeats,
    check_files,
    check_run,
    differences,
)
from psyprobe.reporting.publishing.derive import RecordingStore, derive, page_alone
from psyprobe.reporting.publishing.identity import run_path, without_folders
from psyprobe.reporting.publishing.plausible import implausible
from psyprobe.reporting.publishing.scoring import score_records
from psyprobe.running.protocol import RunRecord
from psyprobe.running.registry_run import (
    ANSWERS_FILE,
    PAGE_FILE,
    RUN_FILE,
    SCORES_FILE,
    UnsoundError,
    answers_digest,
    load_run,
    pack,
    run_folders,
    unpack,
    write_answers,
)

REGISTRIES = Path(__file__).resolve().parents[1] / "data" / "registry"
Change = Callable[[dict[str, Any]], None]


def find_run(case: str, observer: str) -> Path:
    """The folder of a sound run of the examples."""
    return next(
        folder
        for folder in run_folders(REGISTRIES / case)
        if folder.parts[-4].startswith(observer)
    )


def forge(source: Path, registry: Path, change: Change) -> Path:
    """Copy a run with changed answers, everything else made to fit them."""
    run, files = check_files(source, {})
    text = files[PAGE_FILE].decode()
    honest = RecordingStore()
    (record,) = load_run(run, text, unpack(files[ANSWERS_FILE]), honest)
    forged = RecordingStore()
    forged.add_contents(honest.all_contents())
    answers = []
    for answered, milliseconds in honest.all_answers():
        value = json.loads(json.dumps(answered.answer))
        if answered.question.observer == record.observer_digest[:32]:
            change(value)
        answers.append((replace(answered, answer=value), milliseconds))
    forged.add_timed(answers)
    score_only = run["experiment"]["score_only"]
    with page_alone(text, record.experiment, {}) as page:
        (derived,) = derive(page, record, forged, score_only=score_only)
    derived_record = replace(record, outcome=derived.outcome)
    return write_run(
        run, files[PAGE_FILE], derived_record, forged, forged.read_keys, registry
    )


def write_run(
    run: dict[str, Any],
    page: bytes,
    record: RunRecord,
    store: RecordingStore,
    keys: set[str],
    registry: Path,
) -> Path:
    """Write a run whose digests, path and scores fit its answers and record."""
    unpacked = write_answers([record], store, keys, without_folders)
    run["answers"] |= {"sha256": answers_digest(unpacked), "bytes": len(unpacked)}
    run["run"] = run_path(run)[-1]
    empty = RecordingStore()
    records = load_run(run, page.decode(), unpacked, empty)
    folder = registry.joinpath("results", *run_path(run))
    folder.mkdir(parents=True)
    (folder / RUN_FILE).write_text(json_text(run), encoding="utf-8")
    (folder / PAGE_FILE).write_bytes(page)
    (folder / ANSWERS_FILE).write_bytes(pack(unpacked))
    scores = score_records(run, records, empty)
    (folder / SCORES_FILE).write_text(json_text(scores), encoding="utf-8")
    return folder


def codes_of(folder: Path, **repeats: Any) -> list[str]:
    """The codes that a check finds."""
    findings = Findings()
    check_run(folder, {}, findings, Repeats(**repeats))
    return [code for code, _ in findings.problems]


def halve_contrast(answer: dict[str, Any]) -> None:
    """Say that half of the contrast arrived."""
    for name in ("delivered_contrast", "coherent_gain"):
        if answer.get(name):
            answer[name] /= 2


def turn_features(answer: dict[str, Any]) -> None:
    """Make each angle smaller, and what follows from it."""
    for layer, lengths in zip(answer["values"], answer["lengths"], strict=True):
        layer[0] *= 0.9
        layer[1] = math.cos(math.pi * layer[0])
        a, b = lengths[:2]
        index = len(layer) - 1
        layer[index] = math.sqrt(max(a * a + b * b - 2 * a * b * layer[1], 0.0))


def triple_angle(answer: dict[str, Any]) -> None:
    """Triple each angle, which moves no rank correlation."""
    for layer in answer["values"]:
        layer[0] *= 3


def raise_curve(record: RunRecord) -> None:
    """Make people twice as sensitive at one level."""
    record.layout["curve"]["sensitivity"][0] *= 2


def exchange_trials(record: RunRecord) -> None:
    """Say that the reply to one contrast was the reply to another."""
    first, second = record.outcome["trials"][:2]
    first["key"], second["key"] = second["key"], first["key"]


@pytest.mark.parametrize(
    ("case", "observer", "edit"),
    [
        ("valid_encoder", "pixels", raise_curve),
        ("valid_two_nights", "openai", exchange_trials),
    ],
)
def test_an_edited_record_is_found_though_its_scores_fit(
    case: str, observer: str, edit: Callable[[RunRecord], None], tmp_path: Path
) -> None:
    run, files = check_files(find_run(case, observer), {})
    store = RecordingStore()
    page = files[PAGE_FILE]
    (record,) = load_run(run, page.decode(), unpack(files[ANSWERS_FILE]), store)
    keys = {answered.question.key for answered, _ in store.all_answers()}
    edit(record)
    forged = write_run(run, page, record, store, keys, tmp_path)
    assert codes_of(forged, redraw=0.0) == ["record"]


def test_a_score_may_differ_by_rounding_alone() -> None:
    text = (find_run("valid_encoder", "packaged") / SCORES_FILE).read_bytes()
    ours = json.loads(text)["main"]
    for error, places in ((1e-6, ["main[0].value"]), (1e-12, [])):
        theirs = json.loads(text)["main"]
        theirs[0]["value"] += error
        assert list(differences(theirs, ours, "main")) == places


def test_a_run_that_never_finished_is_no_finished_run(tmp_path: Path) -> None:
    source = find_run("valid_two_nights", "openai")
    run = shutil.copytree(source, tmp_path.joinpath(*source.parts[-5:]))
    (tmp_path / "registry.toml").write_text('schema = "psyprobe-registry/1"\n')
    table = json.loads((run / RUN_FILE).read_text(encoding="utf-8"))
    table["when"]["finished"] = None
    (run / RUN_FILE).write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(UnsoundError, match=r"when\.finished"):
        codes_of(run)
    with pytest.raises(InputError, match=r"can be read: .* no end"):
        load_results(tmp_path)
    with RecordingStore() as store, pytest.raises(InputError, match="store in memory"):
        load_results(store)


def test_a_halved_contrast_is_found_by_drawing(tmp_path: Path) -> None:
    source = find_run("valid_two_nights", "openai")
    forged = forge(source, tmp_path, halve_contrast)
    assert codes_of(forged) == ["drawn"]


def test_an_angle_that_contradicts_its_cosine_is_found() -> None:
    run, files = check_files(find_run("valid_encoder", "packaged"), {})
    store = RecordingStore()
    (record,) = load_run(
        run, files[PAGE_FILE].decode(), unpack(files[ANSWERS_FILE]), store
    )
    measures = record.layout["measures"]
    assert not list(implausible(store, run, measures))
    answered, milliseconds = list(store.all_answers())[-1]
    value = json.loads(json.dumps(answered.answer))
    triple_angle(value)
    with RecordingStore() as other:
        other.add_timed([(replace(answered, answer=value), milliseconds)])
        ((code, words),) = implausible(other, run, measures)
    assert code == "values-inconsistent" and "cosine" in words


def test_what_is_consistent_and_wrong_is_found_by_asking_again(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the encoders extra is not installed")
    source = find_run("valid_encoder", "packaged")
    forged = forge(source, tmp_path, turn_features)
    # Nothing else finds it: every number fits every other.
    assert codes_of(forged, rerun=1) == ["rerun"]


def test_dates_and_probabilities_that_cannot_be_are_found() -> None:
    run, files = check_files(find_run("valid_two_nights", "openai"), {})
    store = RecordingStore()
    load_run(run, files[PAGE_FILE].decode(), unpack(files[ANSWERS_FILE]), store)
    assert not list(implausible(store, run))
    early = datetime(2025, 1, 1, tzinfo=UTC)
    assert [code for code, _ in implausible(store, run, now=early)] == ["when"]
    before = {**run, "when": {**run["when"], "finished": "2026-01-01T00:00:00+00:00"}}
    assert [code for code, _ in implausible(store, before)] == ["when"]
    answered, milliseconds = next(store.all_answers())
    reply = {**answered.answer["reply"], "first_tokens": [["Yes", -0.1], ["No", -0.2]]}
    odd = replace(answered, answer={**answered.answer, "reply": reply})
    with RecordingStore() as other:
        other.add_timed([(odd, milliseconds)])
        assert [code for code, _ in implausible(other, run)] == ["values-inconsistent"]
    with RecordingStore() as other:
        other.add_timed([(answered, 0)])
        ((code, words),) = implausible(other, run)
    assert code == "when" and "1970-01-01 00:00:00, before" in words


def git(folder: Path, *words: str) -> None:
    """Run git."""
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *name, *words]
    subprocess.run(command, check=True, capture_output=True, timeout=300)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_only_what_changed_is_checked_and_nothing_is_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = shutil.copytree(REGISTRIES / "valid_encoder", tmp_path / "registry")
    git(registry, "init", "-q")
    git(registry, "add", ".")
    git(registry, "commit", "-qm", "one")
    check = ["registry", "check", str(registry), "--changed-since", "HEAD"]
    assert main(check) == 0
    assert "0 runs" in capsys.readouterr().out
    new = find_run("valid_two_nights", "openai")
    shutil.copytree(new, registry.joinpath(*new.parts[-5:]))
    assert main([*check, "--append-only"]) == 0
    assert "1 runs, 0 not sound" in capsys.readouterr().out
    assert main([*check[:3], "--append-only"]) == 2
    assert "--changed-since" in capsys.readouterr().err
    # A run is looked at whatever its name is, and if it is a link.
    odd = registry / "results" / "a\tb" / "w" / "area-0"
    odd.mkdir(parents=True)
    (odd / "linked").symlink_to(new)
    assert main(check) == 1
    assert "2 runs, 1 not sound" in capsys.readouterr().out
    git(registry, "add", ".")
    git(registry, "commit", "-qm", "two")
    git(registry, "branch", "later")
    git(registry, "reset", "-q", "--hard", "HEAD~")
    # Files that others added since stay.
    assert main([*check[:-1], "later", "--append-only"]) == 0
    assert "0 runs" in capsys.readouterr().out
    page = find_run("valid_encoder", "pixels").relative_to(REGISTRIES / "valid_encoder")
    (registry / page / "page.toml").write_text("title = 'x'")
    assert main([*check, "--append-only"]) == 1
    out = capsys.readouterr().out
    assert ": rewritten: " in out and ": page-digest: " in out
    assert main([*check[:-2], "--changed-since=--output=x"]) == 2
    assert "is no revision" in capsys.readouterr().err
