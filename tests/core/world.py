"""A tiny deterministic world: a few workers, one store, virtual time, and faults.

Everything happens at an instant of one heap. A machine is a node and a pulse with a shell that
obeys them; between it and the store lie delays, lost requests, lost answers, and requests that are
committed long after they were given up. After every event the invariants are checked.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

from tests.core.machine import LEASE, LONGEST, Machine, bind
from tests.core.script import START

from tidemill.core.storable import barest
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.memory.store import MemoryStore
from tidemill.store.monitor import GetJob, ListJobs
from tidemill.store.notes import ReadLog
from tidemill.store.operators import Cancel
from tidemill.values.ids import ActionId, JobId, WorkerId
from tidemill.values.jobs import JobDetails, NewJob
from tidemill.values.monitor import JobFilter
from tidemill.values.notes import LogLine, Progress
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.workers import Pair

BEAT = LEASE / 3
OURS = JobFilter(wire_name="job")
"""The jobs that workers run; those that they leave wait in a queue that nobody serves."""
SLOWEST = 0.3
"""The longest way to the store or back when nothing is wrong."""


@dataclass(frozen=True)
class Plan:
    """How bad it gets, and for how long."""

    seed: int
    machines: int = 2
    slots: int = 2
    jobs: int = 8
    fault_rate: float = 0.2
    pauses: int = 1
    drains: int = 0
    cancels: int = 1
    guilty: int = 0
    """Jobs whose ends the store refuses to record: during the storm all of them, afterwards those
    that say more than that an attempt failed."""
    storm: float = 30.0
    """Faults happen until this instant."""


class World:
    """The heap, the store, the machines; `run` plays until every job has ended."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = Random(plan.seed)
        self.now = 0.0
        self.clock = VirtualClock(START)
        self.store = MemoryStore(self.clock)
        self.ids = count(1)
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self.changed = False
        self.ended: dict[JobId, JobState] = {}
        self.executed: Counter[Pair] = Counter()
        self.run_through: set[Pair] = set()
        self.said: Counter[Pair] = Counter()
        self.left: dict[Pair, tuple[NewJob, ...]] = {}
        self.leases: dict[WorkerId, float] = {}
        self.unheld: dict[tuple[WorkerId, Pair], float] = {}
        self.calm_at = plan.storm + LEASE
        self.machines = [Machine(self, number) for number in range(plan.machines)]
        self._enqueue()
        self._plan_faults()

    @property
    def stormy(self) -> bool:
        return self.now < self.plan.storm

    def at(self, at: float, act: Callable[[], None]) -> None:
        heappush(self._heap, (max(at, self.now), next(self._order), act))

    def after(self, wait: float, act: Callable[[], None]) -> None:
        self.at(self.now + wait, act)

    def fresh(self) -> UUID:
        return UUID(int=next(self.ids))

    def perform(self, operation: Any) -> Any:
        self.changed = True
        reply = self.store.perform_sync(operation)
        if isinstance(operation, Register) or (isinstance(operation, Beat) and reply.live):
            self.leases[reply.worker] = self.now + LEASE
        return reply

    def refuses(self, outcome: Outcome) -> bool:
        """Whether the store cannot hold the record of this outcome."""
        if outcome.job_id not in self.jobs[: self.plan.guilty]:
            return False
        given_back = outcome.verdict is Verdict.RELEASED
        return not given_back and (self.stormy or outcome != barest(outcome))

    def say(self, pair: Pair) -> tuple[Progress | None, tuple[LogLine, ...]]:
        """The next word of an attempt."""
        self.said[pair] += 1
        number = self.said[pair]
        line = LogLine(number, self.clock(), f"line {number}")
        return Progress(number / 10, "", self.clock()), (line,)

    def children_of(self, pair: Pair) -> tuple[NewJob, ...]:
        """The jobs that an attempt leaves if it succeeds."""
        number = self.random.choice([0, 0, 1, 2])
        left = tuple(
            NewJob(id=JobId(self.fresh()), wire_name="child", queue="left") for _ in range(number)
        )
        self.left[pair] = left
        return left

    def chance(self, rate: float) -> bool:
        return self.random.random() < rate

    def request(
        self, operation: Any, answered: Callable[[Any], None], failed: Callable[[bool], None]
    ) -> None:
        """Perform an operation at the end of a long way, where everything may go wrong."""
        draw = self.random
        way, back = draw.uniform(0, SLOWEST), draw.uniform(0, SLOWEST)
        fault = draw.randrange(5) if self.stormy and self.chance(self.plan.fault_rate) else None

        def arrive() -> None:
            reply = self.perform(operation)
            if fault is None:
                self.after(back, bind(answered, reply))
            elif fault == 1:  # committed, and the answer lost
                self.after(back, bind(failed, True))
            elif fault == 2:  # a slow answer
                self.after(back + draw.uniform(1, LEASE), bind(answered, reply))

        if fault == 0:  # nothing was committed
            self.after(way, bind(failed, False))
        elif fault == 3:  # nothing was committed, but who knows
            self.after(way, bind(failed, True))
        elif fault == 4:  # given up, and committed only then
            self.after(way, bind(failed, True))
            self.after(way + draw.uniform(0, LEASE), arrive)
        else:
            self.after(way, arrive)

    def run(self) -> None:
        """Play until everything has ended; it must, soon after the faults have stopped."""
        for machine in self.machines:
            self.at(self.random.random(), machine.begin)
        limit = self.calm_at + 10 * LEASE + 4 * LONGEST * self.plan.jobs
        limit += 40 * LEASE * self.plan.guilty  # each of their ends is refused twice or more
        while self._heap and not self._over():
            at, _, act = heappop(self._heap)
            assert at <= limit, f"at {at} something still has not ended: {self._leftovers()}"
            if at > self.now:
                self.now = at
                self.clock.set(START + timedelta(seconds=at))
            act()
            self._check()
        assert self._over(), f"nothing more happens: {self._leftovers()}"
        if not (self.plan.pauses or self.plan.fault_rate):
            jobs = self.store.perform_sync(ListJobs(where=OURS, limit=200)).jobs
            assert not any(job.lapses for job in jobs), "nothing lapses when nothing fails"
        self._check_what_was_left()
        for job_id in self.jobs:
            self._check_what_was_said(job_id)

    def _check_what_was_left(self) -> None:
        """The jobs that attempts left are there for the recorded successes, once, and no others."""
        children = JobFilter(wire_name="child")
        there = {
            job.id for job in self.store.perform_sync(ListJobs(where=children, limit=200)).jobs
        }
        expected = set()
        for job_id, state in self.ended.items():
            if state is JobState.SUCCEEDED:
                job = self._job(job_id)
                expected |= {child.id for child in self.left[Pair(job_id, job.attempt)]}
        assert there == expected, "a success and the jobs that it left are stored together"

    def _check_what_was_said(self, job_id: JobId) -> None:
        """Of an attempt that was reported all is there, of one that lapsed a part, in order."""
        job = self._job(job_id)
        ends = {each.attempt: each.verdict for each in job.attempts if not each.stale}
        if job.state is JobState.SUCCEEDED:
            ends[job.attempt] = Verdict.SUCCEEDED
        lines = self.store.perform_sync(ReadLog(job_id, limit=200)).lines
        for attempt, verdict in ends.items():
            found = [line.number for line in lines if line.attempt == attempt]
            said = self.said[Pair(job_id, attempt)]
            assert len(set(found)) == len(found), "a line is stored once"
            assert set(found) <= set(range(1, said + 1))
            lessened = job_id in self.jobs[: self.plan.guilty] or verdict is Verdict.RELEASED
            if verdict is not Verdict.LAPSED and not lessened:
                assert found == list(range(1, said + 1)), "the end brings what was said last"

    def _job(self, job_id: JobId) -> JobDetails:
        job = self.store.perform_sync(GetJob(job_id))
        assert job is not None
        return job

    def _over(self) -> bool:
        drained = all(m.stopped for m in self.machines if m.draining)
        return drained and len(self.ended) == self.plan.jobs and not self.stormy

    def _leftovers(self) -> str:
        jobs = self.store.perform_sync(ListJobs(where=OURS, limit=200)).jobs
        return ", ".join(f"{j.id.int}:{j.state}#{j.attempt}" for j in jobs if not j.state.terminal)

    def _enqueue(self) -> None:
        self.jobs = [JobId(self.fresh()) for _ in range(self.plan.jobs)]
        retry = Retry.immediate(max_attempts=4)
        for job_id in self.jobs:
            timeout = timedelta(seconds=3) if self.chance(0.3) else None
            job = NewJob(
                id=job_id,
                wire_name="job",
                retry=replace(retry, interruption_limit=1_000),
                timeout=timeout,
                delay=timedelta(seconds=self.random.uniform(0, self.plan.storm)),
            )
            self.perform(Enqueue((job,)))

    def _plan_faults(self) -> None:
        plan, draw = self.plan, self.random
        for _ in range(plan.pauses):
            machine = draw.choice(self.machines)
            length = draw.choice([0.5, 3.0, LEASE + 1, 2 * LEASE])
            parts = draw.choice([(True, True), (True, False), (False, True)])
            start = draw.uniform(0, plan.storm)
            self.calm_at = max(self.calm_at, start + length)
            self.at(start, bind(machine.pause, length, *parts))
        for number in range(plan.cancels):
            job_id, action = draw.choice(self.jobs), ActionId(self.fresh())
            cancel = Cancel(job_ids=(job_id,), actor=f"ann-{number}", action=action)
            self.at(draw.uniform(0, plan.storm), bind(self.perform, cancel))
        for machine in self.machines[: plan.drains]:
            grace = draw.choice([0.0, 1.0, 10.0])
            self.at(draw.uniform(0, plan.storm), bind(machine.drain, grace))
            if self.chance(0.5):
                self.at(plan.storm, machine.hurry)

    def _check(self) -> None:
        for machine in self.machines:
            machine.check()
        if self.changed:
            self.changed = False
            self._check_jobs()

    def _check_guilty(self) -> None:
        for job_id in self.jobs[: self.plan.guilty]:
            job = self._job(job_id)
            free = {
                Pair(each.job_id, each.attempt)
                for each in job.attempts
                if each.verdict is Verdict.RELEASED and not each.stale
            }
            assert not free & self.run_through, "an attempt that ran to its end is never free"

    def _check_jobs(self) -> None:
        self._check_guilty()
        unheld = {}
        for job in self.store.perform_sync(ListJobs(where=OURS, limit=200)).jobs:
            if job.id in self.ended:
                assert job.state is self.ended[job.id], "a job ends once"
            elif job.state.terminal:
                self.ended[job.id] = job.state
            if job.state is JobState.RUNNING and job.worker is not None:
                key = (job.worker, Pair(job.id, job.attempt))
                if not any(machine.holds(*key) for machine in self.machines):
                    unheld[key] = self.unheld.get(key, self.now)
        self.unheld = unheld
        for since in unheld.values():
            quiet = self.now - max(since, self.calm_at)
            assert quiet <= LEASE + 2 * BEAT + 2, "a running row that nobody holds is not let go"
