"""Run an event loop in a thread, in which observers behind servers wait for replies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class EventLoop:
    """A thread that runs an event loop.

    Work is submitted as a function, whose coroutine is made in the thread. A coroutine that is
    made by the caller is never awaited if Ctrl-C comes first, and Python complains about that.

    Parameters
    ----------
    name : str
        Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name=name, daemon=True
        )
        self._thread.start()

    def submit(
        self, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any
    ) -> Future[T]:
        """Start a coroutine in the loop's thread; cancelling the returned future cancels it."""
        future: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._start, future, work, arguments)
        return future

    def close(
        self, last: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        """Cancel all coroutines, run a last one, and end the loop's thread."""
        if not self._thread.is_alive():  # closed before, or lost by a fork
            return
        # The garbage collector may call this from any thread.
        if threading.current_thread() is self._thread:
            self._loop.call_soon(self._loop.stop)
            return
        self.submit(_cancel_all).result()
        if last is not None:
            self.submit(last).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _start(
        self,
        future: Future[T],
        work: Callable[..., Coroutine[Any, Any, T]],
        arguments: tuple[Any, ...],
    ) -> None:
        """Start a coroutine in the loop's thread, and pass its outcome or cancelling on."""
        task = self._loop.create_task(work(*arguments))
        task.add_done_callback(lambda done: _copy_outcome(done, future))
        # The loop holds no strong reference to a task; this callback of the future does.
        future.add_done_callback(
            lambda done: (
                done.cancelled() and self._loop.call_soon_threadsafe(task.cancel)
            )
        )


def _copy_outcome(task: asyncio.Task[T], future: Future[T]) -> None:
    """Pass the result, the error or the cancellation of a task on to a future."""
    error = None if task.cancelled() else task.exception()
    if task.cancelled():
        future.cancel()
    if not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())


async def _cancel_all() -> None:
    """Cancel all other tasks of the running loop, and wait until they have ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
