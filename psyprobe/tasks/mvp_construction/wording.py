"""The prompts of the language steps, from their file."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files


@functools.cache
def wordings() -> Mapping[str, str]:
    """What each step asks, with {names} to be filled in.

    Returns
    -------
    mapping of str to str
        By step; "again" is what a retry adds, "yes_no" and "choice" end the questions of the set.

    Examples
    --------
    >>> wordings()["yes_no"]
    'Answer with yes or no.'
    """
    page = tomllib.loads(files("psyprobe.tasks.mvp_construction").joinpath("prompts.toml").read_text(encoding="utf-8"))
    form = page.pop("form")
    return {**{step: row["text"].strip() for step, row in page.items()}, **form}


def filled(step: str, values: Mapping[str, str]) -> str:
    """The prompt of a step.

    Parameters
    ----------
    step : str
        A name of `wordings`.
    values : mapping of str to str
        What to fill in; braces in a value, and other ones in the prompt, stay as they are.

    Returns
    -------
    str

    Examples
    --------
    >>> filled("again", {"reason": "it is no {JSON}"})
    'An earlier reply to this could not be used: it is no {JSON}. Reply with the JSON object alone.'
    """
    names = "|".join(map(re.escape, values)) or "(?!)"
    return re.sub(rf"\{{({names})\}}", lambda found: values[found.group(1)], wordings()[step])
