"""Every command that writes, on a disk that fills up and in a folder that is read-only: one line,
no file but whole ones, and the same command goes on where there is room again."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import rooms
from full_disk import attack
from hostile_stores import store_and_page
from PIL import Image

from psyprobe.cli.commands import all_commands
from psyprobe.running import lease

CONSTANT = "asking.design=constant asking.options={} asking.repeats=1 levels.frequency.values=[1]"
#: Commands that write into the folder {out}, from what `folder` holds.
COMMANDS = {
    "render": "render gabor_achromatic --set size=64 radius=0.2 -o {out}/a.png",
    "render of drive": "render gabor_achromatic --set size=64 radius=0.2 -o {out}/a.npy",
    "render of a grid": (
        "render gabor_achromatic --sheet --grid contrast=0.1,0.5 -o {out}/a.png "
        "--set size=64 radius=0.2"
    ),
    "run": "run small.toml --observer pixels --output {out}",
    "run in words": "run chat.toml --observer simulated:watson-malo --output {out}",
    "run of a share": (
        "run small.toml --observer pixels --store {out}/1.sqlite --shard 1/2"
    ),
    "plot": "plot runs.sqlite -o {out}/p.png",
    "plot of vectors": "plot runs.sqlite -o {out}/p.pdf",
    "report": "report runs.sqlite -o {out}/r.html",
    "export": "store export runs.sqlite -o {out}/t.csv",
    "export as NetCDF": "store export runs.sqlite -o {out}/t.nc",
    "export as inspect": "store export chat.sqlite --as inspect -o {out}",
    "merge": "store merge runs.sqlite chat.sqlite -o {out}/m.sqlite",
    "corrupt": "corrupt noise.png --name jpeg mean_shift --output {out}",
    "questions": "questions chat.toml --as vlmevalkit --input-size 64 -o {out}",
    "questions of a folder": "questions chat.toml --as lmms-eval --input-size 64 -o {out}",
    "export-jspsych": f"export-jspsych orientation_csf --set {CONSTANT} -o {{out}}",
    "r-bench example": "r-bench example --output {out}",
    "r-bench bands": "r-bench bands set --bands 4 --output {out}",
}
ABSENT = {*rooms.COMMANDS} - all_commands().commands.keys()
THERE = [
    name
    for name, command in COMMANDS.items()
    if command.split()[0] not in ABSENT
    and ("--as inspect" not in command or rooms.is_there("tasks/bridges"))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the files that the commands read."""
    folder = tmp_path_factory.mktemp("read")
    for kind, page in (("chat", "chat"), ("encoder", "small")):
        for name, content in store_and_page(kind).items():
            (folder / name).write_bytes(content)
        (folder / "small.toml").rename(folder / f"{page}.toml")
        if kind == "chat":
            (folder / "runs.sqlite").rename(folder / "chat.sqlite")
    pixels = np.random.default_rng(1).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "noise.png")
    rows = ["name,question,choice,answer,type,score,distortion,strength"]
    rows += [f"{i}.png,What is it?,N,a thing,VQA,,1,1" for i in range(2)]
    for kind in ("ref", "dis"):
        (folder / "set" / kind).mkdir(parents=True)
        for i in range(2):
            shutil.copy(folder / "noise.png", folder / "set" / kind / f"{i}.png")
    (folder / "set" / "items.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


# inspect leaves a file open that it could not write.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", THERE)
def test_no_room(
    name: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    # A run that could not give back what it had taken is waited for, as long as its process lives.
    monkeypatch.setattr(lease, "_SILENCE", 0.3)
    attack(COMMANDS[name].split(), tmp_path, capsys, goes_on=name != "r-bench bands")
