"""The node: one worker's decisions, as a machine of `step(event) -> commands`.

The shell tells it what happened and carries out what it asks; the simulator does the same in
virtual time. It never awaits, reads a clock, or draws a number.
"""

from __future__ import annotations

from typing import assert_never

from tidemill.core.attempts import Attempts
from tidemill.core.commands import (
    Command,
    DoMaintain,
    DoTakeNotes,
    Drained,
    NoticeLapsed,
    NoticeReleased,
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
    Noted,
    NotesAnswered,
    NotesFailed,
    Woken,
)
from tidemill.core.exchanges import Exchanges
from tidemill.core.holdings import Holdings
from tidemill.core.notebook import Notebook
from tidemill.core.options import NodeOptions
from tidemill.core.reconcile import Sightings
from tidemill.core.upkeep import Upkeep
from tidemill.values.endings import CancelReason
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import WorkerId
from tidemill.values.leases import Maintained
from tidemill.values.states import JobState
from tidemill.values.workers import Pair, RunningPair

_NEVER = float("inf")


class Node:
    """One worker's decisions. `step` is its only verb."""

    def __init__(self, options: NodeOptions, policy: DispatchPolicy) -> None:
        """Start without a lease: nothing is claimed until one is gained."""
        self._holdings = Holdings(options.slots)
        self._notebook = Notebook(
            options.note_interval, options.fault_delay, options.fault_delay_cap
        )
        self._attempts = Attempts(
            self._holdings, self._notebook, keep_tracebacks=options.keep_tracebacks
        )
        self._exchanges = Exchanges(options, policy, self._holdings)
        self._sightings = Sightings()
        self._drain = Drain(options.patience, options.flush)
        self._worker: WorkerId | None = None
        self._lease_until = _NEVER
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
            self._send_notes(at, commands)
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
                self._exchanges.poll_now(at)
            case ExchangeAnswered(_, reply):
                self._answered(at, reply, commands)
            case ExchangeFailed():
                self._exchanges.failed(at, event, commands)
            case MaintainAnswered(_, reply):
                self._maintained(at, reply, commands)
            case CompletionBegun() | Finished() | Noted():
                self._attempts.hear(event)
            case NotesAnswered() | NotesFailed():
                self._notebook.hear(at, event)
            case DrainAsked() | HurryAsked():
                self._drain.hear(at, event)
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
        self._exchanges.listed()
        self._exchanges.poll_now(at)

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
            unknown, at=at, sent_at=sent_at, journey=self._exchanges.journey
        ):
            ended = self._holdings.dropped.pop((worker, pair), None)
            if ended is not None:  # it ran to its end: given back, it would be run for ever (E2)
                self._exchanges.report_least(worker, ended)
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
        exchange = self._exchanges.send(at, self._worker, claiming=not self._drain.started)
        if exchange is not None:
            commands.append(exchange)

    def _answered(self, at: float, reply: Exchanged, commands: list[Command]) -> None:
        self._watch_lease(at, commands)
        self._exchanges.answered(at, reply, commands)
        if reply.worker != self._worker:
            return
        if not reply.live:
            self._distrust(reply.worker, "the store answered that its lease is dead", commands)
            return
        for asked in reply.cancels:
            self._cancel(reply.worker, asked, commands)
        if reply.running is not None:
            self._exchanges.listed()
            self._reconcile(at, reply.running, self._exchanges.sent_at, commands)
        self._take_up(at, reply, commands)

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

    # Notes

    def _send_notes(self, at: float, commands: list[Command]) -> None:
        worker = self._worker
        notes = self._notebook.load(at, worker)
        if worker is not None and notes:
            commands.append(DoTakeNotes(worker, notes))

    # Upkeep

    def _maintain(self, at: float, commands: list[Command]) -> None:
        idle = self._worker is None or self._drain.started
        if not idle and self._upkeep.begin(at):
            commands.append(DoMaintain())

    def _maintained(self, at: float, reply: Maintained | None, commands: list[Command]) -> None:
        self._upkeep.over(at, reply)
        if reply is None:
            return
        self._exchanges.heard()
        commands.extend(NoticeLapsed(lapsed) for lapsed in reply.lapsed)
        if reply.unheld or any(lapsed.state is JobState.READY for lapsed in reply.lapsed):
            self._exchanges.poll_now(at)

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
            instants.append(self._notebook.next_at(self._worker))
            if not self._drain.started:
                instants.append(self._upkeep.next_at)
        claiming = not self._drain.started
        instants.append(self._exchanges.next_at(self._worker, claiming=claiming))
        wake_at = min(instants)
        if wake_at != self._wake_at and wake_at < _NEVER:
            self._wake_at = wake_at
            commands.append(WakeAt(max(wake_at, at)))
