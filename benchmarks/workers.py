"""How much N workers are worth, and what is left of a run whose workers are killed (issue 13).

    python benchmarks/workers.py [waiting] [cluster] [pixels] [published] [encoder] [shared] [bare] [kills]     # or all

waiting: 2,000 units of 50 ms that wait, 8 processes against one. cluster: 160 units of one second,
8 Dask workers. pixels, published, encoder: two processes against one, one thread each; needs two
cores of a quiet machine. pixels runs the six pages of detection, published the same as Cai et al.
showed them. shared: two processes that run the encoder's page with one store, no workers. bare:
what two processes are worth that only draw, encode and compare. kills: SIGKILL of any worker at 20
random moments: every question is there, and none was shown twice but what the dead one was at.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# Before anything computes: one thread each.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "questions")]

import noting
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.analysis.distance import distances
from psyprobe.probes.displayed_images import show
from psyprobe.running.agenda import Agenda
from psyprobe.running.loop import Writer
from psyprobe.running.protocol import Answered, Batch, Question
from psyprobe.running.store import Store
from psyprobe.running.workers import WorkerPool


def wait(observers: Any, batches: Any) -> Any:
    """Answer like `Probe.answer`, after the seconds that each batch names."""
    for batch in batches:
        time.sleep(batch.work)
        for question in batch.questions:
            yield Answered(question, {"values": [0.0]})


def waited(executor: Any, count: int, seconds: float) -> float:
    """Seconds that so many units of waiting take, once all workers are ready."""
    observer = pp.load_observer("pixels")
    with Store(None) as store, Writer(store) as writer:
        for units in (200, count):
            digests = [
                hashlib.sha256(f"{units} {i}".encode()).hexdigest()
                for i in range(units)
            ]
            batches = [
                Batch((Question(digest, "asked", observer.card.digest, "1"),), seconds)
                for digest in digests
            ]
            if units != count:
                batches = [Batch(batch.questions, 0.01) for batch in batches]
            agenda = Agenda(store, batches, writer)
            start = time.monotonic()
            answers = list(executor.put(wait, {observer.card.digest: observer}, agenda))
            assert len({answer.question.key for answer in answers}) == units
    return time.monotonic() - start


def waiting() -> dict[str, float]:
    with WorkerPool(8) as pool:
        took = waited(pool, 2000, 0.05)
    return {"seconds": took, "of 8 times one": 2000 * 0.05 / 8 / took, "wanted": 0.95}


def cluster() -> dict[str, float]:
    from distributed import Client, LocalCluster

    from psyprobe.running.cluster import Cluster

    options = {"n_workers": 8, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as local, Client(local) as client:
        took = waited(Cluster(client), 160, 1.0)
    return {"seconds": took, "of 8 times one": 160 / 8 / took, "wanted": 0.9}


def twice(observer: Any, pages: list[Any], rounds: int = 3) -> dict[str, float]:
    """One process against two that are ready, by turns; the median of each."""
    alone: list[float] = []
    seconds_of_two: list[float] = []
    with WorkerPool(2) as pool, tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds + 1):
            for times, executor in ((alone, None), (seconds_of_two, pool)):
                start = time.monotonic()
                for page in pages:
                    pp.run(
                        page,
                        observer,
                        store=Path(folder) / f"{turn}{executor is pool}.sqlite",
                        executor=executor,
                    )
                if turn:  # the first warms up
                    times.append(time.monotonic() - start)
    return worth(alone, seconds_of_two)


def worth(alone: list[float], seconds_of_two: list[float]) -> dict[str, float]:
    """How many times one process two are, by the medians of their seconds."""
    median_alone = np.median(alone)
    two = np.median(seconds_of_two)
    return {
        "one": float(median_alone),
        "two": float(two),
        "times": float(median_alone / two),
        "wanted": 1.7,
    }


#: The six pages of detection.
PAGES = (
    "gabor_achromatic",
    "gabor_red_green",
    "gabor_yellow_violet",
    "noise_achromatic",
    "area",
    "luminance",
)


def pixels() -> dict[str, float]:
    return twice(pp.load_observer("pixels"), list(PAGES), rounds=6)


def published() -> dict[str, float]:
    return twice(
        pp.load_observer("pixels"), [f"{page}_published" for page in PAGES], rounds=3
    )


def encoder() -> dict[str, float]:
    return twice(
        pp.load_observer("packaged:efficientnet_lite0"), ["gabor_achromatic"], rounds=2
    )


def run_on_request(connection: Connection) -> None:
    """Run the encoder's page with each store that is sent, and report its end; stop at None."""
    observer = pp.load_observer("packaged:efficientnet_lite0")
    while path := connection.recv():
        pp.run("gabor_achromatic", observer, store=path)
        connection.send(True)


def shared() -> dict[str, float]:
    ends = two_processes(run_on_request)
    alone = []
    seconds_of_two = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(4):
            for times, connections in (
                (alone, [ends[turn % 2]]),
                (seconds_of_two, ends),
            ):
                start = time.monotonic()
                for end in connections:
                    end.send(f"{folder}/{turn}{len(connections)}.sqlite")
                for end in connections:
                    end.recv()
                if turn:  # the first warms up
                    times.append(time.monotonic() - start)
    for end in ends:
        end.send("")
    return worth(alone, seconds_of_two)


def two_processes(target: Callable[[Connection], None]) -> list[Connection]:
    """What speaks to two processes that wait for orders."""
    spawn = get_context("spawn")
    ends = []
    for _ in range(2):
        parent_end, child_end = spawn.Pipe()
        spawn.Process(target=target, args=(child_end,), daemon=True).start()
        ends.append(parent_end)
    return ends


def draw_on_request(connection: Connection) -> None:
    """Draw, encode and compare as many batches as are sent, and report the seconds; stop at 0."""
    display = pp.Display(peak=400)
    specs = [
        pp.stimulus.Gabor(frequency=frequency, contrast=0.5)
        for frequency in np.geomspace(0.5, 20, 8)
    ]
    reference = show([specs[0].reference()], display).planes[..., 0].reshape(1, -1)
    while count := connection.recv():
        start = time.monotonic()
        for _ in range(count):
            distances(
                show(specs, display).planes[..., 0].reshape(len(specs), -1),
                reference,
            )
        connection.send(time.monotonic() - start)


def bare() -> dict[str, float]:
    ends = two_processes(draw_on_request)
    ratios = []
    for turn in range(13):
        alone_seconds = 0.0
        for end in ends:
            end.send(150)
            alone_seconds += end.recv()
        for end in ends:
            end.send(150)
        slowest_of_two = max(end.recv() for end in ends)
        if turn:  # the first warms up
            ratios.append(alone_seconds / slowest_of_two)
    for end in ends:
        end.send(0)
    return {
        "least": min(ratios),
        "times": float(np.median(ratios)),
        "most": max(ratios),
    }


def kill_now_and_then(
    pool: WorkerPool, dead: list[int], kill_limit: int, over: threading.Event
) -> None:
    rng = np.random.default_rng(kill_limit)
    while not over.wait(rng.uniform(0.5, 3.0)) and len(dead) < kill_limit:
        if pids := pool.pids:
            dead.append(int(rng.choice(pids)))
            os.kill(dead[-1], signal.SIGKILL)


def kills() -> dict[str, float]:
    count = 0
    changes = (("to = 4, n = 3", "to = 4, n = 40"), ("to = 1, n = 3", "to = 1, n = 40"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        notes = Path(name) / "shown.txt"
        os.environ[noting.VARIABLE] = str(notes)
        page = write_experiment(folder, *changes)
        observer = noting.observer()
        alone = pp.run(page, observer, batch_size=2)
        reference_digests = {digest for _, digest in noting.notes(notes)}
        while count < 20:
            notes.unlink()
            dead: list[int] = []
            over = threading.Event()
            with WorkerPool(4) as pool:
                thread = threading.Thread(
                    target=kill_now_and_then,
                    args=(pool, dead, 20 - count, over),
                    daemon=True,
                )
                thread.start()
                result = pp.run(page, observer, batch_size=2, executor=pool)
                over.set()
                thread.join()
            assert noting.same_bytes(alone, result, folder)
            assert {digest for _, digest in noting.notes(notes)} == reference_digests
            assert all(pids & set(dead) for pids in noting.repeated_batches(notes))
            count += len(dead)
            print(
                f"  {len(dead)} workers killed, {len(noting.repeated_batches(notes))} batches shown "
                "again",
                flush=True,
            )
    return {"kills": count}


KINDS: dict[str, Callable[[], dict[str, float]]] = {
    "waiting": waiting,
    "cluster": cluster,
    "pixels": pixels,
    "published": published,
    "encoder": encoder,
    "shared": shared,
    "bare": bare,
    "kills": kills,
}


def main() -> None:
    for name in sys.argv[1:] or KINDS:
        print(
            name,
            json.dumps({key: round(value, 3) for key, value in KINDS[name]().items()}),
            flush=True,
        )


if __name__ == "__main__":
    main()
