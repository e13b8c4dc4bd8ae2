"""The exchange: when it is due, what it carries, and what becomes of what it carried (D4–D6, M3).

One is in flight at a time: what finishes meanwhile goes out together with the next one, so batches
form by themselves.
"""

from __future__ import annotations

from tidemill.core.batching import Batching
from tidemill.core.commands import (
    Command,
    DoExchange,
    NoticeDegraded,
    NoticeDropped,
    NoticeRecovered,
    NoticeStale,
)
from tidemill.core.dispatch import DispatchPolicy
from tidemill.core.events import ExchangeFailed
from tidemill.core.holdings import Holdings, Pending
from tidemill.core.journeys import Journeys
from tidemill.core.options import NodeOptions
from tidemill.core.pacing import Form, Pacing
from tidemill.values.exchange import ClaimRequest, Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.outcomes import Answer, Outcome, Reported

_NEVER = float("inf")
_DOUBLINGS = 30


class Exchanges:
    """One node's. It puts outcomes on their way, and takes them back where they must go again."""

    def __init__(self, options: NodeOptions, policy: DispatchPolicy, holdings: Holdings) -> None:
        """Carry what `holdings` has, and claim for its free slots."""
        self._options = options
        self._policy = policy
        self._holdings = holdings
        self._pacing = Pacing(
            options.poll_interval,
            options.listen_interval,
            options.fault_delay,
            options.fault_delay_cap,
        )
        self._batching = Batching(options.outcome_batch)
        self._journeys = Journeys()

    @property
    def journey(self) -> int | None:
        """The number of the exchange in flight; None when there is none."""
        return self._journeys.current

    @property
    def sent_at(self) -> float:
        """When the last exchange was sent."""
        return self._journeys.sent_at

    def poll_now(self, at: float) -> None:
        """Something may be due, or asked for."""
        self._pacing.poll_now(at)

    def listed(self) -> None:
        """What runs under the worker is known again, whatever answers were lost."""
        self._journeys.unsure = False

    def heard(self) -> None:
        """The store has answered something else."""
        self._batching.answered(0)

    def report_least(self, worker: WorkerId, outcome: Outcome) -> None:
        """Report the least that can be recorded of an outcome that was dropped."""
        self._holdings.pending.append(self._batching.lightest(worker, outcome))

    def send(self, at: float, worker: WorkerId | None, *, claiming: bool) -> DoExchange | None:
        """The exchange that is due now; it is then on its way.

        Args:
            at: now.
            worker: whose lease is live; None while there is none.
            claiming: whether it may take up more jobs.
        """
        if self._journeys.sent is not None or at < self._pacing.resume_at:
            return None
        claimer = worker if claiming else None
        form = self._pacing.form
        alone = form is Form.CLAIM and self._has_room(claimer) and self._pacing.poll_at <= at
        loaded = () if alone else self._holdings.load(at, self._batching.limit)
        sender = loaded[0].worker if loaded else worker
        mixed = form is Form.FUSED and sender == worker
        fused = mixed and bool(loaded) and not loaded[0].alone
        free = self._has_room(claimer)  # what travels frees its slots for the claim beside it
        due = not loaded and self._next_poll_at(worker, free=free) <= at
        claim = self._claim() if free and (fused or due) else None
        if sender is None or not (loaded or due):
            return None
        self._pacing.sent(poll=due or claim is not None)
        outcomes = tuple(entry.outcome for entry in loaded)
        exchange = DoExchange(sender, outcomes, claim, list_running=self._journeys.unsure)
        return self._journeys.begin(at, exchange)

    def next_at(self, worker: WorkerId | None, *, claiming: bool) -> float:
        """When the next one is due; infinity while one is in flight."""
        if self._journeys.sent is not None:
            return _NEVER
        wishes = [entry.not_before for entry in self._holdings.pending]
        free = self._has_room(worker if claiming else None)
        wishes.append(self._next_poll_at(worker, free=free))
        return max(min(wishes, default=_NEVER), self._pacing.resume_at)

    def answered(self, at: float, reply: Exchanged, commands: list[Command]) -> None:
        """The store has answered: what it recorded is done with, and the rest is offered again."""
        claim = self._journeys.over().claim
        travelled = self._holdings.unload()
        polled = claim is not None or not travelled
        if self._pacing.degraded:
            commands.append(NoticeRecovered())
        full = claim is not None and len(reply.claimed) >= claim.limit
        if claim is not None:
            self._pacing.claimed()
        self._pacing.answered(at, polled=polled, full=full, next_due=reply.next_due)
        self._batching.answered(len(travelled))
        for entry, reported in zip(travelled, reply.reported, strict=True):
            self._settle(at, entry, reported, commands)

    def failed(self, at: float, event: ExchangeFailed, commands: list[Command]) -> None:
        """There was no answer, or the request itself was refused."""
        alone = self._journeys.over().claim is None
        travelled = self._holdings.unload()
        self._journeys.unsure = self._journeys.unsure or event.unknown
        if alone and travelled:
            self._batching.unanswered(len(travelled))
        if event.refused and travelled:
            if alone and len(travelled) == 1:
                travelled = self._lighten(at, travelled[0], event.why, commands)
            self._holdings.put_back(travelled)
            self._pacing.refused(at)
            return
        if not self._pacing.degraded:
            commands.append(NoticeDegraded(event.why))
        self._holdings.put_back(travelled)
        self._pacing.failed(at, outcomes=bool(self._holdings.pending))

    def _has_room(self, claimer: WorkerId | None) -> bool:
        return claimer is not None and self._holdings.free > 0

    def _next_poll_at(self, worker: WorkerId | None, *, free: bool) -> float:
        """A worker without a free slot listens all the same: answers bring cancel requests (G2)."""
        if free:
            return self._pacing.poll_at
        running = (entry.worker == worker for entry in self._holdings.active())
        return self._pacing.listen_at if any(running) else _NEVER

    def _claim(self) -> ClaimRequest:
        limit = min(self._holdings.free, self._options.claim_batch)
        self._holdings.reserved = limit
        return ClaimRequest(
            shares=self._policy.share(limit), limit=limit, wire_names=self._options.wire_names
        )

    def _settle(
        self, at: float, entry: Pending, reported: Reported, commands: list[Command]
    ) -> None:
        if reported.answer is Answer.BUSY:
            entry.alone, entry.not_before = True, at + self._busy_delay(entry)
            entry.busy += 1
            self._holdings.pending.append(entry)
        elif reported.answer is Answer.STALE:
            commands.append(NoticeStale(entry.worker, reported))

    def _busy_delay(self, entry: Pending) -> float:
        """Ever longer: a handler may have left its transaction open for good."""
        return min(
            self._options.busy_delay * 2.0 ** min(entry.busy, _DOUBLINGS),
            self._options.fault_delay_cap,
        )

    def _lighten(
        self, at: float, entry: Pending, why: str, commands: list[Command]
    ) -> tuple[Pending, ...]:
        lighter = self._batching.lighten(entry, why)
        if lighter is None:
            self._holdings.dropped[entry.worker, entry.pair] = entry.outcome
            commands.append(NoticeDropped(entry.worker, entry.pair, why))
            return ()
        if lighter is entry:
            lighter.not_before = at + self._options.fault_delay_cap
        return (lighter,)
