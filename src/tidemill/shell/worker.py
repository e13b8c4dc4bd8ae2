"""One worker: node, pump, heart and executor put together, started and ended in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from tidemill.core.dispatch import policy_for
from tidemill.core.events import DrainAsked, Hinted, HurryAsked
from tidemill.core.node import Node
from tidemill.errors import StoreError, WrongContext
from tidemill.shell.calls import StoreCalls
from tidemill.shell.definitions import ContextFactory, Definitions
from tidemill.shell.execution import Executor
from tidemill.shell.heart import Heart, introduction
from tidemill.shell.monotonic import Monotonic, monotonic
from tidemill.shell.notices import logger
from tidemill.shell.pump import Parts, Pump
from tidemill.shell.settings import WorkerSettings
from tidemill.shell.store_time import StoreTime
from tidemill.shell.threads import DaemonThreads
from tidemill.store.contract import Store

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Worker:
    """Runs jobs until it is stopped. An async context manager: leaving it drains.

    ``stop`` (or the first SIGTERM) stops claiming, lets handlers finish for the grace period, then
    cancels them with reason `shutdown`, gives back what did not finish, reports every outcome,
    deregisters and closes. ``hurry`` (or a second signal) ends the present phase at once.
    """

    def __init__(
        self,
        store: Store,
        definitions: Definitions,
        context_factory: ContextFactory,
        settings: WorkerSettings,
        clock: Monotonic = monotonic,
    ) -> None:
        """Put the parts together; nothing starts yet.

        Raises:
            ConfigurationError: settings that cannot work.
        """
        self._store = store
        self._definitions = definitions
        self._context_factory = context_factory
        self._settings = settings
        self._clock = clock
        self._policy = policy_for(settings.queues)
        self._threads = DaemonThreads(settings.concurrency, "tidemill-handler")
        self._heart = self._make_heart()
        self._pump: Pump | None = None
        self._unwatch: Callable[[], None] | None = None
        self._heart_ended: asyncio.Future[None] | None = None
        self._unreported = 0

    async def start(self) -> None:
        """Resolve every job's annotations, then register and claim.

        Raises:
            DeclarationError: a job that cannot run.
        """
        if self._pump is not None:
            message = "This worker was started before; make a new one."
            raise WrongContext(message)
        for wire_name in sorted(self._definitions.wire_names()):
            definition = self._definitions.get(wire_name)
            if definition is not None:
                definition.resolve()
        loop = asyncio.get_running_loop()
        pump = self._pump = self._make_pump()
        ended = self._heart_ended = loop.create_future()
        self._heart.start(
            tell=lambda event: pump.tell_threadsafe(lambda _: event),
            ping=lambda: _threadsafe(loop, self._heart.turned),
            on_end=lambda error: _threadsafe(loop, lambda: self._note_heart_end(ended, error)),
        )
        self._unwatch = self._store.watch(lambda: pump.tell_threadsafe(Hinted))

    async def wait(self) -> None:
        """Until the worker has drained, by `stop` or by a signal; then close it.

        Raises:
            Exception: whatever fault of the worker itself ended it.
        """
        pump = self._started()
        try:
            self._unreported = await asyncio.shield(pump.drained)
        finally:
            await self._close()

    async def stop(self, grace: timedelta | None = None) -> None:
        """Drain and wait for the end. `grace` overrides the setting."""
        self.drain(grace)
        await self.wait()

    def drain(self, grace: timedelta | None = None) -> None:
        """Start to end; `wait` tells when it is over. On the loop's thread."""
        pump = self._started()
        seconds = (self._settings.grace if grace is None else grace).total_seconds()
        pump.tell(DrainAsked(pump.now, seconds))

    def hurry(self) -> None:
        """End the present phase of the drain at once. On the loop's thread."""
        pump = self._started()
        pump.tell(HurryAsked(pump.now))

    async def run(self) -> None:
        """Start, obey SIGTERM and SIGINT, and wait for the end."""
        loop = asyncio.get_running_loop()
        await self.start()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._signalled)
        try:
            await self.wait()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

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

    def _signalled(self) -> None:
        pump = self._started()
        if pump.draining:
            logger.warning("Signalled again: hurrying.")
            self.hurry()
            return
        logger.info("Signalled: no more jobs are claimed; running handlers may finish.")
        self.drain()

    def _make_heart(self) -> Heart:
        introduce = introduction(
            self._policy.queues, self._definitions.wire_names(), self._settings.concurrency
        )
        return Heart(self._store, self._settings.pulse_options(), introduce, self._clock)

    def _make_pump(self) -> Pump:
        settings = self._settings
        store_time = StoreTime(self._clock)
        calls = StoreCalls(
            self._store, settings.lease, settings.delivery_timeout, self._clock, store_time
        )
        executor = Executor(self._definitions, self._context_factory, store_time.now, self._threads)
        node = Node(settings.node_options(self._definitions.wire_names()), self._policy)
        return Pump(Parts(node, calls, executor, self._heart, self._clock))

    def _note_heart_end(self, ended: asyncio.Future[None], error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(None)
        pump = self._pump
        if error is not None and pump is not None and not pump.drained.done():
            message = "the heart of the worker died; its jobs lapse and run elsewhere"
            pump.drained.set_exception(StoreError(message))

    async def _close(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        self._heart.stop()
        if self._heart_ended is not None:
            await asyncio.shield(self._heart_ended)
        self._threads.close()
        if self._unreported:
            logger.error(
                "Ended with %d outcomes unreported; their attempts lapse and run again.",
                self._unreported,
            )

    def _started(self) -> Pump:
        if self._pump is None:
            message = "This worker has not been started; use `async with` or `await start()`."
            raise WrongContext(message)
        return self._pump


def _threadsafe(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:  # the loop has closed: nobody is left to tell
        return
