"""Everything that can be done to a job, and a job in every state to do it to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tidemill.conformance.endstates import ENDED
from tidemill.conformance.scenes import (
    BROKEN,
    beat,
    cancel,
    claim,
    details,
    enqueue_one,
    fresh_job_id,
    lapse,
    register,
    requeue,
    rerun,
    run_now,
    send,
    start,
)
from tidemill.core.transitions import By
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.states import JobState


@dataclass(frozen=True, slots=True)
class Subject:
    """A job with the pair that holds it, or that a forger would claim to hold it."""

    id: JobId
    worker: WorkerId
    attempt: Attempt


Act = Callable[[Store, VirtualClock, Subject], object]


def _subject(store: Store, job_id: JobId) -> Subject:
    record = details(store, job_id).record
    return Subject(job_id, record.worker or register(store), record.attempt)


def _ended(state: JobState) -> Callable[[Store], Subject]:
    return lambda store: _subject(store, ENDED[state](store))


def _running(store: Store) -> Subject:
    return _subject(store, start(store, register(store)).id)


BEFORE: Final[dict[JobState, Callable[[Store], Subject]]] = {
    JobState.READY: lambda store: _subject(store, enqueue_one(store)),
    JobState.SCHEDULED: lambda store: _subject(store, enqueue_one(store, delay=timedelta(days=1))),
    JobState.RUNNING: _running,
    **{state: _ended(state) for state in ENDED},
}
"""A job in each state that can be reached."""


def _reports(verdict: Verdict, worker: WorkerId | None) -> Act:
    def act(store: Store, _: VirtualClock, job: Subject) -> None:
        sent = Outcome(job_id=job.id, attempt=job.attempt, verdict=verdict, error=BROKEN)
        send(store, worker or job.worker, sent)

    return act


WAYS: Final[dict[Verdict, frozenset[By]]] = {
    Verdict.SUCCEEDED: frozenset({By.SUCCESS}),
    Verdict.FAILED: frozenset({By.FAILURE}),
    Verdict.DISCARDED: frozenset({By.DISCARD}),
    Verdict.CANCELLED: frozenset({By.FAILURE}),
    Verdict.UNROUTABLE: frozenset({By.UNROUTABLE}),
    Verdict.RELEASED: frozenset({By.RELEASE}),
    Verdict.SNOOZED: frozenset({By.SNOOZE}),
}

MOVES: Final[dict[str, tuple[frozenset[By], Act]]] = {
    "claim": (
        frozenset({By.CLAIM}),
        lambda store, _, __: claim(store, register(store), 9),
    ),
    "cancel": (frozenset({By.CANCEL}), lambda store, _, job: cancel(store, job.id)),
    "requeue": (frozenset({By.REQUEUE}), lambda store, _, job: requeue(store, job.id)),
    "run now": (frozenset({By.RUN_NOW}), lambda store, _, job: run_now(store, job.id)),
    "rerun": (frozenset(), lambda store, _, job: rerun(store, job.id)),
    "beat": (frozenset(), lambda store, _, job: beat(store, job.worker)),
    "lapse": (frozenset({By.LAPSE}), lambda store, clock, _: lapse(store, clock)),
    **{
        f"report {verdict}": (ways, _reports(verdict, worker=None))
        for verdict, ways in WAYS.items()
    },
    **{
        f"forge {verdict}": (frozenset[By](), _reports(verdict, WorkerId(fresh_job_id())))
        for verdict in WAYS
    },
}
"""Each operation by name, with what it may move a job by."""
