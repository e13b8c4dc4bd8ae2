"""The node: one worker's decisions, as a machine of `step(event) -> commands`.

The shell tells it what happened and carries out what it asks; the simulator does the same in
virtual time. It never awaits, reads a clock, or draws a number. One exchange is in flight at a
time: what finishes meanwhile goes out together with the next one, so batches form by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from tidemill.core.commands import (
    CancelHandler,
    Command,
    DoExchange,
    DoMaintain,
    Drained,
    Execute,
    NoticeDegraded,
    NoticeDropped,
    NoticeLapsed,
    NoticeRecovered,
    NoticeReleased,
    NoticeStale,
    RegisterAnew,
    WakeAt,
)
from tidemill.core.deadlines import Deadlines
from tidemill.core.dispatch import DispatchPolicy
from tidemill.core.drain import Drain, Phase
from tidemill.core.endings import outcome_of
from tidemill.core.events import (
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
from tidemill.core.holdings import Holdings, Key, Pending, Running
from tidemill.core.pacing import Form, Pacing
from tidemill.core.reconcile import Sightings
from tidemill.core.storable import bare
from tidemill.values.endings import CancelReason
from tidemill.values.exchange import ClaimRequest, Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import Answer, Outcome, Reported, Verdict
from tidemill.values.states import JobState
from tidemill.values.workers import Pair, RunningPair

_NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What a node is told once. Times are seconds; they shape latency, never correctness.

    Attributes:
        slots: attempts that may run at once.
        wire_names: the names it knows; None claims every name (unknown ones are quarantined).
        claim_batch, outcome_batch: the most in one exchange.
        poll_interval: the longest wait between polls of an idle node.
        maintenance_interval: between two rounds of upkeep.
        fault_delay, fault_delay_cap: the first and the longest wait after a fault.
        busy_delay: before an outcome whose row was locked is offered again.
        patience: how long a handler may ignore a shutdown before its job is given back.
        flush: how long the last outcomes are offered before they are given up.
    """

    slots: int
    wire_names: frozenset[str] | None
    claim_batch: int = 500
    outcome_batch: int = 500
    poll_interval: float = 1.0
    maintenance_interval: float = 1.0
    fault_delay: float = 0.1
    fault_delay_cap: float = 5.0
    busy_delay: float = 0.05
    patience: float = 5.0
    flush: float = 10.0


class Node:
    """One worker's decisions. `step` is its only verb."""

    def __init__(self, options: NodeOptions, policy: DispatchPolicy) -> None:
        """Start without a lease: nothing is claimed until one is gained."""
        self._options = options
        self._policy = policy
        self._holdings = Holdings(options.slots)
        self._pacing = Pacing(options.poll_interval, options.fault_delay, options.fault_delay_cap)
        self._sightings = Sightings()
        self._drain = Drain(options.patience, options.flush)
        self._worker: WorkerId | None = None
        self._lease_until = _NEVER
        self._sent: DoExchange | None = None
        self._sent_at = 0.0
        self._journeys = 0
        self._unsure = False
        self._outcome_cap = options.outcome_batch
        self._maintaining = False
        self._maintain_at = 0.0
        self._deadlines = Deadlines[Key]()
        self._wake_at = _NEVER

    @property
    def busy_slots(self) -> int:
        """Handlers that have not ended yet."""
        return len(self._holdings.running)

    @property
    def draining(self) -> bool:
        """Whether no further claim will be made."""
        return self._drain.started

    def step(self, event: Event, *others: Event) -> list[Command]:
        """Take one event, or several of one turn; answer what is to be done, in order."""
        commands: list[Command] = []
        self._take(event, commands)
        for event in others:
            self._take(event, commands)
        self._watch_lease(event.at, commands)
        self._keep_deadlines(event.at, commands)
        self._advance_drain(event.at, commands)
        self._send(event.at, commands)
        self._maintain(event.at, commands)
        self._ask_to_be_woken(event.at, commands)
        return commands

    def _take(self, event: Event, commands: list[Command]) -> None:
        match event:
            case LeaseGained():
                self._lease_gained(event)
            case LeaseLost(_, worker):
                self._lease_lost(worker, commands)
            case Listed():
                self._listed(event, commands)
            case Hinted(at):
                self._pacing.poll_now(at)
            case ExchangeAnswered(at, reply):
                self._answered(at, reply, commands)
            case ExchangeFailed():
                self._failed(event, commands)
            case MaintainAnswered():
                self._maintained(event, commands)
            case Finished():
                self._finished(event)
            case DrainAsked(at, grace):
                self._drain.ask(at, grace)
            case HurryAsked(at):
                self._drain.hurry(at)
            case Woken():
                self._wake_at = _NEVER
            case _:
                assert_never(event)

    # The lease

    def _lease_gained(self, event: LeaseGained) -> None:
        self._worker = event.worker
        self._lease_until = event.until
        self._sightings.forget()
        self._pacing.poll_now(event.at)

    def _listed(self, event: Listed, commands: list[Command]) -> None:
        if event.worker == self._worker:
            self._lease_until = event.until
            self._reconcile(event.running, event.sent_at, commands)

    def _watch_lease(self, at: float, commands: list[Command]) -> None:
        """The heart may be stuck in a call: the node looks at the lease's end by itself."""
        worker = self._worker
        if worker is not None and at >= self._lease_until:
            self._lease_lost(worker, commands)
            commands.append(RegisterAnew(worker, "no heartbeat was answered in time"))

    def _lease_lost(self, worker: WorkerId, commands: list[Command]) -> None:
        if worker == self._worker:
            self._worker = None
        for running in self._holdings.active():
            if running.worker == worker and running.reason is not CancelReason.LEASE_LOST:
                self._cancel(running, CancelReason.LEASE_LOST, commands)

    def _reconcile(
        self, listed: tuple[RunningPair, ...], sent_at: float, commands: list[Command]
    ) -> None:
        worker = self._worker
        if worker is None:
            return
        pairs = {entry.pair for entry in listed}
        unknown = pairs - self._holdings.known_pairs(worker)
        for pair in self._sightings.review(unknown, self._journeys if self._sent else None):
            self._give_back(worker, pair)
            commands.append(NoticeReleased(worker, pair))
        for entry in listed:
            if entry.cancel_requested is not None:
                self._ask_to_stop(worker, entry.pair, CancelReason.OPERATOR, commands)
        for running in self._holdings.active():
            lost = running.pair not in pairs and running.since <= sent_at
            if running.worker == worker and lost:
                self._ask_to_stop(worker, running.pair, CancelReason.LEASE_LOST, commands)

    # Handlers

    def _finished(self, event: Finished) -> None:
        key = (event.worker, event.pair)
        running = self._holdings.running.pop(key, None)
        self._deadlines.drop(key)
        if running is None or running.abandoned:
            return
        outcome = outcome_of(event.pair, event.ending, running.reason)
        if outcome is not None:
            self._holdings.pending.append(Pending(event.worker, outcome))

    def _give_back(self, worker: WorkerId, pair: Pair) -> None:
        outcome = Outcome(job_id=pair.job_id, attempt=pair.attempt, verdict=Verdict.RELEASED)
        self._holdings.pending.append(Pending(worker, outcome))

    def _ask_to_stop(
        self, worker: WorkerId, pair: Pair, reason: CancelReason, commands: list[Command]
    ) -> None:
        running = self._holdings.running.get((worker, pair))
        if running is None or running.abandoned:
            return
        if running.reason is None or reason is CancelReason.LEASE_LOST is not running.reason:
            self._cancel(running, reason, commands)

    def _cancel(self, running: Running, reason: CancelReason, commands: list[Command]) -> None:
        running.reason = reason
        commands.append(CancelHandler(running.worker, running.pair, reason))

    def _keep_deadlines(self, at: float, commands: list[Command]) -> None:
        for worker, pair in self._deadlines.due(at):
            self._ask_to_stop(worker, pair, CancelReason.TIMEOUT, commands)

    # The exchange

    def _send(self, at: float, commands: list[Command]) -> None:
        if self._sent is not None or at < self._pacing.resume_at:
            return
        form = self._pacing.form
        alone = form is Form.CLAIM and self._may_claim() and self._pacing.poll_at <= at
        loaded = () if alone else self._holdings.load(at, self._outcome_cap)
        worker = loaded[0].worker if loaded else self._worker
        fused = form is Form.FUSED and bool(loaded) and worker == self._worker
        due = not loaded and self._pacing.poll_at <= at
        claim = self._claim() if self._may_claim() and (fused or due) else None
        if worker is None or not (loaded or claim):
            return
        outcomes = tuple(entry.outcome for entry in loaded)
        self._sent = DoExchange(worker, outcomes, claim, list_running=self._unsure)
        self._sent_at = at
        self._journeys += 1
        commands.append(self._sent)

    def _may_claim(self) -> bool:
        return self._worker is not None and not self._drain.started and self._holdings.free > 0

    def _claim(self) -> ClaimRequest:
        limit = min(self._holdings.free, self._options.claim_batch)
        self._holdings.reserved = limit
        self._pacing.sent()
        return ClaimRequest(
            shares=self._policy.share(limit), limit=limit, wire_names=self._options.wire_names
        )

    def _answered(self, at: float, reply: Exchanged, commands: list[Command]) -> None:
        sent, self._sent = self._sent, None
        travelled = self._holdings.unload()
        if self._pacing.degraded:
            commands.append(NoticeRecovered())
        claim = sent.claim if sent else None
        full = claim is not None and len(reply.claimed) >= claim.limit
        self._pacing.answered(at, claim=claim is not None, full=full, next_due=reply.next_due)
        self._outcome_cap = min(self._outcome_cap * 2, self._options.outcome_batch)
        for entry, reported in zip(travelled, reply.reported, strict=True):
            self._settle(at, entry, reported, commands)
        if reply.worker != self._worker:
            return
        if reply.running is not None:
            self._unsure = False
            self._reconcile(reply.running, self._sent_at, commands)
        self._take_up(at, reply, commands)
        if not reply.live:
            commands.append(RegisterAnew(reply.worker, "the store answered that its lease is dead"))

    def _settle(
        self, at: float, entry: Pending, reported: Reported, commands: list[Command]
    ) -> None:
        if reported.answer is Answer.BUSY:
            entry.alone, entry.not_before = True, at + self._options.busy_delay
            self._holdings.pending.append(entry)
        elif reported.answer is Answer.STALE:
            commands.append(NoticeStale(entry.worker, reported))

    def _take_up(self, at: float, reply: Exchanged, commands: list[Command]) -> None:
        for job in reply.claimed:
            pair = Pair(job.id, job.attempt)
            if self._holdings.has_seen(pair):
                why = f"it was handed attempt {pair.attempt} of job {pair.job_id} twice"
                commands.append(RegisterAnew(reply.worker, why))
            elif self._drain.started:
                self._give_back(reply.worker, pair)
            else:
                self._start(at, job, commands)

    def _start(self, at: float, job: Claimed, commands: list[Command]) -> None:
        pair = Pair(job.id, job.attempt)
        deadline = at + job.timeout.total_seconds() if job.timeout is not None else None
        self._holdings.start(Running(job.worker, pair, at, deadline))
        if deadline is not None:
            self._deadlines.add((job.worker, pair), deadline)
        commands.append(Execute(job))

    def _failed(self, event: ExchangeFailed, commands: list[Command]) -> None:
        sent, self._sent = self._sent, None
        travelled = self._holdings.unload()
        self._unsure = self._unsure or event.unknown
        if not self._pacing.degraded:
            commands.append(NoticeDegraded(event.why))
        if event.refused and sent is not None and sent.claim is None:
            travelled = self._split(travelled, event.why, commands)
        self._holdings.put_back(travelled)
        self._pacing.failed(event.at, outcomes=bool(self._holdings.pending))

    def _split(
        self, travelled: tuple[Pending, ...], why: str, commands: list[Command]
    ) -> tuple[Pending, ...]:
        if len(travelled) > 1:
            self._outcome_cap = len(travelled) // 2
            return travelled
        kept: list[Pending] = []
        for entry in travelled:
            if entry.bare:
                commands.append(NoticeDropped(entry.worker, entry.pair, why))
            else:
                kept.append(Pending(entry.worker, bare(entry.outcome), alone=True, bare=True))
        return tuple(kept)

    # Upkeep

    def _maintain(self, at: float, commands: list[Command]) -> None:
        idle = self._worker is None or self._drain.started
        if not idle and not self._maintaining and self._maintain_at <= at:
            self._maintaining = True
            commands.append(DoMaintain())

    def _maintained(self, event: MaintainAnswered, commands: list[Command]) -> None:
        self._maintaining = False
        reply = event.reply
        more = reply is not None and reply.more
        self._maintain_at = event.at + (0.0 if more else self._options.maintenance_interval)
        if reply is None:
            return
        commands.extend(NoticeLapsed(lapsed) for lapsed in reply.lapsed)
        if reply.unheld or any(lapsed.state is JobState.READY for lapsed in reply.lapsed):
            self._pacing.poll_now(event.at)

    # The end

    def _advance_drain(self, at: float, commands: list[Command]) -> None:
        entered = self._drain.advance(at)
        if entered is Phase.CANCELLING:
            for running in self._holdings.active():
                if running.reason is None:
                    self._cancel(running, CancelReason.SHUTDOWN, commands)
        elif entered is Phase.FLUSHING:
            for running in self._holdings.active():
                running.abandoned = True
                if running.reason is not CancelReason.LEASE_LOST:
                    self._give_back(running.worker, running.pair)
        ending = self._drain.started and self._drain.phase is not Phase.ENDED
        if entered is Phase.ENDED or (ending and self._holdings.settled):
            self._drain.end()
            unreported = len(self._holdings.pending) + len(self._holdings.travelling)
            commands.append(Drained(unreported))

    def _ask_to_be_woken(self, at: float, commands: list[Command]) -> None:
        instants = [self._drain.over_at, self._deadlines.next]
        if self._worker is not None:
            instants.append(self._lease_until)
            if not self._drain.started and not self._maintaining:
                instants.append(self._maintain_at)
        if self._sent is None:
            instants.append(self._next_exchange_at())
        wake_at = min(instants)
        if wake_at != self._wake_at and wake_at < _NEVER:
            self._wake_at = wake_at
            commands.append(WakeAt(max(wake_at, at)))

    def _next_exchange_at(self) -> float:
        wishes = [entry.not_before for entry in self._holdings.pending]
        if self._may_claim():
            wishes.append(self._pacing.poll_at)
        return max(min(wishes, default=_NEVER), self._pacing.resume_at)
