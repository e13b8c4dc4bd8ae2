"""Operator actions: cancel, requeue, rerun, run now, pause (clauses C2, G1, G2, G4, L1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tidemill.core import actions
from tidemill.core.admission import admit, admit_actor, admit_queue
from tidemill.core.cancel import cancelling
from tidemill.core.pause import pausing
from tidemill.core.requeue import requeueing
from tidemill.core.rerun import copy_of, id_taken, rerunning
from tidemill.core.run_now import running_now
from tidemill.sql.program import Program, Row, Statement
from tidemill.sql.programs.audit import OnJobs, OnQueues, answer_before, record_action
from tidemill.sql.programs.enqueue import insert_ready, key_holders
from tidemill.sql.programs.env import Env, read_clock, select_each
from tidemill.sql.reading import Reading
from tidemill.sql.rows import NO_TENANT, details, job_id
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow
from tidemill.values import causes
from tidemill.values.ids import JobId
from tidemill.values.operators import ActionResult, Effect, QueueResult
from tidemill.values.states import REQUEUEABLE, JobState


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that an action names, as its locked row says it."""

    id: JobId
    state: JobState
    tenant: str
    key: str | None
    cancel_requested: str | None
    quarantined_as: str | None
    """The cause of its quarantine; None where it is in none."""
    stray: bool
    """Whether its state is one that nobody knows."""


@dataclass(frozen=True, slots=True)
class Acting:
    """Who acts, and when, on the store's clock."""

    env: Env
    actor: str
    now: datetime


Act = Callable[[Acting, Asked], Program[ActionResult]]
_Bulk = Cancel | Requeue | RunNow
_Held = dict[JobId, JobState]

LOOKS: Final = 6
PAUSE: Final = timedelta(milliseconds=100)
"""How often an action tries to lock a row that somebody holds, and how long it waits in between:
what the library does itself holds a row for milliseconds."""


def cancel(operation: Cancel, env: Env) -> Program[tuple[ActionResult, ...]]:
    return _on_each(operation, env, _cancel_one)


def requeue(operation: Requeue, env: Env) -> Program[tuple[ActionResult, ...]]:
    return _on_each(operation, env, _requeue_one)


def run_now(operation: RunNow, env: Env) -> Program[tuple[ActionResult, ...]]:
    return _on_each(operation, env, _run_one_now)


def rerun(operation: Rerun, env: Env) -> Program[ActionResult]:
    now = yield from read_clock(env)
    before = yield from answer_before(operation, OnJobs)
    if before is not None:
        return before[0]
    admit_actor(operation.actor, env.bounds)
    result = yield from _rerun(operation, env, now)
    yield from record_action(operation, now, (result,))
    return result


def pause_queue(operation: PauseQueue, env: Env) -> Program[QueueResult]:
    now = yield from read_clock(env)
    before = yield from answer_before(operation, OnQueues)
    if before is not None:
        return before[0]
    admit_actor(operation.actor, env.bounds)
    admit_queue(operation.queue, env.bounds)
    rows = yield Statement("paused_queues_of", {"queues": (operation.queue,)})
    result = pausing(operation.queue, paused=bool(rows), wanted=operation.paused)
    if result.effect is Effect.DONE:
        yield Statement("set_paused", {"name": operation.queue, "paused": operation.paused})
    yield from record_action(operation, now, (result,))
    return result


def _on_each(operation: _Bulk, env: Env, act: Act) -> Program[tuple[ActionResult, ...]]:
    """Act on each job in turn, each judged by its row as the ones before it left it."""
    now = yield from read_clock(env)
    before = yield from answer_before(operation, OnJobs)
    if before is not None:
        return before
    admit_actor(operation.actor, env.bounds)
    acting = Acting(env, operation.actor, now)
    asked, held = yield from _lock(env, sorted(set(operation.job_ids)))
    results: list[ActionResult] = []
    for named in operation.job_ids:
        job = asked.get(named)
        if job is None:
            state = held.get(named)
            results.append(actions.busy(named, state) if state else actions.not_found(named))
            continue
        result = yield from act(acting, job)
        if result.effect in {Effect.DONE, Effect.REQUESTED}:
            again = yield from select_each("asked_jobs", (named,))
            asked[named] = _asked(env, again[0])
        results.append(result)
    yield from record_action(operation, now, results)
    return tuple(results)


def _lock(env: Env, ids: Sequence[JobId]) -> Program[tuple[dict[JobId, Asked], _Held]]:
    """The rows, locked; and the states of those that others have kept locked all the while.

    One that is held never keeps an action from the others.
    """
    asked: dict[JobId, Asked] = {}
    held: _Held = {}
    for look in range(LOOKS):
        if look:
            yield Statement("wait_for_holders", {"pause": PAUSE})
        rest = [each for each in ids if each not in asked]
        rows = yield from select_each("asked_jobs", rest)
        asked.update((job.id, job) for job in (_asked(env, row) for row in rows))
        there = yield from select_each("stored_jobs", [each for each in rest if each not in asked])
        held = {job_id(env.dialect, row): Reading(env.dialect, row).state("state") for row in there}
        if not held:
            break
    return asked, held


def _cancel_one(acting: Acting, job: Asked) -> Program[ActionResult]:
    result = (
        actions.done(job.id, JobState.CANCELLED) if job.stray else cancelling(job.id, job.state)
    )
    if result.effect is Effect.DONE:
        cause = causes.operator(acting.actor)
        yield Statement("cancel_job", {"id": job.id, "cause": cause, "now": acting.now})
    elif result.effect is Effect.REQUESTED and job.cancel_requested is None:
        yield Statement("request_cancel", {"id": job.id, "actor": acting.actor})
    return result


def _requeue_one(acting: Acting, job: Asked) -> Program[ActionResult]:
    holder: JobId | None = None
    if job.key is not None and job.state in REQUEUEABLE:
        holders = yield from key_holders(acting.env, job.tenant, (job.key,))
        holder = next((found for found, _state in holders.values()), None)
    if (yield from _is_unreadable(acting, job)):
        return actions.unreadable(job.id, job.state)
    result = requeueing(job.id, job.state, holder)
    if result.effect is Effect.DONE:
        yield Statement("requeue_job", {"id": job.id, "now": acting.now})
    return result


def _is_unreadable(acting: Acting, job: Asked) -> Program[bool]:
    """Whether the row of a job that was quarantined for it still cannot be read."""
    if not job.stray and job.quarantined_as != causes.UNREADABLE:
        return False
    rows = yield Statement("job", {"id": job.id})
    return bool(details(acting.env.dialect, rows[0], (), ()).record.unreadable)


def _run_one_now(acting: Acting, job: Asked) -> Program[ActionResult]:
    result = running_now(job.id, job.state)
    if result.effect is Effect.DONE:
        yield Statement("run_job_now", {"id": job.id, "now": acting.now})
    return result


def _rerun(operation: Rerun, env: Env, now: datetime) -> Program[ActionResult]:
    rows = yield Statement("job", {"id": operation.job_id})
    if not rows:
        return actions.not_found(operation.job_id)
    tag_rows = yield Statement("job_tags", {"id": operation.job_id})
    found = details(env.dialect, rows[0], tag_rows, ())
    original = found.record
    if original.unreadable:
        return actions.unreadable(original.id, original.state)
    result = rerunning(original.id, original.state, operation.new_id)
    if result.effect is not Effect.DONE:
        return result
    copy = copy_of(original, found.payload, found.tags, operation.new_id)
    admit(copy, env.bounds)
    taken = yield Statement("stored_jobs", {"ids": (operation.new_id,)})
    if taken or not (yield from insert_ready(env, copy, now)):
        raise id_taken(operation.new_id)
    return result


def _asked(env: Env, row: Row) -> Asked:
    read = Reading(env.dialect, row)
    state = read.state("state")
    return Asked(
        job_id(env.dialect, row),
        state,
        row["tenant"] or NO_TENANT,
        row["idempotency_key"],
        row["cancel_requested"],
        row["cause"] if state is JobState.QUARANTINED else None,
        "state" in read.faults,
    )
