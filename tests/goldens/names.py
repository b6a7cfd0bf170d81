"""What the package calls things today. After a rename this file changes; cases, data and test stay
as they are.

Each function gives a flat mapping of golden names, which are those of the day when the data was
written, to values.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import psyprobe as pp
from psyprobe.analysis import score_table as _score_table
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.words.trial_table import trials as _trials
from psyprobe.cli import main
from psyprobe.experiment import load_suite
from psyprobe.files.images import encode_png
from psyprobe.files.units import unit_symbol
from psyprobe.light.display import display_presets
from psyprobe.probes.results import score_layers
from psyprobe.probes.results import scoreboard as _scoreboard
from psyprobe.running.task import stimulus_axis_of
from psyprobe.stimulus.catalogue import catalogue_names
from psyprobe.tasks.items import Case, Judge, judge_cases, read_verdicts
from psyprobe.tasks.mvp_bench import (
    mvp_metrics,
    mvp_tables,
    parse_replies,
    read_predictions,
    read_questions,
    with_categories,
    with_rotations,
)
from psyprobe.tasks.mvp_bench.probe import read_run as read_mvp_run
from psyprobe.tasks.r_bench.build import ReferenceLimits, build_set, write_example
from psyprobe.tasks.r_bench.metrics import rbench_table
from psyprobe.tasks.r_bench.probe import read_run as read_r_run
from psyprobe.tasks.r_bench.probe import remarks
from tests.item_pages import run_page, write_page

#: A value of a golden: an array of float64 or text, or what JSON can hold that is neither list nor
#: mapping.
Value = np.ndarray | str | float | int | bool | None
Golden = dict[str, Value]

#: Today's name of a field of a score, certificate, plan or table (one level of nesting) to its
#: golden name.
RENAMED: Mapping[str, str] = {"unevenness": "levelness", "at": "x"}

#: Stimuli of the catalogue that came after the data.
NEW_STIMULI = {
    "contour",
    "dots_coherence",
    "elements",
    "film_pan",
    "gabor_masked",
    "glass_pattern",
    "glyph_capitals",
    "landolt",
    "letter_flanked",
    "letter_sloan",
    "photograph",
    "square_achromatic",
    "texture",
    "tumbling_e",
}

#: Golden name of a variable or coordinate to today's, and to today's names of its dimensions in the
#: stored order; LEVEL stands for the level that a result was scored along.
_LINE, _GRID = ("scored_LEVEL", "multiplier"), ("LEVEL", "contrast")
VARIABLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "response": ("response", ("layer", "measure", *_GRID)),
    "response_by_variant": (
        "response_by_variant",
        ("variant", "layer", "measure", *_GRID),
    ),
    "along": ("scored_response", ("layer", "measure", *_LINE)),
    "along_by_variant": (
        "scored_response_by_variant",
        ("variant", "layer", "measure", *_LINE),
    ),
    "along_contrast": ("scored_contrast", _LINE),
    "human_sensitivity": ("human_sensitivity", ("scored_LEVEL",)),
    "human_curve": ("human_curve", ("curve_LEVEL",)),
    "pixels_response": ("pixels_response", ("measure", *_GRID)),
    "pixels_along": ("pixels_scored_response", ("measure", *_LINE)),
    "noise_floor": ("noise_floor", ("layer", "measure")),
    "reference_response": (
        "reference_response",
        ("layer", "measure", "reference_contrast"),
    ),
    "pixels_reference_response": (
        "pixels_reference_response",
        ("measure", "reference_contrast"),
    ),
    "human_match": ("human_match", ("reference_contrast", "measured_LEVEL")),
    **{
        name: (name, (name,))
        for name in ("layer", "measure", "contrast", "multiplier", "variant")
    },
    "reference_contrast": ("reference_contrast", ("reference_contrast",)),
    "x": ("LEVEL", ("LEVEL",)),
    "score_x": ("scored_LEVEL", ("scored_LEVEL",)),
    "curve_x": ("curve_LEVEL", ("curve_LEVEL",)),
    "x_measured": ("measured_LEVEL", ("measured_LEVEL",)),
}

#: Golden name to today's of columns of runs in words.
COLUMNS = {
    "shown": "was_shown",
    "text_asked": "reply_requested",
    "read": "reading",
    "said": "response",
}
#: The same as `VARIABLES` of runs in words, whose one dimension is the trial.
TRIALS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    name: (COLUMNS.get(name, name), ("trial",))
    for name in (
        "frequency",
        "contrast",
        "delivered_contrast",
        "coherent_gain",
        "total_contrast",
        "catch",
        "shown",
        "refused",
        "repeat",
        "order",
        "image_seed",
        "prompt",
        "prompt_text",
        "polarity",
        "text",
        "text_asked",
        "first_tokens",
        "read",
        "p_yes",
        "logit",
        "answer_mass",
        "logit_censored",
        "readout",
        "said",
        "tokens_in",
        "tokens_out",
        "cost",
        "finish",
    )
}

#: The same of a robustness profile.
PROFILE: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "response": (
        "response",
        ("layer", "measure", "photograph", "dimension", "strength"),
    ),
    **{
        name: (name, (name,))
        for name in ("layer", "measure", "photograph", "dimension", "strength")
    },
    **{name: (name, ("dimension",)) for name in ("step", "group", "simulated")},
}

#: Golden name of an attribute to today's. Those that hold JSON are taken apart; digests, cards and
#: versions left out.
ATTRIBUTES: Mapping[str, str] = {
    name: name
    for name in (
        "experiment",
        "observer",
        "random_weights",
        "contrast_kind",
        "multiplier_of",
        "score_measure",
        "match_method",
        "reference_frequency",
        "human_model",
        "ppd",
        "size",
        "variants",
        "display",
        "probe",
        "prompts",
        "delivery",
        "readout",
        "design",
        "design_estimates",
    )
}


# -- experiments
# ------------------------------------------------------------------------------------------


def run(experiment: str | Path, observer: Any, **options: Any) -> xr.Dataset:
    # One showing, as before pages drew eight.
    options.setdefault("variants", {})
    return pp.run(experiment, observer, progress=False, **options)


def suite(name: str) -> list[Any]:
    return list(load_suite(name))


def plan(experiment: str | Path, observer: Any) -> Golden:
    run_plan = pp.plan(experiment, observer)
    return {"printed": str(run_plan), **flat(run_plan.to_dict())}


def variables(result: xr.Dataset) -> Golden:
    (level,) = json.loads(result.attrs["levels"])
    along = result[level if level in result.coords else f"scored_{level}"].attrs
    values = {
        "x_name": level,
        "x_unit": unit_symbol(along),
        "x_label": along["long_name"],
    }
    # Attributes that only results of the other probe had then.
    new = (
        {"contrast_kind", "contrast_label"}
        if result.attrs["probe"] == "matching"
        else {"probe"}
    )
    variables_by_name = {
        golden: (
            today.replace("LEVEL", level),
            tuple(dim.replace("LEVEL", level) for dim in dims),
        )
        for golden, (today, dims) in VARIABLES.items()
    }
    values |= _attributes(result, without=new)
    if "contrast_label" not in new:
        values["contrast_label"] = stimulus_axis_of(result).label
    return _arrays(result, variables_by_name) | {
        f"attributes/{name}": value for name, value in values.items()
    }


def trials(result: xr.Dataset) -> Golden:
    return _arrays(_trials(result), TRIALS) | {
        f"attributes/{name}": value for name, value in _attributes(result).items()
    }


def scores(result: xr.Dataset, **options: Any) -> list[Any]:
    return list(score_layers(result, **options))


def score_numbers(score: Any) -> Golden:
    values = dict(score.to_dict())
    # Scores of words name their level, which could be nothing but frequency then.
    level = values.pop("level", None)
    values.pop("unit", None)
    # Since then it is said which angles mean nothing; of the pixels none does.
    assert not values.pop("undefined", 0) and not values.pop("turned", 0)
    # Nobody was a person.
    assert not values.pop("sessions", ()) and not any(
        row.pop("unsure", False) for row in values.get("curve", ())
    )
    for row in values.get("curve", ()):
        row[level] = row.pop("value")
    return flat(values)


def score_table(scores: Iterable[Any]) -> str:
    # What is read is no longer called as it is typed.
    return _score_table(scores).replace("against Watson-Malo", "against watson_malo")


def scoreboard(results: Iterable[Any], format: str, **options: Any) -> str:
    return _scoreboard(results, **options).table(format)


# -- stimuli, displays, files
# ----------------------------------------------------------------------------------------


def stimuli() -> list[str]:
    return [name for name in catalogue_names("stimuli") if name not in NEW_STIMULI]


def certificate(name: str, peak: float, levels: int) -> Golden:
    """Certificates and pixels of one image as it stands in the catalogue, and of levels from end to
    end as a batch."""
    page = pp.load_stimulus(name)
    varied = {
        level: values[np.linspace(0, len(values) - 1, levels).astype(int)]
        for level, values in page.levels.items()
    }
    single, batch = page.spec().draw(), page.spec(**varied).draw()
    measured = {
        "one": (single, single.measure(pp.Display(peak=peak))),
        "levels": (batch, batch.measure()),
    }
    golden: Golden = {}
    for label, (stimulus, certificate) in measured.items():
        golden[f"{label}/printed"] = repr(certificate)
        golden[f"{label}/space"] = stimulus.space
        golden[f"{label}/pixels/sha256"] = digest(
            np.asarray(stimulus.pixels, np.float64)
        )
        golden |= {
            f"{label}/{key}": value
            for key, value in flat(certificate.to_dict()).items()
        }
    return golden


def png(codes: np.ndarray, **options: Any) -> bytes:
    return encode_png(codes, **options)


def displays(ramp: np.ndarray) -> Golden:
    """Drive of a ramp over the whole range of each preset, in both precisions, and the light that
    it makes again."""
    golden: Golden = {}
    for name in sorted(display_presets()):
        display = pp.Display.preset(name)
        light = display.floor + ramp * (display.ceiling - display.floor)
        golden |= {
            f"{name}/{key}": value for key, value in flat(display.to_dict()).items()
        }
        for dtype in ("float32", "float64"):
            drive = np.asarray(display.encode(light, dtype=dtype))[..., 0]
            golden[f"{name}/{dtype}/drive/sha256"] = digest(drive)
            golden[f"{name}/{dtype}/drive"] = drive.astype(np.float64)
            golden[f"{name}/{dtype}/light"] = np.asarray(
                display.decode(drive), np.float64
            )
    return golden


# -- observers and judges
# ------------------------------------------------------------------------------------------


def simulated(name: str, **options: Any) -> Any:
    return pp.load_observer(f"simulated:{name}", **options)


def answering(function: Callable[[list[Any], str, str], str], name: str) -> Any:
    """An observer that answers what a function of images, prompt and system text says."""

    def reply(images: list[Any], prompt: str, system: str) -> str:
        return function(images, prompt, system)

    return pp.observer(reply, name=name, bits=8)


def judge(
    function: Callable[[str, int | None], str],
    name: str,
    repeats: int = 1,
    temperature: float = 0.0,
) -> Any:
    """A judge that says what a function of prompt and seed says."""

    def reply(images: list[Any], prompt: str, system: str, decoding: Any) -> str:
        return function(prompt, decoding.seed)

    return Judge(pp.observer(reply, name=name), repeats, temperature)


def verdicts(cases: Sequence[tuple[str, str, str, str, str]], by: Any) -> Golden:
    """Judge cases (name, prompt of the judge, question, key, answer)."""
    verdicts = judge_cases([Case(*case) for case in cases], by, progress=False)
    return flat(
        {
            name: {
                "read": list(verdict.values),
                "unread": list(verdict.unread),
                "failed": verdict.failed,
                "majority": verdict.majority,
                "mean": verdict.mean
                if verdict.values
                and all(isinstance(value, float) for value in verdict.values)
                else None,
            }
            for name, verdict in verdicts.items()
        }
    )


# -- benchmarks
# ------------------------------------------------------------------------------------------


def photographs(folder: Path) -> tuple[Path, Path]:
    """The folder of example photographs, and the file of questions about them."""
    return write_example(folder)


def r_bench_set(photographs: Path, questions: Path, folder: Path) -> Path:
    build_set(
        photographs,
        questions,
        folder,
        items_per_cell=1,
        limits=ReferenceLimits(side=48),
        progress=False,
    )
    return folder


def r_bench(
    folder: Path,
    observer: Any,
    judge: Any = None,
    confidence: float = 0.9,
    **options: Any,
) -> Golden:
    """Scores of items, metrics and tables of a run."""
    page = write_page(
        folder.parent / f"{folder.name}.toml", "r_bench", folder, **options
    )
    run = read_r_run(run_page(page, observer, judge=judge), confidence)
    # A quality that nobody rated is NaN today; it was None.
    quality = run.table["quality"].astype(object)
    items = run.table.assign(quality=quality.where(quality.notna(), None))
    counted = {
        name: run.facts[name]
        for name in ("items", "simulated_items", "answers", "verdicts", "unscored")
    }
    # Nothing was told of replies that were cut off.
    counted["verdicts"] = {
        name: count
        for name, count in counted["verdicts"].items()
        if name != "cut_replies"
    }
    tables = {
        format: rbench_table({"observer": run.metrics}, format)
        for format in ("text", "csv")
    }
    return flat(
        {
            "items": _frame(items),
            "metrics": _frame(run.metrics),
            "verdicts": _frame(run.verdicts),
            "facts": counted,
            "remarks": remarks(run.facts),
            "table": tables,
        }
    )


def mvp_bench(
    questions: Path,
    images: Path,
    observer: Any,
    judge: Any,
    predictions: Path,
    system: str,
    cross: str,
) -> Golden:
    """Of a run with all rotations, whose open replies a judge reads: replies, and metrics and
    tables by each parser."""
    options = {
        "questions": [questions.name],
        "rotations": True,
        "system": system,
        "cross": cross,
    }
    page = write_page(images / f"{cross}.toml", "mvp_bench", images, **options)
    result = run_page(page, observer, judge=judge)
    table, replies = with_rotations(read_questions(questions)), read_mvp_run(result)
    judged = replies[["question_id", "reply", "judge"]].assign(
        place=range(len(replies))
    )
    judged.rename(columns={"reply": "output", "judge": "extracted (GPT)"}).to_json(
        predictions, orient="records", lines=True
    )
    metrics = {
        parser: mvp_metrics(with_categories(parse_replies(table, judged, parser)))
        for parser in ("rule", "rule+judge", "lenient", "lenient+judge")
    }
    return flat(
        {
            "questions": _frame(table),
            "replies": _frame(judged),
            "failed": sum(
                verdict.failed
                for verdict in read_verdicts(result.attrs["judged"]).values()
            ),
            "read again": _frame(read_predictions(predictions)),
            "metrics": {parser: _frame(frame) for parser, frame in metrics.items()},
            "tables": {
                format: mvp_tables(metrics, format) for format in ("text", "csv")
            },
        }
    )


def mvp_bench_printed(questions: Path, predictions: Path, parser: str) -> str:
    return _printed(
        "mvp-bench",
        questions,
        "--rotations",
        "--model",
        "saved",
        predictions,
        "--parser",
        parser,
    )


def r_bench_printed(
    items: Path, model: str, answers: Mapping[str, Path], rule: str
) -> str:
    files = [f"{kind}={path}" for kind, path in answers.items()]
    return _printed(
        "r-bench", "score", items, "--model", model, *files, "--mcq-rule", rule
    )


def profile(
    photographs: Sequence[Path], observer: str, dimensions: Sequence[str], seed: int
) -> Golden:
    folder = photographs[0].parent.with_name("profiled")
    folder.mkdir()
    for path in photographs:
        shutil.copy(path, folder)
    page = folder.with_suffix(".toml")
    write_page(
        page, "corruption_profile", folder, corruptions=list(dimensions), seed=seed
    )
    return _arrays(run(page, observer), PROFILE)


# -- from our types to plain ones
# ------------------------------------------------------------------------------------


def digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def flat(value: Any, name: str = "") -> Golden:
    """Nested mappings and sequences as one mapping, levels divided by /; lists of numbers as
    arrays."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        parts = {
            RENAMED.get(str(key), str(key)): part
            for key, part in value.items()
            if key != "neighbours"
        }
    elif isinstance(value, list | tuple):
        if value and all(
            isinstance(part, int | float) and not isinstance(part, bool)
            for part in value
        ):
            return {name: np.array(value, np.float64)}
        parts = {str(i): part for i, part in enumerate(value)} or {"": "empty"}
    else:
        return {name: value.item() if isinstance(value, np.generic) else value}
    golden: Golden = {}
    for key, part in parts.items():
        golden |= flat(part, f"{name}/{key}" if name else key)
    return golden


def _arrays(
    result: xr.Dataset, names: Mapping[str, tuple[str, tuple[str, ...]]]
) -> Golden:
    result = join_measures(result)
    return {
        golden: _plain(result[today].transpose(*dims).values)
        for golden, (today, dims) in names.items()
        if today in result.variables
    }


def _attributes(result: xr.Dataset, without: Collection[str] = ()) -> Golden:
    attributes: Golden = {}
    for golden, today in ATTRIBUTES.items():
        value = None if golden in without else result.attrs.get(today)
        if isinstance(value, str) and value[:1] in ("{", "["):
            value = json.loads(value)
        if golden == "design_estimates" and value:
            value = {
                prompt: {
                    "frequencies" if name == "values" else name: value
                    for name, value in estimate.items()
                }
                for prompt, estimate in value.items()
            }
        if value is not None:
            attributes |= flat(value, golden)
    return attributes


def _frame(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return {
        str(RENAMED.get(str(name), name)): _plain(table[name].to_numpy())
        for name in table.columns
    }


def _plain(values: np.ndarray) -> np.ndarray:
    """Numbers as float64, all else as text."""
    return (
        values.astype(np.float64)
        if values.dtype.kind in "fiub"
        else np.array([str(value) for value in values], "U")
    )


def _printed(*words: object) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main([str(word) for word in words]) == 0
    return out.getvalue()
