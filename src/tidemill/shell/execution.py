"""Running one attempt's handler, and saying how it ended.

Whatever the handler does, exactly one ending comes out of it, when it has really ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from datetime import datetime, timedelta
from typing import Any, cast

from tidemill.errors import DecodingError, JobCancelled
from tidemill.shell.cancellation import Cancellation
from tidemill.shell.captured import captured
from tidemill.shell.definitions import ContextFactory, Definitions, JobDefinition
from tidemill.shell.threads import DaemonThreads
from tidemill.values import causes
from tidemill.values.endings import (
    CancelReason,
    Discarded,
    Ending,
    Raised,
    Returned,
    Snoozed,
    Stopped,
    Unroutable,
)
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.wishes import Discard, RetryAfter, Snooze

Report = Callable[[Ending], None]

NO_HANDLER = "tidemill.NoHandler"


class Execution:
    """One attempt on its way: its cancellation, and how to interrupt it."""

    def __init__(self, interrupt: Callable[[], None] | None = None) -> None:
        """Start uninterrupted; `interrupt` stops a coroutine, a thread can only be told."""
        self.cancellation = Cancellation()
        self.interrupt = interrupt

    def cancel(self, reason: CancelReason) -> None:
        """Tell the handler to stop, and interrupt it where that can be done."""
        self.cancellation.set(reason)
        if self.interrupt is not None:
            self.interrupt()


class Executor:
    """Starts handlers: coroutines as tasks of the loop, plain functions on threads."""

    def __init__(
        self,
        definitions: Definitions,
        context_factory: ContextFactory,
        now: Callable[[], datetime],
        threads: DaemonThreads,
    ) -> None:
        """Take what every attempt needs."""
        self._definitions = definitions
        self._context_factory = context_factory
        self._now = now
        self._threads = threads
        self._tasks: set[asyncio.Task[Ending]] = set()

    def start(self, job: Claimed, report: Report) -> Execution:
        """Start the attempt; `report` is called once, on the loop's thread, when it ended."""
        execution = Execution()
        definition = self._definitions.get(job.wire_name)
        if definition is None or definition.is_async:
            self._start_coroutine(definition, job, execution, report)
        else:
            self._start_thread(definition, job, execution, report)
        return execution

    @property
    def unfinished(self) -> int:
        """Coroutines that have not ended. A loop that is closed in order waits for them."""
        return len(self._tasks)

    async def wait(self, timeout: float) -> None:
        """Wait for the coroutines to end, at most `timeout` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout)

    def _start_coroutine(
        self,
        definition: JobDefinition | None,
        job: Claimed,
        execution: Execution,
        report: Report,
    ) -> None:
        coroutine = self._run_async(definition, job, execution)
        running = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(running)

        def interrupt() -> None:
            running.cancel()

        def ended(task: asyncio.Task[Ending]) -> None:
            self._tasks.discard(task)
            report(Stopped() if task.cancelled() else task.result())

        execution.interrupt = interrupt
        running.add_done_callback(ended)

    def _start_thread(
        self, definition: JobDefinition, job: Claimed, execution: Execution, report: Report
    ) -> None:
        loop = asyncio.get_running_loop()
        context = copy_context()

        def run() -> None:
            ending = context.run(self._run_plain, definition, job, execution)
            try:
                loop.call_soon_threadsafe(report, ending)
            except RuntimeError:  # the loop has closed: the attempt was given back before that
                return

        try:
            self._threads.submit(run)
        except RuntimeError as error:
            loop.call_soon(report, Raised(captured(error)))

    async def _run_async(
        self, definition: JobDefinition | None, job: Claimed, execution: Execution
    ) -> Ending:
        if definition is None:
            return _no_handler(job)
        try:
            call, tags = self._prepare(definition, job, execution)
            value = await cast("Coroutine[Any, Any, object]", call())
            return Returned(definition.encode_output(value), tags())
        except asyncio.CancelledError:
            return Stopped()
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return ending_of(error)

    def _run_plain(self, definition: JobDefinition, job: Claimed, execution: Execution) -> Ending:
        try:
            call, tags = self._prepare(definition, job, execution)
            value = call()
            return Returned(definition.encode_output(value), tags())
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return ending_of(error)

    def _prepare(
        self, definition: JobDefinition, job: Claimed, execution: Execution
    ) -> tuple[Callable[[], object], Callable[[], Any]]:
        arguments = _decoded(definition, job)
        if not definition.wants_context:
            return (lambda: definition.function(**arguments)), frozenset
        context = self._context_factory(job, execution.cancellation, self._now)
        return (lambda: definition.function(context, **arguments)), lambda: context.tags


class _Undecodable(Exception):
    """Carries a decoding error past a handler's own errors of the same kind."""


def _decoded(definition: JobDefinition, job: Claimed) -> dict[str, object]:
    try:
        return definition.decode(job.payload)
    except DecodingError as error:
        raise _Undecodable from error


def ending_of(error: BaseException) -> Ending:
    """What an exception says about the attempt (clause E3). Never raises, whatever it is."""
    try:
        return _said_by(error)
    except BaseException as failure:  # noqa: BLE001 - a user's exception may do anything
        return Raised(captured(failure))


def _said_by(error: BaseException) -> Ending:
    match error:
        case RetryAfter():
            return Raised(captured(error), _wait(error.delay))
        case Discard():
            return Discarded(captured(error))
        case Snooze():
            return Snoozed(_wait(error.delay))
        case JobCancelled():
            return Stopped()
        case _Undecodable() if error.__cause__ is not None:
            return Unroutable(causes.PAYLOAD, captured(error.__cause__))
        case _:
            return Raised(captured(error))


def _wait(delay: object) -> timedelta:
    """A wait as it was asked for; a subclass may have put anything there. Raises TypeError."""
    if not isinstance(delay, timedelta):
        message = f"The handler asked for a wait of {delay!r}, which is no timedelta."
        raise TypeError(message)
    return delay


def _no_handler(job: Claimed) -> Ending:
    message = f"No handler is registered here for the wire name {job.wire_name!r}."
    return Unroutable(causes.NO_HANDLER, ErrorInfo(NO_HANDLER, message))
