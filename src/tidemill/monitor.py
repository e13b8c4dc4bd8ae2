"""Reading jobs: `mill.jobs.get`, `list`, `log` and `counts`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from tidemill.client import Client, JobRef, job_id_of, require_type
from tidemill.errors import InvalidValue, NotFound
from tidemill.store.monitor import CountJobs, GetEnd, GetJob, ListJobs
from tidemill.store.notes import ReadLog
from tidemill.values.ids import Attempt
from tidemill.values.jobs import JobDetails
from tidemill.values.monitor import JobEnd, JobFilter, JobPage, QueueCount
from tidemill.values.notes import LogPage
from tidemill.values.states import JobState

AnyJob = JobRef[Any] | UUID | str
"""A job by its reference, its id, or the text of its id."""

PAGE = 50
LINES = 100

_LAST = (1 << 62) - 1
"""An attempt that no job will come to, and that every store can be asked for."""


class JobReads:
    """The reading half of `mill.jobs`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, job: AnyJob) -> JobDetails:
        """One job, whole: its record, payload, output, tags, attempts and the end of its log.

        Raises:
            NotFound: no job has that id.
        """
        return _details(job, await self._client.perform(GetJob(job_id_of(job))))

    async def list(
        self,
        *,
        states: Iterable[JobState | str] = (),
        queue: str | None = None,
        wire_name: str | None = None,
        cursor: str | None = None,
        limit: int = PAGE,
    ) -> JobPage:
        """One page of jobs, newest first, and the cursor of the next.

        `limit` is clamped to the store's page size. What is not given matches every job.

        Raises:
            InvalidValue: the cursor was not made by this store, a state does not exist, or an
                argument is of another type than is wanted.
        """
        return await self._client.perform(_page(states, queue, wire_name, cursor, limit))

    async def log(
        self,
        job: AnyJob,
        *,
        attempt: int | None = None,
        cursor: str | None = None,
        limit: int = LINES,
    ) -> LogPage:
        """One page of what a job's handler has logged, oldest first, and the cursor of the next.

        Pages are stable while lines are added. The lines of the job's last attempts are kept, 10 by
        default (`Bounds.attempts_kept`); `attempt` reads those of one. `limit` is clamped to the
        store's page size.

        Raises:
            NotFound: no job has that id.
            InvalidValue: the cursor was not made by this store, or an argument is of another type
                than is wanted.
        """
        request = _lines(job, attempt, cursor, limit)
        page = await self._client.perform(request)
        if not page.lines:
            _require_there(job, await self._client.perform(GetEnd(request.job_id)))
        return page

    async def counts(self) -> tuple[QueueCount, ...]:
        """How many jobs each queue has in each state; what is not named has none."""
        return await self._client.perform(CountJobs())


class SyncJobReads:
    """The reading half of `mill.jobs.sync`; as `JobReads`, blocking this thread."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, job: AnyJob) -> JobDetails:
        """As `JobReads.get`."""
        request = GetJob(job_id_of(job))
        found = self._client.perform_sync(request, instead="await mill.jobs.get(...)")
        return _details(job, found)

    def list(
        self,
        *,
        states: Iterable[JobState | str] = (),
        queue: str | None = None,
        wire_name: str | None = None,
        cursor: str | None = None,
        limit: int = PAGE,
    ) -> JobPage:
        """As `JobReads.list`."""
        request = _page(states, queue, wire_name, cursor, limit)
        return self._client.perform_sync(request, instead="await mill.jobs.list(...)")

    def log(
        self,
        job: AnyJob,
        *,
        attempt: int | None = None,
        cursor: str | None = None,
        limit: int = LINES,
    ) -> LogPage:
        """As `JobReads.log`."""
        request, instead = _lines(job, attempt, cursor, limit), "await mill.jobs.log(...)"
        page = self._client.perform_sync(request, instead=instead)
        if not page.lines:
            found = self._client.perform_sync(GetEnd(request.job_id), instead=instead)
            _require_there(job, found)
        return page

    def counts(self) -> tuple[QueueCount, ...]:
        """As `JobReads.counts`."""
        return self._client.perform_sync(CountJobs(), instead="await mill.jobs.counts()")


def _page(
    states: Iterable[JobState | str],
    queue: str | None,
    wire_name: str | None,
    cursor: str | None,
    limit: int,
) -> ListJobs:
    for name, text in (("queue", queue), ("wire_name", wire_name)):
        if text is not None:
            require_type(name, text, str, "text")
    _require_page(cursor, limit)
    where = JobFilter(states=_states(states), queue=queue, wire_name=wire_name)
    return ListJobs(where=where, cursor=cursor, limit=limit)


def _lines(job: AnyJob, attempt: int | None, cursor: str | None, limit: int) -> ReadLog:
    _require_page(cursor, limit)
    if attempt is not None:
        require_type("attempt", attempt, int, "a whole number")
    only = None if attempt is None else Attempt(max(0, min(attempt, _LAST)))
    return ReadLog(job_id_of(job), only, cursor, limit)


def _require_page(cursor: object, limit: object) -> None:
    if cursor is not None:
        require_type("cursor", cursor, str, "text")
    require_type("limit", limit, int, "a whole number")


def _states(states: Any) -> frozenset[JobState]:
    given: Iterable[Any] = (states,) if _is_one(states) else states
    try:
        return frozenset(JobState(state) for state in given)
    except ValueError as error:
        known = ", ".join(JobState)
        message = f"states={states!r:.80} names a state that does not exist; known are {known}."
        raise InvalidValue(message) from error


def _is_one(states: object) -> bool:
    return isinstance(states, str) or not isinstance(states, Iterable)


def _details(job: AnyJob, found: JobDetails | None) -> JobDetails:
    if found is None:
        raise NotFound(job_id_of(job))
    return found


def _require_there(job: AnyJob, found: JobEnd | None) -> None:
    if found is None:
        raise NotFound(job_id_of(job))
