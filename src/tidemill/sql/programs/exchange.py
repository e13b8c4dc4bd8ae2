"""Exchange: report outcomes and claim jobs in one transaction, and hear of cancel requests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemill.core.claim import queues_of
from tidemill.core.fence import Reporter
from tidemill.sql.program import Program, Statement, follow_up
from tidemill.sql.programs.claim import Claim, claim, find_next_due, without_paused
from tidemill.sql.programs.commit import commit, record_stale
from tidemill.sql.programs.env import Env
from tidemill.sql.rows import running_pairs, wait_until
from tidemill.sql.worker_rows import lease_is_live, write_names
from tidemill.store.exchange import Exchange
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.states import JobState
from tidemill.values.workers import RunningPair


@dataclass(frozen=True, slots=True)
class Opening:
    """What an exchange has to know before it begins: the time, the lease, and what waits.

    What waits in a paused queue does not count.
    """

    now: datetime
    live: bool
    next_due: timedelta | None
    ready: bool
    paused: bool
    cancels: bool


def exchange(operation: Exchange, env: Env) -> Program[Exchanged]:
    """Outcomes first, then the claim; the records of stale reports follow."""
    worker = operation.worker
    opening = yield from _open(operation, env)
    now, live, next_due = opening.now, opening.live, opening.next_due
    reported, stale = yield from commit(env, Reporter(worker, live), operation.outcomes, now)
    running = yield from _running(env, operation)
    cancels = yield from _cancels(env, worker, opening)
    claimed: tuple[Claimed, ...] = ()
    if operation.claim is not None and live:
        queues = queues_of(operation.claim)
        if opening.paused:
            queues = yield from without_paused(queues)
        left = any(each.children or each.in_transaction for each in operation.outcomes)
        if left or any(each.state is JobState.SCHEDULED for each in reported):
            next_due = yield from find_next_due(env, queues, now)
        claimed, next_due = yield from claim(
            env, Claim(operation.claim, worker, now), queues, next_due
        )
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
    opening = yield from _open(operation, env)
    if opening.live and (opening.ready or opening.next_due == timedelta(0)):
        return None
    worker, now, live = operation.worker, opening.now, opening.live
    running = yield from _running(env, operation)
    cancels = yield from _cancels(env, worker, opening)
    return Exchanged(worker, now, live, (), (), opening.next_due, running, cancels)


def _open(operation: Exchange, env: Env) -> Program[Opening]:
    queues = queues_of(operation.claim) if operation.claim is not None else ()
    asked = {"worker": operation.worker, "queues": write_names(queues)}
    (row,) = yield Statement("opening", asked)
    now = env.dialect.instant(row["now"])
    live = lease_is_live(env.dialect, row, now)
    next_due = wait_until(env.dialect, row["next_due"], now) if live else None
    ready, paused, cancels = bool(row["ready"]), bool(row["paused"]), bool(row["cancels"])
    return Opening(now, live, next_due, ready, paused, cancels)


def _running(env: Env, operation: Exchange) -> Program[tuple[RunningPair, ...] | None]:
    if not operation.list_running:
        return None
    return (yield from list_running(env, operation.worker))


def _cancels(env: Env, worker: WorkerId, opening: Opening) -> Program[tuple[RunningPair, ...]]:
    """The attempts of a worker whose cancel is requested (clause G2)."""
    if not opening.cancels:
        return ()
    rows = yield Statement("cancel_requests", {"worker": worker})
    return running_pairs(env.dialect, rows)


def list_running(env: Env, worker: WorkerId) -> Program[tuple[RunningPair, ...]]:
    """What runs under a worker (clause C8)."""
    rows = yield Statement("running_jobs", {"worker": worker})
    return running_pairs(env.dialect, rows)
