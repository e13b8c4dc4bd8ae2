"""The node: one worker's decisions, as a machine of `step(event) -> commands`.

The shell tells it what happened and carries out what it asks; the simulator does the same in
virtual time. It never awaits, reads a clock, or draws a number. One exchange is in flight at a
time: what finishes meanwhile goes out together with the next one, so batches form by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from tidemill.core.attempts import Attempts
from tidemill.core.batching import Batching
from tidemill.core.commands import (
    Command,
    DoExchange,
    DoMaintain,
    Drained,
    NoticeDegraded,
    NoticeDropped,
    NoticeLapsed,
    NoticeRecovered,
    NoticeReleased,
    NoticeStale,
    RegisterAnew,
    WakeAt,
)
from tidemill.core.dispatch import DispatchPolicy
from tidemill.core.drain import Drain, Phase
from tidemill.core.events import (
    CompletionBegun,
    DrainAsked,
    Event,
    ExchangeAnswered,
    ExchangeFailed,
    Finished,
    Hinted,
    HurryAsked,
    LeaseGained,
    LeaseLost,
    Listed,
    MaintainAnswered,
    Woken,
)
from tidemill.core.holdings import Holdings, Pending
from tidemill.core.journeys import Journeys
from tidemill.core.pacing import Form, Pacing
from tidemill.core.reconcile import Sightings
from tidemill.core.upkeep import Upkeep
from tidemill.values.endings import CancelReason
from tidemill.values.exchange import ClaimRequest, Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.leases import Maintained
from tidemill.values.outcomes import Answer, Reported
from tidemill.values.states import JobState
from tidemill.values.workers import Pair, RunningPair

_NEVER = float("inf")
_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What a node is told once. Times are seconds; they shape latency, never correctness.

    Attributes:
        slots: attempts that may run at once.
        wire_names: the names it knows; None claims every name (unknown ones are quarantined).
        claim_batch, outcome_batch: the most in one exchange.
        poll_interval: the longest wait between polls of an idle node.
        listen_interval: between exchanges of a node without a free slot, to hear cancel requests.
        maintenance_interval: between two rounds of upkeep.
        fault_delay, fault_delay_cap: the first and the longest wait after a fault.
        busy_delay: before an outcome whose row was locked is offered again; it doubles each time,
            up to `fault_delay_cap`.
        patience: how long a handler may ignore a shutdown before its job is given back.
        keep_tracebacks: report the traceback of a failed attempt.
        flush: how long the last outcomes are offered before they are given up.
    """

    slots: int
    wire_names: frozenset[str] | None
    claim_batch: int = 500
    outcome_batch: int = 500
    poll_interval: float = 1.0
    listen_interval: float = 1.0
    maintenance_interval: float = 1.0
    fault_delay: float = 0.1
    fault_delay_cap: float = 5.0
    busy_delay: float = 0.05
    patience: float = 5.0
    flush: float = 10.0
    keep_tracebacks: bool = True


class Node:
    """One worker's decisions. `step` is its only verb."""

    def __init__(self, options: NodeOptions, policy: DispatchPolicy) -> None:
        """Start without a lease: nothing is claimed until one is gained."""
        self._options = options
        self._policy = policy
        self._holdings = Holdings(options.slots)
        self._attempts = Attempts(self._holdings, keep_tracebacks=options.keep_tracebacks)
        self._pacing = Pacing(
            options.poll_interval,
            options.listen_interval,
            options.fault_delay,
            options.fault_delay_cap,
        )
        self._sightings = Sightings()
        self._drain = Drain(options.patience, options.flush)
        self._worker: WorkerId | None = None
        self._lease_until = _NEVER
        self._journeys = Journeys()
        self._batching = Batching(options.outcome_batch)
        self._upkeep = Upkeep(options.maintenance_interval)
        self._wake_at = _NEVER
        self._now = -_NEVER

    @property
    def busy_slots(self) -> int:
        """Handlers that have not ended yet."""
        return len(self._holdings.running)

    @property
    def draining(self) -> bool:
        """Whether no further claim will be made."""
        return self._drain.started

    def step(self, *events: Event) -> list[Command]:
        """Take the events of one turn; answer what is to be done, in order.

        Events are dated by several threads: one that is dated before an earlier one counts as of
        the same instant. Nothing is asked for after Drained.
        """
        commands: list[Command] = []
        if self._drain.ended:
            return commands
        self._renew(events)
        for event in events:
            self._now = max(self._now, event.at)
            self._take(event, self._now, commands)
        self._decide(self._now, commands)
        return commands

    def _decide(self, at: float, commands: list[Command]) -> None:
        self._watch_lease(at, commands)
        self._attempts.time_out(at, commands)
        self._advance_drain(at, commands)
        if not self._drain.ended:
            self._send(at, commands)
            self._maintain(at, commands)
            self._ask_to_be_woken(at, commands)

    def _take(self, event: Event, at: float, commands: list[Command]) -> None:
        match event:
            case LeaseGained():
                self._lease_gained(at, event)
            case LeaseLost(_, worker):
                self._lease_lost(worker, commands)
            case Listed():
                self._listed(at, event, commands)
            case Hinted():
                self._pacing.poll_now(at)
            case ExchangeAnswered(_, reply):
                self._answered(at, reply, commands)
            case ExchangeFailed():
                self._failed(at, event, commands)
            case MaintainAnswered(_, reply):
                self._maintained(at, reply, commands)
            case CompletionBegun() | Finished():
                self._attempts.hear(event)
            case DrainAsked(_, grace):
                self._drain.ask(at, grace)
            case HurryAsked():
                self._drain.hurry(at)
            case Woken():
                self._wake_at = _NEVER
            case _:
                assert_never(event)

    # The lease

    def _lease_gained(self, at: float, event: LeaseGained) -> None:
        self._worker = event.worker
        self._lease_until = event.until
        self._sightings.forget()
        self._holdings.dropped.clear()
        self._journeys.unsure = False
        self._pacing.poll_now(at)

    def _listed(self, at: float, event: Listed, commands: list[Command]) -> None:
        if event.worker == self._worker:
            self._lease_until = max(self._lease_until, event.until)
            self._reconcile(at, event.running, event.sent_at, commands)

    def _renew(self, events: tuple[Event, ...]) -> None:
        """A beat answered before this turn counts for the whole turn, wherever it stands in it."""
        for event in events:
            if isinstance(event, Listed) and event.worker == self._worker:
                self._lease_until = event.until

    def _watch_lease(self, at: float, commands: list[Command]) -> None:
        """The heart may be stuck in a call: the node looks at the lease's end by itself."""
        worker = self._worker
        if worker is not None and at >= self._lease_until:
            self._distrust(worker, "no heartbeat was answered in time", commands)

    def _distrust(self, worker: WorkerId, why: str, commands: list[Command]) -> None:
        self._lease_lost(worker, commands)
        commands.append(RegisterAnew(worker, why))

    def _lease_lost(self, worker: WorkerId, commands: list[Command]) -> None:
        if worker == self._worker:
            self._worker = None
        self._attempts.lose(worker, commands)

    def _reconcile(
        self, at: float, listed: tuple[RunningPair, ...], sent_at: float, commands: list[Command]
    ) -> None:
        worker = self._worker
        if worker is None:
            return
        pairs = {entry.pair for entry in listed}
        unknown = pairs - self._holdings.known_pairs(worker)
        for pair in self._sightings.review(
            unknown, at=at, sent_at=sent_at, journey=self._journeys.current
        ):
            ended = self._holdings.dropped.pop((worker, pair), None)
            if ended is not None:  # it ran to its end: given back, it would be run for ever (E2)
                self._holdings.pending.append(self._batching.lightest(worker, ended))
            else:
                self._attempts.give_back(worker, pair)
                commands.append(NoticeReleased(worker, pair))
        for entry in listed:
            if entry.cancel_requested is not None:
                self._cancel(worker, entry, commands)
        for running in self._holdings.active():
            missed = running.pair not in pairs and running.since <= sent_at
            lost = missed and not running.completing
            if running.worker == worker and lost:
                self._attempts.stop(worker, running.pair, CancelReason.LEASE_LOST, commands)

    def _cancel(self, worker: WorkerId, asked: RunningPair, commands: list[Command]) -> None:
        actor, reason = asked.cancel_requested, CancelReason.OPERATOR
        self._attempts.stop(worker, asked.pair, reason, commands, actor)

    # The exchange

    def _send(self, at: float, commands: list[Command]) -> None:
        if self._journeys.sent is not None or at < self._pacing.resume_at:
            return
        form = self._pacing.form
        alone = form is Form.CLAIM and self._may_claim() and self._pacing.poll_at <= at
        loaded = () if alone else self._holdings.load(at, self._batching.limit)
        worker = loaded[0].worker if loaded else self._worker
        mixed = form is Form.FUSED and worker == self._worker
        fused = mixed and bool(loaded) and not loaded[0].alone
        due = not loaded and self._next_poll_at() <= at
        claim = self._claim() if self._may_claim() and (fused or due) else None
        if worker is None or not (loaded or due):
            return
        self._pacing.sent(poll=due or claim is not None)
        outcomes = tuple(entry.outcome for entry in loaded)
        exchange = DoExchange(worker, outcomes, claim, list_running=self._journeys.unsure)
        commands.append(self._journeys.begin(at, exchange))

    def _may_claim(self) -> bool:
        return self._worker is not None and not self._drain.started and self._holdings.free > 0

    def _next_poll_at(self) -> float:
        """A worker without a free slot listens all the same: answers bring cancel requests (G2)."""
        if self._may_claim():
            return self._pacing.poll_at
        running = (entry.worker == self._worker for entry in self._holdings.active())
        return self._pacing.listen_at if any(running) else _NEVER

    def _claim(self) -> ClaimRequest:
        limit = min(self._holdings.free, self._options.claim_batch)
        self._holdings.reserved = limit
        return ClaimRequest(
            shares=self._policy.share(limit), limit=limit, wire_names=self._options.wire_names
        )

    def _answered(self, at: float, reply: Exchanged, commands: list[Command]) -> None:
        self._watch_lease(at, commands)
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
        if reply.worker != self._worker:
            return
        if not reply.live:
            self._distrust(reply.worker, "the store answered that its lease is dead", commands)
            return
        for asked in reply.cancels:
            self._cancel(reply.worker, asked, commands)
        if reply.running is not None:
            self._journeys.unsure = False
            self._reconcile(at, reply.running, self._journeys.sent_at, commands)
        self._take_up(at, reply, commands)

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

    def _take_up(self, at: float, reply: Exchanged, commands: list[Command]) -> None:
        for job in reply.claimed:
            if self._holdings.has_seen(Pair(job.id, job.attempt)):
                why = f"it was handed attempt {job.attempt} of job {job.id} twice"
                self._distrust(reply.worker, why, commands)
                return
        for job in reply.claimed:
            if self._drain.started:
                self._attempts.give_back(reply.worker, Pair(job.id, job.attempt))
            else:
                commands.append(self._attempts.start(at, job))

    def _failed(self, at: float, event: ExchangeFailed, commands: list[Command]) -> None:
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

    def _lighten(
        self, at: float, entry: Pending, why: str, commands: list[Command]
    ) -> tuple[Pending, ...]:
        lighter = self._batching.lighten(entry)
        if lighter is None:
            self._holdings.dropped[entry.worker, entry.pair] = entry.outcome
            commands.append(NoticeDropped(entry.worker, entry.pair, why))
            return ()
        if lighter is entry:
            lighter.not_before = at + self._options.fault_delay_cap
        return (lighter,)

    # Upkeep

    def _maintain(self, at: float, commands: list[Command]) -> None:
        idle = self._worker is None or self._drain.started
        if not idle and self._upkeep.begin(at):
            commands.append(DoMaintain())

    def _maintained(self, at: float, reply: Maintained | None, commands: list[Command]) -> None:
        self._upkeep.over(at, reply)
        if reply is None:
            return
        self._batching.answered(0)
        commands.extend(NoticeLapsed(lapsed) for lapsed in reply.lapsed)
        if reply.unheld or any(lapsed.state is JobState.READY for lapsed in reply.lapsed):
            self._pacing.poll_now(at)

    # The end

    def _advance_drain(self, at: float, commands: list[Command]) -> None:
        entered = self._drain.advance(at)
        if entered is Phase.CANCELLING:
            self._attempts.stop_all(commands)
        elif entered is Phase.FLUSHING:
            self._attempts.abandon()
        if entered is Phase.ENDED or (self._drain.started and self._holdings.settled):
            self._drain.end()
            unreported = len(self._holdings.pending) + len(self._holdings.travelling)
            commands.append(Drained(unreported))

    def _ask_to_be_woken(self, at: float, commands: list[Command]) -> None:
        instants = [self._drain.over_at, self._attempts.next_deadline]
        if self._worker is not None:
            instants.append(self._lease_until)
            if not self._drain.started:
                instants.append(self._upkeep.next_at)
        if self._journeys.sent is None:
            instants.append(self._next_exchange_at())
        wake_at = min(instants)
        if wake_at != self._wake_at and wake_at < _NEVER:
            self._wake_at = wake_at
            commands.append(WakeAt(max(wake_at, at)))

    def _next_exchange_at(self) -> float:
        wishes = [entry.not_before for entry in self._holdings.pending]
        wishes.append(self._next_poll_at())
        return max(min(wishes, default=_NEVER), self._pacing.resume_at)
