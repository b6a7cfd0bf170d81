"""Task and result files of VLMEvalKit and lmms-eval: both ways, and through their own readers where
they are installed.

VLMEvalKit is no package of the index (``pip install ms-vlmeval`` is a copy of it, with a hundred
dependencies); lmms-eval is: ``pip install lmms-eval``. Fixtures below are made by hand after what
both write.
"""

from __future__ import annotations

import ast
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from children import child
from small_runs import IMAGES, QUESTIONS, small_page

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.cli import main
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.images import decode_png
from psyprobe.observers.chat.protocol import eight_bit
from psyprobe.probes.experiments import load_results
from psyprobe.running.store import Store
from psyprobe.tasks.bridges import tables
from psyprobe.tasks.bridges.turns import questions_of, store_replies, turns_of

CARD = tables.harness_card("sim", "vlmevalkit")


def test_a_run_is_the_questions_of_its_page_with_the_answers_of_its_store(
    page: Experiment, store: Store
) -> None:
    turns, (result,) = (
        list(turns_of(store.runs()[0], store, page.folder)),
        load_results(store),
    )
    questions = list(questions_of(page, CARD))
    assert [turn.id for turn in questions] == [turn.id for turn in turns]
    assert (
        len({turn.id for turn in turns})
        == len(turns)
        == trials(result).sizes["trial"]
        == QUESTIONS
    )
    # In the order of asking, reply by reply, with the level that each was about.
    assert [turn.answer.text for turn in turns if turn.answer] == trials(result)[
        "text"
    ].values.tolist()
    contrasts = [turn.description["contrast"] for turn in turns]
    np.testing.assert_array_equal(contrasts, trials(result)["contrast"])
    assert not any(turn.resized for turn in turns)


def test_what_depends_on_answers_is_refused(tmp_path: Path) -> None:
    refusals = (
        ("asking.design", "quick_csf", "by the design 'quick_csf'"),
        ("asking.readout", "auto", "the first answers"),
    )
    for key, value, match in refusals:
        with pytest.raises(InputError, match=match):
            list(questions_of(small_page(tmp_path, **{key: value}), CARD))
    with pytest.raises(InputError, match="has no place; leave it out"):
        brief = small_page(tmp_path, **{"asking.system": "Be brief."})
        tables.write_vlmevalkit_task(questions_of(brief, CARD), brief, tmp_path)


def _same_answers(result: Any, other: Any) -> None:
    first = trials(result)
    second = trials(other)
    columns = (
        "text",
        "reading",
        "response",
        "contrast",
        "delivered_contrast",
        "prompt",
        "order",
    )
    for name in columns:
        np.testing.assert_array_equal(
            first[name].values, second[name].values, err_msg=name
        )


@pytest.mark.parametrize("ending", [".xlsx", ".tsv", ".json"])
def test_predictions_of_vlmevalkit_both_ways(
    page: Experiment, store: Store, ending: str, tmp_path: Path
) -> None:
    pytest.importorskip("openpyxl", reason="the excel extra is not installed")
    book, path = tmp_path / "sim_small.xlsx", tmp_path / f"sim_small{ending}"
    assert (
        tables.write_predictions(store.runs()[0], store, book, page.folder) == QUESTIONS
    )
    if ending == ".tsv":
        pd.read_excel(book, dtype=str).to_csv(path, sep="\t", index=False)
    if ending == ".json":
        pd.read_excel(book, dtype=str).to_json(path, orient="records")
    with Store(None) as other:
        assert store_replies(
            tables.read_predictions(path, page, CARD), other, progress=False
        ) == (
            QUESTIONS,
            0,
        )
        _same_answers(load_results(store)[0], load_results(other)[0])


def test_a_data_set_as_vlmevalkit_reads_it(page: Experiment, tmp_path: Path) -> None:
    """Its rules: TSV, an image as base64 or the index of an earlier row, several as a list in
    words."""
    turns = list(questions_of(page, CARD))
    table, page_copy = tables.write_vlmevalkit_task(turns, page, tmp_path)
    frame = pd.read_csv(table, sep="\t", dtype=str)
    assert (
        frame["index"].tolist() == [str(i) for i in range(1, QUESTIONS + 1)]
        and frame["question"][0] == turns[0].inquiry.prompt
    )
    images = dict(zip(frame["index"], frame["image"], strict=True))
    full = [image if len(image) > 64 else images[image] for image in frame["image"]]
    assert sum(len(image) > 64 for image in frame["image"]) == IMAGES and all(
        len(image) > 64 for image in full
    )
    for image, turn in zip(full, turns, strict=True):
        np.testing.assert_array_equal(
            decode_png(base64.b64decode(image)), eight_bit(turn.inquiry.images[0])
        )
    # What is there decides what is right, whichever way the question is asked.
    with_pattern, blank = (frame[frame["prompt"] == name] for name in ("seen", "blank"))
    assert set(with_pattern["answer"][with_pattern["contrast"].astype(float) > 0]) == {
        "Yes"
    }
    assert set(blank["answer"][blank["contrast"].astype(float) > 0]) == {"No"}
    assert page_copy.read_text(encoding="utf-8") == page.toml


def test_two_images_are_a_list(tmp_path: Path) -> None:
    page = small_page(
        tmp_path, **{"probe": "two_interval", "asking.prompts": "two_image"}
    )
    turns = list(questions_of(page, CARD))
    table, _ = tables.write_vlmevalkit_task(turns[:2], page, tmp_path)
    image = pd.read_csv(table, sep="\t")["image"][0]
    assert [
        decode_png(base64.b64decode(encoded)).shape
        for encoded in ast.literal_eval(image)
    ] == [(64, 64, 3)] * 2


def test_predictions_made_by_hand_and_one_that_failed(
    page: Experiment, tmp_path: Path
) -> None:
    """Write predictions like VLMEvalKit: the columns of the data set but the image, and one more."""
    turns = list(questions_of(page, CARD))
    rows = [
        {
            "index": i,
            "id": turn.id,
            "question": "?",
            "answer": "yes",
            "prediction": "Yes",
        }
        for i, turn in enumerate(turns)
    ]
    rows[3]["prediction"] = "Failed to obtain answer via API."
    path = tmp_path / "kit.json"
    path.write_text(json.dumps(rows))
    with Store(None) as store:
        assert store_replies(
            tables.read_predictions(path, page, CARD), store, progress=False
        ) == (
            QUESTIONS - 1,
            1,
        )
        assert store.runs()[0].finished is None
        # The one that is missing comes later, and the run is finished.
        rows[3]["prediction"] = "No"
        path.write_text(json.dumps(rows))
        assert store_replies(
            tables.read_predictions(path, page, CARD), store, progress=False
        ) == (
            QUESTIONS,
            0,
        )
        assert trials(load_results(store)[0])["text"].values.tolist() == ["Yes"] * 3 + [
            "No"
        ] + ["Yes"] * (QUESTIONS - 4)
    path.write_text(json.dumps([{"index": 1, "prediction": "Yes"}]))
    with pytest.raises(InputError, match="has no column 'id'"):
        tables.read_predictions(path, page, CARD)


def test_samples_of_lmms_eval_both_ways(
    page: Experiment, store: Store, tmp_path: Path
) -> None:
    assert (
        tables.write_lmms_eval_results(store.runs()[0], store, tmp_path, page.folder)
        == QUESTIONS
    )
    (folder,) = tmp_path.iterdir()
    (samples,), (results,) = (
        folder.glob("*_samples_*.jsonl"),
        folder.glob("*_results.json"),
    )
    printed = json.loads(results.read_text())
    assert printed["n-samples"]["psyprobe_small"]["effective"] == QUESTIONS
    assert printed["results"]["psyprobe_small"]["sensitivity at 2 cpd,none"] > 10
    with Store(None) as other:
        assert store_replies(
            tables.read_lmms_eval_samples(samples, page, CARD), other, progress=False
        ) == (
            QUESTIONS,
            0,
        )
        _same_answers(load_results(store)[0], load_results(other)[0])
    samples.write_text('{"doc_id": 0, "filtered_resps": ["Yes"]}\n')
    with pytest.raises(
        InputError, match="line 1, is no sample of a task that psyprobe wrote"
    ):
        tables.read_lmms_eval_samples(samples, page, CARD)


def _task(page: Experiment, folder: Path) -> tuple[dict[str, Any], Path]:
    yaml, code, questions, _ = tables.write_lmms_eval_task(
        questions_of(page, CARD), page, folder
    )
    module: dict[str, Any] = {"__file__": str(code)}
    exec(compile(code.read_text(encoding="utf-8"), str(code), "exec"), module)
    assert str(questions.resolve()) in yaml.read_text(encoding="utf-8")
    return module, questions


def test_a_task_of_lmms_eval_asks_and_keeps_what_was_said(
    page: Experiment, tmp_path: Path
) -> None:
    module, questions = _task(page, tmp_path)
    docs = [
        json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()
    ]
    turns = list(questions_of(page, CARD))
    for doc, turn in zip(docs, turns, strict=True):
        assert module["doc_to_text"](doc) == turn.inquiry.prompt
        (image,) = module["doc_to_visual"](doc)
        np.testing.assert_array_equal(
            np.asarray(image), eight_bit(turn.inquiry.images[0])
        )
    outcomes = [module["process_results"](doc, ["Yes, there is."]) for doc in docs]
    # lmms-eval then logs the metrics of a sample beside its own keys.
    samples = tmp_path / "samples.jsonl"
    lines = [
        {"doc_id": i, "filtered_resps": ["Yes, there is."], "target": "yes", **outcome}
        for i, outcome in enumerate(outcomes)
    ]
    samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
    replies = tables.read_lmms_eval_samples(samples, page, CARD)
    assert {turn.id for turn in turns} == set(replies.answers) and replies.answers[
        turns[0].id
    ].text == "Yes, there is."
    right = np.mean([doc["answer"] == "yes" for doc in docs])
    assert module["share_right"](
        [outcome["psyprobe"] for outcome in outcomes]
    ) == pytest.approx(right)


def test_the_commands(
    page: Experiment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    small_page(tmp_path)
    assert main(["questions", "small.toml", "--as", "vlmevalkit", "-o", "."]) == 0
    table = (
        pd.read_csv("small.tsv", sep="\t").drop(columns="image").assign(prediction="no")
    )
    table.to_csv("p.tsv", sep="\t", index=False)
    command = ["store", "import", "--as", "vlmevalkit", "p.tsv", "-o", "s.sqlite"]
    assert (
        main(command) == 2 and "give --experiment PAGE.toml" in capsys.readouterr().err
    )
    command += ["--observer", "sim", "--experiment", "small.toml"]
    assert main(command) == 0
    assert f"{len(table)} answers of vlmevalkit:sim in small" in capsys.readouterr().out
    assert main([*command, "--input-size", "128"]) == 2
    assert "answers no question of small" in capsys.readouterr().err
    for harness, written in (
        ("vlmevalkit", "out/*.xlsx"),
        ("lmms-eval", "out/*/*.jsonl"),
    ):
        assert main(["store", "export", "s.sqlite", "--as", harness, "-o", "out"]) == 0
        assert len(list(tmp_path.glob(written))) == 1
    for wrong, why in (
        (["store", "import", "p.tsv", "-o", "s.sqlite"], "needs --as"),
        (["store", "info", "s.sqlite", "--as", "inspect"], "takes no --as"),
        (
            ["store", "export", "s.sqlite", "-o", "a.csv", "--observer", "a"],
            "takes no --observer",
        ),
    ):
        assert main(wrong) == 2 and why in capsys.readouterr().err


def test_what_was_not_answered_is_left_open(
    page: Experiment, store: Store, tmp_path: Path
) -> None:
    """As lmms-eval 0.7.3 writes it: one reply as text, tokens where they were counted, and what
    failed in words."""
    tables.write_lmms_eval_results(store.runs()[0], store, tmp_path, page.folder)
    (path,) = tmp_path.glob("*/*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["psyprobe"]["reply"] = (
        "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 500"
    )
    lines[1]["token_counts"] = [
        {"input_tokens": 24, "output_tokens": 2, "reasoning_tokens": 0}
    ]
    lines[2]["token_counts"] = [None]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = tables.read_lmms_eval_samples(path, page, CARD).answers
    assert len(answers) == QUESTIONS - 1 and lines[0]["psyprobe"]["id"] not in answers
    answer, other = (answers[line["psyprobe"]["id"]] for line in lines[1:3])
    assert (answer.tokens_in, answer.tokens_out, answer.tokens_thinking) == (
        24,
        2,
        None,
    ) and other.tokens_in is None


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_task_of_lmms_eval_draws_as_the_page_does(
    temperature: int, tmp_path: Path
) -> None:
    page = small_page(tmp_path, **{"asking.temperature": temperature})
    yaml, *_ = tables.write_lmms_eval_task(questions_of(page, CARD), page, tmp_path)
    task_text = yaml.read_text(encoding="utf-8")
    assert (
        f"temperature: {temperature}\n  do_sample: {'true' if temperature else 'false'}\n  "
        "until: []" in task_text
    )


def _right(result: Any) -> Any:
    """Whether the reply to each trial is right; NaN where it says nothing."""
    table = trials(result)
    response = table["response"].values
    return np.where(table["contrast"].values > 0, response, 1 - response)


# It leaves the files that it reads and writes open.
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_through_vlmevalkit_itself(
    page: Experiment, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader, its inference and its count of yes and no, on our files; and the file that it
    writes, read here."""
    monkeypatch.setenv("LMUData", str(tmp_path))
    dataset = pytest.importorskip(
        "vlmeval.dataset",
        reason="pip install ms-vlmeval, or VLMEvalKit from its repository",
    )
    inference = pytest.importorskip("vlmeval.inference")
    turns, (imported,) = list(questions_of(page, CARD)), load_results(store)
    tables.write_vlmevalkit_task(turns, page, tmp_path)
    vqa_data = dataset.CustomVQADataset("small")
    assert len(vqa_data) == QUESTIONS
    for i in (0, 1, QUESTIONS - 1):
        message = vqa_data.build_prompt(vqa_data.data.iloc[i])
        assert message[-1]["value"] == turns[i].inquiry.prompt
        codes = decode_png(Path(message[0]["value"]).read_bytes())
        np.testing.assert_array_equal(codes, eight_bit(turns[i].inquiry.images[0]))

    class Model:
        """Takes a path and a prompt, as VLMEvalKit's models in this process do."""

        def set_dump_image(self, dump: Any) -> None:
            assert dump is not None

        def generate(self, message: list[dict[str, str]], dataset: str) -> str:
            image = decode_png(Path(message[0]["value"]).read_bytes()).astype(
                np.float32
            ) / np.float32(255)
            decoding = turns[0].inquiry.decoding
            return str(
                simulated.answer((image,), message[-1]["value"], decoding=decoding).text
            )

    simulated, work = pp.load_observer("simulated:watson-malo"), tmp_path / "work"
    work.mkdir()
    inference.infer_data_job(Model(), str(work), "sim", vqa_data)
    replies = tables.read_predictions(work / "sim_small.xlsx", page, CARD)
    with Store(None) as other:
        assert store_replies(replies, other, progress=False) == (QUESTIONS, 0)
        _same_answers(imported, load_results(other)[0])

    # Our run, counted by the evaluator of its data sets of yes and no.
    ours = tmp_path / "ours.xlsx"
    tables.write_predictions(store.runs()[0], store, ours, page.folder)
    yes_no = dataset.ImageYORNDataset.__new__(dataset.ImageYORNDataset)
    yes_no.dataset_name = "small"
    overall = yes_no.evaluate(str(ours))["Overall"].item()
    assert overall == pytest.approx(100 * np.mean(_right(imported)))


def test_through_lmms_eval_itself(
    page: Experiment, store: Store, tmp_path: Path
) -> None:
    """Its command asks our task of a server whose truth is known; and its comparison of runs reads
    ours."""
    baselines = pytest.importorskip(
        "lmms_eval.baselines", reason="pip install lmms-eval"
    )
    pytest.importorskip("uvicorn", reason="the server extra is not installed")
    from psyprobe.observers.simulated.serving import SimulatedServer

    (imported,) = load_results(store)
    _task(page, tmp_path)
    with SimulatedServer(pp.load_observer("simulated:watson-malo")) as server:
        options = {
            "model": "openai",
            "model_args": f"model_version={server.model},base_url={server.base_url}",
        }
        options |= {
            "include_path": str(tmp_path),
            "tasks": "psyprobe_small",
            "output_path": str(tmp_path / "out"),
        }
        command = [
            sys.executable,
            "-m",
            "lmms_eval",
            "--log_samples",
            "--batch_size",
            "1",
        ]
        command += [
            word for name, value in options.items() for word in (f"--{name}", value)
        ]
        offline = {
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(tmp_path / "cache"),
            "OPENAI_API_KEY": "none",
        }
        with child(
            command,
            280,
            env={**os.environ, **offline},
            cwd=tmp_path,
            stdout=-1,
            stderr=-2,
            text=True,
        ) as asking:
            output, _ = asking.communicate()
    assert asking.returncode == 0, output[-2000:]
    (samples,) = (tmp_path / "out").glob("*/*_samples_psyprobe_small.jsonl")
    replies = tables.read_lmms_eval_samples(samples, page, CARD)
    with Store(None) as other:
        assert store_replies(replies, other, progress=False) == (QUESTIONS, 0)
        reimported = load_results(other)[0]
        _same_answers(imported, reimported)
        np.testing.assert_array_equal(
            trials(imported)["tokens_in"].values, trials(reimported)["tokens_in"].values
        )

    tables.write_lmms_eval_results(
        store.runs()[0], store, tmp_path / "ours", page.folder
    )
    (samples,) = (tmp_path / "ours").glob("*/*_samples_psyprobe_small.jsonl")
    scores, baseline = baselines.load_baseline(str(samples), "psyprobe_small")
    assert [scores[i] for i in range(QUESTIONS)] == _right(imported).tolist()
    assert baseline["results"]["psyprobe_small"]["sensitivity at 2 cpd,none"] > 10
