"""What asking through psyprobe costs beyond a bare client, and how long faults make it take.

    python benchmarks/chat_throughput.py [QUESTIONS [CONCURRENCY]]     # default 5000, 8 at once

Questions go to two simulated servers, each a process of its own on loopback, whose answers take 50 to 100 ms: one
without faults, one with 10 % HTTP 429, 5 % HTTP 500, 3 % hangs, 1 % truncated JSON and 1 % connection resets. The bare
client is httpx with images that are encoded already and a semaphore; psyprobe's time includes digesting and encoding
the images (25 questions share one). Both are measured in turn, in rounds of 500 questions, since others use the machine
too; faults in one round of all, since what is left to the end of a round costs more there.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from psyprobe.files.images import encode_png
from psyprobe.observers import load_observer
from psyprobe.observers.chat.answering import Decoding, Inquiry, ask_all, eight_bit
from psyprobe.observers.chat.openai_protocol import Dialect, messages, settings

CONCURRENCY = int(sys.argv[2]) if len(sys.argv) > 2 else 8
LATENCY = ("0.05", "0.1")
FAULTS = ("overload=0.1", "error=0.05", "hang=0.03", "truncated=0.01", "reset=0.01", "retry-after=0.5", "seed=1")
MODEL = "simulated:watson-malo"
PROMPTS = [f"Is there a pattern visible in the image (wording {i})? Answer with yes or no." for i in range(25)]
DECODING = Decoding(temperature=1.0)
ROUND = 500


@contextlib.contextmanager
def server(*faults: str) -> Iterator[str]:
    command = [
        sys.executable,
        "-m",
        "psyprobe",
        "serve-simulated",
        MODEL,
        "--port",
        "0",
        "--json",
        "--latency",
        *LATENCY,
    ]
    with subprocess.Popen(
        [*command, *(["--faults", *faults] if faults else [])], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.terminate()


def questions(count: int) -> list[Inquiry]:
    rng = np.random.default_rng(1)
    images = [(rng.integers(125, 132, (256, 256, 3)) / 255).astype(np.float32) for _ in range(-(-count // 25))]
    return [Inquiry(prompt, (image,), decoding=DECODING) for image in images for prompt in PROMPTS][:count]


def requests(asked: list[Inquiry]) -> list[dict[str, Any]]:
    """What the bare client sends, encoded as far as memory allows."""
    urls: dict[int, str] = {}
    for each in asked:
        (image,) = each.images
        if id(image) not in urls:
            png = encode_png(eight_bit(image), noise=True)
            urls[id(image)] = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return [
        {"model": MODEL, "messages": messages(each, [urls[id(each.images[0])]], "high")}
        | settings(each.decoding, Dialect())
        for each in asked
    ]


def bare(url: str, ready: list[dict[str, Any]]) -> float:
    try:
        import httpx2 as httpx
    except ImportError:
        import httpx  # type: ignore[no-redef]

    async def everything() -> float:
        slots = asyncio.Semaphore(CONCURRENCY)
        async with httpx.AsyncClient(timeout=60) as client:

            async def one(request: dict[str, Any]) -> str:
                async with slots:
                    reply = await client.post(f"{url}/chat/completions", json=request)
                    return str(reply.json()["choices"][0]["message"]["content"])

            start = time.perf_counter()
            await asyncio.gather(*(one(request) for request in ready))
            return time.perf_counter() - start

    return asyncio.run(everything())


def ours(observer: object, asked: list[Inquiry], truth: dict[int, str]) -> tuple[float, int]:
    start = time.perf_counter()
    replies = list(ask_all(observer, iter(asked)))  # type: ignore[arg-type]
    took = time.perf_counter() - start
    counts = Counter(id(inquiry) for inquiry, _ in replies)
    assert counts == Counter(map(id, asked)), "a question was not answered exactly once"
    assert all(answer.text == truth[id(inquiry)] for inquiry, answer in replies), "an answer is not that question's"
    return took, sum(answer.attempts for _, answer in replies)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    asked = questions(count)
    ready = requests(asked)
    in_process = load_observer(MODEL)
    truth = {id(q): in_process.answer(q.images, q.prompt, decoding=q.decoding).text for q in asked}
    times: dict[str, list[float]] = {"bare": [], "psyprobe": [], "psyprobe, faults": []}
    with server() as sound, server(*FAULTS) as faulty:
        to_sound = load_observer(f"openai:{MODEL}", base_url=sound, concurrency=CONCURRENCY)
        to_faulty = load_observer(f"openai:{MODEL}", base_url=faulty, concurrency=CONCURRENCY)
        bare(sound, ready[:50])
        ours(to_sound, asked[:50], truth)
        for first in range(0, count, ROUND):
            part = slice(first, first + ROUND)
            times["bare"].append(bare(sound, ready[part]))
            times["psyprobe"].append(ours(to_sound, asked[part], truth)[0])
        took, sent = ours(to_faulty, asked, truth)
        times["psyprobe, faults"].append(took)
        to_sound.close()
        to_faulty.close()
    total = {name: sum(each) for name, each in times.items()}
    for name, seconds in total.items():
        rounds = ", ".join(f"{each:.1f}" for each in times[name])
        print(f"{name:17} {seconds:6.1f} s ({rounds}), {count / seconds:6.1f} questions/s")
    pairs = [a / b for a, b in zip(times["bare"], times["psyprobe"], strict=True)]
    print(f"throughput of the bare client's: {total['bare'] / total['psyprobe']:.1%} (at least 90 %)", end="; ")
    print(f"median of the rounds {statistics.median(pairs):.1%}")
    print(f"time with faults: {total['psyprobe, faults'] / total['psyprobe']:.2f} times (at most 1.6)")
    print(f"each of {count} questions answered once; with faults they were sent {sent} times")


if __name__ == "__main__":
    main()
