"""Which levels to show next: those whose answers are expected to tell most, far enough from those on their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.probes.designs.protocol import Level

About: TypeAlias = Literal["threshold", "all"]

#: A level on its way takes up to this share of the expected information from levels near it,
_DIVERSITY = 0.7
#: which are those within about this distance, in log10 contrast.
_NEAR = 0.15


def binary_entropy(p: FloatArray) -> FloatArray:
    """Entropy in nats of an answer that is yes with probability p.

    Examples
    --------
    >>> binary_entropy(np.array([0.1, 0.5, 0.9])).round(4).tolist()
    [0.3251, 0.6931, 0.3251]
    """
    q = np.clip(p, 1e-300, 1.0)
    r = np.clip(1.0 - p, 1e-300, 1.0)
    return np.asarray(-(p * np.log(q) + (1.0 - p) * np.log(r)))


def information_on_threshold(mass: FloatArray, guess: FloatArray, rise: FloatArray, visible: FloatArray) -> FloatArray:
    """Expected information of one answer on the threshold, in nats, with all else marginalised, shape (X,).

    The mutual information of answer and threshold (Kontsevich & Tyler 1999, Vision Research 39; here marginal).

    Parameters
    ----------
    mass, guess, rise : ndarray, shape (T, W)
        Posterior of threshold and width, and in each cell its product with the mean guess rate and rise.
    visible : ndarray, shape (T, W, X)
        Probability of seeing the pattern at each of X contrasts.
    """
    of_threshold = mass.sum(axis=1)[:, None]
    yes = guess.sum(axis=1)[:, None] + (rise[:, None, :] @ visible)[:, 0, :]
    given = np.clip(yes / np.maximum(of_threshold, 1e-300), 0.0, 1.0)
    return np.asarray(binary_entropy(yes.sum(axis=0)) - (of_threshold * binary_entropy(given)).sum(axis=0))


def information_on_all(joint: FloatArray, yes: FloatArray, noise: FloatArray) -> FloatArray:
    """Expected information of one answer on threshold, width, guess and lapse together, in nats.

    The level that maximises it is the one that minimises the expected entropy of the posterior (Watson 2017, QUEST+,
    Journal of Vision 17(3):10): one product with a table that does not change, where that computes a posterior for
    each level and answer.

    Parameters
    ----------
    joint : ndarray, shape (T, W, G, L)
        Posterior before the answer.
    yes : ndarray, shape (X,)
        Probability of yes at each of X contrasts, all parameters marginalised.
    noise : ndarray, shape (T * W * G * L, X)
        Entropy of the answer where the parameters are known.
    """
    return np.asarray(binary_entropy(yes) - joint.reshape(-1) @ noise)


def noise_table(visible: FloatArray, guess: FloatArray, lapse: FloatArray) -> FloatArray:
    """Entropy of an answer given all parameters, shape (T * W * G * L, X), from the chances of seeing, (T, W, X)."""
    g, l = guess[:, None, None], lapse[:, None]
    return binary_entropy(g + (1 - g - l) * visible[:, :, None, None, :]).reshape(-1, visible.shape[-1])


def most_telling(
    information: Mapping[int, FloatArray],
    values: Sequence[float],
    contrasts: Sequence[float],
    pending: Sequence[Level],
) -> Level:
    """The level with the highest expected information, less what levels on their way leave of it.

    Parameters
    ----------
    information : mapping of int to ndarray, shape (X,)
        Of each contrast, by the place of each value that may be asked; the first of equals is taken.
    values, contrasts : sequence of float
        Of the level; and above 0, X of them.
    pending : sequence of Level
        On their way.

    Examples
    --------
    >>> most_telling({0: np.array([0.1, 0.3]), 1: np.array([0.2, 0.2])}, (1, 4), (0.01, 0.1), [Level(1, 0.1)])
    Level(value=4, contrast=0.01)
    """
    x = np.log10(contrasts)
    best, choice = -np.inf, Level(values[0], contrasts[0])
    for place, promise in information.items():
        value = values[place]
        waiting = np.array([np.log10(one.contrast) for one in pending if one.value == value and not one.catch])
        left = promise * diversity(x, waiting) if waiting.size else promise
        index = int(np.argmax(left))
        if left[index] > best:
            best, choice = float(left[index]), Level(value, contrasts[index])
    return choice


def diversity(x: FloatArray, pending: FloatArray) -> FloatArray:
    """What levels on their way leave of the information of others, in (0, 1].

    Parameters
    ----------
    x : ndarray, shape (X,)
        Candidate levels, log10 contrast.
    pending : ndarray, shape (P,)
        Levels of the same value whose answers are awaited.

    Examples
    --------
    >>> diversity(np.array([-2.0, -1.0]), np.array([-2.0])).round(2).tolist()
    [0.3, 1.0]
    """
    near = np.exp(-0.5 * ((x[:, None] - pending) / _NEAR) ** 2)
    return np.asarray((1 - _DIVERSITY * near).prod(axis=1))
