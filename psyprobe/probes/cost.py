"""What questions in words will take before they are asked: tokens, time and money, and where the
estimate comes from.

No estimate is made of a model's own way of counting an image's tokens: answers tell it, those in a
store or that to one question that is put for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psyprobe.observers.chat.cost_summary import short
from psyprobe.observers.chat.prices import USD, money
from psyprobe.observers.protocol import PaidObserver, ServedObserver, SubmittingObserver
from psyprobe.running.protocol import Answered, Batch
from psyprobe.running.store import Store

#: Answers of another run from which the pace is taken.
_SOME = 200


@dataclass(frozen=True)
class Pace:
    """What one question takes."""

    #: Tokens of the question, those of them that a server has cached, and of the answer; None where
    #: nobody knows.
    tokens_in: float | None
    tokens_cached: float
    tokens_out: float | None
    seconds: float
    #: As answers tell it, in this currency; None where they do not.
    cost: float | None
    currency: str
    #: From where that is known, as a sentence.
    source: str
    #: Whether the answer is one whole text, though not all questions may be let run on to one.
    whole_text: bool = False


@dataclass(frozen=True)
class Expense:
    """What so many questions take."""

    questions: int
    #: About so many; None where nobody knows.
    tokens_in: int | None
    tokens_out: int | None
    #: About so long.
    seconds: float
    #: About so much, in this currency; 0 of a model of one's own, None where no price is known.
    cost: float | None
    currency: str

    def __str__(self) -> str:
        tokens = "an unknown number of tokens"
        if self.tokens_in is not None and self.tokens_out is not None:
            tokens = f"{short(self.tokens_in)} tokens in, {short(self.tokens_out)} out"
        paid = (
            "no known price"
            if self.cost is None
            else money(self.cost, self.currency)
            if self.cost
            else "no price"
        )
        count = f"{self.questions:,} question{'s' * (self.questions != 1)}"
        return f"{count}: about {tokens}, {duration(self.seconds)}, {paid}"


def pace_of(replies: Sequence[Mapping[str, Any]], source: str) -> Pace:
    """The mean of replies, each as `Answer.to_dict` gives it."""
    count = len(replies)

    def mean(name: str) -> float | None:
        told = [reply.get(name) for reply in replies]
        return None if None in told else sum(value for value in told if value is not None) / count

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
    own: Sequence[Mapping[str, Any]],
    alike: Mapping[str, Any],
    put: Callable[..., Iterator[Answered]] | None,
    batches: Sequence[Batch],
) -> Pace | None:
    """The pace of an observer, from the best that there is.

    Parameters
    ----------
    store : Store
        Perhaps with answers of the observer.
    observer : observer
        Who would be asked.
    own : sequence of mapping
        Replies in the store to questions of the run that is planned.
    alike : mapping
        "probe" and entries of the layout in which another run must agree with it, for its answers
        to stand for these.
    put : callable, optional
        Puts batches; given where one question may be asked.
    batches : sequence of Batch
        Those of the first round, of which it would be one.

    Returns
    -------
    Pace or None
        None where nothing was measured.
    """
    if own:
        return pace_of(
            own, f"Tokens and seconds are those of {len(own):,} answers of this run in the store."
        )
    for record in store.runs():
        layout = {**record.layout, "probe": record.probe}
        if record.observer_digest != observer.card.digest or any(
            layout.get(name) != alike[name] for name in alike
        ):
            continue
        trials = record.outcome.get("trials")
        keys = [trial["key"] for trial in trials] if trials else layout.get("keys", [])
        replies = [
            answer["reply"]
            for answer in store.answers(keys[:_SOME]).values()
            if answer["reply"] is not None
        ]
        if replies:
            told = (
                f"Tokens and seconds are those of {len(replies)} answers of "
                f"{record.experiment} in the store."
            )
            return pace_of(replies, told)
    if put is not None and isinstance(observer, ServedObserver):
        # An observer that is asked in files otherwise is asked directly here.
        who = observer.directly if isinstance(observer, SubmittingObserver) else observer
        for batch in batches:
            one = replace(batch, questions=batch.questions[:1])
            (answered,) = put({who.card.digest: who}, [one])
            if answered.answer["reply"] is not None:
                one_put = "Tokens and seconds are those of one question that was put."
                return replace(pace_of([answered.answer["reply"]], one_put), whole_text=True)
    return None


def expense(
    observer: Any, pace: Pace, questions: int, images: Sequence[tuple[int, int]]
) -> Expense:
    """What questions to an observer take, each about images of so many pixels (height, width)."""
    is_paid = isinstance(observer, PaidObserver)
    price = observer.price if is_paid else None
    concurrency = observer.concurrency if is_paid else 1
    rate = observer.rate if is_paid else None
    seconds = questions * pace.seconds / concurrency
    counted = pace.tokens_in is not None and pace.tokens_out is not None
    cost = pace.cost
    currency = pace.currency
    if price is not None:
        cost = None
        currency = price.currency
        if pace.tokens_in is not None and pace.tokens_out is not None:
            cost = price.of(pace.tokens_in, pace.tokens_out, images, pace.tokens_cached)
    elif cost is None and not is_paid:
        cost = 0.0
    return Expense(
        questions,
        round(questions * (pace.tokens_in or 0)) if counted else None,
        round(questions * (pace.tokens_out or 0)) if counted else None,
        max(seconds, questions / rate) if rate else seconds,
        None if cost is None else questions * cost,
        currency,
    )


def priced_plan(expenses: Sequence[Expense], budget: float | None) -> list[str]:
    """What is left of several runs costs, and for how much of it a budget lasts, in sentences.

    Examples
    --------
    >>> priced_plan([Expense(100, 70_000, 500, 60.0, 4.0, "USD")], 1.0)
    ['What is left costs about 4.00 USD; a budget of 1.00 USD lasts for about 25 of the 100 questions.']
    """
    paid = [each for each in expenses if each.cost != 0]
    if not paid:
        return []
    currencies = {each.currency for each in paid}
    costs = [each.cost for each in paid if each.cost is not None]
    if len(costs) < len(paid) or len(currencies) > 1:
        lacking = len(paid) - len(costs)
        why = (
            f"{lacking} of {len(paid)} have no known price"
            if lacking
            else " and ".join(sorted(currencies))
        )
        return [
            f"What is left has no price in all ({why}): give the prices of the models (--prices "
            "FILE)."
        ]
    (currency,) = currencies
    total = sum(costs)
    told = f"What is left costs about {money(total, currency)}"
    if budget is None:
        return [f"{told}."]
    questions = 0.0
    left = budget
    for each, cost in zip(paid, costs, strict=True):
        questions += each.questions * min(1.0, left / cost)
        left = max(left - cost, 0.0)
    of_all = f"about {questions:,.0f} of the {sum(each.questions for each in paid):,} questions"
    lasts = "all of it" if budget >= total else of_all
    return [f"{told}; a budget of {money(budget, currency)} lasts for {lasts}."]


def duration(seconds: float) -> str:
    """A time as one reads it.

    Parameters
    ----------
    seconds : float
        Of any length.

    Returns
    -------
    str

    Examples
    --------
    >>> duration(42), duration(600), duration(90000)
    ('42 s', '10 min', '25.0 h')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
