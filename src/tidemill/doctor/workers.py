"""Who works: live workers, those that lapsed, late heartbeats, mixed versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tidemill.doctor.words import counted, does, lasting, listed
from tidemill.values.doctor import Finding, Result, WorkerHealth, Workforce
from tidemill.values.urls import APP_PLACE

_CHECK: Final = "workers"


def judge_workers(force: Workforce, *, work_waits: bool) -> list[Finding]:
    """Findings about the workers of a store; without any it matters whether work waits for them."""
    live = [each for each in force.workers if each.record.live]
    findings = [_there(live, more=force.more) if live else _nobody(work_waits=work_waits)]
    findings += _late(live, force.now)
    findings += _lapsed([each for each in force.workers if not each.record.live], force.now)
    findings += _versions(live)
    return findings


def _there(live: Sequence[WorkerHealth], *, more: bool) -> Finding:
    hosts = len({each.record.host for each in live})
    slots = sum(each.record.slots for each in live)
    running = sum(each.record.running for each in live)
    at_least = "At least " if more else ""
    return Finding(
        _CHECK,
        Result.OK,
        f"{at_least}{counted(len(live), 'worker')} live on {counted(hosts, 'host')}: "
        f"{running:,} of {counted(slots, 'slot')} in use.",
    )


def _nobody(*, work_waits: bool) -> Finding:
    return Finding(
        _CHECK,
        Result.PROBLEM if work_waits else Result.WARNING,
        "No worker is live, so no job runs.",
        f"Start one: `tidemill worker {APP_PLACE}`.",
    )


def _late(live: Sequence[WorkerHealth], now: datetime) -> list[Finding]:
    """A heartbeat goes out every third of the lease: two thirds without one are one missed."""
    late = [
        f"{_name(each)} (last {lasting(_silence(each, now))} ago, lease {lasting(each.lease)})"
        for each in live
        if _silence(each, now) > each.lease * 2 / 3
    ]
    if not late:
        return []
    return [
        Finding(
            _CHECK,
            Result.WARNING,
            f"The heartbeat of {listed(late)} is late.",
            "Look at its log: its database connection or its whole process may hang. "
            "When the lease ends, its jobs are given to others.",
        )
    ]


def _silence(worker: WorkerHealth, now: datetime) -> timedelta:
    return now - (worker.record.lease_expires_at - worker.lease)


def _lapsed(lapsed: Sequence[WorkerHealth], now: datetime) -> list[Finding]:
    if not lapsed:
        return []
    names = [
        f"{_name(each)} ({lasting(now - each.record.lease_expires_at)} ago)" for each in lapsed
    ]
    return [
        Finding(
            _CHECK,
            Result.WARNING,
            f"{counted(len(lapsed), 'worker')} lapsed without a goodbye: {listed(names)}.",
            "It crashed, was killed or frozen, or lost the database for its whole lease. Look at "
            "its log, and at the kernel's for a process killed for its memory.",
        )
    ]


def _versions(live: Sequence[WorkerHealth]) -> list[Finding]:
    versions = sorted({each.record.version for each in live})
    if not versions[1:]:
        return []
    return [
        Finding(
            _CHECK,
            Result.WARNING,
            f"Live workers {does(len(live), 'runs', 'run')} different versions of Tidemill: "
            f"{listed(versions)}.",
            "Fine during a deployment; otherwise restart those that were left behind.",
        )
    ]


def _name(worker: WorkerHealth) -> str:
    return f"pid {worker.record.pid} on {worker.record.host}"
