"""The harness: an app on a memory store in virtual time, its jobs run when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from tidemill.app import Tidemill
from tidemill.core.dispatch import DispatchPolicy, Strict, policy_for
from tidemill.errors import ConfigurationError, WrongContext
from tidemill.jobs import JobHandle
from tidemill.shell.inline import InlineCalls
from tidemill.shell.threads import DaemonThreads
from tidemill.store.enqueue import Enqueue
from tidemill.store.memory import VirtualClock
from tidemill.store.monitor import CountJobs, GetJob, ListJobs
from tidemill.testing.enqueued import Expectation
from tidemill.testing.errors import JobFailed
from tidemill.testing.originals import Originals
from tidemill.testing.queues import EveryQueue
from tidemill.testing.rig import Bench, Ran, Rig
from tidemill.testing.store import HarnessStore
from tidemill.testing.time import START, instant, span
from tidemill.testing.view import Job, JobView, known, view_of
from tidemill.values.durations import Duration, duration
from tidemill.values.ids import JobId
from tidemill.values.jobs import DEFAULT_QUEUE, PRIORITY_RANGE
from tidemill.values.monitor import JobFilter
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.workers import Pair

if TYPE_CHECKING:
    from collections.abc import Generator

    from tidemill.testing.sync import SyncHarness

P = ParamSpec("P")
R = TypeVar("R")

MOST_EXECUTIONS = 10_000
ACTOR = "harness"


class Harness:
    """Runs an app's jobs in a test: deterministic, on virtual time, in the test's own event loop.

    From `with` or `async with` on, everything the app does goes to an empty memory store; when
    the block is left, however it is left, the app has its own store again (clause N1). Jobs run
    inside `run_until_idle`, `run_for` and `perform` only, by the decisions and the code that a
    worker runs them by. Time stands still until `advance` or `run_for` moves it.

    Args:
        mill: the app.
        start: the first instant, as an aware datetime or ISO 8601 text with its offset; by default
            2026-01-01T00:00Z.
        queues: the queues to serve, as for a worker; by default every queue that has jobs.
        concurrency: attempts that run at once. With one, the default, the order of execution is
            the order of the claim. Handlers that wait for each other need more.
        inline: run plain handlers on the test's own thread instead of another one: for database
            connections that belong to a thread. They cannot be interrupted then.
        give_up_after: how long one handler may take, in real time, before `StuckHandler`.
        most_executions: how many attempts one run may start before `Runaway`.

    Raises:
        ConfigurationError: a start, a queue or a bound that cannot work.
    """

    def __init__(
        self,
        mill: Tidemill,
        *,
        start: datetime | str = START,
        queues: Sequence[str] | Mapping[str, int] | None = None,
        concurrency: int = 1,
        inline: bool = False,
        give_up_after: Duration = "10s",
        most_executions: int = MOST_EXECUTIONS,
    ) -> None:
        if concurrency < 1:
            message = f"concurrency={concurrency} leaves no slot; give at least 1."
            raise ConfigurationError(message)
        if queues is not None:
            policy_for(queues)
        self.mill = mill
        self._queues = queues
        self._start = instant(start)
        self._clock = VirtualClock(self._start)
        self._slots = concurrency
        self._inline = inline
        self._give_up_after = duration(give_up_after, "give_up_after").total_seconds()
        self._most_executions = most_executions
        self._rigs: list[Rig] = []
        self._draining = False
        self._performed: set[JobId] = set()
        self._opened: ExitStack | None = None
        self._closed = False
        self._next_due: datetime | None = None

    def __enter__(self) -> Self:
        if self._opened is not None or self._closed:
            message = "This harness was entered before; make a new one for another block."
            raise WrongContext(message)
        self.mill.load_imports()
        with ExitStack() as stack:
            stack.enter_context(self.mill.using(self.store))
            stack.callback(self._bench.threads.close)
            self._opened = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._opened is not None, "left before it was entered"
        self._closed = True
        self._opened.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    @cached_property
    def store(self) -> HarnessStore:
        """The memory store that stands in for the app's own."""
        return HarnessStore(
            self._clock,
            self.mill.bounds,
            patience=self._give_up_after,
            running=lambda: bool(self._rigs),
        )

    @property
    def now(self) -> datetime:
        """The virtual instant, in UTC: what `ctx.now()` says."""
        return self._clock()

    @property
    def sync(self) -> SyncHarness:
        """The same for tests without a loop: `h.sync.run_until_idle()`."""
        # It imports this module.
        from tidemill.testing.sync import SyncHarness  # noqa: PLC0415 - as said above

        return SyncHarness(self, lambda: self._runner)

    # Running

    async def run_until_idle(self, *, raise_errors: bool = True) -> int:
        """Run what is due, and what that makes due, and answer how many executions it took.

        Every try counts. A retry that waits out its backoff is not due: `advance`, and run again.

        Raises:
            JobFailed: a job ended `dead` or `quarantined`; from its last exception. It is raised
                when everything else has run, and not at all with `raise_errors=False`.
            StuckHandler: a handler does not end. It was told to stop, its job given back.
            Runaway: it does not become idle.
            WrongContext: it is running already, or the harness is not open.
        """
        if self._draining:
            message = "run_until_idle is running already, and runs what is enqueued meanwhile too."
            raise WrongContext(message)
        self._draining = True
        try:
            ran = await self._run(self._policy())
        finally:
            self._draining = False
        if raise_errors:
            self._raise_worst(ran)
        return ran.executions.total()

    async def run_for(
        self,
        by: Duration | None = None,
        /,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        raise_errors: bool = True,
    ) -> int:
        """Let time pass as a worker would see it: each job runs at the instant it falls due.

        Retries and whatever jobs enqueue run on the way; answers how many executions it took.

        Raises:
            JobFailed, StuckHandler, Runaway: as `run_until_idle`, at the instant it happened.
        """
        end = self.now + span(
            by, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds
        )
        executions = await self.run_until_idle(raise_errors=raise_errors)
        while self._next_due is not None and self.now < self._next_due <= end:
            self._move(self._next_due)
            executions += await self.run_until_idle(raise_errors=raise_errors)
        self._move(end)
        return executions + await self.run_until_idle(raise_errors=raise_errors)

    async def advance(
        self,
        by: Duration | None = None,
        /,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> datetime:
        """Move virtual time on, and answer the new instant. Nothing is run by that.

        While a run is under way, from another task or from a handler, the timeouts of running
        handlers that are passed cancel them.

        Raises:
            ConfigurationError: time cannot be moved back.
        """
        self._require_open()
        self._move(
            self.now
            + span(by, weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        )
        return self.now

    async def perform(self, handle: JobHandle[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one job of this kind, alone and once, and answer what its handler returned.

        It takes the whole way: the arguments are encoded, stored, claimed and decoded, the output
        is stored and read. It runs now, whatever the handle's options say of time, and is not
        tried again. Other jobs stay where they are, those that the handler enqueues too.

        Raises:
            Exception: whatever the handler raised, `Discard`, `Snooze` and `RetryAfter` included.
            JobFailed: it did not succeed for another reason, such as its timeout.
            EncodingError: an argument or the output cannot be written down.
        """
        self._require_open()
        bound = handle.bind(*args, **kwargs)
        request = replace(
            bound.request(),
            priority=PRIORITY_RANGE[-1],
            retry=Retry.never(),
            delay=None,
            due_at=None,
            not_after=None,
            expires=None,
            idempotency_key=None,
        )
        (answer,) = self.store.perform_sync(Enqueue((request,)))
        self._performed.add(request.id)
        await self._run(Strict((request.queue,)), once=True)
        job = self._look(request.id)
        if job.state is not JobState.SUCCEEDED:
            await self._raise_performed(job)
        return await bound.ref(answer).result()

    # Looking

    async def job(self, job: Job) -> JobView:
        """One job as it is now, by its reference, its id or an earlier view.

        Raises:
            NotFound: no job has that id.
        """
        return view_of(await self.mill.jobs.get(known(job)))

    async def jobs(
        self,
        *,
        state: JobState | str | Iterable[JobState | str] | None = None,
        queue: str | None = None,
        handle: JobHandle[..., Any] | None = None,
    ) -> list[JobView]:
        """The jobs of a state (or of several), a queue, a kind: oldest first, all by default.

        Raises:
            ValueError: a state that does not exist.
        """
        states = [state] if isinstance(state, str) else state or ()
        where = JobFilter(states=frozenset(map(JobState, states)), queue=queue)
        found = self._list(where)
        names = None if handle is None else self._names(handle)
        return [job for job in found if names is None or job.wire_name in names]

    def enqueued(self, handle: JobHandle[..., Any], /, **arguments: Any) -> list[JobView]:
        """Assert that such a job was enqueued, and answer those that were, oldest first.

        Each argument that is given must be equal to the job's, decoded; what is not given may be
        anything. Jobs count whatever became of them, `perform` does not.

        Raises:
            AssertionError: there is none; the message lists what was enqueued.
            TypeError: the handler has no parameter of that name.
        """
        __tracebackhide__ = True
        return Expectation(self.mill.registry, handle, arguments).among(self._enqueued())

    def not_enqueued(self, handle: JobHandle[..., Any], /, **arguments: Any) -> None:
        """Assert that no such job was enqueued.

        Raises:
            AssertionError: there is one.
            TypeError: the handler has no parameter of that name.
        """
        __tracebackhide__ = True
        Expectation(self.mill.registry, handle, arguments).absent_from(self._enqueued())

    # Acting

    async def cancel(self, job: Job, *, actor: str = ACTOR) -> ActionResult:
        """Cancel a job. A running handler hears of it at once, if a run is under way.

        For cancelling a running handler, start the run in a task of its own:
        `run = asyncio.create_task(h.run_until_idle())`.
        """
        self._require_open()
        return await self.mill.jobs.cancel(known(job), actor=actor)

    # Inside

    @cached_property
    def _bench(self) -> Bench:
        return Bench(
            store=self.store,
            definitions=Originals(self.mill.registry),
            threads=InlineCalls() if self._inline else DaemonThreads(self._slots, "harness"),
            start=self._start,
            slots=self._slots,
            give_up_after=self._give_up_after,
            most_executions=self._most_executions,
            scopes=lambda: self.mill.scopes,
        )

    @cached_property
    def _runner(self) -> asyncio.Runner:
        assert self._opened is not None, "asked for by a harness that is open"
        return self._opened.enter_context(asyncio.Runner())

    def _policy(self) -> DispatchPolicy:
        if self._queues is not None:
            return policy_for(self._queues)
        declared = {definition.defaults.queue for definition in self.mill.registry}
        return EveryQueue({DEFAULT_QUEUE, *declared, *self._queues_in_use()})

    def _queues_in_use(self) -> set[str]:
        return {count.queue for count in self.store.perform_sync(CountJobs())}

    async def _run(self, policy: DispatchPolicy, *, once: bool = False) -> Ran:
        self._require_open()
        outlook = _Outlook(self, policy) if isinstance(policy, EveryQueue) else None
        rig = Rig(self._bench, policy, outlook, once=once)
        with self._at_work(rig):
            ran = await rig.run()
        if not once:
            self._next_due = ran.next_due
        return ran

    @contextmanager
    def _at_work(self, rig: Rig) -> Generator[None]:
        self._rigs.append(rig)
        self.store.on_cancel = self._tell_of_cancel
        try:
            yield
        finally:
            self._rigs.remove(rig)

    def _tell_of_cancel(self) -> None:
        for rig in tuple(self._rigs):
            rig.cancel_asked()

    def _move(self, to: datetime) -> None:
        self._clock.set(to)
        for rig in self._rigs:
            rig.time_moved()

    def _raise_worst(self, ran: Ran) -> None:
        """Raise the first job that ended badly, with a note of the others."""
        if not ran.ended_badly:
            return
        first, *others = (self._failure(pair) for pair in ran.ended_badly)
        for other in others:
            first.add_note(f"And: {other}")
        raise first

    def _failure(self, pair: Pair) -> JobFailed:
        failure = JobFailed(self._look(pair.job_id))
        failure.__cause__ = self._bench.definitions.of(pair)
        return failure

    async def _raise_performed(self, job: JobView) -> None:
        if not job.state.terminal:
            result = await self.cancel(job.id)
            assert result.effect is Effect.DONE, "it was snoozed, or given back"
        if not job.attempt:
            message = f"Job {job.wire_name} {job.id} was not run: another one went first."
            raise WrongContext(message)
        error = self._bench.definitions.of(Pair(job.id, job.attempt))
        raise self._failure(Pair(job.id, job.attempt)) if error is None else error

    def _look(self, job_id: JobId) -> JobView:
        details = self.store.perform_sync(GetJob(job_id))
        assert details is not None, "a harness deletes no job"
        return view_of(details)

    def _list(self, where: JobFilter) -> list[JobView]:
        cursor, found = None, list[JobId]()
        while True:
            page = self.store.perform_sync(
                ListJobs(where=where, cursor=cursor, limit=self.store.bounds.page_size)
            )
            found += [record.id for record in page.jobs]
            cursor = page.next_cursor
            if cursor is None:
                return [self._look(job_id) for job_id in reversed(found)]

    def _enqueued(self) -> list[JobView]:
        return [job for job in self._list(JobFilter()) if job.id not in self._performed]

    def _names(self, handle: JobHandle[..., Any]) -> tuple[str, ...]:
        definition = self.mill.registry.get(handle.wire_name)
        return (handle.wire_name,) if definition is None else definition.names

    def _require_open(self) -> None:
        if self._opened is None or self._closed:
            message = "The harness is not open: use it inside `async with` or `with`."
            raise WrongContext(message)


class _Outlook:
    """Has the policy learn of queues that were first used during a run."""

    def __init__(self, harness: Harness, policy: EveryQueue) -> None:
        self._harness = harness
        self._policy = policy

    def more(self) -> bool:
        queues = self._harness._queues_in_use()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - a part of it
        return self._policy.learn(queues)
