"""Leases: registering, the heartbeat, and what happens when it stops (clauses A3, C4–C10, E4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemill.store.contract import Operation
from tidemill.values.ids import WorkerId
from tidemill.values.leases import BeatReply, Maintained, Registered
from tidemill.values.workers import WorkerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(Operation[Registered]):
    """Make a new worker known, with a lease of `lease` from now.

    Repeating the very same registration while its lease is live is allowed, since the answer to
    the first may have been lost; it renews the lease as a beat would, so that a caller who counts
    from its last call never believes in more lease than there is. Jobs held because nobody knew
    their wire name are released to the claim if this worker knows it, up to 10,000 of them; the
    next rounds of upkeep release the rest.

    Raises:
        WorkerIdUsed: the id lapsed, was deregistered, or belongs to a worker that presents itself
            otherwise (clause A3). Nothing was written.
    """

    info: WorkerInfo
    lease: timedelta


@dataclass(frozen=True, slots=True)
class Deregister(Operation[None]):
    """End a worker in order, for good. What still runs under it is swept as lapsed.

    It is listed no more, its id is never used again, and an unknown id is no error.
    """

    worker: WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat(Operation[BeatReply]):
    """Renew a live lease to `lease` from now. A lease is dead at its expiry instant."""

    worker: WorkerId
    lease: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintain(Operation[Maintained]):
    """One bounded round of upkeep. Any node may run it at any time, also twice at once.

    * Running jobs whose worker is not live or not there end as lapsed attempts (C6).
    * Jobs past their `not_after` that were never started become cancelled (F1).
    * Held jobs whose reason is gone are released to the claim (J3).
    * What follows from transactional completions that nobody has settled is done (D8).

    Where one writer can block all heartbeats, a lease that expired does not count as lapsed within
    its own length of such a block, nor before the sweeping process has itself been able to write
    for so long (C10). `lease` is the sweeping node's own: its heart is known to write every third
    of it. Each part after the first follows in a transaction of its own: what the answer says of
    the first stands, whatever becomes of them.
    """

    lease: timedelta
    limit: int = 500
