"""Let a judge read the replies of an observer, as a second reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.words.readers import JUDGE_READING
from psyprobe.analysis.words.trial_table import arrange_trials, trials
from psyprobe.errors import InputError
from psyprobe.probes import load_probe
from psyprobe.running.store import Store
from psyprobe.running.task import task_of
from psyprobe.tasks.items import Case, Judge, judge_cases

if TYPE_CHECKING:
    import xarray as xr


def judge_replies(
    result: xr.Dataset,
    judge: Judge,
    *,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Let a judge read every reply of a result, and add its readings to the result.

    Parameters
    ----------
    result : xarray.Dataset
        Result of a run whose answers are yes and no, in any language, or of a probe that has a
        function ``judge_replies``, as benchmarks have.
    judge : Judge
        The judge; each reply to a question is put to it once, however often it was given.
    store, progress
        As for `judge_cases`.

    Returns
    -------
    xarray.Dataset
        The result with the judge's readings, under which its score is given too. In a yes/no run
        they are a variable `judge_reading`: "yes", "no", "invalid" where the judge finds neither or
        gives no verdict, and "" where no text was requested.

    Raises
    ------
    InputError
        Replies of such a run cannot be judged.
    """
    probe = result.attrs.get("probe", "")
    judge_of_probe = getattr(load_probe(probe), "judge_replies", None)
    if judge_of_probe is not None:
        judged: xr.Dataset = judge_of_probe(
            result, judge, store=store, progress=progress
        )
        return judged
    if task_of(result).scored != "yes":
        raise InputError(
            f"no judge reads replies of a run of {probe!r}, as of yes_no or a benchmark; leave it "
            "out"
        )
    table = trials(result)
    requested = table["reply_requested"].values.astype(bool)
    prompts = table["prompt_text"].values[requested].tolist()
    texts = table["text"].values[requested].tolist()
    replies = list(zip(prompts, texts, strict=True))
    cases = {
        (prompt, text): Case(json.dumps((prompt, text)), "yes_no", prompt, "", text)
        for prompt, text in replies
    }
    verdicts = judge_cases(list(cases.values()), judge, store=store, progress=progress)
    readings = np.full(requested.shape, "", dtype=object)
    readings[requested] = [
        verdicts[cases[reply].name].majority or "invalid" for reply in replies
    ]
    attributes = {
        "units": "1",
        "long_name": f"yes, no or invalid: the reply as {judge.observer.card.name} reads it",
    }
    return arrange_trials(
        table.assign({JUDGE_READING: (("trial",), readings, attributes)})
    )
