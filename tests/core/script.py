"""A node played by hand: one scripted event after the other, on plain seconds."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from tidemill.core.commands import (
    Command,
    DoExchange,
    Execute,
    WakeAt,
)
from tidemill.core.dispatch import policy_for
from tidemill.core.events import (
    ExchangeAnswered,
    ExchangeFailed,
    Finished,
    LeaseGained,
    LeaseLost,
    Listed,
    MaintainAnswered,
    Woken,
)
from tidemill.core.node import Node
from tidemill.core.options import NodeOptions
from tidemill.values.endings import Ending, Returned
from tidemill.values.exchange import Exchanged
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed
from tidemill.values.leases import Maintained
from tidemill.values.outcomes import Answer, Outcome, Reported
from tidemill.values.retry import DEFAULT_RETRY
from tidemill.values.workers import Pair, RunningPair

START = datetime(2026, 1, 1, tzinfo=UTC)
W1 = WorkerId(UUID(int=1001))
W2 = WorkerId(UUID(int=1002))
FAR = 1e9

C = TypeVar("C")


def pair_of(number: int, attempt: int = 1) -> Pair:
    return Pair(JobId(UUID(int=number)), Attempt(attempt))


def claimed(
    number: int, attempt: int = 1, *, worker: WorkerId = W1, timeout: float | None = None
) -> Claimed:
    return Claimed(
        id=JobId(UUID(int=number)),
        attempt=Attempt(attempt),
        worker=worker,
        wire_name="job",
        payload=b"{}",
        queue="default",
        priority=0,
        created_at=START,
        due_at=START,
        started_at=START,
        timeout=None if timeout is None else timedelta(seconds=timeout),
        retry=DEFAULT_RETRY,
        tenant=None,
        trace_context=None,
    )


def running(number: int, attempt: int = 1, *, cancel: str | None = None) -> RunningPair:
    return RunningPair(*pair_of(number, attempt), cancel)


def pairs_of(outcomes: Iterable[Outcome]) -> list[Pair]:
    return [Pair(outcome.job_id, outcome.attempt) for outcome in outcomes]


@dataclass
class Script:
    """Plays a node; keeps every command, the exchange in flight, and the wish to be woken."""

    slots: int = 4
    queues: Any = ("default",)
    options: dict[str, Any] = field(default_factory=dict)
    upkeep: bool = False
    """Leave maintenance to the test; otherwise it is put off for ever."""

    def __post_init__(self) -> None:
        options = {"listen_interval": FAR, **self.options}
        self.node = Node(
            NodeOptions(slots=self.slots, wire_names=None, **options), policy_for(self.queues)
        )
        self.log: list[Command] = []
        self.last: list[Command] = []
        self.sent: DoExchange | None = None
        self.wake_at: float | None = None
        if not self.upkeep:
            self.node._upkeep.due_at = float("inf")

    def tell(self, *events: Any) -> list[Command]:
        if any(isinstance(event, ExchangeAnswered | ExchangeFailed) for event in events):
            self.sent = None
        self.last = self.node.step(*events)
        self.log += self.last
        for command in self.last:
            if isinstance(command, DoExchange):
                assert self.sent is None, "two exchanges in flight"
                self.sent = command
            elif isinstance(command, WakeAt):
                self.wake_at = command.at
        return self.last

    def only(self, kind: type[C]) -> C:
        found = self.all(kind)
        assert len(found) == 1, f"expected one {kind.__name__} in {self.last}"
        return found[0]

    def all(self, kind: type[C]) -> list[C]:
        return [command for command in self.last if isinstance(command, kind)]

    def gain(self, at: float = 0.0, worker: WorkerId = W1, until: float = FAR) -> list[Command]:
        return self.tell(LeaseGained(at, worker, until))

    def lose(self, at: float, worker: WorkerId = W1) -> list[Command]:
        return self.tell(LeaseLost(at, worker))

    def wake(self, at: float) -> list[Command]:
        return self.tell(Woken(at))

    def finish(
        self, at: float, number: int, ending: Ending | None = None, *, worker: WorkerId = W1
    ) -> list[Command]:
        return self.tell(Finished(at, worker, pair_of(number), ending or Returned()))

    def listed(
        self,
        at: float,
        *pairs: RunningPair,
        sent_at: float | None = None,
        until: float = FAR,
        worker: WorkerId = W1,
    ) -> list[Command]:
        return self.tell(Listed(at, at if sent_at is None else sent_at, worker, pairs, until))

    def answer(
        self,
        at: float,
        *jobs: Claimed,
        answers: dict[int, Answer] | None = None,
        live: bool = True,
        next_due: float | None = None,
        listing: tuple[RunningPair, ...] | None = None,
        cancels: tuple[RunningPair, ...] = (),
    ) -> list[Command]:
        """Answer the exchange in flight; every outcome is applied unless told otherwise."""
        sent = self.sent
        assert sent is not None, "no exchange is in flight"
        said = {JobId(UUID(int=number)): answer for number, answer in (answers or {}).items()}
        reply = Exchanged(
            worker=sent.worker,
            now=START,
            live=live,
            reported=tuple(
                Reported(each.job_id, each.attempt, said.get(each.job_id, Answer.APPLIED))
                for each in sent.outcomes
            ),
            claimed=jobs,
            next_due=None if next_due is None else timedelta(seconds=next_due),
            running=listing,
            cancels=cancels,
        )
        return self.tell(ExchangeAnswered(at, reply))

    def fail(
        self, at: float, *, refused: bool = False, unknown: bool = False, why: str = "cut off"
    ) -> list[Command]:
        return self.tell(ExchangeFailed(at, refused=refused, unknown=unknown, why=why))

    def maintained(self, at: float, reply: Maintained | None) -> list[Command]:
        return self.tell(MaintainAnswered(at, reply))

    def start_jobs(self, at: float, *jobs: Claimed | int) -> None:
        """Gain a lease and have these jobs running, with nothing in flight if no slot is free."""
        self.gain(at)
        taken = [job if isinstance(job, Claimed) else claimed(job) for job in jobs]
        self.answer(at, *taken)
        assert [command.job for command in self.all(Execute)] == taken
