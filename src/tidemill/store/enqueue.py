"""Enqueue: storing new jobs (clauses A2, F1–F5)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.store.contract import Operation
from tidemill.values.jobs import Enqueued, NewJob


@dataclass(frozen=True, slots=True)
class Enqueue(Operation[tuple[Enqueued, ...]]):
    """Store all of `jobs`, or none. Answers are in the order of the request.

    A job whose idempotency key an active job of the same tenant carries is not stored: its answer
    is that job's id, `deduplicated`. A job whose id is already stored with the same content is not
    stored again: its answer is `repeated`.

    Raises:
        BoundExceeded, InvalidValue: a job the store cannot hold.
        ParentsNotSupported: a job names parents.
        JobIdConflict: a job's id is taken by other content.
    """

    jobs: tuple[NewJob, ...]
