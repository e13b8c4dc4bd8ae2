"""Exchange: report outcomes and claim jobs in one transaction (clauses C1–C3, D1–D7, E4)."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.store.contract import Operation
from tidemill.values.exchange import ClaimRequest, Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange(Operation[Exchanged]):
    """Judge each outcome by the fence, do what follows from it, then claim for the free slots.

    An outcome applies iff its job is running, its worker is `worker`, its attempt is the reported
    one and the worker's lease is live; the lease is read once per exchange. What is rejected as
    stale changes nothing but an append-only record, which follows in a transaction of its own. Due
    scheduled jobs of the asked queues become ready before the claim, up to 1,000 of each queue,
    longest due first; and at most 1,000 jobs that may not run are set aside. Where either bound
    was met, `next_due` is zero.
    """

    worker: WorkerId
    outcomes: tuple[Outcome, ...] = ()
    claim: ClaimRequest | None = None
    list_running: bool = False
