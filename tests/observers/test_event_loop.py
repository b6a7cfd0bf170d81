"""The thread in which observers of servers wait: what is given to it, taken back, and interrupted
by Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from types import FrameType
from typing import Any

import pytest

from psyprobe.observers.chat.event_loop import EventLoop


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    loop = EventLoop("tested")
    yield loop
    loop.close()


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def _forever(begun: threading.Event, ended: threading.Event) -> None:
    begun.set()
    try:
        await asyncio.sleep(3600)
    finally:
        ended.set()


async def _fail() -> None:
    raise ValueError("no such thing")


def test_what_comes_of_it_is_given_back(loop: EventLoop) -> None:
    assert [loop.submit(_double, number).result(5) for number in range(3)] == [0, 2, 4]
    with pytest.raises(ValueError, match="no such thing"):
        loop.submit(_fail).result(5)


def test_cancelling_takes_it_back(loop: EventLoop) -> None:
    begun, ended = threading.Event(), threading.Event()
    future = loop.submit(_forever, begun, ended)
    assert begun.wait(5)
    future.cancel()
    assert ended.wait(5)


def test_closing_takes_back_what_is_under_way_and_ends_the_thread() -> None:
    begun, ended, closed = threading.Event(), threading.Event(), []

    async def last() -> None:
        closed.append(ended.is_set())

    loop = EventLoop("tested to its end")
    future = loop.submit(_forever, begun, ended)
    assert begun.wait(5)
    loop.close(last)
    loop.close(last)
    assert closed == [True]
    with pytest.raises(CancelledError):
        future.result(5)
    assert "tested to its end" not in {thread.name for thread in threading.enumerate()}


def test_ctrl_c_leaves_nothing_unawaited_wherever_it_comes(loop: EventLoop) -> None:
    # Python runs the handler of a signal between any two lines; here it comes at each of them in
    # turn.
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        interrupted = 0
        while (future := _begun_until(interrupted, loop)) is None:
            interrupted += 1
        gc.collect()
    assert future.result(5) == 2
    assert interrupted > 10
    assert [str(warning.message) for warning in complaints] == []


def _begun_until(lines: int, loop: EventLoop) -> Future[int] | None:
    """Begin a coroutine, with Ctrl-C after some lines of it."""
    lines_left = lines

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines_left
        lines_left -= event == "line"
        if lines_left < 0:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return loop.submit(_double, 1)
    except KeyboardInterrupt:
        return None
    finally:
        sys.settrace(before)
