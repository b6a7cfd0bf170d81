"""What the goldens are of. Nothing here knows what the package calls things: that is for
`names`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.goldens import names
from tests.goldens.names import Golden

HERE = Path(__file__).parent
NINE = (
    "gabor_achromatic",
    "gabor_red_green",
    "gabor_yellow_violet",
    "noise_achromatic",
    "luminance",
    "area",
    "mask_coherent",
    "mask_incoherent",
    "contrast_matching",
)


@dataclass(frozen=True)
class Bench:
    """A folder to work in, and what several goldens share."""

    folder: Path

    @cached_property
    def plain(self) -> dict[str, Any]:
        return {
            name: names.run(name, "pixels", store=self.folder / "pixels.sqlite")
            for name in NINE
        }

    @cached_property
    def published(self) -> dict[str, Any]:
        return {name: names.run(f"{name}_published", "pixels") for name in NINE}

    @cached_property
    def photographs(self) -> tuple[Path, Path]:
        """The example's photographs, made small without resampling, and its questions."""
        folder, questions = names.photographs(self.folder)
        for path in folder.iterdir():
            with Image.open(path) as opened:
                pixels = np.asarray(opened)
            step = max(pixels.shape[:2]) // 96
            Image.fromarray(np.ascontiguousarray(pixels[::step, ::step])).save(path)
        return folder, questions


def under(*parts: tuple[str, Golden]) -> Golden:
    return {
        f"{prefix}/{key}": value
        for prefix, golden in parts
        for key, value in golden.items()
    }


# -- encoders and metrics
# ------------------------------------------------------------------------------------------


def nine_tests(bench: Bench) -> Golden:
    return _results(bench.plain)


def nine_tests_published(bench: Bench) -> Golden:
    return _results(bench.published)


def _results(results: dict[str, Any]) -> Golden:
    parts = []
    for name, result in results.items():
        parts.append((name, names.variables(result)))
        for scored in names.scores(result):
            parts.append((f"{name}/score", names.score_numbers(scored)))
    return under(*parts)


def tables(bench: Bench) -> Golden:
    """Score tables and scoreboards of the nine tests, a run for scores alone, and one with
    variants."""
    short = [
        names.run(
            experiment, "pixels", score_only=True, store=bench.folder / "pixels.sqlite"
        )
        for experiment in names.suite("cai2025")
    ]
    varied = names.run(
        "gabor_achromatic", "pixels", score_only=True, variants={"phase": [0, 90]}
    )
    golden: Golden = {
        "score only": names.score_table(
            [score for result in short for score in names.scores(result)]
        )
    }
    for page_version, results in (
        ("plain", bench.plain),
        ("published", bench.published),
    ):
        listed = [
            score for result in results.values() for score in names.scores(result)
        ]
        golden[f"{page_version}/scores"] = names.score_table(listed)
        for format in ("text", "json"):
            golden[f"{page_version}/scoreboard/{format}"] = names.scoreboard(
                results.values(), format
            )
    golden["beside the paper"] = names.scoreboard(
        bench.published.values(), "text", published=True, sort="area_published"
    )
    (scored,) = names.scores(varied)
    golden["variants/table"] = names.score_table([scored])
    return golden | under(
        ("variants", names.variables(varied)),
        ("variants/score", names.score_numbers(scored)),
    )


# -- images
# ------------------------------------------------------------------------------------------


def certificates(bench: Bench) -> Golden:
    return under(
        *(
            (name, names.certificate(name, peak=400.0, levels=3))
            for name in names.stimuli()
        )
    )


def files_and_displays(bench: Bench) -> Golden:
    ramp = np.linspace(0, 1, 257).reshape(1, -1)
    golden = under(("displays", names.displays(ramp)))
    rng = np.random.default_rng(0)
    for dtype in (np.uint8, np.uint16):
        maximum = np.iinfo(dtype).max
        for kind, values in (
            ("grey ramp", np.outer(np.ones(16), ramp[0])),
            ("colour noise", rng.random((24, 40, 3))),
        ):
            codes = np.rint(values * maximum).astype(dtype)
            for noise in (False, True):
                data = names.png(codes, noise=noise)
                name = (
                    f"png/{np.dtype(dtype).name}/{kind}/{'noise' if noise else 'plain'}"
                )
                golden[f"{name}/sha256"] = names.digest(np.frombuffer(data, np.uint8))
                golden[f"{name}/bytes"] = len(data)
    return golden


# -- questions in words
# ------------------------------------------------------------------------------------------

TWO_IMAGES = (
    ('"yes_no"', '"two_interval"'),
    (
        '["base", { id = "blank", text = "Is it uniform?", polarity = -1 }]',
        '"two_image"',
    ),
    ("catch       = 0.1", "catch       = 0"),
    ("guess    = 0.05", "guess    = 0.5"),
)
#: Adaptive designs choose among more contrasts.
FINE = ("n = 6", "n = 11")
DESIGNS = {
    "constant": (),
    "ladder": (),
    "quest_plus": (
        FINE,
        ("[human]", "options     = { n_max = 14, stop = 0.2 }\n\n[human]"),
    ),
    "quick_csf": (
        FINE,
        ("[human]", "options     = { n_max = 60, stop = 0.2 }\n\n[human]"),
    ),
}


def words(bench: Bench) -> Golden:
    sure, unsure = _observer(1), _observer(1, answer_mass=0.3)
    combinations = [
        (design, readout, sure) for design in DESIGNS for readout in ("text", "p_yes")
    ]
    combinations += [("constant", "auto", sure), ("constant", "auto", unsure)]
    return _words(bench.folder / "words", combinations, ())


def words_two_intervals(bench: Bench) -> Golden:
    # In text these leave every curve an interval with an end, which a score of fewer than three
    # wordings needs.
    readouts = {
        "constant": "text",
        "ladder": "p_yes",
        "quest_plus": "p_yes",
        "quick_csf": "text",
    }
    combinations = [
        (design, readout, _observer(1)) for design, readout in readouts.items()
    ]
    return _words(bench.folder / "two intervals", combinations, TWO_IMAGES)


def _observer(seed: int, answer_mass: float = 0.98) -> Any:
    mind = {
        "yes_bias": 0.05,
        "lapse": 0.02,
        "logit_sd": 0.3,
        "prompt_sd": 0.1,
        "refusal": 0.02,
        "unparsed": 0.02,
    }
    return names.simulated(
        "watson-malo", deg=2.0, seed=seed, answer_mass=answer_mass, **mind
    )


def _words(
    folder: Path,
    combinations: list[tuple[str, str, Any]],
    changes: Sequence[tuple[str, str]],
) -> Golden:
    """Runs of designs and readouts: what was asked and said, plans and scores."""
    parts = []
    for i, (design, readout, observer) in enumerate(combinations):
        changes_of_design = (
            *DESIGNS[design],
            ('"constant"', f'"{design}"'),
            ('"auto"', f'"{readout}"'),
        )
        page = _page(folder, *changes, *changes_of_design)
        result = names.run(page, observer)
        (scored,) = names.scores(result, resamples=100)
        name = f"{i} {design} {readout}"
        parts += [
            (name, names.trials(result)),
            (
                f"{name}/score",
                {"printed": names.score_table([scored]), **names.score_numbers(scored)},
            ),
            (f"{name}/plan", names.plan(page, observer)),
        ]
    return under(*parts)


def _page(folder: Path, *changes: tuple[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    text = (HERE / "experiments" / "words.toml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    shutil.copy(HERE / "experiments" / "small_noise.toml", folder)
    path = folder / "words.toml"
    path.write_text(text, encoding="utf-8")
    return path


# -- benchmarks
# ------------------------------------------------------------------------------------------


def r_bench(bench: Bench) -> Golden:
    """A set built from photographs; a run without a judge and with two; and its answers as files,
    scored by command."""
    place = names.r_bench_set(*bench.photographs, bench.folder / "set")
    golden: Golden = {
        "set/items.csv": (place / "items.csv").read_text(encoding="utf-8")
    }
    for kind in ("ref", "dis"):
        for path in sorted((place / kind).iterdir()):
            with Image.open(path) as opened:
                golden[f"set/{kind}/{path.name}/sha256"] = names.digest(
                    np.asarray(opened)
                )
    observer = names.answering(_sees_brightness, "bright")
    judge = names.judge(
        lambda prompt, seed: "cannot say" if "bright" in prompt else "1", "judge"
    )
    often = names.judge(
        lambda prompt, seed: "0122 x"[(len(prompt) + seed) % 6],
        "moody",
        repeats=5,
        temperature=0.7,
    )
    runs = {
        "letters": names.r_bench(place, observer),
        "judged": names.r_bench(place, observer, judge=judge),
        "published": names.r_bench(
            place, observer, judge=often, mcq_rule="published", confidence=0.95
        ),
    }
    files = _r_bench_files(bench.folder, runs["letters"])
    for rule in ("published", "judge"):
        golden[f"printed/{rule}"] = names.r_bench_printed(
            place / "items.csv", "LLaVA1.5", files, rule
        )
    return golden | under(*runs.items())


def _r_bench_files(folder: Path, run: Golden) -> dict[str, Path]:
    """Answers of a run as others write them, and judgements of our own."""
    files = {}
    for kind in ("dis", "ref"):
        replies = zip(run["items/name"], run[f"items/answer_{kind}"], strict=True)
        files[kind] = folder / f"{kind}.jsonl"
        files[kind].write_text(
            "".join(json.dumps({"name": n, "reply": r}) + "\n" for n, r in replies),
            encoding="utf-8",
        )
    for i, kind in enumerate(("judged_dis", "judged_ref", "judged_com")):
        lines = [
            f"{name},{(k * k + i) % 3 / 2}" for k, name in enumerate(run["items/name"])
        ]
        files[kind] = folder / f"{kind}.csv"
        files[kind].write_text(
            "\n".join(["name,result", *lines]) + "\n", encoding="utf-8"
        )
    return files


def _sees_brightness(images: list[Any], prompt: str, system: str) -> str:
    level = images[0].mean()
    if "letter" in prompt:
        return (
            "B"
            if level > 0.5
            else "A."
            if level > 0.4
            else "(C)"
            if level > 0.3
            else "the first"
        )
    return f"something {'bright' if level > 0.4 else 'dark'}"


#: Colours on the natural image of a pair, and on the manipulated one.
PAIRS = {
    1: ("red", "green"),
    2: ("blue", "red"),
    3: ("green", "blue"),
    4: ("red", "blue"),
}
LIGHT = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200)}


def mvp_bench(bench: Bench) -> Golden:
    """Runs of an observer that errs, in both ways to show two images; and its replies as a file,
    scored by command."""
    folder = bench.folder / "mvp"
    questions = _mvp_questions(folder)
    observer = names.answering(_sees_colours, "sighted")
    judge = names.judge(
        lambda prompt, seed: "Yes" if "it is." in prompt else "Unknown", "reader"
    )
    runs = {
        cross: names.mvp_bench(
            questions, folder, observer, judge, folder / f"{cross}.jsonl", system, cross
        )
        for cross, system in (("file", ""), ("two_images", "commonsense"))
    }
    printed: Golden = {
        parser: names.mvp_bench_printed(questions, folder / "file.jsonl", parser)
        for parser in ("rule", "lenient")
    }
    return under(*runs.items(), ("printed", printed))


def _mvp_questions(folder: Path) -> Path:
    rows: list[dict[str, Any]] = []
    for name in ("Single_Images", "Cross_Images"):
        (folder / name).mkdir(parents=True)
    options = "\n".join(
        f"{letter}. {colour}" for letter, colour in zip("ABC", LIGHT, strict=True)
    )
    for pair, colours in PAIRS.items():
        planes = [
            np.full((16, 16, 3), LIGHT[colour], dtype=np.uint8) for colour in colours
        ]
        for plane in planes:
            plane[0, 0] = pair  # no two files are alike
        for kind, plane in zip("se", planes, strict=True):
            Image.fromarray(plane).save(folder / "Single_Images" / f"{pair}_{kind}.png")
        Image.fromarray(np.hstack(planes)).save(
            folder / "Cross_Images" / f"{pair}_concat.png"
        )
        single, joined = f"Single_Images/{pair}", f"Cross_Images/{pair}_concat.png"
        for level, colour in zip(("low", "high"), colours, strict=True):
            question = f"Is it {colour}?\nPlease answer yes or no."
            for kind, shown_colour in zip("se", colours, strict=True):
                answer = "yes" if shown_colour == colour else "no"
                rows.append(
                    _mvp_row(
                        f"{single}_{kind}.png",
                        question,
                        answer,
                        f"y/n-{kind}",
                        level,
                        pair,
                    )
                )
        question = f"What is it now?\n{options}\nAnswer with the letter."
        key = "ABC"[list(LIGHT).index(colours[1])]
        rows.append(_mvp_row(f"{single}_e.png", question, key, "mcq-e", "high", pair))
        for level in ("low", "high"):
            rows.append(_mvp_row(joined, question, key, "mcq-cross", level, pair))
    path = folder / "questions.json"
    lines = (json.dumps({"question_id": i, **row}) + "\n" for i, row in enumerate(rows))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _mvp_row(
    image: str, question: str, answer: str, kind: str, level: str, pair: int
) -> dict[str, Any]:
    return {
        "image": image,
        "question": question,
        "answer": answer,
        "type": kind,
        "level": level,
        "id": pair,
    }


def _sees_colours(images: list[Any], prompt: str, system: str) -> str:
    """Names the colour of an image or of two halves; of pairs 3 and 4 it errs or says it in ways
    hard to read."""
    colours, pair = list(LIGHT), round(float(images[0][0, 0, 0]) * 255)
    halves = images if len(images) == 2 else np.array_split(images[0], 2, axis=1)
    colours_seen = [colours[int(np.argmax(half.mean(axis=(0, 1))))] for half in halves]
    lines = prompt.split("\n")
    if len(lines) == 2:
        right = "Yes" if colours_seen[0] in lines[0] else "No"
        hard = {3: "Perhaps, it is." if right == "Yes" else "It might be", 4: "No"}
        return hard.get(pair, f"{right}, I think" if system else right)
    letter = next(line[0] for line in lines[1:-1] if colours_seen[-1] in line)
    hard = {3: f"({letter})", 4: "B"}
    return hard.get(pair, f"{letter}. {colours_seen[-1]}" if system else letter)


def judge_verdicts(bench: Bench) -> Golden:
    cases = [
        ("short", "rbench_short", "What is it?", "a dog", "a hound"),
        ("choice", "rbench_choice", "Which?\nA. one\nB. two", "B. two", "the second"),
        ("caption", "rbench_caption", "Describe it.", "a dog on grass", "a dog"),
        ("letter", "choice_letter", "Which?\nA. one\nB. two", "", "two"),
        ("open", "yes_no", "Is it a dog?", "", "it barks"),
    ]
    reply_by_case = {
        "short": "1",
        "choice": "2",
        "caption": "Score: 1.",
        "letter": "(B)",
        "open": "Yes.",
    }
    replies = list(reply_by_case.values())

    def once(prompt: str, seed: int | None) -> str:
        return next(
            (
                reply
                for case, reply in zip(cases, replies, strict=True)
                if case[4] in prompt
            ),
            "no idea",
        )

    often = names.judge(
        lambda prompt, seed: ["2", "0", "yes", "B", "1", "2"][(len(prompt) + seed) % 6],
        "moody",
        7,
        1,
    )
    return under(
        ("once", names.verdicts(cases, names.judge(once, "says"))),
        ("often", names.verdicts(cases, often)),
    )


def robustness(bench: Bench) -> Golden:
    folder, _ = bench.photographs
    images = sorted(folder.iterdir())[:2]
    return names.profile(
        images,
        "pixels",
        ["gaussian_filter", "white_noise", "jpeg", "minimum_darken"],
        seed=3,
    )


#: Every golden by name: of its files and of its test.
CASES: dict[str, Callable[[Bench], Golden]] = {
    case.__name__: case
    for case in (
        nine_tests,
        nine_tests_published,
        tables,
        certificates,
        files_and_displays,
        words,
        words_two_intervals,
        r_bench,
        mvp_bench,
        judge_verdicts,
        robustness,
    )
}
