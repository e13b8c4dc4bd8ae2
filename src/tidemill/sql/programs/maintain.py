"""Maintain: the sweep of lapses, expiries and holds (clauses C6, C10, E4, F1, J3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemill.core.held import known_by
from tidemill.core.lease import LAPSED_WORKERS_AT_ONCE
from tidemill.core.transitions import By, check
from tidemill.sql.program import Program, Row, Statement, follow_up
from tidemill.sql.programs.claim import expire
from tidemill.sql.programs.commit import Seen, Writes, apply, write
from tidemill.sql.programs.complete import settle_some
from tidemill.sql.programs.env import UNWRITABLE_UNTIL, Env, chunks, read_clock
from tidemill.sql.programs.lease import unhold
from tidemill.sql.programs.quarantine import Broken, quarantine
from tidemill.sql.rows import holder_and_standing
from tidemill.sql.worker_rows import lease_is_live, read_wire_names
from tidemill.store.lease import Maintain
from tidemill.values.ids import WorkerId
from tidemill.values.leases import Lapsed, Maintained
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.states import JobState

_EVER = timedelta(days=365_000)
_WORK = ("lapsed_jobs", "lapsed_workers", "expired", "undue", "unsettled")


def maintain(operation: Maintain, env: Env) -> Program[Maintained]:
    """Lapses first; what they became stands, whatever becomes of the other parts."""
    limit = operation.limit
    lapsed, swept = yield from _lapse(operation, env)
    expired, undue = yield from follow_up(
        lambda: _end_waits(env, limit), (0, 0), "A sweep of expired jobs"
    )
    unheld = yield from follow_up(lambda: _unhold(env, limit), 0, "A sweep of held jobs")
    settled = yield from follow_up(lambda: settle_some(env, limit), 0, "A sweep of completions")
    more = limit in {swept, expired, undue, unheld, settled}
    return Maintained(lapsed=lapsed, expired=expired, unheld=unheld, settled=settled, more=more)


def glance(_operation: Maintain, env: Env) -> Program[Maintained | None]:
    """The answer when there is nothing to do; None if there is.

    An expired lease is something to do also while it may not count as lapsed (clause C10): to be
    granted the write lock is how a process learns that it may.
    """
    (row,) = yield Statement("upkeep")
    if any(row[each] for each in _WORK):
        return None
    if row["held"] and (yield from _any_known(env.dialect.instant(row["now"]))):
        return None
    return Maintained()


def _lapse(operation: Maintain, env: Env) -> Program[tuple[tuple[Lapsed, ...], int]]:
    """End the attempts of workers that are not live, and mark those workers.

    Answers what lapsed, and how many rows were looked at. One that cannot be read is quarantined:
    it never keeps the sweep from the others, nor is it looked at again and again (clause C6).
    """
    now = yield from read_clock(env)
    writable_for = yield from _writable_for(operation, env, now)
    asked = {"now": now, "writable_for": writable_for}
    rows = yield Statement("lapsed_jobs", {**asked, "limit": operation.limit})
    found = [_see(env, row) for row in rows]
    live = yield from _live_among(env, found, now)
    dead = [each for each in found if each.seen.holder.worker not in live]
    writes = Writes()
    ended = [_end(each.seen, now, writes) for each in dead if not each.faults]
    yield from write(env, writes)
    yield from quarantine(env, [_broken(each) for each in dead if each.faults], now)
    lost = yield Statement("lapsed_workers", {**asked, "limit": LAPSED_WORKERS_AT_ONCE})
    if lost:
        ids = tuple([row["id"] for row in lost])  # as the driver gave them, and takes them
        yield Statement("mark_lapsed", {"ids": ids, "now": now})
    return tuple(ended), len(rows)


@dataclass(frozen=True, slots=True)
class Swept:
    """A row that the sweep looks at, and the names of its columns that cannot be read."""

    seen: Seen
    faults: tuple[str, ...]


def _see(env: Env, row: Row) -> Swept:
    holder, standing, faults = holder_and_standing(env.dialect, row)
    if holder.worker is None and not faults:
        faults = ("worker_id",)  # a running job has a worker
    return Swept(Seen(row, standing, holder), faults)


def _broken(swept: Swept) -> Broken:
    seen, faults = swept.seen, swept.faults
    attempt = None if "attempt" in faults else seen.holder.attempt
    return Broken(seen.row, faults, attempt, seen.holder.worker, Verdict.LAPSED, None)


def _live_among(env: Env, found: Sequence[Swept], now: datetime) -> Program[set[WorkerId]]:
    """The holders of locked rows that are live after all, read once the rows are locked (D1)."""
    workers = (each.seen.holder.worker for each in found)
    holders = {worker for worker in workers if worker is not None}
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


def _writable_for(operation: Maintain, env: Env, now: datetime) -> Program[timedelta]:
    """How long the database is known to have been writable (clause C10).

    What blocked writers blocked heartbeats too, so a lease that ended within its own length of
    such a time says nothing yet.
    """
    rows = yield Statement(UNWRITABLE_UNTIL, {"lease": operation.lease})
    if not rows:
        return _EVER
    return max(now - env.dialect.instant(rows[0]["value"]), timedelta(0))


def _end_waits(env: Env, limit: int) -> Program[tuple[int, int]]:
    expired = yield from _expire(env, limit)
    undue = yield from _activate_undue(limit)
    return expired, undue


def _expire(env: Env, limit: int) -> Program[int]:
    now = yield from read_clock(env)
    rows = yield Statement("expired_jobs", {"now": now, "limit": limit})
    yield from expire([row["id"] for row in rows], now)
    return len(rows)


def _activate_undue(limit: int) -> Program[int]:
    """Make ready what is due at no instant, and so would never be claimed; the claim ends it."""
    check(JobState.SCHEDULED, JobState.READY, By.DUE)
    rows = yield Statement("activate_undue", {"limit": limit})
    return len(rows)


def _unhold(env: Env, limit: int) -> Program[int]:
    now = yield from read_clock(env)
    names = yield from _known_names(now)
    return (yield from unhold(names, limit))


def _any_known(now: datetime) -> Program[bool]:
    """Whether a job is held although a live worker knows its name, when some job is held."""
    names = yield from _known_names(now)
    if names is None:
        return True
    for chunk in chunks(sorted(names)):
        rows = yield Statement("known_held", {"names": tuple(chunk)})
        if rows:
            return True
    return False


def _known_names(now: datetime) -> Program[frozenset[str] | None]:
    """Every wire name that a live worker knows; None if one of them knows all."""
    rows = yield Statement("known_names", {"now": now})
    return known_by(read_wire_names(row["wire_names"]) for row in rows)
