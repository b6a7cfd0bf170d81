"""Low-level attributes of images: light, contrast, colour, blur and spatial information, of references and corrupted.

References
----------
Hasler, Suesstrunk (2003). Measuring colorfulness in natural images. Proc. SPIE 5007: equation for M^(3).
Crete, Dolmiere, Ladret, Nicolas (2007). The blur effect. Proc. SPIE 6492; as scikit-image computes it.
ITU-T P.910 (2008): spatial information, the standard deviation of the Sobel-filtered luma.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.corruption.colour_planes import luma, srgb_to_linear
from psyprobe.files.images import read_image

if TYPE_CHECKING:
    from psyprobe.tasks.r_bench.items import ImageSet

#: Attributes and what they are on an axis.
ATTRIBUTES = {
    "luminance": "Mean luminance (share of white)",
    "contrast": "RMS contrast (SD / mean of luminance)",
    "colourfulness": "Colourfulness $M^{(3)}$ (8-bit codes)",
    "blur": "Blur (Crete et al., 0 sharp to 1)",
    "spatial_information": "Spatial information (8-bit codes)",
}


def attributes(image: npt.NDArray[np.uint8]) -> dict[str, float]:
    """The five attributes of an image.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        sRGB.

    Returns
    -------
    dict of str to float
        By the names of `ATTRIBUTES`; the contrast of a black image is 0.

    Examples
    --------
    >>> flat = attributes(np.full((32, 32, 3), 188, np.uint8))
    >>> [round(flat[name], 3) for name in ("luminance", "contrast", "colourfulness", "spatial_information")]
    [0.503, 0.0, 0.0, 0.0]
    """
    import cv2
    from skimage.measure import blur_effect

    codes = image.astype(np.float64)
    light = srgb_to_linear(codes / 255) @ np.array([0.2126729, 0.7151522, 0.0721750])
    mean = float(light.mean())
    red_green = codes[..., 0] - codes[..., 1]
    yellow_blue = (codes[..., 0] + codes[..., 1]) / 2 - codes[..., 2]
    spread = np.hypot(red_green.std(), yellow_blue.std())
    offset = np.hypot(red_green.mean(), yellow_blue.mean())
    grey = luma(codes)
    slope = np.hypot(cv2.Sobel(grey, cv2.CV_64F, 1, 0), cv2.Sobel(grey, cv2.CV_64F, 0, 1))[1:-1, 1:-1]
    flat = float(np.ptp(grey)) < 1e-9
    return {
        "luminance": mean,
        "contrast": float(light.std() / mean) if mean else 0.0,
        "colourfulness": float(spread + 0.3 * offset),
        # Nothing can be blurred in a flat image; the formula would divide by its differences.
        "blur": 1.0 if flat else float(blur_effect(grey / 255)),
        "spatial_information": float(slope.std()),
    }


def attribute_table(images: ImageSet) -> pd.DataFrame:
    """The attributes of all images of a set.

    Parameters
    ----------
    images : ImageSet
        As `read_set` gives it.

    Returns
    -------
    pandas.DataFrame
        Columns kind ("ref", "dis"), file, dimension and strength (of corrupted images; 0 and "" for references, each of
        which comes once), simulated, and the attributes.
    """
    rows: list[dict[str, Any]] = []
    seen = set()
    for row in images.items.to_dict("records"):
        reference = images.path("ref", row)
        if reference not in seen:
            seen.add(reference)
            told = {"kind": "ref", "file": reference.name, "dimension": 0, "strength": "", "simulated": 0}
            rows.append({**told, **attributes(read_image(reference))})
        own = {name: row[name] for name in ("dimension", "strength", "simulated")}
        rows.append({"kind": "dis", "file": row["name"], **own, **attributes(read_image(images.path("dis", row)))})
    return pd.DataFrame(rows)


def plot_attributes(table: pd.DataFrame, figure: Any = None) -> Any:
    """Draw how attributes are spread over references and over corrupted images, by strength.

    Parameters
    ----------
    table : pandas.DataFrame
        As `attribute_table` gives it.
    figure : matplotlib.figure.Figure, optional
        Where to draw; without it, a new pyplot figure.

    Returns
    -------
    matplotlib.figure.Figure
        A panel an attribute: the share of images with at most so much of it.
    """
    import matplotlib.pyplot as plt

    if figure is None:
        figure = plt.figure(figsize=(10.5, 5.4), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    parts = {"reference": table[table["kind"] == "ref"]}
    parts |= {strength: table[table["strength"] == strength] for strength in ("low", "mid", "high")}
    colours = ("black", "#56B4E9", "#E69F00", "#D55E00")
    for ax, (name, label) in zip(axes, ATTRIBUTES.items(), strict=False):
        for (part, rows), colour in zip(parts.items(), colours, strict=True):
            values: FloatArray = np.sort(rows[name].to_numpy(dtype=np.float64))
            if len(values):
                share = np.arange(1, len(values) + 1) / len(values)
                ax.step(values, share, where="post", color=colour, label=f"{part} ({len(values)})")
        ax.set_xlabel(label, fontsize="small")
        ax.set_ylabel("Share of images", fontsize="small")
        ax.set_ylim(0, 1.02)
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].axis("off")
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False, title="Images (number)")
    if table["simulated"].any():
        axes[-1].text(0.5, 0.1, "five dimensions are simulated", ha="center", fontsize="small")
    return figure
