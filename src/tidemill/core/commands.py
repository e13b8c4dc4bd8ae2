"""What a node may ask of the shell."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.values.endings import CancelReason
from tidemill.values.exchange import ClaimRequest
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.leases import Lapsed
from tidemill.values.notes import Note
from tidemill.values.outcomes import Outcome, Reported
from tidemill.values.workers import Pair


@dataclass(frozen=True, slots=True)
class DoExchange:
    """Perform the exchange; answer with exactly one ExchangeAnswered or ExchangeFailed."""

    worker: WorkerId
    outcomes: tuple[Outcome, ...] = ()
    claim: ClaimRequest | None = None
    list_running: bool = False


@dataclass(frozen=True, slots=True)
class DoTakeNotes:
    """Have the notes written down; answer with exactly one NotesAnswered or NotesFailed."""

    worker: WorkerId
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class DoMaintain:
    """Perform a round of maintenance; answer with exactly one MaintainAnswered."""


@dataclass(frozen=True, slots=True)
class Execute:
    """Run the handler of this attempt; answer with exactly one Finished, when it really ended."""

    job: Claimed


@dataclass(frozen=True, slots=True)
class CancelHandler:
    """Ask the handler of this attempt to stop, and tell it why. It may have ended already.

    `actor` is who asked for a cancel.
    """

    worker: WorkerId
    pair: Pair
    reason: CancelReason
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send Woken at this instant. Replaces the wish before it."""

    at: float


@dataclass(frozen=True, slots=True)
class RegisterAnew:
    """Have the pulse give up this worker's lease and register a fresh worker.

    The store answered that the lease is dead, or no heartbeat was answered in time, or the store
    handed out an attempt that this worker has seen before (the database went back in time).
    """

    worker: WorkerId
    why: str


@dataclass(frozen=True, slots=True)
class Drained:
    """Everything ended and is recorded (or was given up, as told): the worker may deregister."""

    unreported: int


@dataclass(frozen=True, slots=True)
class NoticeStale:
    """Log a report that the fence rejected."""

    worker: WorkerId
    reported: Reported


@dataclass(frozen=True, slots=True)
class NoticeLapsed:
    """Log an attempt that this node's sweep ended."""

    lapsed: Lapsed


@dataclass(frozen=True, slots=True)
class NoticeReleased:
    """Log that an attempt nobody here holds was given back (clause C8)."""

    worker: WorkerId
    pair: Pair


@dataclass(frozen=True, slots=True)
class NoticeDropped:
    """Log that the store refuses even the barest record of an outcome, to be offered again."""

    worker: WorkerId
    pair: Pair
    why: str


@dataclass(frozen=True, slots=True)
class NoticeDegraded:
    """Log that the store does not answer, once until it does again."""

    why: str


@dataclass(frozen=True, slots=True)
class NoticeRecovered:
    """Log that the store answers again."""


Notice = (
    NoticeStale | NoticeLapsed | NoticeReleased | NoticeDropped | NoticeDegraded | NoticeRecovered
)
Command = (
    DoExchange
    | DoTakeNotes
    | DoMaintain
    | Execute
    | CancelHandler
    | WakeAt
    | RegisterAnew
    | Drained
    | Notice
)
