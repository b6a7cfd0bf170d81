"""All of MVP-Bench's questions against a local server: what psyprobe costs beyond a bare client,
and what faults cost.

    python benchmarks/mvp_throughput.py [QUESTIONS]      # default 6231: 1,872 of the main run and 4,359 rotations

The questions and images are made here, as many as the benchmark has and shared by as many
questions: crops of photographs that ship with scikit-image. Servers, latencies and faults are those
of chat_throughput.py. psyprobe's time holds the whole run of a page: digests of the files, reading
and encoding them, the store on disk, the result. Both are measured in turn.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from chat_throughput import CONCURRENCY, FAULTS, MODEL, bare, requests, server
from PIL import Image
from skimage import data

import psyprobe as pp
from psyprobe.files.images import read_image
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Decoding, Inquiry

#: Images of the benchmark; there are about seven questions about each.
IMAGES = 884
SIDE = 320
#: Longer rounds than the chat's: what is left to the end of a round costs more where there are
#: faults.
ROUND = 2100


def make(folder: Path, count: int) -> list[dict[str, Any]]:
    """Questions as many as the benchmark's and in its form, with their images in a folder."""
    photographs = [data.astronaut(), data.coffee(), data.chelsea(), data.rocket()]
    rng = np.random.default_rng(0)
    images = max(1, IMAGES * count // 6231)
    for i in range(images):
        photograph = photographs[i % len(photographs)]
        top, left = (int(rng.integers(0, side - 256)) for side in photograph.shape[:2])
        crop = Image.fromarray(photograph[top : top + 256, left : left + 256]).resize(
            (SIDE, SIDE)
        )
        crop.save(folder / f"{i}.jpg", quality=90)
    rows = [
        {
            "question_id": i,
            "image": f"{i % images}.jpg",
            "question": "Is there a pattern visible in the image (wording "
            f"{i // images})?\nPlease answer yes or no.",
            "answer": "yes",
            "type": "y/n-e",
            "level": "low",
            "id": i % images,
        }
        for i in range(count)
    ]
    # Image by image, as the benchmark's files are.
    return sorted(rows, key=lambda row: row["id"])


def ours(observer: Any, part: list[dict[str, Any]], folder: Path, store: Path) -> float:
    page = folder / "page.toml"
    page.write_text(
        'title = "MVP-Bench"\nprobe = "mvp_bench"\nitems = "."\n', encoding="utf-8"
    )
    (folder / "questions.json").write_text(
        "".join(json.dumps(row) + "\n" for row in part), encoding="utf-8"
    )
    start = time.perf_counter()
    result = pp.run(page, observer, store=store, progress=False)
    took = time.perf_counter() - start
    assert result["question_id"].values.tolist() == [
        str(row["question_id"]) for row in part
    ]
    assert (result["reply"].values != "").all()
    return took


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 6231
    decoding = Decoding(max_tokens=64, logprobs=False)
    times: dict[str, float] = dict.fromkeys(
        ("bare", "psyprobe", "psyprobe, faults"), 0.0
    )
    with (
        tempfile.TemporaryDirectory() as place,
        server() as sound,
        server(*FAULTS) as faulty,
    ):
        folder = Path(place)
        table = make(folder, count)
        to_sound = load_observer(
            f"openai:{MODEL}", base_url=sound, concurrency=CONCURRENCY
        )
        to_faulty = load_observer(
            f"openai:{MODEL}", base_url=faulty, concurrency=CONCURRENCY
        )
        ours(to_sound, table[:50], folder, folder / "warm.sqlite")
        ours(to_faulty, table[:50], folder, folder / "warm_too.sqlite")
        edges = np.linspace(0, count, -(-count // ROUND) + 1).astype(int)
        for first, last in pairwise(edges):
            part = table[first:last]
            images = {
                name: read_image(folder / name) / 255
                for name in {row["image"] for row in part}
            }
            ready = requests(
                [
                    Inquiry(row["question"], (images[row["image"]],), decoding=decoding)
                    for row in part
                ]
            )
            times["bare"] += bare(sound, ready).clock
            times["psyprobe"] += ours(to_sound, part, folder, folder / "sound.sqlite")
            times["psyprobe, faults"] += ours(
                to_faulty, part, folder, folder / "faulty.sqlite"
            )
        to_sound.close()
        to_faulty.close()
    for name, seconds in times.items():
        print(f"{name:17} {seconds:6.1f} s, {count / seconds:6.1f} questions/s")
    print(
        f"throughput of the bare client's: {times['bare'] / times['psyprobe']:.1%} (at least 90 %)"
    )
    print(
        f"time with faults: {times['psyprobe, faults'] / times['psyprobe']:.2f} times (at most 1.6)"
    )


if __name__ == "__main__":
    main()
