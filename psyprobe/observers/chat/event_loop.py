"""A thread with an event loop, in which observers of servers do what waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class EventLoop:
    """A thread with an event loop of its own.

    Work is given to it as a function, and its coroutine made in the thread: made where it is asked
    for, one that a Ctrl-C comes before would never be awaited, of which Python complains.

    Parameters
    ----------
    name : str
        Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def soon(self, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> Future[T]:
        """Begin something in the loop; cancelling the future takes it back."""
        told: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._begin, told, work, arguments)
        return told

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Take back what is under way, do a last thing in the loop, and end the thread."""
        if not self._thread.is_alive():  # closed before, or lost by a fork
            return
        if (
            threading.current_thread() is self._thread
        ):  # the garbage collector may call from anywhere
            self._loop.call_soon(self._loop.stop)
            return
        self.soon(_taken_back).result()
        if last is not None:
            self.soon(last).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _begin(
        self,
        told: Future[T],
        work: Callable[..., Coroutine[Any, Any, T]],
        arguments: tuple[Any, ...],
    ) -> None:
        task = self._loop.create_task(work(*arguments))
        task.add_done_callback(lambda done: _tell(done, told))
        # The loop itself keeps no task from the garbage collector; who waits for it does.
        told.add_done_callback(
            lambda given: given.cancelled() and self._loop.call_soon_threadsafe(task.cancel)
        )


def _tell(done: asyncio.Task[T], told: Future[T]) -> None:
    """Give what came of a task to who waits for it."""
    problem = None if done.cancelled() else done.exception()
    if done.cancelled():
        told.cancel()
    if not told.set_running_or_notify_cancel():
        return
    if problem is not None:
        told.set_exception(problem)
    else:
        told.set_result(done.result())


async def _taken_back() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
