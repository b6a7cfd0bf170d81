"""Keep in the store how an attempt at a run ended that did not finish it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psyprobe.errors import UnfinishedError, failure_kind
from psyprobe.files.terminal import printable_line
from psyprobe.running.protocol import DIGEST_DIGITS, Attempt, RunRecord
from psyprobe.running.store import Store, utc_now

#: Characters of a message.
_MESSAGE = 500


@contextmanager
def record_attempt(store: Store, record: RunRecord) -> Iterator[None]:
    """Store how the block ends that asks the questions of a run, unless it comes to its end.

    Parameters
    ----------
    store : Store
        Opened.
    record : RunRecord
        The run, begun.
    """
    started = utc_now()
    try:
        yield
    except BaseException as error:
        how = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        if isinstance(error, UnfinishedError):
            how = "unfinished"
        # What went wrong is what counts, and it may be the store.
        with suppress(Exception):
            counts = store.database.count_answers()
            attempt = Attempt(
                record.key[:DIGEST_DIGITS],
                started,
                utc_now(),
                how,
                failure_kind(error) if how == "failed" else "",
                printable_line(str(error) or type(error).__name__)[:_MESSAGE],
                counts.get((record.observer_digest[:DIGEST_DIGITS], record.label), 0),
            )
            store.add_attempt(attempt)
        raise
