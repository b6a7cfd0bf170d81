"""Estimate what questions in words will cost: tokens, time and money, and the estimate's source.

How a model counts an image's tokens is not guessed but read from answers: those in a store, or the
answer to one question that is put to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psyprobe._typing import Size
from psyprobe.files.json_types import JsonMapping
from psyprobe.observers.chat.cost_summary import short_count
from psyprobe.observers.chat.prices import USD, money
from psyprobe.observers.protocol import PaidObserver, ServedObserver, SubmittingObserver
from psyprobe.running.protocol import Answered, Batch
from psyprobe.running.store import Store

#: Number of answers of another run from which the pace is estimated.
_SAMPLE = 200


@dataclass(frozen=True)
class Pace:
    """The mean tokens, time and cost of one question."""

    #: Tokens of the question, those of them that a server has cached, and tokens of the answer;
    #: None where unknown.
    tokens_in: float | None
    tokens_cached: float
    tokens_out: float | None
    seconds: float
    #: Cost that answers report, in this currency; None where they report none.
    cost: float | None
    currency: str
    #: A sentence on where these numbers come from.
    source: str
    #: Whether the answer is a whole text, where answers to other questions may be cut short.
    whole_text: bool = False


@dataclass(frozen=True)
class Expense:
    """The estimated tokens, time and cost of a number of questions."""

    questions: int
    #: None where unknown.
    tokens_in: int | None
    tokens_out: int | None
    seconds: float
    #: Cost in this currency; 0 for a local model, None where no price is known.
    cost: float | None
    currency: str

    def __str__(self) -> str:
        tokens = "an unknown number of tokens"
        if self.tokens_in is not None and self.tokens_out is not None:
            tokens = f"{short_count(self.tokens_in)} tokens in, {short_count(self.tokens_out)} out"
        price = "no known price" if self.cost is None else "no price"
        if self.cost:
            price = money(self.cost, self.currency)
        count = f"{self.questions:,} question{'s' * (self.questions != 1)}"
        return f"{count}: about {tokens}, {duration(self.seconds)}, {price}"


def pace_of(replies: Sequence[JsonMapping], source: str) -> Pace:
    """Average the tokens, seconds and cost of replies to those of one question."""
    count = len(replies)

    def mean(name: str) -> float | None:
        values = [reply.get(name) for reply in replies]
        return None if None in values else sum(filter(None, values)) / count

    currencies = {reply.get("currency", USD) for reply in replies}
    cached = sum(reply.get("tokens_cached") or 0 for reply in replies) / count
    cost = mean("cost") if len(currencies) == 1 else None
    return Pace(
        mean("tokens_in"),
        cached,
        mean("tokens_out"),
        mean("latency") or 0.0,
        cost,
        currencies.pop(),
        source,
    )


def measured_pace(
    store: Store,
    observer: Any,
    run_replies: Sequence[JsonMapping],
    required_entries: JsonMapping,
    put_batches: Callable[..., Iterator[Answered]] | None,
    batches: Sequence[Batch],
) -> Pace | None:
    """Estimate an observer's tokens, seconds and cost a question from the best source at hand.

    Replies of the run itself come before those of a similar run, and these before one question that
    is put to find out.

    Parameters
    ----------
    store : Store
        A store that may hold answers of the observer.
    observer : observer
        The observer of the planned run.
    run_replies : sequence of mapping
        Replies in the store to questions of the planned run.
    required_entries : mapping
        "probe" and entries of the layout that a similar run must share.
    put_batches : callable, optional
        Function that puts batches; None if no question may be put.
    batches : sequence of Batch
        Batches of the first round, of which the first question would be put.

    Returns
    -------
    Pace or None
        None where nothing was measured.
    """
    measured = "Tokens and seconds are those of"
    if run_replies:
        return pace_of(
            run_replies,
            f"{measured} {len(run_replies):,} answers of this run in the store.",
        )
    for record in store.iterate_runs():
        layout = {**record.layout, "probe": record.probe}
        similar = all(
            layout.get(name) == entry for name, entry in required_entries.items()
        )
        if record.observer_digest != observer.card.digest or not similar:
            continue
        trials = record.outcome.get("trials")
        keys = [trial["key"] for trial in trials] if trials else layout.get("keys", [])
        answers = store.answers(keys[:_SAMPLE]).values()
        replies = [answer["reply"] for answer in answers if answer["reply"] is not None]
        if replies:
            return pace_of(
                replies,
                f"{measured} {len(replies)} answers of {record.experiment} in the store.",
            )
    if put_batches is not None and isinstance(observer, ServedObserver):
        # An observer that is asked in files otherwise is asked directly here.
        direct = (
            observer.directly if isinstance(observer, SubmittingObserver) else observer
        )
        for batch in batches:
            single = replace(batch, questions=batch.questions[:1])
            (answered,) = put_batches({direct.card.digest: direct}, [single])
            reply = answered.answer["reply"]
            if reply is not None:
                pace = pace_of([reply], f"{measured} one question that was put.")
                return replace(pace, whole_text=True)
    return None


def expense(
    observer: Any, pace: Pace, questions: int, images: Sequence[Size]
) -> Expense:
    """Estimate what questions to an observer take: tokens, time and price."""
    seconds = questions * pace.seconds
    cost = pace.cost
    currency = pace.currency
    tokens_in = tokens_out = None
    if pace.tokens_in is not None and pace.tokens_out is not None:
        tokens_in = round(questions * pace.tokens_in)
        tokens_out = round(questions * pace.tokens_out)
    if isinstance(observer, PaidObserver):
        seconds = seconds / observer.concurrency
        if observer.rate:
            seconds = max(seconds, questions / observer.rate)
        if observer.price is not None:
            cost = None
            currency = observer.price.currency
            if pace.tokens_in is not None and pace.tokens_out is not None:
                cost = observer.price.of(
                    pace.tokens_in, pace.tokens_out, images, pace.tokens_cached
                )
    elif cost is None:
        cost = 0.0
    total = None if cost is None else questions * cost
    return Expense(questions, tokens_in, tokens_out, seconds, total, currency)


def priced_plan(expenses: Sequence[Expense], budget: float | None) -> list[str]:
    """Describe what the rest of several runs costs, and how far a budget lasts.

    Examples
    --------
    >>> priced_plan([Expense(100, 70_000, 500, 60.0, 4.0, "USD")], 1.0)
    ['What is left costs about 4.00 USD; a budget of 1.00 USD lasts for about 25 of the
    100 questions.']
    """
    paid_expenses = [expense for expense in expenses if expense.cost != 0]
    if not paid_expenses:
        return []
    currencies = {expense.currency for expense in paid_expenses}
    costs = [expense.cost for expense in paid_expenses if expense.cost is not None]
    if len(costs) < len(paid_expenses) or len(currencies) > 1:
        lacking = len(paid_expenses) - len(costs)
        reason = (
            f"{lacking} of {len(paid_expenses)} have no known price"
            if lacking
            else " and ".join(sorted(currencies))
        )
        return [
            f"What is left has no price in all ({reason}): give the prices of the models (--prices "
            "FILE)."
        ]
    (currency,) = currencies
    total = sum(costs)
    sentence = f"What is left costs about {money(total, currency)}"
    if budget is None:
        return [f"{sentence}."]
    questions = 0.0
    remaining = budget
    for paid, cost in zip(paid_expenses, costs, strict=True):
        questions += paid.questions * min(1.0, remaining / cost)
        remaining = max(remaining - cost, 0.0)
    count = sum(paid.questions for paid in paid_expenses)
    portion = f"about {questions:,.0f} of the {count:,} questions"
    if budget >= total:
        portion = "all of it"
    return [f"{sentence}; a budget of {money(budget, currency)} lasts for {portion}."]


def duration(seconds: float) -> str:
    """Format a time in seconds, minutes or hours, whichever suits its length.

    Examples
    --------
    >>> duration(42), duration(600), duration(90000)
    ('42 s', '10 min', '25.0 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
