"""The app's part in the life of a web application: `lifespan=mill.lifespan`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypedDict

from tidemill.client import Client
from tidemill.shell.identity import new_id
from tidemill.store.monitor import GetEnd
from tidemill.values.durations import Duration
from tidemill.values.ids import JobId

if TYPE_CHECKING:
    from tidemill.shell.worker import Worker

logger = logging.getLogger("tidemill.lifespan")


class Lifespan(Protocol):
    """What ASGI frameworks take as `lifespan`: called with the web application."""

    def __call__(self, app: object = None, /) -> AbstractAsyncContextManager[None]:
        """Everything between start and end of the web application."""
        ...


class WorkerOptions(TypedDict, total=False):
    """The settings of `Tidemill.worker`, which says what they mean and what they are by default."""

    queues: Sequence[str] | Mapping[str, int]
    concurrency: int
    lease: Duration
    poll_interval: Duration
    maintenance_interval: Duration
    grace: Duration
    patience: Duration
    kill_after: Duration
    delivery_timeout: Duration
    stall_limit: Duration
    keep_tracebacks: bool
    quarantine_unknown: bool


class Opened(Protocol):
    """An app that can be opened and closed."""

    @property
    def client(self) -> Client:
        """The client of its store."""
        ...

    def close(self) -> None:
        """Close what it opened."""
        ...


class Openings:
    """The lifespans of one app that have not ended: the last one of them closes it."""

    def __init__(self) -> None:
        self.forget_parent()

    def forget_parent(self) -> None:
        """In a forked child: those of the parent are not its own, nor is who held the lock."""
        self._lock = Lock()
        self._count = 0

    @contextmanager
    def one(self, mill: Opened) -> Generator[None]:
        """Be one of them."""
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                last = not self._count
            if last:
                mill.close()


@asynccontextmanager
async def client_open(mill: Opened, openings: Openings) -> AsyncGenerator[None]:
    """Use the store once, so that what is wrong with it is known at the start; close it at the end.

    Raises:
        StoreError: the store cannot be used.
        ConfigurationError: there is none.
    """
    with openings.one(mill):
        await mill.client.perform(GetEnd(JobId(new_id())))  # a job that nobody has: the least work
        yield


def with_worker(mill: Opened, openings: Openings, make: Callable[[], Worker]) -> Lifespan:
    """A lifespan with the client open and a worker running, which is drained at the end."""

    @asynccontextmanager
    async def lifespan(_: object = None, /) -> AsyncGenerator[None]:
        async with client_open(mill, openings), make() as worker:
            watch = asyncio.get_running_loop().create_task(_watch(worker))
            try:
                yield
            finally:
                watch.cancel()
                await asyncio.wait({watch})

    return lifespan


async def _watch(worker: Worker) -> None:
    """Tell at once when the worker ends by itself: the web application would not show it."""
    try:
        await worker.wait()
    except Exception:
        logger.critical(
            "The worker in this web application has ended by a fault and runs no more jobs; the "
            "application itself goes on. Restart it once the fault is mended.",
            exc_info=True,
        )
