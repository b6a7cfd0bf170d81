"""Find answers that contradict themselves: numbers that cannot stand together, or dates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from psyprobe.files.json_types import JsonMapping
from psyprobe.running.store import Store

#: Share within which the numbers of one pair of features agree; sound ones do to 1e-10.
_SHARE = 1e-6
#: Angles below are all rounding, as a share of 180 deg.
_SMALLEST_ANGLE = 1e-3
#: Before, there was no psyprobe; milliseconds since 1970.
_EARLIEST = datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000
_SECOND = 1000


def implausible(
    store: Store,
    run: JsonMapping,
    measures: Sequence[str] = (),
    now: datetime | None = None,
) -> Iterator[tuple[str, str]]:
    """Iterate over the first fault of each kind in the answers of a run, as (code, words).

    Parameters
    ----------
    store : Store
        The answers.
    run : mapping
        What ``run.json`` holds.
    measures : sequence of str
        What the values of an answer about a pair of images are, in their order.
    now : datetime, optional
        The time; by default the clock's.
    """
    finished = datetime.fromisoformat(run["when"]["finished"]).timestamp() * 1000
    tomorrow = (now or datetime.now(UTC)) + timedelta(days=1)
    latest = min(finished + _SECOND, tomorrow.timestamp() * 1000)
    codes: set[str] = set()
    for answered, milliseconds in store.all_answers():
        answer = answered.answer
        words_of_faults = [
            *_pair_faults(answer, measures),
            *_reply_faults(answer),
        ]
        faults = [("values-inconsistent", words) for words in words_of_faults]
        if not _EARLIEST <= milliseconds <= latest:
            place = "after its run" if milliseconds > latest else "before psyprobe was"
            date = datetime.fromtimestamp(milliseconds / 1000, UTC)
            faults.append(
                ("when", f"an answer is of {date:%Y-%m-%d %H:%M:%S}, {place}")
            )
        for code, words in faults:
            if code not in codes:
                codes.add(code)
                yield code, words


def _pair_faults(answer: JsonMapping, measures: Sequence[str]) -> Iterator[str]:
    """Iterate over impossible values among the distances of one pair of features."""
    lengths = answer.get("lengths")
    if not lengths or not measures or "values" not in answer:
        return
    for values, (test, reference, *_) in zip(answer["values"], lengths, strict=True):
        numbers = dict(zip(measures, values, strict=False))
        cosine = numbers.get("cosine")
        if cosine is None:
            continue
        if abs(cosine) > 1 + _SHARE:
            yield f"a cosine is {cosine:g}"
            continue
        angle = numbers.get("angular", 0.0)
        expected = math.acos(max(-1.0, min(1.0, cosine))) / math.pi
        if angle > _SMALLEST_ANGLE and not math.isclose(
            angle, expected, rel_tol=_SHARE
        ):
            yield f"an angle is {angle:g} and its cosine {cosine:g}"
        square = test**2 + reference**2 - 2 * test * reference * cosine
        distance = math.sqrt(max(square, 0.0))
        l2 = numbers.get("l2", distance)
        if abs(l2 - distance) > _SHARE * max(test, reference):
            yield f"a distance is {l2:g}, and by lengths and cosine {distance:g}"


def _reply_faults(answer: JsonMapping) -> Iterator[str]:
    """Iterate over impossible values in a reply: probabilities, their order, its duration."""
    reply = answer.get("reply")
    if not isinstance(reply, dict):
        return
    tokens: Sequence[Any] = reply.get("first_tokens") or ()
    logs = [log for _, log in tokens]
    total = sum(map(math.exp, logs))
    if total > 1 + _SHARE:
        yield f"probabilities of first tokens add up to {total:.6g}"
    if not reply.get("complete") and logs != sorted(logs, reverse=True):
        yield "first tokens are not in the order of their probabilities"
    latency = reply.get("latency")
    if latency is not None and latency < 0:
        yield f"a reply took {latency:g} s"
