"""Running one attempt's handler, and saying how it ended.

Whatever the handler does, exactly one ending comes out of it, when it has really ended.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast

from tidemill.shell.ambient import enter
from tidemill.shell.cancellation import Cancellation
from tidemill.shell.captured import captured
from tidemill.shell.completion import Completion
from tidemill.shell.definitions import (
    ContextFactory,
    Definitions,
    HandlerContext,
    JobDefinition,
)
from tidemill.shell.ears import DEAF, Ears
from tidemill.shell.endings import decoded, ending_of, no_handler
from tidemill.shell.forks import end_here
from tidemill.shell.leaving import Leaving
from tidemill.shell.notepad import NOTHING, Notepad, Said
from tidemill.shell.processes import Processes
from tidemill.shell.scope import Injection, Scopes, scopes_for
from tidemill.shell.scoped import Given, ScopedAttempt
from tidemill.shell.talk import AttemptTalk
from tidemill.shell.threads import DaemonThreads
from tidemill.values.endings import (
    CancelReason,
    Ending,
    Raised,
    Returned,
    Stopped,
)
from tidemill.values.jobs import Claimed

Report = Callable[[Ending], None]
T = TypeVar("T")


class Execution:
    """One attempt on its way: its cancellation, how to interrupt it, and what it says."""

    def __init__(self, interrupt: Callable[[], None] | None = None, ears: Ears = DEAF) -> None:
        """Start uninterrupted; `interrupt` stops a coroutine, a thread can only be told.

        `ears` are the worker's.
        """
        self.cancellation = Cancellation()
        self.interrupt = interrupt
        self.ears = ears
        self.notepad: Notepad | None = None
        self.leaving: Leaving | None = None
        self.reason: CancelReason | None = None
        self.actor: str | None = None

    def open_notepad(self) -> Notepad:
        """Where the handler says how it goes; one that has no context says nothing."""
        self.notepad = Notepad(self.ears.note)
        return self.notepad

    def end(self) -> Said:
        """The handler has ended: what it said last. What it left running is not heard any more."""
        if self.leaving is not None:
            self.leaving.close()
        return NOTHING if self.notepad is None else self.notepad.close()

    def cancel(self, reason: CancelReason, actor: str | None = None) -> None:
        """Tell the handler to stop, and interrupt it where that can be done.

        The handler keeps its first reason; how the attempt ends follows from the last one.
        """
        self.reason, self.actor = reason, actor
        self.cancellation.set(reason)
        if self.interrupt is not None:
            self.interrupt()


class Executor:
    """Starts handlers: coroutines as tasks of the loop, plain functions on threads, and processes.

    Without `processes`, handlers for a process run here as any others do: in tests, and inside
    such a process.
    """

    def __init__(
        self,
        definitions: Definitions,
        context_factory: ContextFactory,
        now: Callable[[], datetime],
        threads: DaemonThreads,
        scopes: Scopes | None = None,
    ) -> None:
        """Take what every attempt needs."""
        self.processes: Processes | None = None
        self._definitions = definitions
        self._context_factory = context_factory
        self._now = now
        self._threads = threads
        self._scopes = scopes
        self._tasks: set[asyncio.Task[Ending]] = set()

    def start(self, job: Claimed, report: Report, ears: Ears = DEAF) -> Execution:
        """Start the attempt; `report` is called once, on the loop's thread, when it ended."""
        execution = Execution(ears=ears)
        definition = self._definitions.get(job.wire_name)
        if definition is not None and definition.in_process and self.processes is not None:
            self._start_process(self.processes, job, execution, report)
        elif definition is None or definition.is_async or definition.injection is not None:
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
        context = copy_context()

        def run() -> Ending:
            return context.run(self._run_plain, definition, job, execution)

        self._start_on_thread(run, report)

    def _start_process(
        self, processes: Processes, job: Claimed, execution: Execution, report: Report
    ) -> None:
        notepad = execution.open_notepad()
        attempt = processes.attempt(job, execution.ears.begin_completion, notepad)

        def interrupt() -> None:
            reason = execution.cancellation.reason
            assert reason is not None, "interrupted without a reason"
            attempt.stop(reason)

        execution.interrupt = interrupt
        self._start_on_thread(attempt.run, report)

    def _start_on_thread(self, run_it: Callable[[], Ending], report: Report) -> None:
        loop = asyncio.get_running_loop()
        process = os.getpid()

        def run() -> None:
            ending = run_it()
            if os.getpid() != process:
                end_here()
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
            return no_handler(job)
        enter(job)
        try:
            if definition.injection is not None:
                return await self._run_scoped(definition, definition.injection, job, execution)
            call, returned = self._prepare(definition, job, execution)
            return returned(await cast("Coroutine[Any, Any, object]", call()))
        except asyncio.CancelledError:
            return Stopped()
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return ending_of(error)

    def _run_plain(self, definition: JobDefinition, job: Claimed, execution: Execution) -> Ending:
        enter(job)
        try:
            call, returned = self._prepare(definition, job, execution)
            return returned(call())
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure
            return ending_of(error)

    def _prepare(
        self, definition: JobDefinition, job: Claimed, execution: Execution
    ) -> tuple[Callable[[], object], Callable[[object], Returned]]:
        """How to call the handler, and what its value makes of the attempt."""
        arguments = decoded(definition, job)
        if not definition.wants_context:
            return (
                lambda: definition.function(**arguments),
                lambda value: Returned(definition.encode_output(value)),
            )
        context, talk = self._context(definition, job, execution)
        return (
            lambda: definition.function(context, **arguments),
            partial(_returned, context, talk),
        )

    def _context(
        self, definition: JobDefinition, job: Claimed, execution: Execution
    ) -> tuple[HandlerContext, AttemptTalk]:
        completion = Completion(execution.ears.begin_completion, definition.encode_output)
        talk = AttemptTalk(completion, Leaving(job), execution.open_notepad())
        execution.leaving = talk.leaving
        return self._context_factory(job, execution.cancellation, self._now, talk), talk

    async def _run_scoped(
        self, definition: JobDefinition, injection: Injection, job: Claimed, execution: Execution
    ) -> Ending:
        arguments = decoded(definition, job)
        context, talk = self._context(definition, job, execution)

        def call(taken: Given) -> object:
            first = (*taken.first, context) if definition.wants_context else taken.first
            return definition.function(*first, **arguments, **taken.services)

        attempt = ScopedAttempt(job, injection, call, partial(_returned, context, talk))
        opening = scopes_for(definition, self._scopes).open(context)
        if definition.is_async:
            return await attempt.run_coroutine(opening)
        return await attempt.run_plain(opening, partial(self._on_thread, execution))

    async def _on_thread(self, execution: Execution, call: Callable[[], T]) -> T:
        """Run a call that does not raise. Meanwhile nothing can interrupt the attempt."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        context = copy_context()
        process = os.getpid()

        def settle(answer: T) -> None:
            if not done.done():
                done.set_result(answer)

        def run() -> None:
            answer = context.run(call)
            if os.getpid() != process:
                end_here()
            try:
                loop.call_soon_threadsafe(settle, answer)
            except RuntimeError:  # the loop has closed: the attempt was given back before that
                return

        interrupt, execution.interrupt = execution.interrupt, None
        try:
            self._threads.submit(run)
            return await done
        finally:
            execution.interrupt = interrupt


def _returned(context: HandlerContext, talk: AttemptTalk, value: object) -> Returned:
    """What a handler's return makes of its attempt."""
    output, tags = talk.completion.made_of(value, context.tags)
    return Returned(output, tags, talk.leaving.close())
