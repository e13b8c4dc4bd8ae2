"""The runs of a harness: what is due is run, and time moves only when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import ParamSpec, TypeVar

from tidemill.core.dispatch import DispatchPolicy, Strict, policy_for
from tidemill.errors import WrongContext
from tidemill.jobs import JobHandle
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import CountJobs
from tidemill.testing.errors import JobFailed
from tidemill.testing.looking import Looking
from tidemill.testing.queues import EveryQueue
from tidemill.testing.rig import Ran, Rig
from tidemill.testing.time import span
from tidemill.testing.view import Job, JobView, known
from tidemill.values.durations import Duration
from tidemill.values.jobs import DEFAULT_QUEUE, PRIORITY_RANGE
from tidemill.values.operators import ActionResult, Effect
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.workers import Pair

P = ParamSpec("P")
R = TypeVar("R")

ACTOR = "harness"


class Running(Looking):
    """The part of a harness that runs jobs, moves time, and cancels."""

    _queues: Sequence[str] | Mapping[str, int] | None = None
    """The queues to serve; None is every queue that has jobs."""
    _draining = False
    _next_due: datetime | None = None

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

    async def cancel(self, job: Job, *, actor: str = ACTOR) -> ActionResult:
        """Cancel a job. A running handler hears of it at once, if a run is under way.

        For cancelling a running handler, start the run in a task of its own:
        `run = asyncio.create_task(h.run_until_idle())`.
        """
        self._require_open()
        return await self.mill.jobs.cancel(known(job), actor=actor)

    def _policy(self) -> DispatchPolicy:
        if self._queues is not None:
            return policy_for(self._queues)
        declared = {definition.defaults.queue for definition in self.mill.registry}
        return EveryQueue({DEFAULT_QUEUE, *declared, *self._queues_in_use()})

    def _queues_in_use(self) -> set[str]:
        return {count.queue for count in self.store.perform_sync(CountJobs())}

    async def _run(self, policy: DispatchPolicy, *, once: bool = False) -> Ran:
        self._require_open()
        outlook = _Outlook(self._queues_in_use, policy) if isinstance(policy, EveryQueue) else None
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


class _Outlook:
    """Has the policy learn of queues that were first used during a run."""

    def __init__(self, in_use: Callable[[], set[str]], policy: EveryQueue) -> None:
        self._in_use = in_use
        self._policy = policy

    def more(self) -> bool:
        return self._policy.learn(self._in_use())
