"""MVP-Bench asked of observers whose answers are known: a small set of our own, from question file
to page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from item_pages import run_page, write_page
from PIL import Image

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.observers.chat.protocol import Answer
from psyprobe.observers.protocol import Card
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.tasks.items import Judge
from psyprobe.tasks.judged_replies import judge_replies
from psyprobe.tasks.mvp_bench import (
    check_questions,
    mvp_metrics,
    read_predictions,
    read_questions,
    with_rotations,
)
from psyprobe.tasks.mvp_bench.commands import failed_pairs_page
from psyprobe.tasks.mvp_bench.metrics import published
from psyprobe.tasks.mvp_bench.probe import MVP_BENCH, read_run

#: Pairs of our own: what is on the natural image, and on the manipulated one.
PAIRS = {1: ("red", "green"), 2: ("blue", "red"), 3: ("green", "blue")}
LIGHT = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}


class Sighted:
    """Sees the mean colour of the first image (or of its two halves) and answers truly; the words
    are a function's."""

    bits, images_at_once = 8, 2

    def __init__(self, say: Any = str) -> None:
        self.card, self.say, self.inquiry_count = Card("sighted", "answer"), say, 0

    def delivered(self, image: Any) -> Any:
        return image

    def answer(self, images: Any, prompt: str, **_: Any) -> Answer:
        self.inquiry_count += 1
        colours = list(LIGHT)
        halves = images if len(images) == 2 else np.array_split(images[0], 2, axis=1)
        colours_seen = [
            colours[int(np.argmax(half.mean(axis=(0, 1))))] for half in halves
        ]
        lines = prompt.split("\n")
        if len(lines) == 2:
            return Answer(self.say("Yes" if colours_seen[0] in lines[0] else "No"))
        colour = colours_seen[-1]
        letter = next(line[0] for line in lines[1:-1] if colour in line)
        return Answer(self.say(letter))


def replies_to(
    bench: Path,
    observer: Any,
    store: Any = None,
    judge: Judge | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Ask by a page beside the questions: the table of questions with what was replied and read."""
    page = write_page(bench / "mvp_bench.toml", "mvp_bench", bench, **options)
    return read_run(run_page(page, observer, store, judge=judge))


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A folder with questions.json and images, by the release's naming."""
    rows: list[dict[str, Any]] = []
    for folder in ("Single_Images", "Cross_Images"):
        (tmp_path / folder).mkdir()
    for pair, colours in PAIRS.items():
        planes = [
            np.full((16, 16, 3), LIGHT[colour], dtype=np.uint8) for colour in colours
        ]
        for plane in planes:
            plane[0, 0] = pair  # no two files are alike
        for kind, plane in zip("se", planes, strict=True):
            Image.fromarray(plane).save(
                tmp_path / "Single_Images" / f"{pair}_{kind}.png"
            )
        Image.fromarray(np.hstack(planes)).save(
            tmp_path / "Cross_Images" / f"{pair}_concat.png"
        )
        for level, named_colour in zip(("low", "high"), colours, strict=True):
            for kind, shown_colour in zip("se", colours, strict=True):
                rows.append(
                    {
                        "image": f"Single_Images/{pair}_{kind}.png",
                        "question": f"Is it {named_colour}?\nPlease answer yes or no.",
                        "answer": "yes" if shown_colour == named_colour else "no",
                        "type": f"y/n-{kind}",
                        "level": level,
                        "id": pair,
                    }
                )
        options = "\n".join(
            f"{letter}. {colour}" for letter, colour in zip("ABC", LIGHT, strict=True)
        )
        key = "ABC"[list(LIGHT).index(colours[1])]
        for kind, image in (
            ("mcq-e", f"Single_Images/{pair}_e.png"),
            ("mcq-cross", f"Cross_Images/{pair}_concat.png"),
        ):
            question = f"What is it now?\n{options}\nAnswer with the letter."
            rows.append(
                {
                    "image": image,
                    "question": question,
                    "answer": key,
                    "type": kind,
                    "level": "high",
                    "id": pair,
                }
            )
    path = tmp_path / "questions.json"
    path.write_text(
        "".join(
            json.dumps({"question_id": i, **row}) + "\n" for i, row in enumerate(rows)
        ),
        encoding="utf-8",
    )
    return tmp_path


def test_a_sighted_observer_is_right_in_everything(bench: Path) -> None:
    questions = with_rotations(read_questions(bench / "questions.json"))
    report = check_questions(questions, bench)
    assert report.rotations_checked == 6
    assert report.missing_images == ()
    for cross in ("file", "two_images"):
        metrics = mvp_metrics(
            replies_to(bench, Sighted(), rotations=True, cross=cross, parser="rule"),
            resamples=100,
        )
        assert (metrics["value"] == 100).all()
        assert {"CircularEval", "VanillaEval", "mAcc", "iAcc_N+M"} <= set(
            metrics["metric"]
        )


def test_two_observers_are_compared_by_image_pair(bench: Path) -> None:
    page = write_page(bench / "mvp_bench.toml", "mvp_bench", bench)
    sighted = run_page(page, Sighted())
    blind = Sighted(lambda answer: "Yes" if answer in ("Yes", "No") else answer)
    blind.card = Card("blind", "answer")
    compared = pp.compare(sighted, run_page(page, blind))
    rows = {row.test: row for row in compared.rows}
    single = rows["mvp_bench aAcc"]
    assert (single.value, single.baseline_value) == (100.0, 50.0)
    assert (single.population, single.difference.units) == ("image pairs", len(PAIRS))
    # Every pair differs alike, which tells no interval and leaves no doubt.
    assert (single.difference.low, single.verdict) == (None, "better")
    beside_yes = pp.compare(sighted, baseline="always yes")
    assert beside_yes.rows[0].difference.mean == 100.0


def test_nothing_is_asked_twice_and_another_system_text_asks_anew(bench: Path) -> None:
    questions, store, observer = (
        read_questions(bench / "questions.json"),
        bench / "runs.sqlite",
        Sighted(),
    )
    replies_to(bench, observer, store)
    assert observer.inquiry_count == len(questions) == 18
    replies_to(bench, observer, store)
    # A few stored ones are asked again, to see whether it would answer alike.
    assert 18 < observer.inquiry_count <= 18 + 8
    before = observer.inquiry_count
    replies_to(bench, observer, store, system="commonsense")
    assert observer.inquiry_count == before + 18


def test_a_judge_reads_only_what_the_rule_leaves_open(bench: Path) -> None:
    chatty = Sighted(
        lambda word: {"Yes": "I would say it is.", "No": "No"}.get(word, word)
    )
    metrics = mvp_metrics(
        replies_to(bench, chatty, parser="rule"), resamples=100
    ).set_index(["level", "metric"])
    assert metrics.loc[("multi", "aAcc"), "numerator"] == 6

    class Reader:
        bits, images_at_once, inquiry_count = None, None, 0
        card = Card("reader", "answer")

        def delivered(self, image: Any) -> Any:
            return image

        def answer(self, images: Any, prompt: str, **_: Any) -> Answer:
            type(self).inquiry_count += 1
            return Answer("Yes" if "it is." in prompt else "Unknown")

    judged = replies_to(bench, chatty, judge=Judge(Reader()))
    assert (Reader.inquiry_count, (judged["judge"] == "unknown").sum()) == (
        3,
        0,
    )  # six replies, of which each two are alike
    assert mvp_metrics(judged, resamples=100)["value"].min() == 100


def test_what_is_no_verdict_of_the_judge_is_told_by_the_score(bench: Path) -> None:
    def judge(reply: str) -> Judge:
        return Judge(
            pp.observer(lambda images, prompt, system, decoding: reply, name="reader")
        )

    chatty = Sighted(
        lambda word: {"Yes": "I would say it is.", "No": "No"}.get(word, word)
    )
    page = write_page(bench / "mvp_bench.toml", "mvp_bench", bench)
    for reply, counted in (("Yes, it does", 6), ("<think>Hm.</think>Yes", 0)):
        result = run_page(page, chatty, judge=judge(reply))
        (bench_score,), (surer,) = (
            MVP_BENCH.score(result),
            MVP_BENCH.score(result, confidence=0.99),
        )
        assert np.nansum(surer.metrics["low"]) < np.nansum(bench_score.metrics["low"])
        verdicts = {
            "cases": 6,
            "without_verdict": counted,
            "unread_replies": counted,
            "cut_replies": 0,
        }
        assert bench_score.to_dict()["verdicts"] == verdicts
        assert ("6 replies of the judge were no verdict" in str(bench_score)) == bool(
            counted
        )


def test_a_score_tells_what_it_would_be_under_other_parsers_and_a_judge(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chatty = Sighted(
        lambda word: {"Yes": "Yes, it is", "No": "No it is not"}.get(
            word, f"Option {word}"
        )
    )
    page = write_page(bench / "mvp_bench.toml", "mvp_bench", bench, parser="rule")
    result = run_page(page, chatty)
    nobody = Judge(
        pp.observer(
            lambda images, prompt, system: "Unknown" if "?" in prompt else "X",
            name="nobody",
        )
    )
    judged = judge_replies(result, nobody, progress=False)
    (bench_score,) = MVP_BENCH.score(judged)
    readings = {reading.reader: reading for reading in bench_score.readings}
    assert list(readings) == ["parser lenient", "judge nobody"]
    # Six of the twelve say no in a sentence, and six letters stand behind a word: only a person
    # would read these.
    lenient, none = readings["parser lenient"], readings["judge nobody"]
    assert (lenient.n, lenient.differ, lenient.opposite, lenient.excluded) == (
        18,
        12 / 18,
        0,
        0,
    )
    assert lenient.score["aAcc"] == lenient.score["qAcc"] == 100
    assert (none.differ, none.excluded, none.score["aAcc"]) == (6 / 18, 1, 0)
    assert (
        "judge nobody" in str(bench_score)
        and bench_score.rows()[0] == MVP_BENCH.score(result)[0].rows()[0]
    )
    assert bench_score.to_dict()["readings"][0]["reader"] == "parser lenient"
    replies = read_run(result).rename(columns={"reply": "output"})[
        ["question_id", "output"]
    ]
    replies.to_json(bench / "chatty.jsonl", orient="records", lines=True)
    files = [
        str(bench / "questions.json"),
        "--model",
        "chatty",
        str(bench / "chatty.jsonl"),
        "--parser",
        "rule",
    ]
    assert main(["mvp-bench", *files]) == 0
    assert (
        "parser 'lenient' reads 12 otherwise, 0 of them as another answer"
        in capsys.readouterr().err
    )


def test_the_page_of_failed_pairs_escapes_what_models_say(bench: Path) -> None:
    hostile = Sighted(lambda word: f"<script>alert('{word}')</script>\x1b[31m")
    table = replies_to(bench, hostile, parser="rule")
    text = failed_pairs_page(table, bench, "<b>model</b>", max_pairs=2)
    assert "<script" not in text
    assert "&lt;script&gt;alert(&#39;Yes&#39;)" in text
    assert "\x1b" not in text
    assert "3 of 3 image pairs have a wrong answer; 2 of them are shown" in text
    assert text.count('src="data:image/') == 6


def test_from_questions_to_tables_through_a_server(
    bench: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with SimulatedServer(Sighted()) as server:
        page = write_page(bench / "mvp_bench.toml", "mvp_bench", bench, rotations=True)
        command = ["run", str(page), "--output", str(bench / "out")]
        command += [
            "--observer",
            "openai:sighted",
            "--observer-option",
            f"base_url={server.base_url}",
        ]
        assert main([*command, "--plan"]) == 0
        assert "36 questions about 9 images" in capsys.readouterr().out
        assert main(command) == 0
        assert "always yes" in capsys.readouterr().out
    command = [
        "mvp-bench",
        str(bench / "questions.json"),
        "--images",
        str(bench),
        "--rotations",
    ]
    assert (
        main(
            [
                *command,
                "--results",
                str(bench / "out" / "runs.sqlite"),
                "--output",
                str(bench / "out"),
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "openai:sighted" in out
    assert "100.00" in out
    predictions = read_predictions(bench / "out" / "mvp-bench-openai-sighted.jsonl")
    assert len(predictions) == 36
    assert (bench / "out" / "mvp-bench-openai-sighted-failed.html").stat().st_size > 500
    for path in (bench / "out").iterdir():
        assert b"sk-of-nobody" not in path.read_bytes()


def test_the_papers_twelve_models_score_in_one_command_with_one_that_has_choices_alone(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = with_rotations(read_questions(bench / "questions.json"))
    rows = questions.assign(output=questions["answer"])[
        ["question_id", "task", "output"]
    ]
    paths = {"all": bench / "all.jsonl", "choices": bench / "choices.jsonl"}
    for (name, path), rows_of_file in zip(
        paths.items(), (rows, rows[rows["task"] != "yes_no"]), strict=True
    ):
        rows_of_file.drop(columns="task").to_json(path, orient="records", lines=True)
        assert len(rows_of_file) == {"all": 36, "choices": 24}[name]
    models = sorted(set(published()["model"]))
    assert len(models) == 12
    model_arguments = [
        ["--model", model, str(paths["choices" if model == "GPT-4V" else "all"])]
        for model in models
    ]
    command = ["mvp-bench", str(bench / "questions.json"), "--rotations"]
    assert (
        main([*command, *(word for arguments in model_arguments for word in arguments)])
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    for model in models:
        rows = [
            line.removeprefix(model).split()
            for line in lines
            if line.startswith(f"{model} ")
        ]
        assert len(rows) == 4, model
        assert rows[0][:7] == (["-"] if model == "GPT-4V" else ["100.00"]) * 7
        assert rows[0][8] == "100.00"


def test_a_set_of_choices_alone_is_scored(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (bench / "questions.json").read_text(encoding="utf-8").splitlines()
    (bench / "choices.json").write_text(
        "\n".join(line for line in lines if '"mcq' in line), encoding="utf-8"
    )
    questions = read_questions(bench / "choices.json")
    replies = questions.assign(output="A")[["question_id", "output"]]
    replies.to_json(bench / "choices.jsonl", orient="records", lines=True)
    assert (
        main(
            [
                "mvp-bench",
                str(bench / "choices.json"),
                "--model",
                "GPT-4V",
                str(bench / "choices.jsonl"),
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "(always A)" in out and "(always yes)" not in out


def test_bad_requests_are_one_sentence(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = read_questions(bench / "questions.json")
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(bench / "questions.json", tmp_path / "elsewhere")
    with pytest.raises(InputError, match="9 images are missing, the first"):
        replies_to(tmp_path / "elsewhere", Sighted())
    with pytest.raises(UnknownNameError, match="did you mean 'two_images'"):
        replies_to(bench, Sighted(), cross="two_image")
    with pytest.raises(UnknownNameError, match="did you mean 'cross'"):
        replies_to(bench, Sighted(), corss="file")
    with pytest.raises(
        InputError, match=r"options\.max_tokens is '64'; give a whole number"
    ):
        replies_to(bench, Sighted(), max_tokens="64")
    with pytest.raises(InputError, match="hold rotations already"):
        with_rotations(with_rotations(questions))
    page = write_page(tmp_path / "page.toml", "mvp_bench", bench)
    page.write_text(page.read_text().replace("items", "# items"))
    assert (
        main(
            [
                "run",
                str(page),
                "--observer",
                "simulated:watson-malo",
                "--output",
                str(tmp_path),
            ]
        )
        == 2
    )
    assert "give the folder that holds them" in capsys.readouterr().err


def test_pairs_that_do_not_differ_are_told(bench: Path) -> None:
    questions = read_questions(bench / "questions.json")
    assert check_questions(questions, bench).identical_pairs == ()
    shutil.copy(
        bench / "Single_Images" / "2_s.png", bench / "Single_Images" / "2_e.png"
    )
    report = check_questions(questions, bench)
    assert report.identical_pairs == (2,)
    assert "1 pairs show the same image twice, pixel for pixel: 2" in str(report)


def test_output_holds_what_is_printed(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = [
        {"question_id": i, "output": "yes"}
        for i in read_questions(bench / "questions.json")["question_id"]
    ]
    (bench / "replies.jsonl").write_text(
        "".join(json.dumps(reply) + "\n" for reply in replies)
    )
    arguments = [
        "mvp-bench",
        str(bench / "questions.json"),
        "--output",
        str(tmp_path / "out"),
    ]
    assert (
        main(arguments) == 0
        and (tmp_path / "out" / "mvp_bench_questions.json").is_file()
    )
    assert (
        main(
            [
                *arguments,
                "--model",
                "GPT-4-o",
                str(bench / "replies.jsonl"),
                "--parser",
                "rule",
            ]
        )
        == 0
    )
    assert "as printed (GPT-4o)" in capsys.readouterr().out
    written = pd.read_csv(tmp_path / "out" / "mvp_bench.csv")
    assert (
        set(written["model"]) >= {"GPT-4-o"}
        and (tmp_path / "out" / "mvp_bench.json").is_file()
    )
    assert (
        main(
            [
                *arguments,
                "--model",
                "gemini_pro_4o",
                str(bench / "replies.jsonl"),
                "--parser",
                "rule",
            ]
        )
        == 0
    )
    assert (
        main(
            [
                *arguments,
                "--model",
                "LLaVA-2.5 (7B)",
                str(bench / "replies.jsonl"),
                "--parser",
                "rule",
            ]
        )
        == 0
    )
    assert (
        "no printed values stand under this name; near: LLaVA-1.5 (7B)"
        in capsys.readouterr().out
    )
