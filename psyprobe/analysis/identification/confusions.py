"""Count which label was said when each was shown, and part bias from similarity.

References
----------
Luce (1963), in Handbook of Mathematical Psychology 1; Shepard (1957), Psychometrika 22: the choice
model, in which label j is said of i with a probability in proportion to bias(j) similarity(i, j).
Bradley & Terry (1952), Biometrika 39; Hunter (2004), Annals of Statistics 32: comparisons of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.identification.replies import OTHERS
from psyprobe.analysis.words.trial_table import trials
from psyprobe.errors import InputError
from psyprobe.files.netcdf import as_text
from psyprobe.running.task import task_of

if TYPE_CHECKING:
    import xarray as xr

#: Wrong answers that are added to those naming each label, over the labels shown: one that was
#: never named may be. Half a count a cell, as is usual, would be 12.5 of 26 labels, and make all
#: biases alike.
_ADDED = 1.0
#: Right answers, and wrong ones, that are added to each label.
_ADDED_RIGHT = 0.5
#: Confusions that are added to each pair of labels, as frequent as all pairs' together.
_ADDED_CONFUSIONS = 1.0
#: When the iteration of `estimate_bias` ends: steps, and the largest change of a logarithm.
_STEPS = 300
_SMALL = 1e-6


@dataclass(frozen=True, eq=False)
class Confusions:
    """How often each label was named where each was shown.

    Parameters
    ----------
    labels : tuple of str
        The labels.
    counts : ndarray of float64, shape (m, m + 4)
        Questions by the label shown and the label named; the last columns are those of
        `psyprobe.analysis.identification.replies.OTHERS`: outside, ambiguous, refusal, invalid.

    Examples
    --------
    >>> confusions = Confusions(("C", "O"), np.array([[8, 2, 0, 0, 0, 0], [1, 9, 0, 0, 0, 0]]))
    >>> confusions.correct.tolist(), confusions.largest(1)
    ([0.8, 0.9], [('C', 'O', 2)])
    """

    labels: tuple[str, ...]
    counts: FloatArray

    @property
    def named(self) -> FloatArray:
        """The counts of replies by label shown and label named, shape (m, m)."""
        return self.counts[:, : len(self.labels)]

    @property
    def answered(self) -> FloatArray:
        """The number of replies that count for each label shown: labels, and others "outside"."""
        return np.asarray(self.counts[:, : len(self.labels) + 1].sum(axis=1))

    @property
    def correct(self) -> FloatArray:
        """The share of right answers to each label; NaN where nothing was answered."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.diagonal(self.counts) / self.answered)

    @property
    def shares(self) -> FloatArray:
        """The share of each label among all labels named; NaN where none was."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.named.sum(axis=0) / self.named.sum())

    def largest(self, count: int) -> list[tuple[str, str, int]]:
        """List the most frequent confusions: label shown, label named and count."""
        wrong = self.named - np.diag(np.diagonal(self.named))
        places = np.argsort(-wrong, axis=None, kind="stable")[:count]
        rows, columns = np.unravel_index(places, wrong.shape)
        return [
            (self.labels[i], self.labels[j], int(wrong[i, j]))
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
            if wrong[i, j]
        ]


def count_confusions(result: xr.Dataset) -> Confusions:
    """Count a result's answers by label shown and label named.

    Parameters
    ----------
    result : xarray.Dataset
        Of the probe `identify`, or its table of trials.

    Raises
    ------
    InputError
        No labels were asked for.

    Examples
    --------
    >>> import psyprobe as pp
    >>> page = pp.load_experiment("landolt_4").with_settings({"asking.options.n_max": 8})
    >>> same = pp.observer(lambda images, prompt: "up", name="says up", bits=8)
    >>> confusions = count_confusions(pp.run(page, same, progress=False))
    >>> confusions.labels, confusions.named.sum(axis=0).tolist()
    (('right', 'up', 'left', 'down'), [0.0, 8.0, 0.0, 0.0])
    """
    table = trials(result)
    if "answer" not in table or "shown" not in table:
        raise InputError(
            "no labels were asked for in this run; pass the result of the probe identify"
        )
    labels = task_of(result).answers
    columns = [*labels, *OTHERS]
    counts = np.zeros((len(labels), len(columns)))
    shown = as_text(table["shown"].values).tolist()
    answers = as_text(table["answer"].values).tolist()
    for label, answer in zip(shown, answers, strict=True):
        if label and answer:
            counts[labels.index(label), columns.index(answer)] += 1
    return Confusions(labels, counts)


@dataclass(frozen=True, eq=False)
class ChoiceModel:
    """Bias and similarity of labels.

    Parameters
    ----------
    bias : ndarray, shape (m,)
        How readily each label is named; their sum is 1.
    similarity : ndarray, shape (m, m)
        Of each label with each, symmetric; 1 with itself.
    """

    bias: FloatArray
    similarity: FloatArray

    def probabilities(self) -> FloatArray:
        """Compute how often each label (columns) is named where each (rows) is shown."""
        strength = self.bias * self.similarity
        return np.asarray(strength / strength.sum(axis=1, keepdims=True))


def choice_model(probabilities: ArrayLike) -> ChoiceModel:
    """Fit Luce's choice model, which parts bias from similarity, to a confusion matrix.

    Parameters
    ----------
    probabilities : array_like, shape (m, m)
        How often each label is named where each is shown, all above 0; rows may have any sum.

    Raises
    ------
    InputError
        The matrix is not square, or a cell is not above 0.

    Examples
    --------
    >>> model = choice_model([[0.8, 0.2], [0.2, 0.8]])
    >>> model.bias.tolist(), model.similarity[0].tolist()
    ([0.5, 0.5], [1.0, 0.25])
    """
    matrix = np.asarray(probabilities, float)
    if matrix.ndim != 2 or len(matrix) != matrix.shape[-1] or not (matrix > 0).all():
        raise InputError(
            f"confusions of shape {matrix.shape} have a smallest cell of {matrix.min():g}; give "
            "as many rows as columns, all above 0, or counts to fit_choice_model"
        )
    logs = np.log(matrix)
    diagonal = np.diagonal(logs)
    similarity = np.exp((logs + logs.T - diagonal[:, None] - diagonal) / 2)
    # log (b_j / b_i), averaged over i.
    ratios = (logs + diagonal - diagonal[:, None] - logs.T) / 2
    bias = np.exp(ratios.mean(axis=0))
    return ChoiceModel(bias / bias.sum(), similarity)


def fit_choice_model(confusions: Confusions) -> ChoiceModel:
    """Fit Luce's choice model to counts, with few or no answers in most cells.

    Similarities are drawn towards their mean, each by one confusion: those of 26 letters, 45 % of
    them misread, come back within 0.1 log10 (RMSE) from some 27,000 answers. After 208, as the page
    `alphabet_26` asks, they tell hardly more than the mean; half a count in each cell, the usual
    remedy, makes them six times as large.

    Parameters
    ----------
    confusions : Confusions
        As `count_confusions` counts them.

    Examples
    --------
    >>> counts = np.array([[80, 20, 0, 0, 0, 0], [20, 80, 0, 0, 0, 0]])
    >>> fit_choice_model(Confusions(("C", "O"), counts)).similarity[0].round(2).tolist()
    [1.0, 0.25]
    """
    counts = confusions.named
    bias = estimate_bias(counts)
    apart = 1 - np.eye(len(bias))
    right = np.diagonal(counts) + _ADDED_RIGHT
    # As many as there would be were the labels as similar as a label is to itself.
    alike = right[:, None] * bias / bias[:, None]
    expected = alike + alike.T
    confused = counts + counts.T
    mean = (confused * apart).sum() + _ADDED_CONFUSIONS
    mean /= (expected * apart).sum()
    similarity = (confused + _ADDED_CONFUSIONS) / (expected + _ADDED_CONFUSIONS / mean)
    return ChoiceModel(bias, np.where(apart, similarity, 1.0))


def estimate_bias(counts: FloatArray) -> FloatArray:
    """Estimate the biases of the choice model from counts, with few or no answers in most cells.

    Between two labels, the confusions one way and the other compare them as in Bradley and Terry's
    model; with the share of right answers that gives the bias. It is the model's maximum
    likelihood, but for one wrong answer that is added to each label.

    Parameters
    ----------
    counts : ndarray, shape (..., m, m)
        Answers by the label shown (rows) and named (columns).

    Returns
    -------
    ndarray, shape (..., m)
        Bias towards each label; their sum is 1.

    Examples
    --------
    >>> estimate_bias(np.array([[40.0, 8.0], [2.0, 40.0]])).round(2).tolist()
    [0.37, 0.63]
    """
    m = counts.shape[-1]
    apart = 1 - np.eye(m)
    wrong = (counts + _ADDED / max(m - 1, 1)) * apart
    named = wrong.sum(axis=-2)
    compared = wrong + np.swapaxes(wrong, -1, -2)
    strength = np.ones(named.shape)
    for _ in range(_STEPS):
        pairs = strength[..., :, None] + strength[..., None, :]
        next_strength = named / (compared / pairs).sum(axis=-1)
        next_strength /= next_strength.mean(axis=-1, keepdims=True)
        change = np.abs(np.log(next_strength / strength)).max()
        strength = next_strength
        if change < _SMALL:
            break
    # A strength is bias(j)² / (share right(j) trials(j)), up to a factor.
    shown = np.maximum(counts.sum(axis=-1), 1)
    right = np.diagonal(counts, axis1=-2, axis2=-1) + _ADDED_RIGHT
    bias = np.sqrt(strength * shown * right / (shown + 2 * _ADDED_RIGHT))
    return np.asarray(bias / bias.sum(axis=-1, keepdims=True))


def bias_intervals(
    confusions: Confusions, *, confidence: float, resamples: int = 200, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate the bias towards each label, with a bootstrap interval over trials.

    Parameters
    ----------
    confusions : Confusions
        Labels that were never shown count as shown once.
    confidence : float
        Of the interval.
    resamples : int
        Number of draws.
    seed : int

    Returns
    -------
    tuple of ndarray
        Bias, and the ends of its interval, each of shape (m,).
    """
    counts = confusions.named
    generator = np.random.default_rng(seed)
    draws = [
        generator.multinomial(int(row.sum()), row / max(row.sum(), 1), resamples)
        if row.any()
        else np.zeros((resamples, len(row)))
        for row in counts
    ]
    tail = (1 - confidence) / 2
    resampled = estimate_bias(np.stack(draws, axis=1))
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    return estimate_bias(counts), low, high


def forgive(result: xr.Dataset, alike: tuple[str, str]) -> xr.Dataset:
    """Count either of two labels as right for the other, in replies of text.

    Parameters
    ----------
    result : xarray.Dataset
        Of the probe `identify`.
    alike : (str, str)
        The labels, such as C and O; what is stored does not change.
    """
    table = trials(result)
    pair: list[BoolArray] = [
        np.isin(as_text(table[name].values), alike) for name in ("shown", "answer")
    ]
    by_text = as_text(table["readout"].values) == "text"
    forgiven = pair[0] & pair[1] & by_text
    return table.assign(response=table["response"].where(~forgiven, 1.0))
