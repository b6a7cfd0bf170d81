"""Filter sets to octave bands, and ask whether contrast sensitivity predicts robustness.

References
----------
Hernandez-Camara et al. (2026). Contrast sensitivity in multimodal large language models: a
psychophysics-inspired evaluation. Neural Networks 201:108903.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Container, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe._typing import ByteArray, FloatArray
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.robustness import (
    Robustness,
    csf_robustness,
    link_table,
    sensitivity_at,
)
from psyprobe.corruption.apply import write_png
from psyprobe.errors import InputError
from psyprobe.files.images import read_image
from psyprobe.files.output import make_folder, toml_text, write_text, write_whole
from psyprobe.files.terminal import lay_out
from psyprobe.running.task import task_of
from psyprobe.tasks.r_bench.items import ImageSet, read_set
from psyprobe.tasks.r_bench.probe import read_run

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


def octave_band(image: ByteArray, centre: float, ppd: float) -> ByteArray:
    """Filter an image to one octave band of spatial frequency, keeping its mean.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        8-bit codes as stored.
    centre : float
        Centre of the band, cpd. Its gain falls as a raised cosine of log frequency to 0 an octave
        away, so that the bands of all octaves add up to the image.
    ppd : float
        Pixels per degree.

    Returns
    -------
    ndarray of uint8, shape (H, W, 3)
        Codes, clipped to 0 and 255.

    Examples
    --------
    >>> x = np.arange(64) / 16                                          # deg
    >>> grating = 128 + 60 * np.sin(2 * np.pi * 2 * x)[None, :, None] * np.ones((64, 1, 3))
    >>> [int(np.ptp(octave_band(grating.round().astype(np.uint8), f, 16))) for f in (2, 4)]
    [120, 0]
    """
    codes = image.astype(np.float64)
    height, width = codes.shape[:2]
    radius = (
        np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]) * ppd
    )
    octaves = np.abs(np.log2(np.where(radius > 0, radius, 1e-9) / centre))
    gain = np.where(octaves < 1, 0.5 * (1 + np.cos(np.pi * octaves)), 0.0)
    gain[0, 0] = 1.0
    spectrum = np.fft.rfft2(codes, axes=(0, 1)) * gain[..., None]
    filtered = np.fft.irfft2(spectrum, s=(height, width), axes=(0, 1))
    return np.asarray(np.clip(np.rint(filtered), 0, 255), dtype=np.uint8)


def write_bands(
    source: str | Path, output: str | Path, bands: Sequence[float], ppd: float
) -> list[Path]:
    """Write a set of images filtered to octave bands, each with an experiment file.

    Parameters
    ----------
    source : str or Path
        The folder of a set; its references are filtered, and its corrupted images are not used.
    output : str or Path
        Folder, new or empty.
    bands : sequence of float
        Centres, cpd.
    ppd : float
        Pixels per degree.

    Returns
    -------
    list of Path
        The pages, to be given to ``psyprobe run``.

    Raises
    ------
    InputError
        A band lies beyond what pixels can hold, or the set cannot be read.
    """
    in_range = ppd > 0 and all(0 < band <= ppd / 2 for band in bands)
    if not in_range or len(set(bands)) != len(bands):
        raise InputError(
            f"bands are {list(bands)} cpd at {ppd:g} ppd; give each once, above 0 and up to "
            f"{ppd / 2:g}"
        )
    images = read_set(source)
    folder = make_folder(output, empty=True)
    pages = []
    for band in bands:
        name = f"band_{band:g}_cpd".replace(".", "_")
        _write_band(images, folder / name, band, ppd)
        page = {
            "title": f"Images that hold the octave around {band:g} cpd",
            "source": f"references of {Path(source).name}, raised cosine of log frequency, "
            f"{ppd:g} px/deg",
            "probe": "r_bench",
            "items": name,
            "options": {"band": float(band)},
        }
        pages.append(folder / f"{name}.toml")
        write_text(pages[-1], toml_text(page))
    return pages


def _write_band(images: ImageSet, folder: Path, band: float, ppd: float) -> None:
    """Write a set whose corrupted images are its references, filtered to one band."""
    for part in ("ref", "dis"):
        make_folder(folder / part)
    write_whole(
        folder / "items.csv", partial(shutil.copyfile, images.folder / "items.csv")
    )
    for reference, rows in images.items.groupby("reference", sort=False):
        path = images.folder / "ref" / str(reference)
        write_whole(folder / "ref" / path.name, partial(shutil.copyfile, path))
        filtered = octave_band(read_image(path), band, ppd)
        for name in rows["name"]:
            write_png(filtered, folder / "dis" / name)


def link_results(
    results: Iterable[xarray.Dataset], *, confidence: float = 0.95
) -> Robustness:
    """Correlate models' contrast sensitivity with their accuracy on filtered images.

    Parameters
    ----------
    results : iterable of xarray.Dataset
        Runs in any order: for each model one yes/no run over frequency, one about the set of each
        band, and perhaps one about a corrupted set.
    confidence
        As for `csf_robustness`.

    Returns
    -------
    Robustness
        The models that have both a sensitivity curve and answers about bands.

    Raises
    ------
    InputError
        There are fewer than two such models or bands, or a model has two runs of one kind.
    """
    curves: dict[str, tuple[FloatArray, FloatArray]] = {}
    accuracies: dict[str, dict[float, float]] = {}
    for result in results:
        name = str(result.attrs["observer"])
        if task_of(result).scored == "yes" and "frequency" in result:
            _refuse_second(curves, name, f"contrast sensitivity of {name}")
            csf = chat_csf(result)
            curves[name] = (csf["frequency"].values, csf["mean_sensitivity"].values)
        elif result.attrs["probe"] == "r_bench":
            band = float(json.loads(result.attrs["options"]).get("band", 0.0))
            content = f"band {band:g} cpd" if band else "corrupted images"
            by_band = accuracies.setdefault(name, {})
            _refuse_second(by_band, band, f"{content} of {name}")
            by_band[band] = float(read_run(result).table["absolute"].mean())
    models = sorted(name for name in curves if any(accuracies.get(name, {})))
    bands = sorted({band for name in models for band in accuracies[name] if band})
    if len(models) < 2 or len(bands) < 2:
        raise InputError(
            f"{len(models)} models have both a contrast sensitivity and answers about filtered "
            f"images, in {len(bands)} "
            "bands; give results of at least 2 of each (psyprobe r-bench bands makes the sets)"
        )
    sensitivity = np.array([sensitivity_at(*curves[name], bands) for name in models])
    table = pd.DataFrame(
        [accuracies[name] for name in models], columns=[*bands, 0.0], dtype=float
    )
    corrupted = table[0.0].to_numpy()
    return csf_robustness(
        models,
        bands,
        sensitivity,
        table[bands].to_numpy(),
        corrupted=corrupted if np.isfinite(corrupted).sum() > 2 else None,
        confidence=confidence,
    )


def _refuse_second(measured: Container[Any], key: object, content: str) -> None:
    """Refuse a second result for what has one already."""
    if key in measured:
        raise InputError(f"there are two results of {content}; give one of them")


def link_text(link: Robustness) -> str:
    """Lay out the correlations as a table, with an explanation."""
    rows = [{"over": over, **cells} for over, cells in link_table(link.links).items()]
    table = lay_out("text", [list(rows[0]), *(list(row.values()) for row in rows)])
    return (
        f"{len(link.models)} models, {len(link.bands)} bands; Pearson's r of log10 "
        "sensitivity and accuracy, "
        f"{100 * link.confidence:g} % intervals (bootstrap over models), p by "
        f"permutation.\n{table}\n"
        "models: what each band has on average taken away, so that a model's own curve must "
        "tell of its own accuracy; "
        "bands: what each model has on average taken away; all: neither; corruptions: mean log "
        "sensitivity of a model "
        "and its accuracy on corrupted images."
    )


def plot_links(link: Robustness) -> Axes:
    """Draw accuracy over sensitivity, a point for each model and band."""
    import matplotlib.pyplot as plt

    ax: Axes
    _, ax = plt.subplots(layout="constrained")
    sensitivity = 10 ** np.array(link.sensitivity)
    accuracy = np.array(link.accuracy)
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(link.bands)))
    for i, band in enumerate(link.bands):
        ax.plot(
            sensitivity[:, i],
            accuracy[:, i],
            "o",
            color=colours[i],
            label=f"{band:g} cpd",
        )
    ax.set(
        xscale="log",
        xlabel="Contrast sensitivity (1 / contrast)",
        ylabel="Accuracy on images of this band",
    )
    over_models = link_table(link.links)["models"]
    title = f"models, band by band: r = {over_models['r']}, p = {over_models['p']}"
    ax.set_title(title, fontsize="medium")
    ax.legend(fontsize="small")
    return ax
