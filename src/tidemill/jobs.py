"""Job handles: a declared job, and enqueuing it."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast, overload

from tidemill.bound import BoundJob, Home, enqueue_bound, enqueue_bound_in, enqueue_bound_sync
from tidemill.bridges.transactions import AsyncProxy, AsyncTx, SyncTx
from tidemill.client import JobRef
from tidemill.options import (
    JobOptions,
    TagsLike,
    due_changes,
    expiry_changes,
    parents_of,
    require_kinds,
    tags_of,
)
from tidemill.registry import JobDefinition
from tidemill.values.durations import Duration, duration
from tidemill.values.retry import Retry

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class JobHandle(Generic[P, R_co]):
    """A declared job. Its verbs have the parameters of the function, without the context.

    Handles are immutable: `with_options` answers another one.
    """

    def __init__(
        self, definition: JobDefinition, home: Home, options: JobOptions | None = None
    ) -> None:
        self._definition = definition
        self._home = home
        self._options = options or JobOptions()
        functools.update_wrapper(cast("Callable[..., Any]", self), definition.function, updated=())

    def __repr__(self) -> str:
        return f"<job {self.wire_name!r}: {self.function.__qualname__}>"

    @property
    def wire_name(self) -> str:
        """The name that jobs are stored under."""
        return self._definition.wire_name

    @property
    def function(self) -> Callable[..., Any]:
        """The declared function, as it was."""
        return self._definition.function

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobRef[R_co]:
        """Store a job that calls the function with these arguments.

        Raises:
            EncodingError: an argument cannot be written down, or is not of its declared type.
            Refused: the store cannot hold the job; nothing was written.
            StoreError: the database could not be used.
        """
        (ref,) = await enqueue_bound(self._home.client, (self.bind(*args, **kwargs),))
        return ref

    @overload
    def enqueue_in(self, tx: SyncTx, /, *args: P.args, **kwargs: P.kwargs) -> JobRef[R_co]: ...
    @overload
    def enqueue_in(
        self, tx: AsyncTx | AsyncProxy, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, JobRef[R_co]]: ...
    def enqueue_in(self, tx: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Store the job in a transaction of yours: it is there when, and only if, that commits.

        In a sync transaction it blocks and answers the reference; in an async one it is awaited.
        Nothing is tried again on your connection.

        Args:
            tx: a connection of sqlite3, aiosqlite, psycopg or asyncpg, or a connection or a session
                of SQLAlchemy, on the store's own database.
            args: the function's arguments.
            kwargs: the function's arguments by name.

        Raises:
            EncodingError: an argument cannot be written down, or is not of its declared type.
            TransactionRefused: `tx` is none that the job can be stored in; the message says why.
            LockNotGranted: another transaction, open for too long, enqueues the same key.
            Refused: the store cannot hold the job; nothing was written.
            SchemaError: the store's tables are not in the transaction's database.
            Exception: the driver's own error, such as a serialization failure.
        """
        refs = enqueue_bound_in(self._home.client, tx, (self.bind(*args, **kwargs),))
        return refs[0] if isinstance(refs, list) else _only(refs)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> BoundJob[R_co]:
        """Encode a call without enqueuing it, for `mill.enqueue_many`.

        Raises:
            EncodingError: an argument cannot be written down, or is not of its declared type.
        """
        payload = self._definition.arguments.encode(args, kwargs)
        read = self._definition.output.decode
        return BoundJob(self._definition, payload, self._options, self._home, read)

    @property
    def sync(self) -> SyncJobHandle[P, R_co]:
        """The same for threads: `capture.sync.enqueue("p-1")`."""
        return SyncJobHandle(self, self._home)

    def with_options(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        expires: Duration | datetime | None = None,
        idempotency_key: str | None = None,
        tenant: str | None = None,
        tags: TagsLike | None = None,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        after: Sequence[JobRef[Any]] | None = None,
    ) -> Self:
        """The same job with other options; what is not given stays as it was.

        Args:
            queue: the stream it is put into.
            priority: higher is claimed first, -32768 to 32767.
            delay: wait this long, on the store's clock; replaces `at`.
            at: not before this instant, aware; replaces `delay`.
            expires: cancelled if it was not started by this instant, or this long after it was
                stored.
            idempotency_key: while a job with this key is active, enqueuing answers that job.
            tenant: the scope of the job and its key; in a handler it is that of the handler's job
                by default.
            tags: labels and (key, value) pairs, or a mapping of keys to values; they are shown
                with the job.
            timeout: how long one attempt may run.
            retry: what happens after an attempt that did not succeed.
            after: references of jobs that have to succeed before it. Dependencies are not in this
                version: enqueuing a job with `after` raises ParentsNotSupported.

        Durations are timedeltas or text with a unit, such as "30s".

        Raises:
            ConfigurationError: an option of another type than is wanted, a duration or a tag that
                is none, or both `delay` and `at`.
        """
        given: dict[str, Any] = {
            "queue": queue,
            "priority": priority,
            "idempotency_key": idempotency_key,
            "tenant": tenant,
            "tags": None if tags is None else tags_of(tags),
            "timeout": None if timeout is None else duration(timeout, "timeout"),
            "retry": retry,
            "parents": None if after is None else parents_of(after),
        }
        require_kinds({**given, "at": at})
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= due_changes(delay, at) | expiry_changes(expires)
        return type(self)(self._definition, self._home, replace(self._options, **changes))


class SyncJobHandle(Generic[P, R_co]):
    """A handle for threads and scripts."""

    def __init__(self, handle: JobHandle[P, R_co], home: Home) -> None:
        self._handle = handle
        self._home = home

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobRef[R_co]:
        """As `JobHandle.enqueue`, blocking this thread.

        Raises:
            WrongContext: an event loop runs in this thread.
        """
        bound = self._handle.bind(*args, **kwargs)
        instead = f"await {self._handle.function.__name__}.enqueue(...)"
        (ref,) = enqueue_bound_sync(self._home.client, (bound,), instead=instead)
        return ref


async def _only(refs: Awaitable[list[JobRef[R]]]) -> JobRef[R]:
    (ref,) = await refs
    return ref
