"""What a test sees of the jobs of its harness."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from tidemill.jobs import JobHandle
from tidemill.store.monitor import GetJob, ListJobs
from tidemill.testing.enqueued import Expectation
from tidemill.testing.stage import Stage
from tidemill.testing.view import Job, JobView, known, view_of
from tidemill.values.ids import JobId
from tidemill.values.monitor import JobFilter
from tidemill.values.states import JobState


class Looking(Stage):
    """The part of a harness that shows its jobs, and asserts which were enqueued."""

    async def job(self, job: Job) -> JobView:
        """One job as it is now, by its reference, its id or an earlier view.

        Raises:
            NotFound: no job has that id.
        """
        return view_of(await self.mill.jobs.get(known(job)))

    async def jobs(
        self,
        *,
        state: JobState | str | Iterable[JobState | str] | None = None,
        queue: str | None = None,
        handle: JobHandle[..., Any] | None = None,
    ) -> list[JobView]:
        """The jobs of a state (or of several), a queue, a kind: oldest first, all by default.

        Raises:
            ValueError: a state that does not exist.
        """
        states = [state] if isinstance(state, str) else state or ()
        where = JobFilter(states=frozenset(map(JobState, states)), queue=queue)
        found = self._list(where)
        names = None if handle is None else self._names(handle)
        return [job for job in found if names is None or job.wire_name in names]

    def enqueued(self, handle: JobHandle[..., Any], /, **arguments: Any) -> list[JobView]:
        """Assert that such a job was enqueued, and answer those that were, oldest first.

        Each argument that is given must be equal to the job's, decoded; what is not given may be
        anything. Jobs count whatever became of them, `perform` does not.

        Raises:
            AssertionError: there is none; the message lists what was enqueued.
            TypeError: the handler has no parameter of that name.
        """
        __tracebackhide__ = True
        return Expectation(self.mill.registry, handle, arguments).among(self._enqueued())

    def not_enqueued(self, handle: JobHandle[..., Any], /, **arguments: Any) -> None:
        """Assert that no such job was enqueued.

        Raises:
            AssertionError: there is one.
            TypeError: the handler has no parameter of that name.
        """
        __tracebackhide__ = True
        Expectation(self.mill.registry, handle, arguments).absent_from(self._enqueued())

    @cached_property
    def _performed(self) -> set[JobId]:
        """The jobs of `perform`, which no test means by those that were enqueued."""
        return set()

    def _look(self, job_id: JobId) -> JobView:
        details = self.store.perform_sync(GetJob(job_id))
        assert details is not None, "a harness deletes no job"
        return view_of(details)

    def _list(self, where: JobFilter) -> list[JobView]:
        cursor, found = None, list[JobId]()
        while True:
            page = self.store.perform_sync(
                ListJobs(where=where, cursor=cursor, limit=self.store.bounds.page_size)
            )
            found += [record.id for record in page.jobs]
            cursor = page.next_cursor
            if cursor is None:
                return [self._look(job_id) for job_id in reversed(found)]

    def _enqueued(self) -> list[JobView]:
        return [job for job in self._list(JobFilter()) if job.id not in self._performed]

    def _names(self, handle: JobHandle[..., Any]) -> tuple[str, ...]:
        definition = self.mill.registry.get(handle.wire_name)
        return (handle.wire_name,) if definition is None else definition.names
