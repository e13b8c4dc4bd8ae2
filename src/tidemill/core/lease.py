"""The lease: when it is live, and whose registration may be repeated (clauses A3, C4, C5)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tidemill.errors import WorkerIdUsed
from tidemill.values.workers import WorkerInfo

LAPSED_WORKERS_AT_ONCE: Final = 100
"""The most workers that one round of upkeep marks as lapsed; their jobs do not wait for it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What a store keeps of one: when it expires, and whether it was ended before or since."""

    expires_at: datetime
    lapsed: bool
    deregistered: bool

    def is_live(self, now: datetime) -> bool:
        """Whether it lives: it is dead at its expiry instant, and once ended it stays so."""
        return not self.lapsed and not self.deregistered and now < self.expires_at


def require_repeat(info: WorkerInfo, there: WorkerInfo, lease: Lease, now: datetime) -> None:
    """Refuse a registration under a known id, unless it repeats the one that is there.

    Raises:
        WorkerIdUsed: the id lapsed, was deregistered, or belongs to a worker that presents itself
            otherwise.
    """
    if lease.deregistered:
        why = "it was deregistered"
    elif not lease.is_live(now):
        why = "its lease lapsed"
    elif there != info:
        why = "a worker that presents itself otherwise has it"
    else:
        return
    message = f"Worker id {info.id} was used before: {why}. Register with a fresh id."
    raise WorkerIdUsed(message)
