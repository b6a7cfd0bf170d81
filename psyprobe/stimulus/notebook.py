"""Stimuli and certificates as a notebook shows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.files import html
from psyprobe.light.display import Display
from psyprobe.stimulus.certificate_table import TABLE_HEADING, table_cells

if TYPE_CHECKING:
    from psyprobe.stimulus.certificate import Certificate
    from psyprobe.stimulus.stimulus import Stimulus

#: How many images of a batch are shown.
_SHOWN_IMAGES = 4


def stimulus_html(stimulus: Stimulus) -> str:
    """Build HTML of a stimulus: pictures with axes in degrees, its repr and certificate.

    Parameters
    ----------
    stimulus : Stimulus
        Of a batch, the first few images are shown.
    """
    display = Display(peak=_peak(stimulus))
    drive = np.asarray(
        display.encode(
            np.asarray(stimulus),
            space=stimulus.space,
            observer=stimulus.observer,
            clip=True,
        )
    )
    images = drive.reshape((-1, *drive.shape[-3:]))
    height, width = stimulus.shape
    degrees = height / stimulus.ppd, width / stimulus.ppd
    pictures = []
    for image in images[:_SHOWN_IMAGES]:
        pictures.append(html.picture(np.rint(255 * image).astype(np.uint8), degrees))
    caption = f"{stimulus!r}; as a display of {display.peak:g} cd/m² would show it"
    if len(images) > _SHOWN_IMAGES:
        caption = f"The first {_SHOWN_IMAGES} of {len(images)} images. {caption}"
    outside = display.gamut(stimulus).outside
    if outside:
        caption += f", nearest light in {outside} values"
    certificate = stimulus.measure()
    verdict = "passed" if certificate.passed else "FAILED"
    folded = html.folded(
        f"requested against delivered: {verdict}", certificate_html(certificate)
    )
    return f"<div>{html.beside(pictures)}<p>{html.inert(caption)}</p>{folded}</div>"


def certificate_html(certificate: Certificate) -> str:
    """Build an HTML table of measurements, failures marked with an exclamation mark."""
    rows = [table_cells(measurement) for measurement in certificate]
    return html.table(
        [TABLE_HEADING, *rows], f"{certificate.stimulus} ({certificate.precision})"
    )


def _peak(stimulus: Stimulus) -> float:
    """Return the default display's peak, or the next power of ten above the brightest light."""
    peak = Display().peak
    brightest = float(stimulus.luminance.max())
    return peak if brightest <= peak else 10 ** math.ceil(math.log10(brightest))
