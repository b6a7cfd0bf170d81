"""What asking through psyprobe costs beyond a bare client, and how long faults make it take.

    python benchmarks/chat_throughput.py [QUESTIONS [CONCURRENCY]]     # default 5000, 32 at once
    python benchmarks/chat_throughput.py 50000 256 memory              # ours alone: the most memory that it takes

Questions go to two simulated servers, each a process of its own on loopback, whose answers take 20
ms: one without faults, one with 10 % HTTP 429, 5 % HTTP 500, 3 % hangs, 1 % truncated JSON and 1 %
connection resets. The bare client is aiohttp with images that are encoded already and a semaphore;
psyprobe's time includes comparing and encoding the images (25 questions share one), and writing
each answer into a store. Both are measured in turn, in rounds of 500 questions, since others use
the machine too; faults in one round of all, since what is left to the end of a round costs more
there, between two such rounds without faults. Processor time is that of this process, threads
included.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.files.images import encode_png
from psyprobe.files.terminal import progress_bar
from psyprobe.observers import load_observer
from psyprobe.observers.chat.openai_protocol import Dialect, messages, settings
from psyprobe.observers.chat.protocol import Decoding, Inquiry, ask_all, eight_bit
from psyprobe.running.loop import Writer, ask_round
from psyprobe.running.origins import Origins
from psyprobe.running.protocol import Answered, Batch, Question
from psyprobe.running.store import open_store

CONCURRENCY = int(sys.argv[2]) if len(sys.argv) > 2 else 32
LATENCY = ("0.02", "0.02")
FAULTS = (
    "overload=0.1",
    "error=0.05",
    "hang=0.03",
    "truncated=0.01",
    "reset=0.01",
    "retry-after=0.5",
    "seed=1",
)
MODEL = "simulated:watson-malo"
PROMPTS = [
    f"Is there a pattern visible in the image (wording {i})? Answer with yes or no."
    for i in range(25)
]
DECODING = Decoding(temperature=1.0)
ROUND = 500


@dataclass(frozen=True)
class Spent:
    """Seconds."""

    clock: float
    processor: float

    @classmethod
    def now(cls) -> Spent:
        return cls(time.perf_counter(), time.process_time())

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.clock - other.clock, self.processor - other.processor)


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
        [*command, *(["--faults", *faults] if faults else [])],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.terminate()


def questions(count: int) -> list[Inquiry]:
    rng = np.random.default_rng(1)
    images = [
        (rng.integers(125, 132, (256, 256, 3)) / 255).astype(np.float32)
        for _ in range(-(-count // 25))
    ]
    return [
        Inquiry(prompt, (image,), decoding=DECODING)
        for image in images
        for prompt in PROMPTS
    ][:count]


def requests(inquiries: list[Inquiry]) -> list[dict[str, Any]]:
    """What the bare client sends, encoded as far as memory allows."""
    urls: dict[int, str] = {}
    for inquiry in inquiries:
        (image,) = inquiry.images
        if id(image) not in urls:
            png = encode_png(eight_bit(image), noise=True)
            urls[id(image)] = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return [
        {
            "model": MODEL,
            "messages": messages(inquiry, [urls[id(inquiry.images[0])]], "high"),
        }
        | settings(inquiry.decoding, Dialect())
        for inquiry in inquiries
    ]


def bare(url: str, ready: list[dict[str, Any]]) -> Spent:
    """Seconds by the clock and of the processor that the bare client takes."""
    import aiohttp

    async def everything() -> Spent:
        slots = asyncio.Semaphore(CONCURRENCY)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0)
        ) as client:

            async def post(request: dict[str, Any]) -> str:
                async with (
                    slots,
                    client.post(f"{url}/chat/completions", json=request) as reply,
                ):
                    return str((await reply.json())["choices"][0]["message"]["content"])

            start = Spent.now()
            await asyncio.gather(*(post(request) for request in ready))
            return Spent.now() - start

    return asyncio.run(everything())


def put(observers: Mapping[str, Any], batches: Iterable[Batch]) -> Iterator[Answered]:
    """Put inquiries as probes do."""
    (observer,) = observers.values()
    pending_questions: dict[int, Question] = {}

    def inquiries() -> Iterator[Inquiry]:
        for batch in batches:
            pending_questions[id(batch.work)] = batch.questions[0]
            yield batch.work

    for inquiry, answer in ask_all(observer, inquiries()):
        yield Answered(
            pending_questions.pop(id(inquiry)), {"reply": answer.to_dict()}, ()
        )


def ours(
    observer: Any, inquiries: list[Inquiry], truth: Mapping[int, str]
) -> tuple[Spent, int]:
    """What psyprobe takes, a new store included, and how often the questions were sent."""
    me = observer.card.digest
    batches = [
        Batch(
            (Question(f"{i // 25:032x}" * 2, f"{i % 25:032x}" * 2, me, "1"),), inquiry
        )
        for i, inquiry in enumerate(inquiries)
    ]
    start = Spent.now()
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder) / "runs.sqlite") as store,
        progress_bar(0, False) as bar,
    ):
        store.add_contents([(me, "observer", observer.card.to_dict())])
        with Writer(store) as writer:
            keys = ask_round(
                store,
                put,
                {me: observer},
                Origins(store, {me: observer}),
                batches,
                bar,
                writer,
            )
        spent = Spent.now() - start
        assert len(keys) == len(inquiries), "a question was not answered exactly once"
        attempts = 0
        answers = store.iterate_answers([batch.questions[0].key for batch in batches])
        for inquiry, answer in zip(inquiries, answers, strict=True):
            text = answer["reply"]["text"]
            assert truth.get(id(inquiry), text) == text, (
                "an answer is not that question's"
            )
            attempts += answer["reply"]["attempts"]
    return spent, attempts


def memory(count: int) -> None:
    """The most memory that this process takes while it asks many questions about images that are
    drawn as they come."""
    with (
        server() as sound,
        load_observer(
            f"openai:{MODEL}", base_url=sound, concurrency=CONCURRENCY
        ) as observer,
    ):
        inquiries = questions(2500)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        spent, _ = ours(
            observer,
            [
                replace(inquiry)
                for _ in range(-(-count // 2500))
                for inquiry in inquiries
            ][:count],
            {},
        )
    peak_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{count} questions in {spent.clock:.0f} s: {peak_memory / 1024:.0f} MB at most (at most 400 MB), ",
        end="",
    )
    print(f"{before / 1024:.0f} MB of them before the first, its images among them")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    if sys.argv[3:] == ["memory"]:
        memory(count)
        return
    inquiries = questions(count)
    ready = requests(inquiries)
    in_process = load_observer(MODEL)
    truth = {
        id(q): in_process.answer(q.images, q.prompt, decoding=q.decoding).text
        for q in inquiries
    }
    spent: dict[str, list[Spent]] = {"bare": [], "psyprobe": [], "psyprobe, faults": []}
    with server() as sound, server(*FAULTS) as faulty:
        to_sound = load_observer(
            f"openai:{MODEL}", base_url=sound, concurrency=CONCURRENCY
        )
        to_faulty = load_observer(
            f"openai:{MODEL}", base_url=faulty, concurrency=CONCURRENCY
        )
        bare(sound, ready[:50])
        ours(to_sound, inquiries[:50], truth)
        for first in range(0, count, ROUND):
            part = slice(first, first + ROUND)
            spent["bare"].append(bare(sound, ready[part]))
            spent["psyprobe"].append(ours(to_sound, inquiries[part], truth)[0])
        around = [ours(to_sound, inquiries, truth)[0]]
        took, attempts = ours(to_faulty, inquiries, truth)
        around.append(ours(to_sound, inquiries, truth)[0])
        spent["psyprobe, faults"].append(took)
        to_sound.close()
        to_faulty.close()
    total = {
        name: sum(measurement.clock for measurement in measurements)
        for name, measurements in spent.items()
    }
    for name, measurements in spent.items():
        rounds = ", ".join(f"{measurement.clock:.1f}" for measurement in measurements)
        processor = (
            1e3 * sum(measurement.processor for measurement in measurements) / count
        )
        print(
            f"{name:17} {total[name]:6.1f} s ({rounds}), {count / total[name]:6.1f} questions/s",
            end="; ",
        )
        print(f"{processor:.2f} ms of the processor a question")
    pairs = list(zip(spent["bare"], spent["psyprobe"], strict=True))
    median = statistics.median(bare.clock / mine.clock for bare, mine in pairs)
    beyond = statistics.median(
        1e3 * (mine.processor - bare.processor) / min(ROUND, count)
        for bare, mine in pairs
    )
    bar = 0.6 if CONCURRENCY <= 32 else 0.5
    print(
        f"throughput of the bare client's: {total['bare'] / total['psyprobe']:.2f}; ",
        end="",
    )
    print(f"median of the rounds {median:.2f} (at least {bar})")
    print(f"processor beyond the bare client's: {beyond:.2f} ms a question (at most 1)")
    without = statistics.mean(measurement.clock for measurement in around)
    print(
        f"time with faults: {took.clock / without:.2f} times the {without:.1f} s without (at "
        "most 1.6)"
    )
    print(
        f"each of {count} questions answered once; with faults they were sent {attempts} times"
    )


if __name__ == "__main__":
    main()
