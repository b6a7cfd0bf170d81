"""SIGKILL at random moments: the same files in the end, nothing acknowledged asked again, nothing
left behind.

    python benchmarks/random_kills.py [KILLS [NAME ...]]     # 20 of each of KINDS

Issue 12. Each command runs once unbroken, which tells how long it takes and what it writes. Then it
is killed while it runs, and goes on each time where it was. One kill in five comes at a moment
drawn from the time before anything is written, imports for the most part; the others at one drawn
from the time after the process first wrote. A run that ends before its kill is compared, and begins
anew in an empty folder. Servers of models run in this process and note what they are asked, and so
does the encoder, in a file.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [
    str(TESTS),
    str(TESTS / "mvp_construction"),
    str(TESTS / "people"),
    str(TESTS / "questions"),
    str(TESTS / "review"),
]

from children import child
from item_pages import write_page
from simulated_models import SpyModels, photographs
from simulated_person import SimulatedPerson
from small_experiment import write_experiment
from small_questions import write_questions

import psyprobe as pp
from psyprobe.observers.chat.protocol import image_digest
from psyprobe.observers.simulated.serving import SimulatedServer
from psyprobe.running.repeats import _QUESTIONS

#: The command that writes into an output folder.
Command = Callable[[Path], list[str]]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
KEY = {**os.environ, "OPENAI_API_KEY": "sk-of-nobody"}
#: Share of the kills that come before the process writes anything.
EARLY = 0.2


class Notes(Protocol):
    """What was asked, one entry a question, in the order in which it was."""

    @property
    def requests(self) -> list[Any]: ...


class Noted:
    """A function of images and a prompt that notes what it was asked, and takes its time."""

    def __init__(self, say: Callable[[list[Any], str], str]) -> None:
        self.say = say
        self.requests: list[Any] = []

    def __call__(self, images: list[Any], prompt: str, system: str = "") -> str:
        self.requests.append(("".join(map(image_digest, images)), prompt, system))
        time.sleep(0.05)
        return self.say(images, prompt)


class NotedInFile:
    """What an observer in another process noted, a line each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def requests(self) -> list[Any]:
        return self.path.read_text().split() if self.path.exists() else []


@contextmanager
def noting_server(say: Callable[[list[Any], str], str]) -> Iterator[tuple[str, Noted]]:
    noted = Noted(say)
    with SimulatedServer(pp.observer(noted, name="m", bits=8)) as server:
        yield server.base_url, noted


def acknowledged(folder: Path) -> dict[Any, Any]:
    """The answers in the store of an output folder; where there is none, the files that are whole.

    A copy is read: who opens a store takes back what a killed process had begun to write, and that
    is for the next run to do.
    """
    if not (folder / "runs.sqlite").exists():
        return {
            name: content
            for name, content in files(folder).items()
            if not Path(name).name.startswith(".")
        }
    with tempfile.TemporaryDirectory() as place:
        for path in folder.glob("runs.sqlite*"):
            shutil.copy(path, place)
        with sqlite3.connect(Path(place) / "runs.sqlite") as connection:
            if not connection.execute(
                "SELECT count(*) FROM sqlite_master WHERE name = 'answer'"
            ).fetchone()[0]:
                return {}
            return {
                row[0]: row
                for row in connection.execute("SELECT * FROM answer ORDER BY id")
            }


def files(folder: Path) -> dict[str, bytes]:
    """What lies in an output folder; of a store, which tells when each answer came, only that it is
    there."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): b""
        if ".sqlite" in path.name
        else path.read_bytes()
        for path in paths
    }


def written(folder: Path) -> list[Any]:
    """Changes as soon as anything is written into a folder."""
    listed = []
    for path in sorted(folder.rglob("*")):
        try:
            status = path.stat()
        except FileNotFoundError:  # renamed meanwhile
            continue
        listed.append((path, status.st_size, status.st_mtime_ns))
    return listed


def first_writing(process: subprocess.Popen[Any], folder: Path) -> float:
    """Wait until a process writes, or ends; when that was."""
    before = written(folder)
    while process.poll() is None and written(folder) == before:
        time.sleep(0.02)
    return time.monotonic()


def settled(noted: Notes | None) -> int:
    """Count the requests once those under way when a process died have reached the server."""
    count = -1
    while noted is not None and count != len(noted.requests):
        count = len(noted.requests)
        time.sleep(0.3)
    return count


def complete(answers: dict[Any, Any], observers: int) -> int:
    """Count the displayed things that every observer answered; with one observer, the answers."""
    if observers == 1:
        return len(answers)
    return sum(
        count == observers
        # A question's name begins with 32 digits of what is shown.
        for count in Counter(row[1][:32] for row in answers.values()).values()
    )


def checked_after(
    folder: Path,
    reference_folder: Path,
    course: list[tuple[dict[Any, Any], int]],
    noted: Notes | None,
    observers: int,
) -> None:
    """Compare what a killed command has left at its end with what an unbroken one has."""
    current_files = files(folder)
    expected_files = files(reference_folder)
    assert sorted(current_files) == sorted(expected_files), sorted(
        set(current_files) ^ set(expected_files)
    )
    differing = [
        path for path in expected_files if current_files[path] != expected_files[path]
    ]
    assert not differing, differing
    final = acknowledged(folder)
    for number, (stored, start) in enumerate(course):
        assert stored.items() <= final.items(), (
            "what was acknowledged is not there as it was"
        )
        if noted is not None:
            repeat_count = len(set(noted.requests[start:]))
            left_to_ask = complete(final, observers) - complete(stored, observers)
            if observers > 1:
                # An observer in the process of the run is asked a few stored questions again.
                left_to_ask += _QUESTIONS * (len(course) - number)
            assert repeat_count <= left_to_ask, (
                f"{repeat_count} asked where {left_to_ask} were left"
            )


def tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def broken(
    name: str,
    command: Command,
    place: Path,
    kills: int,
    noted: Notes | None = None,
    observers: int = 1,
    unnoted: int = 0,
    **env: str,
) -> None:
    """Kill a command that asks so many observers, and compare what it leaves with what an unbroken
    one does."""
    reference_folder = place / f"{name}-whole"
    folder = place / f"{name}-broken"
    rng = np.random.default_rng(12)
    options: dict[str, Any] = {"seconds": 600, "env": {**KEY, **env}, **QUIET}
    begun = time.monotonic()
    with child(command(reference_folder), **options) as process:
        early = first_writing(process, reference_folder) - begun
        assert process.wait() == 0, command(reference_folder)
    late = time.monotonic() - begun - early
    answers = len(acknowledged(reference_folder))
    if noted is not None:
        assert (
            len(set(noted.requests))
            == complete(acknowledged(reference_folder), observers) - unnoted
        ), len(set(noted.requests))
    course: list[tuple[dict[Any, Any], int]] = []
    moments = []
    ends = 0
    halves = 0
    while True:
        with child(command(folder), **options) as process:
            if len(moments) == kills:
                process.wait()
            elif rng.random() < EARLY:
                time.sleep(rng.uniform(0, early))
            else:
                first_writing(process, folder)
                time.sleep(rng.uniform(0, late))
            code = process.poll()
        if code is None:
            course.append((acknowledged(folder), settled(noted)))
            moments.append(len(course[-1][0]))
            tell(f"{name}: kill {len(moments)} after {moments[-1]} of {answers}")
            halves += any(
                Path(path).name.startswith(".") or path.endswith("-journal")
                for path in files(folder)
            )
            continue
        assert code == 0, command(folder)
        checked_after(folder, reference_folder, course, noted, observers)
        ends += 1
        tell(f"{name}: end {ends}")
        if len(moments) == kills:
            break
        shutil.rmtree(folder)
        course = []
    amid = sum(0 < moment < answers for moment in moments)
    kind = "answers" if (reference_folder / "runs.sqlite").exists() else "files"
    print(
        f"{name}: {kills} kills, {sum(map(bool, moments))} after the first of {answers} {kind}, "
        f"{amid} of these before "
        f"the last; {halves} left a half-written file; {ends} ends, each with the same "
        f"{len(files(reference_folder))} files"
        + (
            "; nothing acknowledged was asked again" if noted and observers == 1 else ""
        ),
        flush=True,
    )


def program(*words: object) -> list[str]:
    return [sys.executable, "-m", "psyprobe", *map(str, words)]


def server_options(url: str) -> list[str]:
    """A server, and so few questions at once that a good part of the time goes by in asking."""
    return ["--observer-option", f"base_url={url}", "concurrency=2"]


#: A package with an observer that notes each image that is no background: those, and what is a step
#: of rounding away from them, are passed again.
NOTING = """
import hashlib, os, time
from pathlib import Path
import numpy as np
from psyprobe.observers import ObserverKind, observer

def load(name):
    def features(images):
        with Path(os.environ["NOTED"]).open("a") as file:
            for each in filter(lambda image: np.ptp(image) > 1e-4, images):
                file.write(hashlib.sha256(each.tobytes()).hexdigest() + "\\n")
        time.sleep(0.02)
        rows = images.reshape(len(images), -1)
        return np.concatenate([rows, np.square(rows[:, ::3] - np.float32(0.5))], axis=1)

    return observer(features, name="noting")

KIND = ObserverKind("noting", load, form="noting:NAME", summary="notes what it is shown")
"""


def encoder(place: Path, kills: int) -> None:
    dist_info = place / "noting-0.1.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: noting\nVersion: 0.1\n"
    )
    (dist_info / "entry_points.txt").write_text(
        "[psyprobe.observers]\nnoting = noting:KIND\n"
    )
    (place / "noting.py").write_text(NOTING)
    path = write_experiment(
        place, ("to = 4, n = 3", "to = 4, n = 10"), ("to = 1, n = 3", "to = 1, n = 10")
    )
    run = program("run", path, "--observer", "noting:it", "--batch-size", 1, "--output")
    env = {
        "NOTED": str(place / "noted.txt"),
        "PYTHONPATH": f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    noted = NotedInFile(place / "noted.txt")
    # The image itself is asked beside it, as the baseline; one answer is of a background against
    # itself.
    broken(
        "encoder",
        lambda folder: [*run, str(folder)],
        place,
        kills,
        noted,
        observers=2,
        unnoted=1,
        **env,
    )


def chat(place: Path, kills: int) -> None:
    with noting_server(
        lambda images, prompt: "yes" if np.asarray(images[0]).std() > 0.02 else "no"
    ) as (
        url,
        noted,
    ):
        run = [
            *program("run", write_questions(place), "--observer", "openai:m"),
            *server_options(url),
        ]
        broken(
            "chat", lambda folder: [*run, "--output", str(folder)], place, kills, noted
        )


def items(place: Path, kills: int) -> None:
    rows = ["name,question,choice,answer,type,score,distortion,strength"]
    for kind in ("ref", "dis"):
        (place / "set" / kind).mkdir(parents=True)
    for i in range(30):
        rows.append(f"{i}.png,What is in image {i}?,N,thing {i},VQA,,1,1")
        for kind in ("ref", "dis"):
            pixels = np.full((16, 16, 3), 2 * i + (kind == "dis"), dtype=np.uint8)
            Image.fromarray(pixels).save(place / "set" / kind / f"{i}.png")
    (place / "set" / "items.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def say(images: list[Any], prompt: str) -> str:
        return f"thing {int(np.asarray(images[0]).mean() * 255)}" if images else "2"

    with noting_server(say) as (url, noted):
        judge = {"observer": "openai:m", "options": {"base_url": url, "concurrency": 2}}
        page = write_page(place / "items.toml", "r_bench", place / "set", judge)
        run = [*program("run", page, "--observer", "openai:m"), *server_options(url)]
        broken(
            "items", lambda folder: [*run, "--output", str(folder)], place, kills, noted
        )


def mvp_build(place: Path, kills: int) -> None:
    models = SpyModels()
    photograph_folder = photographs(place / "photographs", longest=64)

    def say(images: list[Any], prompt: str) -> str:
        return str(
            (models.captioner if images else models.chat).answer(images, prompt).text
        )

    with noting_server(say) as (url, noted):
        run = program(
            "mvp-build",
            photograph_folder,
            "--chat",
            "openai:m",
            "--chat-option",
            f"base_url={url}",
        )
        run += ["--segmenter-option", "scale=100", "min_size=50"]
        broken(
            "mvp-build",
            lambda folder: [*run, "--output", str(folder)],
            place,
            kills,
            noted,
        )


def corrupt(place: Path, kills: int) -> None:
    run = program(
        "corrupt",
        photographs(place / "to_corrupt", longest=384),
        "--name",
        "jpeg",
        "motion_blur",
        "white_noise",
    )
    broken("corrupt", lambda folder: [*run, "--output", str(folder)], place, kills)


def review(place: Path, kills: int) -> None:
    """A person decides without rest while the server is killed: what it acknowledged is there, once
    and in order."""
    from test_reviewing import call

    folder = place / "review"
    rng = np.random.default_rng(12)
    rows = [f"{i}.png,What is in image {i}?,N,thing {i},VQA,,1,1" for i in range(10)]
    for kind in ("ref", "dis"):
        (folder / kind).mkdir(parents=True)
        for i in range(10):
            Image.fromarray(np.full((16, 16, 3), 20 * i, np.uint8)).save(
                folder / kind / f"{i}.png"
            )
    header = "name,question,choice,answer,type,score,distortion,strength"
    (folder / "items.csv").write_text(
        "\n".join([header, *rows]) + "\n", encoding="utf-8"
    )
    command = [
        sys.executable,
        "-u",
        "-m",
        "psyprobe",
        "review",
        str(folder),
        "--annotator",
        "ann",
    ]
    journal = folder / "people" / "label-ann.jsonl"
    before = files(folder)
    decisions: dict[str, int] = {}  # text of each decision to its task
    lost: dict[str, int] = {}  # those that were under way

    def decide(address: str) -> None:
        while True:
            task = int(rng.integers(10))
            text = f"decision {len(decisions) + len(lost)}"
            try:
                assert (
                    call(
                        address, "decide", {"task": task, "value": "edit", "text": text}
                    )[0]
                    == 200
                )
            except (OSError, http.client.HTTPException):
                lost[text] = task
                return
            decisions[text] = task

    moments = []
    for kill in range(kills + 1):
        with child(
            command,
            seconds=300,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            if kill < kills and rng.random() < EARLY:
                time.sleep(rng.uniform(0, 1))
                moments.append(0)
                continue
            assert process.stdout is not None
            address = process.stdout.readline().split()[1]
            lines = (
                journal.read_text(encoding="utf-8").splitlines()
                if journal.exists()
                else []
            )
            texts = [json.loads(line)["text"] for line in lines]
            assert [text for text in texts if text not in lost] == list(decisions), (
                texts,
                decisions,
            )
            assert len(set(texts)) == len(texts) and set(texts) <= {
                *decisions,
                *lost,
            }, texts
            decided_tasks = call(address, "state")[1]["decided"]
            assert {
                task for task, is_decided in enumerate(decided_tasks) if is_decided
            } == {{**decisions, **lost}[text] for text in texts}
            if kill < kills:
                person = threading.Thread(target=decide, args=(address,), daemon=True)
                person.start()
                time.sleep(rng.uniform(0, 0.5))
                process.kill()
                person.join()
                moments.append(len(decisions))
    assert sorted(files(folder)) == sorted([*before, str(journal.relative_to(folder))])
    arrived = len(texts) - len(decisions)
    print(
        f"review: {kills} kills, {sum(map(bool, moments))} after the first decision; all "
        f"{len(decisions)} acknowledged "
        f"decisions there each time, once and in order, and {arrived} of {len(lost)} that were "
        "under way",
        flush=True,
    )


class Sitter:
    """A person whose answer to a trial depends on nothing but what is shown, and who notes what the
    server acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, str] = {}
        self.under_way: dict[int, str] = {}

    def sit(self, address: str) -> None:
        """Answer until the session ends, or the server dies."""
        person = SimulatedPerson(address)
        try:
            facts = person.send("open")
            if facts["task"] == "pictures":
                state = person.send("begin", consent=True)
            else:
                state = person.begin()
            while state.get("phase") in ("wait", "trial"):
                if state["phase"] == "wait":
                    state = person.send("state")
                    continue
                state = self._answer(person, state)
        except (OSError, http.client.HTTPException, ValueError):
            return
        assert state.get("phase") == "done", state

    def _answer(self, person: SimulatedPerson, state: dict[str, Any]) -> dict[str, Any]:
        # The dither's seed is of the session.
        draw = {**state.get("draw", {}), "seed": 0}
        display_key = json.dumps([state["number"], draw])
        choice = state["words"][sum(display_key.encode()) % len(state["words"])]
        number = state["number"]
        self.under_way[number] = choice
        reply = {"number": number, "attempt": state["attempt"], "choice": choice}
        reply |= {"reaction_ms": 900, "frames_shown": 30, "frames_dropped": 0}
        reply |= {"period_ms": 16.7, "key": "f"}
        if "images" in state:
            reply["scales"] = [1] * len(state["images"])
        state = person.send("answer", **reply)
        assert "status" not in state, state
        self.acknowledged[number] = choice
        return state


def observe(place: Path, kills: int) -> None:
    """A person answers without rest while the server of the page is killed, about patterns and
    about pictures."""
    rng = np.random.default_rng(12)
    constant = ["asking.design=constant", "asking.options={}", "asking.repeats=10"]
    constant += [
        "levels.frequency.values=[1,8]",
        "levels.contrast.values=[0.05,0.2,0.8]",
    ]
    pages = {
        "patterns": ["orientation_csf", "--set", *constant],
        "pictures": [str(pictures_page(place))],
    }
    for label, page in pages.items():
        command = program("observe", *page, "--person", "ANNA", "--store")
        reference_answers = sat_down(command, place / f"{label}-whole", Sitter(), None)
        assert reference_answers
        folder = place / f"{label}-broken"
        sitter = Sitter()
        moments: list[int] = []
        ends = 0
        while True:
            is_last = len(moments) == kills
            moment = None if is_last else rng.uniform(-EARLY, 1 - EARLY)
            answers = sat_down(command, folder, sitter, moment)
            numbers = [number for number, _ in answers]
            assert numbers == list(range(1, len(numbers) + 1)), numbers
            assert sitter.acknowledged.items() <= dict(answers).items()
            assert dict(answers).items() <= sitter.under_way.items()
            if len(answers) == len(reference_answers):
                assert answers == reference_answers
                ends += 1
                shutil.rmtree(folder)
                sitter = Sitter()
                if is_last:
                    break
                continue
            moments.append(len(answers))
            tell(
                f"observe {label}: kill {len(moments)} after {len(answers)} of {len(reference_answers)}"
            )
        print(
            f"observe {label}: {kills} kills, {sum(map(bool, moments))} after the first answer; "
            f"all acknowledged answers there each time, once and in order; {ends} ends, each with "
            f"the same {len(reference_answers)} answers",
            flush=True,
        )


def pictures_page(place: Path) -> Path:
    """Write a set of 30 pairs of pictures, and the page that asks about it."""
    folder = place / "pictures"
    rows = ["name,question,choice,answer,type,score,distortion,strength"]
    for kind in ("ref", "dis"):
        (folder / kind).mkdir(parents=True)
        for i in range(30):
            pixels = np.full((16, 16, 3), 8 * i + (kind == "dis"), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / kind / f"{i}.png")
    for i in range(30):
        rows.append(f"{i}.png,Is image {i} bright?,A.yes; B.no,A,MCQ,,1,1")
    (folder / "items.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return write_page(place / "pictures.toml", "r_bench", folder)


def sat_down(
    command: list[str], folder: Path, sitter: Sitter, moment: float | None
) -> list[tuple[int, str]]:
    """Seat a person until a moment, s, or the end; before 0 the server is killed while it starts.

    Returns
    -------
    list of (int, str)
        What the store holds then: number and choice of each trial.
    """
    with child(
        [*command, str(folder / "runs.sqlite")],
        seconds=300,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**KEY, "PYTHONUNBUFFERED": "1"},
    ) as process:
        if moment is not None and moment < 0:
            time.sleep(-moment / EARLY)
        else:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None
            person = threading.Thread(
                target=sitter.sit, args=(address[0],), daemon=True
            )
            person.start()
            person.join(moment)
            process.kill()
            person.join()
    return sorted(
        (reply["session"]["number"], reply["text"])
        for row in acknowledged(folder).values()
        for reply in (json.loads(row[4])["reply"],)
        if "number" in (reply.get("session") or {})
    )


KINDS = {
    "encoder": encoder,
    "chat": chat,
    "items": items,
    "mvp-build": mvp_build,
    "review": review,
    "observe": observe,
    "corrupt": corrupt,
}


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    names = sys.argv[2:] or list(KINDS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            KINDS[name](Path(folder), kills)
            print(f"  in {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
