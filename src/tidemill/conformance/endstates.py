"""Jobs in each terminal state, by the shortest way there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tidemill.conformance.scenes import BROKEN, cancel, enqueue_one, register, report, start
from tidemill.store.contract import Store
from tidemill.values import causes
from tidemill.values.ids import JobId
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState


def succeeded_job(store: Store, **wish: Any) -> JobId:
    """A job that succeeded in its first attempt."""
    job = start(store, register(store), **wish)
    report(store, job, Verdict.SUCCEEDED, output=b'"flour"')
    return job.id


def cancelled_job(store: Store, **wish: Any) -> JobId:
    """A job that was cancelled before it ran."""
    job_id = enqueue_one(store, **wish)
    cancel(store, job_id)
    return job_id


def dead_job(store: Store, **wish: Any) -> JobId:
    """A job that was discarded in its first attempt."""
    job = start(store, register(store), **wish)
    report(store, job, Verdict.DISCARDED, error=BROKEN)
    return job.id


def quarantined_job(store: Store, **wish: Any) -> JobId:
    """A job that nobody had a handler for."""
    job = start(store, register(store), **wish)
    report(store, job, Verdict.UNROUTABLE, cause=causes.NO_HANDLER, error=BROKEN)
    return job.id


ENDED: Final[dict[JobState, Callable[..., JobId]]] = {
    JobState.SUCCEEDED: succeeded_job,
    JobState.CANCELLED: cancelled_job,
    JobState.DEAD: dead_job,
    JobState.QUARANTINED: quarantined_job,
}
