"""What a claim does with a ready row, and the bounds of one claim (clauses C2, E4, F1, J3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final

from tidemill.core.instants import has_expired
from tidemill.core.poison import is_poison
from tidemill.values.exchange import ClaimRequest
from tidemill.values.ids import Attempt
from tidemill.values.retry import Retry

MOST_ACTIVATED: Final = 1_000
"""Due jobs of a queue that one claim makes ready, longest due first; the next claim goes on."""

MOST_SET_ASIDE: Final = 1_000
"""Jobs that one claim sets aside before it answers with what it has; the next claim goes on."""


class Fate(Enum):
    """What a claim does with a ready row."""

    START = auto()
    HOLD = auto()
    EXPIRE = auto()
    BURY = auto()
    QUARANTINE = auto()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ready row, as far as its fate depends on it.

    Attributes:
        wire_name: None where it cannot be read.
        lapses: those since the last requeue.
        readable: whether all of the row can be read. What cannot is not to be trusted here.
    """

    wire_name: str | None
    attempt: Attempt
    lapses: int
    retry: Retry
    not_after: datetime | None
    readable: bool = True


def fate(job: Candidate, known: frozenset[str] | None, now: datetime) -> Fate:
    """What to do with a job that is next in line; `known` names are None where all are claimed.

    A row that cannot be read is left to a worker that knows its name: another version of the
    program may have written what this one does not understand.
    """
    foreign = known is not None and job.wire_name not in known
    if not job.readable:
        return Fate.HOLD if foreign and job.wire_name is not None else Fate.QUARANTINE
    if has_expired(job.attempt, job.not_after, now):
        return Fate.EXPIRE
    if is_poison(job.retry, job.lapses):
        return Fate.BURY
    return Fate.HOLD if foreign else Fate.START


def queues_of(request: ClaimRequest) -> tuple[str, ...]:
    """The queues a claim names, each once, in order."""
    return tuple(dict.fromkeys(share.queue for share in request.shares))
