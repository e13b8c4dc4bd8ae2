"""What could run: queues that nobody serves, that are paused, or whose work waits too long."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tidemill.doctor.words import counted, lasting, listed
from tidemill.values.doctor import Backlog, Finding, QueueHealth, Result, Workforce

BEHIND: Final = timedelta(minutes=5)
"""A job that could have run for so long is told of."""


def judge_backlog(backlog: Backlog, force: Workforce) -> list[Finding]:
    """Findings about the queues with work that could run."""
    served = {queue for worker in force.live for queue in worker.queues}
    paused = [queue for queue in backlog.queues if queue.paused]
    unserved = [
        queue
        for queue in backlog.queues
        if not queue.paused and not force.more and queue.queue not in served
    ]
    behind = [
        queue
        for queue in backlog.queues
        if not queue.paused and queue not in unserved and _age(queue, backlog.now) >= BEHIND
    ]
    findings = [
        *_unserved(unserved, backlog.now),
        *_paused(paused, backlog.now),
        *_behind(behind, backlog.now),
    ]
    return findings or [_all_is_well(backlog)]


def _unserved(queues: Sequence[QueueHealth], now: datetime) -> list[Finding]:
    if not queues:
        return []
    return [
        Finding(
            "queues",
            Result.PROBLEM,
            f"No live worker serves {_each(queues, now)}.",
            f"Start a worker with --queues {','.join(queue.queue for queue in queues[:3])}, or "
            "correct the queue where its jobs are enqueued.",
        )
    ]


def _paused(queues: Sequence[QueueHealth], now: datetime) -> list[Finding]:
    if not queues:
        return []
    names = " ".join(queue.queue for queue in queues[:3])
    return [
        Finding(
            "queues",
            Result.WARNING,
            f"Paused, with work to do: {_each(queues, now)}.",
            f"When the reason is gone: tidemill queues resume {names}",
        )
    ]


def _behind(queues: Sequence[QueueHealth], now: datetime) -> list[Finding]:
    if not queues:
        return []
    return [
        Finding(
            "queues",
            Result.WARNING,
            f"Work waits for its turn: {_each(queues, now)}.",
            "Start more workers or give them more slots; or the workers do not know the names of "
            "these jobs, or something else here keeps them from claiming.",
        )
    ]


def _all_is_well(backlog: Backlog) -> Finding:
    if not backlog.queues:
        return Finding("queues", Result.OK, "No job waits that could run.")
    count = sum(queue.ready + queue.due for queue in backlog.queues)
    oldest = max(_age(queue, backlog.now) for queue in backlog.queues)
    return Finding(
        "queues",
        Result.OK,
        f"{counted(count, 'job')} can run, all in queues that are served; "
        f"the oldest has waited {lasting(oldest)}.",
    )


def _each(queues: Sequence[QueueHealth], now: datetime) -> str:
    return listed(
        [
            f'"{queue.queue}" ({counted(queue.ready + queue.due, "job")}, '
            f"the oldest for {lasting(_age(queue, now))})"
            for queue in queues
        ]
    )


def _age(queue: QueueHealth, now: datetime) -> timedelta:
    return now - queue.oldest_due_at
