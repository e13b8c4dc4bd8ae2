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

from tests.core.script import START
from tidemill.core import commands as c
from tidemill.core import events as e
from tidemill.core import pulse as p
from tidemill.core.dispatch import policy_for
from tidemill.core.node import Node, NodeOptions
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Deregister, Maintain, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.memory.store import MemoryStore
from tidemill.store.monitor import ListJobs, ListWorkers
from tidemill.store.operators import Cancel
from tidemill.values.endings import CancelReason, Raised, Returned, Snoozed, Stopped
from tidemill.values.ids import ActionId, JobId, WorkerId
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Answer, ErrorInfo, Reported
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.workers import Pair, WorkerInfo

LEASE = 6.0
BEAT = LEASE / 3
SLOWEST = 0.3
"""The longest way to the store or back when nothing is wrong."""
LONGEST = 5.0
"""The longest run of a handler."""
TURNS_PER_INSTANT = 40
BROKEN = ErrorInfo("app.Broken", "it broke")


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
        return self.store.perform_sync(operation)

    def chance(self, rate: float) -> bool:
        return self.random.random() < rate

    def run(self) -> None:
        """Play until everything has ended; it must, soon after the faults have stopped."""
        for machine in self.machines:
            self.at(self.random.random(), machine.begin)
        limit = self.calm_at + 10 * LEASE + 4 * LONGEST * self.plan.jobs
        while self._heap and not self._over():
            at, _, act = heappop(self._heap)
            assert at <= limit, f"at {at} something still has not ended: {self._leftovers()}"
            if at > self.now:
                self.now = at
                self.clock.set(START + timedelta(seconds=at))
            act()
            self._check()
        assert self._over(), f"nothing more happens: {self._leftovers()}"

    def _over(self) -> bool:
        drained = all(m.stopped for m in self.machines if m.draining)
        return drained and len(self.ended) == self.plan.jobs and not self.stormy

    def _leftovers(self) -> str:
        jobs = self.store.perform_sync(ListJobs(limit=200)).jobs
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
            self.at(start, _bind(machine.pause, length, *parts))
        for number in range(plan.cancels):
            job_id, action = draw.choice(self.jobs), ActionId(self.fresh())
            cancel = Cancel(job_ids=(job_id,), actor=f"ann-{number}", action=action)
            self.at(draw.uniform(0, plan.storm), _bind(self.perform, cancel))
        for machine in self.machines[: plan.drains]:
            grace = draw.choice([0.0, 1.0, 10.0])
            self.at(draw.uniform(0, plan.storm), _bind(machine.drain, grace))
            if self.chance(0.5):
                self.at(plan.storm, machine.hurry)

    def _check(self) -> None:
        for machine in self.machines:
            machine.check()
        if self.changed:
            self.changed = False
            self._check_jobs()

    def _check_jobs(self) -> None:
        unheld = {}
        leases = {w.id: w.lease_expires_at for w in self.store.perform_sync(ListWorkers())}
        for machine in self.machines:
            machine.check_leases(leases, self.clock())
        for job in self.store.perform_sync(ListJobs(limit=200)).jobs:
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


class Machine:
    """A node and its pulse, in a shell as dumb as the real one."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.offset = 1000.0 * number
        options = NodeOptions(slots=world.plan.slots, wire_names=None, patience=2.0, flush=3.0)
        self.node = Node(options, policy_for(["default"]))
        self.pulse = p.Pulse(p.PulseOptions.for_lease(LEASE))
        self.handlers: dict[tuple[WorkerId, Pair], CancelReason | None] = {}
        self.pump = Mailbox(world)
        self.heart = Mailbox(world)
        self.flying: c.DoExchange | None = None
        self.calling = False
        self.alarm = self.tick = 0
        self.turns: tuple[float, int] = (0.0, 0)
        self.draining = self.drained = self.stopped = False
        self.turned_at = 0.0

    @property
    def now(self) -> float:
        return self.world.now + self.offset

    def begin(self) -> None:
        self.turned_at = self.now
        self.beat_with(lambda at: p.Ticked(at, at))

    def pause(self, length: float, pump: bool, heart: bool) -> None:
        if pump:
            self.pump.close_for(length)
        if heart:
            self.heart.close_for(length)

    def drain(self, grace: float) -> None:
        self.draining = True
        self.tell(lambda at: e.DrainAsked(at, grace))

    def hurry(self) -> None:
        self.tell(e.HurryAsked)

    # The pump

    def tell(self, make: Callable[[float], Any]) -> None:
        self.pump.put(lambda: self._turn(make(self.now)))

    def _turn(self, event: Any) -> None:
        instant, turns = self.turns
        self.turns = (self.now, turns + 1 if instant == self.now else 1)
        assert self.turns[1] <= TURNS_PER_INSTANT, "it spins"
        self.turned_at = self.now
        if isinstance(event, e.ExchangeAnswered | e.ExchangeFailed):
            self.flying = None
        for command in self.node.step(event):
            assert not self.drained, f"{command} after the end"
            self._obey(command)

    def _obey(self, command: Any) -> None:
        match command:
            case c.DoExchange():
                self._exchange(command)
            case c.DoMaintain():
                self._maintain()
            case c.Execute(job):
                self._execute(job)
            case c.CancelHandler(worker, pair, reason):
                self._cancel((worker, pair), reason)
            case c.WakeAt(at):
                self.alarm += 1
                self.world.at(at - self.offset, _bind(self._wake, self.alarm))
            case c.RegisterAnew(worker, why):
                self.beat_with(lambda at: p.Doubted(at, worker, why))
            case c.Drained():
                self.drained = True
                self.beat_with(p.StopAsked)

    def _wake(self, alarm: int) -> None:
        if alarm == self.alarm:
            self.tell(e.Woken)

    def _exchange(self, command: c.DoExchange) -> None:
        assert self.flying is None, "one exchange is in flight at a time"
        pairs = [Pair(o.job_id, o.attempt) for o in command.outcomes]
        assert len(set(pairs)) == len(pairs), "an outcome travels once"
        self.flying = command
        world = self.world
        busy = frozenset(pair for pair in pairs if world.stormy and world.chance(0.1))
        operation = Exchange(
            worker=command.worker,
            outcomes=tuple(o for o in command.outcomes if (o.job_id, o.attempt) not in busy),
            claim=command.claim,
            list_running=command.list_running,
        )

        def answered(reply: Any) -> None:
            said = {(each.job_id, each.attempt): each for each in reply.reported}
            reported = tuple(said.get(pair) or Reported(*pair, Answer.BUSY) for pair in pairs)
            self.tell(lambda at: e.ExchangeAnswered(at, replace(reply, reported=reported)))

        def failed(unknown: bool) -> None:
            self.tell(lambda at: e.ExchangeFailed(at, refused=False, unknown=unknown, why="lost"))

        self._request(operation, answered, failed)

    def _maintain(self) -> None:
        self._request(
            Maintain(lease=timedelta(seconds=LEASE)),
            lambda reply: self.tell(lambda at: e.MaintainAnswered(at, reply)),
            lambda _: self.tell(lambda at: e.MaintainAnswered(at, None)),
        )

    def _request(
        self, operation: Any, answered: Callable[[Any], None], failed: Callable[[bool], None]
    ) -> None:
        """Perform an operation at the end of a long way, where everything may go wrong."""
        world, draw = self.world, self.world.random
        way, back = draw.uniform(0, SLOWEST), draw.uniform(0, SLOWEST)
        fault = draw.randrange(5) if world.stormy and world.chance(world.plan.fault_rate) else None

        def arrive() -> None:
            reply = world.perform(operation)
            if fault is None:
                world.after(back, _bind(answered, reply))
            elif fault == 1:  # committed, and the answer lost
                world.after(back, _bind(failed, True))
            elif fault == 2:  # a slow answer
                world.after(back + draw.uniform(1, LEASE), _bind(answered, reply))

        if fault == 0:  # nothing was committed
            world.after(way, _bind(failed, False))
        elif fault == 3:  # nothing was committed, but who knows
            world.after(way, _bind(failed, True))
        elif fault == 4:  # given up, and committed only then
            world.after(way, _bind(failed, True))
            world.after(way + draw.uniform(0, LEASE), arrive)
        else:
            world.after(way, arrive)

    # Handlers

    def _execute(self, job: Any) -> None:
        draw = self.world.random
        pair = Pair(job.id, job.attempt)
        self.world.executed[pair] += 1
        assert self.world.executed[pair] == 1, "an attempt is executed once"
        key = (job.worker, pair)
        self.handlers[key] = None
        ending = draw.choice(
            [Returned(), Returned(), Returned(), Raised(BROKEN), Snoozed(timedelta(seconds=1))]
        )
        self.world.after(
            draw.choice([0.0, 0.2, 1.0, LONGEST]), lambda: self._end(key, ending)
        )

    def _cancel(self, key: tuple[WorkerId, Pair], reason: CancelReason) -> None:
        if key in self.handlers:
            self.handlers[key] = reason
            if self.world.chance(0.7):
                self.world.after(self.world.random.uniform(0, 0.5), lambda: self._end(key, Stopped()))

    def _end(self, key: tuple[WorkerId, Pair], ending: Any) -> None:
        if key in self.handlers:
            del self.handlers[key]
            self.tell(lambda at: e.Finished(at, *key, ending))

    # The heart

    def beat_with(self, make: Callable[[float], Any]) -> None:
        self.heart.put(lambda: self._pulse(make(self.now)))

    def _pulse(self, event: Any) -> None:
        if isinstance(
            event, p.RegisterAnswered | p.BeatAnswered | p.CallFailed | p.Deregistered
        ):
            self.calling = False
        for command in self.pulse.step(event):
            assert not self.stopped, f"{command} after the end"
            match command:
                case p.Tell(event):
                    self.tell(_bind_event(event))
                case p.TickAt(at):
                    self.tick += 1
                    self.world.at(at - self.offset, _bind(self._tick, self.tick))
                case p.DoRegister() | p.DoBeat() | p.DoDeregister():
                    self._call(command)
                case p.PulseStopped():
                    self.stopped = True

    def _tick(self, tick: int) -> None:
        if tick == self.tick:
            self.beat_with(lambda at: p.Ticked(at, self.turned_at))

    def _call(self, command: p.Call) -> None:
        assert not self.calling, "one call of the heart is in flight at a time"
        self.calling = True
        lease, sent_at = timedelta(seconds=LEASE), self.now
        operation: Any
        match command:
            case p.DoRegister():
                worker = WorkerId(self.world.fresh())
                operation = Register(info=self._info(worker), lease=lease)
                event: Any = lambda at, reply: p.RegisterAnswered(at, sent_at, reply.worker)
            case p.DoBeat(worker):
                operation = Beat(worker=worker, lease=lease)
                event = lambda at, reply: p.BeatAnswered(at, sent_at, reply)
            case p.DoDeregister(worker):
                operation = Deregister(worker)
                event = lambda at, _: p.Deregistered(at)
        self._request(
            operation,
            lambda reply: self.beat_with(lambda at: event(at, reply)),
            lambda _: self.beat_with(lambda at: p.CallFailed(at, "lost")),
        )

    def _info(self, worker: WorkerId) -> WorkerInfo:
        return WorkerInfo(
            id=worker,
            host="here",
            pid=1,
            version="1",
            queues=("default",),
            wire_names=frozenset({"job"}),
            slots=self.world.plan.slots,
        )

    # What must hold

    def holds(self, worker: WorkerId, pair: Pair) -> bool:
        """Whether the node accounts for this attempt."""
        return pair in self.node._holdings.known_pairs(worker)

    def check(self) -> None:
        assert len(self.handlers) <= self.world.plan.slots, "more handlers than slots"

    def check_leases(self, leases: dict[WorkerId, Any], now: Any) -> None:
        """A handler that was not told to stop runs under a live lease, unless all stood still."""
        if self.pump.closed or self.pump.waiting:
            return
        for (worker, _), reason in self.handlers.items():
            if reason is None and not self.drained:
                assert leases[worker] > now, "a handler works on although its lease has lapsed"


class Mailbox:
    """A thread of a machine: while it stands still, what is put to it waits, in order."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._until = 0.0
        self.waiting: list[Callable[[], None]] = []

    @property
    def closed(self) -> bool:
        return self._world.now < self._until

    def close_for(self, length: float) -> None:
        self._until = max(self._until, self._world.now + length)
        self._world.at(self._until, self._open)

    def put(self, act: Callable[[], None]) -> None:
        if self.closed or self.waiting:
            self.waiting.append(act)
        else:
            act()

    def _open(self) -> None:
        while self.waiting and not self.closed:
            self.waiting.pop(0)()


def _bind(act: Callable[..., Any], *arguments: Any) -> Callable[[], None]:
    return lambda: act(*arguments)


def _bind_event(event: Any) -> Callable[[float], Any]:
    return lambda _: event
