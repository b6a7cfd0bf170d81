"""A judge as a second reader of what a chat model said in a questioning run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.words.readers import JUDGED
from psyprobe.errors import InputError
from psyprobe.running.store import Store
from psyprobe.tasks.asking import Case, Judge, judge_cases

if TYPE_CHECKING:
    import xarray as xr


def judge_replies(
    result: xr.Dataset, judge: Judge, *, store: str | Path | Store | None = None, progress: bool | None = None
) -> xr.Dataset:
    """Let a judge read every reply of a yes/no run whose text was wanted.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run whose answers are yes and no, in whatever language.
    judge : Judge
        Who judges, and how; each reply to a question is put to it once, however often it was given.
    store, progress
        As for `judge_cases`.

    Returns
    -------
    xarray.Dataset
        The run with a variable `judged`: "yes", "no", "invalid" where the judge finds neither or gives no verdict, and
        "" where no text was wanted. Its score then says what it would be under the judge.

    Raises
    ------
    InputError
        This is no yes/no run.
    """
    if result.attrs.get("probe") != "yes_no":
        raise InputError(f"a judge reads yes and no, and this is a run of {result.attrs.get('probe')!r}; leave it out")
    asked = result["text_asked"].values.astype(bool)
    pairs = list(zip(*(result[name].values.astype(str).tolist() for name in ("prompt_text", "text")), strict=True))
    distinct = dict.fromkeys(pair for pair, each in zip(pairs, asked, strict=True) if each)
    cases = {pair: Case(json.dumps(pair), "yes_no", pair[0], "", pair[1]) for pair in distinct}
    verdicts = judge_cases(list(cases.values()), judge, store=store, progress=progress)
    read = {pair: verdicts[case.name].majority or "invalid" for pair, case in cases.items()}
    judged = np.array([read[pair] if each else "" for pair, each in zip(pairs, asked, strict=True)], dtype=object)
    about = {"units": "1", "long_name": f"yes, no or invalid: the reply as {judge.observer.card.name} reads it"}
    return result.assign({JUDGED: (("trial",), judged, about)})
