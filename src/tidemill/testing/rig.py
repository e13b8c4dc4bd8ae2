"""One worker on virtual time: the real node and the real executor, run until nothing is due.

It stands where the pump and the heart stand in production. It turns on the test's own event loop,
sends one store call after the other, and never moves time. Its lease never ends: what lapses do
is for the simulator to show.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from threading import get_ident
from typing import Protocol

from tidemill.context import JobContext
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
from tidemill.core.dispatch import DispatchPolicy
from tidemill.core.events import (
    DrainAsked,
    Event,
    ExchangeAnswered,
    Finished,
    Hinted,
    HurryAsked,
    LeaseGained,
    Listed,
    Noted,
    Woken,
)
from tidemill.core.node import Node
from tidemill.errors import StoreError
from tidemill.shell.attempt_notices import log_ending
from tidemill.shell.calls import StoreCalls
from tidemill.shell.ears import Ears
from tidemill.shell.execution import Execution, Executor
from tidemill.shell.heart import introduction
from tidemill.shell.identity import new_id
from tidemill.shell.notepad import Notepad, Said
from tidemill.shell.notices import log_notice
from tidemill.shell.scope import Scopes
from tidemill.shell.settings import WorkerSettings
from tidemill.shell.store_time import StoreTime
from tidemill.shell.threads import DaemonThreads
from tidemill.store.lease import Beat, Deregister, Register
from tidemill.testing.errors import Runaway, StuckHandler
from tidemill.testing.originals import Originals
from tidemill.testing.store import HarnessStore
from tidemill.values.endings import Ending
from tidemill.values.ids import WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.states import JobState
from tidemill.values.workers import Pair

_NEVER = float("inf")
_FOR_EVER = timedelta.max
_STOPPING = 1.0
"""Real seconds that handlers are waited for after they were told to stop."""
_LAST_TURNS = 3
"""Turns of the loop that a handler takes to end and to be reported."""
_SHORTEST = timedelta(microseconds=1)


class Outlook(Protocol):
    """Where a rig looks for queues that nobody has named."""

    def more(self) -> bool:
        """Whether there is work in queues that the policy has only now learned of."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all rigs of a harness share.

    Attributes:
        start: the instant at which the node's clock says zero.
        slots: attempts that run at once.
        give_up_after: real seconds that one handler may take.
        most_executions: attempts of one run.
        scopes: answers where attempts take their services from.
    """

    store: HarnessStore
    definitions: Originals
    threads: DaemonThreads
    start: datetime
    slots: int
    give_up_after: float
    most_executions: int
    scopes: Callable[[], Scopes | None]

    def at(self) -> float:
        """The node's clock: virtual seconds since the start."""
        return (self.store.clock() - self.start).total_seconds()


@dataclass(slots=True)
class _Running:
    """An attempt on its way, and the real instant at which it must have ended."""

    job: Claimed
    execution: Execution
    give_up_at: float


@dataclass(slots=True)
class Ran:
    """What a run did.

    Attributes:
        executions: attempts that were started.
        ended_badly: jobs that ended `dead` or `quarantined`, with the attempt that ended them.
        next_due: when the next scheduled job of the queues served is due; None if there is none.
    """

    executions: Counter[str] = field(default_factory=Counter[str])
    ended_badly: list[Pair] = field(default_factory=list[Pair])
    next_due: datetime | None = None


class Rig:
    """A worker for one run.

    Args:
        bench: what it works with.
        policy: the queues it serves.
        outlook: asked for further queues when nothing is due.
        once: end after the first job that is claimed.
    """

    def __init__(
        self,
        bench: Bench,
        policy: DispatchPolicy,
        outlook: Outlook | None = None,
        *,
        once: bool = False,
    ) -> None:
        self.ran = Ran()
        self._bench = bench
        self._policy = policy
        self._outlook = outlook
        self._once = once
        self._settings = WorkerSettings(
            queues=policy.queues,
            concurrency=1 if once else bench.slots,
            maintenance_interval=_SHORTEST,  # due again whenever time has moved at all
        )
        names = bench.definitions.wire_names()
        # A test sees what a handler has said when it has said it: time does not pass by itself.
        options = replace(self._settings.node_options(names), note_interval=0.0)
        self._node = Node(options, policy)
        self._calls = StoreCalls(
            bench.store,
            self._settings.lease,
            self._settings.delivery_timeout,
            bench.at,
            StoreTime(bench.at),
        )
        context = partial(JobContext, store=bench.store, bounds=bench.store.bounds)
        self._executor = Executor(
            bench.definitions, context, bench.store.clock, bench.threads, bench.scopes()
        )
        self._worker = WorkerId(new_id())
        self._running: dict[Pair, _Running] = {}
        self._inbox: list[Event] = []
        self._wake_at = _NEVER
        self._beat_wanted = False
        self._over = False
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()

    async def run(self) -> Ran:
        """Run whatever is due, and what that makes due, until nothing is left.

        Raises:
            DeclarationError: a job that cannot run.
            StuckHandler: a handler that does not end; it was told to stop, its job given back.
            Runaway: more executions than the bench allows.
        """
        self._resolve()
        with self._registered():
            try:
                while not self._over:
                    await self._turn()
                    if self._running:
                        await self._wait()
                    elif not self._over and not self._more():
                        self._end()
            except BaseException:
                await self._abandon()
                raise
        return self.ran

    def time_moved(self) -> None:
        """Virtual time was advanced: look at deadlines. On the loop's thread."""
        self._inbox.append(Woken(self._bench.at()))
        self._told.set()

    def cancel_asked(self) -> None:
        """Somebody asked for a cancel: beat, and so hear of it. From any thread."""
        self._threadsafe(self._want_beat)

    # Beginning and ending

    def _resolve(self) -> None:
        for wire_name in sorted(self._bench.definitions.wire_names()):
            definition = self._bench.definitions.get(wire_name)
            if definition is not None:
                definition.resolve()

    @contextmanager
    def _registered(self) -> Generator[None]:
        store, worker = self._bench.store, self._worker
        introduce = introduction(
            self._policy.queues, self._bench.definitions.wire_names(), self._settings.concurrency
        )
        unwatch = store.watch(lambda: self._threadsafe(self._hint))
        store.perform_sync(Register(info=introduce(worker), lease=_FOR_EVER))
        self._inbox.append(LeaseGained(self._bench.at(), worker, until=_NEVER))
        try:
            yield
        finally:
            unwatch()
            store.perform_sync(Deregister(worker))

    def _more(self) -> bool:
        if self._inbox:
            return True
        if self._node.draining or self._outlook is None or not self._outlook.more():
            return False
        self._hint()
        return True

    def _end(self) -> None:
        """Drain; with no handler left that takes no time, unless outcomes cannot be recorded."""
        at = self._bench.at()
        self._inbox.append(HurryAsked(at) if self._node.draining else DrainAsked(at, 0.0))

    async def _abandon(self) -> None:
        """Tell every handler to stop, give back what does not, and end."""
        self._inbox.append(DrainAsked(self._bench.at(), 0.0))
        self._inbox.append(HurryAsked(self._bench.at()))
        await self._turn()
        # Some frameworks repeat a cancellation with every turn of the loop; the first is passed on.
        with suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(_STOPPING):
                while self._running:
                    self._told.clear()
                    await self._told.wait()
        while not self._over:
            self._inbox.append(HurryAsked(self._bench.at()))
            await self._turn()

    # Turning

    async def _turn(self) -> None:
        self._told.clear()
        while not self._over and (events := self._events()):
            for command in self._node.step(*events):
                await self._obey(command)

    def _events(self) -> list[Event]:
        at = self._bench.at()
        if self._beat_wanted:
            self._beat_wanted = False
            self._inbox.append(self._beat(at))
        if self._wake_at <= at:
            self._wake_at = _NEVER
            self._inbox.append(Woken(at))
        events, self._inbox = self._inbox, []
        return events

    def _beat(self, at: float) -> Listed:
        reply = self._bench.store.perform_sync(Beat(worker=self._worker, lease=_FOR_EVER))
        return Listed(at, at, self._worker, reply.running, until=_NEVER)

    async def _wait(self) -> None:
        """Until something happens: a handler ends, time moves, a job is enqueued or cancelled."""
        give_up_at = min(running.give_up_at for running in self._running.values())
        try:
            async with asyncio.timeout_at(give_up_at):
                await self._told.wait()
        except TimeoutError:
            await self._give_up()

    async def _give_up(self) -> None:
        # A machine that stood still wakes the timer and the handler together: let that one end.
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)
        now = self._loop.time()
        stuck = tuple(each.job for each in self._running.values() if each.give_up_at <= now)
        if stuck:
            raise StuckHandler(stuck, self._bench.give_up_after, self._settings.concurrency)

    async def _obey(self, command: Command) -> None:
        match command:
            case Execute(job):
                self._execute(job)
            case DoExchange():
                await self._exchange(command)
            case DoTakeNotes():
                self._inbox.append(await self._calls.take_notes(command))
            case DoMaintain():
                self._inbox.append(await self._calls.maintain())
            case CancelHandler(_, pair, reason, actor):
                if pair in self._running:
                    self._running[pair].execution.cancel(reason, actor)
            case WakeAt(at):
                self._wake_at = at
            case Drained(unreported):
                self._over = True
                if unreported:
                    message = f"{unreported} outcomes could not be recorded; the log says why."
                    raise StoreError(message)
            case RegisterAnew(_, why):
                message = f"The harness lost its lease, which never ends: {why}."
                raise StoreError(message)
            case _:
                log_notice(command)

    async def _exchange(self, command: DoExchange) -> None:
        event = await self._calls.exchange(command)
        self._inbox.append(event)
        if not isinstance(event, ExchangeAnswered):
            return
        reply = event.reply
        if command.claim is not None:
            due = reply.next_due
            self.ran.next_due = None if due is None else reply.now + due
        self.ran.ended_badly += [
            Pair(reported.job_id, reported.attempt)
            for reported in reply.reported
            if reported.state in {JobState.DEAD, JobState.QUARANTINED}
        ]

    def _execute(self, job: Claimed) -> None:
        executions = self.ran.executions
        executions[job.wire_name] += 1
        if executions.total() > self._bench.most_executions:
            raise Runaway(self._bench.most_executions, executions)
        if self._once:
            self._inbox.append(DrainAsked(self._bench.at(), _NEVER))
        pair = Pair(job.id, job.attempt)

        def report(ending: Ending) -> None:
            self._running.pop(pair, None)
            log_ending(job, ending, execution.reason, execution.actor)
            noted(execution.end())
            self._inbox.append(Finished(self._bench.at(), job.worker, pair, ending))
            self._told.set()

        def noted(said: Said) -> None:
            if said.anything:
                at = self._bench.at()
                self._inbox.append(Noted(at, job.worker, pair, said.progress, said.lines))
                self._told.set()

        def note(notepad: Notepad) -> None:
            self._threadsafe(lambda: noted(notepad.take()))

        with self._bench.definitions.attempt(job):
            execution = self._executor.start(job, report, Ears(note=note))
        give_up_at = self._loop.time() + self._bench.give_up_after
        self._running[pair] = _Running(job, execution, give_up_at)

    # What is heard from elsewhere

    def _hint(self) -> None:
        self._inbox.append(Hinted(self._bench.at()))
        self._told.set()

    def _want_beat(self) -> None:
        self._beat_wanted = True
        self._told.set()

    def _threadsafe(self, call: Callable[[], None]) -> None:
        if get_ident() == self._thread:
            call()
            return
        with suppress(RuntimeError):  # the loop has closed: nobody is left to tell
            self._loop.call_soon_threadsafe(call)
