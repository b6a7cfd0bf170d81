"""Train the stage of one condition: where, on how much, and what it cost.

A stage is trained near threshold, on fields of noise that no test shares, each with and without the
signal. A pilot finds the contrast where it tells the two apart with a d' of 2.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.decisions.recipe import (
    CRITERION_FIELDS,
    PILOT_CONTRASTS,
    PILOT_FIELDS,
    Recipe,
)
from psyprobe.observers.decisions.stages import (
    FOLDS,
    Stage,
    area_d_prime,
    train_comparer,
    train_detector,
    train_identifier,
)

#: Rows of features of images at a contrast in some fields of noise, shape (m, n, D): a row of each
#: signal in each field; at contrast 0 without a signal, shape (1, n, D).
Rows = Callable[[float, Sequence[int]], FloatArray]
#: Rows of features of pairs of pictures, shape (2, n, D): that of more contrast first.
PictureRows = Callable[[Sequence[int]], FloatArray]
#: D' whose contrast the pilot looks for.
_PILOT_D_PRIME = 2.0
#: Further contrasts of a stage that is trained near threshold, as factors.
_ABOVE = (1.5, 2.25)
#: Index of the first field without a signal from which the criterion of yes comes.
_FIRST_CRITERION_FIELD = 1_000_000
#: Shares of the training fields from which the cost of finite training is told.
_SHARES = (0.25, 0.5, 1.0)
#: Share of d' without end that must be reached before it is told.
_LEAST_SHARE = 0.85
#: Trainings with labels swapped at random, which must find nothing.
_SWAPS = 60
#: As many for the logistic stage, of which one training takes as long as 80 of the others.
_LOGISTIC_SWAPS = 12

#: Share of right answers beyond chance at contrast 0 from which a cue gives the signal away.
LARGEST_CUE = 0.05


@dataclass(frozen=True, eq=False)
class TrainedStage:
    """A stage with what is known of its training.

    Parameters
    ----------
    stage : Stage
        The function.
    criterion : float, optional
        Decision variable above which yes is said; None where intervals or signals are compared.
    contrasts : tuple of float
        Contrasts that it was trained at, the first with all fields.
    reached : bool
        Whether a d' of 2 was reached at any contrast of the pilot.
    learning : tuple of (int, float)
        Fields, and d' at the first contrast with as many, in folds that were not trained on.
    swapped : tuple of float
        Mean d' with labels swapped at random, which is 0 but by chance, and its standard error.
    """

    stage: Stage
    criterion: float | None
    contrasts: tuple[float, ...]
    reached: bool = True
    learning: tuple[tuple[int, float], ...] = ()
    swapped: tuple[float, float] = (0.0, 0.0)

    def to_dict(self) -> JsonObject:
        """Return the trained stage as JSON values, its weights as base64 of float64."""
        weights = np.ascontiguousarray(self.stage.weights, "<f8")
        return {
            "weights": base64.b64encode(weights.tobytes()).decode(),
            "signals": len(weights),
            "offsets": self.stage.offsets.tolist(),
            "quadratic": self.stage.quadratic,
            "criterion": self.criterion,
            "contrasts": list(self.contrasts),
            "reached": self.reached,
            "learning": [list(point) for point in self.learning],
            "swapped": list(self.swapped),
        }

    @classmethod
    def from_dict(cls, values: JsonMapping) -> TrainedStage:
        """Build the trained stage that `to_dict` describes."""
        weights = np.frombuffer(base64.b64decode(values["weights"]), "<f8")
        stage = Stage(
            weights.reshape(values["signals"], -1),
            np.array(values["offsets"], float),
            values["quadratic"],
        )
        return cls(
            stage,
            values["criterion"],
            tuple(values["contrasts"]),
            values["reached"],
            tuple((int(n), float(d)) for n, d in values["learning"]),
            tuple(values["swapped"]),
        )


def extrapolated_d_prime(learning: Sequence[tuple[int, float]]) -> float | None:
    """Extrapolate d' to endless training data by 1 / d'² = a + b / n.

    Parameters
    ----------
    learning : sequence of (int, float)
        Numbers of fields and d'.

    Returns
    -------
    float or None
        None where d' with all fields is below 0.85 of it, or no line fits.

    Examples
    --------
    >>> round(extrapolated_d_prime([(32, 1.79), (64, 1.89), (128, 1.94)]), 2)
    2.0
    >>> extrapolated_d_prime([(32, 0.5), (64, 0.7), (128, 0.9)]) is None
    True
    """
    usable = [(n, d) for n, d in learning if d > 0]
    if len(usable) < 2:
        return None
    counts, values = np.array(usable).T
    slope, intercept = np.polyfit(1 / counts, 1 / values**2, 1)
    if slope <= 0:
        # More training finds no more.
        return float(values[-1])
    if intercept <= 0:
        return None
    endless = float(1 / math.sqrt(intercept))
    return endless if values[-1] >= _LEAST_SHARE * endless else None


def train_stage(
    recipe: Recipe,
    rows: Rows,
    contrasts: tuple[float, float],
    *,
    yes_no: bool,
    picture_rows: PictureRows,
) -> TrainedStage:
    """Train the decision stage of one condition.

    Parameters
    ----------
    recipe : Recipe
        How it is trained.
    rows : callable
        Features of images at a contrast in some fields; see `Rows`.
    contrasts : tuple of float
        Lowest and highest contrast of the page.
    yes_no : bool
        Whether the stage says yes and no, for which it needs a criterion.
    picture_rows : callable
        Features of pairs of other pictures; see `PictureRows`.

    Returns
    -------
    TrainedStage
    """
    every_field = range(recipe.pairs)
    trained_at: list[float] = []
    reached = True
    if recipe.train == "natural":
        greater, blanks = picture_rows(every_field)
        signals = [greater[None]]
    else:
        trained_at, counts, reached = _training_contrasts(recipe, rows, contrasts)
        blanks = rows(0.0, every_field)[0]
        signals = [
            rows(contrast, range(count))
            for contrast, count in zip(trained_at, counts, strict=True)
        ]
    stage = _fit(recipe, signals, blanks)
    criterion = None
    if yes_no:
        first = _FIRST_CRITERION_FIELD
        empty = rows(0.0, range(first, first + CRITERION_FIELDS))[0]
        variables = stage.variables(empty)[:, 0]
        criterion = float(np.quantile(variables, 1 - recipe.false_alarms))
    features = _Features.spanned(recipe, signals[0], blanks)
    learning = [
        (count, _held_out_d_prime(recipe, features, count))
        for count in (
            round(share * recipe.pairs * (FOLDS - 1) / FOLDS) for share in _SHARES
        )
    ]
    return TrainedStage(
        stage,
        criterion,
        tuple(trained_at),
        reached,
        tuple(learning),
        _swapped_d_prime(recipe, features),
    )


def _training_contrasts(
    recipe: Recipe, rows: Rows, contrasts: tuple[float, float]
) -> tuple[list[float], list[int], bool]:
    """Choose contrasts to train at, fields for each, and tell whether the pilot found threshold."""
    low, high = contrasts
    count = recipe.pairs
    if recipe.train == "near":
        ladder = np.geomspace(low, high, PILOT_CONTRASTS).tolist()
        near, reached = _near_threshold(recipe, rows, ladder)
        above = [min(near * factor, high) for factor in _ABOVE]
        return [near, *above], [count, *[count // 2] * len(_ABOVE)], reached
    if recipe.train == "mixed":
        upper = np.geomspace(low ** (1 / 3) * high ** (2 / 3), high, 3)
        return upper.tolist(), [count] * 3, True
    return [high], [count], True


def _fit(
    recipe: Recipe,
    signals: Sequence[FloatArray],
    blanks: FloatArray,
    width: int | None = None,
) -> Stage:
    """Train a stage on signals of several contrasts, each of shape (m, n, D)."""
    if recipe.train == "natural":
        return train_comparer(recipe.stage, signals[0][0], blanks)
    if len(signals[0]) == 1:
        rows = [contrast_signals[0] for contrast_signals in signals]
        return train_detector(recipe.stage, rows, blanks, width=width)
    # The weights of several signals come from the first contrast and what is noise there.
    return train_identifier(recipe.stage, list(signals[0]), width=width)


@dataclass(frozen=True, eq=False)
class _Features:
    """Features of one contrast, on which the many stages are trained that check one stage.

    Where there are more features than images, the columns are coordinates of the images in the
    space that they span: weights of `lda` lie in it, and where its axes point changes no answer.
    """

    #: Shape (m, n, columns).
    signals: FloatArray
    #: Shape (n, columns); no columns where signals are told from each other.
    blanks: FloatArray
    #: The features themselves, shape (n, D) for each kind of image; empty where they are the
    #: columns.
    originals: Sequence[FloatArray] = ()

    @classmethod
    def spanned(
        cls, recipe: Recipe, signals: FloatArray, blanks: FloatArray
    ) -> _Features:
        """Compute the coordinates of images in the space that they span, if that is smaller."""
        kinds = [*signals, blanks] if blanks.size else list(signals)
        images = sum(map(len, kinds))
        exact = recipe.stage == "lda" and recipe.train != "natural"
        if not exact or signals.shape[-1] <= images:
            return cls(signals, blanks)
        centred = np.concatenate(kinds).astype(np.float64)
        centred -= centred.mean(axis=0)
        coordinates = np.transpose(np.linalg.qr(centred.T, mode="r"))
        # Images that are the same stay so to the last digit, since ties count half.
        firsts: dict[int, int] = {}
        coordinates = coordinates[
            [
                firsts.setdefault(hash(row.tobytes()), place)
                for place, row in enumerate(centred)
            ]
        ]
        count = signals.shape[1]
        first_blank = len(signals) * count
        return cls(
            coordinates[:first_blank].reshape(len(signals), count, images),
            coordinates[first_blank:] if blanks.size else blanks,
            kinds,
        )

    def width(self, fields: Sequence[int]) -> int | None:
        """Count the features that vary among the images of some fields."""
        if not self.originals:
            return None
        first = self.originals[0][fields[0]]
        varying = np.zeros(first.shape, dtype=bool)
        for rows in self.originals:
            for field in fields:
                varying |= rows[field] != first
        return int(varying.sum())


def _near_threshold(
    recipe: Recipe, rows: Rows, ladder: Sequence[float]
) -> tuple[float, bool]:
    """Find the contrast at which d' is 2, and whether any contrast reaches that."""
    from scipy import optimize

    pilot_fields = range(min(PILOT_FIELDS, recipe.pairs))
    blanks = rows(0.0, pilot_fields)[0]
    d_primes = [
        _held_out_d_prime(
            recipe, _Features.spanned(recipe, rows(contrast, pilot_fields), blanks)
        )
        for contrast in ladder
    ]
    rising = optimize.isotonic_regression(np.array(d_primes)).x
    if rising[-1] < _PILOT_D_PRIME:
        return ladder[-1], False
    # Ties of the regression rise by nothing, where the interpolation takes the first.
    steps = rising + 1e-9 * np.arange(len(rising))
    return float(np.exp(np.interp(_PILOT_D_PRIME, steps, np.log(ladder)))), True


def _held_out_d_prime(
    recipe: Recipe, features: _Features, count: int | None = None
) -> float:
    """Compute d' of stages in cross-validation, trained on up to `count` fields."""
    signals = features.signals
    blanks = features.blanks
    fold = np.arange(signals.shape[1]) % FOLDS
    values = []
    for k in range(FOLDS):
        others = np.flatnonzero(fold != k)[:count]
        held_out = fold == k
        try:
            width = features.width(others.tolist())
            stage = _fit(recipe, [signals[:, others]], blanks[others], width)
        except InputError:
            # Nothing differs, so nothing is told apart.
            values.append(0.0)
            continue
        values.append(_d_prime(recipe, stage, signals[:, held_out], blanks[held_out]))
    return float(np.mean(values))


def _d_prime(
    recipe: Recipe, stage: Stage, signals: FloatArray, blanks: FloatArray
) -> float:
    """Compute d' of a signal from none, or the mean d' of each signal from each other."""
    if recipe.train == "natural":
        # Pictures differ among each other, so only those of a pair are compared.
        differences = stage.variables(signals[0]) - stage.variables(blanks)
        return area_d_prime(differences, -differences) / math.sqrt(2)
    if len(signals) == 1:
        return area_d_prime(stage.variables(signals[0]), stage.variables(blanks))
    variables = [stage.variables(rows) for rows in signals]
    return float(
        np.mean(
            [
                area_d_prime(
                    variables[i][:, i] - variables[i][:, j],
                    variables[j][:, i] - variables[j][:, j],
                )
                for i in range(len(signals))
                for j in range(i)
            ]
        )
    )


def correct_share(stage: Stage, rows: Sequence[FloatArray]) -> float:
    """Compute the share of right answers about images of several kinds.

    Parameters
    ----------
    stage : Stage
        Of one row of weights, by which two intervals are compared, or one for each kind.
    rows : sequence of ndarray, each of shape (n, D)
        Features of images of each kind; for two intervals those with the signal come first.

    Returns
    -------
    float
        Of all pairs of intervals, or of all images that are named; ties count by chance.

    Examples
    --------
    >>> stage = Stage(np.array([[1.0]]), np.zeros(1))
    >>> correct_share(stage, [np.array([[1.0], [3.0]]), np.array([[1.0], [2.0]])])
    0.625
    """
    variables = [stage.variables(features) for features in rows]
    if len(stage.weights) == 1:
        first, second = (values[:, 0] for values in variables)
        differences = first[:, None] - second
        return float(np.mean((np.sign(differences) + 1) / 2))
    shares = []
    for kind, values in enumerate(variables):
        largest = values == values.max(axis=1, keepdims=True)
        shares.append(np.mean(largest[:, kind] / largest.sum(axis=1)))
    return float(np.mean(shares))


def _swapped_d_prime(recipe: Recipe, features: _Features) -> tuple[float, float]:
    """Compute the mean d' of stages trained on randomly swapped labels, and its error."""
    signals = features.signals
    blanks = features.blanks
    count = signals.shape[1]
    generator = np.random.default_rng([recipe.seed, count])
    classes = np.concatenate([signals, blanks[None]]) if len(signals) == 1 else signals
    trained = np.arange(count) < count * (FOLDS - 1) // FOLDS
    # Whatever their labels, these are the same images.
    width = features.width(np.flatnonzero(trained).tolist())
    values = []
    swaps = _LOGISTIC_SWAPS if recipe.stage == "logistic" else _SWAPS
    for _ in range(swaps):
        order = generator.permuted(np.tile(np.arange(len(classes)), (count, 1)), axis=1)
        swapped = np.stack(
            [classes[order[:, i], np.arange(count)] for i in range(len(classes))]
        )
        try:
            stage = _fit(
                recipe,
                [swapped[: len(signals), trained]],
                swapped[-1, trained],
                width,
            )
        except InputError:
            continue
        held_out = (signals[:, ~trained], blanks[~trained])
        values.append(_d_prime(recipe, stage, *held_out))
    if len(values) < 2:
        return 0.0, 0.0
    return float(np.mean(values)), float(
        np.std(values, ddof=1) / math.sqrt(len(values))
    )


def describe_training(values: JsonMapping) -> JsonObject:
    """Describe a trained stage without its weights."""
    names = ("contrasts", "reached", "learning", "swapped", "criterion")
    return {
        **{name: values[name] for name in names},
        "endless_d_prime": extrapolated_d_prime(values["learning"]),
    }
