"""Maintain: the sweep of lapses, expiries and holds (clauses C6, C10, E4, F1, J3)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tidemill.sql.program import COMMIT, Program, Row, Statement
from tidemill.sql.programs.claim import expire
from tidemill.sql.programs.commit import Seen, Writes, apply, see, write
from tidemill.sql.programs.env import Env, chunks, read_clock
from tidemill.sql.programs.lease import unhold
from tidemill.sql.rows import job_id, lease_is_live, read_names
from tidemill.store.lease import Maintain
from tidemill.values.ids import WorkerId
from tidemill.values.leases import Lapsed, Maintained
from tidemill.values.outcomes import Outcome, Verdict

LAPSED_WORKERS_AT_ONCE = 100


def maintain(operation: Maintain, env: Env) -> Program[Maintained]:
    """Each part in a transaction of its own."""
    limit = operation.limit
    lapsed = yield from _lapse(operation, env)
    yield COMMIT
    expired = yield from _expire(env, limit)
    yield COMMIT
    now = yield from read_clock(env)
    names = yield from _known_names(now)
    unheld = yield from unhold(env, names, limit)
    more = limit in {len(lapsed), expired, unheld}
    return Maintained(lapsed=lapsed, expired=expired, unheld=unheld, more=more)


def glance(operation: Maintain, env: Env) -> Program[Maintained | None]:
    """The answer when there is nothing to do; None if there is."""
    (row,) = yield Statement("upkeep")
    if row["expired"]:
        return None
    now = env.dialect.instant(row["now"])
    lapsed = row["lapsed_jobs"] or row["lapsed_workers"]
    if lapsed and not (yield from _blocked_of_late(operation, env, now)):
        return None
    if row["held"] and (yield from _any_known(now)):
        return None
    return Maintained()


def _any_known(now: datetime) -> Program[bool]:
    """Whether a job is held although a live worker knows its name."""
    names = yield from _known_names(now)
    for chunk in chunks(names):
        rows = yield Statement("known_held", {"names": tuple(chunk)})
        if rows:
            return True
    return False


def _lapse(operation: Maintain, env: Env) -> Program[tuple[Lapsed, ...]]:
    """End the attempts of workers that are not live, and mark those workers."""
    now = yield from read_clock(env)
    if (yield from _blocked_of_late(operation, env, now)):
        return ()
    rows = yield Statement("lapsed_jobs", {"now": now, "limit": operation.limit})
    found = [see(env, row) for row in rows]
    live = yield from _live_among(env, found, now)
    writes = Writes()
    lapsed = tuple([_end(each, now, writes) for each in found if each.holder.worker not in live])
    yield from write(env, writes)
    dead = yield Statement("lapsed_workers", {"now": now, "limit": LAPSED_WORKERS_AT_ONCE})
    if dead:
        ids = tuple([WorkerId(env.dialect.uuid(row["id"])) for row in dead])
        yield Statement("mark_lapsed", {"ids": ids, "now": now})
    return lapsed


def _live_among(env: Env, found: Sequence[Seen], now: datetime) -> Program[set[WorkerId]]:
    """The holders of locked rows that are live after all, read once the rows are locked (D1)."""
    holders = {each.holder.worker for each in found if each.holder.worker is not None}
    live: set[WorkerId] = set()
    for ids in chunks(sorted(holders)):
        rows = yield Statement("leases", {"ids": tuple(ids)})
        for row in rows:
            if lease_is_live(env.dialect, row, now):
                live.add(WorkerId(env.dialect.uuid(row["id"])))
    return live


def _end(seen: Seen, now: datetime, writes: Writes) -> Lapsed:
    worker, attempt = seen.holder.worker, seen.holder.attempt
    assert worker is not None, "a running job has a worker"
    outcome = Outcome(job_id=seen.standing.job_id, attempt=attempt, verdict=Verdict.LAPSED)
    resolution = apply(seen, outcome, worker, now, writes)
    return Lapsed(
        job_id=outcome.job_id,
        attempt=attempt,
        worker=worker,
        state=resolution.state,
        cause=resolution.cause,
    )


def _blocked_of_late(operation: Maintain, env: Env, now: datetime) -> Program[bool]:
    """Whether the database could not be written within the last lease (clause C10).

    What blocked writers blocked heartbeats too, so a lease that ended then says nothing.
    """
    rows = yield Statement("unwritable_until")
    return bool(rows) and now < _until(env, rows[0]) + operation.lease


def _until(env: Env, row: Row) -> datetime:
    return env.dialect.instant(row["value"])


def _expire(env: Env, limit: int) -> Program[int]:
    now = yield from read_clock(env)
    rows = yield Statement("expired_jobs", {"now": now, "limit": limit})
    yield from expire([job_id(env.dialect, row) for row in rows], now)
    return len(rows)


def _known_names(now: datetime) -> Program[list[str]]:
    """Every wire name that a live worker knows."""
    rows = yield Statement("known_names", {"now": now})
    return sorted({name for row in rows for name in read_names(row["wire_names"])})
