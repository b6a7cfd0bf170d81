"""What answers took, in words: tokens, and money where prices are known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from psyprobe.observers.chat.prices import money
from psyprobe.observers.chat.protocol import Spending
from psyprobe.observers.protocol import PaidObserver


def told(spent: Mapping[str, Any]) -> str:
    """`Spending.to_dict` in words: tokens, and the price where one is known.

    Examples
    --------
    >>> replies = [{"tokens_in": 700, "tokens_out": 5, "cost": 0.25}, {"tokens_in": 800, "tokens_out": 6}]
    >>> told(Spending(replies).to_dict())
    '1.5k tokens in, 11 out, 0.25 USD and 1 of unknown price'
    """
    parts = []
    if spent["tokens_in"] or spent["tokens_out"]:
        cached = f" ({short(spent['tokens_cached'])} cached)" if spent["tokens_cached"] else ""
        thinking = (
            f" ({short(spent['tokens_thinking'])} thinking)" if spent["tokens_thinking"] else ""
        )
        parts.append(
            f"{short(spent['tokens_in'])} tokens in{cached}, {short(spent['tokens_out'])} "
            f"out{thinking}"
        )
    if spent["cost"]:
        paid = " and ".join(money(amount, currency) for currency, amount in spent["cost"].items())
        rest = f" and {spent['unpriced']:,} of unknown price" if spent["unpriced"] else ""
        parts.append(f"{paid}{rest}")
    return ", ".join(parts)


def spent_on(attributes: Mapping[str, Any]) -> str:
    """What the answers of a result took, by its attributes, as a sentence; empty where nothing was
    counted.

    Examples
    --------
    >>> spent_on({"spent": json.dumps(Spending([{"tokens_in": 700, "tokens_out": 5}]).to_dict())})
    '1 answer took 700 tokens in, 5 out'
    """
    spent = json.loads(attributes.get("spent", "{}"))
    took = told(spent) if spent else ""
    return f"{spent['answers']:,} answer{'s' * (spent['answers'] != 1)} took {took}" if took else ""


def short(count: float) -> str:
    """A number of tokens in at most three digits and a letter.

    Examples
    --------
    >>> short(950), short(12_345), short(999_999), short(3_400_000)
    ('950', '12.3k', '1M', '3.4M')
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if float(f"{count:.3g}") >= size:
            return f"{float(f'{count:.3g}') / size:g}{letter}"
    return f"{count:.0f}"


def shown_on(bar: Any, observers: Mapping[str, Any], answered: Iterator[Any]) -> Iterator[Any]:
    """Answers as they come, with what they took behind a progress bar, and the budget that it is
    taken from.
    """
    spending = Spending()
    budgets = (each.budget for each in observers.values() if isinstance(each, PaidObserver))
    budget = next(filter(None, budgets), None)
    for each in answered:
        spending.add(each.answer.get("reply"))
        bar.set_postfix_str(
            told(spending.to_dict()) + (f" of {budget}" if budget else ""), refresh=False
        )
        yield each
