"""Exchange: report outcomes and claim jobs in one transaction, and hear of cancel requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tidemill.core.claim import queues_of
from tidemill.core.fence import Reporter
from tidemill.sql.program import Program, Statement, follow_up
from tidemill.sql.programs.claim import claim, find_next_due, without_paused
from tidemill.sql.programs.commit import commit, record_stale
from tidemill.sql.programs.env import Env, read_clock, read_lease
from tidemill.sql.rows import running_pairs
from tidemill.store.exchange import Exchange
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.workers import RunningPair


def exchange(operation: Exchange, env: Env) -> Program[Exchanged]:
    """Outcomes first, then the claim; the records of stale reports follow."""
    worker = operation.worker
    now = yield from read_clock(env)
    live = yield from read_lease(env, worker, now)
    reported, stale = yield from commit(env, Reporter(worker, live), operation.outcomes, now)
    running = yield from _running(env, operation)
    cancels = yield from _cancels(env, worker)
    claimed: tuple[Claimed, ...] = ()
    next_due: timedelta | None = None
    if operation.claim is not None and live:
        claimed, next_due = yield from claim(env, operation.claim, worker, now)
    if stale:
        yield from follow_up(
            lambda: record_stale(env, worker, stale, now),
            None,
            f"The records of {len(stale)} stale reports of worker {worker}",
        )
    return Exchanged(worker, now, live, reported, claimed, next_due, running, cancels)


def glance(operation: Exchange, env: Env) -> Program[Exchanged | None]:
    """The answer to an exchange that has nothing to write; None if it must be performed.

    An idle worker that polls reads only: it neither waits for a user's open transaction nor wakes
    the other processes that watch the database.
    """
    if operation.outcomes:
        return None
    worker = operation.worker
    now = yield from read_clock(env)
    live = yield from read_lease(env, worker, now)
    next_due: timedelta | None = None
    if operation.claim is not None and live:
        queues = yield from without_paused(queues_of(operation.claim))
        next_due = yield from find_next_due(env, queues, now)
        if next_due == timedelta(0) or (yield from _any_ready(queues)):
            return None
    running = yield from _running(env, operation)
    cancels = yield from _cancels(env, worker)
    return Exchanged(worker, now, live, (), (), next_due, running, cancels)


def _any_ready(queues: Sequence[str]) -> Program[bool]:
    for queue in queues:
        rows = yield Statement("any_ready", {"queue": queue})
        if rows:
            return True
    return False


def _running(env: Env, operation: Exchange) -> Program[tuple[RunningPair, ...] | None]:
    if not operation.list_running:
        return None
    return (yield from list_running(env, operation.worker))


def _cancels(env: Env, worker: WorkerId) -> Program[tuple[RunningPair, ...]]:
    """The attempts of a worker whose cancel is requested (clause G2)."""
    rows = yield Statement("cancel_requests", {"worker": worker})
    return running_pairs(env.dialect, rows)


def list_running(env: Env, worker: WorkerId) -> Program[tuple[RunningPair, ...]]:
    """What runs under a worker (clause C8)."""
    rows = yield Statement("running_jobs", {"worker": worker})
    return running_pairs(env.dialect, rows)
