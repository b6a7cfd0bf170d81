"""Corrupt folders of images, on all cores; what is written depends on names and seed alone, not on order or cores."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psyprobe.corruption.apply import corrupt
from psyprobe.corruption.dimensions import STRENGTHS, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import read_image
from psyprobe.files.output import make_folder, write_whole
from psyprobe.files.terminal import progress_bar

#: What the manifest says of each image.
MANIFEST = ("file", "original", "dimension", "name", "step", "group", "strength", "parameter", "seed", "simulated")


@dataclass(frozen=True)
class Corrupted:
    """What came out."""

    #: Written, in the order of the manifest.
    files: tuple[Path, ...]
    #: A CSV with one line a file.
    manifest: Path
    #: Why each image that was left out was; empty unless that was asked for.
    skipped: tuple[str, ...]


def corrupt_files(
    paths: Sequence[Path],
    output: str | Path,
    *,
    names: Sequence[str] | None = None,
    strengths: Sequence[str] = STRENGTHS,
    seed: int = 0,
    scale: bool = False,
    skip: bool = False,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Corrupted:
    """Corrupt image files in several ways, and say in a manifest which is which.

    Parameters
    ----------
    paths : sequence of Path
        Image files; their names without ending must differ.
    output : str or Path
        The folder to write to, made where it is not there. Files are PNG: "cat-motion_blur-mid.png".
    names, strengths : sequence of str
        Which dimensions and strengths; by default all.
    seed, scale
        As in `corrupt`; the name of a file is its image_id.
    skip : bool
        Leave out what cannot be read and count it, instead of ending with the first.
    executor : concurrent.futures.Executor, optional
        Who works; by default one thread a core.
    progress : bool, optional
        As in `progress_bar`.
    """
    known = dimensions()
    chosen = list(known) if names is None else list(dict.fromkeys(names))
    for name in chosen:
        if name not in known:
            raise unknown_name("corruption", name, known)
    for strength in strengths:
        if strength not in STRENGTHS:
            raise unknown_name("strength", strength, STRENGTHS)
    stems = [path.stem for path in paths]
    if len(set(stems)) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise InputError(f"two images are called {twice!r}; give each a name of its own")
    folder = make_folder(output)
    jobs = [_Job(str(path), str(folder), tuple(chosen), tuple(strengths), seed, scale) for path in paths]
    skipped, files, rows = [], [], []
    # Codecs, OpenCV and numpy's generators work outside Python's lock; forked processes hang once OpenCV has threads.
    workers = executor or ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        with progress_bar(len(jobs), progress) as bar:
            for job, problem in zip(jobs, workers.map(_work, jobs), strict=True):
                bar.update()
                if problem and not skip:
                    raise InputError(problem)
                if problem:
                    skipped.append(problem)
                    continue
                for name, strength, file in job.outputs:
                    files.append(file)
                    way, level = known[name], known[name].levels[STRENGTHS.index(strength)]
                    kind = (way.id, name, way.step, way.group, strength, level, seed, int(way.captured))
                    rows.append((file.name, Path(job.path).name, *kind))
    finally:
        if executor is None:
            workers.shutdown(cancel_futures=True)
    manifest = folder / "manifest.csv"
    with manifest.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([MANIFEST, *rows])
    return Corrupted(tuple(files), manifest, tuple(skipped))


@dataclass(frozen=True)
class _Job:
    """All corruptions of one image: it is read once, and its worker writes the files."""

    path: str
    folder: str
    names: tuple[str, ...]
    strengths: tuple[str, ...]
    seed: int
    scale: bool

    @property
    def outputs(self) -> list[tuple[str, str, Path]]:
        stem = Path(self.path).stem
        return [
            (name, strength, Path(self.folder) / f"{stem}-{name}-{strength}.png")
            for name in self.names
            for strength in self.strengths
        ]


def _work(job: _Job) -> str:
    """Corrupt one image; what is wrong with it, or nothing."""
    from PIL import Image

    try:
        image = read_image(job.path)
        for name, strength, file in job.outputs:
            changed = corrupt(image, name, strength, job.seed, image_id=Path(job.path).stem, scale=job.scale)
            write_whole(file, partial(Image.fromarray(changed).save, format="PNG", compress_level=1))
    except InputError as error:
        return str(error)
    return ""
