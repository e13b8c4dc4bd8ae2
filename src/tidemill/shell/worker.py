"""One worker: node, pump, heart and executor put together, started and ended in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from tidemill.core.dispatch import policy_for
from tidemill.core.events import DrainAsked, Hinted, HurryAsked
from tidemill.core.node import Node
from tidemill.errors import SchemaError, StoreError, WrongContext
from tidemill.shell.calls import StoreCalls
from tidemill.shell.definitions import ContextFactory, Definitions
from tidemill.shell.execution import Executor
from tidemill.shell.forks import Forks
from tidemill.shell.handler_process import require_processes
from tidemill.shell.handler_talk import Load, inside
from tidemill.shell.heart import Heart, introduction
from tidemill.shell.monotonic import Monotonic, monotonic
from tidemill.shell.notices import log_drain, log_hurry, log_start, logger
from tidemill.shell.processes import Processes
from tidemill.shell.pump import Parts, Pump
from tidemill.shell.scope import Scopes, prepare_jobs
from tidemill.shell.settings import WorkerSettings
from tidemill.shell.signals import Hearing, hear_signals
from tidemill.shell.store_time import StoreTime
from tidemill.shell.threads import DaemonThreads
from tidemill.store.contract import Store


class Worker:
    """Runs jobs until it is stopped. An async context manager: leaving it drains.

    ``stop`` (or the first signal) stops claiming, lets handlers finish for the grace period, then
    cancels them with reason `shutdown`, gives back what did not finish, reports every outcome,
    deregisters and closes. ``hurry`` (or a second signal) ends the present phase at once.

    However the store fares, the end comes within `grace + patience + 2 × delivery_timeout`.
    """

    def __init__(
        self,
        store: Store,
        definitions: Definitions,
        context_factory: ContextFactory,
        settings: WorkerSettings,
        clock: Monotonic = monotonic,
        *,
        scopes: Scopes | None = None,
        finder: Callable[[], Load] | None = None,
    ) -> None:
        """Put the parts together; nothing starts yet.

        `finder` is asked at the start, if a job runs in a process, how the jobs are found there.

        Raises:
            ConfigurationError: settings that cannot work.
        """
        self._store = store
        self._definitions = definitions
        self._settings = settings
        self._clock = clock
        self._policy = policy_for(settings.queues)
        self._threads = DaemonThreads(settings.concurrency, "tidemill-handler")
        self._heart = self._make_heart()
        self._store_time = StoreTime(clock)
        self._scopes = scopes
        self._finder = finder
        self._executor = Executor(
            definitions, context_factory, self._store_time.now, self._threads, scopes
        )
        self._pump: Pump | None = None
        self._unwatch: Callable[[], None] | None = None
        self._heart_ended: asyncio.Future[None] | None = None
        self._forks: Forks | None = None
        self._ending = self._hurried = False
        self._closed = False

    def __repr__(self) -> str:
        queues = ", ".join(self._policy.queues)
        return f"<Worker of {queues}: {self._settings.concurrency} slots, {self._stage()}>"

    @property
    def unfinished(self) -> int:
        """Coroutine handlers that have not ended; after `wait`, those that ignored their stop."""
        return self._executor.unfinished

    async def start(self) -> None:
        """Resolve every job's annotations, then register and claim.

        Raises:
            DeclarationError: a job that cannot run.
        """
        if self._pump is not None:
            message = "This worker was started before; make a new one."
            raise WrongContext(message)
        if inside.is_set():
            message = (
                "A process for handlers was about to start a worker of its own. Put what starts "
                'the worker behind `if __name__ == "__main__":`, so that importing the module '
                "does not run it."
            )
            raise WrongContext(message)
        prepare_jobs(self._definitions, self._scopes)
        self._executor.processes = self._make_processes()
        loop = asyncio.get_running_loop()
        pump = self._make_pump()
        ended: asyncio.Future[None] = loop.create_future()
        unwatch = self._store.watch(lambda: pump.tell_threadsafe(Hinted))
        try:
            self._heart.start(
                tell=lambda event: pump.tell_threadsafe(lambda _: event),
                ping=lambda: _ping(loop, self._heart),
                on_end=lambda error: _threadsafe(loop, lambda: _note_end(pump, ended, error)),
            )
        except BaseException:
            unwatch()
            raise
        self._pump, self._heart_ended, self._unwatch = pump, ended, unwatch
        self._forks = Forks(loop, pump.fall_silent)
        log_start(self._policy.queues, self._settings.concurrency, self._definitions.wire_names())

    async def wait(self) -> None:
        """Until the worker has drained, by `stop` or by a signal; then close it.

        Cancelling this waits no longer, and leaves the worker as it is.

        Raises:
            SchemaError: the store's schema does not fit this version.
            Exception: whatever fault of the worker itself ended it.
        """
        pump = self._started()
        await asyncio.wait({pump.drained})
        await self._close(pump)
        unreported = pump.drained.result()
        if unreported and not self._closed:
            logger.error(
                "Ended with %d outcomes unreported; their attempts lapse and run again.", unreported
            )
        if not self._closed:
            logger.info("Stopped.")
        self._closed = True
        self._forks = None

    async def stop(self, grace: timedelta | None = None) -> None:
        """Drain and wait for the end. `grace` overrides the setting.

        Cancelling this ends the grace period, and is passed on when the worker has drained.
        """
        self.drain(grace)
        await self._see_through()

    def drain(self, grace: timedelta | None = None) -> None:
        """Start to end; `wait` tells when it is over. On the loop's thread."""
        pump = self._started()
        self._ending = True
        seconds = (self._settings.grace if grace is None else grace).total_seconds()
        pump.tell(DrainAsked(pump.now, seconds))

    def hurry(self) -> None:
        """End the present phase of the drain at once. On the loop's thread."""
        pump = self._started()
        self._hurried = True
        pump.tell(HurryAsked(pump.now))

    async def run(self, hearing: Hearing = hear_signals) -> None:
        """Start, obey signals, and wait for the end. Cancelling this drains first.

        `hearing` says what ends the worker; by default SIGTERM, SIGINT and SIGHUP do.

        Raises:
            DeclarationError: a job that cannot run.
            WrongContext: this is not the main thread, which alone hears signals.
        """
        with hearing(self):
            await self.start()
            await self._see_through()

    @property
    def ending(self) -> bool:
        """Whether it was asked to end, or is on its way there."""
        return self._ending or self._started().draining

    def asked_to_end(self, why: str = "") -> None:
        """End in order, and log that and `why`. On the loop's thread."""
        settings = self._settings
        log_drain(self._started().running, settings.grace, settings.longest_end, why)
        self.drain()

    def asked_to_hurry(self) -> None:
        """End the present phase, and log that. On the loop's thread."""
        log_hurry(self._started().running, self._settings.patience)
        self.hurry()

    async def _see_through(self) -> None:
        """Wait for the end; a cancellation drains, one more hurries, and both are passed on.

        Further ones change nothing: some frameworks repeat theirs with every turn of the loop.
        """
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                await self.wait()
                break
            except asyncio.CancelledError as error:
                cancelled = error
                if not self._started().draining:
                    self.drain()
                elif not self._hurried:
                    self.hurry()
        if cancelled is not None:
            raise cancelled

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    if not TYPE_CHECKING:  # a type checker refuses `with` by itself

        def __enter__(self) -> NoReturn:
            message = (
                "A worker needs an event loop: `async with mill.worker()` under asyncio.run, or "
                "`tidemill worker` on the command line."
            )
            raise WrongContext(message)

        def __exit__(self, *_: object) -> None:
            """Never reached; `with` looks for it before it enters."""

    def _make_heart(self) -> Heart:
        introduce = introduction(
            self._policy.queues, self._known_names(), self._settings.concurrency
        )
        return Heart(self._store, self._settings.pulse_options(), introduce, self._clock)

    def _make_processes(self) -> Processes | None:
        """Where handlers for processes run; None if there is no such job."""
        known = map(self._definitions.get, sorted(self._definitions.wire_names()))
        if self._finder is None or not any(job is not None and job.in_process for job in known):
            return None
        require_processes()
        kill_after = self._settings.kill_after.total_seconds()
        return Processes(self._finder(), kill_after, self._store_time.now)

    def _known_names(self) -> frozenset[str] | None:
        """The wire names that this worker claims; None for every name."""
        return None if self._settings.quarantine_unknown else self._definitions.wire_names()

    def _make_pump(self) -> Pump:
        settings = self._settings
        calls = StoreCalls(
            self._store, settings.lease, settings.delivery_timeout, self._clock, self._store_time
        )
        node = Node(settings.node_options(self._known_names()), self._policy)
        stall = settings.lease.total_seconds() / 3
        return Pump(Parts(node, calls, self._executor, self._heart, self._clock, stall))

    async def _close(self, pump: Pump) -> None:
        over_at = pump.now + self._settings.delivery_timeout.total_seconds()
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        self._heart.stop()
        if self._executor.processes is not None:
            await asyncio.to_thread(self._executor.processes.close)
        self._threads.close()  # after them: a process does not outlive the thread that started it
        await pump.close(over_at - pump.now)
        assert self._heart_ended is not None, "started without a heart"
        await asyncio.wait({self._heart_ended}, timeout=max(over_at - pump.now, 0.0))
        if pump.drained.exception() is not None:  # its handlers were told to stop only just now
            await self._executor.wait(self._settings.patience.total_seconds())
        if self._heart_ended.done():
            self._heart.join()
        elif not self._closed:
            logger.error("A heartbeat is stuck in the store; the lease is left to lapse.")

    def _stage(self) -> str:
        if self._pump is None:
            return "not started"
        if self._closed:
            return "ended"
        return "ending" if self._pump.draining else "running"

    def _started(self) -> Pump:
        if self._pump is None:
            message = "This worker has not been started; use `async with` or `await start()`."
            raise WrongContext(message)
        return self._pump


def _note_end(pump: Pump, ended: asyncio.Future[None], error: BaseException | None) -> None:
    ended.set_result(None)
    if isinstance(error, SchemaError):
        pump.fail(error)
    elif error is not None:
        message = f"The heart of this worker died ({error!r}); its jobs lapse and run elsewhere."
        fault = StoreError(message)
        fault.__cause__ = error
        pump.fail(fault)


def _ping(loop: asyncio.AbstractEventLoop, heart: Heart) -> None:
    if not _threadsafe(loop, heart.turned):
        logger.error("The event loop was closed under a running worker; its jobs lapse.")
        heart.stop()


def _threadsafe(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> bool:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop has closed: nobody is left to tell
        return False
    return True
