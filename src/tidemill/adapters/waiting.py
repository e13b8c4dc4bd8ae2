"""Waiting on an event loop for what a thread does."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def outcome_of(work: Future[T]) -> T:
    """Wait for a thread's future.

    When the waiting coroutine is cancelled, work that has not begun is cancelled with it. Work that
    is under way goes on untouched: a write cannot be half stopped.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def arrived() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def tell(_work: Future[Any]) -> None:
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(arrived)
            except RuntimeError:  # the loop was closed between the question and the call
                return

    work.add_done_callback(tell)
    try:
        await waiter
    except asyncio.CancelledError:
        work.cancel()
        raise
    return work.result()
