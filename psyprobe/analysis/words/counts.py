"""The answers of a questioning run, counted by wording, level and contrast; what cannot be counted is counted too.

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
from psyprobe.analysis.responses import levels_of
from psyprobe.errors import InputError
from psyprobe.files.terminal import printable

if TYPE_CHECKING:
    import xarray as xr

#: Readings of a reply that say neither yes nor no.
EXCLUDED = ("ambiguous", "refusal", "invalid")

#: Of a pattern of which less than this share arrives, nothing does: on a log axis it has no place.
_LEAST_GAIN = 0.01

_NEEDED = ("contrast", "prompt", "said")


def experiment_table(result: xr.Dataset, name: str) -> dict[str, Any]:
    """A table of the experiment file of a run, as "fit" or "human"; empty where there is none."""
    table = tomllib.loads(str(result.attrs.get("experiment_toml", ""))).get(name, {})
    return dict(table) if isinstance(table, dict) else {}


@dataclass(frozen=True, eq=False)
class ChatCounts:
    """Answers by wording (P), level (F) and contrast (L), and those to catch trials by wording."""

    #: Wordings, by identifier, in the order in which they were asked.
    prompts: tuple[str, ...]
    #: What kind of wording each is; empty text where the run does not say.
    groups: tuple[str, ...]
    #: Name of the level: "frequency", "phase", "luminance".
    level: str
    #: Of the level, rising, shape (F,).
    values: FloatArray
    #: As delivered, mean over the questions that count; rising, shape (P, F, L). NaN where nothing was asked.
    contrast: FloatArray
    #: Sum of what was said (1: pattern seen; a probability counts as it is), shape (P, F, L).
    yes: FloatArray
    #: Number of answers that count, shape (P, F, L).
    trials: FloatArray
    #: Replies that say neither, by `EXCLUDED`, shape (P, F, L, 3).
    excluded: npt.NDArray[np.int64]
    #: Questions that do not count because the display could not deliver the contrast, shape (F,): not asked, or asked
    #: with nothing of the pattern in the image.
    not_shown: npt.NDArray[np.int64]
    #: As `yes` for images without a pattern, which are alike for all levels, shape (P,).
    catch_yes: FloatArray
    catch_trials: FloatArray
    #: Replies to these that say neither, shape (P, 3).
    catch_excluded: npt.NDArray[np.int64]

    @property
    def excluded_rate(self) -> FloatArray:
        """Share of replies that say neither yes nor no, shape (P, F); 0 where nothing was asked."""
        lost = self.excluded.sum(axis=(-2, -1))
        rate: FloatArray = lost / np.maximum(lost + self.trials.sum(axis=-1), 1)
        return rate


@dataclass(frozen=True, eq=False)
class Places:
    """Where each question of a run belongs; -1 where a place does not apply."""

    #: Index into `prompts`, as the next two shape (trials,).
    prompt: npt.NDArray[np.int64]
    #: Index into `values`; catch trials have none.
    value: npt.NDArray[np.int64]
    #: Number of the contrast, from the weakest; catch trials have none.
    step: npt.NDArray[np.int64]
    #: Identifiers.
    prompts: tuple[str, ...]
    level: str
    #: Of the level, shape (F,).
    values: FloatArray
    #: Number of contrasts L, the most that one wording has at one level.
    steps: int
    #: Whether it is a catch trial, as the next two shape (trials,).
    catch: npt.NDArray[np.bool_]
    #: Whether it has an answer that says yes or no.
    counted: npt.NDArray[np.bool_]
    #: Whether it was asked at all.
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
        Contrasts are numbered in the order of what arrives of them, for each wording and level by itself: adaptive
        designs choose other contrasts for each. A pattern of which less than a hundredth arrives, as one that rounding
        wiped out, counts as not shown.

    Raises
    ------
    InputError
        If this is no result of a questioning run, or none of its questions has an answer that counts.
    """
    level = next(iter(levels_of(result)), "levels")
    missing = [name for name in (level, *_NEEDED) if name not in getattr(result, "variables", ())]
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
    asked = result[level].values.astype(np.float64)
    values = np.unique(asked[~catch])
    value = np.where(catch, -1, np.searchsorted(values, asked).clip(max=len(values) - 1))
    step = np.full(nominal.shape, -1, dtype=np.int64)
    most = 1
    for p in range(len(prompts)):
        for f in range(len(values)):
            here = (prompt == p) & (value == f) & shown
            if not here.any():
                continue
            own, index = np.unique(nominal[here], return_inverse=True)
            # Without dither, rounding can make a weaker pattern the stronger one.
            arrived = np.bincount(index, delivered[here]) / np.bincount(index)
            step[here] = np.argsort(np.argsort(arrived, kind="stable"))[index]
            most = max(most, len(own))
    return Places(prompt, value, step, prompts, level, values, most, catch, counted, shown)


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
    shape = (len(at.prompts), len(at.values), at.steps)
    said = result["said"].values.astype(np.float64)
    delivered = _delivered(result)
    tests, blanks = at.counted & ~at.catch, at.counted & at.catch
    # A contrast that only got replies that do not count has a contrast all the same.
    asked = at.shown & ~at.catch
    known = asked & np.isfinite(delivered)
    with np.errstate(invalid="ignore"):
        contrast = summed(at, shape, known, delivered) / summed(at, shape, known)
    lost = at.shown & ~at.counted
    read = result["read"].values.astype(str) if "read" in result else np.full(said.shape, "invalid")
    kind = np.array([EXCLUDED.index(r) if r in EXCLUDED else EXCLUDED.index("invalid") for r in read.tolist()])
    excluded = np.zeros((*shape, len(EXCLUDED)), dtype=np.int64)
    mine = lost & ~at.catch
    np.add.at(excluded, (at.prompt[mine], at.value[mine], at.step[mine], kind[mine]), 1)
    catch_excluded = np.zeros((shape[0], len(EXCLUDED)), dtype=np.int64)
    np.add.at(catch_excluded, (at.prompt[lost & at.catch], kind[lost & at.catch]), 1)
    hidden = ~at.shown & ~at.catch
    return ChatCounts(
        prompts=at.prompts,
        groups=tuple(_groups(result).get(name, "") for name in at.prompts),
        level=at.level,
        values=at.values,
        contrast=contrast,
        yes=summed(at, shape, tests, said),
        trials=summed(at, shape, tests),
        excluded=excluded,
        not_shown=np.bincount(at.value[hidden], minlength=shape[1]).astype(np.int64),
        catch_yes=np.bincount(at.prompt[blanks], weights=said[blanks], minlength=shape[0]).astype(np.float64),
        catch_trials=np.bincount(at.prompt[blanks], minlength=shape[0]).astype(np.float64),
        catch_excluded=catch_excluded,
    )


def summed(
    at: Places, shape: tuple[int, ...], which: npt.NDArray[np.bool_], values: FloatArray | None = None
) -> FloatArray:
    """Sum of values, or number of those questions that count (no catch trials), in each cell, shape (P, F, L)."""
    total = np.zeros(shape)
    np.add.at(total, (at.prompt[which], at.value[which], at.step[which]), 1.0 if values is None else values[which])
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
