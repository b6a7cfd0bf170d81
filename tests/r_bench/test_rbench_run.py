"""A set built from photographs, asked of a served observer and of a tiny model, judged, scored and
reported."""

from __future__ import annotations

import base64
import errno
import io
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from item_pages import run_page, write_page
from PIL import Image

import psyprobe as pp
from psyprobe.analysis.score import percent
from psyprobe.cli import main
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.tasks.items import Judge
from psyprobe.tasks.judged_replies import judge_replies
from psyprobe.tasks.r_bench import (
    check_items,
    rbench_metrics,
    read_answers,
    read_items,
    read_set,
    score_items,
)
from psyprobe.tasks.r_bench.build import ReferenceLimits, build_set, write_example
from psyprobe.tasks.r_bench.probe import RBenchRun, read_run, remarks, write_run

pytest.importorskip("cv2", reason="the corruption extra is not installed")
pytest.importorskip("skimage", reason="the corruption extra is not installed")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The photographs of the example, made small, and its questions."""
    photographs, questions = write_example(tmp_path_factory.mktemp("example"))
    for path in photographs.iterdir():
        with Image.open(path) as opened:
            small = opened.copy()
        small.thumbnail((96, 96))
        small.save(path)
    return photographs, questions


@pytest.fixture(scope="module")
def built(example: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "set"
    with ThreadPoolExecutor(2) as executor:
        build = build_set(
            *example,
            folder,
            items_per_cell=1,
            limits=ReferenceLimits(side=48),
            executor=executor,
            progress=False,
        )
    assert (build.items, build.skipped) == (99, ())
    return folder


def model(images: list[Any], prompt: str) -> str:
    """Sees whether an image is bright, and answers letters, words and, to tease, something like
    HTML."""
    if "letter" in prompt:
        return "B" if images[0].mean() > 0.4 else "the first <script>alert(1)</script>"
    return f"something {'bright' if images[0].mean() > 0.4 else 'dark'}"


def judge_of(prompt: str) -> str:
    """A judge that gives no verdict where something is bright, and half of it elsewhere."""
    return "cannot say" if "bright" in prompt else "1"


OBSERVER = pp.observer(model, name="bright", bits=8)


def run(
    folder: Path,
    observer: Any,
    store: Any = None,
    judge: Judge | None = None,
    **options: Any,
) -> RBenchRun:
    """Ask about a set by a page beside it, judge and score."""
    page = write_page(
        folder.parent / f"{folder.name}.toml", "r_bench", folder, **options
    )
    return read_run(run_page(page, observer, store, judge=judge))


def judge_by(function: Any, name: str = "judge") -> Judge:
    return Judge(
        pp.observer(lambda images, prompt, system: function(prompt), name=name)
    )


# -- building
# ------------------------------------------------------------------------------------------


def test_a_set_is_balanced_and_names_what_it_holds(built: Path) -> None:
    items = read_items(built / "items.csv")
    assert check_items(items).cells == (1, 1)
    assert check_items(items).keys_without_option == ()
    assert set(check_items(items).counts.values()) == {11}
    assert items["simulated"].sum() == 5 * 3
    assert (items.groupby("dimension")["strength"].nunique() == 3).all()
    manifest = json.loads((built / "manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["corrupted"]) == 99
    assert manifest["seed"] == 0
    # A grey photograph has no colours to change.
    assert all("camera" in name for name in manifest["unchanged"])
    with Image.open(built / "contact_sheet.png") as sheet:
        assert sheet.width > 200


def test_the_same_seed_builds_the_same_set(
    example: tuple[Path, Path], built: Path, tmp_path: Path
) -> None:
    limits = ReferenceLimits(side=48)
    build_set(
        *example, tmp_path / "again", items_per_cell=1, limits=limits, progress=False
    )
    for path in sorted((built / "dis").iterdir()):
        assert (
            path.read_bytes() == (tmp_path / "again" / "dis" / path.name).read_bytes()
        )
    assert (built / "items.csv").read_bytes() == (
        tmp_path / "again" / "items.csv"
    ).read_bytes()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"exposure": (0.6, 0.9)}, "mean luma"),
        (
            {"clipped": 0.2},
            "30% of its pixels black or white; a reference may have 20%",
        ),
        ({"sharpness": 1e6}, "is blurred"),
    ],
)
def test_limits_of_references_are_the_users(
    limits: dict[str, Any], message: str
) -> None:
    from psyprobe.tasks.r_bench.build import ReferenceLimits, check_reference

    image = np.random.default_rng(1).integers(1, 255, (300, 300, 3), dtype=np.uint8)
    image[:90] = 0
    assert check_reference(image, "photograph", ReferenceLimits())[
        "clipped"
    ] == pytest.approx(0.3)
    with pytest.raises(InputError, match=message):
        check_reference(image, "photograph", ReferenceLimits(**limits))


def test_unfit_references_end_it_or_are_counted(
    example: tuple[Path, Path], tmp_path: Path
) -> None:
    photographs = shutil.copytree(example[0], tmp_path / "photographs")
    grey = np.full((300, 300, 3), 128, np.uint8)
    for name, pixels in (
        ("astronaut.png", grey),
        ("chelsea.png", grey // 64),
        ("coffee.png", grey[:40]),
    ):
        Image.fromarray(pixels).save(photographs / name)
    (photographs / "rocket.jpg").write_bytes(
        (photographs / "rocket.jpg").read_bytes()[:500]
    )
    (photographs / "camera.png").unlink()
    for name, message in (
        ("astronaut.png", "is blurred"),
        ("chelsea.png", "mean luma of 0.008"),
        ("coffee.png", "shorter side of 40 px"),
        ("rocket.jpg", "damaged or cut off"),
        ("camera.png", "No such file"),
    ):
        lines = example[1].read_text(encoding="utf-8").splitlines()
        questions = tmp_path / f"{name}.csv"
        questions.write_text(
            "\n".join([lines[0], *(line for line in lines if line.startswith(name))]),
            encoding="utf-8",
        )
        with pytest.raises(InputError, match=message):
            build_set(photographs, questions, tmp_path / "bad", progress=False)
    Image.fromarray(
        np.random.default_rng(0).integers(40, 200, (230, 240, 3), np.uint8)
    ).save(photographs / "motorcycle_left.png")
    build = build_set(
        photographs,
        example[1],
        tmp_path / "few",
        items_per_cell=1,
        skip=True,
        progress=False,
    )
    assert len(build.skipped) == 5
    with pytest.raises(InputError, match="is not empty"):
        build_set(photographs, example[1], tmp_path / "few", skip=True, progress=False)


def test_wrong_questions_are_one_sentence(
    example: tuple[Path, Path], tmp_path: Path
) -> None:
    questions = tmp_path / "questions.csv"
    head = "image,type,question,choice,answer\n"
    for text, message in (
        ("image,type,question,answer\na.png,VQA,?,b\n", "no column 'choice'"),
        (head + "coffee.png,VQA,?,N,a\n" * 2, "asked twice of coffee.png"),
        (head + "../coffee.png,VQA,?,N,a\n", "without folders"),
        (head + "coffee.png,Essay,?,N,a\n", "type 'Essay'"),
        (head + "coffee.png,MCQ,?,A.one; B.two,C\n", "the key C and 2 options"),
        (head + "coffee.png,MCQ,?,N,A\n", "give a letter, and options"),
    ):
        questions.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            build_set(
                example[0],
                questions,
                tmp_path / message[:6],
                limits=ReferenceLimits(side=48),
                progress=False,
            )


def test_questions_about_a_set_go_to_vlmevalkit(built: Path, tmp_path: Path) -> None:
    page = write_page(tmp_path / "mine.toml", "r_bench", built)
    command = [
        "questions",
        str(page),
        "--as",
        "vlmevalkit",
        "-o",
        str(tmp_path / "out"),
    ]
    assert main(command) == 0
    table = pd.read_csv(
        tmp_path / "out" / "mine.tsv", sep="\t", dtype=str, keep_default_na=False
    )
    names = {
        f"{kind}\n{name}"
        for kind in ("ref", "dis")
        for name in read_set(built).items["name"]
    }
    assert set(table["item"]) <= names and len(table) > 100
    first = next(image for image in table["image"] if len(image) > 64)
    with Image.open(io.BytesIO(base64.b64decode(first))) as image:
        assert max(image.size) == 96


def test_a_sheet_is_written_whole_or_not_at_all(
    example: tuple[Path, Path],
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(self: Any, target: Path, **_: Any) -> None:
        Path(target).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(
        "psyprobe.tasks.r_bench.build.contact_sheet",
        lambda *_: type("Sheet", (), {"save": full})(),
    )
    with pytest.raises(PsyprobeError, match=r"contact_sheet\.png cannot be written"):
        build_set(
            *example,
            tmp_path / "set",
            items_per_cell=1,
            limits=ReferenceLimits(side=48),
            progress=False,
        )
    assert not list((tmp_path / "set").glob("*contact*"))


# -- running
# ------------------------------------------------------------------------------------------


def test_a_run_counts_what_no_judge_reads(built: Path) -> None:
    bench_run = run(built, OBSERVER)
    assert bench_run.facts["unscored"]["absolute"]["VQA"] == 33
    choices = bench_run.table[bench_run.table["task"] == "MCQ"]
    letters = choices["answer_dis"] == "B"
    assert 0 < letters.sum() < 33
    assert choices["absolute"].notna().tolist() == letters.tolist()
    assert (choices["absolute"][letters] == (choices["key"][letters] == "B")).all()
    overall = bench_run.metrics[
        (bench_run.metrics["breakdown"] == "overall")
        & (bench_run.metrics["measure"] == "absolute")
    ].iloc[0]
    assert overall["n"] == letters.sum()
    assert overall["unscored"] == 99 - letters.sum()
    assert any("No judge" in remark for remark in remarks(bench_run.facts))


def test_two_observers_are_compared_by_reference_image(built: Path) -> None:
    page = write_page(built.parent / "set.toml", "r_bench", built)
    other = pp.observer(lambda images, prompt: "B", name="b", bits=8)
    results = [run_page(page, observer) for observer in (OBSERVER, other)]
    row = pp.compare(results).rows[0]
    tables = [read_run(result).table.set_index("name") for result in results]
    scores = pd.concat([table["absolute"] for table in tables], axis=1).dropna()
    expected = scores.iloc[:, 0].mean() - scores.iloc[:, 1].mean()
    assert row.difference.mean == pytest.approx(expected)
    images = tables[0].loc[scores.index, "reference"].nunique()
    assert (row.population, row.difference.units) == ("images", images)
    assert images < len(scores)


def test_more_confidence_widens_the_intervals(built: Path) -> None:
    result = run_page(
        write_page(built.parent / "confidence.toml", "r_bench", built), OBSERVER
    )
    likely, surer = (
        pp.score(result, confidence=confidence).rows()[0].record
        for confidence in (0.9, 0.99)
    )
    assert (
        surer["absolute_low"]
        < likely["absolute_low"]
        < likely["absolute_high"]
        < surer["absolute_high"]
    )


def test_failed_verdicts_are_counted_and_in_no_mean(built: Path) -> None:
    bench_run = run(built, OBSERVER, judge=judge_by(judge_of))
    short = bench_run.table[bench_run.table["task"] == "VQA"]
    bright = short["answer_dis"] == "something bright"
    assert short.loc[bright, "absolute"].isna().all()
    assert (short.loc[~bright, "absolute"] == 0.5).all()
    assert bench_run.facts["unscored"]["absolute"]["VQA"] == bright.sum()
    assert bench_run.facts["verdicts"]["without_verdict"] > 0
    assert any("without a verdict" in remark for remark in remarks(bench_run.facts))


def test_a_score_tells_what_it_would_be_by_other_rules_and_under_a_judge(
    built: Path, tmp_path: Path
) -> None:
    page, store = (
        write_page(tmp_path / "readings.toml", "r_bench", built),
        tmp_path / "runs.sqlite",
    )
    result = run_page(page, OBSERVER, store, judge=judge_by(lambda prompt: "1"))
    letters, twos = (
        judge_by(lambda prompt: "1" if "option" in prompt else "2", "twos"),
        [],
    )
    judged = judge_replies(result, letters, store=store, progress=False)
    rows = {
        row.label: row.cells
        for row in pp.score(judged).rows()
        if row.table.endswith("read otherwise")
    }
    assert list(rows) == ["rule letter", "judge twos"]
    table = read_run(result).table
    # The first character of "the first ..." is no letter and wrong; the run's judge called it
    # right.
    words = (table["task"] == "MCQ") & (table["answer_dis"] != "B")
    by_letter = table["absolute"].where(~words, 0.0)
    assert rows["rule letter"]["differs"] == percent(words.mean(), 2)
    assert float(rows["rule letter"]["absolute"]) == pytest.approx(
        by_letter.mean(), abs=1e-4
    )
    # This judge calls all of them right.
    assert float(rows["judge twos"]["absolute"]) == 1.0
    assert rows["judge twos"]["differs"] == percent((table["absolute"] != 1).mean(), 2)
    score_by_reader = {
        reading["reader"]: reading["score"]
        for reading in pp.score(judged).to_dict()["readings"]
    }
    assert score_by_reader["judge twos"]["absolute"] == 1.0
    # Verdicts are in the store: a few are compared with new ones, and nothing is changed.
    counting = Judge(
        pp.observer(
            lambda images, prompt, system: (
                twos.append(prompt) or ("1" if "option" in prompt else "2")
            ),
            name="twos",
        )
    )
    judged_twice = judge_replies(result, counting, store=store, progress=False)
    assert len(twos) <= 8 and judged_twice["judge_reading_absolute"].equals(
        judged["judge_reading_absolute"]
    )
    assert pp.score(judged_twice).rows()[0] == pp.score(result).rows()[0]


def test_captions_are_judged_once_a_reference_and_all_else_as_often_as_said(
    built: Path,
) -> None:
    prompts: list[str] = []

    def reply(images: list[Any], prompt: str, system: str, decoding: Any) -> str:
        prompts.append(prompt)
        return "2" if "Reply with one digit and nothing else: 2" in prompt else "1"

    judge = Judge(pp.observer(reply, name="counting"), repeats=5, temperature=0.7)
    bench_run = run(built, OBSERVER, judge=judge, mcq_rule="published")
    assert (bench_run.table["absolute"] == 1).all()
    per = bench_run.verdicts.assign(
        n=[len(verdicts) for verdicts in bench_run.verdicts["read"]]
    )
    assert set(per.loc[per["caption"] >= 0, "n"]) == {1}
    assert set(per.loc[per["caption"] < 0, "n"]) == {5}
    assert len(per[per["caption"] >= 0]) == 2 * 33 * 3


def test_it_goes_on_from_the_store_and_judges_nothing_twice(
    built: Path, tmp_path: Path
) -> None:
    store = tmp_path / "runs.sqlite"
    prompts = []

    def counted(images: list[Any], prompt: str) -> str:
        if len(prompts) == 20:
            raise KeyboardInterrupt
        prompts.append(prompt)
        return model(images, prompt)

    with pytest.raises(KeyboardInterrupt):
        run(built, pp.observer(counted, name="bright", bits=8), store=store)
    first = run(built, OBSERVER, judge=judge_by(judge_of), store=store)
    prompts.clear()
    judged: list[str] = []
    judge = judge_by(lambda prompt: judged.append(prompt) or judge_of(prompt))
    second = run(
        built, pp.observer(counted, name="bright", bits=8), judge=judge, store=store
    )
    # A few of each are asked again, to see whether they would answer alike.
    assert len(prompts) == len(judged) == 8
    pd.testing.assert_frame_equal(first.table, second.table)


def test_no_silent_fallback(built: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="'published' for multiple choice needs a judge"
    ):
        run(built, OBSERVER, mcq_rule="published")
    mute = pp.observer(lambda images, prompt: "hm", name="mute", bits=8)
    with pytest.raises(InputError, match="no answer could be scored"):
        run(built, mute)


def test_bad_images_of_a_set_end_it_or_are_counted(built: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(built, tmp_path / "set")
    names = sorted(path.name for path in (folder / "dis").iterdir())
    (folder / "dis" / names[0]).unlink()
    Image.new("RGBA", (64, 64)).save(folder / "dis" / names[1])
    Image.new("P", (64, 64)).save(folder / "dis" / names[2])
    Image.new("I;16", (64, 64)).save(folder / "dis" / names[3])
    (folder / "dis" / names[4]).write_bytes(
        (folder / "dis" / names[4]).read_bytes()[:200]
    )
    with pytest.raises(InputError, match="No such file"):
        read_set(folder)
    images = read_set(folder, skip=True)
    assert len(images.skipped) == 5
    assert len(images.items) == 94
    bench_run = run(folder, OBSERVER, skip_bad=True)
    assert "5 items were left out" in " ".join(remarks(bench_run.facts))


# -- end to end
# ------------------------------------------------------------------------------------------


def test_command_against_a_server(
    built: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = pp.observer(lambda images, prompt, system: judge_of(prompt), name="judge")
    with SimulatedServer(OBSERVER) as server, SimulatedServer(judge) as judging:
        reader = {
            "observer": f"openai:{judging.model}",
            "options": {"base_url": judging.base_url},
        }
        asking = str(
            write_page(tmp_path / "r_bench.toml", "r_bench", built, judge=reader)
        )
        observer = [
            "--observer",
            f"openai:{server.model}",
            "--observer-option",
            f"base_url={server.base_url}",
        ]
        assert (
            main(["run", asking, *observer, "--plan", "--output", str(tmp_path)]) == 0
        )
        assert "198 questions about " in capsys.readouterr().out
        assert main(["run", asking, *observer, "--output", str(tmp_path)]) == 0
        assert "always A" in capsys.readouterr().out
        command = [
            "r-bench",
            "report",
            str(tmp_path / "runs.sqlite"),
            "--output",
            str(tmp_path),
        ]
        assert main(command) == 0
        out, err = capsys.readouterr()
        assert "Absolute robustness" in out
        assert "15 items are simulated" in out
        assert "without a verdict" in err
        assert "do not put scores" in err
        reading = [
            "--judge",
            reader["observer"],
            "--observer-option",
            f"base_url={judging.base_url}",
        ]
        assert main(["score", str(tmp_path / "runs.sqlite"), *reading]) == 0
        assert re.search(rf"judge {reader['observer']} +99 ", capsys.readouterr().out)
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        monkeypatch.setattr(
            "psyprobe.tasks.r_bench.figures.draw_figures", lambda *_, **__: []
        )
        request_count = sum(server.counts.values())
        assert main(["run", asking, *observer, "--output", str(tmp_path)]) == 0
        capsys.readouterr()
        assert main([*command, "--json"]) == 0
        assert (
            sum(server.counts.values()) - request_count <= 5
        )  # what the observer probes; no question
    printed = json.loads(capsys.readouterr().out)
    assert Path(printed["report"]) == tmp_path / "report.html"
    assert "the first &lt;script&gt;alert" in page
    assert "simulated" in page
    assert len(re.findall(r'src="data:image', page)) >= 9
    assert len(list(tmp_path.glob("*.pdf"))) == 4


def test_a_tiny_model_of_random_weights(built: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("tokenizers")
    from psyprobe.observers import load_observer
    from tests.observers.tiny_chat_models import llava

    observer = load_observer(f"transformers:{llava(tmp_path / 'model')}", device="cpu")
    small_set = shutil.copytree(built, tmp_path / "few")
    lines = (
        (small_set / "items.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    )
    (small_set / "items.csv").write_text(
        "".join([lines[0], lines[1], lines[34]]), encoding="utf-8"
    )
    bench_run = run(
        small_set,
        observer,
        judge=judge_by(lambda prompt: "1"),
        store=tmp_path / "r.sqlite",
    )
    assert bench_run.facts["answers"]["questions"] == 4
    assert "RANDOM WEIGHTS" in " ".join(remarks(bench_run.facts))
    write_run(bench_run, tmp_path / "out")
    facts = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert facts["observer"]["random_weights"]


# -- answers made elsewhere
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "json", "jsonl", "xlsx", "columns.json"]
)
def test_answers_of_every_kind_of_file(ending: str, tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "index": [0, 1],
            "question": ["q", "q"],
            "A": ["x", "y"],
            "answer": ["A", "B"],
            "prediction": ["B.", "NA"],
        }
    )
    path = tmp_path / f"model_R-Bench-Dis.{ending}"
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
        table.to_excel(path, index=False)
    elif ending.endswith("json"):
        table.to_json(path, orient="columns" if "columns" in ending else "records")
    elif ending == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    answers = read_answers(path)
    assert answers.to_dict() == {"0": "B.", "1": "NA"}


def test_keys_are_never_taken_for_answers(built: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="holds questions and in the column answer their keys"
    ):
        read_answers(built / "items.csv")
    for name, text, message in (
        ("a.xlsx", "no", "no Excel workbook"),
        ("a.json", "{", "is no JSON"),
        ("a.json", "[1]", "no list of objects"),
        ("a.txt", "x", "no table of answers"),
        ("a.csv", "question,prediction\nx,y\n", "no column 'name'"),
    ):
        if name.endswith("xlsx"):
            pytest.importorskip("openpyxl")
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_answers(tmp_path / name)


def test_vlmevalkit_predictions_are_scored_by_name(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = read_items(built / "items.csv")
    choices = items[items["task"] == "MCQ"]
    for kind in ("dis", "ref"):
        table = pd.DataFrame(
            {
                "index": range(33),
                "name": choices["name"],
                "question": "?",
                "answer": "A",
            }
        )
        table.assign(prediction=list(choices["key"])).to_csv(
            tmp_path / f"{kind}.tsv", sep="\t", index=False
        )
    files = [f"{kind}={tmp_path}/{kind}.tsv" for kind in ("dis", "ref")]
    command = [
        "r-bench",
        "score",
        str(built / "items.csv"),
        "--task",
        "MCQ",
        "--mcq-rule",
        "letter",
    ]
    models = [
        argument
        for name in ("perfect", "again")
        for argument in ("--model", name, *files)
    ]
    assert main([*command, *models, "--output", str(tmp_path / "out")]) == 0
    # All of 44 right: Wilson's interval of a share has a width.
    assert "1.0000 [0.920, 1.000]" in capsys.readouterr().out
    differences = pd.read_csv(tmp_path / "out" / "differences.csv")
    assert (differences["difference"] == 0).all()
    assert (tmp_path / "out" / "bars_step_absolute.png").stat().st_size > 1000


def test_answers_made_elsewhere_are_judged(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = read_items(built / "items.csv")
    for kind in ("dis", "ref"):
        answers = pd.DataFrame(
            {
                "name": items["name"],
                "reply": ["A" if t == "MCQ" else "it" for t in items["task"]],
            }
        )
        answers.to_csv(tmp_path / f"{kind}.csv", index=False)
    files = [f"{kind}={tmp_path}/{kind}.csv" for kind in ("dis", "ref")]
    judge = pp.observer(lambda images, prompt, system: "1", name="judge")
    with SimulatedServer(judge) as server:
        command = [
            "r-bench",
            "score",
            str(built / "items.csv"),
            "--model",
            "mine",
            *files,
            "--format",
            "csv",
        ]
        options = [
            "--judge",
            f"openai:{server.model}",
            "--judge-option",
            f"base_url={server.base_url}",
        ]
        assert main([*command, *options]) == 0
    out, err = capsys.readouterr()
    assert "cases were judged, 0 without a verdict" in err
    assert "mine,absolute,task,VQA,0.5,33" in out


def test_a_failed_judgement_spares_what_a_rule_has_decided() -> None:
    items = pd.DataFrame(
        {
            "name": ["a", "b"],
            "question": "?",
            "options": [("x", "y")] * 2,
            "key": ["A", "A"],
            "task": "MCQ",
            "quality": None,
            "dimension": 1,
            "strength": "low",
        }
    )
    dis, ref = (
        pd.Series(["A", "Apple?"], index=["a", "b"]),
        pd.Series(["B", "A"], index=["a", "b"]),
    )
    none = pd.Series([np.nan, np.nan], index=["a", "b"])
    judged = {"dis": none, "ref": none, "com": none}
    table = score_items(
        items,
        answers={"dis": dis, "ref": ref},
        judged=judged,
        mcq_rule="letter_then_judge",
    )
    assert table["absolute"].fillna(-1).tolist() == [1, -1]
    assert table["relative"].fillna(-1).tolist() == [0, -1]
    metrics = rbench_metrics(table)
    assert np.isfinite(metrics["value"]).all()


def test_unreachable_judge_is_loud(built: Path) -> None:
    from psyprobe.observers import load_observer

    judge = Judge(
        load_observer("openai:none", base_url="http://127.0.0.1:9/v1", retries=0)
    )
    with pytest.raises(PsyprobeError):
        run(built, OBSERVER, judge=judge)
