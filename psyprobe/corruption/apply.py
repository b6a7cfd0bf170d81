"""The 33 dimensions, and what corrupts an image or a folder of images in them.

References
----------
Li et al. (2024). R-Bench, arXiv 2410.05474: the dimensions. It publishes no parameters; those here
are levels of KADID-10k (Lin, Hosu, Saupe 2019, QoMEX) where it has the type, and ours where not, in
``dimensions.toml``.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import importlib
import io
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.corruption import methods
from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.files.images import read_image
from psyprobe.files.output import make_folder, write_text, write_whole
from psyprobe.files.terminal import progress_bar

#: Strengths as R-Bench numbers them, from 1.
STRENGTHS = ("low", "mid", "high")

#: The seven steps on the way of an image, in their order.
STEPS = {
    "EI": "Environment interference",
    "CI": "Camera interference",
    "AD": "Analog-to-digital conversion",
    "SE": "Source encoding",
    "CT": "Channel transmission",
    "RD": "Receiver decoding",
    "EP": "Enhancement post-processing",
}

#: Low-level attributes that a dimension spoils; "Wild" are those that the authors photographed.
GROUPS = ("Blur", "Luminance", "Chrominance", "Spatial", "Noise", "Compression", "Wild")


@dataclass(frozen=True)
class Dimension:
    """One way in which an image goes wrong, as ``dimensions.toml`` lists it."""

    #: In lower case: "motion_blur".
    name: str
    #: 1 to 33, as in R-Bench.
    id: int
    #: As R-Bench prints it.
    title: str
    #: A key of `STEPS`.
    step: str
    #: One of `GROUPS`.
    group: str
    #: Whether chance has a part in it, so that it takes a seed.
    stochastic: bool
    #: What its parameter is, with its unit.
    parameter: str
    #: The parameter at low, mid and high strength.
    levels: tuple[float, ...]
    #: From no effect, or nearly none, to beyond the high strength: where a parameter is searched.
    span: tuple[float, ...]
    #: Where the levels come from; R-Bench publishes none.
    source: str
    #: Whether the parameter is a whole number.
    whole: bool = False
    #: What grows with the image where that is asked for: a "length" with its side, a "count" with
    #: its area.
    scales: str = ""
    #: Number of the same type in KADID-10k.
    kadid: int | None = None
    #: Whether R-Bench photographed it; here it is simulated, so scores must not be put beside the
    #: paper's.
    captured: bool = False
    #: Whether it works on colours: a grey image goes through it as RGB, and its luma comes back.
    colour: bool = False
    #: As what 8-bit codes go through it: "values" from 0 to 1; "codes" as they are, where it moves,
    #: covers, averages or encodes them; or a "table" of what becomes of all 256, where it changes
    #: each by itself.
    computed: str = "values"

    def level(self, strength: str) -> float:
        """The parameter at one of the three strengths."""
        if strength not in STRENGTHS:
            raise unknown_name("strength", strength, STRENGTHS)
        return self.levels[STRENGTHS.index(strength)]


@functools.cache
def dimensions() -> dict[str, Dimension]:
    """The 33 dimensions by name, in the order of their numbers.

    >>> [name for name, dimension in dimensions().items() if dimension.captured][:2]
    ['bright_illumination', 'dark_illumination']
    """
    page = tomllib.loads(
        files("psyprobe.corruption").joinpath("dimensions.toml").read_text(encoding="utf-8")
    )
    return {
        name: Dimension(name, **row | {"levels": tuple(row["levels"]), "span": tuple(row["span"])})
        for name, row in page.items()
    }


def dimension_numbered(number: int) -> Dimension:
    """The dimension of a number from 1 to 33.

    Examples
    --------
    >>> dimension_numbered(1).name
    'motion_blur'
    """
    return list(dimensions().values())[number - 1]


def dimension_of(name: str) -> Dimension:
    """The dimension of a name; one that there is not is an `UnknownNameError`."""
    known = dimensions()
    if name not in known:
        raise unknown_name("corruption", name, known)
    return known[name]


#: Pixels of an image for which KADID's lengths and counts are meant.
NATIVE = 512 * 384


#: For dimensions without chance.
_UNUSED = np.random.default_rng(0)


def corrupt(
    image: Any,
    name: str,
    strength: str | float,
    seed: int = 0,
    *,
    image_id: str = "",
    scale: bool = False,
    denoiser: Callable[[FloatArray, float], FloatArray] | None = None,
) -> Any:
    """Corrupt an image in one of the 33 ways of R-Bench.

    Parameters
    ----------
    image : array_like, shape (H, W), (H, W, 1) or (H, W, 3)
        sRGB or grey: float from 0 to 1, or uint8. At least 8 px a side.
    name : str
        A dimension: "motion_blur"; see `dimensions`.
    strength : {"low", "mid", "high"} or float
        One of the three, or a parameter of the dimension in its own unit.
    seed : int
        Of chance. What is drawn depends on seed, dimension, strength and `image_id` alone, so order
        does not matter.
    image_id : str
        A name of the image, so that images of one seed are not all corrupted by the same noise.
    scale : bool
        Scale lengths by the square root of the number of pixels over 512 x 384, and counts of
        blocks by that number: the parameters are meant for that size. By default they are taken as
        they are.
    denoiser : callable, optional
        Of `cnn_denoise` only: from one noisy plane (0 to 1) and the standard deviation of its noise
        to a plane. Without one, non-local means stand in for the network.

    Raises
    ------
    PsyprobeError
        OpenCV is not installed.

    Notes
    -----
    The result has the shape and format of the image. Dimensions with ``captured`` are simulated;
    R-Bench photographed them.

    Examples
    --------
    >>> image = np.full((64, 64, 3), 0.5)
    >>> float(corrupt(image, "mean_shift", 0.25).mean()) in (0.25, 0.75)
    True
    >>> bool((corrupt(image, "white_noise", "mid", seed=1) == corrupt(image, "white_noise", "mid", seed=1)).all())
    True
    """
    dimension, function, amount = _asked(
        name, strength if isinstance(strength, str) else float(strength)
    )
    given, values = _checked(image, dimension)
    if scale:
        pixels = values.shape[0] * values.shape[1] / NATIVE
        amount *= {"length": math.sqrt(pixels), "count": pixels, "": 1.0}[dimension.scales]
    rng = _UNUSED
    if dimension.stochastic:
        told = hashlib.sha256(f"{seed}\n{name}\n{strength}\n{image_id}".encode()).digest()
        rng = np.random.default_rng(np.frombuffer(told, "<u4"))
    by_luma = values.shape[-1] == 1 and dimension.colour
    if by_luma:
        values = np.repeat(values, 3, axis=-1)
    if denoiser is not None:
        if name != "cnn_denoise":
            raise InputError(f"a denoiser is for 'cnn_denoise', not for {name!r}; leave it out")
        function = functools.partial(methods.cnn_denoise, denoiser=denoiser)
    if dimension.computed == "table" and given.dtype == np.uint8:
        return _looked_up(given, _table(function, amount, rng))
    result = function(values, amount, rng)
    if result.dtype == np.uint8:
        return result.reshape(given.shape)
    result = np.clip(result, 0, 1, out=None if result is values else result)
    if by_luma:
        result = luma(result)
    if given.dtype == np.uint8:
        import cv2

        return np.asarray(cv2.convertScaleAbs(result, alpha=255)).reshape(given.shape)
    return result.reshape(given.shape).astype(given.dtype, copy=False)


@functools.lru_cache
def _asked(
    name: str, strength: str | float
) -> tuple[Dimension, Callable[[Any, float, np.random.Generator], Any], float]:
    """The dimension, its function and its parameter.

    They are looked up once: an image drives Python's own code from the processor's cache, so that
    to look up takes ten times as long between images as in a row.
    """
    dimension = dimension_of(name)
    for package in ("cv2", "stringzilla"):
        # Not found but imported: while another thread imports it, it may have no specification yet.
        try:
            importlib.import_module(package)
        except ModuleNotFoundError:
            raise PsyprobeError(
                f"corruptions need {package}: pip install 'psyprobe[corruption]'"
            ) from None
    amount = dimension.level(strength) if isinstance(strength, str) else strength
    if not math.isfinite(amount):
        raise InputError(
            f"the strength of {dimension.name} is {amount}; give a finite number "
            f"({dimension.parameter})"
        )
    return dimension, getattr(methods, name), amount


@functools.lru_cache(maxsize=8)
def _table(
    function: Callable[[FloatArray, float, np.random.Generator], FloatArray],
    amount: float,
    rng: np.random.Generator,
) -> bytes:
    """What a function of each value by itself makes of all 8-bit codes."""
    ramp = (np.arange(256, dtype=np.float32) / np.float32(255))[:, None, None]
    return np.rint(np.clip(function(ramp, amount, rng), 0, 1) * 255).astype(np.uint8).tobytes()


def _looked_up(codes: Any, table: bytes) -> Any:
    """A library for text looks up 64 bytes at once; OpenCV's and numpy's look-ups take one by
    one.
    """
    from stringzilla import translate

    found = np.array(codes, order="C")
    translate(found.data.cast("B"), table, inplace=True)
    return found


def _checked(image: Any, dimension: Dimension) -> tuple[Any, Any]:
    """The image as given, and as (H, W, C) in the format that is computed in."""
    given = np.asarray(image)
    shape = given.shape
    if len(shape) < 2 or shape[2:] not in ((), (1,), (3,)) or min(shape[:2]) < 8:
        raise InputError(
            f"the image has shape {shape}; give (H, W), (H, W, 1) or (H, W, 3) with at least 8 px "
            "a side, no alpha channel"
        )
    if given.dtype == np.uint8:
        computed = np.ascontiguousarray(given)
        if dimension.computed == "values" or (dimension.colour and shape[-1] != 3):
            # float32 holds every step of 8 bits 65,536 times over.
            computed = given.astype(np.float32)
            computed /= np.float32(255)
        return given, computed if len(shape) == 3 else computed[..., None]
    if given.dtype.kind != "f":
        raise InputError(
            f"the image has the format {given.dtype}; give uint8, or float from 0 to 1"
        )
    if not np.isfinite(given).all() or given.min() < 0 or given.max() > 1:
        raise InputError(
            f"the image has values from {np.nanmin(given):g} to {np.nanmax(given):g}; give finite "
            "values from 0 to 1"
        )
    values: FloatArray = np.ascontiguousarray(
        given, dtype=np.float64 if given.dtype == np.float64 else np.float32
    )
    return given, values if len(shape) == 3 else values[..., None]


#: What the manifest says of each image.
MANIFEST = (
    "file",
    "original",
    "dimension",
    "name",
    "step",
    "group",
    "strength",
    "parameter",
    "seed",
    "simulated",
)


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
        The folder to write to, made where it is not there. Files are PNG:
        "cat-motion_blur-mid.png".
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
    chosen = [
        dimension_of(name) for name in dict.fromkeys(dimensions() if names is None else names)
    ]
    cells = [(way.name, strength, way.level(strength)) for way in chosen for strength in strengths]
    stems = [path.stem for path in paths]
    if len(set(stems)) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise InputError(f"two images are called {twice!r}; give each a name of its own")
    folder = make_folder(output)
    skipped = []
    files = []
    rows = []
    work = functools.partial(_corrupt_file, folder, cells, seed, scale)
    with progress_bar(len(paths), progress) as bar:
        for path, problem in zip(paths, in_parallel(work, paths, executor), strict=True):
            bar.update()
            if problem and not skip:
                raise InputError(problem)
            if problem:
                skipped.append(problem)
                continue
            for name, strength, level in cells:
                way = dimensions()[name]
                file = _file(folder, path, name, strength)
                files.append(file)
                kind = (way.id, name, way.step, way.group, strength, level, seed, int(way.captured))
                rows.append((file.name, path.name, *kind))
    manifest = folder / "manifest.csv"
    listed = io.StringIO()
    csv.writer(listed, lineterminator="\n").writerows([MANIFEST, *rows])
    write_text(manifest, listed.getvalue())
    return Corrupted(tuple(files), manifest, tuple(skipped))


def in_parallel(
    work: Callable[[Any], Any], jobs: Sequence[Any], executor: Executor | None
) -> Iterator[Any]:
    """What work makes of each job, in their order; without an executor on one thread a core."""
    # Codecs, OpenCV and numpy's generators work outside Python's lock; forked processes hang once
    # OpenCV has threads.
    workers = executor or ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        yield from workers.map(work, jobs)
    finally:
        if executor is None:
            workers.shutdown(cancel_futures=True)


def _file(folder: Path, path: Path, name: str, strength: str) -> Path:
    return folder / f"{path.stem}-{name}-{strength}.png"


def _corrupt_file(
    folder: Path, cells: Sequence[tuple[str, str, float]], seed: int, scale: bool, path: Path
) -> str:
    """Write all corruptions of one image, which is read once; what is wrong with it, or nothing."""
    try:
        image = read_image(path)
        for name, strength, _ in cells:
            changed = corrupt(image, name, strength, seed, image_id=path.stem, scale=scale)
            write_png(changed, _file(folder, path, name, strength))
    except InputError as error:
        return str(error)
    return ""


def write_png(image: Any, path: Path) -> None:
    """Write an image that is whole or not there."""
    from PIL import Image

    write_whole(
        path, functools.partial(Image.fromarray(image).save, format="PNG", compress_level=1)
    )
