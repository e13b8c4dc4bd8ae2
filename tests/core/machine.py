"""One worker of the tiny world: a node and its pulse, in a shell as dumb as the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidemill.core import commands as c
from tidemill.core import events as e
from tidemill.core import pulse as p
from tidemill.core.dispatch import policy_for
from tidemill.core.node import Node
from tidemill.core.options import NodeOptions
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Deregister, Maintain, Register
from tidemill.store.notes import TakeNotes
from tidemill.values.endings import CancelReason, Raised, Returned, Snoozed, Stopped
from tidemill.values.ids import WorkerId
from tidemill.values.outcomes import Answer, ErrorInfo, Reported
from tidemill.values.workers import Pair, WorkerInfo

if TYPE_CHECKING:
    from tests.core.world import World

LEASE = 6.0
LONGEST = 5.0
"""The longest run of a handler."""
TURNS_PER_INSTANT = 40
BROKEN = ErrorInfo("app.Broken", "it broke")


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
        self.calling = self.noting = False
        self.alarm = self.tick = 0
        self.turns: tuple[float, int] = (0.0, 0)
        self.draining = self.drained = self.stopped = False
        self.turned_at = 0.0
        self.lease: WorkerId | None = None

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
        if isinstance(event, e.NotesAnswered | e.NotesFailed):
            self.noting = False
        if isinstance(event, e.LeaseGained):
            self.lease = event.worker
        elif isinstance(event, e.LeaseLost) and event.worker == self.lease:
            self.lease = None
        for command in self.node.step(event):
            assert not self.drained, f"{command} after the end"
            self._obey(command)

    def _obey(self, command: Any) -> None:
        match command:
            case c.DoExchange():
                self._exchange(command)
            case c.DoTakeNotes():
                self._take_notes(command)
            case c.DoMaintain():
                self._maintain()
            case c.Execute(job):
                self._execute(job)
            case c.CancelHandler(worker, pair, reason):
                self._cancel((worker, pair), reason)
            case c.WakeAt(at):
                self.alarm += 1
                self.world.at(at - self.offset, bind(self._wake, self.alarm))
            case c.RegisterAnew(worker, why):
                self.lease = None
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
        self._check_claim(command)
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

        if any(world.refuses(outcome) for outcome in operation.outcomes):
            refusal = "the store cannot hold it"
            world.after(
                world.random.uniform(0, 0.3),
                lambda: self.tell(
                    lambda at: e.ExchangeFailed(at, refused=True, unknown=False, why=refusal)
                ),
            )
            return
        self.world.request(operation, answered, failed)

    def _check_claim(self, command: c.DoExchange) -> None:
        if command.claim is not None:
            free = self.world.plan.slots - len(self.handlers)
            assert 1 <= command.claim.limit <= free, "a claim is for free slots only"
            assert command.worker == self.lease, "a claim needs a lease"
            assert not self.draining or self.pump.waiting, "nothing is claimed at the end"

    def _take_notes(self, command: c.DoTakeNotes) -> None:
        assert not self.noting, "one journey of notes at a time"
        assert command.worker == self.lease, "notes need a lease"
        self.noting = True
        self.world.request(
            TakeNotes(worker=command.worker, notes=command.notes),
            lambda answers: self.tell(lambda at: e.NotesAnswered(at, answers)),
            lambda _: self.tell(lambda at: e.NotesFailed(at, refused=False)),
        )

    def _maintain(self) -> None:
        self.world.request(
            Maintain(lease=timedelta(seconds=LEASE)),
            lambda reply: self.tell(lambda at: e.MaintainAnswered(at, reply)),
            lambda _: self.tell(lambda at: e.MaintainAnswered(at, None)),
        )

    # Handlers

    def _execute(self, job: Any) -> None:
        draw = self.world.random
        pair = Pair(job.id, job.attempt)
        self.world.executed[pair] += 1
        assert self.world.executed[pair] == 1, "an attempt is executed once"
        key = (job.worker, pair)
        self.handlers[key] = None
        returned = Returned(children=self.world.children_of(pair))
        endings = [returned, returned, returned, Raised(BROKEN), Snoozed(timedelta(seconds=1))]
        ending = draw.choice(endings)
        length = draw.choice([0.0, 0.2, 1.0, LONGEST])
        for _ in range(draw.randrange(4)):
            self.world.after(draw.uniform(0, length), lambda: self._say(key))
        self.world.after(length, lambda: self._end(key, ending))

    def _say(self, key: tuple[WorkerId, Pair]) -> None:
        if key in self.handlers:
            said = self.world.say(key[1])
            self.tell(lambda at: e.Noted(at, *key, *said))

    def _cancel(self, key: tuple[WorkerId, Pair], reason: CancelReason) -> None:
        if key in self.handlers:
            self.handlers[key] = reason
            if self.world.chance(0.7):
                self.world.after(
                    self.world.random.uniform(0, 0.5), lambda: self._end(key, Stopped())
                )

    def _end(self, key: tuple[WorkerId, Pair], ending: Any) -> None:
        if key in self.handlers:
            if self.handlers.pop(key) is None:
                self.world.run_through.add(key[1])
            self.tell(lambda at: e.Finished(at, *key, ending))

    # The heart

    def beat_with(self, make: Callable[[float], Any]) -> None:
        self.heart.put(lambda: self._pulse(make(self.now)))

    def _pulse(self, event: Any) -> None:
        if isinstance(event, p.RegisterAnswered | p.BeatAnswered | p.CallFailed | p.Deregistered):
            self.calling = False
        for command in self.pulse.step(event):
            assert not self.stopped, f"{command} after the end"
            match command:
                case p.Tell(event):
                    self.tell(lambda _, told=event: told)
                case p.TickAt(at):
                    self.tick += 1
                    self.world.at(at - self.offset, bind(self._tick, self.tick))
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
            case p.DoBeat(worker):
                operation = Beat(worker=worker, lease=lease)
            case p.DoDeregister(worker):
                operation = Deregister(worker)

        def event(at: float, reply: Any) -> p.PulseEvent:
            match command:
                case p.DoRegister():
                    return p.RegisterAnswered(at, sent_at, reply.worker)
                case p.DoBeat():
                    return p.BeatAnswered(at, sent_at, reply)
                case p.DoDeregister():
                    return p.Deregistered(at)

        self.world.request(
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
        if self.drained or self.pump.closed or self.pump.waiting:
            return
        for (worker, _), reason in self.handlers.items():
            live = self.world.leases[worker] > self.world.now
            assert live or reason is not None, "a handler works on although its lease has lapsed"


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


def bind(act: Callable[..., Any], *arguments: Any) -> Callable[[], None]:
    """The call, to be made later."""
    return lambda: act(*arguments)
