"""Say in words what answers cost: tokens, and money where prices are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from psyprobe.files.json_types import JsonMapping
from psyprobe.files.terminal import printable
from psyprobe.observers.chat.prices import money
from psyprobe.observers.chat.protocol import TotalCost
from psyprobe.observers.protocol import PaidObserver


def describe_cost(cost: JsonMapping) -> str:
    """Describe costs in words: tokens, and the price where one is known.

    Examples
    --------
    >>> replies = [
    ...     {"tokens_in": 700, "tokens_out": 5, "cost": 0.25},
    ...     {"tokens_in": 800, "tokens_out": 6},
    ... ]
    >>> describe_cost(TotalCost(replies).to_dict())
    '1.5k tokens in, 11 out, 0.25 USD and 1 of unknown price'
    """
    cached, thinking = (
        f" ({short_count(count)} {kind})" if (count := cost[f"tokens_{kind}"]) else ""
        for kind in ("cached", "thinking")
    )
    parts = []
    if cost["tokens_in"] or cost["tokens_out"]:
        parts.append(f"{short_count(cost['tokens_in'])} tokens in{cached}")
        parts.append(f"{short_count(cost['tokens_out'])} out{thinking}")
    if cost["cost"]:
        paid = " and ".join(
            money(amount, currency) for currency, amount in cost["cost"].items()
        )
        unpriced = (
            f" and {cost['unpriced']:,} of unknown price" if cost["unpriced"] else ""
        )
        parts.append(f"{paid}{unpriced}")
    if "refused" in cost:
        parts.append(f"{cost['refused']:,} refused")
    return ", ".join(parts)


def describe_result_cost(attributes: JsonMapping) -> str:
    """Describe in a sentence what the answers of a result cost; "" if nothing was counted.

    Parameters
    ----------
    attributes : mapping
        Those of the result; "spent" holds `TotalCost.to_dict` as JSON.

    Examples
    --------
    >>> total = TotalCost([{"tokens_in": 700, "tokens_out": 5}])
    >>> describe_result_cost({"spent": json.dumps(total.to_dict())})
    '1 answer took 700 tokens in, 5 out'
    """
    cost = json.loads(attributes.get("spent", "{}"))
    words = describe_cost(cost) if cost else ""
    return (
        f"{cost['answers']:,} answer{'s' * (cost['answers'] != 1)} took {words}"
        if words
        else ""
    )


def describe_refusals(attributes: JsonMapping) -> list[str]:
    """Describe in a sentence how many questions a server refused; "" if none.

    Examples
    --------
    >>> refusal = {"finish": "refused", "refusal": "HTTP 400: filtered"}
    >>> total = TotalCost([refusal, {"tokens_in": 700}])
    >>> describe_refusals({"spent": json.dumps(total.to_dict())})
    ["the server refused 1 of 2 questions ('HTTP 400: filtered')"]
    """
    cost = json.loads(attributes.get("spent", "{}"))
    if "refused" not in cost:
        return []
    return [
        f"the server refused {cost['refused']:,} of {cost['answers']:,} questions "
        f"({printable(cost['refusal'])!r})"
    ]


def short_count(count: float) -> str:
    """Write a number of tokens in at most three digits and a letter.

    Examples
    --------
    >>> short_count(950), short_count(12_345), short_count(999_999), short_count(3_400_000)
    ('950', '12.3k', '1M', '3.4M')
    """
    rounded = float(f"{count:.3g}")
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if rounded >= size:
            return f"{rounded / size:g}{letter}"
    return f"{count:.0f}"


def show_cost(
    bar: Any, observers: JsonMapping, answered: Iterator[Any]
) -> Iterator[Any]:
    """Iterate over answers as they come, showing their cost so far in a progress bar.

    A budget, where an observer has one, stands beside the cost.
    """
    total = TotalCost()
    paid_observers = (
        observer
        for observer in observers.values()
        if isinstance(observer, PaidObserver)
    )
    budget = next((paid.budget for paid in paid_observers if paid.budget), None)
    limit = f" of {budget}" if budget else ""
    for question in answered:
        total.add(question.answer.get("reply"))
        bar.set_postfix_str(describe_cost(total.to_dict()) + limit, refresh=False)
        yield question
