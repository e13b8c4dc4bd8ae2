"""The memory store of a harness."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from tidemill.store.complete import Complete
from tidemill.store.contract import Operation
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.memory import MemoryStore, VirtualClock
from tidemill.store.monitor import GetEnd
from tidemill.store.operators import Cancel
from tidemill.testing.errors import NobodyRuns
from tidemill.values.bounds import Bounds
from tidemill.values.ids import JobId
from tidemill.values.jobs import NewJob
from tidemill.values.monitor import JobEnd

R = TypeVar("R")


class HarnessStore(MemoryStore):
    """The memory store on virtual time, with three differences that a test needs.

    * Backoffs have no jitter, so that a retry is due at an instant that a test can name.
    * A cancel request is heard at once, not with the next heartbeat.
    * Waiting for a result while nothing runs jobs ends in `NobodyRuns` instead of never.

    Args:
        clock: the virtual clock.
        bounds: the app's.
        patience: real seconds that a result is waited for while nothing runs.
        running: whether something runs jobs.
    """

    def __init__(
        self,
        clock: VirtualClock,
        bounds: Bounds,
        *,
        patience: float,
        running: Callable[[], bool],
    ) -> None:
        super().__init__(clock, bounds=bounds)
        self.clock = clock
        self.on_cancel: Callable[[], None] = lambda: None
        self._patience = patience
        self._running = running
        self._waiting: dict[JobId, float] = {}

    def perform_sync(self, operation: Operation[R]) -> R:
        """As `Store.perform_sync`."""
        asked: Any = _without_jitter(operation)
        answer: R = super().perform_sync(asked)
        if isinstance(asked, Cancel):
            self.on_cancel()
        if isinstance(asked, GetEnd) and isinstance(answer, JobEnd):
            self._notice_wait(asked.job_id, answer)
        return answer

    def _notice_wait(self, job_id: JobId, end: JobEnd) -> None:
        if end.state.terminal or self._running():
            self._waiting.clear()
            return
        since = self._waiting.setdefault(job_id, time.monotonic())
        if time.monotonic() - since >= self._patience:
            del self._waiting[job_id]
            raise NobodyRuns(job_id, end.state.value, self._patience, self.clock())


def _without_jitter(operation: Operation[Any]) -> Operation[Any]:
    """The same, with exact backoffs for the jobs that it stores, however it stores them."""
    match operation:
        case Enqueue(jobs):
            return Enqueue(_exact(jobs))
        case Exchange(outcomes=outcomes) if any(outcome.children for outcome in outcomes):
            exact = (replace(each, children=_exact(each.children)) for each in outcomes)
            return replace(operation, outcomes=tuple(exact))
        case Complete(children=children):
            return replace(operation, children=_exact(children))
        case _:
            return operation


def _exact(jobs: Iterable[NewJob]) -> tuple[NewJob, ...]:
    return tuple(replace(job, retry=replace(job.retry, jitter=0.0)) for job in jobs)
