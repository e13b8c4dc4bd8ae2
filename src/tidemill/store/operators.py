"""Operator actions: audited, named, repeatable (clauses G1, G2, G4, L1).

Every action carries an actor and an id made by the client: the same id again changes nothing and
answers what the first one answered. An id that was given to another action, of another kind or on
something else, is refused with `ActionIdReused`, and an actor that no store can write with
`InvalidValue`. A job whose row another transaction keeps locked is answered `busy`, and never keeps
the action from the others.

`kind` is the word for the action in the audit, `targets` is what it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemill.core.actions import job_target, queue_target
from tidemill.store.contract import Operation
from tidemill.values.ids import ActionId, JobId
from tidemill.values.operators import ActionResult, QueueResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(Operation[tuple[ActionResult, ...]]):
    """Cancel jobs: at once if they have not started, by request if they run.

    `done` (now cancelled), `requested` (it runs; asking twice is fine), `unchanged` (terminal) or
    `not-found`, per job and in order.
    """

    kind: ClassVar[str] = "cancel"

    job_ids: tuple[JobId, ...]
    actor: str
    action: ActionId

    @property
    def targets(self) -> tuple[str, ...]:
        """What it names, in order."""
        return tuple(job_target(job_id) for job_id in self.job_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue(Operation[tuple[ActionResult, ...]]):
    """Make dead, quarantined or cancelled jobs ready again.

    Same id; the attempt keeps climbing; the budget is fresh; it is due now; a cancel request and
    an expiry are cleared (the job would expire again at once otherwise); `done`, `unchanged` (any
    other state), `key-held` (another active job carries the key) or `not-found`.
    """

    kind: ClassVar[str] = "requeue"

    job_ids: tuple[JobId, ...]
    actor: str
    action: ActionId

    @property
    def targets(self) -> tuple[str, ...]:
        """What it names, in order."""
        return tuple(job_target(job_id) for job_id in self.job_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun(Operation[ActionResult]):
    """Enqueue a new job, due now, with the content of a terminal one, linked by `rerun_of`.

    `done` with `other` set to `new_id`, `unchanged` (not terminal) or `not-found`.
    The copy carries no idempotency key and no expiry: both spoke of the first request.

    Raises:
        JobIdConflict: `new_id` is taken.
    """

    kind: ClassVar[str] = "rerun"

    job_id: JobId
    new_id: JobId
    actor: str
    action: ActionId

    @property
    def targets(self) -> tuple[str, ...]:
        """What it names; not the new id, since whoever asks again may have made another."""
        return (job_target(self.job_id),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNow(Operation[tuple[ActionResult, ...]]):
    """Make scheduled jobs ready and due now; spends no budget. Others are `unchanged`."""

    kind: ClassVar[str] = "run-now"

    job_ids: tuple[JobId, ...]
    actor: str
    action: ActionId

    @property
    def targets(self) -> tuple[str, ...]:
        """What it names, in order."""
        return tuple(job_target(job_id) for job_id in self.job_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseQueue(Operation[QueueResult]):
    """Pause a queue, or with `paused=False` resume it: `done`, or `unchanged` if it was so.

    Nothing is claimed from a paused queue, and it says no next due instant; what runs goes on,
    and jobs may be enqueued. A queue may be paused before it has jobs.
    """

    kind: ClassVar[str] = "pause-queue"

    queue: str
    paused: bool
    actor: str
    action: ActionId

    @property
    def targets(self) -> tuple[str, ...]:
        """What it names, and what it makes of it."""
        return (queue_target(self.queue, paused=self.paused),)
