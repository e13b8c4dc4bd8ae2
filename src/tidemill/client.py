"""Talking to the store on behalf of user code, and waiting for results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any, Generic, TypeVar
from uuid import UUID

from tidemill.bridges.join import AsyncJoined, Joined, join
from tidemill.errors import (
    AnswerLost,
    InvalidValue,
    JobNotSucceeded,
    NotFound,
    ResultTimeout,
    StoreError,
    StoreUnavailable,
    WrongContext,
)
from tidemill.store.contract import Operation, Store
from tidemill.store.monitor import GetEnd, GetJob
from tidemill.values.durations import Duration, duration
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobDetails
from tidemill.values.monitor import JobEnd
from tidemill.values.states import JobState

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Timeout = Duration | float | None
"""How long to wait: seconds, a timedelta, text with its unit, or None for ever."""

PAUSES = (0.05, 0.25, 1.0)
"""Seconds between the tries of one request while the store is not available."""

_FIRST_WAIT = 0.02
_LONGEST_WAIT = 1.0
_GROWTH = 1.5
_SHORTEST_GAP = 0.01
"""Seconds between two looks at a job, however many hints arrive."""


class Client:
    """Performs operations on an app's store, from coroutines and from threads.

    Transient faults are tried again a few times: every request carries ids of its own making, so
    a repeated one changes nothing.

    Args:
        store: answers the store to use; asked anew for every request.
        pauses: seconds between the tries.
    """

    def __init__(self, store: Callable[[], Store], *, pauses: tuple[float, ...] = PAUSES) -> None:
        self._store = store
        self._pauses = pauses

    async def perform(self, operation: Operation[R]) -> R:
        """Perform an operation from a coroutine."""
        store = self._store()
        for pause in self._pauses:
            try:
                return await store.perform(operation)
            except (StoreUnavailable, AnswerLost):
                await asyncio.sleep(pause)
        return await store.perform(operation)

    def perform_sync(self, operation: Operation[R], *, instead: str) -> R:
        """Perform an operation from a thread; `instead` is the call for coroutines.

        Raises:
            WrongContext: an event loop runs in this thread.
        """
        refuse_in_loop(instead)
        store = self._store()
        for pause in self._pauses:
            try:
                return store.perform_sync(operation)
            except (StoreUnavailable, AnswerLost):
                time.sleep(pause)
        return store.perform_sync(operation)

    def is_of(self, store: Store) -> bool:
        """Whether this is the store that requests go to."""
        return self._store() is store

    def join(self, tx: object) -> Joined | AsyncJoined:
        """The store in a transaction of the user's, where nothing is tried again.

        Raises:
            TransactionRefused: `tx` is no transaction that the store can take part in.
        """
        return join(self._store(), tx)

    async def wait_for_end(self, job_id: JobId, timeout: Timeout) -> JobEnd:
        """Wait until a job has ended, looking ever less often, and whenever the store hints.

        Raises:
            NotFound: there is no such job.
            ResultTimeout: it has not ended in time.
        """
        loop = asyncio.get_running_loop()
        hinted = asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # that loop is closed, so nobody waits there any more
                loop.call_soon_threadsafe(hinted.set)

        patience = _Patience(job_id, timeout)
        stop = self._store().watch(wake)
        try:
            while True:
                hinted.clear()
                end = _found(job_id, await self.perform(GetEnd(job_id)))
                if end.state.terminal:
                    return end
                wait = patience.next_wait()
                with suppress(TimeoutError):
                    await asyncio.wait_for(hinted.wait(), wait)
                    await asyncio.sleep(_SHORTEST_GAP)
        finally:
            stop()

    def wait_for_end_sync(self, job_id: JobId, timeout: Timeout, *, instead: str) -> JobEnd:
        """The same from a thread, blocking it."""
        refuse_in_loop(instead)
        hinted = Event()
        patience = _Patience(job_id, timeout)
        stop = self._store().watch(hinted.set)
        try:
            while True:
                hinted.clear()
                end = _found(job_id, self.perform_sync(GetEnd(job_id), instead=instead))
                if end.state.terminal:
                    return end
                if hinted.wait(patience.next_wait()):
                    time.sleep(_SHORTEST_GAP)
        finally:
            stop()


@dataclass(frozen=True, slots=True)
class JobRef(Generic[R_co]):
    """A stored job, for the one who enqueued it.

    Attributes:
        id: the job's id.
        deduplicated: the job was there before, under the same idempotency key; nothing of this
            request was stored.
    """

    id: JobId
    deduplicated: bool = field(compare=False)
    _client: Client = field(repr=False, compare=False)
    _read: Callable[[bytes | None], R_co] = field(repr=False, compare=False)

    async def result(self, timeout: Timeout = None) -> R_co:
        """What the handler returned, once the job has succeeded.

        `timeout` is in seconds, a timedelta, or text with its unit; None waits for ever.

        Raises:
            JobNotSucceeded: it ended otherwise.
            ResultTimeout: it has not ended in time. The job is not touched by that.
            NotFound: there is no such job.
            DecodingError: what was stored does not read as the handler's return annotation.
        """
        end = await self._client.wait_for_end(self.id, timeout)
        if end.state is JobState.SUCCEEDED:
            return self._read(end.output)
        details = None
        with suppress(StoreError):  # how it ended is known; the error only explains it
            details = await self._client.perform(GetJob(self.id))
        raise _not_succeeded(self.id, end, details)

    @property
    def sync(self) -> SyncJobRef[R_co]:
        """The same for threads: `ref.sync.result(timeout=10)`."""
        return SyncJobRef(self.id, self._client, self._read)


class SyncJobRef(Generic[R_co]):
    """A job reference for threads and scripts."""

    def __init__(self, job_id: JobId, client: Client, read: Callable[[bytes | None], R_co]) -> None:
        self._job_id = job_id
        self._client = client
        self._read = read

    def result(self, timeout: Timeout = None) -> R_co:
        """As `JobRef.result`, blocking this thread.

        Raises:
            WrongContext: an event loop runs in this thread.
        """
        instead = "await ref.result(...)"
        end = self._client.wait_for_end_sync(self._job_id, timeout, instead=instead)
        if end.state is JobState.SUCCEEDED:
            return self._read(end.output)
        details = None
        with suppress(StoreError):  # how it ended is known; the error only explains it
            details = self._client.perform_sync(GetJob(self._job_id), instead=instead)
        raise _not_succeeded(self._job_id, end, details)


def refuse_in_loop(instead: str) -> None:
    """Refuse a blocking call inside a running event loop, which it would stop.

    Raises:
        WrongContext: an event loop runs in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    message = f"A .sync call inside a running event loop would block it: write `{instead}`."
    raise WrongContext(message)


def job_id_of(job: JobRef[Any] | UUID | str) -> JobId:
    """The id that a reference, an id or its text stands for.

    Raises:
        InvalidValue: the text is no UUID.
    """
    if isinstance(job, JobRef):
        return job.id
    if isinstance(job, UUID):
        return JobId(job)
    try:
        return JobId(UUID(job))
    except (ValueError, TypeError, AttributeError) as error:
        message = f"{job!r} is not a job id; ids are UUIDs, as `ref.id` and `mill.jobs` give them."
        raise InvalidValue(message) from error


def require_type(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument of another type than is wanted; True and False are no numbers.

    Raises:
        InvalidValue: it is.
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        message = f"{name}={value!r:.80} is of type {type(value).__name__}; give {wanted}."
        raise InvalidValue(message)


class _Patience:
    """How long to wait before the next look: ever longer, and not beyond the deadline."""

    def __init__(self, job_id: JobId, timeout: Timeout) -> None:
        if isinstance(timeout, (str, timedelta)):
            timeout = duration(timeout, "timeout").total_seconds()
        elif timeout is not None:
            require_type("timeout", timeout, (int, float), "seconds, a timedelta or text")
        self._job_id = job_id
        self._timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._wait = _FIRST_WAIT

    def next_wait(self) -> float:
        wait, self._wait = self._wait, min(self._wait * _GROWTH, _LONGEST_WAIT)
        if self._deadline is None:
            return wait
        left = self._deadline - time.monotonic()
        if left <= 0:
            message = (
                f"Job {self._job_id} has not ended within {self._timeout:g} s. It is still there; "
                "wait longer, or ask again later."
            )
            raise ResultTimeout(message)
        return min(wait, left)


def _found(job_id: JobId, end: JobEnd | None) -> JobEnd:
    if end is None:
        raise NotFound(job_id)
    return end


def _not_succeeded(job_id: JobId, end: JobEnd, details: JobDetails | None) -> JobNotSucceeded:
    attempts = () if details is None else details.attempts
    errors = [each.error for each in attempts if not each.stale and each.error is not None]
    last = errors[-1] if errors else None
    return JobNotSucceeded(job_id, end.state.value, end.cause, last)
