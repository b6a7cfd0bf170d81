"""Whatever stands in a file, its reader says what is wrong with it, in one sentence, and soon.

    python benchmarks/fuzz_readers.py [--seconds 600] [--readers page table ...] [--output FOLDER]

Each reader gets a whole file, edited by hypothesis: cut, overwritten, doubled, and with what
readers stumble over put in. What is neither a result nor a PsyprobeError, or takes longer than 10
s, is a fault: it is shrunk, written into the folder, and told with its place; each place counts
once. Exit code 1 where there is one. The short form of it is tests/hostile.
"""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

import psyprobe as pp
from psyprobe.cli import main as command
from psyprobe.errors import PsyprobeError
from psyprobe.experiment import load_experiment
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.images import read_image
from psyprobe.observers.chat.protocol import Answer
from psyprobe.probes.experiments import load_results, plan
from psyprobe.probes.results import score_layers
from psyprobe.probes.words.answer_table import read_answer
from psyprobe.stimulus.catalogue import load_stimulus
from psyprobe.tasks.mvp_bench.questions import check_questions, read_questions
from psyprobe.tasks.mvp_bench.replies import read_predictions
from psyprobe.tasks.r_bench.items import check_items, read_items
from psyprobe.tasks.review.worklist import Journal
from psyprobe.tasks.tables import read_answer_table

MOST_SECONDS = 10
#: What readers stumble over.
TOKENS = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"\n",
    b'"',
    b",",
    b"[" * 3000,
    b"{" * 3000,
    b"9" * 400,
    b"9" * 5000,
    b"-1",
    b"nan",
    b"NaN",
    b"inf",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"1e999",
    b"\\ud800",
    b"\x1b[2J",
    b"../../",
    b"=1+1",
    b"\x7f\xff\xff\xff",
    b"\xff" * 8,
]
PAGE = """
title = "fuzzed"
probe = "detection"
stimulus = { kind = "gabor", parameters = { frequency = 2, contrast = 0.1, radius = 0.3, ppd = 16, size = 16 } }
levels = { frequency.values = [1, 2], contrast = { from = 0.01, to = 1, n = 3 } }
human = { model = "castle_csf" }
score = { multiplier = { from = 0.5, to = 2, n = 2 } }
"""
STIMULUS = """
title = "fuzzed"
kind = "gabor"
parameters = { frequency = 2, contrast = 0.1, luminance = 100, radius = 0.3, ppd = 16, size = 16 }
levels = { frequency = { from = 1, to = 4, n = 3 } }
"""
ITEMS = (
    "name,question,choice,answer,type,score,distortion,strength\n"
    "m1.png,What is it?,A.a ramp; B.a cat,A,MCQ,4.0,1,1\n"
    "v1.png,What is left?,N,the dark side,VQA,4.0,2,2\n"
    "c1.png,Describe it.,N,\"['Grey.', 'A ramp.']\",CAP,4.0,3,3\n"
)
QUESTION = {
    "question_id": 1,
    "image": "1.png",
    "text": "Is it light?",
    "answer": "yes",
    "category": "S2",
}


@dataclass(frozen=True)
class Reader:
    """One way into psyprobe."""

    #: File name.
    name: str
    #: Writes a valid file into a folder, and returns its content.
    write_whole: Callable[[Path], bytes]
    #: Reads the file of this path.
    read: Callable[[Path], Any]


class HungError(BaseException):
    """A reader did not come back."""


class FaultError(Exception):
    """A reader failed in another way than it should."""


def fixed(content: str | bytes) -> Callable[[Path], bytes]:
    return lambda folder: content if isinstance(content, bytes) else content.encode()


def stored(name: str) -> Callable[[Path], bytes]:
    """A store or a result of a small run."""

    def make(folder: Path) -> bytes:
        (folder / "page.toml").write_text(PAGE, encoding="utf-8")
        result = pp.run(
            folder / "page.toml", "pixels", store=folder / "a.sqlite", progress=False
        )
        result.to_netcdf(folder / "a.nc", engine="scipy")
        return (folder / name).read_bytes()

    return make


def rendered(name: str) -> Callable[[Path], bytes]:
    """A picture, or its certificate, which stays beside what is made of it."""

    def make(folder: Path) -> bytes:
        picture = folder / name.removesuffix(".json")
        run_command(
            "render",
            "gabor_achromatic",
            "--set",
            "size=32",
            "radius=0.1",
            "-o",
            str(picture),
        )
        return (folder / name).read_bytes()

    return make


def run_command(*arguments: str) -> None:
    """A command, whose one line is raised as what it says; a line that confesses is a fault."""
    error_output = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(error_output):
        code = command(arguments)
    if (
        "did not foresee" in error_output.getvalue()
        or code not in (0, 1, 2)
        or (code == 2 and error_output.getvalue().count("\n") != 1)
    ):
        raise FaultError(error_output.getvalue())
    if code == 2:
        raise PsyprobeError(error_output.getvalue())


def checked(path: Path) -> None:
    run_command("check", str(path).removesuffix(".json"))


def sheet(folder: Path) -> bytes:
    into = io.BytesIO()
    pd.DataFrame({"name": ["a", "b"], "answer": ["A", "yes"]}).to_excel(
        into, index=False
    )
    return into.getvalue()


def photograph(ending: str) -> Callable[[Path], bytes]:
    def make(folder: Path) -> bytes:
        from PIL import Image

        into = io.BytesIO()
        Image.fromarray(
            (np.arange(32 * 32 * 3) % 256).reshape(32, 32, 3).astype(np.uint8)
        ).save(into, ending)
        return into.getvalue()

    return make


def reply(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    read_answer(
        Answer(text, (("yes", -0.1), (text[:5], -3.0))), Prompt("Is it?", "yes")
    )


def journal(path: Path) -> None:
    (path.parent / "people").mkdir(exist_ok=True)
    path.replace(path.parent / "people" / "review-ann.jsonl")
    Journal(path.parent, "review", "ann")


LINES = b'{"content": "0", "value": "accept", "text": "", "at": ""}\n'
READERS = {
    "page": Reader(
        "page.toml", fixed(PAGE), lambda path: plan(load_experiment(path), "pixels")
    ),
    "stimulus": Reader(
        "a.toml", fixed(STIMULUS), lambda path: load_stimulus(path).spec().draw()
    ),
    "store": Reader(
        "a.sqlite",
        stored("a.sqlite"),
        lambda path: [score_layers(result) for result in load_results(path)],
    ),
    "result": Reader(
        "a.nc",
        stored("a.nc"),
        lambda path: [score_layers(result) for result in load_results(path)],
    ),
    "png": Reader("a.png", rendered("a.png"), checked),
    "npy": Reader("a.npy", rendered("a.npy"), checked),
    "npz": Reader("a.npz", rendered("a.npz"), checked),
    "tiff": Reader("a.tiff", rendered("a.tiff"), checked),
    "certificate": Reader("a.png.json", rendered("a.png.json"), checked),
    "photograph": Reader("a.jpg", photograph("JPEG"), read_image),
    "items": Reader(
        "items.csv", fixed(ITEMS), lambda path: check_items(read_items(path))
    ),
    "csv": Reader("a.csv", fixed("name,answer\na,A\nb,yes\n"), read_answer_table),
    "xlsx": Reader("a.xlsx", sheet, read_answer_table),
    "json": Reader(
        "a.json", fixed(json.dumps([{"name": "a", "answer": "A"}])), read_answer_table
    ),
    "jsonl": Reader(
        "a.jsonl", fixed('{"name": "a", "answer": "A"}\n'), read_answer_table
    ),
    "questions": Reader(
        "a.json",
        fixed(json.dumps(QUESTION)),
        lambda path: check_questions(read_questions(path)),
    ),
    "predictions": Reader(
        "a.jsonl", fixed('{"question_id": 1, "output": "yes"}\n'), read_predictions
    ),
    "journal": Reader("a.jsonl", fixed(LINES), journal),
    "reply": Reader(
        "a.txt", fixed("Yes, I think there is no pattern, but I am not sure.\n"), reply
    ),
}


def edited(content: bytes) -> st.SearchStrategy[bytes]:
    """The file after a few edits."""
    piece = st.binary(max_size=8) | st.sampled_from(TOKENS)
    kind = st.sampled_from(["cut", "overwrite", "insert", "remove", "double"])
    edit = st.tuples(kind, st.integers(0, len(content)), piece, st.integers(0, 64))
    return st.lists(edit, min_size=1, max_size=6).map(
        lambda edits: after(content, edits)
    )


def after(content: bytes, edits: list[tuple[str, int, bytes, int]]) -> bytes:
    for kind, at, piece, length in edits:
        end = {
            "cut": len(content),
            "overwrite": at + len(piece),
            "insert": at,
            "remove": at + length,
            "double": at,
        }[kind]
        replacement = {
            "cut": b"",
            "overwrite": piece,
            "insert": piece,
            "remove": b"",
            "double": content[at : at + length],
        }[kind]
        content = content[:at] + replacement + content[end:]
    return content


def fault(reader: Reader, folder: Path, content: bytes) -> str | None:
    """Say where and how a reader fails on a file, other than by saying what is wrong with it; None
    if it does not."""
    path = folder / reader.name
    path.write_bytes(content)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(path)
    except PsyprobeError:
        return None
    except HungError:
        return f"no end within {MOST_SECONDS} s"
    except Exception as error:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "psyprobe" in Path(frame.filename).parts
        ]
        place = (
            f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: "
            if frames
            else ""
        )
        return f"{place}{type(error).__name__}: {' '.join(str(error).split())[-200:]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def fuzz(name: str, seconds: float, output: Path) -> int:
    """Try a reader for some time; the number of its faults, each of which is told and kept."""
    reader = READERS[name]
    ends = time.monotonic() + seconds
    fault_keys: set[str] = set()
    smallest: dict[str, bytes] = {}
    tried = rounds = 0

    def attempt(folder: Path, content: bytes) -> None:
        nonlocal tried
        if time.monotonic() > ends:
            return
        tried += 1
        where = fault(reader, folder, content)
        if where is not None and key_of(where) not in fault_keys:
            smallest[where] = min(smallest.get(where, content), content, key=len)
            raise FaultError(where)

    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        valid_content = reader.write_whole(folder)
        assert (why := fault(reader, folder, valid_content)) is None, (
            f"{name}: the whole file cannot be read: {why}"
        )
        tries = settings(
            deadline=None,
            database=None,
            max_examples=300,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
        )
        while time.monotonic() < ends:
            # Each round goes on to the next fault: those that are known count no more.
            with suppress(FaultError, Flaky):
                seed(rounds)(
                    tries(
                        given(content=edited(valid_content))(
                            lambda content: attempt(folder, content)
                        )
                    )
                )()
            rounds += 1
            for where, content in smallest.items():
                if key_of(where) not in fault_keys:
                    fault_keys.add(key_of(where))
                    output.mkdir(parents=True, exist_ok=True)
                    case_path = output / f"{name}-{len(fault_keys)}-{reader.name}"
                    case_path.write_bytes(content)
                    print(f"  {name}: {where} ({case_path})", flush=True)
            smallest.clear()
    print(f"{name}: {tried} files, {len(fault_keys)} faults", flush=True)
    return len(fault_keys)


def key_of(where: str) -> str:
    """The place and the kind of a fault, without what its message quotes."""
    return ":".join(where.split(":")[:2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds",
        type=float,
        default=600.0,
        help="for each reader (default %(default)s)",
    )
    parser.add_argument(
        "--readers",
        nargs="+",
        choices=READERS,
        default=list(READERS),
        help="default: all",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("fuzz-faults"),
        help="folder (default %(default)s)",
    )
    options = parser.parse_args()

    def hung(*_: object) -> None:
        raise HungError

    signal.signal(signal.SIGALRM, hung)
    return int(
        sum(fuzz(name, options.seconds, options.output) for name in options.readers) > 0
    )


if __name__ == "__main__":
    sys.exit(main())
