"""Job handles: what the decorator returns, and what is enqueued with them."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from tidemill.client import Client, JobRef
from tidemill.context import JobContext
from tidemill.errors import ConfigurationError
from tidemill.registry import JobDefinition
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.values.durations import Duration, duration
from tidemill.values.ids import JobId
from tidemill.values.jobs import Enqueued, NewJob
from tidemill.values.retry import Retry
from tidemill.values.tags import Tag

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

TagLike = str | tuple[str, str]
"""A label, or a key with its value."""


class Home(Protocol):
    """Where a handle enqueues: an app, or the group it was declared in."""

    @property
    def client(self) -> Client:
        """The client of the app. Raises ConfigurationError where there is no app yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What `with_options` has set; None is what the declaration says."""

    queue: str | None = None
    priority: int | None = None
    delay: timedelta | None = None
    due_at: datetime | None = None
    not_after: datetime | None = None
    expires: timedelta | None = None
    idempotency_key: str | None = None
    tenant: str | None = None
    tags: frozenset[Tag] = frozenset()
    timeout: timedelta | None = None
    retry: Retry | None = None
    parents: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundJob(Generic[R_co]):
    """A call that is not enqueued yet: a job's arguments, encoded, with its options.

    It may be enqueued any number of times, with `mill.enqueue_many`; each time makes a new job.
    """

    definition: JobDefinition = field(repr=False)
    payload: bytes
    options: JobOptions
    _home: Home = field(repr=False)
    _read: Callable[[bytes | None], R_co] = field(repr=False)

    @property
    def client(self) -> Client:
        """The client of the app that the job belongs to."""
        return self._home.client

    def request(self) -> NewJob:
        """The request to store it, under a fresh id."""
        options, defaults = self.options, self.definition.defaults
        return NewJob(
            id=JobId(new_id()),
            wire_name=self.definition.wire_name,
            payload=self.payload,
            queue=defaults.queue if options.queue is None else options.queue,
            priority=defaults.priority if options.priority is None else options.priority,
            delay=options.delay,
            due_at=options.due_at,
            not_after=options.not_after,
            expires=options.expires,
            timeout=defaults.timeout if options.timeout is None else options.timeout,
            retry=defaults.retry if options.retry is None else options.retry,
            idempotency_key=options.idempotency_key,
            tenant=options.tenant,
            tags=options.tags,
            parents=options.parents,
        )

    def ref(self, answer: Enqueued) -> JobRef[R_co]:
        """The reference to the job that the store answered with."""
        return JobRef(answer.job_id, answer.deduplicated, self.client, self._read)


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
        tags: Iterable[TagLike] | None = None,
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
            tenant: the scope of the job and its key.
            tags: labels and (key, value) pairs to find it by.
            timeout: how long one attempt may run.
            retry: what happens after an attempt that did not succeed.
            after: references of jobs that have to succeed before it.

        Durations are timedeltas or text with a unit, such as "30s".

        Raises:
            ConfigurationError: a duration or a tag that is none, or both `delay` and `at`.
        """
        if delay is not None and at is not None:
            message = f"A job is given either delay={delay!r} or at={at!r}, not both."
            raise ConfigurationError(message)
        given: dict[str, Any] = {
            "queue": queue,
            "priority": priority,
            "idempotency_key": idempotency_key,
            "tenant": tenant,
            "tags": None if tags is None else _tags(tags),
            "timeout": None if timeout is None else duration(timeout, "timeout"),
            "retry": retry,
            "parents": None if after is None else tuple(ref.id for ref in after),
        }
        changes = {name: value for name, value in given.items() if value is not None}
        changes |= _due(delay, at) | _expiry(expires)
        return type(self)(self._definition, self._home, replace(self._options, **changes))


class AsyncContextJob(JobHandle[P, R]):
    """Declared on `async def f(context, …)`; calling it calls the function."""

    def __call__(self, context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call the function here and now, without any job."""
        called: Awaitable[R] = self.function(context, *args, **kwargs)
        return called


class AsyncJob(JobHandle[P, R]):
    """Declared on `async def f(…)`; calling it calls the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Call the function here and now, without any job."""
        called: Awaitable[R] = self.function(*args, **kwargs)
        return called


class PlainContextJob(JobHandle[P, R]):
    """Declared on `def f(context, …)`; calling it calls the function."""

    def __call__(self, context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now, without any job."""
        returned: R = self.function(context, *args, **kwargs)
        return returned


class PlainJob(JobHandle[P, R]):
    """Declared on `def f(…)`; calling it calls the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now, without any job."""
        returned: R = self.function(*args, **kwargs)
        return returned


class FunctionJob(Protocol):
    """The decorator: turns a function into a handle that keeps its parameters and result.

    The overloads overlap on purpose: the first that fits is the most special one.
    """

    @overload
    def __call__(  # type: ignore[overload-overlap]  # pyright: ignore[reportOverlappingOverload] - as said above
        self, function: Callable[Concatenate[JobContext, P], Awaitable[R]], /
    ) -> AsyncContextJob[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap] # as said above
        self, function: Callable[P, Awaitable[R]], /
    ) -> AsyncJob[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, P], R], /
    ) -> PlainContextJob[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainJob[P, R]: ...


def handle_for(definition: JobDefinition, home: Home) -> JobHandle[..., Any]:
    """The handle of the kind that the definition's function is."""
    kinds: dict[tuple[bool, bool], type[JobHandle[..., Any]]] = {
        (True, True): AsyncContextJob,
        (True, False): AsyncJob,
        (False, True): PlainContextJob,
        (False, False): PlainJob,
    }
    return kinds[definition.is_async, definition.wants_context](definition, home)


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


async def enqueue_bound(client: Client, jobs: Iterable[BoundJob[R]]) -> list[JobRef[R]]:
    """Store all of the jobs or none; references in order."""
    bound = _of_one_app(client, jobs)
    answers = await client.perform(Enqueue(tuple(job.request() for job in bound)))
    return [job.ref(answer) for job, answer in zip(bound, answers, strict=True)]


def enqueue_bound_sync(
    client: Client, jobs: Iterable[BoundJob[R]], *, instead: str
) -> list[JobRef[R]]:
    """The same from a thread."""
    bound = _of_one_app(client, jobs)
    request = Enqueue(tuple(job.request() for job in bound))
    answers = client.perform_sync(request, instead=instead)
    return [job.ref(answer) for job, answer in zip(bound, answers, strict=True)]


def _of_one_app(client: Client, jobs: Iterable[BoundJob[R]]) -> list[BoundJob[R]]:
    bound = list(jobs)
    for job in bound:
        if job.client is not client:
            message = (
                f"Job {job.definition.wire_name!r} belongs to another app; nothing was enqueued. "
                "Enqueue it with the app that declares it."
            )
            raise ConfigurationError(message)
    return bound


def _due(delay: Duration | None, at: datetime | None) -> dict[str, Any]:
    if delay is not None:
        return {"delay": duration(delay, "delay"), "due_at": None}
    return {} if at is None else {"delay": None, "due_at": at}


def _expiry(expires: Duration | datetime | None) -> dict[str, Any]:
    if expires is None:
        return {}
    if isinstance(expires, datetime):
        return {"expires": None, "not_after": expires}
    return {"expires": duration(expires, "expires"), "not_after": None}


def _tags(tags: Iterable[TagLike]) -> frozenset[Tag]:
    if isinstance(tags, str):
        message = f"tags={tags!r} is one text; give a list of labels and (key, value) pairs."
        raise ConfigurationError(message)
    return frozenset(Tag(tag) if isinstance(tag, str) else Tag(*tag) for tag in tags)
