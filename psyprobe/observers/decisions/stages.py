"""Train decision stages: functions from features to one number for each alternative.

Rows of features come from fields of noise, each shown without and with the signal. All stages are
linear in the features (or, for "quadratic", in features and their squares), and none standardises
them: features that hardly ever fire would be blown up.

References
----------
Chen, Wiesel, Eldar & Hero (2010). Shrinkage algorithms for MMSE covariance estimation. IEEE
Transactions on Signal Processing 58(10) (oracle-approximating shrinkage).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.observers.decisions.recipe import STAGES

#: Strengths of the penalty of the logistic stage, and the folds that choose among them.
_STRENGTHS = np.logspace(-4, 1, 6)
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Stage:
    """A trained stage.

    Parameters
    ----------
    weights : ndarray, shape (m, D)
        One row for each alternative that is told from the others; a single one for a signal that is
        there or not.
    offsets : ndarray, shape (m,)
        Subtracted from the weighted features.
    quadratic : bool, optional
        Whether features are followed by their squares.

    Examples
    --------
    >>> stage = Stage(np.array([[1.0, -1.0]]), np.zeros(1))
    >>> stage.variables([[3.0, 1.0]]).tolist()
    [[2.0]]
    """

    weights: FloatArray
    offsets: FloatArray
    quadratic: bool = False

    def variables(self, features: ArrayLike) -> FloatArray:
        """Compute a decision stage's variables of images, shape (N, m); larger for its alternative.

        Parameters
        ----------
        features : array_like of float, shape (N, D)
            Features of one image a row.

        Raises
        ------
        InputError
            There are not as many features as the stage was trained on.
        """
        rows = _expand(np.asarray(features, np.float64), self.quadratic)
        if rows.shape[-1] != self.weights.shape[-1]:
            raise InputError(
                f"images have {rows.shape[-1]} features and the stage was trained on "
                f"{self.weights.shape[-1]}; train it anew for this observer and size"
            )
        return np.asarray(rows @ self.weights.T - self.offsets)


def train_detector(
    name: str,
    signals: Sequence[ArrayLike],
    blanks: ArrayLike,
    *,
    paired: bool = True,
    width: int | None = None,
) -> Stage:
    """Train a decision stage that tells a signal from none, on features.

    Parameters
    ----------
    name : str
        "lda", "template", "logistic", "prototype" or "quadratic".
    signals : sequence of array_like, each of shape (n, D)
        Features of images with the signal, an array for each contrast. If `paired`, row i of each
        has the same field of noise as row i of `blanks`; there may be fewer rows.
    blanks : array_like of float, shape (n, D)
        Features of images without it.
    paired : bool, optional
        Whether signals and blanks share their fields. Then as many rows count as there are fields.
    width : int, optional
        As for `shrunk_weights`.

    Returns
    -------
    Stage
        With one row of weights.

    Raises
    ------
    UnknownNameError
        No stage has this name.
    InputError
        There are fewer than two rows, or no feature differs.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> noise = generator.normal(size=(64, 10))
    >>> stage = train_detector("lda", [noise + np.eye(10)[0]], noise)
    >>> int(np.argmax(stage.weights))
    0
    """
    _check_name(name)
    quadratic = name == "quadratic"
    blank_rows = _expand(np.asarray(blanks, np.float64), quadratic)
    signal_rows = [_expand(np.asarray(rows, np.float64), quadratic) for rows in signals]
    if len(blank_rows) < 2 or min(map(len, signal_rows)) < 2:
        raise InputError(
            f"there are {min(len(blank_rows), *map(len, signal_rows))} images to train on; give "
            "at least 2 with and without the signal"
        )
    deltas = []
    for rows in signal_rows:
        blank_mean = blank_rows[: len(rows) if paired else None].mean(axis=0)
        deltas.append(rows.mean(axis=0) - blank_mean)
    lengths = [float(np.linalg.norm(delta)) for delta in deltas]
    if min(lengths) == 0:
        raise InputError(
            "features are the same with and without the signal, on average; nothing can be "
            "learned from them"
        )
    # With several contrasts each direction counts alike.
    delta = np.mean([d / length for d, length in zip(deltas, lengths, strict=True)], 0)
    delta *= lengths[0]
    midpoint = (signal_rows[0].mean(axis=0) + blank_rows.mean(axis=0)) / 2
    if name in ("template", "prototype"):
        weights = delta
    elif name == "logistic":
        weights = _logistic_weights(np.concatenate(signal_rows), blank_rows)
    else:
        residuals = np.concatenate(
            [rows - rows.mean(axis=0) for rows in (blank_rows, *signal_rows)]
        )
        count = len(blank_rows) if paired else len(residuals)
        weights = shrunk_weights(delta[None], residuals, count, width=width)[0]
    return Stage(weights[None], np.array([weights @ midpoint]), quadratic)


def train_comparer(name: str, greater: ArrayLike, lesser: ArrayLike) -> Stage:
    """Train a decision stage that tells which of two images has more contrast, on differences.

    Parameters
    ----------
    name : str
        As for `train_detector`.
    greater, lesser : array_like of float, shape (n, D)
        Features of both images of each pair, that of more contrast first.

    Returns
    -------
    Stage
        With one row of weights; it prefers neither image of a pair.

    Raises
    ------
    UnknownNameError, InputError
        As for `train_detector`.

    Examples
    --------
    >>> lesser = np.random.default_rng(1).normal(size=(64, 4))
    >>> stage = train_comparer("lda", lesser + 2 * np.eye(4)[1], lesser)
    >>> int(np.argmax(stage.weights))
    1
    """
    _check_name(name)
    quadratic = name == "quadratic"
    first = _expand(np.asarray(greater, np.float64), quadratic)
    second = _expand(np.asarray(lesser, np.float64), quadratic)
    differences = first - second
    linear = "lda" if quadratic else name
    stage = train_detector(linear, [differences], -differences)
    return Stage(stage.weights, np.zeros(1), quadratic)


def train_identifier(
    name: str, classes: Sequence[ArrayLike], *, width: int | None = None
) -> Stage:
    """Train a decision stage that names which of several signals is shown, on features.

    Parameters
    ----------
    name : str
        "lda", "template", "prototype" or "quadratic".
    classes : sequence of array_like, each of shape (n, D)
        Features of images of each signal; row i of each has the same field of noise.
    width : int, optional
        As for `shrunk_weights`.

    Returns
    -------
    Stage
        With one row of weights for each signal; the largest decision variable names it.

    Raises
    ------
    InputError
        As for `train_detector`, and for a stage that names none.

    Examples
    --------
    >>> generator = np.random.default_rng(1)
    >>> noise = generator.normal(size=(64, 3))
    >>> stage = train_identifier("lda", [noise + 3 * row for row in np.eye(3)])
    >>> np.argmax(stage.variables(3 * np.eye(3)), axis=1).tolist()
    [0, 1, 2]
    """
    _check_name(name)
    if name == "logistic":
        raise InputError(
            "stage 'logistic' tells a signal from none and names no signals; take 'lda'"
        )
    quadratic = name == "quadratic"
    rows = [_expand(np.asarray(signal, np.float64), quadratic) for signal in classes]
    if len(rows) < 2 or min(map(len, rows)) < 2:
        raise InputError("give at least 2 signals, and at least 2 images of each")
    means = np.array([signal.mean(axis=0) for signal in rows])
    centre = means.mean(axis=0)
    deltas = means - centre
    if not np.any(deltas):
        raise InputError(
            "features are the same for all signals, on average; nothing can be learned from them"
        )
    if name in ("template", "prototype"):
        weights = deltas
    else:
        residuals = np.concatenate(
            [signal - mean for signal, mean in zip(rows, means, strict=True)]
        )
        weights = shrunk_weights(deltas, residuals, len(rows[0]), width=width)
    offsets = weights @ centre + np.einsum("md,md->m", weights, deltas) / 2
    return Stage(weights, offsets, quadratic)


def shrunk_weights(
    deltas: ArrayLike,
    residuals: ArrayLike,
    count: int,
    *,
    shrinkage: float | None = None,
    width: int | None = None,
) -> FloatArray:
    """Compute linear weights: differences of means over the shrunk covariance of features.

    Parameters
    ----------
    deltas : array_like of float, shape (m, D)
        Differences of mean features.
    residuals : array_like of float, shape (N, D)
        Features less the mean of their class.
    count : int
        Number of rows that are independent: of pairs, which repeat a field, the number of fields.
    shrinkage : float, optional
        Share of the spherical part in the covariance, from 0 to 1; by default that of
        oracle-approximating shrinkage.
    width : int, optional
        Number of features that vary, where rows are coordinates in the space that the images span;
        by default those of the rows.

    Returns
    -------
    ndarray of float64, shape (m, D)

    Notes
    -----
    With more features than rows the inverse is computed in the space of the rows, exactly. Features
    that are constant have weight 0.

    Examples
    --------
    >>> residuals = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    >>> shrunk_weights([[1.0, 1.0]], residuals, 4, shrinkage=0).tolist()
    [[2.0, 0.5]]
    """
    rows = np.asarray(residuals, np.float64)
    differences = np.atleast_2d(np.asarray(deltas, np.float64))
    varying = np.any(rows != rows[:1], axis=0) | np.any(differences != 0, axis=0)
    if varying.all():
        return _inverse_times(differences, rows, count, shrinkage, width)
    weights = np.zeros_like(differences)
    weights[:, varying] = _inverse_times(
        differences[:, varying], rows[:, varying], count, shrinkage, width
    )
    return weights


def _inverse_times(
    deltas: FloatArray,
    rows: FloatArray,
    count: int,
    shrinkage: float | None,
    width: int | None,
) -> FloatArray:
    """Multiply differences by the inverse of the shrunk covariance of rows."""
    n, columns = rows.shape
    width = columns if width is None else width
    wide = columns > n
    products = rows @ rows.T if wide else rows.T @ rows
    scale = float(np.trace(products)) / n
    if scale == 0:
        return deltas
    mean_variance = scale / width
    if shrinkage is None:
        shrinkage = _oas(products / n, mean_variance, width, count)
    if shrinkage >= 1:
        return np.asarray(deltas / mean_variance)
    if not wide:
        covariance = (1 - shrinkage) * products / n
        covariance[np.diag_indices(columns)] += shrinkage * mean_variance
        return np.asarray(np.linalg.solve(covariance, deltas.T).T)
    if shrinkage <= 0:
        raise InputError(
            f"{width} features of {n} images have no inverse covariance without shrinkage; give "
            "a share above 0, or more images"
        )
    ridge = n * shrinkage * mean_variance / (1 - shrinkage)
    products[np.diag_indices(n)] += ridge
    inner = np.linalg.solve(products, rows @ deltas.T)
    return np.asarray((deltas - inner.T @ rows) / (shrinkage * mean_variance))


def _oas(products: FloatArray, mean_variance: float, width: int, count: int) -> float:
    """Compute how far to shrink a covariance, by oracle-approximating shrinkage.

    `products` is the covariance, or the products of rows with one another over their number, which
    has the same squared norm.
    """
    alpha = float(np.mean(np.square(products))) * products.size / width**2
    square = mean_variance**2
    denominator = (count + 1) * (alpha - square / width)
    return 1.0 if denominator <= 0 else min((alpha + square) / denominator, 1.0)


def _logistic_weights(signals: FloatArray, blanks: FloatArray) -> FloatArray:
    """Fit a penalised logistic regression, with the penalty chosen by cross-validation."""
    rows = np.concatenate([signals, blanks])
    labels = np.repeat([1.0, -1.0], [len(signals), len(blanks)])
    folds = np.concatenate(
        [np.arange(len(signals)) % FOLDS, np.arange(len(blanks)) % FOLDS]
    )
    centre = rows.mean(axis=0)
    # The fit lies in the span of the rows, where it has as many weights as there are rows.
    _, scales, basis = np.linalg.svd(rows - centre, full_matrices=False)
    basis = basis[scales > scales[0] * 1e-12] if scales[0] else basis
    coordinates = (rows - centre) @ basis.T
    coordinates /= max(float(coordinates.std()), 1e-300)
    losses = [
        sum(
            _log_loss(
                _fit_logistic(coordinates[folds != k], labels[folds != k], strength),
                coordinates[folds == k],
                labels[folds == k],
            )
            for k in range(FOLDS)
        )
        for strength in _STRENGTHS
    ]
    strength = float(_STRENGTHS[int(np.argmin(losses))])
    fitted = _fit_logistic(coordinates, labels, strength)
    return np.asarray(fitted[:-1] @ basis)


def _fit_logistic(rows: FloatArray, labels: FloatArray, strength: float) -> FloatArray:
    """Fit the weights and intercept of a logistic regression with a given penalty."""
    from scipy import optimize, special

    extended = np.column_stack([rows, np.ones(len(rows))])
    penalised = np.append(np.ones(rows.shape[1]), 0.0)

    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margins = labels * (extended @ weights)
        penalty = strength * penalised * weights
        gradient = -(labels * special.expit(-margins)) @ extended / len(rows) + penalty
        value = np.mean(np.logaddexp(0, -margins)) + penalty @ weights / 2
        return float(value), np.asarray(gradient)

    start = np.zeros(extended.shape[1])
    return np.asarray(
        optimize.minimize(loss, start, jac=True, method="L-BFGS-B", tol=1e-10).x
    )


def _log_loss(weights: FloatArray, rows: FloatArray, labels: FloatArray) -> float:
    """Compute the logistic loss of a linear classifier, summed over labels of +1 and -1."""
    margins = labels * (rows @ weights[:-1] + weights[-1])
    return float(np.sum(np.logaddexp(0, -margins)))


def _check_name(name: str) -> None:
    """Refuse a name that is no decision stage which can be trained."""
    if name not in STAGES or name == "ideal":
        raise unknown_name("decision stage", name, [*STAGES][:-1])


def _expand(rows: FloatArray, quadratic: bool) -> FloatArray:
    """Append the squares of features to rows where the stage is quadratic."""
    return np.concatenate([rows, rows**2], axis=-1) if quadratic else rows


def area_d_prime(signals: ArrayLike, blanks: ArrayLike) -> float:
    """Compute d' from the area under the ROC curve, sqrt(2) z(AUC), for any distributions.

    Parameters
    ----------
    signals, blanks : array_like of float
        Decision variables.

    Returns
    -------
    float
        With no error among all pairs, that of half an error.

    Examples
    --------
    >>> round(area_d_prime([1.0, 2.0, 3.0], [0.0, 1.5, 0.5]), 3)
    1.726
    """
    from scipy import special

    first = np.ravel(np.asarray(signals, float))
    second = np.sort(np.asarray(blanks, float), axis=None)
    pairs = len(first) * len(second)
    # Ties count half.
    below = np.searchsorted(second, first, "left").sum()
    up_to = np.searchsorted(second, first, "right").sum()
    u = (float(below) + float(up_to)) / 2
    area = min(max(u, 0.5), pairs - 0.5) / pairs
    return math.sqrt(2) * float(special.ndtri(area))
