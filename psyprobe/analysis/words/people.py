"""Average people into one row of a table of models, without the best and the worst.

References
----------
Li et al. (2024). R-Bench: are your large multimodal models robust to real-world corruptions? arXiv
2410.05474: five people, of whom the best and the worst are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from psyprobe.errors import InputError, unknown_name

#: What names a row, in the metrics of MVP-Bench and of R-Bench.
_KEYS = (("task", "level", "metric"), ("measure", "breakdown", "name"))
_FEWEST = 3


def mean_of_people(metrics: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Average benchmark metrics over people, without the best and the worst.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By person, as `mvp_metrics` or `rbench_metrics` gives them; at least three people, all asked
        the same.

    Returns
    -------
    pandas.DataFrame
        The same rows. value: the mean; low and high: the smallest and the largest value of those
        who are left, and no confidence interval; numerator and denominator: their sums; other
        columns as the first person's. ``attrs["left_out"]`` names the best and the worst. They are
        told by the mean of all metrics (R-Bench: by the overall absolute value) and left out of
        every row, so that all rows are of the same people; of equals the first by name is the
        better.

    Raises
    ------
    InputError
        There are fewer than three people, or they were not asked the same.

    Examples
    --------
    >>> def person(value):
    ...     row = {"task": "yes/no", "level": "low", "metric": "aAcc", "value": value}
    ...     return pd.DataFrame([row])
    >>> people = {"a": 80.0, "b": 90.0, "c": 20.0, "d": 70.0}
    >>> mean = mean_of_people({name: person(value) for name, value in people.items()})
    >>> mean["value"].tolist(), mean["low"].tolist(), mean.attrs["left_out"]
    ([75.0], [70.0], ('b', 'c'))
    """
    if len(metrics) < _FEWEST:
        raise InputError(
            f"there are {len(metrics)} people; without the best and the worst, give at least "
            f"{_FEWEST}"
        )
    first = next(iter(metrics.values()))
    keys = next((list(names) for names in _KEYS if set(names) <= set(first)), None)
    if keys is None:
        raise InputError(
            "these are no metrics of MVP-Bench or R-Bench; give what mvp_metrics or "
            "rbench_metrics gave"
        )
    tables = {name: table.set_index(keys) for name, table in metrics.items()}
    index = first.set_index(keys).index
    for name, table in tables.items():
        if set(table.index) != set(index):
            raise InputError(
                f"{name} was not asked the same as the others; let everybody answer all questions"
            )
    order = sorted(tables, key=lambda name: (-_overall(tables[name]), name))
    tables_left = [tables[name].loc[index] for name in order[1:-1]]
    values = pd.concat([table["value"] for table in tables_left], axis=1)
    mean = tables_left[0].assign(
        value=values.mean(axis=1), low=values.min(axis=1), high=values.max(axis=1)
    )
    for column in ("numerator", "denominator", "unread"):
        if column in mean:
            mean[column] = sum(table[column] for table in tables_left)
    if "half_width" in mean:
        mean["half_width"] = None
    mean = mean.reset_index()[
        [*first.columns, *[name for name in ("low", "high") if name not in first]]
    ]
    mean.attrs["left_out"] = (order[0], order[-1])
    return mean


def with_people(
    metrics: Mapping[str, pd.DataFrame], people: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Replace people's benchmark metrics by their mean, after the models'.

    Raises
    ------
    UnknownNameError
        A person has no metrics.
    InputError
        As `mean_of_people`.
    """
    if not people:
        return dict(metrics)
    for name in people:
        if name not in metrics:
            raise unknown_name("person", name, metrics)
    mean = mean_of_people({name: metrics[name] for name in dict.fromkeys(people)})
    left = {name: table for name, table in metrics.items() if name not in people}
    return left | {f"(people, mean of {len(set(people)) - 2})": mean}


def _overall(table: pd.DataFrame) -> float:
    """Look up the overall score in a table of MVP-Bench or R-Bench scores."""
    if table.index.names[0] == "measure":
        return float(table.loc[("absolute", "overall", "overall"), "value"])
    return float(table["value"].mean())
