"""A Dask cluster of processes of this machine: one result, though a worker is killed and another
comes (issue 13)."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import noting
import pytest
from children import child
from noting import same_bytes
from small_experiment import write_experiment
from whole_suite import DETECTION, chat_is_the_same, small

import psyprobe as pp
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.running import cluster

distributed = pytest.importorskip(
    "distributed", reason="the cluster extra is not installed"
)

TESTS = Path(__file__).resolve().parents[1]


class Machines:
    """A scheduler and workers, each a process that lives for some minutes at most."""

    def __init__(self, folder: Path, note_file: Path) -> None:
        self._stack, self._file = ExitStack(), folder / "scheduler.json"
        paths = os.pathsep.join(
            [str(TESTS.parent), str(TESTS / "questions"), *filter(None, sys.path)]
        )
        self._environment = {
            **os.environ,
            "PYTHONPATH": paths,
            noting.VARIABLE: str(note_file),
            "OPENAI_API_KEY": "none",
        }
        self._start("scheduler", "--port", "0", "--no-dashboard")
        end = time.monotonic() + 60
        while not self._file.exists() and time.monotonic() < end:
            time.sleep(0.05)

    def _start(self, role: str, *options: str) -> subprocess.Popen[Any]:
        module = f"distributed.cli.dask_{role}"
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            module,
            "--scheduler-file",
            str(self._file),
            *options,
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return self._stack.enter_context(
            child(command, seconds=400, env=self._environment, **quiet)
        )

    def worker(self) -> int:
        """Start a worker; its process number."""
        return self._start(
            "worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"
        ).pid

    def client(self, workers: int) -> Any:
        """A client of so many workers at least: those that are there, and what is missing."""
        client = distributed.Client(scheduler_file=str(self._file), timeout=60)
        for _ in range(len(client.nthreads()), workers):
            self.worker()
        client.wait_for_workers(workers, timeout=1000)
        return client

    def end(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, Path, Machines]]:
    """Return the files in which this process and the workers note batches, and the workers."""
    folder = tmp_path_factory.mktemp("cluster")
    machines = Machines(folder, folder / "there.txt")
    yield folder / "here.txt", folder / "there.txt", machines
    machines.end()


@pytest.mark.slow
@pytest.mark.skipif(
    "PSYPROBE_KILLS" not in os.environ,
    reason="30 s; test_workers.py does the same in processes. Set PSYPROBE_KILLS=1",
)
def test_six_experiments_and_a_chat_give_the_same_bytes_though_a_worker_dies(
    place: tuple[Path, Path, Machines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_notes, cluster_notes, machines = place
    monkeypatch.setenv(noting.VARIABLE, str(local_notes))
    # On a busy machine a unit may be late, and is given to a second worker; here only a dead
    # worker's are.
    monkeypatch.setattr(cluster, "_LATE", 1e6)
    observer, pages = noting.observer(), [small(name) for name in DETECTION]
    alone = [pp.run(page, observer, store=tmp_path / "alone.sqlite") for page in pages]
    pids, killed = [machines.worker() for _ in range(3)], []
    with machines.client(workers=3) as client:
        thread = noting.kill_one(
            cluster_notes, len(noting.notes(local_notes)) // 3, pids, killed
        )
        for place_in_line, page in enumerate(pages):
            if place_in_line == 3:
                thread.join(timeout=1000)
                machines.worker()
            result = pp.run(
                page, observer, executor=client, store=tmp_path / "runs.sqlite"
            )
            assert same_bytes(alone[place_in_line], result, tmp_path), page.name
        assert killed
        assert all(
            killed[0] in shown_by for shown_by in noting.repeated_batches(cluster_notes)
        )
        assert {digest for _, digest in noting.notes(cluster_notes)} == {
            digest for _, digest in noting.notes(local_notes)
        }
        client.wait_for_workers(3, timeout=1000)
        chat_is_the_same(
            tmp_path, lambda page, chat: pp.run(page, chat, executor=client)
        )


@pytest.mark.slow
def test_what_a_worker_dawdles_at_is_given_to_another_and_counts_once(
    place: tuple[Path, Path, Machines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_notes, cluster_notes, machines = place
    monkeypatch.setenv(noting.VARIABLE, str(local_notes))
    monkeypatch.setattr(cluster, "_LATE", 0.5)
    local_notes.with_suffix(".dawdled").touch()
    page, observer = write_experiment(tmp_path), noting.observer(noting.dawdling)
    alone, before = pp.run(page, observer), len(noting.repeated_batches(cluster_notes))
    with machines.client(workers=2) as client:
        assert same_bytes(alone, pp.run(page, observer, executor=client), tmp_path)
    assert len(noting.repeated_batches(cluster_notes)) > before


@pytest.mark.slow
def test_a_unit_that_kills_every_worker_ends_a_run_and_no_other(
    place: tuple[Path, Path, Machines], tmp_path: Path
) -> None:
    _, _, machines = place
    with machines.client(workers=1) as client:
        failing = noting.observer(noting.failing)
        with pytest.raises(
            PsyprobeError,
            match=r"a worker failed at noting\.py, line .*: ValueError: too bright",
        ):
            pp.run(write_experiment(tmp_path), failing, executor=client)
        page = write_experiment(tmp_path)
        assert same_bytes(
            pp.run(page, "pixels"), pp.run(page, "pixels", executor=client), tmp_path
        )


@pytest.mark.parametrize("queue", ["SLURM", "PBS"])
def test_the_recipe_writes_a_job_script_that_a_shell_reads(queue: str) -> None:
    """Tried as far as it goes where there is no queue: what would be submitted."""
    jobqueue = pytest.importorskip(
        "dask_jobqueue", reason="dask-jobqueue is not installed"
    )
    page = (TESTS.parent / "docs" / "workers.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(
        r"^cluster = SLURMCluster(\(.*?^\))", page, re.MULTILINE | re.DOTALL
    )
    # Its scheduler runs in this process; nothing is submitted before workers are asked for.
    make = functools.partial(
        getattr(jobqueue, f"{queue}Cluster"),
        scheduler_options={"dashboard_address": ":0"},
    )
    cluster = eval(f"make{recipe}", {"make": make})
    with cluster:
        script = cluster.job_script()
    assert (
        subprocess.run(["bash", "-n"], input=script, text=True, timeout=1000).returncode
        == 0
    )
    lines = script.splitlines()
    head = {
        "SLURM": ["#SBATCH -n 1", "#SBATCH --cpus-per-task=4", "#SBATCH -t 02:00:00"],
        "PBS": ["#PBS -q normal"],
    }
    assert set(head[queue]) <= set(lines)
    assert lines.index("export OMP_NUM_THREADS=1") < len(lines) - 1
    assert "distributed.cli.dask_worker tcp://" in lines[-1]
    assert "--nworkers 4" in lines[-1] and "--nthreads 1" in lines[-1]


class LostScheduler:
    """A client whose scheduler was killed."""

    def nthreads(self) -> dict[str, int]:
        raise OSError("ConnectionPool closing.")


def test_a_scheduler_that_ends_is_one_sentence(tmp_path: Path) -> None:
    page = write_experiment(tmp_path)
    with pytest.raises(PsyprobeError, match="scheduler cannot be reached any more"):
        pp.run(page, "pixels", executor=cluster.Cluster(LostScheduler()))


def test_no_scheduler_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psyprobe.running.cluster._PATIENCE", 0.5)
    with pytest.raises(InputError, match="no Dask scheduler answers at 'tcp:"):
        pp.run(write_experiment(tmp_path), "pixels", executor="tcp://127.0.0.1:9")
