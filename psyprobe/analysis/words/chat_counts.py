"""The answers of a questioning run, counted by wording, frequency and contrast; what cannot be counted is counted too.

References
----------
Hernandez-Camara, Daniel-Valencia, Laparra, Malo (2025). Contrast sensitivity function of multimodal vision-language
models. arXiv 2508.10367: 25 wordings, and ten questions at each frequency and contrast.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.terminal import printable

if TYPE_CHECKING:
    import xarray as xr

#: Probes whose results hold answers in words.
PROBES = ("yes_no", "two_interval")

#: Readings of a reply that say neither yes nor no.
EXCLUDED = ("ambiguous", "refusal", "invalid")

#: Of a pattern of which less than this share arrives, nothing does: on a log axis it has no place.
_LEAST_GAIN = 0.01

_NEEDED = ("frequency", "contrast", "prompt", "said")


def is_chat(result: xr.Dataset) -> bool:
    """Whether a result is of a questioning run.

    Parameters
    ----------
    result : xarray.Dataset
        Of any run.

    Returns
    -------
    bool
    """
    return getattr(result, "attrs", {}).get("probe") in PROBES


def experiment_table(result: xr.Dataset, name: str) -> dict[str, Any]:
    """A table of the experiment file of a run, as "fit" or "human".

    Parameters
    ----------
    result : xarray.Dataset
        Of any run, or of `chat_csf`.
    name : str
        Of the table.

    Returns
    -------
    dict
        Empty where the file has no such table, or the result no such file.
    """
    table = tomllib.loads(str(result.attrs.get("experiment_toml", ""))).get(name, {})
    return dict(table) if isinstance(table, dict) else {}


@dataclass(frozen=True, eq=False)
class ChatCounts:
    """Answers by wording (P), frequency (F) and contrast (L), and those to catch trials by wording.

    Attributes
    ----------
    prompts : tuple of str
        Wordings, by identifier, in the order in which they were asked.
    groups : tuple of str
        What kind of wording each is; empty text where the run does not say.
    frequency : ndarray of float64, shape (F,)
        In cpd, rising.
    contrast : ndarray of float64, shape (P, F, L)
        As delivered, mean over the questions that count; rising. NaN where nothing was asked.
    yes, trials : ndarray of float64, shape (P, F, L)
        Sum of what was said (1: pattern seen; a probability counts as it is) and number of answers that count.
    excluded : ndarray of int64, shape (P, F, L, 3)
        Replies that say neither, by `EXCLUDED`.
    not_shown : ndarray of int64, shape (F,)
        Questions that do not count because the display could not deliver the contrast: not asked, or asked with
        nothing of the pattern in the image.
    catch_yes, catch_trials : ndarray of float64, shape (P,)
        The same for images without a pattern, which are alike for all frequencies.
    catch_excluded : ndarray of int64, shape (P, 3)
        Replies to these that say neither.
    """

    prompts: tuple[str, ...]
    groups: tuple[str, ...]
    frequency: FloatArray
    contrast: FloatArray
    yes: FloatArray
    trials: FloatArray
    excluded: npt.NDArray[np.int64]
    not_shown: npt.NDArray[np.int64]
    catch_yes: FloatArray
    catch_trials: FloatArray
    catch_excluded: npt.NDArray[np.int64]

    @property
    def excluded_rate(self) -> FloatArray:
        """Share of replies that say neither yes nor no, shape (P, F); 0 where nothing was asked."""
        lost = self.excluded.sum(axis=(-2, -1))
        rate: FloatArray = lost / np.maximum(lost + self.trials.sum(axis=-1), 1)
        return rate


@dataclass(frozen=True, eq=False)
class Places:
    """Where each question of a run belongs; -1 where a place does not apply.

    Attributes
    ----------
    prompt, frequency, level : ndarray of int64, shape (trials,)
        Indices into the axes of the counts; catch trials have neither frequency nor level.
    prompts : tuple of str
        Identifiers.
    frequencies : ndarray of float64, shape (F,)
        In cpd.
    levels : int
        Number of levels L, the most that one wording has at one frequency.
    catch, counted, shown : ndarray of bool, shape (trials,)
        Whether it is a catch trial; has an answer that says yes or no; was asked at all.
    """

    prompt: npt.NDArray[np.int64]
    frequency: npt.NDArray[np.int64]
    level: npt.NDArray[np.int64]
    prompts: tuple[str, ...]
    frequencies: FloatArray
    levels: int
    catch: npt.NDArray[np.bool_]
    counted: npt.NDArray[np.bool_]
    shown: npt.NDArray[np.bool_]


def places(result: xr.Dataset) -> Places:
    """Find where each question of a run belongs.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.

    Returns
    -------
    Places
        Levels are numbered in the order of what arrives of them, for each wording and frequency by itself: adaptive
        designs choose other contrasts for each. A pattern of which less than a hundredth arrives, as one that rounding
        wiped out, counts as not shown.

    Raises
    ------
    InputError
        If this is no result of a questioning run, or none of its questions has an answer that counts.
    """
    missing = [name for name in _NEEDED if name not in getattr(result, "variables", ())]
    if missing:
        raise InputError(
            f"this is no result of a questioning run: it lacks {', '.join(missing)}; pass what psyprobe.run() returned"
        )
    names = result["prompt"].values.astype(str)
    prompts = tuple(dict.fromkeys(names.tolist()))
    number = {name: i for i, name in enumerate(prompts)}
    prompt = np.array([number[name] for name in names.tolist()], dtype=np.int64)
    nominal = result["contrast"].values.astype(np.float64)
    catch = nominal == 0
    delivered = _delivered(result)
    shown = result["shown"].values.astype(bool) if "shown" in result else np.ones(nominal.shape, dtype=bool)
    shown &= catch | ~(delivered < _LEAST_GAIN * nominal)
    counted = shown & np.isfinite(result["said"].values.astype(np.float64))
    if not (counted & ~catch).any():
        raise InputError(
            f"no question of this run has an answer that says yes or no{_commonest(result, shown)}; do the prompts and "
            f"their words for yes and no suit the probe {result.attrs.get('probe', 'yes_no')!r}?"
        )
    cpd = result["frequency"].values.astype(np.float64)
    frequencies = np.unique(cpd[~catch])
    frequency = np.where(catch, -1, np.searchsorted(frequencies, cpd).clip(max=len(frequencies) - 1))
    level = np.full(nominal.shape, -1, dtype=np.int64)
    most = 1
    for p in range(len(prompts)):
        for f in range(len(frequencies)):
            here = (prompt == p) & (frequency == f) & shown
            if not here.any():
                continue
            own, index = np.unique(nominal[here], return_inverse=True)
            # Without dither, rounding can make a weaker pattern the stronger one.
            arrived = np.bincount(index, delivered[here]) / np.bincount(index)
            level[here] = np.argsort(np.argsort(arrived, kind="stable"))[index]
            most = max(most, len(own))
    return Places(prompt, frequency, level, prompts, frequencies, most, catch, counted, shown)


def count_answers(result: xr.Dataset) -> ChatCounts:
    """Count the answers of a questioning run.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.

    Returns
    -------
    ChatCounts
        Ambiguous replies, refusals and such that cannot be read are counted apart, and never as no.

    Raises
    ------
    InputError
        As for `places`.
    """
    at = places(result)
    shape = (len(at.prompts), len(at.frequencies), at.levels)
    said = result["said"].values.astype(np.float64)
    delivered = _delivered(result)
    tests, blanks = at.counted & ~at.catch, at.counted & at.catch
    # A level that only got replies that do not count has a contrast all the same.
    asked = at.shown & ~at.catch
    known = asked & np.isfinite(delivered)
    with np.errstate(invalid="ignore"):
        contrast = summed(at, shape, known, delivered) / summed(at, shape, known)
    lost = at.shown & ~at.counted
    read = result["read"].values.astype(str) if "read" in result else np.full(said.shape, "invalid")
    kind = np.array([EXCLUDED.index(r) if r in EXCLUDED else EXCLUDED.index("invalid") for r in read.tolist()])
    excluded = np.zeros((*shape, len(EXCLUDED)), dtype=np.int64)
    mine = lost & ~at.catch
    np.add.at(excluded, (at.prompt[mine], at.frequency[mine], at.level[mine], kind[mine]), 1)
    catch_excluded = np.zeros((shape[0], len(EXCLUDED)), dtype=np.int64)
    np.add.at(catch_excluded, (at.prompt[lost & at.catch], kind[lost & at.catch]), 1)
    hidden = ~at.shown & ~at.catch
    return ChatCounts(
        prompts=at.prompts,
        groups=tuple(_groups(result).get(name, "") for name in at.prompts),
        frequency=at.frequencies,
        contrast=contrast,
        yes=summed(at, shape, tests, said),
        trials=summed(at, shape, tests),
        excluded=excluded,
        not_shown=np.bincount(at.frequency[hidden], minlength=shape[1]).astype(np.int64),
        catch_yes=np.bincount(at.prompt[blanks], weights=said[blanks], minlength=shape[0]).astype(np.float64),
        catch_trials=np.bincount(at.prompt[blanks], minlength=shape[0]).astype(np.float64),
        catch_excluded=catch_excluded,
    )


def summed(
    at: Places, shape: tuple[int, ...], which: npt.NDArray[np.bool_], values: FloatArray | None = None
) -> FloatArray:
    """Sum of values, or number of questions, in each cell.

    Parameters
    ----------
    at : Places
        Where questions belong.
    shape : tuple of int
        Of the counts, (P, F, L).
    which : ndarray of bool, shape (trials,)
        Those that count; no catch trials.
    values : ndarray, shape (trials,), optional
        What is summed; without it, ones.

    Returns
    -------
    ndarray of float64, shape (P, F, L)
    """
    total = np.zeros(shape)
    np.add.at(total, (at.prompt[which], at.frequency[which], at.level[which]), 1.0 if values is None else values[which])
    return total


def _commonest(result: xr.Dataset, asked: npt.NDArray[np.bool_]) -> str:
    """The reply that came most often, for a message."""
    replies = Counter(result["text"].values[asked].astype(str).tolist() if "text" in result else ())
    if not replies:
        return ""
    (reply, n), *_ = replies.most_common(1)
    return f" ({n} of {int(asked.sum())} are {shorten(printable(reply), 60)!r})"


def _delivered(result: xr.Dataset) -> FloatArray:
    name = "delivered_contrast" if "delivered_contrast" in result else "contrast"
    contrast: FloatArray = result[name].values.astype(np.float64)
    return contrast


def _groups(result: xr.Dataset) -> dict[str, str]:
    entries: Any = json.loads(str(result.attrs.get("prompts") or "[]"))
    return {str(entry["id"]): str(entry.get("group", "")) for entry in entries if isinstance(entry, dict)}
