"""Corrupt an image or a folder of images along R-Bench's 33 dimensions.

References
----------
Li et al. (2024). R-Bench, arXiv 2410.05474: the dimensions. It publishes no parameters; those in
``dimensions.toml`` are levels of KADID-10k (Lin, Hosu, Saupe 2019, QoMEX) if it has the type, or
ours.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import importlib
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from psyprobe._typing import Array, FloatArray
from psyprobe.corruption.colour_planes import luma
from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.files.images import read_image
from psyprobe.files.output import make_folder, write_text, write_whole
from psyprobe.files.parsing import packaged_toml
from psyprobe.files.terminal import progress_bar

#: Strengths as R-Bench numbers them, from 1.
STRENGTHS = ("low", "mid", "high")

#: The seven steps between a scene and its viewer, in their order.
STEPS = {
    "EI": "Environment interference",
    "CI": "Camera interference",
    "AD": "Analog-to-digital conversion",
    "SE": "Source encoding",
    "CT": "Channel transmission",
    "RD": "Receiver decoding",
    "EP": "Enhancement post-processing",
}

#: Low-level attributes that a dimension spoils; "Wild" is for those that the authors photographed.
GROUPS = ("Blur", "Luminance", "Chrominance", "Spatial", "Noise", "Compression", "Wild")


@dataclass(frozen=True)
class Dimension:
    """One dimension of corruption, from ``dimensions.toml``."""

    #: Name in lower case: "motion_blur".
    name: str
    #: Number in R-Bench, 1 to 33.
    id: int
    #: Title in R-Bench.
    title: str
    #: A key of `STEPS`.
    step: str
    #: One of `GROUPS`.
    group: str
    #: Whether it is random and takes a seed.
    stochastic: bool
    #: Description of its parameter, with the unit.
    parameter: str
    #: The parameter at low, mid and high strength.
    levels: tuple[float, ...]
    #: Range of the parameter, from next to no effect to beyond the high strength.
    span: tuple[float, ...]
    #: Source of the levels; R-Bench publishes none.
    source: str
    #: Whether the parameter is a whole number.
    whole: bool = False
    #: How the parameter scales with the image if required: a "length" with its side, a "count"
    #: with its area.
    scales: str = ""
    #: Number of the type in KADID-10k.
    kadid: int | None = None
    #: Whether R-Bench photographed it; here it is simulated, so that scores do not compare with the
    #: paper's.
    captured: bool = False
    #: Whether it works on colours: a grey image is corrupted as RGB, and converted back to luma.
    colour: bool = False
    #: Form of 8-bit codes that it computes with: "values" from 0 to 1; "codes", if it moves,
    #: covers, averages or encodes them; or a "table" of all 256, if it changes each independently.
    computed: str = "values"

    def level(self, strength: str) -> float:
        """Return the corruption's parameter at low, mid or high strength."""
        if strength not in STRENGTHS:
            raise unknown_name("strength", strength, STRENGTHS)
        return self.levels[STRENGTHS.index(strength)]


@functools.cache
def dimensions() -> dict[str, Dimension]:
    """Load R-Bench's 33 kinds of corruption by name, in the order of their numbers.

    >>> [name for name, dimension in dimensions().items() if dimension.captured][:2]
    ['bright_illumination', 'dark_illumination']
    """
    rows = packaged_toml("psyprobe.corruption", "dimensions.toml")
    return {
        name: Dimension(
            name, **row | {"levels": tuple(row["levels"]), "span": tuple(row["span"])}
        )
        for name, row in rows.items()
    }


def dimension_numbered(number: int) -> Dimension:
    """Look up a kind of corruption by its number, 1 to 33.

    Examples
    --------
    >>> dimension_numbered(1).name
    'motion_blur'
    """
    return list(dimensions().values())[number - 1]


def dimension_of(name: str) -> Dimension:
    """Look up a kind of corruption by its name."""
    by_name = dimensions()
    if name not in by_name:
        raise unknown_name("corruption", name, by_name)
    return by_name[name]


#: Pixels of KADID's images, for which its lengths and counts are meant.
NATIVE = 512 * 384


def corrupt(
    image: Array,
    name: str,
    strength: str | float,
    seed: int = 0,
    *,
    image_id: str = "",
    scale: bool = False,
    denoiser: Callable[[FloatArray, float], FloatArray] | None = None,
) -> Array:
    """Corrupt an image along one of R-Bench's 33 dimensions.

    Parameters
    ----------
    image : array_like, shape (H, W), (H, W, 1) or (H, W, 3)
        sRGB or grey: float from 0 to 1, or uint8. At least 8 px a side.
    name : str
        Name of a dimension, such as "motion_blur"; see `dimensions`.
    strength : {"low", "mid", "high"} or float
        One of the three, or the parameter of the dimension in its unit.
    seed : int
        Seed of random dimensions. Random numbers depend on seed, dimension, strength and `image_id`
        alone, so that order does not matter.
    image_id : str
        Name of the image, so that images of one seed do not have the same noise.
    scale : bool
        Scale lengths by the square root of the number of pixels over 512 x 384, for which the
        parameters are meant, and counts of blocks by that number.
    denoiser : callable, optional
        For `cnn_denoise` only: a function of a noisy plane (0 to 1) and the standard deviation of
        its noise that returns a plane. By default non-local means.

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
    >>> noisy = corrupt(image, "white_noise", "mid", seed=1)
    >>> bool((noisy == corrupt(image, "white_noise", "mid", seed=1)).all())
    True
    """
    level = strength if isinstance(strength, str) else float(strength)
    dimension, function, amount = _resolve(name, level)
    original, values = _checked(image, dimension)
    if scale:
        pixels = values.shape[0] * values.shape[1] / NATIVE
        amount *= {"length": math.sqrt(pixels), "count": pixels, "": 1.0}[
            dimension.scales
        ]
    generators = []
    if dimension.stochastic:
        key = hashlib.sha256(
            f"{seed}\n{name}\n{strength}\n{image_id}".encode()
        ).digest()
        generators = [np.random.default_rng(np.frombuffer(key, "<u4"))]
    is_grey_in_colour = values.shape[-1] == 1 and dimension.colour
    if is_grey_in_colour:
        values = np.repeat(values, 3, axis=-1)
    if denoiser is not None:
        if name != "cnn_denoise":
            raise InputError(
                f"a denoiser is for 'cnn_denoise', not for {name!r}; leave it out"
            )
        function = functools.partial(function, denoiser=denoiser)
    if dimension.computed == "table" and original.dtype == np.uint8:
        return _look_up(original, _table(function, amount, *generators))
    result = function(values, amount, *generators)
    if result.dtype == np.uint8:
        return result.reshape(original.shape)
    result = np.clip(result, 0, 1, out=None if result is values else result)
    if is_grey_in_colour:
        result = luma(result)
    if original.dtype == np.uint8:
        import cv2

        return np.asarray(cv2.convertScaleAbs(result, alpha=255)).reshape(
            original.shape
        )
    return result.reshape(original.shape).astype(original.dtype, copy=False)


@functools.lru_cache
def _resolve(
    name: str, strength: str | float
) -> tuple[Dimension, Callable[..., Any], float]:
    """Look up a corruption by name, with its function and the parameter of a strength.

    The result is cached: an image drives Python's code from the processor's cache, so a look-up
    between images takes ten times as long.
    """
    dimension = dimension_of(name)
    for package in ("cv2", "stringzilla"):
        # While another thread imports a package, `find_spec` may not find it.
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
    from psyprobe.corruption import methods

    return dimension, getattr(methods, name), amount


@functools.lru_cache(maxsize=8)
def _table(
    function: Callable[..., FloatArray], amount: float, *generators: Generator
) -> bytes:
    """Apply a function of single values to all 256 codes of 8 bits, as a look-up table."""
    ramp = (np.arange(256, dtype=np.float32) / np.float32(255))[:, None, None]
    return (
        np.rint(np.clip(function(ramp, amount, *generators), 0, 1) * 255)
        .astype(np.uint8)
        .tobytes()
    )


def _look_up(codes: Any, table: bytes) -> Any:
    """Look up codes in a table, 64 bytes at once by a library for text."""
    from stringzilla import translate

    result = np.array(codes, order="C")
    translate(result.data.cast("B"), table, inplace=True)
    return result


def _checked(image: Any, dimension: Dimension) -> tuple[Any, Any]:
    """Check an image and return it as an array, and as (H, W, C) in the form to compute in."""
    original = np.asarray(image)
    shape = original.shape
    if len(shape) < 2 or shape[2:] not in ((), (1,), (3,)) or min(shape[:2]) < 8:
        raise InputError(
            f"the image has shape {shape}; give (H, W), (H, W, 1) or (H, W, 3) with at least 8 px "
            "a side, no alpha channel"
        )
    values: FloatArray
    if original.dtype == np.uint8:
        values = np.ascontiguousarray(original)
        if dimension.computed == "values" or (dimension.colour and shape[-1] != 3):
            # float32 holds every step of 8 bits 65,536 times over.
            values = original.astype(np.float32)
            values /= np.float32(255)
    elif original.dtype.kind != "f":
        raise InputError(
            f"the image has the format {original.dtype}; give uint8, or float from 0 to 1"
        )
    elif not np.isfinite(original).all() or original.min() < 0 or original.max() > 1:
        raise InputError(
            f"the image has values from {np.nanmin(original):g} to {np.nanmax(original):g}; give "
            "finite values from 0 to 1"
        )
    else:
        precision = np.float64 if original.dtype == np.float64 else np.float32
        values = np.ascontiguousarray(original, dtype=precision)
    return original, values if len(shape) == 3 else values[..., None]


#: Columns of the manifest.
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
    """Files that `corrupt_files` wrote."""

    #: The images, in the order of the manifest.
    files: tuple[Path, ...]
    #: A CSV with one line a file.
    manifest: Path
    #: Why each skipped image could not be read.
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
    """Corrupt image files along several dimensions, and list the results in a manifest.

    Parameters
    ----------
    paths : sequence of Path
        Image files; their names without ending must differ.
    output : str or Path
        Folder to write to, made if necessary. Files are PNG: "cat-motion_blur-mid.png".
    names, strengths : sequence of str
        Dimensions and strengths; by default all.
    seed, scale
        As in `corrupt`; the name of a file is its image_id.
    skip : bool
        Skip images that cannot be read, instead of ending with the first.
    executor : concurrent.futures.Executor, optional
        Executor of the work; by default one thread a core.
    progress : bool, optional
        As in `progress_bar`.
    """
    unique_names = dict.fromkeys(dimensions() if names is None else names)
    cells = [
        (dimension_of(name), strength)
        for name in unique_names
        for strength in strengths
    ]
    levels = [dimension.level(strength) for dimension, strength in cells]
    stems = [path.stem for path in paths]
    if len(set(stems)) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise InputError(
            f"two images are called {twice!r}; give each a name of its own"
        )
    folder = make_folder(output)
    skipped = []
    files = []
    rows = []
    keys = [(dimension.name, strength) for dimension, strength in cells]
    work = functools.partial(_corrupt_file, folder, keys, seed, scale)
    with progress_bar(len(paths), progress) as bar:
        for path, problem in zip(
            paths, in_parallel(work, paths, executor), strict=True
        ):
            bar.update()
            if problem and not skip:
                raise InputError(problem)
            if problem:
                skipped.append(problem)
                continue
            for (dimension, strength), level in zip(cells, levels, strict=True):
                file = _output_path(folder, path, dimension.name, strength)
                files.append(file)
                kind = (dimension.id, dimension.name, dimension.step, dimension.group)
                draw = (strength, level, seed, int(dimension.captured))
                rows.append((file.name, path.name, *kind, *draw))
    manifest = folder / "manifest.csv"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([MANIFEST, *rows])
    write_text(manifest, text.getvalue())
    return Corrupted(tuple(files), manifest, tuple(skipped))


def in_parallel(
    work: Callable[[Any], Any], jobs: Sequence[Any], executor: Executor | None
) -> Iterator[Any]:
    """Yield the results of jobs in their order; without an executor on one thread a core."""
    # Codecs, OpenCV and numpy's generators work outside Python's lock; forked processes hang once
    # OpenCV has threads.
    workers = executor or ThreadPoolExecutor(max_workers=os.cpu_count())
    try:
        yield from workers.map(work, jobs)
    finally:
        if executor is None:
            workers.shutdown(cancel_futures=True)


def _output_path(folder: Path, path: Path, name: str, strength: str) -> Path:
    """Return the path of a corrupted image in `folder`: STEM-CORRUPTION-STRENGTH.png."""
    return folder / f"{path.stem}-{name}-{strength}.png"


def _corrupt_file(
    folder: Path, cells: Sequence[tuple[str, str]], seed: int, scale: bool, path: Path
) -> str:
    """Write all corruptions of an image file; return why it cannot be read, or ""."""
    try:
        image = read_image(path)
        for name, strength in cells:
            corrupted = corrupt(
                image, name, strength, seed, image_id=path.stem, scale=scale
            )
            write_png(corrupted, _output_path(folder, path, name, strength))
    except InputError as error:
        return str(error)
    return ""


def write_png(image: Any, path: Path) -> None:
    """Write an image as a PNG file, never leaving half of one."""
    from PIL import Image

    save = functools.partial(
        Image.fromarray(image).save, format="PNG", compress_level=1
    )
    write_whole(path, save)
