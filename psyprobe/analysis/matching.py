"""Match contrasts: find which contrast of one grating draws a reference grating's response.

How far an observer's matches lie from those of people is computed from stored responses; no
observer is needed.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Section 3, contrast matching, and Equation 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import numpy.typing as npt

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.direction import can_be_scored
from psyprobe.analysis.intervals import (
    check_resampling,
    draw_counts,
    neighbour_correlation,
    student_quantile,
    student_reach,
)
from psyprobe.analysis.iso_response import iso_contrast
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.responses import (
    LayerScore,
    layer_facts,
    layers_with,
    levels_of,
    resolve_measure_and_layer,
    status_of,
    values_of,
)
from psyprobe.analysis.score import (
    CONTRAST,
    NO_PEOPLE,
    OBSERVER,
    ONE_VARIANT,
    PIXELS,
    Entry,
    Metric,
    Recorded,
    Row,
    ends_text,
    interval_note,
    number,
    takes_levels,
)
from psyprobe.analysis.variants import iterate_variants, sample_of
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

Method = Literal["crossing", "bracket"]

#: Absolute tolerance of the root in contrast, as in the code of Cai et al.
_ROOT_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Matches:
    """Matched contrasts, and flags of those that do not exist."""

    #: For each reference and each test frequency, shape (K, F); the end of the contrast range where
    #: no match exists, NaN where too many responses are undefined to match any.
    contrast: FloatArray
    #: -1 where the lowest contrast draws more than the reference already, 1 where no contrast draws
    #: as much, else 0.
    saturated: npt.NDArray[np.int8]
    #: True where the response falls under that of the reference again at a higher contrast, so that
    #: more than one contrast matches. `contrast` is then the lowest of them (method "bracket": any
    #: of them).
    ambiguous: BoolArray


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, in log10 contrast units."""

    value: float
    #: Ends of the interval; None where all frequencies err alike, so that their spread tells
    #: nothing.
    low: float | None
    high: float | None
    #: Confidence of the interval, in (0, 1).
    confidence: float
    #: What the interval speaks of: "frequencies" drawn anew, or "variants" of the stimulus; empty
    #: without one.
    over: str = ""
    #: The error of each variant, of which `value` is the mean; None where one was shown.
    sample: Sample | None = None

    def over_variants(self, sample: Sample | None, by_levels: bool) -> Estimate:
        """Replace the estimate by the mean over variants, with its interval.

        A single variant tells no interval, unless one over frequencies is asked for.
        """
        if sample is None:
            return (
                self if by_levels else Estimate(self.value, None, None, self.confidence)
            )
        ends = sample.interval(self.confidence)
        low, high = ends or (None, None)
        over = sample.population if ends else ""
        return Estimate(sample.mean(), low, high, self.confidence, over, sample)


@dataclass(frozen=True)
class MatchingError(Recorded):
    """How far matched contrasts lie from those of people, by both definitions in use."""

    #: Root mean square error of each frequency, averaged over frequencies: the published number.
    mean: Estimate
    #: Root mean square error over all matches.
    pooled: Estimate
    #: Root mean square error of each frequency, log10 units.
    by_frequency: tuple[float, ...]
    #: Correlation of the logarithms of these at frequencies next to each other, -1 to 1: the
    #: further above 0, the more the intervals, which take frequencies as independent, are too
    #: narrow. None of three frequencies or equal errors.
    neighbours: float | None


def match_contrast(
    contrast: npt.ArrayLike,
    response: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    method: Method = "crossing",
) -> Matches:
    """Find the contrast at which each response curve reaches each target.

    Parameters
    ----------
    contrast : array_like of float, shape (C,)
        Contrasts of the curves, increasing, above 0; dense, and evenly spaced in log contrast.
    response : array_like of float, shape (F, C)
        Responses, one curve for each test frequency.
    target : array_like of float, shape (K,)
        Responses to the reference gratings.
    method : {"crossing", "bracket"}, optional
        "crossing": the lowest contrast at which the response rises to the target. "bracket": as in
        the code of Cai et al., Brent's root between the ends of the contrast range, to 1e-5 in
        contrast; a curve that rises and falls has several, and any of them is found.

    Returns
    -------
    Matches
        With flags in place of a silent end of the range.

    Raises
    ------
    InputError
        If shapes disagree, a value is not finite, or contrasts do not increase.

    Notes
    -----
    Between contrasts log response is linear in log contrast, which is exact for power laws; next to
    a response of 0, response is linear in log contrast.

    Examples
    --------
    >>> c = np.geomspace(0.001, 1, 40)
    >>> found = match_contrast(c, [0.4 * c, 0.2 * c], [0.1, 0.3])
    >>> found.contrast.round(3), found.saturated
    (array([[0.25, 0.5 ], [0.75, 1.  ]]), array([[0, 0], [0, 1]], dtype=int8))
    """
    c = np.asarray(contrast, float)
    r = np.asarray(response, float)
    targets = np.asarray(target, float)
    if targets.ndim != 1 or not np.isfinite(targets).all():
        raise InputError(
            f"targets must be finite responses of shape (K,), not of shape {targets.shape}"
        )
    if method not in ("crossing", "bracket"):
        raise InputError(f"method {method!r} must be 'crossing' or 'bracket'")
    # A target of 0 has no logarithm, and every response reaches it.
    log_c, _, _ = iso_contrast(c, r, np.maximum(targets, np.finfo(np.float64).tiny))
    over = r >= targets[:, None, None]
    log_c = np.where(over[..., 0], -np.inf, log_c)
    saturated = np.where(np.isinf(log_c), np.sign(log_c), 0).astype(np.int8)
    ambiguous = np.asarray((np.diff(over.astype(np.int8), axis=-1) < 0).any(axis=-1))
    if method == "bracket":
        matched = np.array(
            [[_bracketed(c, curve, level) for curve in r] for level in targets]
        )
    else:
        matched = np.clip(10 ** np.clip(log_c, -300, 300), c[0], c[-1])
    return Matches(matched, saturated, ambiguous)


def _bracketed(contrast: FloatArray, curve: FloatArray, target: float) -> float:
    """Find a root between the ends of the contrast range, as the published code does."""
    from scipy.optimize import brentq

    log_c = np.log10(contrast)

    def excess(c: float) -> float:
        i = int(np.clip(np.searchsorted(contrast, c), 1, len(contrast) - 1))
        pair = curve[i - 1 : i + 1]
        fraction = (np.log10(c) - log_c[i - 1]) / (log_c[i] - log_c[i - 1])
        if (pair > 0).all():
            return float(
                np.exp(np.log(pair[0]) + fraction * np.log(pair[1] / pair[0])) - target
            )
        return float(pair[0] + fraction * (pair[1] - pair[0]) - target)

    low = float(contrast[0])
    high = float(contrast[-1])
    ends = curve[[0, -1]]
    if (ends < target).all():
        return high
    if (ends > target).all():
        return low
    # Rounding may move an end that equals the target over it.
    if excess(low) * excess(high) > 0:
        return min(high, low, key=lambda end: abs(excess(end)))
    return float(brentq(excess, low, high, xtol=_ROOT_TOLERANCE))


def normalise_responses(contrast: npt.ArrayLike, response: npt.ArrayLike) -> FloatArray:
    """Divide responses by the response at contrast 1, as in Equation 2 of Cai et al.

    Parameters
    ----------
    contrast : array_like of float, shape (C,)
        Increasing, ending at 1.
    response : array_like of float, shape (F, C)
        Responses, one curve for each frequency.

    Returns
    -------
    ndarray of float64, shape (F, C)
        Each curve divided by its last value.

    Raises
    ------
    InputError
        If contrasts do not end at 1, or a response at contrast 1 is not above 0.

    Notes
    -----
    The published numbers are not normalised. An observer that responds in proportion to contrast
    shows perfect contrast constancy once it is normalised, whatever it responds: so this comes
    close to assuming the answer.

    Examples
    --------
    >>> normalise_responses([0.5, 1.0], [[0.1, 0.4]])
    array([[0.25, 1.  ]])
    """
    c = np.asarray(contrast, float)
    r = np.asarray(response, float)
    if not np.isclose(c[-1], 1, rtol=1e-9, atol=0):
        raise InputError(
            f"contrasts end at {c[-1]:g}; normalising needs the response at contrast 1"
        )
    if not (r[..., -1] > 0).all():
        raise InputError(
            f"{int((r[..., -1] <= 0).sum())} responses at contrast 1 are 0, and nothing can be "
            "divided by them; match without normalising"
        )
    return np.asarray(r / r[..., -1:])


def matching_error(
    matched: npt.ArrayLike,
    human: npt.ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> MatchingError:
    """Measure the error of matched contrasts, log10 units, with intervals over frequencies.

    Parameters
    ----------
    matched, human : array_like of float, shape (K, F)
        Contrasts that match K references at F frequencies, above 0: the observer's and those of
        people.
    confidence, resamples, seed
        As for `psyprobe.analysis.align`.

    Returns
    -------
    MatchingError
        By both definitions.

    Raises
    ------
    InputError
        If shapes disagree, a contrast is not above 0, there are fewer than three frequencies, or a
        confidence or number of resamples is out of range.

    Notes
    -----
    Whole frequencies are drawn, since the errors at one frequency go together. The interval is
    value * exp(± t s), t the quantile of Student's t with F - 1 degrees of freedom, and s the
    larger of two: the bootstrap standard deviation of the log of the error, times sqrt(F / (F -
    1)); and that of the mean of a log-normal of which nine frequencies may lack the worst, sqrt(v /
    F + v**2 / (2 F - 2)), v the variance of the logs of what is averaged (errors below a fifth of
    the pooled one count as that). In simulations with 9 independent frequencies, whose errors
    differ in size by a factor of 1.3 or 1.8 (standard deviation), it covers the error of endless
    frequencies in 93 to 98 %. Neighbouring frequencies do not err independently, and then it covers
    less: `neighbours` says how alike they are.

    Examples
    --------
    >>> human = [[0.1, 0.2, 0.4], [0.01, 0.02, 0.04]]
    >>> found = matching_error(np.multiply(human, [1, 10, 100]), human)
    >>> round(found.mean.value, 4), round(found.pooled.value, 4), found.by_frequency
    (1.0, 1.291, (0.0, 1.0, 2.0))
    """
    m = np.asarray(matched, float)
    h = np.asarray(human, float)
    if m.shape != h.shape or m.ndim != 2 or m.shape[1] < 3:
        raise InputError(
            f"matches of shape {m.shape} do not fit human matches of shape {h.shape}; give "
            "(references, frequencies) for both, with three frequencies at least"
        )
    if not (np.isfinite(m) & (m > 0)).all() or not (np.isfinite(h) & (h > 0)).all():
        raise InputError("matched contrasts must be finite and above 0")
    check_resampling(confidence, resamples)
    squares = ((np.log10(m) - np.log10(h)) ** 2).mean(axis=0)
    frequencies = len(squares)
    share = draw_counts(frequencies, resamples, seed) / frequencies
    return MatchingError(
        mean=_estimate(np.sqrt(squares), share, 1, confidence),
        pooled=_estimate(squares, share, 2, confidence),
        by_frequency=tuple(np.sqrt(squares).tolist()),
        neighbours=neighbour_correlation(
            np.log(np.maximum(squares, max(_SMALL**2 * squares.mean(), 1e-300)))
        ),
    )


#: Errors below this share of the pooled one say no more of how errors are spread.
_SMALL = 0.2


def _estimate(
    errors: FloatArray, share: FloatArray, power: int, confidence: float
) -> Estimate:
    """Compute the power mean of errors with its interval."""
    mean = float(errors.mean())
    frequencies = len(errors)
    value = mean ** (1 / power)
    if np.ptp(errors) <= 1e-12 * mean:
        return Estimate(value, None, None, confidence)
    # A sample of perfectly matched frequencies only has no logarithm.
    bootstrap_reach = student_reach(
        np.log(np.maximum(share @ errors, 1e-6 * mean)), frequencies, confidence
    )
    spread = float(np.log(np.maximum(errors, _SMALL**power * mean)).var(ddof=1))
    skewed = student_quantile(frequencies, confidence) * np.sqrt(
        spread / frequencies + spread**2 / (2 * frequencies - 2)
    )
    reach = float(np.exp(max(bootstrap_reach, skewed) / power))
    return Estimate(value, value / reach, value * reach, confidence, "frequencies")


ERROR_MEAN: Metric = Metric(
    "error_mean",
    "Error (log$_{10}$ contrast)",
    more_is_better=False,
    digits=3,
    suffix="mean",
)
ERROR_POOLED: Metric = Metric(
    "error_pooled",
    "Error (log$_{10}$ contrast)",
    more_is_better=False,
    digits=3,
    suffix="pooled",
)

_KEY = (
    "mean, pooled: root mean square error of the matched contrast in log10 units (0.3 is a factor "
    "of two): of each frequency and then averaged, and of all matches at once. Smaller is better.",
    "sat. high, sat. low: matches that do not exist, because no contrast gives as large a response "
    "as the reference, or because the lowest contrast gives a larger one. The end of the range of "
    "contrasts counts in their place.",
    "ambiguous: matches with more than one contrast.",
    "f32 floor, noise: share of responses to the reference at the floor of the paper's float32 "
    "arithmetic, and share not above the noise floor.",
)


#: Columns of counts, and the field of each.
_COUNTS = {
    "sat. high": "saturated_high",
    "sat. low": "saturated_low",
    "ambiguous": "ambiguous",
}


@dataclass(frozen=True)
class MatchingResponder(Recorded):
    """The matches of one responder: the observer, or the images themselves."""

    #: Error in log10 contrast, by both definitions; None where too many responses are undefined
    #: to match any.
    error: MatchingError | None
    #: Matches that do not exist since the lowest contrast draws more than the reference; they enter
    #: the error with the end of the contrast range, as those of `saturated_high` do.
    saturated_low: int
    #: Matches that do not exist since no contrast draws as much.
    saturated_high: int
    #: Matches at which more than one contrast draws as much as the reference.
    ambiguous: int
    #: Number of matches.
    total: int

    @property
    def saturated(self) -> int:
        """Count the references that no contrast matches."""
        return self.saturated_low + self.saturated_high


@dataclass(frozen=True)
class MatchingScore(LayerScore):
    """The score of a matching run, beside the scores of trivial responders."""

    #: Method of `match_contrast`.
    method: Method
    #: Whether responses were divided by those at contrast 1.
    normalised: bool
    #: Matches of the observer.
    score: MatchingResponder
    #: Matches of the images themselves, without an encoder; None where not measured.
    pixels: MatchingResponder | None
    #: Error of a responder that answers the contrast of the reference at every frequency.
    constancy: MatchingError

    @property
    def confidence(self) -> float:
        """Return the confidence level of all intervals."""
        return self.constancy.mean.confidence

    def rows(self) -> list[Row]:
        """Build the table rows of observer, pixels and perfect contrast constancy."""
        options = [
            self.measure,
            *["bracket"] * (self.method == "bracket"),
            *["normalised"] * self.normalised,
        ]
        title = f"{self.experiment} ({', '.join(options)})"
        rows = [self._row(title, OBSERVER, "", "observer", self.score)]
        if self.pixels is not None:
            rows.append(self._row(title, PIXELS, PIXELS, "pixels", self.pixels))
        label = "perfect constancy"
        return [*rows, self._row(title, CONTRAST, label, "constancy", None)]

    def _row(
        self,
        title: str,
        responder: str,
        label: str,
        short: str,
        matches: MatchingResponder | None,
    ) -> Row:
        """Build a responder's table row, or that of perfect contrast constancy without one."""
        error = self.constancy if matches is None else matches.error
        flags = ""
        remarks = []
        if matches is not None and responder == OBSERVER:
            if matches.saturated:
                flags += "s"
                total = matches.total
                remarks.append(f"{matches.saturated} of {total} matches saturated")
            if matches.ambiguous:
                flags += "a"
                remarks.append(f"{matches.ambiguous} ambiguous")
        cells = {}
        statistics: JsonObject = {
            "confidence": self.confidence,
            "interval_over": "" if error is None else error.mean.over,
            "method": self.method,
            "normalised": int(self.normalised),
        }
        entries = {}
        for metric in (ERROR_MEAN, ERROR_POOLED):
            estimate = None if error is None else getattr(error, metric.suffix)
            ends = (None, None, None)
            if estimate is not None:
                ends = (estimate.value, estimate.low, estimate.high)
            entries[metric] = Entry(
                *ends,
                flags,
                note="; ".join(remarks),
                over="" if estimate is None else estimate.over,
                sample=None if estimate is None else estimate.sample,
            )
            text = number(ends[0], 3) + ends_text(*ends[1:])
            cells[f"{metric.suffix} [interval]"] = text
            columns = [f"{metric.name}{end}" for end in ("", "_low", "_high")]
            statistics |= dict(zip(columns, ends, strict=True))
        for heading, name in _COUNTS.items():
            count = matches and getattr(matches, name)
            cells[heading] = "" if matches is None else f"{count}/{matches.total}"
        for name in ("saturated_low", "saturated_high", "ambiguous"):
            statistics[name] = matches and getattr(matches, name)
        statistics["matches"] = matches and matches.total
        single = (
            error is not None and error.mean.low is None and error.mean.sample is None
        )
        notes = [ONE_VARIANT] * (
            single and not takes_levels(self.experiment, "variants")
        )
        row = Row(title, responder, label, cells, statistics, entries, notes)
        return self.row(row, short, "mean error", noted=False)

    def notes(self) -> list[str]:
        """Explain the table's headings in sentences."""
        over = self.constancy.mean.over
        if self.score.error is not None:
            over = self.score.error.mean.over
        intervals = [interval_note(over)] if over else []
        return [*_KEY, *intervals, f"{self.experiment}: {NO_PEOPLE}"]


@dataclass(frozen=True)
class MatchedCurves:
    """Matches at all test frequencies of a matching result, for figures and scores."""

    #: Frequencies of the tests, cpd, shape (F,).
    frequency: FloatArray
    #: Contrasts of the reference gratings, shape (K,).
    reference_contrast: FloatArray
    #: Matches of the observer, shape (K, F).
    matches: Matches
    #: Frequencies at which people matched, shape (H,); among `frequency`.
    measured_frequency: FloatArray
    #: Contrasts that people matched, shape (K, H).
    human: FloatArray
    layer: str
    measure: str
    #: Method of `match_contrast`.
    method: Method
    #: Whether responses were divided by those at contrast 1.
    normalised: bool

    def measured(self) -> Matches:
        """Select the matches at the frequencies at which people matched, shape (K, H)."""
        at = np.argmin(
            np.abs(np.log(self.frequency[:, None] / self.measured_frequency)), axis=0
        )
        if not np.allclose(
            self.frequency[at], self.measured_frequency, rtol=1e-6, atol=0
        ):
            raise InputError(
                f"people matched at {', '.join(f'{f:g}' for f in self.measured_frequency)} cpd, "
                f"and the result was measured at {', '.join(f'{f:g}' for f in self.frequency)} "
                "cpd; measure it at all of theirs"
            )
        matches = self.matches
        return Matches(
            matches.contrast[:, at], matches.saturated[:, at], matches.ambiguous[:, at]
        )


def match_result(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    method: Method | None = None,
    normalised: bool = False,
) -> MatchedCurves:
    """Match contrasts from the responses of a matching run.

    Parameters
    ----------
    result : xarray.Dataset
        Of a matching run.
    measure, layer : str, optional
        As for `psyprobe.analysis.responses.select`.
    method : {"crossing", "bracket"}, optional
        As for `match_contrast`; without it what the experiment names, else "crossing".
    normalised : bool, optional
        Divide each response by that of its frequency at contrast 1.

    Raises
    ------
    InputError
        If this is no matching result, several layers were run and none was named, or values are not
        finite.
    UnknownNameError
        If the measure or layer is not in the result.
    """
    measure, layer = resolve_measure_and_layer(
        result, matching_layers(result), measure, layer
    )
    how = cast(Method, method or str(result.attrs.get("match_method", "crossing")))
    return _match_curves(result, "", measure, layer, how, normalised)


def score_matching(
    result: xr.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    over: str = "variants",
    method: Method | None = None,
    normalised: bool = False,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[MatchingScore, ...]:
    """Score a matching result against human contrast matches, one score for each layer.

    Parameters
    ----------
    result, measure, method, normalised
        As for `match_result`.
    layer : str, optional
        Name of a layer; without it all.
    over
        As for `psyprobe.analysis.score_detection`; frequencies are the levels.
    confidence, resamples, seed
        As for `matching_error`.

    Returns
    -------
    tuple of MatchingScore
        In the order of the observer's layers.

    Raises
    ------
    InputError, UnknownNameError
        As for `match_result` and `matching_error`.
    """
    interval: JsonObject = {
        "confidence": confidence,
        "resamples": resamples,
        "seed": seed,
    }
    layers = matching_layers(result) if layer is None else [layer]
    by_levels = takes_levels(str(result.attrs.get("experiment", "")), over)
    how: JsonObject = {"measure": measure, "method": method, "normalised": normalised}
    return tuple(
        _score_layer(
            result, match_result(result, layer=name, **how), interval, by_levels
        )
        for name in layers
    )


def _score_layer(
    result: xr.Dataset, curves: MatchedCurves, interval: JsonObject, by_levels: bool
) -> MatchingScore:
    """Score one layer's contrast matches against people's, and against contrast constancy."""

    def matched(of: xr.Dataset, prefix: str = "") -> MatchedCurves:
        return _match_curves(
            of, prefix, curves.measure, curves.layer, curves.method, curves.normalised
        )

    def references(of: xr.Dataset, measure: str) -> FloatArray:
        return _responses(of, measure, curves.layer, "")[1]

    def with_variants(responder: MatchingResponder, prefix: str) -> MatchingResponder:
        if responder.error is None:
            return responder
        error = responder.error
        of_variants = [
            _score_responder(matched(variant, prefix), {"resamples": 100}).error
            for variant in variant_results
        ]
        for name in ("mean", "pooled"):
            values = [
                None if of_variant is None else float(getattr(of_variant, name).value)
                for of_variant in of_variants
            ]
            sample = sample_of(result, values, "log10")
            estimate = getattr(error, name).over_variants(sample, by_levels)
            error = replace(error, **{name: estimate})
        return replace(responder, error=error)

    result = join_measures(result)
    variant_results = [*iterate_variants(result)]
    pixels = {"pixels_response", "pixels_reference_response"} <= set(result.variables)
    status = status_of(result, "reference_response", curves.measure, curves.layer)
    score = with_variants(_score_responder(curves, interval), "")
    variants = None if score.error is None else score.error.mean.sample
    facts = (references, status, interval, variants)
    constant = np.broadcast_to(curves.reference_contrast[:, None], curves.human.shape)
    return MatchingScore(
        method=curves.method,
        normalised=curves.normalised,
        score=score,
        pixels=with_variants(
            _score_responder(matched(result, "pixels_"), interval), "pixels_"
        )
        if pixels
        else None,
        constancy=_repeated(
            matching_error(constant, curves.human, **interval), variants, by_levels
        ),
        **layer_facts(result, curves.layer, curves.measure, *facts),
    )


def _repeated(
    error: MatchingError, variants: Sample | None, by_levels: bool
) -> MatchingError:
    """Repeat an error that no variant of the stimulus changes for each variant."""

    def repeated(estimate: Estimate) -> Estimate:
        if variants is None:
            return estimate.over_variants(None, by_levels)
        values = (estimate.value,) * len(variants.keys)
        return estimate.over_variants(replace(variants, values=values), by_levels)

    return replace(error, mean=repeated(error.mean), pooled=repeated(error.pooled))


def matching_layers(result: xr.Dataset) -> list[str]:
    """List the observer's layers that a matching result holds."""
    return layers_with(
        result,
        "matching",
        ("response", "reference_response", "human_match", "noise_floor"),
    )


def _score_responder(curves: MatchedCurves, interval: JsonObject) -> MatchingResponder:
    """Sum up contrast matches: their error against people, how many saturated or are ambiguous."""
    matches = curves.measured()
    finite = bool(np.isfinite(matches.contrast).all())
    return MatchingResponder(
        error=matching_error(matches.contrast, curves.human, **interval)
        if finite
        else None,
        saturated_low=int((matches.saturated < 0).sum()),
        saturated_high=int((matches.saturated > 0).sum()),
        ambiguous=int(matches.ambiguous.sum()),
        total=matches.ambiguous.size,
    )


def _match_curves(
    result: xr.Dataset,
    prefix: str,
    measure: str,
    layer: str,
    method: Method,
    normalised: bool,
) -> MatchedCurves:
    """Match test contrasts to references by one layer's responses."""
    curves, target = _responses(result, measure, layer, prefix)
    (level,) = levels_of(result)
    frequency = result[level].values.astype(float)
    contrast = result[stimulus_axis_of(result).name].values.astype(float)
    # A match stands on the response to its reference, and on the like response to a test; weaker
    # ones may be undefined.
    status = status_of(result, f"{prefix}reference_response", measure, layer)
    defined = can_be_scored(target, status) and np.isfinite(curves).all()
    if normalised and defined:
        reference = float(result.attrs["reference_frequency"])
        is_reference = np.isclose(frequency, reference, rtol=1e-6, atol=0)
        if not is_reference.any():
            raise InputError(
                f"normalising needs the response of the reference frequency, {reference:g} cpd, at "
                "contrast 1, and it is not among the test frequencies; match without normalising"
            )
        target = target / curves[is_reference.argmax(), -1]
        curves = normalise_responses(contrast, curves)
    measured = f"measured_{level}"
    return MatchedCurves(
        frequency=frequency,
        reference_contrast=result["reference_contrast"].values.astype(float),
        matches=match_contrast(contrast, curves, target, method=method)
        if defined
        else _missing_matches(target, curves),
        measured_frequency=result[measured].values.astype(float),
        human=result["human_match"]
        .transpose("reference_contrast", measured)
        .values.astype(float),
        layer=layer,
        measure=measure,
        method=method,
        normalised=normalised,
    )


def _responses(
    result: xr.Dataset, measure: str, layer: str, prefix: str
) -> tuple[FloatArray, FloatArray]:
    """Read responses to tests (F, C) and to references (K,), of a layer or of the pixels."""
    order = [*levels_of(result), stimulus_axis_of(result).name, "reference_contrast"]
    return (
        values_of(result, f"{prefix}response", measure, layer, order),
        values_of(result, f"{prefix}reference_response", measure, layer, order),
    )


def _missing_matches(target: FloatArray, curves: FloatArray) -> Matches:
    """Build matches that are all missing, for responses that cannot be matched."""
    shape = len(target), len(curves)
    return Matches(
        np.full(shape, np.nan),
        np.zeros(shape, dtype=np.int8),
        np.zeros(shape, dtype=bool),
    )
