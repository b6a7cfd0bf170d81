"""What a store takes: answers a second, commits, and bytes a question of each kind.

    OMP_NUM_THREADS=1 python benchmarks/store_speed.py

Each function gives rows (work, condition, value, bar).
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from psyprobe.files.output import digest
from psyprobe.running.loop import Writer
from psyprobe.running.protocol import Answered, Origin, Question, RunRecord
from psyprobe.running.store import Store

Row = tuple[str, str, float, float]
ORIGIN = Origin({"psyprobe": "0.1.0", "numpy": "2.4.6"}, "cpu")


def numbers(draw: np.random.Generator, count: int) -> list[float]:
    return draw.lognormal(size=count).tolist()


def of_pairs(
    count: int, observer: str, *, contents: bool = False
) -> Iterator[Answered]:
    """Answers of an encoder with four measures, each about a stimulus of its own."""
    draw = np.random.default_rng(1)
    question_digest = digest("measures")
    observer_digest = digest(observer)
    for i in range(count):
        spec = {
            "kind": "gabor",
            "luminance": 100.0,
            "ppd": 60.0,
            "size": [224, 224],
            "contrast": draw.random(),
            "direction": "achromatic",
            "white": "D65",
            "observer": "cie2006_led_lcd",
            "frequency": draw.random(),
            "orientation": 0.0,
            "phase": 0.0,
            "x": 0.0,
            "y": 0.0,
            "radius": 1.0,
            "aspect": 1.0,
        }
        answer = {"values": [numbers(draw, 4)], "lengths": [numbers(draw, 3)]}
        stimulus_contents = ((digest(spec), "stimulus", spec),) if contents else ()
        yield Answered(
            Question(digest(i), question_digest, observer_digest, "detection 2"),
            answer,
            stimulus_contents,
            ORIGIN,
        )


def of_words(count: int, *, logprobs: type | None) -> Iterator[Answered]:
    """Answers of a chat model to one prompt, each about an image of its own; log-probabilities in a
    precision.

    Servers compute them in float32, and tell them by its own digits or widened to float64.
    """
    draw = np.random.default_rng(2)
    prompt_digest = digest("prompt")
    observer_digest = digest("chat")
    for i in range(count):
        display_record = {
            "stimuli": [
                {
                    "kind": "annulus_noise",
                    "luminance": 40.0,
                    "contrast": 0.2,
                    "seed": 77 * i,
                }
            ],
            "pattern": 0,
            "image_seed": 977 * i,
            "dither_seeds": [31 * i],
            "delivery": {"bits": 8, "dither": "rpdf"},
        }
        first = (
            [
                [f"token{k}", -float(logprobs(v))]
                for k, v in enumerate(numbers(draw, 20))
            ]
            if logprobs
            else None
        )
        reply = {
            "text": "Yes." if i % 3 else "No.",
            "first_tokens": first,
            "complete": False,
            "finish": "stop",
            "tokens_in": 119,
            "tokens_out": 2,
            "latency": round(float(draw.random()), 3),
            "attempts": 1,
            "cost": None,
            "model": "gpt-4o-mini-2024-07-18",
            "server": "fp_0a1b2c3d",
        }
        answer = {
            "delivered_contrast": draw.random(),
            "coherent_gain": 1.0,
            "refused": "",
            "reply": reply,
        }
        yield Answered(
            Question(digest(i), prompt_digest, observer_digest, "yes_no 1"),
            answer,
            ((digest(i), "shown", display_record),),
            ORIGIN,
        )


def of_items(count: int) -> Iterator[Answered]:
    """Answers about items, each with a prompt of some 60 characters of its own."""
    draw = np.random.default_rng(3)
    observer_digest = digest("chat")
    for i in range(count):
        words = " ".join(f"{value:x}" for value in draw.integers(1 << 20, size=8))
        prompt = {
            "prompt": f"What is {words}?",
            "system": "",
            "decoding": {"temperature": 0.0, "max_tokens": 32},
        }
        reply = {
            "text": f"It is {draw.integers(1 << 20):x}.",
            "first_tokens": None,
            "finish": "stop",
            "latency": 0.25,
        }
        contents = (
            (digest(prompt), "asked", prompt),
            (digest(i), "shown", [digest(i)]),
        )
        yield Answered(
            Question(digest(i), digest(prompt), observer_digest, "r_bench 1"),
            {"reply": reply},
            contents,
            ORIGIN,
        )


def record(pairs: int) -> RunRecord:
    return RunRecord(
        "e",
        digest("e"),
        "title = 'e'",
        "pixels",
        digest("pixels"),
        {"name": "pixels"},
        "detection",
        {"pairs": [[digest(i), digest(i % 40)] for i in range(pairs)]},
        {"psyprobe": "0.1.0"},
        {
            "batch_size": 32,
            "batches": [
                {"references": [digest(i % 40)], "pairs": [i]}
                for i in range(0, pairs, 32)
            ],
        },
    )


def bytes_a_question(pairs: int = 2000) -> list[Row]:
    """Size of whole files, in commits of 250 answers, over questions."""
    rows = []
    kinds = {
        "an encoder and its baseline": [
            *of_pairs(pairs, "net", contents=True),
            *of_pairs(pairs, "pixels"),
        ],
        "pixels alone": list(of_pairs(pairs, "pixels", contents=True)),
        "chat, words alone": list(of_words(pairs, logprobs=None)),
        "chat, 20 log-probabilities of float32": list(
            of_words(pairs, logprobs=np.float32)
        ),
        "chat, 20 log-probabilities of float64": list(
            of_words(pairs, logprobs=np.float64)
        ),
        "items with a prompt of their own": list(of_items(pairs)),
    }
    with tempfile.TemporaryDirectory() as folder:
        for kind, answered in kinds.items():
            path = Path(folder) / f"{digest(kind)}.sqlite"
            with Store(path) as store:
                store.add_contents(
                    content
                    for answer in answered
                    for content in answer.contents
                    if content[1] == "stimulus"
                )
                if ("alone" in kind and "pixels" in kind) or "encoder" in kind:
                    store.begin_run(record(pairs))
                for start in range(0, len(answered), 250):
                    store.add(answered[start : start + 250])
            rows.append(
                (
                    f"store: bytes a question, {kind}",
                    f"{len(answered):,}",
                    path.stat().st_size / len(answered),
                    math.inf,
                )
            )
    return rows


def answers_a_second(count: int = 20_000, rounds: int = 3) -> list[Row]:
    """Answers of an encoder written durably, in commits of as many as come in half a second."""
    answered = list(of_pairs(count, "net"))
    best = 0.0
    for _ in range(rounds):
        with (
            tempfile.TemporaryDirectory() as folder,
            Store(Path(folder) / "runs.sqlite") as store,
        ):
            start = time.process_time()
            for first in range(0, count, 10_000):
                store.add(answered[first : first + 10_000])
            best = max(best, count / (time.process_time() - start))
    return [
        (
            "store: answers a second of processor time",
            "commits of 10,000, synced",
            best,
            20_000.0,
        )
    ]


def commits_a_second(seconds: float = 3.0) -> list[Row]:
    """Commits while batches of 8 come as fast as they can: by the clock and not by the batch."""
    answered = of_pairs(10_000_000, "net")
    commits = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder) / "runs.sqlite") as store,
    ):
        add = store.add
        start = time.monotonic()
        store.add = lambda rows: (commits.append(1), add(rows))[1]  # type: ignore[method-assign,func-returns-value]
        with Writer(store) as writer:
            while time.monotonic() - start < seconds:
                for _ in range(8):
                    writer.add(next(answered))
                writer.write_if_due()
                time.sleep(0.002)
    return [
        (
            "store: commits a second with batches of 8",
            "one every 2 ms",
            len(commits) / seconds,
            3.0,
        )
    ]


if __name__ == "__main__":
    for work, condition, value, bar in [
        *bytes_a_question(),
        *answers_a_second(),
        *commits_a_second(),
    ]:
        print(f"{work:<62} {condition:<28} {value:10.0f}  (bar {bar:g})")
