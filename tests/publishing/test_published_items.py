"""Runs about a benchmark's items are published, checked and scored without publishing an item."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from item_pages import run_page, write_page
from PIL import Image

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.files.output import json_text
from psyprobe.reporting.publishing.identity import run_path
from psyprobe.reporting.publishing.publish import Terms, publish
from psyprobe.running.registry_run import answers_digest, pack, run_folders, unpack
from psyprobe.running.store import Store
from psyprobe.tasks.items import Judge

pytestmark = [
    pytest.mark.needs("tasks/mvp_bench"),
    pytest.mark.needs("tasks/r_bench"),
]

TERMS = Terms("Example Laboratory")
#: Words of questions, options and keys, in text that nobody answers.
PLANTED = ("zebrafish", "quokka", "capybara")


def write_image(path: Path, level: int) -> None:
    """An image file of one level of grey."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), level, np.uint8)).save(path)


def write_mvp_set(folder: Path) -> Path:
    """Three pairs of images, with one question about each."""
    rows: list[dict[str, Any]] = []
    for pair in (1, 2, 3):
        for kind, level in (("s", 40 * pair), ("e", 250)):
            image = f"Single_Images/{pair}_{kind}.png"
            write_image(folder / image, level)
            rows.append(
                {
                    "image": image,
                    "question": f"Is a {PLANTED[pair - 1]} there?\nPlease answer yes or no.",
                    "answer": "yes" if kind == "e" else "no",
                    "type": f"y/n-{kind}",
                    "level": "low" if pair == 1 else "high",
                    "id": pair,
                    "question_id": f"{pair}{kind}",
                }
            )
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "own.json").write_text(lines, encoding="utf-8")
    return folder


def write_r_bench_set(folder: Path) -> Path:
    """Four images and their twins, with a choice about two and a question about the others."""
    from psyprobe.tasks.r_bench.items import write_items

    rows = []
    for number, task in enumerate(("MCQ", "VQA", "MCQ", "VQA")):
        name = f"{number}.png"
        write_image(folder / "ref" / name, 30 * number)
        write_image(folder / "dis" / name, 30 * number + 100)
        rows.append(
            {
                "name": name,
                "reference": name,
                "question": f"What sits beside the {PLANTED[0]}?",
                "choice": f"A. {PLANTED[1]}; B. {PLANTED[2]}" if task == "MCQ" else "",
                "answer": "A" if task == "MCQ" else PLANTED[2],
                "type": task,
                "score": "3.0",
                "distortion": "1",
                "strength": "1",
                "simulated": "0",
            }
        )
    write_items(folder, rows)
    return folder


def bright(images: list[Any], prompt: str) -> str:
    """Answers by the brightness of the image."""
    words = ("A", "B") if "A." in prompt else ("Yes", "No")
    return words[0] if images[0].mean() > 0.4 else words[1]


def judge(images: list[Any], prompt: str, system: str) -> str:
    """Gives every reply one mark."""
    return "1"


@pytest.fixture(scope="module")
def benchmarks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Sets of both benchmarks, a store with a run of each, one judged, and their registry."""
    root = tmp_path_factory.mktemp("benchmarks")
    sets = {
        "mvp_bench": write_mvp_set(root / "sets" / "mvp"),
        "r_bench": write_r_bench_set(root / "sets" / "r"),
    }
    options: dict[str, dict[str, Any]] = {
        "mvp_bench": {"questions": ["own.json"]},
        "r_bench": {"mcq_rule": "letter"},
    }
    store = root / "runs.sqlite"
    judges = {"r_bench": Judge(pp.observer(judge, name="judge"))}
    for probe, folder in sets.items():
        page = write_page(root / f"{probe}.toml", probe, folder, **options[probe])
        observer = pp.observer(bright, name="bright", bits=8)
        run_page(page, observer, store, judge=judges.get(probe))
    outcomes = publish(store, root / "registry", TERMS)
    assert [outcome.reason for outcome in outcomes] == ["", ""]
    return {"sets": root / "sets", "store": store, "registry": root / "registry"}


def scores_of(source: Path) -> list[str]:
    """The scores of all runs of a store, as JSON text."""
    scores = [pp.score(result) for result in pp.load_results(source)]
    return sorted(json_text(score.to_dict()) for score in scores)


def test_no_text_and_no_folder_of_a_set_is_published(
    benchmarks: dict[str, Path],
) -> None:
    registry = benchmarks["registry"]
    paths = [path for path in registry.rglob("*") if path.is_file()]
    unpacked = [
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else b""
        for path in paths
    ]
    published = b"".join([*(path.read_bytes() for path in paths), *unpacked]).decode(
        errors="replace"
    )
    assert len(paths) == 9 and '"withheld":true' in published
    planted = (*PLANTED, "sits beside", str(benchmarks["sets"]))
    assert [word for word in planted if word in published] == []


def test_scores_are_those_of_the_store_where_the_sets_are(
    benchmarks: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    registry = str(benchmarks["registry"])
    assert main(["registry", "check", registry]) == 3
    notes = capsys.readouterr().out.splitlines()
    assert sum("its items are withheld; give --sets" in line for line in notes) == 2
    sets = str(benchmarks["sets"])
    assert main(["registry", "check", registry, "--sets", sets]) == 0
    got = tmp_path / "got.sqlite"
    assert main(["registry", "get", registry, "-o", str(got), "--sets", sets]) == 0
    assert scores_of(got) == scores_of(benchmarks["store"])
    # What was got is published as what is there already.
    outcomes = publish(got, benchmarks["registry"], TERMS)
    assert [outcome.present for outcome in outcomes] == [True, True]


def test_without_its_set_a_run_is_left_out_with_the_reason(
    benchmarks: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry = str(benchmarks["registry"])
    assert main(["score", registry]) == 2
    assert "its items are withheld" in capsys.readouterr().err
    assert main(["registry", "export", registry, "-o", str(tmp_path / "records")]) == 4
    assert capsys.readouterr().out.count("its items are withheld") == 2
    other = shutil.copytree(benchmarks["sets"] / "mvp", tmp_path / "sets" / "mvp")
    text = (other / "own.json").read_text(encoding="utf-8")
    (other / "own.json").write_text(text.replace("quokka", "numbat"))
    check = ["registry", "check", str(benchmarks["registry"]), "--sets", str(other)]
    assert main(check) == 3
    lines = capsys.readouterr().out.splitlines()
    assert sum("has other ones" in line for line in lines) == 2
    nowhere = ["--sets", str(tmp_path / "nowhere")]
    got = ["registry", "get", registry, "-o", str(tmp_path / "got.sqlite")]
    for command in (["registry", "check", registry], got):
        assert main([*command, *nowhere]) == 2
        assert "nowhere is no folder" in capsys.readouterr().err
    assert not (tmp_path / "got.sqlite").exists()


def rewrite(run: Path, lines: list[dict[str, Any]]) -> Path:
    """Write other lines into the answers of a run, with digests and path made to fit."""
    unpacked = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    digest = answers_digest(unpacked)
    facts["answers"] |= {"sha256": digest, "bytes": len(unpacked)}
    facts["run"] = scores["run"] = run_path(facts)[-1]
    scores["answers_sha256"] = digest
    (run / "answers.jsonl.gz").write_bytes(pack(unpacked))
    (run / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    (run / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    return run.rename(run.with_name(facts["run"]))


@pytest.mark.parametrize(
    ("fault", "code"), [("item", "licence"), ("reply", "score"), ("lost", "record")]
)
def test_what_is_planted_in_a_run_about_items_is_found(
    benchmarks: dict[str, Path],
    fault: str,
    code: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    registry = shutil.copytree(benchmarks["registry"], tmp_path / "registry")
    run = next(path for path in run_folders(registry) if "r_bench" in path.parts[-2])
    text = unpack((run / "answers.jsonl.gz").read_bytes()).decode()
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if fault == "item" and line.get("kind") == "items":
            with Store(benchmarks["store"], create=False) as store:
                line["v"] = store.content(line["d"])
            del line["withheld"]
        if fault == "reply" and line["k"] == "a":
            line["v"]["reply"]["text"] = "B"
        if fault == "lost" and line["k"] == "record":
            line["v"]["outcome"]["cases"] = line["v"]["outcome"]["cases"][:-1]
    folder = rewrite(run, lines)
    sets = str(benchmarks["sets"])
    check = ["registry", "check", str(registry), str(folder), "--sets", sets]
    assert main(check) == 1
    assert f": {code}: " in capsys.readouterr().out
