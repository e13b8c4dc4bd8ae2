"""Leases: registering, the heartbeat, and the end in order (clauses A3, C4, C5, C8)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.core.held import UNHELD_AT_ONCE
from tidemill.core.instants import after
from tidemill.core.lease import require_repeat
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.store.memory.exchange import running_under
from tidemill.store.memory.held import unhold
from tidemill.store.memory.rows import WorkerRow
from tidemill.store.memory.tables import Work
from tidemill.values.leases import BeatReply, Registered


def register(work: Work, operation: Register) -> Registered:
    info = operation.info
    there = work.tables.workers.get(info.id)
    if there is not None:
        require_repeat(info, there.info, there.lease, work.now)
    started_at = there.started_at if there else work.now
    expires_at = after(work.now, operation.lease)
    with work.tables.transaction():
        work.tables.save_worker(
            WorkerRow(
                info=info, started_at=started_at, beat_lasts=operation.lease, expires_at=expires_at
            )
        )
        unhold(work, info.wire_names, UNHELD_AT_ONCE)
    return Registered(info.id, work.now)


def deregister(work: Work, operation: Deregister) -> None:
    row = work.tables.workers.get(operation.worker)
    if row is not None:
        with work.tables.transaction():
            work.tables.save_worker(replace(row, deregistered=True))


def beat(work: Work, operation: Beat) -> BeatReply:
    row = work.tables.workers.get(operation.worker)
    if row is None or not row.live(work.now):
        if row is not None:
            mark_lapsed(work, row)
        return BeatReply(operation.worker, work.now, live=False)
    with work.tables.transaction():
        expires_at = after(work.now, operation.lease)
        work.tables.save_worker(replace(row, beat_lasts=operation.lease, expires_at=expires_at))
    return BeatReply(
        operation.worker, work.now, live=True, running=running_under(work, operation.worker)
    )


def mark_lapsed(work: Work, row: WorkerRow) -> None:
    """Note that a lease ended, so that no step of the clock makes it live again."""
    if row.lapsed_at is None and not row.deregistered:
        with work.tables.transaction():
            work.tables.save_worker(replace(row, lapsed_at=work.now))
