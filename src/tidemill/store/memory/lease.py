"""Leases: registering, the heartbeat, and the end in order (clauses A3, C4, C5, C8)."""

from __future__ import annotations

from dataclasses import replace

from tidemill.core.instants import after
from tidemill.errors import WorkerIdUsed
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.store.memory.exchange import running_under
from tidemill.store.memory.held import unhold
from tidemill.store.memory.rows import WorkerRow
from tidemill.store.memory.tables import Work
from tidemill.values.leases import BeatReply, Registered
from tidemill.values.workers import WorkerInfo


def register(work: Work, operation: Register) -> Registered:
    info = operation.info
    there = work.tables.workers.get(info.id)
    if there is not None:
        _require_repeat(work, there, info)
    started_at = there.started_at if there else work.now
    expires_at = after(work.now, operation.lease)
    with work.tables.transaction():
        work.tables.save_worker(WorkerRow(info=info, started_at=started_at, expires_at=expires_at))
        for wire_name in sorted(info.wire_names):
            unhold(work, wire_name)
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
        work.tables.save_worker(replace(row, expires_at=after(work.now, operation.lease)))
    return BeatReply(
        operation.worker, work.now, live=True, running=running_under(work, operation.worker)
    )


def mark_lapsed(work: Work, row: WorkerRow) -> None:
    """Note that a lease ended, so that no step of the clock makes it live again."""
    if row.lapsed_at is None and not row.deregistered:
        with work.tables.transaction():
            work.tables.save_worker(replace(row, lapsed_at=work.now))


def _require_repeat(work: Work, there: WorkerRow, info: WorkerInfo) -> None:
    if there.deregistered:
        why = "it was deregistered"
    elif not there.live(work.now):
        why = "its lease lapsed"
    elif there.info != info:
        why = "a worker that presents itself otherwise has it"
    else:
        return
    message = f"Worker id {info.id} was used before: {why}. Register with a fresh id."
    raise WorkerIdUsed(message)
