"""What asking through psyprobe costs beyond a bare client, and how long faults make it take.

    python benchmarks/chat_throughput.py [QUESTIONS [CONCURRENCY]]     # default 5000, 32 at once
    python benchmarks/chat_throughput.py 50000 256 memory              # ours alone: the most memory that it takes

Questions go to servers whose answers take 20 ms, each a process of its own on loopback. psyprobe
and a bare client are measured in turn, in rounds of 500 questions, since others use the machine
too, at a server that sends one fixed reply, so that the clients are the limit. The bare client is
aiohttp with images that are encoded already and a semaphore; psyprobe's time includes comparing and
encoding the images (25 questions share one), and writing each answer into a store. Two simulated
servers tell what faults cost: one without, and one with 10 % HTTP 429, 5 % HTTP 500, 3 % hangs,
1 % truncated JSON and 1 % connection resets, in one round of all, since what is left to the end of
a round costs more there, between two such rounds without faults. Processor time is that of this
process, threads included.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

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

CONCURRENCY = int(sys.argv[2]) if sys.argv[2:3] and sys.argv[2].isdecimal() else 32
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


@contextlib.contextmanager
def fast_server(base_url: str, request: dict[str, Any]) -> Iterator[str]:
    """Serve the reply of another server to one request, in a process that does nothing else."""
    body = json.dumps(request).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    sent = urllib.request.Request(f"{base_url}/chat/completions", body, headers)
    with urllib.request.urlopen(sent) as reply:
        content = reply.read()
    with subprocess.Popen(
        [sys.executable, __file__, "serve", content.decode()],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


class FixedReply(asyncio.Protocol):
    """A connection on which each request gets the same reply, 20 ms after its last byte."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply
        self._head = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._missing:
            self._head += data
            head, end, rest = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self._head = b""
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            self._missing = int(length[1]) if length else 0
            data = rest
        self._missing -= len(data)
        if not self._missing:
            loop = asyncio.get_running_loop()
            loop.call_later(float(LATENCY[0]), self._transport.write, self._reply)


async def serve(content: bytes) -> None:
    """Print a free port, and answer all requests there with the same JSON."""
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    listener = await asyncio.get_running_loop().create_server(
        lambda: FixedReply(head.encode() + content), "127.0.0.1", 0, backlog=1024
    )
    print(listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


def questions(count: int) -> list[Inquiry]:
    rng = np.random.default_rng(1)
    images = [
        (rng.integers(125, 132, (256, 256, 3)) / 255).astype(np.float32)
        for _ in range(-(-count // 25))
    ]
    for image in images:
        # As those are that psyprobe draws.
        image.setflags(write=False)
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
    with (
        server() as sound,
        server(*FAULTS) as faulty,
        fast_server(sound, ready[0]) as fast,
    ):
        to_fast = load_observer(
            f"openai:{MODEL}", base_url=fast, concurrency=CONCURRENCY
        )
        to_sound = load_observer(
            f"openai:{MODEL}", base_url=sound, concurrency=CONCURRENCY
        )
        to_faulty = load_observer(
            f"openai:{MODEL}", base_url=faulty, concurrency=CONCURRENCY
        )
        bare(fast, ready[:50])
        ours(to_fast, inquiries[:50], {})
        ours(to_sound, inquiries[:50], truth)
        for first in range(0, count, ROUND):
            part = slice(first, first + ROUND)
            spent["bare"].append(bare(fast, ready[part]))
            spent["psyprobe"].append(ours(to_fast, inquiries[part], {})[0])
        around = [ours(to_sound, inquiries, truth)[0]]
        took, attempts = ours(to_faulty, inquiries, truth)
        around.append(ours(to_sound, inquiries, truth)[0])
        spent["psyprobe, faults"].append(took)
        to_fast.close()
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
        least = min(
            1e3 * measurement.processor / min(ROUND, count)
            for measurement in measurements
        )
        at_most = f", {least:.2f} in the best round" if len(measurements) > 1 else ""
        print(f"{processor:.2f} ms of the processor a question{at_most}")
    pairs = list(zip(spent["bare"], spent["psyprobe"], strict=True))
    median = statistics.median(bare.clock / mine.clock for bare, mine in pairs)
    beyond = statistics.median(
        1e3 * (mine.processor - bare.processor) / min(ROUND, count)
        for bare, mine in pairs
    )
    bar = next(
        share
        for most, share in ((32, 0.9), (128, 0.8), (2**31, 0.75))
        if most >= CONCURRENCY
    )
    print(
        f"throughput of the bare client's: {total['bare'] / total['psyprobe']:.2f}; ",
        end="",
    )
    print(f"median of the rounds {median:.2f} (at least {bar})")
    print(f"processor beyond the bare client's: {beyond:.2f} ms a question")
    without = statistics.mean(measurement.clock for measurement in around)
    print(
        f"time with faults: {took.clock / without:.2f} times the {without:.1f} s without (at "
        "most 1.6)"
    )
    print(
        f"each of {count} questions answered once; with faults they were sent {attempts} times"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(sys.argv[2].encode()))
    else:
        main()
