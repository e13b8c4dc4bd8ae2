"""What a store answers about leases: registration, heartbeat, and the sweep of what lapsed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.states import JobState
from tidemill.values.workers import RunningPair


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a registration."""

    worker: WorkerId
    now: datetime


@dataclass(frozen=True, slots=True)
class BeatReply:
    """The answer to a heartbeat.

    `live` is false when the lease had ended or the worker is not known: nothing was renewed, and
    nothing ever will be for this id. `running` is what runs under the worker (clause C8), with the
    actor of a cancel request where there is one.
    """

    worker: WorkerId
    now: datetime
    live: bool
    running: tuple[RunningPair, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapsed:
    """An attempt that the sweep ended, and what became of its job."""

    job_id: JobId
    attempt: Attempt
    worker: WorkerId
    state: JobState
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Maintained:
    """What one round of maintenance did; `more` says that a batch was full.

    `settled` counts the transactional completions whose consequences it wrote (clause D8).
    """

    lapsed: tuple[Lapsed, ...] = ()
    expired: int = 0
    unheld: int = 0
    settled: int = 0
    more: bool = False
