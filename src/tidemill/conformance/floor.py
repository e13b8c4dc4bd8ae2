"""A floor: the store under test that fails to order, one worker, and virtual time."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from tidemill.conformance.faulty import FaultyStore
from tidemill.conformance.scenes import AT_ONCE, enqueue_one, state_of
from tidemill.conformance.timeline import LONG, Timeline
from tidemill.conformance.virtual_shell import VirtualShell
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import JobId
from tidemill.values.outcomes import Answer
from tidemill.values.states import JobState

QUICKLY: Final = 0.5
"""Seconds that a handler takes which hurries: less than a poll interval."""


class Floor:
    """One worker at a store that fails to order.

    Args:
        store: the store under test.
        clock: its clock, which follows the timeline from here on.
        jobs: how many jobs are enqueued before the worker starts.
        shell: what its `VirtualShell` is told.
    """

    def __init__(self, store: Store, clock: VirtualClock, *, jobs: int = 0, **shell: Any) -> None:
        self.store = store
        self.faulty = FaultyStore(store, clock)
        self.timeline = Timeline(clock)
        self.jobs: list[JobId] = []
        self.enqueue(jobs)
        self.shell = VirtualShell(self.faulty, self.timeline, **shell)

    def enqueue(self, jobs: int) -> list[JobId]:
        """Enqueue so many jobs, whose attempts wait out no backoff."""
        fresh = [enqueue_one(self.store, retry=AT_ONCE) for _ in range(jobs)]
        self.jobs += fresh
        return fresh

    def run_until_running(self, handlers: int, within: float = LONG) -> None:
        """Let time pass until so many handlers run."""
        self.timeline.run_until(lambda: len(self.shell.handlers) == handlers, within)

    def succeeded(self) -> list[JobId]:
        """The jobs that have succeeded."""
        return [job for job in self.jobs if state_of(self.store, job) is JobState.SUCCEEDED]

    def run_to_the_end(self) -> None:
        """Mend the store, and let handlers return until each job has succeeded once."""
        self.faulty.mend()
        self.shell.let_return(QUICKLY)
        self.timeline.run_until(lambda: self.succeeded() == self.jobs)
        assert successes(self.faulty) == Counter(self.jobs)
        assert not self.shell.ended, "no fault of its store ends a worker"


def successes(faulty: FaultyStore) -> Counter[JobId]:
    """How often a success of each job was applied, whoever heard of it."""
    answers = [each.answer for each in faulty.asked if isinstance(each.answer, Exchanged)]
    return Counter(
        said.job_id
        for answer in answers
        for said in answer.reported
        if (said.answer, said.state) == (Answer.APPLIED, JobState.SUCCEEDED)
    )
