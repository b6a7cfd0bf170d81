"""Fit psychometric functions to an observer's logits of yes by least squares.

A probability says more than a drawn answer: an observer whose logit moves by 0.5 from one noise
image to the next tells as much about its threshold in one look as in some twenty answers of yes or
no.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from psyprobe._typing import BoolArray, FloatArray, StrArray

#: Lowest and highest value of a rate.
Bounds: TypeAlias = tuple[float, float]
#: Means of cells, and how many entered.
_Means: TypeAlias = tuple[FloatArray, FloatArray]
#: k of F = 1 / (1 + exp(-k (x - t) / w)), where w is the width from 5 to 95 %.
_SLOPE = 2 * np.log(19)
#: Least logit of the guess and lapse rates: a rate below 2e-9 is as good as 0.
_FLOOR = -20.0
_WIDTHS = (np.log(0.02), np.log(8.0))
#: Logits count less the further they lie from 0, since no model's tails are exactly logistic.
_NEAR = 3.0
_STEPS = 60
_STEPS_AGAIN = 12


@dataclass(frozen=True, eq=False)
class LogitFit:
    """Fits of G groups of F curves; the curves of a group share guess and lapse rates."""

    #: Log10 contrast, shape (G, F, L), and bounds of guess and lapse rate.
    x: FloatArray
    bounds: tuple[Bounds, Bounds]
    #: Threshold (F = 0.5) and width from F = 0.05 to 0.95, log10 contrast, shape (G, F).
    threshold: FloatArray
    width: FloatArray
    #: Probabilities of yes without a pattern, and of no with one that cannot be overlooked, shape
    #: (G,).
    guess: FloatArray
    lapse: FloatArray
    #: Logits of the fit, shape (G, F, L).
    fitted: FloatArray
    #: The logit of the guess rate, shape (G,).
    fitted_catch: FloatArray
    #: Weighted sum of squared residuals, shape (G,).
    cost: FloatArray

    @property
    def parameters(self) -> FloatArray:
        """Thresholds, log widths and logits of both rates, shape (G, 2 F + 2)."""
        rates = [_logit(self.guess)[:, None], _logit(self.lapse)[:, None]]
        return np.concatenate([self.threshold, np.log(self.width), *rates], axis=1)


def fit_logits(
    x: FloatArray,
    logit: FloatArray,
    catch_logit: FloatArray,
    guess: Bounds = (0.0, 1.0),
    lapse: Bounds = (0.0, 0.1),
) -> LogitFit:
    """Fit logistic psychometric functions with common guess and lapse rates to logits of yes.

    Parameters
    ----------
    x : ndarray, shape (G, F, L)
        Log10 contrast; whatever where there are no images.
    logit : ndarray, shape (G, F, L, R)
        Logit of yes for each image; NaN where there is none.
    catch_logit : ndarray, shape (G, K)
        The same for images without a pattern.
    guess, lapse : (float, float), optional
        Bounds, in [0, 1].

    Returns
    -------
    LogitFit
        The best of what was tried. Levenberg-Marquardt on all groups at once.
    """
    problem = _problem(x, averaged(logit), averaged(catch_logit), (guess, lapse))
    parameters, cost = problem.fit(problem.first(0.3), _STEPS)
    for width in (0.8, 2.0):
        other_parameters, costs = problem.fit(problem.first(width), _STEPS)
        parameters = np.where((costs < cost)[:, None], other_parameters, parameters)
        cost = np.minimum(costs, cost)
    curves = x.shape[1]
    return LogitFit(
        x=x,
        bounds=(guess, lapse),
        threshold=parameters[:, :curves],
        width=np.exp(parameters[:, curves : 2 * curves]),
        guess=_expit_and_complement(parameters[:, -2])[0],
        lapse=_expit_and_complement(parameters[:, -1])[0],
        fitted=problem.logits(parameters),
        fitted_catch=parameters[:, -2],
        cost=cost,
    )


def averaged(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Average over the last axis, and count the values that are not NaN."""
    has = np.isfinite(values)
    n = has.sum(axis=-1).astype(float)
    return np.where(has, values, 0.0).sum(axis=-1) / np.maximum(n, 1), n


def wild_replicates(
    fit: LogitFit,
    logit: FloatArray,
    catch_logit: FloatArray,
    *,
    resamples: int,
    seed: int,
) -> FloatArray:
    """Draw thresholds as other images could give, by the wild cluster bootstrap.

    An image is a cluster. The deviations of its logits from the fit keep or change their sign, at
    random and for all prompts alike, since these showed the same image. Unlike drawing images with
    replacement, this works with one image a level.

    Parameters
    ----------
    fit : LogitFit
        To these logits.
    logit, catch_logit
        As for `fit_logits`.
    resamples, seed : int
        How many, and of the signs.

    Returns
    -------
    ndarray of float64, shape (resamples, G, F)
        Log10 thresholds.

    References
    ----------
    Cameron, Gelbach, Miller (2008). Bootstrap-based improvements for inference with clustered
    errors. Review of Economics and Statistics 90(3), 414-427.
    """
    rng = np.random.default_rng(seed)
    mean, images = averaged(logit)
    catch_mean, catch_images = averaged(catch_logit)
    off = np.where(np.isfinite(logit), logit - fit.fitted[..., None], 0.0)
    catch_off = np.where(
        np.isfinite(catch_logit), catch_logit - fit.fitted_catch[:, None], 0.0
    )
    parameters = fit.parameters
    original = _problem(fit.x, (mean, images), (catch_mean, catch_images), fit.bounds)
    _, hat = original.response(parameters)
    # Residuals are smaller than errors by what the fit followed (HC2: right on average where
    # images scatter alike).
    share = _residual_share(hat, np.maximum(_cells(images, catch_images), 1))
    off /= np.sqrt(share[:, :-1]).reshape(mean.shape)[..., None]
    catch_off /= np.sqrt(share[:, -1:])
    out = np.empty((resamples, *fit.threshold.shape))
    for b in range(resamples):
        sign = rng.choice((-1.0, 1.0), size=logit.shape[1:])
        catch_sign = rng.choice((-1.0, 1.0), size=catch_logit.shape[1:])
        moved = fit.fitted + (off * sign).sum(axis=-1) / np.maximum(images, 1)
        catch_shift = (catch_off * catch_sign).sum(axis=-1) / np.maximum(
            catch_images, 1
        )
        catch_moved = fit.fitted_catch + catch_shift
        problem = _problem(
            fit.x, (moved, images), (catch_moved, catch_images), fit.bounds
        )
        out[b] = problem.fit(parameters, _STEPS_AGAIN)[0][:, : fit.x.shape[1]]
    return out


def threshold_interval(
    fit: LogitFit, logit: FloatArray, catch_logit: FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Compute the interval of each threshold over images, by Student's t.

    A curve that rises between two levels may do so anywhere between them, whatever residuals say:
    one narrower than half their distance has an interval that holds both.

    Parameters
    ----------
    fit, logit, catch_logit
        As for `wild_replicates`.
    confidence : float

    Returns
    -------
    low, high : ndarray of float64, shape (G, F)
        Log10 contrast.
    """
    variance, freedom = threshold_variance(fit, logit, catch_logit)
    reach = student_reach(np.sqrt(variance), freedom, confidence)
    has_images = np.isfinite(logit).any(axis=-1)
    offset = fit.x - fit.threshold[..., None]
    _, below = _range(offset, has_images & (offset <= 0))
    above, _ = _range(offset, has_images & (offset > 0))
    gap = above - below
    step = np.isfinite(gap) & (fit.width < gap / 2)
    low = np.where(step, np.minimum(below, -reach), -reach)
    high = np.where(step, np.maximum(above, reach), reach)
    return fit.threshold + low, fit.threshold + high


def threshold_variance(
    fit: LogitFit, logit: FloatArray, catch_logit: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute the variance of each threshold over images, and its degrees of freedom.

    The variance is a weighted sum of squared residuals. Few of them count much where few images
    tell a threshold, and then it is far off by chance, so that a normal interval is too short.

    Parameters
    ----------
    fit, logit, catch_logit
        As for `wild_replicates`.

    Returns
    -------
    variance : ndarray of float64, shape (G, F)
        To first order, of HC2 (right on average where images scatter alike).
    freedom : ndarray of float64, shape (G, F)
        Satterthwaite's, for images that scatter alike; 0 where nothing tells a variance.

    References
    ----------
    Bell, McCaffrey (2002). Bias reduction in standard errors for linear regression with multi-stage
    samples. Survey Methodology 28(2), 169-181.
    """
    problem = _problem(fit.x, averaged(logit), averaged(catch_logit), fit.bounds)
    estimator, hat = problem.response(fit.parameters)
    residuals = logit - fit.fitted[..., None]
    catch_residuals = catch_logit - fit.fitted_catch[:, None]
    count = _cells(
        np.isfinite(residuals).sum(axis=-1), np.isfinite(catch_residuals).sum(axis=-1)
    )
    squares = _cells(
        np.nansum(residuals**2, axis=-1), np.nansum(catch_residuals**2, axis=-1)
    )
    n = np.maximum(count, 1)
    weight = (
        estimator[:, : fit.x.shape[1]] ** 2 / (n**2 * _residual_share(hat, n))[:, None]
    )
    variance = (weight * squares[:, None]).sum(axis=-1)
    residual_maker = np.eye(hat.shape[-1]) - hat
    covariance = (residual_maker / n[:, None]) @ residual_maker.transpose(0, 2, 1)
    of_means = weight * n[:, None]
    within = (n - 1)[:, None]
    expected = (weight * within).sum(axis=-1)
    expected += np.einsum("gfn,gnn->gf", of_means, covariance)
    half_square = (weight**2 * within).sum(axis=-1)
    half_square += ((of_means @ covariance**2) * of_means).sum(axis=-1)
    return variance, satterthwaite(expected, half_square)


def student_reach(
    spread: FloatArray, freedom: FloatArray, confidence: float
) -> FloatArray:
    """Compute how far Student's t interval reaches to each side of a threshold.

    Where its spread has no degree of freedom the interval is open.
    """
    from scipy.special import stdtrit

    is_closed = freedom > 0
    quantile = stdtrit(np.where(is_closed, freedom, 1.0), (1 + confidence) / 2)
    return np.where(is_closed, quantile * spread, np.inf)


def satterthwaite(expected: FloatArray, half_square: FloatArray) -> FloatArray:
    """Compute degrees of freedom from a variance and from half the square of its standard error.

    Where nothing tells the variance they are 0.
    """
    is_known = half_square > 0
    return np.where(is_known, expected**2 / np.where(is_known, half_square, 1.0), 0.0)


def _cells(values: FloatArray, catch_value: FloatArray) -> FloatArray:
    """Line up values of each curve and contrast, and that of catch trials, shape (G, F L + 1)."""
    return np.concatenate(
        [values.reshape(len(values), -1), catch_value[:, None]], axis=1
    )


def _residual_share(hat: FloatArray, images: FloatArray) -> FloatArray:
    """Compute which share of an image's squared error is left in its residual, at least 0.1.

    Of all cells, shape (G, F L + 1), with their numbers of images, at least 1.
    """
    return np.asarray((1 - np.einsum("gnn->gn", hat) / images).clip(0.1))


def _problem(
    x: FloatArray, means: _Means, catch_means: _Means, bounds: tuple[Bounds, Bounds]
) -> _Problem:
    """Set up the weighted least-squares problem of fitting log-odds."""
    logit, images = means
    catch_logit, catch_images = catch_means
    use = images > 0
    blank = catch_images > 0
    x = np.where(use, x, 0.0)
    logit = np.where(use, logit, 0.0)
    catch_logit = np.where(blank, catch_logit, 0.0)
    weight = np.where(use, images / (1 + (logit / _NEAR) ** 2), 0.0)
    catch_weight = np.where(blank, catch_images / (1 + (catch_logit / _NEAR) ** 2), 0.0)
    return _Problem(
        x, logit, weight, catch_logit, catch_weight, _logit(np.array(bounds))
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """A weighted least-squares problem over all groups at once."""

    x: FloatArray
    logit: FloatArray
    weight: FloatArray
    catch_logit: FloatArray
    catch_weight: FloatArray
    #: Bounds of the logits of guess and lapse rate.
    rates: FloatArray

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Compute the bounds of all parameters: thresholds, log widths, logits of rates."""
        in_use = self.weight > 0
        has_answers = in_use.any(axis=-1)
        # A threshold may lie two log units outside the levels.
        lowest, highest = _range(self.x, in_use)
        low = np.where(has_answers, lowest - 2, -9.0)
        high = np.where(has_answers, highest + 2, 9.0)
        rates = np.broadcast_to(self.rates, (len(self.x), 2, 2))
        narrow, wide = (np.full(low.shape, width) for width in _WIDTHS)
        return np.concatenate([low, narrow, rates[..., 0]], 1), np.concatenate(
            [high, wide, rates[..., 1]], 1
        )

    def first(self, width: float) -> FloatArray:
        """Estimate starting parameters, thresholds halfway between lowest and highest log-odds."""
        use = self.weight > 0
        low, high = (
            np.where(use.any(axis=-1), end, 0.0) for end in _range(self.logit, use)
        )
        floor = np.where(self.catch_weight > 0, self.catch_logit, low.min(axis=-1))
        # Halfway up the logits that lie between guess and lapse, but never below zero without a
        # bias to yes.
        middle = np.maximum((floor[:, None] + high) / 2, np.minimum(0.0, high - 0.5))
        distance = np.where(use, np.abs(self.logit - middle[..., None]), np.inf)
        nearest = np.take_along_axis(
            self.x, distance.argmin(axis=-1)[..., None], axis=-1
        )[..., 0]
        lapse = np.full((len(self.x), 1), np.clip(-7.0, *self.rates[1]))
        ends = [floor.clip(*self.rates[0])[:, None], lapse]
        return np.concatenate(
            [nearest, np.full(nearest.shape, np.log(width)), *ends], axis=1
        )

    def fit(self, parameters: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
        """Fit the parameters by Levenberg-Marquardt, (G, 2 F + 2), with their cost, (G,)."""
        groups = len(self.x)
        low, high = self.limits()
        parameters = parameters.clip(low, high)
        damping = np.full(groups, 1e-2)
        residual, jacobian = self.linear(parameters)
        cost = (residual**2).sum(axis=1)
        for _ in range(steps):
            gradient = np.einsum("gnp,gn->gp", jacobian, residual)
            normal = np.einsum("gnp,gnq->gpq", jacobian, jacobian)
            scale = np.einsum("gpp->gp", normal)
            size = np.maximum(
                scale, 1e-8 * np.maximum(scale.max(axis=1, keepdims=True), 1e-12)
            )
            # A parameter at its bound that would leave it stays, so that the others move as if it
            # were not there.
            at_bound = ((parameters <= low) & (gradient > 0)) | (
                (parameters >= high) & (gradient < 0)
            )
            normal = np.where(at_bound[:, :, None] | at_bound[:, None, :], 0.0, normal)
            normal += np.einsum(
                "gp,pq->gpq",
                np.where(at_bound, 1.0, damping[:, None] * size + 1e-12),
                np.eye(low.shape[1]),
            )
            step = -np.linalg.solve(
                normal, np.where(at_bound, 0.0, gradient)[..., None]
            )[..., 0]
            candidate = (parameters + step.clip(-1.5, 1.5)).clip(low, high)
            new_residual, new_jacobian = self.linear(candidate)
            new_cost = (new_residual**2).sum(axis=1)
            improved = new_cost <= cost
            done = bool(
                (np.abs(candidate - parameters)[improved] < 1e-7).all()
            ) and bool(improved.any())
            parameters = np.where(improved[:, None], candidate, parameters)
            residual = np.where(improved[:, None], new_residual, residual)
            jacobian = np.where(improved[:, None, None], new_jacobian, jacobian)
            cost = np.where(improved, new_cost, cost)
            damping = np.where(improved, damping / 5, damping * 6).clip(1e-9, 1e9)
            if done and improved.all():
                break
        return parameters, cost

    def linear(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute weighted residuals (G, F L + 1) and their derivatives."""
        groups, curves, levels = self.x.shape
        t = parameters[:, :curves, None]
        width = np.exp(parameters[:, curves : 2 * curves, None])
        g, one_less_g = _expit_and_complement(parameters[:, -2, None, None])
        lapsed, _ = _expit_and_complement(parameters[:, -1, None, None])
        s = _SLOPE * (self.x - t) / width
        f, rest = _expit_and_complement(s)
        open_range = one_less_g - lapsed
        yes = g + open_range * f
        no = lapsed + open_range * rest
        root = np.sqrt(self.weight)
        spread = root * (1 / yes + 1 / no)
        by_s = spread * open_range * f * rest
        out = np.zeros((groups, curves * levels + 1, 2 * curves + 2))
        cells = out[:, :-1].reshape(groups, curves, levels, -1)
        curve_index = np.arange(curves)
        cells[:, curve_index, :, curve_index] = np.moveaxis(
            -by_s * _SLOPE / width, 1, 0
        )
        cells[:, curve_index, :, curves + curve_index] = np.moveaxis(-by_s * s, 1, 0)
        cells[..., -2] = spread * rest * g * one_less_g
        cells[..., -1] = -spread * f * lapsed * (1 - lapsed)
        root_catch = np.sqrt(self.catch_weight)
        out[:, -1, -2] = root_catch
        off = root * (np.log(yes) - np.log(no) - self.logit)
        off_catch = root_catch * (parameters[:, -2] - self.catch_logit)
        return np.concatenate(
            [off.reshape(groups, -1), off_catch[:, None]], axis=1
        ), out

    def logits(self, parameters: FloatArray) -> FloatArray:
        """Compute the log-odds that parameters predict, (G, F, L)."""
        bare = replace(
            self, logit=np.zeros_like(self.logit), weight=np.ones_like(self.weight)
        )
        values, _ = bare.linear(parameters)
        return values[:, :-1].reshape(self.x.shape)

    def response(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute how parameters and fitted log-odds move with the mean log-odds of each cell.

        Returns
        -------
        estimator : ndarray, shape (G, 2 F + 2, F L + 1)
            Derivatives of parameters; of such as stand at a bound 0.
        hat : ndarray, shape (G, F L + 1, F L + 1)
            Of fitted log-odds; leverages are its diagonal.
        """
        _, jacobian = self.linear(parameters)
        low, high = self.limits()
        # Rates went through a probability and back.
        free = (parameters > low + 1e-9) & (parameters < high - 1e-9)
        jacobian *= free[:, None]
        transposed = jacobian.transpose(0, 2, 1)
        root = np.sqrt(_cells(self.weight, self.catch_weight))
        inverse = np.linalg.pinv(transposed @ jacobian, hermitian=True)
        estimator = inverse @ transposed * root[:, None]
        slope = jacobian / np.where(root > 0, root, 1.0)[..., None]
        return estimator, slope @ estimator


def _expit_and_complement(logit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute a probability and its complement, both without loss of digits."""
    small = np.exp(-np.abs(logit))
    near = 1 / (1 + small)
    far = small / (1 + small)
    return np.where(logit >= 0, near, far), np.where(logit >= 0, far, near)


def _logit(p: FloatArray) -> FloatArray:
    """Compute the log odds of probabilities, clipped where they are all but 0 or 1."""
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(p) - np.log1p(-p)).clip(_FLOOR, -_FLOOR))


def _range(values: FloatArray, use: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Find the lowest and highest of the values in use; infinite without any."""
    return np.where(use, values, np.inf).min(axis=-1), np.where(
        use, values, -np.inf
    ).max(axis=-1)


#: A threshold outside the levels is an extrapolation where the curve got this far, and else only a
#: bound.
_UNDERWAY = 0.1
#: Smallest standard deviation of logits from image to image that is believed.
_LEAST_SPREAD = 0.5
#: Chance of as large a fall under logits that do not fall.
_SIGNIFICANT = 0.01


def logit_status(fit: LogitFit, logit: FloatArray) -> StrArray:
    """Assign the status of each fitted curve, in the words of `fit_psychometric`.

    Parameters
    ----------
    fit, logit
        As for `wild_replicates`.

    Returns
    -------
    ndarray of str, shape (G, F)
        "ok"; "extrapolated": the threshold lies outside the levels, but the curve was under way;
        "censored_above", "censored_below": above or below all levels; "always_yes": the same with
        yes to catch trials; "biased": more than half yes without a pattern; "non_monotone",
        "reversed": logits fall where they should rise, by more than images differ (chi-square test
        against rising logits, 1 %); "empty": fewer than three levels.
    """
    mean, images = averaged(logit)
    use = images > 0
    reach = np.log(19) * 2 / fit.width
    with np.errstate(over="ignore", invalid="ignore"):
        at_bottom, at_top = (
            1 / (1 + np.exp(-reach * (end - fit.threshold)))
            for end in _range(fit.x, use)
        )
    yes = np.broadcast_to((fit.guess > 0.5)[:, None], fit.threshold.shape)
    status = np.where(yes, "biased", "ok").astype("<U16")
    status[(at_top < 0.5) | (at_bottom > 0.5)] = "extrapolated"
    status[at_top < _UNDERWAY] = "censored_above"
    status[at_bottom > 1 - _UNDERWAY] = "censored_below"
    status[yes & (at_top < _UNDERWAY)] = "always_yes"
    # What is delivered need not rise with what was asked.
    order = np.where(use, fit.x, np.inf).argsort(axis=-1)
    in_order = [np.take_along_axis(values, order, axis=-1) for values in (mean, images)]
    falls, reverse = _tests_of_falling(in_order[0], in_order[1], _spread(logit, mean))
    status[falls] = np.where(reverse, "reversed", "non_monotone")[falls]
    status[use.sum(axis=-1) < 3] = "empty"
    return status


def _spread(logit: FloatArray, mean: FloatArray) -> FloatArray:
    """Estimate the SD of log-odds between images, pooled over a group, shape (G,)."""
    has = np.isfinite(logit)
    squares = np.where(has, logit - mean[..., None], 0.0) ** 2
    freedom = (has.sum(axis=-1) - 1).clip(0).sum(axis=(1, 2))
    pooled: FloatArray = np.sqrt(squares.sum(axis=(1, 2, 3)) / np.maximum(freedom, 1))
    return np.maximum(pooled, _LEAST_SPREAD)


def _tests_of_falling(
    mean: FloatArray, images: FloatArray, spread: FloatArray
) -> tuple[BoolArray, BoolArray]:
    """Test whether log-odds fall with contrast anywhere, and throughout."""
    from scipy.special import chdtrc

    from psyprobe.analysis.psychometric.isotonic import rising_means

    weight = images / (spread[:, None, None] ** 2 * (1 + (mean / _NEAR) ** 2))
    use = images > 0
    rising, falling = (
        np.where(
            use,
            weight * (values - np.where(use, rising_means(values, weight), 0.0)) ** 2,
            0.0,
        ).sum(axis=-1)
        for values in (mean, -mean)
    )
    freedom = (use.sum(axis=-1) - 1).clip(1)
    unlikely: BoolArray = chdtrc(freedom, rising) < _SIGNIFICANT
    return unlikely, chdtrc(freedom, falling) >= _SIGNIFICANT
