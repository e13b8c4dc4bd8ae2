"""A worker on virtual time: the real node and the real pulse, in a shell that a fact drives.

It does what the shell of a running worker does, without a loop, a thread or a wait: calls to the
store are made at the instant at which they are asked for, and whatever is to happen later happens
when a fact lets time pass. The store's clock goes along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, assert_never

from tidemill.conformance.faulty import FaultyStore, Fits
from tidemill.conformance.scenes import GRIND, LEASE, fresh_job_id, worker_info
from tidemill.conformance.timeline import FOR_EVER, Timeline
from tidemill.core.commands import (
    CancelHandler,
    Command,
    DoExchange,
    DoMaintain,
    DoTakeNotes,
    Drained,
    Execute,
    Notice,
    RegisterAnew,
    WakeAt,
)
from tidemill.core.dispatch import policy_for
from tidemill.core.events import (
    Event,
    ExchangeAnswered,
    ExchangeFailed,
    Finished,
    MaintainAnswered,
    NotesAnswered,
    NotesFailed,
    Woken,
)
from tidemill.core.holdings import Key
from tidemill.core.node import Node
from tidemill.core.pulse import (
    BeatAnswered,
    CallFailed,
    Deregistered,
    DoBeat,
    DoDeregister,
    DoRegister,
    Doubted,
    NoticeAnswered,
    NoticeLeaseLost,
    NoticeNoAnswer,
    NoticeRegistered,
    NoticeStalled,
    Pulse,
    PulseCommand,
    PulseEvent,
    PulseStopped,
    RegisterAnswered,
    Tell,
    TickAt,
    Ticked,
)
from tidemill.errors import AnswerLost, StoreError
from tidemill.shell.settings import WorkerSettings
from tidemill.store.contract import Operation
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Deregister, Maintain, Register
from tidemill.store.notes import TakeNotes
from tidemill.values.endings import CancelReason, Returned, Stopped
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import JobId, WorkerId
from tidemill.values.jobs import DEFAULT_QUEUE, Claimed
from tidemill.values.leases import BeatReply, Maintained, Registered
from tidemill.values.outcomes import Reported
from tidemill.values.workers import Pair

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A handler that was asked to stop."""

    at: float
    pair: Pair
    reason: CancelReason


@dataclass(slots=True)
class Slow:
    """The next operation that fits is answered so many seconds after it was performed."""

    fits: Fits
    seconds: float


class VirtualShell:
    """A worker with default settings that knows `GRIND` and serves the default queue.

    Args:
        store: what it works with.
        timeline: what drives it. It starts as soon as time passes.
        slots: attempts that run at once.
        takes: seconds that each handler takes to return; for ever, unless told otherwise.
        stubborn: handlers go on although they are asked to stop.

    Attributes:
        settings: its settings.
        handlers: the attempts whose handlers run.
        executed: every attempt whose handler was started, in order.
        cancelled: every handler that was asked to stop, in order.
        notices: what it would have logged, in order.
        ended: whether it has ended by itself.
    """

    def __init__(
        self,
        store: FaultyStore,
        timeline: Timeline,
        *,
        slots: int = 1,
        takes: float = FOR_EVER,
        stubborn: bool = False,
    ) -> None:
        self.settings = WorkerSettings(concurrency=slots, lease=LEASE)
        self.node_options = self.settings.node_options(frozenset({GRIND}))
        self.pulse_options = self.settings.pulse_options()
        self.handlers: dict[Key, Claimed] = {}
        self.executed: list[Pair] = []
        self.cancelled: list[Cancelled] = []
        self.notices: list[object] = []
        self.ended = False
        self._store = store
        self._timeline = timeline
        self._takes = takes
        self._stubborn = stubborn
        self._node = Node(self.node_options, policy_for([DEFAULT_QUEUE]))
        self._pulse = Pulse(self.pulse_options)
        self._alarm = self._tick = 0
        self.slow: list[Slow] = []
        timeline.after(0.0, partial(self._wake_heart, self._tick))

    def noticed(self, kind: type[R]) -> list[R]:
        """What it would have logged of one kind, in order."""
        return [notice for notice in self.notices if isinstance(notice, kind)]

    def slow_down(self, fits: Fits, seconds: float) -> None:
        """Let the answer to the next operation that fits take so long; it is performed at once."""
        self.slow.append(Slow(fits, seconds))

    def finish(self, job_id: JobId) -> None:
        """Let the handler of a job return."""
        (key,) = (key for key, job in self.handlers.items() if job.id == job_id)
        self._end(key, Returned())

    def let_return(self, takes: float) -> None:
        """Let the handlers that run return now, and those to come after so many seconds."""
        self._takes = takes
        for key in tuple(self.handlers):
            self._end(key, Returned())

    # The node

    def _tell(self, event: Event) -> None:
        """Hand an event of this instant over, once what happens at the moment is over."""
        self._timeline.after(0.0, partial(self._turn, event))

    def _turn(self, event: Event) -> None:
        for command in self._node.step(event):
            self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case DoExchange():
                self._exchange(command)
            case DoTakeNotes():
                self._take_notes(command)
            case DoMaintain():
                self._maintain()
            case Execute(job):
                self._execute(job)
            case CancelHandler(worker, pair, reason):
                self._cancel((worker, pair), reason)
            case WakeAt(at):
                self._alarm += 1
                self._timeline.at(at, partial(self._wake, self._alarm))
            case RegisterAnew(worker, why):
                doubted = Doubted(self._now, worker, why)
                self._timeline.after(0.0, partial(self._pulsate, doubted))
            case Drained():
                self.ended = True
            case _:
                self._notice(command)

    def _notice(self, notice: Notice) -> None:
        self.notices.append(notice)

    def _wake(self, alarm: int) -> None:
        if alarm == self._alarm:
            self._turn(Woken(self._now))

    def _exchange(self, asked: DoExchange) -> None:
        def answered(reply: Exchanged) -> None:
            self._turn(ExchangeAnswered(self._now, reply))

        def failed(error: StoreError) -> None:
            unknown = isinstance(error, AnswerLost)
            self._turn(ExchangeFailed(self._now, refused=False, unknown=unknown, why=str(error)))

        operation = Exchange(
            worker=asked.worker,
            outcomes=asked.outcomes,
            claim=asked.claim,
            list_running=asked.list_running,
        )
        self._call(operation, answered, failed)

    def _take_notes(self, asked: DoTakeNotes) -> None:
        def answered(answers: tuple[Reported, ...]) -> None:
            self._turn(NotesAnswered(self._now, answers))

        def failed(_: StoreError) -> None:
            self._turn(NotesFailed(self._now, refused=False))

        self._call(TakeNotes(worker=asked.worker, notes=asked.notes), answered, failed)

    def _maintain(self) -> None:
        def over(reply: Maintained | None) -> None:
            self._turn(MaintainAnswered(self._now, reply))

        self._call(Maintain(lease=LEASE), over, lambda _: over(None))

    def _call(
        self,
        operation: Operation[R],
        answered: Callable[[R], None],
        failed: Callable[[StoreError], None],
    ) -> None:
        wait = self._way_back(operation)
        try:
            end = partial(answered, self._store.perform_sync(operation))
        except StoreError as error:
            end = partial(failed, error)
        self._timeline.after(wait, end)

    def _way_back(self, operation: object) -> float:
        for slow in self.slow:
            if slow.fits(operation):
                self.slow.remove(slow)
                return slow.seconds
        return 0.0

    # Handlers

    def _execute(self, job: Claimed) -> None:
        pair = Pair(job.id, job.attempt)
        key = job.worker, pair
        self.executed.append(pair)
        self.handlers[key] = job
        self._timeline.after(self._takes, lambda: self._end(key, Returned()))

    def _cancel(self, key: Key, reason: CancelReason) -> None:
        if key in self.handlers:
            self.cancelled.append(Cancelled(self._now, key[1], reason))
            if not self._stubborn:
                self._end(key, Stopped())

    def _end(self, key: Key, ending: Returned | Stopped) -> None:
        if self.handlers.pop(key, None) is not None:
            worker, pair = key
            self._tell(Finished(self._now, worker, pair, ending))

    # The heart

    def _pulsate(self, event: PulseEvent) -> None:
        for command in self._pulse.step(event):
            self._obey_pulse(command)

    def _obey_pulse(self, command: PulseCommand) -> None:
        match command:
            case Tell(event):
                self._tell(event)
            case TickAt(at):
                self._tick += 1
                self._timeline.at(at, partial(self._wake_heart, self._tick))
            case DoRegister():
                self._register()
            case DoBeat(worker):
                self._beat(worker)
            case DoDeregister(worker):
                self._deregister(worker)
            case PulseStopped():
                self.ended = True
            case (
                NoticeRegistered()
                | NoticeLeaseLost()
                | NoticeStalled()
                | NoticeNoAnswer()
                | NoticeAnswered()
            ):
                self.notices.append(command)
            case _:
                assert_never(command)

    def _wake_heart(self, tick: int) -> None:
        if tick == self._tick:
            self._pulsate(Ticked(self._now, self._now))

    def _register(self) -> None:
        sent_at = self._now

        def answered(reply: Registered) -> None:
            self._pulsate(RegisterAnswered(self._now, sent_at, reply.worker))

        info = worker_info(id=WorkerId(fresh_job_id()), slots=self.settings.concurrency)
        self._call(Register(info=info, lease=LEASE), answered, self._missed)

    def _beat(self, worker: WorkerId) -> None:
        sent_at = self._now

        def answered(reply: BeatReply) -> None:
            self._pulsate(BeatAnswered(self._now, sent_at, reply))

        self._call(Beat(worker=worker, lease=LEASE), answered, self._missed)

    def _deregister(self, worker: WorkerId) -> None:
        def answered(_: None) -> None:
            self._pulsate(Deregistered(self._now))

        self._call(Deregister(worker), answered, self._missed)

    def _missed(self, error: StoreError) -> None:
        self._pulsate(CallFailed(self._now, str(error)))

    @property
    def _now(self) -> float:
        return self._timeline.now
