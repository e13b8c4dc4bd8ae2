"""Operations on connections of asyncpg: each event loop has connections of its own (rule N2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

from tidemill.adapters.postgres_site import BUSY, Announcement, Site
from tidemill.adapters.postgres_sync import prepare
from tidemill.adapters.precedence import is_workers_own
from tidemill.drivers.asyncpg import AsyncpgExecutor
from tidemill.drivers.postgres_session import answer_may_be_lost
from tidemill.drivers.run import look_async, run_async
from tidemill.sql.programs.registry import (
    glance_for,
    program_for,
    quick_for,
    reads_one_state,
    writes,
)
from tidemill.store.contract import Operation

R = TypeVar("R")

_OWN_SIZE = 2


class LoopPool:
    """A few connections on one event loop, opened when needed."""

    def __init__(self, open_one: Callable[[], Awaitable[AsyncpgExecutor]], size: int) -> None:
        self._open = open_one
        self._free = asyncio.Semaphore(size)
        self._idle: list[AsyncpgExecutor] = []
        self._closed = False

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[AsyncpgExecutor]:
        """A connection for the calling coroutine alone."""
        async with self._free:
            executor = self._take() or await self._open()
            try:
                yield executor
            finally:
                self._give_back(executor)

    def close(self) -> None:
        """End what is idle now, and what is in use when it comes back. On the loop's own thread."""
        self._closed = True
        idle, self._idle = self._idle, []
        for executor in idle:
            executor.end()

    def abandon(self) -> None:
        """The loop is gone: let go of the sockets without it."""
        idle, self._idle = self._idle, []
        for executor in idle:
            executor.abandon()

    def _take(self) -> AsyncpgExecutor | None:
        while self._idle:
            executor = self._idle.pop()
            if executor.usable:
                return executor
            executor.end()
        return None

    def _give_back(self, executor: AsyncpgExecutor) -> None:
        if self._closed or not executor.usable:
            executor.end()
        else:
            self._idle.append(executor)


class LoopPools:
    """What one event loop uses: a worker's own calls never wait behind those of its handlers."""

    def __init__(self, site: Site, size: int) -> None:
        self._calls = LoopPool(site.open_async, size)
        self._own = LoopPool(site.open_async, _OWN_SIZE)

    def of(self, operation: Operation[object]) -> LoopPool:
        return self._own if is_workers_own(operation) else self._calls

    def close(self) -> None:
        self._calls.close()
        self._own.close()

    def abandon(self) -> None:
        self._calls.abandon()
        self._own.abandon()


class AsyncChannels:
    """Performs operations on the running loop, whichever that is."""

    def __init__(self, site: Site, size: int) -> None:
        self._site = site
        self._size = size
        self._lock = Lock()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopPools] = WeakKeyDictionary()

    async def perform(self, operation: Operation[R]) -> R:
        """Perform, again and again for a while if the database cannot just then.

        Raises:
            StoreUnavailable: it could not the last time either.
            AnswerLost: nobody knows whether it was done; never tried again.
        """
        pool = self._of_this_loop().of(operation)
        if (calm := self._site.calm.answer(operation)) is not None:
            return calm
        announcement = Announcement(self._site, operation)
        done = await BUSY.patiently_async(lambda: self._once(pool, operation, announcement))
        return announcement.committed(done)

    def close(self) -> None:
        """Close every loop's connections, on its own thread where it still runs."""
        with self._lock:
            loops, self._loops = dict(self._loops), WeakKeyDictionary()
        here = _running_loop()
        for loop, pools in loops.items():
            if loop.is_closed():
                pools.abandon()
            elif loop is here or not loop.is_running():
                pools.close()
            else:
                loop.call_soon_threadsafe(pools.close)

    async def _once(
        self, pool: LoopPool, operation: Operation[R], announcement: Announcement[R]
    ) -> R:
        site = self._site
        async with pool.lend() as executor:
            if not site.checked:
                await asyncio.to_thread(self._prepare)
            if reads_one_state(operation):
                program = program_for(operation, site.env)
                return await run_async(program, executor, write=False)
            if not writes(operation):
                return await look_async(program_for(operation, site.env), executor)
            quick = quick_for(operation, site.env)
            if quick is not None and not announcement.due:
                with answer_may_be_lost(executor):
                    done = await look_async(quick, executor)
                if done is not None:
                    return done
            glance = glance_for(operation, site.env)
            if glance is not None and (seen := await look_async(glance, executor)) is not None:
                site.calm.found_nothing(operation)
                return seen
            program = program_for(operation, site.env)
            return await run_async(
                program,
                executor,
                write=True,
                patiently=BUSY.patiently_async,
                closing=announcement.closing,
            )

    def _prepare(self) -> None:
        executor = self._site.open_sync()
        try:
            prepare(self._site, executor)
        finally:
            executor.close()

    def _of_this_loop(self) -> LoopPools:
        loop = asyncio.get_running_loop()
        with self._lock:
            pools = self._loops.get(loop)
            if pools is None:
                for gone in [each for each in self._loops if each.is_closed()]:
                    self._loops.pop(gone).abandon()
                pools = self._loops[loop] = LoopPools(self._site, self._size)
            return pools


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
