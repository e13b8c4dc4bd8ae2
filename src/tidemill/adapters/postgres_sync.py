"""Operations on connections of psycopg: for synchronous callers, and for a heart."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from threading import BoundedSemaphore, Lock
from typing import Final, TypeVar

from tidemill.adapters.postgres_site import BUSY, Announcement, Site
from tidemill.drivers.postgres_session import answer_may_be_lost
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.drivers.run import look, run
from tidemill.errors import StoreUnavailable
from tidemill.sql.migrations import Migration, migrate, missing
from tidemill.sql.programs.registry import (
    glance_for,
    program_for,
    quick_for,
    reads_one_state,
    writes,
)
from tidemill.store.contract import Operation

R = TypeVar("R")

Lend = Callable[[], AbstractContextManager[PsycopgExecutor]]
_WAIT_SECONDS: Final = 10.0


class PostgresChannel:
    """Performs operations on executors that it is lent, blocking the thread that asks."""

    def __init__(self, site: Site, lend: Lend) -> None:
        self._site = site
        self._lend = lend

    def perform(self, operation: Operation[R]) -> R:
        """Perform, again and again for a while if the database cannot just then.

        Raises:
            StoreUnavailable: it could not the last time either.
            AnswerLost: nobody knows whether it was done; never tried again.
        """
        if (calm := self._site.calm.answer(operation)) is not None:
            return calm
        announcement = Announcement(self._site, operation)
        return announcement.committed(BUSY.patiently(lambda: self._once(operation, announcement)))

    def _once(self, operation: Operation[R], announcement: Announcement[R]) -> R:
        site = self._site
        with self._lend() as executor:
            if not site.checked:
                prepare(site, executor)
            if reads_one_state(operation):
                return run(program_for(operation, site.env), executor, write=False)
            if not writes(operation):
                return look(program_for(operation, site.env), executor)
            quick = quick_for(operation, site.env)
            if quick is not None and not announcement.due:
                with answer_may_be_lost(executor):
                    done = look(quick, executor)
                if done is not None:
                    return done
            glance = glance_for(operation, site.env)
            if glance is not None and (seen := look(glance, executor)) is not None:
                site.calm.found_nothing(operation)
                return seen
            program = program_for(operation, site.env)
            closing = announcement.closing
            return run(program, executor, write=True, patiently=BUSY.patiently, closing=closing)


class SyncPool:
    """A few connections for the synchronous callers of one process, opened when needed."""

    def __init__(self, open_one: Callable[[], PsycopgExecutor], size: int) -> None:
        self._open = open_one
        self._size = size
        self._free = BoundedSemaphore(size)
        self._lock = Lock()
        self._idle: list[PsycopgExecutor] = []
        self._closed = False

    @contextmanager
    def lend(self) -> Generator[PsycopgExecutor]:
        """A connection for the calling thread alone.

        Raises:
            StoreUnavailable: all were in use for ten seconds.
        """
        if not self._free.acquire(timeout=_WAIT_SECONDS):
            message = (
                f"All {self._size} connections were in use for {_WAIT_SECONDS:g} s. "
                "Give the store a larger sync_pool."
            )
            raise StoreUnavailable(message)
        try:
            executor = self._take() or self._open()
            try:
                yield executor
            finally:
                self._give_back(executor)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for executor in idle:
            executor.close()

    def _take(self) -> PsycopgExecutor | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, executor: PsycopgExecutor) -> None:
        if not executor.usable:
            executor.close()
            self._drop_idle()
            return
        with self._lock:
            if not self._closed:
                self._idle.append(executor)
                return
        executor.close()

    def _drop_idle(self) -> None:
        """What broke one connection, such as a restart, has broken the idle ones too."""
        with self._lock:
            idle, self._idle = self._idle, []
        for executor in idle:
            executor.close()


def prepare(site: Site, executor: PsycopgExecutor) -> None:
    """See that the schema fits, once in a store's life.

    Raises:
        SchemaError: it is missing, too old or too new.
    """
    steps = look(missing(site.catalogue.dialect.name), executor)
    if steps and site.auto_migrate:
        apply_migrations(site)
        steps = ()
    site.require(steps)


def apply_migrations(site: Site) -> tuple[str, ...]:
    """Apply the steps that are missing, on a connection without limits, and name them."""
    executor = site.open_sync(hurried=False)
    try:
        return run(migrate(site.catalogue.dialect.name), executor, write=True)
    finally:
        executor.close()


def missing_steps(site: Site) -> tuple[Migration, ...]:
    """The steps that are missing."""
    executor = site.open_sync(hurried=False)
    try:
        return look(missing(site.catalogue.dialect.name), executor)
    finally:
        executor.close()
