"""Compare a contrast sensitivity function measured in words with people and a vision tower.

References
----------
Hernandez-Camara, Daniel-Valencia, Laparra, Malo (2025). Contrast sensitivity function of multimodal
vision-language models. arXiv 2508.10367: Pearson correlation and root mean square error, of the
mean curve (Table 1) and prompt by prompt (Table 2).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import (
    check_resampling,
    fisher,
    normal_quantile,
    student_quantile,
)
from psyprobe.analysis.iso_response import IsoResponse, fit_iso_response
from psyprobe.analysis.responses import levels_of, select
from psyprobe.analysis.score import Recorded
from psyprobe.analysis.words.csf import FEW, chat_csfs
from psyprobe.analysis.words.fit import STEPS, experiment_table
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.flags import flag_words
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import packaged_toml
from psyprobe.human import csf as people_csf
from psyprobe.human import modelfest_csf, modelfest_gabors, noise_matched_csf
from psyprobe.human.models import human_label
from psyprobe.stimulus.catalogue import load_stimulus

if TYPE_CHECKING:
    import xarray as xr

#: Luminance (cd/m²), ppd and size (pixels) of annulus noise where the run does not say.
_LUMINANCE = 40.0
_PPD = 64.0
_SIZE = 256


#: Human curves by name: how a figure calls them, and the model, as of a filter, or for the noise of
#: the stimulus.
HUMAN_CURVES: dict[str, dict[str, str]] = packaged_toml(
    "psyprobe.analysis.words", "human_curves.toml"
)


@lru_cache(maxsize=4096)
def _noise_matched(
    frequency: float, model: str, luminance: float, ppd: float, size: int
) -> float:
    """Compute sensitivity to noise in a ring of frequencies; NaN where the image has none."""
    by_light = model in ("castle_csf", "barten_csf")
    conditions = {"luminance": luminance, "area": (size / ppd) ** 2} if by_light else {}
    try:
        return float(
            noise_matched_csf(
                frequency, model, oblique=not by_light, ppd=ppd, size=size, **conditions
            )
        )
    except InputError:
        return float("nan")


def _modelfest_curve(frequency: FloatArray) -> FloatArray:
    """Interpolate the ModelFest CSF at frequencies, cpd; NaN outside the measured range."""
    measured = modelfest_gabors().frequency
    inside = (frequency >= measured.min()) & (frequency <= measured.max())
    out = np.full(frequency.shape, np.nan)
    out[inside] = modelfest_csf(frequency[inside])
    return out


def human_names() -> tuple[str, ...]:
    """List the human CSFs that an observer's CSF can be compared with.

    Returns
    -------
    tuple of str
        "watson_malo" and "watson_ahumada" are the gains of filters, as the paper takes the first.
        Those that end in "_noise" are matched to the stimulus: the root mean square of the gain,
        oblique effect included, over the components of the noise. "castle" and "barten" are matched
        so too, without that effect, at the luminance and area shown. "modelfest" interpolates
        thresholds of people for Gabors of 0.5 deg, 1.12 to 30 cpd: of another stimulus, so that its
        shape says more than its level.

    Examples
    --------
    >>> human_names()[:2]
    ('watson_malo', 'watson_malo_noise')
    """
    return tuple(HUMAN_CURVES)


def default_human(csf: xr.Dataset) -> str:
    """Name the human CSF that fits an experiment's stimulus.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `chat_csf`.

    Returns
    -------
    str
        "watson_malo" where it names none that is known here.
    """
    model = str(experiment_table(csf, "human").get("model", "")).removesuffix("_csf")
    return model if model in HUMAN_CURVES else "watson_malo"


def human_curve(
    csf: xr.Dataset, human: str | Mapping[str, ArrayLike] | ArrayLike
) -> tuple[str, FloatArray]:
    """Compute a human CSF at the frequencies of a measured one.

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
        if "frequency" not in csf.coords:
            varied = ", ".join(levels_of(csf))
            raise InputError(
                "people's contrast sensitivity is known over frequency, and this run varied "
                f"{varied}"
            )
        return human, human_at(csf, human, csf["frequency"].values.astype(float))
    if not isinstance(human, Mapping):
        human = {"given": human}
    ((name, values),) = human.items()
    curve = np.asarray(values, float)
    level = "frequency" if "frequency" in csf.coords else levels_of(csf)[0]
    if curve.shape != csf[level].shape:
        unit = "frequencies" if level == "frequency" else f"values of {level}"
        raise InputError(
            f"human sensitivities of shape {curve.shape} do not fit {csf.sizes[level]} {unit}; "
            "give one for each"
        )
    return name, curve


def human_of_page(csf: xr.Dataset) -> tuple[str, FloatArray] | None:
    """Read the name and values of the human sensitivity that a result's experiment names.

    An empty name: there is nobody to compare with. None where the curves of `human_names` are those
    to compare with.
    """
    if "human" not in csf.attrs:
        return None
    page = json.loads(str(csf.attrs["human"]))
    (level,) = levels_of(csf)
    at = dict(zip(page["values"], page["sensitivity"], strict=True))
    return page["name"], np.array(
        [at.get(float(value), np.nan) for value in csf[level].values]
    )


def human_line(
    csf: xr.Dataset, human: str | None, low: float, high: float
) -> tuple[str, FloatArray, FloatArray] | None:
    """Compute the human CSF between two levels for a figure: label, levels, sensitivity.

    None where there are none, or for "".
    """
    page = human_of_page(csf) if human is None else None
    (level,) = levels_of(csf)
    if page is not None:
        name, curve = page
        label = f"Human ({human_label(name)})"
        return (label, csf[level].values, curve) if name else None
    if human == "" or level != "frequency":
        return None
    x = np.geomspace(low, high, 121)
    name = human or default_human(csf)
    sensitivity = human_at(csf, name, x)
    return f"Human ({curve_label(name.removesuffix('_csf'))})", x, sensitivity


def curve_label(name: str) -> str:
    """Return a human CSF's name as figures show it.

    Examples
    --------
    >>> curve_label("watson_malo"), curve_label("castle_csf")
    ('Watson-Malo', 'castleCSF')
    """
    return HUMAN_CURVES[name]["label"] if name in HUMAN_CURVES else human_label(name)


def human_at(csf: xr.Dataset, human: str, frequency: FloatArray) -> FloatArray:
    """Compute a human CSF at any frequencies, for the stimulus of a measured one.

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
    ndarray of float64, shape (N,)
        Sensitivity, 1 / contrast; NaN where the curve does not reach.

    Raises
    ------
    UnknownNameError
        If there is no curve of that name.
    """
    name = human.removesuffix("_csf")
    if name not in HUMAN_CURVES:
        raise unknown_name("human curve", human, HUMAN_CURVES)
    models = HUMAN_CURVES[name]
    if "filter" in models:
        return np.asarray(people_csf(models["filter"])(frequency))
    if "noise" not in models:
        return _modelfest_curve(frequency)
    size = int(np.max(json.loads(str(csf.attrs.get("size", _SIZE)))))
    ppd = float(csf.attrs.get("ppd", _PPD))
    luminance = _luminance(str(csf.attrs.get("experiment_toml", "")))
    return np.array(
        [
            _noise_matched(float(f), models["noise"], luminance, ppd, size)
            for f in frequency
        ]
    )


@lru_cache(maxsize=64)
def _luminance(toml: str) -> float:
    """Read the background's luminance, cd/m², from an experiment's TOML text.

    It is the usual one where that file is not here.
    """
    try:
        parameters = load_stimulus(str(tomllib.loads(toml)["stimulus"])).parameters
    except (KeyError, InputError):
        return _LUMINANCE
    return float(parameters.get("luminance", _LUMINANCE))


#: Statistics, in this order: the two correlations are better the larger, the three errors the
#: smaller.
STATISTICS: tuple[str, ...] = (
    "pearson_linear",
    "rmse_linear",
    "pearson_log",
    "rmse_log10",
    "shape_rmse_log10",
)

#: Value of `interval_over` where there are no intervals.
NOTHING = "nothing"


@dataclass(frozen=True)
class Statistic:
    """One statistic of a contrast sensitivity function."""

    #: Statistic of the mean curve over prompts (Table 1 of the paper); None where it does not
    #: exist.
    value: float | None
    #: Ends of its interval.
    low: float | None
    high: float | None
    #: Mean of the statistic computed for each prompt (Table 2).
    prompt_mean: float | None
    #: Its standard deviation, which needs two prompts.
    prompt_sd: float | None

    def to_record(self, name: str) -> JsonObject:
        """List the statistic's numbers in a flat record, under its name."""
        return {
            name if part == "value" else f"{name}_{part}": number
            for part, number in vars(self).items()
        }


@dataclass(frozen=True)
class CsfScores(Recorded):
    """Distance of a contrast sensitivity function from that of people."""

    #: The human curve.
    human: str
    #: Statistics of sensitivities, as in the paper. The mean curve is the arithmetic mean over
    #: prompts, so that, by the triangle inequality, its error is never larger than the mean error
    #: of the prompts.
    pearson_linear: Statistic
    rmse_linear: Statistic
    #: Statistics of log10 sensitivities, of which the highest do not decide alone; the mean curve
    #: is the geometric mean.
    pearson_log: Statistic
    rmse_log10: Statistic
    #: Rest of `rmse_log10` after the best common gain.
    shape_rmse_log10: Statistic
    #: Log10 of that gain: what the observer's sensitivities are to be multiplied by.
    gain: float | None
    #: Prompts with a usable threshold at every scored frequency. Only these enter.
    n_valid: int
    #: Number of all prompts.
    n_prompts: int
    #: Scored frequencies: those where at least half of the prompts have a usable threshold.
    n_frequencies: int
    #: Number of all frequencies.
    n_asked: int
    #: Confidence of the intervals.
    confidence: float
    #: Units that vary in the intervals: "prompts" or "trials"; "nothing" where there are none,
    #: because with fewer than three prompts a threshold has an interval that is open at both ends.
    interval_over: str

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The scores of the CSF by name."""
        return {name: getattr(self, name) for name in STATISTICS}


def csf_statistics(sensitivity: ArrayLike, human: ArrayLike) -> dict[str, FloatArray]:
    """Compute correlations with and errors against the human CSF, curve by curve.

    Parameters
    ----------
    sensitivity : array_like of float, shape (..., F)
        Of observers, above 0, at F >= 2 frequencies.
    human : array_like of float, shape (F,)
        Of people, at the same.

    Returns
    -------
    dict of str to ndarray, shape (...)
        By `STATISTICS`, and "gain" (log10). A correlation of two frequencies, or with a flat curve,
        is NaN.

    Raises
    ------
    InputError
        If shapes disagree, or a sensitivity is not finite or not above 0.

    Examples
    --------
    >>> found = csf_statistics([[50.0, 100.0, 25.0]], [100.0, 200.0, 50.0])
    >>> round(float(found["pearson_linear"][0]), 3), round(float(found["rmse_log10"][0]), 3)
    (1.0, 0.301)
    >>> round(float(found["shape_rmse_log10"][0]), 3), round(float(found["gain"][0]), 3)
    (0.0, 0.301)
    """
    s = np.asarray(sensitivity, float)
    h = np.asarray(human, float)
    if h.ndim != 1 or h.size < 2 or s.shape[-1:] != h.shape:
        raise InputError(
            f"sensitivities of shape {s.shape} do not fit a human curve of shape {h.shape}; give "
            "both at the same two frequencies or more"
        )
    for name, values in (("sensitivities", s), ("human sensitivities", h)):
        if not (np.isfinite(values) & (values > 0)).all():
            raise InputError(
                f"{name} must be finite and above 0; leave out frequencies without a threshold"
            )
    log_s = np.log10(s)
    log_h = np.log10(h)
    gain = (log_h - log_s).mean(axis=-1)
    return {
        "pearson_linear": _pearson(s, h),
        "rmse_linear": _rms(s - h),
        "pearson_log": _pearson(log_s, log_h),
        "rmse_log10": _rms(log_s - log_h),
        "shape_rmse_log10": _rms(log_s + gain[..., None] - log_h),
        "gain": gain,
    }


def compare_with_human(
    csf: xr.Dataset,
    human: str | Mapping[str, ArrayLike] | ArrayLike = "watson_malo",
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> CsfScores:
    """Compare a measured contrast sensitivity function with that of people.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `chat_csf`.
    human : str, mapping of str to array_like, or array_like of shape (F,), optional
        The human curve: a name that `human_curves` gives; one curve by its name; or sensitivities
        at the frequencies of the run.
    resamples : int, optional
        Of the bootstrap over prompts, at least 100.
    seed : int, optional
        Of the bootstrap.

    Returns
    -------
    CsfScores
        With the numbers of prompts and frequencies on which it stands.

    Raises
    ------
    InputError
        If human sensitivities do not fit the frequencies, or there are too few resamples.
    UnknownNameError
        If there is no such human curve.

    Notes
    -----
    The intervals are those of the mean curve. Prompts are drawn with replacement, together with
    the resampled images where the run has logits; with fewer than three prompts thresholds are
    drawn within their own intervals. Steps are drawn between their levels, for all prompts alike,
    since these were shown the same ones. With s the standard deviation of the samples, times sqrt(n
    / (n - 1)), on Fisher's z for correlations and on the logarithm for errors, the interval is
    value ± t s there, Student's t with n - 1 degrees of freedom.
    """
    confidence = float(csf.attrs["confidence"])
    check_resampling(confidence, resamples)
    name, curve = human_curve(csf, human)
    usable = csf["usable"].values.astype(bool) & np.isfinite(curve) & (curve > 0)
    scored = np.flatnonzero(usable.mean(axis=0) >= 0.5)
    valid = np.flatnonzero(usable[:, scored].all(axis=1) & (scored.size >= 2))
    counts: JsonObject = {
        "n_valid": len(valid),
        "n_prompts": len(usable),
        "n_frequencies": len(scored),
        "n_asked": usable.shape[1],
        "confidence": confidence,
        "interval_over": "prompts" if len(valid) >= FEW else "trials",
    }
    if not len(valid):
        nothing: JsonObject = dict.fromkeys(STATISTICS, Statistic(*[None] * 5))
        return CsfScores(name, **nothing, gain=None, **counts)
    place = np.ix_(valid, scored)
    log_s = -csf["log10_threshold"].values[place]
    target = curve[scored]
    by_prompt = csf_statistics(10.0**log_s, target)
    of_mean = _statistics_of_mean(log_s, target)
    samples = _resample(csf, log_s, place, resamples, seed)
    of_samples = _statistics_of_mean(samples, target)
    if not len(samples):
        counts["interval_over"] = NOTHING
    reach = _reach(confidence, len(valid))
    statistics: JsonObject = {
        name: _statistic(name, of_mean[name], of_samples[name], by_prompt[name], reach)
        for name in STATISTICS
    }
    return CsfScores(name, **statistics, gain=float(of_mean["gain"]), **counts)


def _statistics_of_mean(log_s: FloatArray, human: FloatArray) -> dict[str, FloatArray]:
    """Compute the scores of CSFs averaged over prompts (..., P, F).

    It is arithmetic for the linear ones, else geometric.
    """
    geometric = csf_statistics(10.0 ** log_s.mean(axis=-2), human)
    arithmetic = csf_statistics((10.0**log_s).mean(axis=-2), human)
    return geometric | {
        name: arithmetic[name] for name in ("pearson_linear", "rmse_linear")
    }


def _resample(
    csf: xr.Dataset,
    log_s: FloatArray,
    place: tuple[Any, ...],
    resamples: int,
    seed: int,
) -> FloatArray:
    """Draw log sensitivities (B, P, F) as they could be with other prompts, images or answers.

    None (B = 0) where only answers differ, and with others a threshold could have been anywhere.
    """
    rng = np.random.default_rng(seed)
    n = len(log_s)
    if "log10_threshold_samples" in csf:
        stored = -csf["log10_threshold_samples"].values[:, *place]
        samples = stored[rng.integers(len(stored), size=resamples)]
        if "log10_screen_sd" in csf:
            samples = samples + _screen_noise(csf, place[-1], resamples, rng)
    elif n >= FEW:
        samples = np.broadcast_to(log_s, (resamples, *log_s.shape))
    else:
        ends = [csf[f"log10_threshold_{end}"].values[place] for end in ("low", "high")]
        half = np.abs(np.stack(ends) + log_s)
        # Half an interval that has no end is as wide as the half that has one.
        finite = np.isfinite(half)
        half = np.where(finite, half, np.where(finite, half, -np.inf).max(axis=0))
        if not np.isfinite(half).all():
            return np.empty((0, *log_s.shape))
        spread = half.mean(axis=0) / normal_quantile(float(csf.attrs["confidence"]))
        samples = log_s + spread * rng.normal(size=(resamples, *log_s.shape))
    if n < FEW:
        return samples
    prompt_index = rng.integers(n, size=(resamples, n))
    common = _common_spread(csf, log_s, place) * rng.normal(
        size=(resamples, 1, log_s.shape[1])
    )
    return np.take_along_axis(samples, prompt_index[..., None], axis=1) + common


def _screen_noise(
    csf: xr.Dataset, scored: Any, resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Draw errors of log sensitivities by a person's screen calibration, (B, 1, F).

    It is an offset, and single steps of a panel.
    """
    offset = float(csf.attrs["screen_offset"])
    total = csf["log10_screen_sd"].values[np.ravel(scored)]
    single = np.sqrt(np.maximum(total**2 - offset**2, 0.0))
    common = rng.normal(size=(resamples, 1, 1))
    single_steps = rng.normal(size=(resamples, 1, total.size))
    return offset * common + single * single_steps


def _common_spread(
    csf: xr.Dataset, log_s: FloatArray, place: tuple[Any, ...]
) -> FloatArray:
    """Estimate the error of log sensitivities that all prompts share, shape (F,).

    Steps stand between the same levels in all prompts; and where prompts differ by less than trials
    alone would make them, what is missing.
    """
    low, high = (csf[f"log10_threshold_{end}"].values[place] for end in ("low", "high"))
    half = 0.5 * (high - low)
    spread = np.where(np.isfinite(half), half, 0.0) / normal_quantile(
        float(csf.attrs["confidence"])
    )
    step = np.isin(flag_words(csf["status"])[place], STEPS)
    missing = np.where(step, 0.0, spread**2).mean(axis=0) - log_s.var(axis=0, ddof=1)
    between_levels = np.where(step, spread, 0.0).mean(axis=0)
    variance = between_levels**2 + np.maximum(missing, 0.0) / len(log_s)
    return np.asarray(np.sqrt(variance))


def _reach(confidence: float, n: int) -> float:
    """Compute an interval's half-width in standard deviations."""
    if n < FEW:
        return normal_quantile(confidence)
    return float(student_quantile(n, confidence) * np.sqrt(n / (n - 1)))


def _statistic(
    name: str,
    value: FloatArray,
    samples: FloatArray,
    by_prompt: FloatArray,
    reach: float,
) -> Statistic:
    """Combine a score with its interval and its values over single prompts."""
    values = by_prompt[np.isfinite(by_prompt)]
    mean = float(values.mean()) if values.size else None
    sd = float(values.std(ddof=1)) if values.size > 1 else None
    samples = samples[np.isfinite(samples)]
    finite_value = float(value) if np.isfinite(value) else None
    open_ended = Statistic(finite_value, None, None, mean, sd)
    if finite_value is None or samples.size < 2:
        return open_ended
    if name.startswith("pearson"):
        spread = fisher(samples).std(ddof=1)
        ends = np.tanh(fisher(value) + np.array([-1, 1]) * reach * spread)
    else:
        floor = max(finite_value, 1e-12)
        spread = np.log(np.maximum(samples, 1e-6 * floor)).std(ddof=1)
        # Beyond a factor of e**20 an end says nothing.
        ends = value * np.exp(np.array([-1, 1]) * min(reach * spread, 20.0))
    if not ends[0] < ends[1]:
        return open_ended
    return replace(open_ended, low=float(ends[0]), high=float(ends[1]))


def _pearson(first: FloatArray, second: FloatArray) -> FloatArray:
    """Compute Pearson's r along the last axis; NaN for flat curves and under three points."""
    a = first - first.mean(axis=-1, keepdims=True)
    b = second - second.mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = (a * b).sum(axis=-1) / np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    # Any two points lie on a line.
    flat = (np.ptp(first, axis=-1) <= 1e-9 * np.abs(first).max(axis=-1)) | (
        first.shape[-1] < 3
    )
    return np.where(flat, np.nan, np.clip(r, -1, 1))


def _rms(difference: FloatArray) -> FloatArray:
    """Compute the root mean square along the last axis."""
    return np.asarray(np.sqrt((difference * difference).mean(axis=-1)))


def bridge(
    answered: xr.Dataset,
    tower: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
) -> IsoResponse:
    """Find which contour of equal response of a vision encoder is nearest the whole model's CSF.

    Features have no criterion of their own, so a tower has a contrast sensitivity function for each
    level of response. The level is chosen whose curve is nearest (root mean square of log10) to the
    model's answers.

    Parameters
    ----------
    answered : xarray.Dataset
        Of a questioning run, or of `chat_csf`.
    tower : xarray.Dataset
        Of a detection run with the same stimuli, with a level grid.
    measure, layer : str, optional
        As for `psyprobe.analysis.responses.select`, of the tower.

    Returns
    -------
    IsoResponse
        In which the answers stand for the human curve: `shift` and `shape_rmse` are the tower's
        against the answers.

    Raises
    ------
    InputError
        If the runs have no two frequencies in common, contrasts are of different kinds, the tower's
        run has no grid or no level of response is crossed at two frequencies.
    """
    (csf,) = chat_csfs([answered])
    kind = str(tower.attrs.get("contrast_kind", "sinusoid_rms"))
    if kind != "sinusoid_rms":
        raise InputError(
            f"the tower was shown contrasts of kind {kind!r} and the model was asked about "
            f"'sinusoid_rms'; show both the same stimuli"
        )
    features = select(tower, measure=measure, layer=layer)
    if levels_of(csf) != ("frequency",) or tuple(features.levels) != ("frequency",):
        raise InputError(
            "a bridge is over frequency alone; vary only that in both runs, or take it with "
            "result.sel"
        )
    frequency = features.levels["frequency"]
    log_s = np.log10(csf["mean_sensitivity"].values)
    has_threshold = np.isfinite(log_s)
    log_f = np.log10(csf["frequency"].values[has_threshold])
    log_x = np.log10(frequency)
    inside = np.zeros(frequency.shape, dtype=bool)
    if log_f.size >= 2:
        inside = (log_x >= log_f[0] - 1e-9) & (log_x <= log_f[-1] + 1e-9)
    if not features.grid.size or inside.sum() < 2:
        raise InputError(
            f"the tower's result has {int(inside.sum())} frequencies among those at which the "
            "model has a threshold; two are needed, and a level grid: run both over the same "
            "frequencies"
        )
    answers = 10 ** np.interp(log_x[inside], log_f, log_s[has_threshold])
    nearest = fit_iso_response(
        frequency[inside],
        features.difference,
        features.grid[inside],
        answers,
        criterion="absolute",
        floor=features.noise_floor,
    )
    if nearest is None:
        raise InputError(
            "no level of response is crossed at two frequencies; show the tower a wider range "
            "of contrasts"
        )
    return nearest
