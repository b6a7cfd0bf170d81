"""Make the planted registries anew: `python benchmarks/plant_registries.py`; see tests/data/registry."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from psyprobe.reporting.publishing.identity import run_path
from psyprobe.running.registry_run import pack, unpack

HERE = Path(__file__).resolve().parents[1] / "tests" / "data" / "registry"
PSYPROBE = [sys.executable, "-m", "psyprobe"]
CHAT = ["asking.prompts=base", "asking.temperature=1", "asking.repeats.p_yes=1"]
CHAT += ["asking.repeats.text=1", "levels.contrast.n=6"]
CONTRIBUTOR = [
    "--contributor",
    "Example Laboratory",
    "--contact",
    "https://example.org",
]


def psyprobe(*words: str) -> None:
    subprocess.run([*PSYPROBE, *words], check=True)


def publish(run: list[str], store: Path, registry: Path) -> None:
    psyprobe("run", *run, "--output", str(store.parent), "--store", str(store))
    psyprobe("publish", str(store), "-o", str(registry), *CONTRIBUTOR)


def copy(valid: str, name: str, part: str) -> Path:
    """Copy one run of a valid registry, the first whose path holds `part`."""
    source = HERE / valid
    run = next(
        path for path in sorted(source.glob("results/*/*/*/*")) if part in str(path)
    )
    target = HERE / name / run.relative_to(source)
    shutil.copytree(run, target)
    shutil.copy(source / "registry.toml", HERE / name)
    return target


def edit(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text("utf-8"))
    change(value)
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8")


def change_answers(
    run: Path, change: Callable[[bytes], bytes], *, rehash: bool
) -> None:
    """Change the answers, and with `rehash` every digest, name and path that follows from them."""
    answers = run / "answers.jsonl.gz"
    unpacked = change(unpack(answers.read_bytes()))
    answers.write_bytes(pack(unpacked))
    if not rehash:
        return

    def rename(value: Any) -> None:
        value["answers"] |= {
            "sha256": sha256(unpacked).hexdigest(),
            "bytes": len(unpacked),
        }
        value["answers"]["count"] = unpacked.count(b'"k":"a"')
        value["run"] = run_path(value)[-1]

    edit(run / "run.json", rename)
    value = json.loads((run / "run.json").read_text("utf-8"))
    edit(
        run / "scores.json",
        lambda scores: scores.update(
            run=value["run"], answers_sha256=value["answers"]["sha256"]
        ),
    )
    run.rename(run.with_name(value["run"]))


def say_no(unpacked: bytes) -> bytes:
    """Turn every likeliest yes into a no."""
    return unpacked.replace(b'"first_tokens":[["Yes"', b'"first_tokens":[["No"')


def drop_last(unpacked: bytes) -> bytes:
    return b"".join(unpacked.splitlines(keepends=True)[:-1])


def main() -> None:
    for folder in HERE.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    with tempfile.TemporaryDirectory() as temporary:
        store = Path(temporary) / "runs.sqlite"
        encoder = [
            "area",
            "--observer",
            "pixels",
            "packaged:efficientnet_lite0",
            "--score-only",
        ]
        publish(encoder, store, HERE / "valid_encoder")
        command = [*PSYPROBE, "serve-simulated", "watson-malo", "--port", "18435"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            server.stdout.readline()
            url = "base_url=http://127.0.0.1:18435/v1"
            observer = [
                "--observer",
                "openai:simulated:watson-malo",
                "--observer-option",
                url,
            ]
            chat = ["hernandez2025", *observer, "--set", *CHAT]
            for night in ("1", "2"):
                night_store = Path(temporary) / night / "runs.sqlite"
                publish(chat, night_store, HERE / "valid_two_nights")
            server.terminate()
    for folder in HERE.glob("valid_*"):
        text = (
            'schema = "psyprobe-registry/1"\nname = "test case"\nlicence = "CC0-1.0"\n'
        )
        (folder / "registry.toml").write_text(text, "utf-8")

    run = copy("valid_encoder", "score_edited", "efficientnet")
    edit(run / "scores.json", lambda scores: scores["main"][0].update(value=0.99))
    edit(
        run / "scores.json",
        lambda scores: scores["scores"][0]["score"]["alignment"].update(value=0.99),
    )
    chat_run = "hernandez2025"
    run = copy("valid_two_nights", "answer_edited", chat_run)
    change_answers(run, say_no, rehash=False)
    run = copy("valid_two_nights", "answer_edited_rehashed", chat_run)
    change_answers(run, say_no, rehash=True)
    run = copy("valid_two_nights", "answer_missing", chat_run)
    change_answers(run, drop_last, rehash=True)
    run = copy("valid_encoder", "experiment_digest_wrong", "pixels")
    edit(run / "run.json", lambda value: value["experiment"].update(digest="0" * 64))
    run = copy("valid_encoder", "licence_missing", "pixels")
    edit(run / "run.json", lambda value: value.pop("licence"))
    run = copy("valid_encoder", "path_outside", "pixels")
    edit(
        run / "run.json",
        lambda value: value["answers"].update(file="../../answers.jsonl.gz"),
    )
    run = copy("valid_encoder", "answers_bomb", "pixels")
    (run / "answers.jsonl.gz").write_bytes(pack(b"\0" * 10**8))


if __name__ == "__main__":
    main()
