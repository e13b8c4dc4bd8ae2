"""The pulse: one worker's lease, as a machine of `step(event) -> commands`.

It is driven by the heart's own thread and by the simulator, and speaks to the node by events. It
registers a worker, beats, and knows by when it must have been answered: the *send* time of the
last answered beat, plus the lease, less a margin (clause C7). Past that instant the lease may have
lapsed in the store: the pulse says it is lost, and registers a fresh worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from tidemill.core.events import LeaseGained, LeaseLost, Listed
from tidemill.values.ids import WorkerId
from tidemill.values.leases import BeatReply


@dataclass(frozen=True, slots=True)
class Ticked:
    """The instant that the pulse asked for has come; the pump last turned at `pump_turned_at`."""

    at: float
    pump_turned_at: float


@dataclass(frozen=True, slots=True)
class RegisterAnswered:
    """The registration sent at `sent_at` was answered."""

    at: float
    sent_at: float
    worker: WorkerId


@dataclass(frozen=True, slots=True)
class BeatAnswered:
    """The beat sent at `sent_at` was answered."""

    at: float
    sent_at: float
    reply: BeatReply


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A registration, beat or deregistration had no answer."""

    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Doubted:
    """The node cannot trust this worker's lease any more."""

    at: float
    worker: WorkerId
    why: str


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The node has ended: give the lease back."""

    at: float


@dataclass(frozen=True, slots=True)
class Deregistered:
    """The worker is forgotten."""

    at: float


PulseEvent = (
    Ticked | RegisterAnswered | BeatAnswered | CallFailed | Doubted | StopAsked | Deregistered
)


@dataclass(frozen=True, slots=True)
class DoRegister:
    """Register a fresh worker; answer with RegisterAnswered or CallFailed."""


@dataclass(frozen=True, slots=True)
class DoBeat:
    """Renew the lease; answer with BeatAnswered or CallFailed."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class DoDeregister:
    """Forget the worker; answer with Deregistered or CallFailed."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Tell:
    """Hand this event to the node."""

    event: LeaseGained | LeaseLost | Listed


@dataclass(frozen=True, slots=True)
class TickAt:
    """Send Ticked at this instant. Replaces the wish before it."""

    at: float


@dataclass(frozen=True, slots=True)
class PulseStopped:
    """Nothing more will be asked."""


@dataclass(frozen=True, slots=True)
class NoticeRegistered:
    """Log the id that this process works under from now on."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class NoticeLeaseLost:
    """Log that the lease ended, and why."""

    worker: WorkerId
    why: str


@dataclass(frozen=True, slots=True)
class NoticeStalled:
    """Log that the pump has not turned for so long that the lease is left to lapse."""

    worker: WorkerId
    seconds: float


@dataclass(frozen=True, slots=True)
class NoticeNoAnswer:
    """Log that a call of the heart had no answer."""

    why: str


@dataclass(frozen=True, slots=True)
class NoticeAnswered:
    """Log that the calls of the heart are answered again."""


Call = DoRegister | DoBeat | DoDeregister
PulseNotice = NoticeRegistered | NoticeLeaseLost | NoticeStalled | NoticeNoAnswer | NoticeAnswered
PulseCommand = Call | Tell | TickAt | PulseStopped | PulseNotice


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseOptions:
    """Seconds, all of them.

    Attributes:
        lease: how long one beat lasts in the store.
        heartbeat: between two beats; a third of the lease unless told otherwise.
        margin: how long before the lease could lapse the worker stops trusting it.
        retry: before a failed call is made again.
        stall_limit: a pump that has not turned for so long is left to lapse (clause C9).
    """

    lease: float
    heartbeat: float
    margin: float
    retry: float
    stall_limit: float = 300.0

    @classmethod
    def for_lease(cls, lease: float, *, stall_limit: float = 300.0) -> PulseOptions:
        """The proportions that suit a lease of this length."""
        return cls(
            lease=lease,
            heartbeat=lease / 3,
            margin=lease / 6,
            retry=min(lease / 12, 1.0),
            stall_limit=stall_limit,
        )


class Pulse:
    """One worker's lease. `step` is its only verb; at most one call is in flight."""

    def __init__(self, options: PulseOptions) -> None:
        """Start without a worker: the first Ticked registers one."""
        self._options = options
        self._worker: WorkerId | None = None
        self._until = 0.0
        self._call: Call | None = None
        self._stalled = False
        self._stopping = False
        self._stopped = False
        self._failing = False
        self._next_at = 0.0

    def step(self, event: PulseEvent) -> list[PulseCommand]:
        """Take one event; answer what is to be done, in order. Nothing after PulseStopped."""
        commands: list[PulseCommand] = []
        if self._stopped:
            return commands
        self._take(event, commands)
        self._expire(event.at, commands)
        self._go_on(event.at, commands)
        return commands

    def _take(self, event: PulseEvent, commands: list[PulseCommand]) -> None:
        match event:
            case Ticked(at, pump_turned_at):
                self._watch_pump(at, pump_turned_at, commands)
            case RegisterAnswered():
                self._registered(event, commands)
            case BeatAnswered():
                self._beaten(event, commands)
            case CallFailed(at, why):
                self._failed(at, why, commands)
            case Doubted(at, worker, why):
                if worker == self._worker:
                    self._lose(at, why, commands)
            case StopAsked(at):
                self._stopping = True
                self._next_at = at
            case Deregistered():
                self._worker = self._call = None
            case _:
                assert_never(event)

    def _watch_pump(self, at: float, pump_turned_at: float, commands: list[PulseCommand]) -> None:
        silence = at - pump_turned_at
        stalled = silence > self._options.stall_limit
        if stalled and not self._stalled and self._worker is not None:
            commands.append(NoticeStalled(self._worker, silence))
        self._stalled = stalled

    def _registered(self, event: RegisterAnswered, commands: list[PulseCommand]) -> None:
        self._answered(event.at, event.sent_at, commands)
        self._worker = event.worker
        self._until = self._trusted_until(event.sent_at)
        commands.append(NoticeRegistered(event.worker))
        if not self._stopping and event.at < self._until:
            commands.append(Tell(LeaseGained(event.at, event.worker, self._until)))

    def _beaten(self, event: BeatAnswered, commands: list[PulseCommand]) -> None:
        self._answered(event.at, event.sent_at, commands)
        reply = event.reply
        if reply.worker != self._worker:
            self._next_at = event.at
            return
        if not reply.live:
            self._lose(event.at, "its lease had lapsed in the store", commands)
            return
        self._until = self._trusted_until(event.sent_at)
        listed = Listed(event.at, event.sent_at, reply.worker, reply.running, self._until)
        commands.append(Tell(listed))

    def _answered(self, at: float, sent_at: float, commands: list[PulseCommand]) -> None:
        self._call = None
        if self._failing:
            commands.append(NoticeAnswered())
        self._failing = False
        self._next_at = at if self._stopping else sent_at + self._options.heartbeat

    def _failed(self, at: float, why: str, commands: list[PulseCommand]) -> None:
        call, self._call = self._call, None
        self._next_at = at if self._stopping else at + self._options.retry
        if not self._failing:
            commands.append(NoticeNoAnswer(why))
        self._failing = True
        if isinstance(call, DoDeregister):
            self._worker = None

    def _lose(self, at: float, why: str, commands: list[PulseCommand]) -> None:
        if self._worker is None:
            return
        commands += [NoticeLeaseLost(self._worker, why), Tell(LeaseLost(at, self._worker))]
        self._worker = None
        self._next_at = at

    def _expire(self, at: float, commands: list[PulseCommand]) -> None:
        if self._worker is not None and at >= self._until and not self._stopping:
            self._lose(at, "no heartbeat was answered in time", commands)

    def _go_on(self, at: float, commands: list[PulseCommand]) -> None:
        if self._call is not None:
            return
        if self._stopping and self._worker is None:
            self._stopped = True
            commands.append(PulseStopped())
            return
        resting = self._stalled and not self._stopping
        if resting or at < self._next_at:
            commands.append(TickAt(self._wake_at(at)))
            return
        self._call = self._next_call()
        commands.append(self._call)

    def _next_call(self) -> Call:
        if self._worker is None:
            return DoRegister()
        return DoDeregister(self._worker) if self._stopping else DoBeat(self._worker)

    def _wake_at(self, at: float) -> float:
        next_at = at + self._options.retry if self._stalled else self._next_at
        return next_at if self._worker is None else min(next_at, self._until)

    def _trusted_until(self, sent_at: float) -> float:
        return sent_at + self._options.lease - self._options.margin
