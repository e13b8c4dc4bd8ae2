"""What a worker asks for in an exchange, and what it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import Reported
from tidemill.values.workers import RunningPair


@dataclass(frozen=True, slots=True)
class Share:
    """At most `limit` jobs of `queue` in the first pass of a claim."""

    queue: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """What a worker asks for.

    Attributes:
        shares: how the slots are divided between queues, in the order to be tried. Each queue is
            first given at most its share; if room is left, the queues are gone over again.
        limit: the most jobs to claim, at least 1.
        wire_names: the names this worker knows; ready jobs of other names are set aside as held.
            None claims whatever is there (the worker quarantines what it does not know).
    """

    shares: tuple[Share, ...]
    limit: int
    wire_names: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The answer to an exchange.

    Attributes:
        worker: whose exchange it was.
        now: the store's time.
        live: whether the worker's lease is live; if not, nothing was claimed.
        reported: one answer per outcome, in order.
        claimed: the jobs claimed, in the order to be run.
        next_due: how long until the next scheduled job of the asked queues is due; None if
            there is none, or nothing was asked.
        running: what runs under this worker, this claim excluded; None unless asked.
        cancels: the attempts of this worker whose cancel is requested, always (clause G2).
    """

    worker: WorkerId
    now: datetime
    live: bool
    reported: tuple[Reported, ...] = ()
    claimed: tuple[Claimed, ...] = ()
    next_due: timedelta | None = None
    running: tuple[RunningPair, ...] | None = None
    cancels: tuple[RunningPair, ...] = ()
