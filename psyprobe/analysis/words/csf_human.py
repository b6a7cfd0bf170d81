"""The human curves with which a questioning run is compared, for the stimulus that was shown."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.counts import experiment_table
from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    import xarray as xr

#: Of annulus noise where the run does not say: cd/m², and pixels.
_LUMINANCE, _PPD, _SIZE = 40.0, 64.0, 256


@dataclass(frozen=True)
class Shown:
    """What a human curve may depend on."""

    #: Of the background, cd/m².
    luminance: float = _LUMINANCE
    #: Pixels per degree.
    ppd: float = _PPD
    #: Pixels of a side of the image.
    size: int = _SIZE


def _of_filter(model: str) -> Callable[[FloatArray, Shown], FloatArray]:
    def curve(frequency: FloatArray, shown: Shown) -> FloatArray:
        from psyprobe.human import csf

        return np.asarray(csf(model)(frequency))

    return curve


def _of_noise(model: str, oblique: bool, depends_on_light: bool = False) -> Callable[[FloatArray, Shown], FloatArray]:
    def curve(frequency: FloatArray, shown: Shown) -> FloatArray:
        conditions: dict[str, Any] = {}
        if depends_on_light:
            conditions = {"luminance": shown.luminance, "area": (shown.size / shown.ppd) ** 2}
        return np.array(
            [_noise_matched(float(f), model, oblique, shown.ppd, shown.size, json.dumps(conditions)) for f in frequency]
        )

    return curve


@lru_cache(maxsize=4096)
def _noise_matched(frequency: float, model: str, oblique: bool, ppd: float, size: int, conditions: str) -> float:
    """Sensitivity to annulus noise; NaN where the image has no component of it."""
    from psyprobe.human import noise_matched_csf

    try:
        found = noise_matched_csf(frequency, model, oblique=oblique, ppd=ppd, size=size, **json.loads(conditions))
    except InputError:
        return float("nan")
    return float(found)


def _modelfest(frequency: FloatArray, shown: Shown) -> FloatArray:
    from psyprobe.human import modelfest_csf, modelfest_gabors

    known = modelfest_gabors().frequency
    inside = (frequency >= known.min()) & (frequency <= known.max())
    out = np.full(frequency.shape, np.nan)
    out[inside] = modelfest_csf(frequency[inside])
    return out


#: Human curves by name: how a figure calls them, and what they are.
HUMAN_CURVES: dict[str, tuple[str, Callable[[FloatArray, Shown], FloatArray]]] = {
    "watson_malo": ("Watson-Malo", _of_filter("watson_malo_csf")),
    "watson_malo_noise": ("Watson-Malo, for this noise", _of_noise("watson_malo_csf", oblique=True)),
    "watson_ahumada": ("Watson-Ahumada HPmH", _of_filter("watson_ahumada_csf")),
    "watson_ahumada_noise": ("Watson-Ahumada HPmH, for this noise", _of_noise("watson_ahumada_csf", oblique=True)),
    "castle": ("castleCSF", _of_noise("castle_csf", oblique=False, depends_on_light=True)),
    "barten": ("Barten", _of_noise("barten_csf", oblique=False, depends_on_light=True)),
    "modelfest": ("ModelFest Gabors", _modelfest),
}


def human_names() -> tuple[str, ...]:
    """Human curves that a questioning run can be compared with.

    Returns
    -------
    tuple of str
        "watson_malo" and "watson_ahumada" are the gains of filters, as the paper takes the first. Those that end in
        "_noise" are matched to the stimulus: the root mean square of the gain, oblique effect included, over the
        components of the noise. "castle" and "barten" are matched so too, without that effect, at the luminance and
        area shown. "modelfest" interpolates thresholds of people for Gabors of 0.5 deg, 1.12 to 30 cpd: of another
        stimulus, so that its shape says more than its level.

    Examples
    --------
    >>> human_names()[:2]
    ('watson_malo', 'watson_malo_noise')
    """
    return tuple(HUMAN_CURVES)


def default_human(csf: xr.Dataset) -> str:
    """The human curve that the experiment names.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `chat_csf`.

    Returns
    -------
    str
        "watson_malo" where it names none that is known here.
    """
    named = str(experiment_table(csf, "human").get("model", "")).removesuffix("_csf")
    return named if named in HUMAN_CURVES else "watson_malo"


def human_curve(csf: xr.Dataset, human: str | Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> tuple[str, FloatArray]:
    """A human curve at the frequencies of a run.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `chat_csf`.
    human : str, mapping of str to array_like, or array_like of shape (F,)
        A name; one curve by its name; or sensitivities.

    Returns
    -------
    name : str
        "given" for bare sensitivities.
    sensitivity : ndarray of float64, shape (F,)
        NaN where the curve does not reach.

    Raises
    ------
    UnknownNameError
        If there is no curve of that name.
    InputError
        If sensitivities do not fit the frequencies.
    """
    if isinstance(human, str):
        return human, human_at(csf, human, _frequency(csf))[1]
    name, values = next(iter(human.items())) if isinstance(human, Mapping) else ("given", human)
    curve = np.asarray(values, dtype=np.float64)
    level = "frequency" if "frequency" in csf.coords else levels_of(csf)[0]
    if curve.shape != csf[level].shape:
        places = f"{csf.sizes[level]} {'frequencies' if level == 'frequency' else f'values of {level}'}"
        raise InputError(f"human sensitivities of shape {curve.shape} do not fit {places}; give one for each")
    return name, curve


def human_of_page(csf: xr.Dataset) -> tuple[str, FloatArray] | None:
    """Name and sensitivities of people at the levels of a run, as its page names them; no name: nobody to compare with.

    None where the curves of `human_names` are those to compare with.
    """
    if "human" not in csf.attrs:
        return None
    told = json.loads(str(csf.attrs["human"]))
    (level,) = levels_of(csf)
    at = dict(zip(told["values"], told["sensitivity"], strict=True))
    return told["name"], np.array([at.get(float(value), np.nan) for value in csf[level].values])


def human_line(
    csf: xr.Dataset, human: str | None, low: float, high: float
) -> tuple[str, FloatArray, FloatArray] | None:
    """Label, values of the level and sensitivity of people, for a figure; None where there are none, or for ""."""
    page = human_of_page(csf) if human is None else None
    (level,) = levels_of(csf)
    if page is not None:
        return (f"Human ({page[0]})", csf[level].values, page[1]) if page[0] else None
    if human == "" or level != "frequency":
        return None
    x = np.geomspace(low, high, 121)
    label, curve = human_at(csf, human or default_human(csf), x)
    return label, x, curve


def human_at(csf: xr.Dataset, human: str, frequency: FloatArray) -> tuple[str, FloatArray]:
    """A human curve at any frequencies, for the stimulus of a run.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `chat_csf`.
    human : str
        A name, with or without "_csf" at its end.
    frequency : ndarray of float64, shape (N,)
        In cpd.

    Returns
    -------
    label : str
        For a figure.
    sensitivity : ndarray of float64, shape (N,)
        1 / contrast; NaN where the curve does not reach.

    Raises
    ------
    UnknownNameError
        If there is no curve of that name.
    """
    name = human.removesuffix("_csf")
    if name not in HUMAN_CURVES:
        raise unknown_name("human curve", human, HUMAN_CURVES)
    label, curve = HUMAN_CURVES[name]
    return f"Human ({label})", curve(frequency, _shown(csf))


def _frequency(csf: xr.Dataset) -> FloatArray:
    if "frequency" not in csf.coords:
        raise InputError(
            f"people's contrast sensitivity is known over frequency, and this run varied {', '.join(levels_of(csf))}"
        )
    return np.asarray(csf["frequency"].values, dtype=np.float64)


def _shown(csf: xr.Dataset) -> Shown:
    size = json.loads(str(csf.attrs.get("size", _SIZE)))
    ppd = float(csf.attrs.get("ppd", _PPD))
    return Shown(_luminance(str(csf.attrs.get("experiment_toml", ""))), ppd, int(np.max(size)))


@lru_cache(maxsize=64)
def _luminance(toml: str) -> float:
    """Of the background, as the stimulus file of an experiment has it; the usual one where that file is not here."""
    from psyprobe.stimulus.catalogue import load_stimulus

    try:
        parameters = load_stimulus(str(tomllib.loads(toml)["stimulus"])).parameters
    except (KeyError, InputError):
        return _LUMINANCE
    return float(parameters.get("luminance", _LUMINANCE))
