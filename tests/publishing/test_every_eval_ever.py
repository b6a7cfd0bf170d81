"""Runs as records of Every Eval Ever: its own schema takes one of every kind of result."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from item_pages import run_page, write_page
from PIL import Image

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.experiment import load_experiment
from psyprobe.light.display import Display
from psyprobe.observers.chat.protocol import Answer, Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.protocol import Card
from psyprobe.reporting.publishing.every_eval_ever import export_records
from psyprobe.reporting.publishing.publish import Published, Terms

jsonschema = pytest.importorskip("jsonschema")

DATA = Path(__file__).resolve().parents[1] / "data"
Output = pytest.CaptureFixture[str]


class Affirmative:
    """Says yes to everything, or "A"."""

    bits, images_at_once = 8, 2

    def __init__(self) -> None:
        self.card = Card("affirmative", "answer")

    def delivered(self, image: Any) -> Any:
        return image

    def answer(self, images: Any, prompt: str, **_: Any) -> Answer:
        return Answer("Yes" if "yes or no" in prompt else "A")


def draw(path: Path, light: int) -> None:
    """A uniform image."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((16, 16, 3), light, np.uint8)).save(path)


def say_first(inquiry: Inquiry) -> Answer:
    """A person's press of the first key."""
    return Answer(inquiry.words[0], model="a person", session={"session": "first"})


def mvp_page(folder: Path) -> Path:
    """MVP-Bench of one pair of images."""
    rows = []
    for kind, answer in (("s", "yes"), ("e", "no")):
        draw(folder / "Single_Images" / f"1_{kind}.png", 40 if kind == "s" else 200)
        question = {"question": "Is it dark?\nPlease answer yes or no.", "id": 1}
        image = {"image": f"Single_Images/1_{kind}.png", "type": f"y/n-{kind}"}
        rows.append({**question, **image, "answer": answer, "level": "low"})
    lines = [json.dumps({"question_id": i, **row}) for i, row in enumerate(rows)]
    (folder / "questions.json").write_text("\n".join(lines), encoding="utf-8")
    return write_page(folder / "mvp.toml", "mvp_bench", folder)


def r_bench_page(folder: Path) -> Path:
    """R-Bench of one photograph, corrupted in two ways."""
    head = "name,question,choice,answer,type,score,distortion,strength,reference\n"
    rows = [
        f"{name}.png,What is it?,A. light;B. dark,A,MCQ,,{name},1,1.png\n"
        for name in "12"
    ]
    for name in "12":
        draw(folder / "ref" / f"{name}.png", 200)
        draw(folder / "dis" / f"{name}.png", 190)
    (folder / "items.csv").write_text(head + "".join(rows), encoding="utf-8")
    return write_page(folder / "r_bench.toml", "r_bench", folder)


def check(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """All records of a folder, valid by the schema, each with the samples that it names."""
    schemas = DATA / "every_eval_ever"
    validators = [
        jsonschema.Draft7Validator(json.loads((schemas / name).read_text("utf-8")))
        for name in ("eval.schema.json", "instance_level_eval.schema.json")
    ]
    records, samples = [], []
    for path in sorted(folder.rglob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        assert not [error.message for error in validators[0].iter_errors(record)]
        records.append(record)
        assert "/".join(path.parts[-3:-1]) == record["model_info"]["id"]
        for result in record["evaluation_results"]:
            config = result["metric_config"]
            ends = [float(config[end]) for end in ("min_score", "max_score")]
            assert ends[0] <= result["score_details"]["score"] <= ends[1]
        if details := record.get("detailed_evaluation_results"):
            content = (folder / details["file_path"]).read_bytes()
            assert sha256(content).hexdigest() == details["checksum"]
            file_samples = [json.loads(line) for line in content.splitlines()]
            assert len(file_samples) == details["total_rows"]
            for sample in file_samples:
                errors = validators[1].iter_errors(sample)
                assert not [error.message for error in errors]
                assert sample["evaluation_id"] == record["evaluation_id"]
                assert sample["model_id"] == record["model_info"]["id"]
            samples += file_samples
    assert len(samples) == sum(
        len(path.read_bytes().splitlines()) for path in folder.rglob("*_samples.jsonl")
    )
    return records, samples


def test_a_registry_becomes_records_the_same_at_each_export(
    tmp_path: Path, capsys: Output
) -> None:
    registry = shutil.copytree(DATA / "registry" / "valid_encoder", tmp_path / "one")
    nights = DATA / "registry" / "valid_two_nights" / "results"
    shutil.copytree(nights, registry / "results", dirs_exist_ok=True)
    shutil.rmtree(next(registry.glob("results/openai*/*/*/*")))
    for name in ("first", "again"):
        output = str(tmp_path / name)
        words = ["registry", "export", str(registry), "--as", "eee", "-o", output]
        assert main(words) == 0
    records, samples = check(tmp_path / "first")
    first, second = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*.json*")
        }
        for name in ("first", "again")
    )
    assert first == second and len(records) == 3
    models = {record["model_info"]["id"]: record for record in records}
    encoder = models["psyprobe-packaged/efficientnet_lite0"]
    assert encoder["model_info"]["additional_details"]["model_availability"] == (
        "open_weights"
    )
    (result,) = encoder["evaluation_results"]
    assert result["metric_config"]["metric_kind"] == "correlation"
    assert "generation_config" not in result
    assert "detailed_evaluation_results" not in encoder
    # Every trial is a sample: what was asked, said, read, and how faint it was.
    sample = next(row for row in samples if row["metadata"]["contrast"] == "0.25")
    assert sample["input"]["raw"].startswith("Is there a pattern visible")
    assert sample["input"]["reference"] == ["yes"]
    assert sample["evaluation"] == {"score": 1.0, "is_correct": True}
    assert sample["metadata"]["psychometric"] == "1"
    assert 0 < float(sample["metadata"]["p_yes"]) <= 1


def test_every_kind_of_result_that_is_ranked_is_a_valid_record(
    tmp_path: Path, published_kinds: tuple[Path, Path, list[Published]]
) -> None:
    _, registry, outcomes = published_kinds
    exported = export_records(registry, tmp_path, Terms(""))
    left_out = {
        entry.experiment.rpartition("-")[0] for entry in exported if entry.reason
    }
    # No response falls to that of the anchor; no people are compared with, or at one level.
    assert left_out == {
        "acuity_achromatic",
        "letter_acuity",
        "gabor_in_noise",
        "hernandez2025",
        "orientation_csf",
        "orientation_in_noise",
    }
    records, _ = check(tmp_path)
    assert len(records) == len(outcomes) - len(left_out)
    metrics = {
        result["metric_config"]["metric_id"]
        for record in records
        for result in record["evaluation_results"]
    }
    assert {"psyprobe.alignment", "psyprobe.jnd_rmse"} <= metrics


@pytest.mark.needs("observers/people")
@pytest.mark.needs("tasks/mvp_bench")
@pytest.mark.needs("tasks/r_bench")
def test_every_kind_of_result_of_a_store_is_a_valid_record(
    tmp_path: Path, capsys: Output
) -> None:
    from psyprobe.observers.people.observer import PersonObserver

    store = tmp_path / "runs.sqlite"
    area = load_experiment("area").with_variants({})
    pp.run(area, "pixels", store=store, score_only=True, progress=False)
    words_page = load_experiment("hernandez2025").with_settings(
        {
            "asking.prompts": "base",
            "asking.repeats.p_yes": 1,
            "asking.max_tokens": 7,
        }
    )
    pp.run(words_page, "simulated:watson-malo", store=store, progress=False)
    for build in (mvp_page, r_bench_page):
        folder = tmp_path / build.__name__
        folder.mkdir()
        run_page(build(folder), Affirmative(), store)
    short = load_experiment("orientation_csf").with_settings(
        {"asking.options.n_max": 20}
    )
    display = Display(peak=200, black=0.2)
    screen = Screen(
        pitch=0.265, distance=1000.0, display=display, light="guess", size=(1920, 1080)
    )
    person = PersonObserver("ANNA", "first", screen, say_first)
    people = tmp_path / "people.sqlite"
    pp.run(short, person, store=people, progress=False)
    output = tmp_path / "records"
    export = ["registry", "export", "-o", str(output)]
    assert main([*export, str(store)]) == 2
    assert "--contributor" in capsys.readouterr().err
    export += ["--contributor", "Example Laboratory"]
    assert main([*export, str(store)]) == 0
    assert main([*export, str(people)]) == 4
    assert "person:ANNA: left out: Every Eval Ever has models" in (
        capsys.readouterr().out
    )
    assert main([*export, str(people), "--people"]) == 0
    records, samples = check(output)
    kinds = {
        record["evaluation_results"][0]["evaluation_name"]: record for record in records
    }
    assert len(records) == 5
    assert {record["model_info"]["id"] for record in records} == {
        "psyprobe-baseline/pixels",
        "psyprobe-simulated/watson-malo",
        "psyprobe-model/affirmative",
        "psyprobe-people/ANNA",
    }
    # Items of benchmarks belong to others, and replies of people to them: no samples of these.
    assert {sample["model_id"] for sample in samples} == {
        "psyprobe-simulated/watson-malo"
    }
    # Each tells of its own requests, whatever else its store holds.
    longest = {
        name: result["generation_config"]["generation_args"]["max_tokens"]
        for name, record in kinds.items()
        for result in record["evaluation_results"]
        if "generation_config" in result
    }
    assert longest["hernandez2025"] == 7
    assert longest["mvp"] == 64 and longest["r_bench"] == 32
    for result in kinds["mvp"]["evaluation_results"]:
        assert result["metric_config"]["metric_kind"] == "accuracy"
        assert result["metric_config"]["max_score"] == 100.0
