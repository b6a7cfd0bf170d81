"""A judge as a second reader of what an observer said in words."""

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
    """Let a judge read every reply of a run: of a yes/no run whose text was wanted, or of a
    benchmark.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run whose answers are yes and no, in whatever language, or of a probe that
        has a function ``judge_replies``, as benchmarks have.
    judge : Judge
        Who judges, and how; each reply to a question is put to it once, however often it was given.
    store, progress
        As for `judge_cases`.

    Returns
    -------
    xarray.Dataset
        The run with what the judge makes of each reply. Its score then says what it would be under
        the judge. Of a yes/no run that is a variable `judged`: "yes", "no", "invalid" where the
        judge finds neither or gives no verdict, and "" where no text was wanted.

    Raises
    ------
    InputError
        Nobody could judge replies of such a run.
    """
    probe = result.attrs.get("probe", "")
    judge_of_probe = getattr(load_probe(probe), "judge_replies", None)
    if judge_of_probe is not None:
        judged: xr.Dataset = judge_of_probe(result, judge, store=store, progress=progress)
        return judged
    if task_of(result).scored != "yes":
        raise InputError(
            f"no judge reads replies of a run of {probe!r}, as of yes_no or a benchmark; leave it "
            "out"
        )
    table = trials(result)
    asked = table["reply_requested"].values.astype(bool)
    pairs = list(
        zip(
            *(table[name].values.astype(str).tolist() for name in ("prompt_text", "text")),
            strict=True,
        )
    )
    distinct = dict.fromkeys(pair for pair, each in zip(pairs, asked, strict=True) if each)
    cases = {pair: Case(json.dumps(pair), "yes_no", pair[0], "", pair[1]) for pair in distinct}
    verdicts = judge_cases(list(cases.values()), judge, store=store, progress=progress)
    read = {pair: verdicts[case.name].majority or "invalid" for pair, case in cases.items()}
    readings = np.array(
        [read[pair] if each else "" for pair, each in zip(pairs, asked, strict=True)], dtype=object
    )
    about = {
        "units": "1",
        "long_name": f"yes, no or invalid: the reply as {judge.observer.card.name} reads it",
    }
    return arrange_trials(table.assign({JUDGE_READING: (("trial",), readings, about)}))
