"""Which program performs which operation.

`WRITES` take the write lock. `READS` are one statement each. `SNAPSHOTS` read in several, or in
one that a server must bound, and see one state of the database: one transaction. `GLANCES` answer a
write that turns out to have nothing to do, from a read; their None says that it must be performed.
`QUICK` are for a database whose single statements commit by themselves: they write by one, or
answer None, having written nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from tidemill.sql.program import Program
from tidemill.sql.programs import (
    complete,
    doctor,
    enqueue,
    exchange,
    lease,
    maintain,
    monitor,
    notes,
    operators,
)
from tidemill.sql.programs.env import Env
from tidemill.store.complete import Complete, IsLeaseLive
from tidemill.store.contract import Operation
from tidemill.store.doctor import (
    ExamineBacklog,
    ExamineDeadLetters,
    ExamineNames,
    ExamineStuck,
    ExamineWorkers,
    ReadClock,
)
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Beat, Deregister, Maintain, Register
from tidemill.store.monitor import (
    CountJobs,
    GetEnd,
    GetJob,
    ListJobs,
    ListQueues,
    ListWorkers,
)
from tidemill.store.notes import ReadLog, TakeNotes
from tidemill.store.operators import Cancel, PauseQueue, Requeue, Rerun, RunNow

R = TypeVar("R")
_Programs = dict[type[Operation[Any]], Callable[[Any, Env], Program[Any]]]

WRITES: Final[_Programs] = {
    Enqueue: enqueue.enqueue,
    Exchange: exchange.exchange,
    Complete: complete.complete,
    TakeNotes: notes.take_notes,
    Register: lease.register,
    Deregister: lease.deregister,
    Beat: lease.beat,
    Maintain: maintain.maintain,
    Cancel: operators.cancel,
    Requeue: operators.requeue,
    Rerun: operators.rerun,
    RunNow: operators.run_now,
    PauseQueue: operators.pause_queue,
}
READS: Final[_Programs] = {
    IsLeaseLive: complete.is_lease_live,
    GetEnd: monitor.get_end,
    ReadLog: notes.read_log,
    ListJobs: monitor.list_jobs,
    CountJobs: monitor.count_jobs,
    ReadClock: doctor.clock,
}
SNAPSHOTS: Final[_Programs] = {
    GetJob: monitor.get_job,
    ListQueues: monitor.list_queues,
    ListWorkers: monitor.list_workers,
    ExamineWorkers: doctor.examine_workers,
    ExamineBacklog: doctor.examine_backlog,
    ExamineStuck: doctor.examine_stuck,
    ExamineNames: doctor.examine_names,
    ExamineDeadLetters: doctor.examine_dead_letters,
}
GLANCES: Final[_Programs] = {Exchange: exchange.glance, Maintain: maintain.glance}
QUICK: Final[_Programs] = {Enqueue: enqueue.quick, Beat: lease.quick_beat}


def writes(operation: Operation[object]) -> bool:
    """Whether an operation may need the write lock."""
    return type(operation) in WRITES


def reads_one_state(operation: Operation[object]) -> bool:
    """Whether an operation is to be one transaction although it only reads."""
    return type(operation) in SNAPSHOTS


def program_for(operation: Operation[R], env: Env) -> Program[R]:
    """The program that performs an operation."""
    kind = type(operation)
    program = WRITES.get(kind) or READS.get(kind) or SNAPSHOTS[kind]
    # The one place where an operation's type stands for its program's: the tables pair them.
    return cast("Program[R]", program(operation, env))


def glance_for(operation: Operation[R], env: Env) -> Program[R | None] | None:
    """The program that may spare a write; None if there is none."""
    program = GLANCES.get(type(operation))
    return None if program is None else cast("Program[R | None]", program(operation, env))


def quick_for(operation: Operation[R], env: Env) -> Program[R | None] | None:
    """The program that may do a write in one statement; None if there is none."""
    program = QUICK.get(type(operation))
    return None if program is None else cast("Program[R | None]", program(operation, env))
