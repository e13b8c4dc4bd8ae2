"""Which function performs which operation: the whole store as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

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
from tidemill.store.memory.complete import complete, is_lease_live
from tidemill.store.memory.doctor import (
    examine_backlog,
    examine_dead_letters,
    examine_names,
    examine_stuck,
    examine_workers,
    read_clock,
)
from tidemill.store.memory.enqueue import enqueue
from tidemill.store.memory.exchange import exchange
from tidemill.store.memory.lease import beat, deregister, register
from tidemill.store.memory.maintain import maintain
from tidemill.store.memory.monitor import (
    count_jobs,
    get_end,
    get_job,
    list_jobs,
    list_queues,
    list_workers,
)
from tidemill.store.memory.notes import read_log, take_notes
from tidemill.store.memory.operators import cancel, pause_queue, requeue, rerun, run_now
from tidemill.store.memory.tables import Work
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

Performer = Callable[[Work, Any], Any]

PERFORMERS: Final[Mapping[type[Operation[Any]], Performer]] = {
    Enqueue: enqueue,
    Exchange: exchange,
    Complete: complete,
    IsLeaseLive: is_lease_live,
    TakeNotes: take_notes,
    Register: register,
    Deregister: deregister,
    Beat: beat,
    Maintain: maintain,
    Cancel: cancel,
    Requeue: requeue,
    Rerun: rerun,
    RunNow: run_now,
    PauseQueue: pause_queue,
    GetJob: get_job,
    GetEnd: get_end,
    ReadLog: read_log,
    ListJobs: list_jobs,
    CountJobs: count_jobs,
    ListQueues: list_queues,
    ListWorkers: list_workers,
    ReadClock: read_clock,
    ExamineWorkers: examine_workers,
    ExamineBacklog: examine_backlog,
    ExamineStuck: examine_stuck,
    ExamineNames: examine_names,
    ExamineDeadLetters: examine_dead_letters,
}
