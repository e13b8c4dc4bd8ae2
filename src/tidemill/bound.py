"""Calls that are not enqueued yet, and enqueuing them, all or none."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from tidemill.bridges.join import AsyncJoined, Joined
from tidemill.client import Client, JobRef
from tidemill.codec.log_fields import shown
from tidemill.errors import ConfigurationError
from tidemill.options import JobOptions
from tidemill.registry import JobDefinition
from tidemill.shell.ambient import Ambient, ambient
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.values.ids import JobId
from tidemill.values.jobs import Enqueued, NewJob

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Home(Protocol):
    """Where a handle enqueues: an app, or the group it was declared in."""

    @property
    def client(self) -> Client:
        """The client of the app. Raises ConfigurationError where there is no app yet."""
        ...


@dataclass(frozen=True, slots=True)
class BoundJob(Generic[R_co]):
    """A call that is not enqueued yet: a job's arguments, encoded, with its options.

    It may be enqueued any number of times, with `mill.enqueue_many` and `mill.enqueue_many_in`;
    each time makes a new job.
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

    def request(self, around: Ambient | None = None) -> NewJob:
        """The request to store it, under a fresh id.

        In a handler, the tenant and the trace of its job are handed on (clause F6), or those that
        are `around` the call.
        """
        options, defaults = self.options, self.definition.defaults
        around = ambient() if around is None else around
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
            tenant=around.tenant if options.tenant is None else options.tenant,
            tags=options.tags,
            parents=options.parents,
            trace_context=around.trace_context,
        )

    def ref(self, answer: Enqueued) -> JobRef[R_co]:
        """The reference to the job that the store answered with."""
        return JobRef(answer.job_id, answer.deduplicated, self.client, self._read)


async def enqueue_bound(client: Client, jobs: Iterable[BoundJob[R]]) -> list[JobRef[R]]:
    """Store all of the jobs or none; references in order."""
    bound = _of_one_app(client, jobs, "enqueue_many")
    answers = await client.perform(Enqueue(tuple(job.request() for job in bound)))
    return [job.ref(answer) for job, answer in zip(bound, answers, strict=True)]


def enqueue_bound_sync(
    client: Client, jobs: Iterable[BoundJob[R]], *, instead: str
) -> list[JobRef[R]]:
    """The same from a thread."""
    bound = _of_one_app(client, jobs, "enqueue_many")
    request = Enqueue(tuple(job.request() for job in bound))
    answers = client.perform_sync(request, instead=instead)
    return [job.ref(answer) for job, answer in zip(bound, answers, strict=True)]


def enqueue_bound_in(
    client: Client, tx: object, jobs: Iterable[BoundJob[R]]
) -> list[JobRef[R]] | Coroutine[Any, Any, list[JobRef[R]]]:
    """The same in a transaction of the user's: at once in a sync one, else to be awaited."""
    joined = client.join(tx)
    bound = _of_one_app(client, jobs, "enqueue_many_in")
    request = Enqueue(tuple(job.request() for job in bound))
    if isinstance(joined, Joined):
        answers = joined.perform(request)
        return [job.ref(answer) for job, answer in zip(bound, answers, strict=True)]
    return _enqueue_joined(joined, bound, request)


async def _enqueue_joined(
    joined: AsyncJoined, bound: list[BoundJob[R]], request: Enqueue
) -> list[JobRef[R]]:
    answers = await joined.perform(request)
    return [job.ref(answer) for job, answer in zip(bound, answers, strict=True)]


def _of_one_app(client: Client, jobs: Iterable[BoundJob[R]], verb: str) -> list[BoundJob[R]]:
    _require_several(jobs, verb)
    bound = list(jobs)
    for job in bound:
        require_bound(job, verb)
        if job.client is not client:
            message = (
                f"Job {job.definition.wire_name!r} belongs to another app; nothing was enqueued. "
                "Enqueue it with the app that declares it."
            )
            raise ConfigurationError(message)
    return bound


def _require_several(jobs: object, verb: str) -> None:
    if not isinstance(jobs, Iterable):
        how = "tx, [job.bind(…), …]" if verb == "enqueue_many_in" else "[job.bind(…), …]"
        message = (
            f"{verb} takes a list of calls and was given {jobs!r}; nothing was enqueued. "
            f"Write {verb}({how})."
        )
        raise ConfigurationError(message)


def require_bound(job: object, verb: str) -> None:
    """Refuse what is no call that is not enqueued yet.

    Raises:
        ConfigurationError: it is something else.
    """
    if isinstance(job, BoundJob):
        return
    name = getattr(job, "__name__", "job") if hasattr(job, "bind") else "job"
    message = (
        f"{verb} takes calls with their arguments and was given {shown(job)}; nothing "
        f"was enqueued. Write {name}.bind(…)."
    )
    raise ConfigurationError(message)
