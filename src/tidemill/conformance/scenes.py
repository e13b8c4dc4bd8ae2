"""The vocabulary of the kit: what the facts say to a store, one word for one thing.

Every function takes the store first and speaks only operations, so that a fact reads as the story
it tells. Ids are fresh and ascending, which makes id order the order of creation.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from tidemill.store.complete import Complete
from tidemill.store.contract import Store
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Maintain, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetJob
from tidemill.store.notes import ReadLog, TakeNotes
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow
from tidemill.values.exchange import ClaimRequest, Exchanged, Share
from tidemill.values.ids import ActionId, JobId, WorkerId, uuid7
from tidemill.values.jobs import DEFAULT_QUEUE, Claimed, Enqueued, JobDetails, NewJob
from tidemill.values.leases import BeatReply, Maintained
from tidemill.values.notes import JobLine, LogLine, Note, Progress
from tidemill.values.operators import ActionResult, QueueResult
from tidemill.values.outcomes import Answer, ErrorInfo, Outcome, Reported, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.workers import WorkerInfo

LEASE: Final = timedelta(seconds=60)
SECOND: Final = timedelta(seconds=1)
MICROSECOND: Final = timedelta(microseconds=1)
GRIND: Final = "mill.grind"
"""The wire name of every job that does not ask for another one."""
MILLER: Final = "miller"
"""The actor of operator actions."""
BROKEN: Final = ErrorInfo("ValueError", "the stone is cracked", "Traceback: grind, line 1")
NOTED_AT: Final = datetime(2026, 1, 1, 12, 0, 0, 123_456, tzinfo=UTC)
AT_ONCE: Final = Retry.immediate(max_attempts=100)
"""A policy whose failures and lapses are ready again at once."""

_numbers = count(1)
_FIRST_MS = 1_767_225_600_000


def fresh_job_id() -> JobId:
    """A job id above every one before it."""
    number = next(_numbers)
    return JobId(uuid7(_FIRST_MS + number, number))


def fresh_action() -> ActionId:
    """An action id that no action had before."""
    return ActionId(fresh_job_id())


def new_job(**wish: Any) -> NewJob:
    """A request for a job; `wish` says what should differ from the plainest one."""
    plain: dict[str, Any] = {"id": fresh_job_id(), "wire_name": GRIND}
    return NewJob(**plain | wish)


def enqueue(store: Store, *jobs: NewJob) -> tuple[Enqueued, ...]:
    """Store jobs in one request."""
    return store.perform_sync(Enqueue(jobs))


def enqueue_one(store: Store, **wish: Any) -> JobId:
    """Store one new job and answer its id."""
    (enqueued,) = enqueue(store, new_job(**wish))
    return enqueued.job_id


def worker_info(**wish: Any) -> WorkerInfo:
    """How a worker presents itself; it knows `GRIND` and serves the default queue."""
    plain: dict[str, Any] = {
        "id": WorkerId(fresh_job_id()),
        "host": "mill",
        "pid": 1,
        "version": "1",
        "queues": (DEFAULT_QUEUE,),
        "wire_names": frozenset({GRIND}),
        "slots": 10,
    }
    return WorkerInfo(**plain | wish)


def register(store: Store, *, lease: timedelta = LEASE, **wish: Any) -> WorkerId:
    """Register a new worker with a live lease and answer its id."""
    return store.perform_sync(Register(info=worker_info(**wish), lease=lease)).worker


def beat(store: Store, worker: WorkerId, lease: timedelta = LEASE) -> BeatReply:
    """Send a heartbeat."""
    return store.perform_sync(Beat(worker=worker, lease=lease))


def maintain(store: Store, limit: int = 500) -> Maintained:
    """Run one round of maintenance."""
    return store.perform_sync(Maintain(lease=LEASE, limit=limit))


def request(
    limit: int = 1, *shares: Share, wire_names: frozenset[str] | None = None
) -> ClaimRequest:
    """Ask for jobs; of the default queue if no shares are given."""
    return ClaimRequest(
        shares=shares or (Share(DEFAULT_QUEUE, limit),), limit=limit, wire_names=wire_names
    )


def exchange(
    store: Store,
    worker: WorkerId,
    *outcomes: Outcome,
    claim: ClaimRequest | None = None,
    list_running: bool = False,
) -> Exchanged:
    """Report outcomes, claim, or both."""
    return store.perform_sync(
        Exchange(worker=worker, outcomes=outcomes, claim=claim, list_running=list_running)
    )


def claim(
    store: Store,
    worker: WorkerId,
    limit: int = 1,
    *shares: Share,
    wire_names: frozenset[str] | None = None,
) -> tuple[Claimed, ...]:
    """Claim at most `limit` jobs; of the default queue if no shares are given."""
    wanted = request(limit, *shares, wire_names=wire_names)
    return exchange(store, worker, claim=wanted).claimed


def claim_one(store: Store, worker: WorkerId) -> Claimed:
    """Claim the one job that is first in line."""
    (job,) = claim(store, worker)
    return job


def start(store: Store, worker: WorkerId, **wish: Any) -> Claimed:
    """Store one new job and claim it; no other job may be ready."""
    job_id = enqueue_one(store, **wish)
    job = claim_one(store, worker)
    assert job.id == job_id, "another job was ready before the one this fact is about"
    return job


def outcome(job: Claimed, verdict: Verdict, **rest: Any) -> Outcome:
    """What the holder of a claimed job would report."""
    return replace(Outcome(job_id=job.id, attempt=job.attempt, verdict=verdict), **rest)


def failure(job: Claimed, **rest: Any) -> Outcome:
    """A failed attempt, with an error."""
    return outcome(job, Verdict.FAILED, **{"error": BROKEN} | rest)


def report(store: Store, job: Claimed, verdict: Verdict, **rest: Any) -> Reported:
    """Report how a claimed job ended, as the worker that claimed it."""
    return send(store, job.worker, outcome(job, verdict, **rest))


def send(store: Store, worker: WorkerId, sent: Outcome) -> Reported:
    """Report one outcome as `worker`, whoever holds the job."""
    (reported,) = exchange(store, worker, sent).reported
    return reported


def complete(store: Store, job: Claimed, **rest: Any) -> Reported:
    """Complete a claimed job as its handler would, in a transaction that commits at once."""
    told: dict[str, Any] = {"job_id": job.id, "attempt": job.attempt, "worker": job.worker}
    return store.perform_sync(Complete(**told | rest))


def line(number: int, message: str = "a stone", **rest: Any) -> LogLine:
    """A line of an attempt's log, with its number there."""
    return replace(LogLine(number, NOTED_AT, message), **rest)


def halfway(fraction: float | None = 0.5, message: str = "grinding") -> Progress:
    """A word of progress."""
    return Progress(fraction, message, NOTED_AT)


def note(store: Store, job: Claimed, *lines: LogLine, **rest: Any) -> Answer:
    """Say something of a claimed job while it runs, as the worker that claimed it."""
    told: dict[str, Any] = {"attempt": job.attempt, "worker": job.worker} | rest
    worker = told.pop("worker")
    said = Note(job_id=job.id, lines=lines, **told)
    (answered,) = store.perform_sync(TakeNotes(worker=worker, notes=(said,)))
    return answered.answer


def log_of(store: Store, job_id: JobId) -> tuple[JobLine, ...]:
    """The first page of a job's log."""
    return store.perform_sync(ReadLog(job_id)).lines


def fail(store: Store, job: Claimed, **rest: Any) -> Reported:
    """Report a failed attempt as the worker that claimed the job."""
    return send(store, job.worker, failure(job, **rest))


def details(store: Store, job_id: JobId) -> JobDetails:
    """The whole job, which must be there."""
    found = store.perform_sync(GetJob(job_id))
    assert found is not None, f"job {job_id} is not there"
    return found


def state_of(store: Store, job_id: JobId) -> JobState:
    """Where a job stands."""
    return details(store, job_id).record.state


def cancel(store: Store, *job_ids: JobId, actor: str = MILLER) -> tuple[ActionResult, ...]:
    """Cancel jobs, under a fresh action id."""
    return store.perform_sync(Cancel(job_ids=job_ids, actor=actor, action=fresh_action()))


def requeue(store: Store, *job_ids: JobId) -> tuple[ActionResult, ...]:
    """Requeue jobs, under a fresh action id."""
    return store.perform_sync(Requeue(job_ids=job_ids, actor=MILLER, action=fresh_action()))


def run_now(store: Store, *job_ids: JobId) -> tuple[ActionResult, ...]:
    """Make scheduled jobs ready, under a fresh action id."""
    return store.perform_sync(RunNow(job_ids=job_ids, actor=MILLER, action=fresh_action()))


def rerun(store: Store, job_id: JobId) -> ActionResult:
    """Rerun a job as a new one, under a fresh action id."""
    operation = Rerun(job_id=job_id, new_id=fresh_job_id(), actor=MILLER, action=fresh_action())
    return store.perform_sync(operation)


def pause(store: Store, queue: str = DEFAULT_QUEUE) -> QueueResult:
    """Pause a queue, under a fresh action id."""
    operation = PauseQueue(queue=queue, paused=True, actor=MILLER, action=fresh_action())
    return store.perform_sync(operation)


def resume(store: Store, queue: str = DEFAULT_QUEUE) -> QueueResult:
    """Resume a queue, under a fresh action id."""
    operation = PauseQueue(queue=queue, paused=False, actor=MILLER, action=fresh_action())
    return store.perform_sync(operation)


def lapse(store: Store, clock: VirtualClock) -> Maintained:
    """Let every lease end, and sweep."""
    clock.advance(LEASE)
    return maintain(store)


def wait_until_due(store: Store, clock: VirtualClock, job_id: JobId) -> None:
    """Move the clock to the instant at which a job is due."""
    clock.set(max(clock(), details(store, job_id).record.due_at))
