"""What the shell may tell a node. Instants are seconds on the node's own monotonic clock."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.values.endings import Ending
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.leases import Maintained
from tidemill.values.notes import LogLine, Progress
from tidemill.values.outcomes import Reported
from tidemill.values.workers import Pair, RunningPair


@dataclass(frozen=True, slots=True)
class LeaseGained:
    """The pulse registered a worker: claims may start under its id.

    `until` is the instant up to which the lease can be trusted unless it is renewed (clause C7).
    """

    at: float
    worker: WorkerId
    until: float


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The worker's lease ended, or can no longer be trusted: its handlers must stop."""

    at: float
    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Listed:
    """A heartbeat's answer: what the store lists as running under the worker.

    `sent_at` is when the beat was sent: the list may be as old as that. `until` is the instant up
    to which the renewed lease can be trusted.
    """

    at: float
    sent_at: float
    worker: WorkerId
    running: tuple[RunningPair, ...]
    until: float


@dataclass(frozen=True, slots=True)
class Woken:
    """The instant that the node asked to be woken at has come."""

    at: float


@dataclass(frozen=True, slots=True)
class Hinted:
    """Something may be due. Never carries correctness (promise P7)."""

    at: float


@dataclass(frozen=True, slots=True)
class ExchangeAnswered:
    """The exchange in flight was answered."""

    at: float
    reply: Exchanged


@dataclass(frozen=True, slots=True)
class ExchangeFailed:
    """The exchange in flight had no answer.

    `refused`: the store refuses the request itself; asking again will not help.
    `unknown`: it may have been committed. Otherwise nothing was committed.
    """

    at: float
    refused: bool
    unknown: bool
    why: str


@dataclass(frozen=True, slots=True)
class MaintainAnswered:
    """The round of maintenance in flight ended; None when it failed."""

    at: float
    reply: Maintained | None


@dataclass(frozen=True, slots=True)
class Noted:
    """A handler said something of its attempt while it runs (clause D2)."""

    at: float
    worker: WorkerId
    pair: Pair
    progress: Progress | None
    lines: tuple[LogLine, ...]


@dataclass(frozen=True, slots=True)
class NotesAnswered:
    """The notes in flight were answered, each of them, in order."""

    at: float
    answers: tuple[Reported, ...]


@dataclass(frozen=True, slots=True)
class NotesFailed:
    """The notes in flight had no answer; `refused`: the store refuses the request itself."""

    at: float
    refused: bool


@dataclass(frozen=True, slots=True)
class CompletionBegun:
    """A handler is about to write the success of its attempt in a transaction of its own (D8)."""

    at: float
    worker: WorkerId
    pair: Pair


@dataclass(frozen=True, slots=True)
class Finished:
    """A handler has really ended."""

    at: float
    worker: WorkerId
    pair: Pair
    ending: Ending


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Stop claiming, let running attempts finish within `grace` seconds, then end."""

    at: float
    grace: float


@dataclass(frozen=True, slots=True)
class HurryAsked:
    """The grace period is over now (a second signal)."""

    at: float


Event = (
    LeaseGained
    | LeaseLost
    | Listed
    | Woken
    | Hinted
    | ExchangeAnswered
    | ExchangeFailed
    | MaintainAnswered
    | Noted
    | NotesAnswered
    | NotesFailed
    | CompletionBegun
    | Finished
    | DrainAsked
    | HurryAsked
)
