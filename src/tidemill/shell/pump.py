"""The pump: events in, `Node.step`, commands out. It runs on the event loop's own thread."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol

from tidemill.core.commands import (
    CancelHandler,
    Command,
    DoExchange,
    DoMaintain,
    DoTakeNotes,
    Drained,
    Execute,
    RegisterAnew,
    WakeAt,
)
from tidemill.core.events import CompletionBegun, Event, Finished, Noted, Woken
from tidemill.core.holdings import Key
from tidemill.core.node import Node
from tidemill.shell.attempt_notices import log_ending, log_not_interrupted
from tidemill.shell.calls import StoreCalls
from tidemill.shell.ears import Ears
from tidemill.shell.execution import Execution, Executor
from tidemill.shell.hearing import Hearing
from tidemill.shell.monotonic import Monotonic
from tidemill.shell.notepad import Notepad, Said
from tidemill.shell.notices import log_notice, log_stood_still
from tidemill.values.endings import CancelReason, Ending
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.workers import Pair


class Doubts(Protocol):
    """Where the node's doubts about its lease go: the heart."""

    def doubt(self, worker: WorkerId, why: str) -> None:
        """Have a fresh worker registered."""
        ...


@dataclass(slots=True)
class Parts:
    """What the pump drives. `stall` is how late, in seconds, it may turn without a line of log."""

    node: Node
    calls: StoreCalls
    executor: Executor
    doubts: Doubts
    clock: Monotonic
    stall: float = math.inf


class Pump:
    """Hands events to the node, all of one turn of the loop together, and obeys its commands.

    It turns in the context in which it was made, so that no handler sees the context variables of
    whoever happened to wake it.
    """

    def __init__(self, parts: Parts) -> None:
        """Belong to the running loop."""
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._ended = False
        self._inbox: list[Event] = []
        self._executions: dict[Key, Execution] = {}
        self._hearing = Hearing(self._loop)
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = math.inf
        self._calls: set[asyncio.Task[None]] = set()
        self.drained: asyncio.Future[int] = self._loop.create_future()

    @property
    def draining(self) -> bool:
        """Whether the worker is on its way to the end."""
        return self._parts.node.draining

    @property
    def running(self) -> int:
        """Handlers that have not ended yet."""
        return len(self._executions)

    @property
    def now(self) -> float:
        """The node's clock."""
        return self._parts.clock()

    def tell(self, event: Event) -> None:
        """Hand an event over, on the loop's thread. After the end nothing is heard any more."""
        if self._ended:
            return
        if not self._inbox:
            self._loop.call_soon(self._turn, context=self._context)
        self._inbox.append(event)

    def tell_threadsafe(self, make: Callable[[float], Event]) -> None:
        """Hand an event over from any thread; it is dated when the loop takes it."""

        def take() -> None:
            self.tell(make(self.now))

        try:
            self._loop.call_soon_threadsafe(take)
        except RecursionError:  # the end of the stack of whoever tells, who has to know
            raise
        except RuntimeError:  # the loop has closed: nobody is left to tell
            return

    def fail(self, error: BaseException) -> None:
        """End at once and loudly: no claim, no report, and handlers are told to stop."""
        if self._ended:
            return
        self._end()
        self.drained.set_exception(error)
        for execution in tuple(self._executions.values()):
            execution.cancel(CancelReason.LEASE_LOST)

    def fall_silent(self) -> None:
        """In a forked child: nothing is claimed, reported or logged there."""
        self._ended = True

    async def close(self, timeout: float) -> None:
        """Wait for the calls that are still under way, at most `timeout` seconds."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=max(timeout, 0.0))

    def _turn(self) -> None:
        events, self._inbox = self._inbox, []
        try:
            if not self._ended:
                self._tell_lateness()
                self._step(events)
        except Exception as error:  # noqa: BLE001 - a fault in the core must end the worker loudly
            self.fail(error)

    def _tell_lateness(self) -> None:
        """Log that the loop stood still: whatever woke it, its alarm should have done so before."""
        late = self.now - self._alarm_at
        if late > 0:
            self._alarm_at = math.inf
        if late > self._parts.stall:
            log_stood_still(late)

    def _step(self, events: list[Event]) -> None:
        for command in self._parts.node.step(*events):
            self._obey(command)
            if self._ended:  # what the node wished for beside it has lost its meaning
                return

    def _obey(self, command: Command) -> None:
        match command:
            case Execute(job):
                self._execute(job)
            case DoExchange():
                self._call(self._parts.calls.exchange(command))
            case DoTakeNotes():
                self._call(self._parts.calls.take_notes(command))
            case DoMaintain():
                self._call(self._parts.calls.maintain())
            case CancelHandler(worker, pair, reason, actor):
                execution = self._executions.get((worker, pair))
                if execution is not None:
                    execution.cancel(reason, actor)
                    if execution.interrupt is None:
                        log_not_interrupted(worker, pair, reason)
            case WakeAt(at):
                self._wake_at(at)
            case RegisterAnew(worker, why):
                self._parts.doubts.doubt(worker, why)
            case Drained(unreported):
                self._end()
                self.drained.set_result(unreported)
            case _:
                log_notice(command)

    def _execute(self, job: Claimed) -> None:
        pair = Pair(job.id, job.attempt)

        def report(ending: Ending) -> None:
            self._executions.pop((job.worker, pair), None)
            log_ending(job, ending, execution.reason, execution.actor)
            hear(execution.end())
            self.tell(Finished(self.now, job.worker, pair, ending))

        def hear(said: Said) -> None:
            if said.anything:
                self.tell(Noted(self.now, job.worker, pair, said.progress, said.lines))

        def begin_completion() -> None:
            self.tell_threadsafe(lambda at: CompletionBegun(at, job.worker, pair))

        def note(notepad: Notepad) -> None:
            self._hearing.note(notepad, hear)

        ears = Ears(begin_completion, note)
        execution = self._parts.executor.start(job, report, ears)
        self._executions[job.worker, pair] = execution

    def _call(self, call: Coroutine[Any, Any, Event]) -> None:
        async def answered() -> None:
            self.tell(await call)

        running = self._loop.create_task(answered())
        self._calls.add(running)
        running.add_done_callback(self._calls.discard)

    def _wake_at(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = max(at, self.now)
        self._alarm = self._loop.call_later(self._alarm_at - self.now, self._wake)

    def _wake(self) -> None:
        self.tell(Woken(self.now))

    def _end(self) -> None:
        self._ended = True
        if self._alarm is not None:
            self._alarm.cancel()
