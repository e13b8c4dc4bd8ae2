"""Acting on jobs: `mill.jobs.cancel`, `requeue`, `rerun` and `run_now`.

Every action is audited under its actor. What became of it is answered as a value, not raised: a
job that has ended cannot be cancelled, and that is no error. `action` is the id of the action;
repeating one with the same id changes nothing and answers what the first one answered.
"""

from __future__ import annotations

from uuid import UUID

from tidemill.client import job_id_of, require_type
from tidemill.monitor import AnyJob, JobReads, SyncJobReads
from tidemill.shell.identity import new_id
from tidemill.store.operators import Cancel, Requeue, Rerun, RunNow
from tidemill.values.ids import ActionId, JobId
from tidemill.values.operators import ActionResult


class Jobs(JobReads):
    """`mill.jobs`: the monitor's reads and the operator actions."""

    @property
    def sync(self) -> SyncJobs:
        """The same for threads: `mill.jobs.sync.get(job_id)`."""
        return SyncJobs(self._client)

    async def cancel(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """Cancel a job: at once if it waits, by a request to its handler if it runs."""
        (result,) = await self._client.perform(_cancel(job, actor, action))
        return result

    async def requeue(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """Make a dead, quarantined or cancelled job ready again, with a fresh budget."""
        (result,) = await self._client.perform(_requeue(job, actor, action))
        return result

    async def rerun(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """Enqueue a new job with the content of one that has ended; its id is `other`."""
        return await self._client.perform(_rerun(job, actor, action))

    async def run_now(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """Make a scheduled job ready without waiting."""
        (result,) = await self._client.perform(_run_now(job, actor, action))
        return result


class SyncJobs(SyncJobReads):
    """`mill.jobs.sync`: as `mill.jobs`, blocking this thread."""

    def cancel(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """As `Jobs.cancel`."""
        request = _cancel(job, actor, action)
        (result,) = self._client.perform_sync(request, instead="await mill.jobs.cancel(...)")
        return result

    def requeue(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """As `Jobs.requeue`."""
        request = _requeue(job, actor, action)
        (result,) = self._client.perform_sync(request, instead="await mill.jobs.requeue(...)")
        return result

    def rerun(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """As `Jobs.rerun`."""
        request = _rerun(job, actor, action)
        return self._client.perform_sync(request, instead="await mill.jobs.rerun(...)")

    def run_now(self, job: AnyJob, *, actor: str, action: UUID | None = None) -> ActionResult:
        """As `Jobs.run_now`."""
        request = _run_now(job, actor, action)
        (result,) = self._client.perform_sync(request, instead="await mill.jobs.run_now(...)")
        return result


def _cancel(job: AnyJob, actor: str, action: UUID | None) -> Cancel:
    return Cancel(job_ids=(job_id_of(job),), actor=actor, action=action_id(action))


def _requeue(job: AnyJob, actor: str, action: UUID | None) -> Requeue:
    return Requeue(job_ids=(job_id_of(job),), actor=actor, action=action_id(action))


def _rerun(job: AnyJob, actor: str, action: UUID | None) -> Rerun:
    return Rerun(
        job_id=job_id_of(job), new_id=JobId(new_id()), actor=actor, action=action_id(action)
    )


def _run_now(job: AnyJob, actor: str, action: UUID | None) -> RunNow:
    return RunNow(job_ids=(job_id_of(job),), actor=actor, action=action_id(action))


def action_id(action: UUID | None) -> ActionId:
    """The id of an action: the given one, or a fresh one."""
    if action is None:
        return ActionId(new_id())
    require_type("action", action, UUID, "a UUID, the same one when you repeat the action")
    return ActionId(action)
