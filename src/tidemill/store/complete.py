"""Transactional completion: the success written in the handler's own transaction (clause D8)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.store.contract import Operation
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Reported
from tidemill.values.tags import Tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(Operation[Reported]):
    """Write the success of an attempt, on its job's own row alone.

    It is meant for the handler's transaction, whose lock on the row is the fence until it ends: it
    applies iff the job is running, its worker is `worker` and its attempt is `attempt`. The lease
    is asked for before, on another connection: `IsLeaseLive`. What follows from the success, its
    tags and the jobs that it leaves, is marked on the row, and settled by the next exchange that
    reports the attempt, or by upkeep.

    Answers `applied`; `already-applied` when this attempt was completed before; `stale` with the
    holder, or `gone`.

    Raises:
        BoundExceeded, InvalidValue: a child that the store cannot hold.
    """

    job_id: JobId
    attempt: Attempt
    worker: WorkerId
    output: bytes | None = None
    tags: frozenset[Tag] = frozenset()
    children: tuple[NewJob, ...] = ()


@dataclass(frozen=True, slots=True)
class IsLeaseLive(Operation[bool]):
    """Whether a worker holds a live lease, on the store's clock."""

    worker: WorkerId
