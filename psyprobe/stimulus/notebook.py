"""Stimuli and certificates as a notebook shows them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.files import html
from psyprobe.light.display import Display

if TYPE_CHECKING:
    from psyprobe.stimulus.certificate import Certificate
    from psyprobe.stimulus.specification import Stimulus

#: Images of a batch that are shown.
_MOST = 4


def stimulus_html(stimulus: Stimulus) -> str:
    """A picture with axes in degrees, what it is, and its certificate, folded.

    Parameters
    ----------
    stimulus : Stimulus
        Of a batch the first few images.
    """
    display = Display(peak=_peak(stimulus))
    drive = np.asarray(
        display.encode(
            np.asarray(stimulus), space=stimulus.space, observer=stimulus.observer, clip=True
        )
    )
    images = drive.reshape((-1, *drive.shape[-3:]))
    height, width = stimulus.shape
    degrees = height / stimulus.ppd, width / stimulus.ppd
    pictures = [
        html.picture(np.rint(255 * image).astype(np.uint8), degrees) for image in images[:_MOST]
    ]
    told = (
        f"{_first(images.shape[0])}{stimulus!r}; as a display of {display.peak:g} cd/m² "
        "would show it"
    )
    outside = display.gamut(stimulus).outside
    told += f", nearest light in {outside} values" if outside else ""
    certificate = stimulus.measure()
    verdict = "passed" if certificate.passed else "FAILED"
    folded = html.folded(f"requested against delivered: {verdict}", certificate_html(certificate))
    return f"<div>{html.beside(pictures)}<p>{html.inert(told)}</p>{folded}</div>"


def certificate_html(certificate: Certificate) -> str:
    """Its rows as a table, those that failed with an exclamation mark."""
    head = ["", "quantity", "requested", "delivered", "error", "tolerance", "estimator"]
    rows = [
        [
            "" if row.passed else "!",
            row.quantity,
            "" if row.requested is None else f"{row.requested:.6g} {row.unit}",
            f"{row.delivered:.6g} {row.unit}",
            "" if row.error is None else f"{row.error:+.1e}",
            "" if row.tolerance is None else f"{row.tolerance:.2g}",
            row.estimator,
        ]
        for row in certificate
    ]
    return html.table([head, *rows], f"{certificate.stimulus} ({certificate.precision})")


def _first(count: int) -> str:
    return f"The first {_MOST} of {count} images. " if count > _MOST else ""


def _peak(stimulus: Stimulus) -> float:
    """The usual display's, or as much more as the brightest light needs."""
    usual = Display().peak
    brightest = float(stimulus.luminance.max())
    return usual if brightest <= usual else 10 ** math.ceil(math.log10(brightest))
