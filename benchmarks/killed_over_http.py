"""5,000 questions over HTTP with faults: complete, each answered once, killed three times; and how
long they take.

Issue 4, point 6. The server on loopback answers after 50 ms; it refuses a tenth of all requests
(429), fails at 5 % (500), hangs at 2 %, breaks off JSON at 1 % and resets connections at 2 %.

    python benchmarks/killed_over_http.py
"""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "questions")]

from killed_runs import KEY, MODEL, Witness, repeated_requests, run_and_kill

import psyprobe as pp
from psyprobe.analysis import trials
from psyprobe.experiment import load_experiment
from psyprobe.observers.simulated.serving import Faults, SimulatedServer
from psyprobe.stimulus.catalogue import catalogue_folder

FAULTS = Faults(
    overload=0.1,
    error=0.05,
    hang=0.02,
    truncated=0.01,
    reset=0.02,
    retry_after=0.1,
    seed=1,
)
LATENCY = 0.05
OPTIONS = {"concurrency": 16, "timeout": 1.0}


def write_experiment(folder: Path) -> Path:
    """hernandez2025 at ten contrasts, images of a quarter of the pixels: 25 x (6 x 10 x 3 + 20)
    questions."""
    text = (catalogue_folder("experiments") / "hernandez2025.toml").read_text(
        encoding="utf-8"
    )
    text = (
        text.replace("n = 12", "n = 10")
        .replace('"auto"', '"p_yes"')
        .replace("[1, 2, 4, 8, 16, 24]", "[1, 2, 3, 4, 6, 8]")
    )
    small = (
        (catalogue_folder("stimuli") / "noise_hernandez2025.toml")
        .read_text(encoding="utf-8")
        .split("[levels]")[0]
    )
    small = small.replace("ppd       = 64", "ppd       = 32").replace(
        "size      = 256", "size      = 128"
    )
    (folder / "small.toml").write_text(small, encoding="utf-8")
    path = folder / "killed.toml"
    path.write_text(
        text.replace('"noise_hernandez2025"', '"small.toml"'), encoding="utf-8"
    )
    return path


def timed(path: Path, folder: Path, faults: Faults) -> tuple[float, int]:
    """Seconds and questions of one unbroken run."""
    with SimulatedServer(Witness(), faults=faults, latency=LATENCY) as server:
        observer = pp.load_observer(
            f"openai:{MODEL}", base_url=server.base_url, **OPTIONS
        )
        start = perf_counter()
        result = trials(
            pp.run(path, observer, store=folder / "timed.sqlite", progress=False)
        )
        seconds = perf_counter() - start
        observer.close()
    (folder / "timed.sqlite").unlink()
    assert np.isfinite(result["response"]).all()
    return seconds, result.sizes["trial"]


def killed(path: Path, folder: Path) -> None:
    """Kill a run three times at seeded moments, and see that nothing was lost or asked again."""
    local = Witness()
    witness = Witness()
    total = trials(pp.run(path, local, progress=False)).sizes["trial"]
    moments = np.sort(np.random.default_rng(3).integers(100, total - 200, 3)).tolist()
    with SimulatedServer(witness, faults=FAULTS, latency=LATENCY) as server:
        course = run_and_kill(
            path,
            folder,
            server.base_url,
            witness,
            moments,
            *(f"{name}={value}" for name, value in OPTIONS.items()),
        )
    result = trials(pp.load_results(folder / "runs.sqlite")[0])
    assert (
        np.isfinite(result["response"]).all()
        and len(course.stored[-1]) == result.sizes["trial"] == total
    )
    assert all(
        before.items() <= after.items() for before, after in pairwise(course.stored)
    )
    repeat_count = len(
        repeated_requests(course, folder / "runs.sqlite", local, witness)
    )
    leaked = any(KEY.encode() in file.read_bytes() for file in folder.iterdir())
    print(
        f"killed at {', '.join(str(len(stored)) for stored in course.stored[:-1])} of {total} "
        "stored answers:"
    )
    print(
        f"  {len(course.stored[-1])} answered at the end, {repeat_count} of the stored ones asked "
        f"again, key leaked: {leaked}"
    )
    print(f"  the server answered {len(witness.requests)} times")
    assert len(set(local.requests)) == total, "two questions are the same for a server"
    assert repeat_count == 0 and not leaked


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_experiment(folder)
        asking = load_experiment(path).asking
        assert asking is not None and len(asking.prompts) == 25
        plain, n = timed(path, folder, Faults())
        faulty, _ = timed(path, folder, FAULTS)
        print(
            f"{n} questions: {plain:.1f} s without faults, {faulty:.1f} s with them: "
            f"{faulty / plain:.2f} times "
            "(at most 1.6)"
        )
        results = folder / "results"
        results.mkdir()
        killed(path, results)


if __name__ == "__main__":
    main()
