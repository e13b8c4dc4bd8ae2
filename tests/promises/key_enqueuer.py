"""A process that enqueues under one key whenever it is told to, and says what became of it.

Every line of its stdin names a key; for each it writes a line: the id of the job that stands for
the request, and whether it was there before. `PROMISE_PAUSE` has it stop itself, as SIGSTOP does,
with its first job written and not committed.
"""

from __future__ import annotations

import os
import sys

from tests.promises.promised import stand_still, work

from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.sql.program import Batch, Statement


def pause_after_writing(executor: type[PsycopgExecutor | SqliteExecutor]) -> None:
    take_step = executor.step

    def step_and_stop(self: PsycopgExecutor | SqliteExecutor, step: Statement | Batch) -> object:
        rows = take_step(self, step)
        if step.name == "insert_job":
            executor.step = take_step
            stand_still()
        return rows

    executor.step = step_and_stop


def main() -> None:
    if "PROMISE_PAUSE" in os.environ:
        pause_after_writing(PsycopgExecutor)
        pause_after_writing(SqliteExecutor)
    for line in sys.stdin:
        ref = work.with_options(idempotency_key=line.strip()).sync.enqueue(0.0)
        print(ref.id, ref.deduplicated, flush=True)


main()
