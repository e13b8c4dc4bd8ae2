"""One process of a test: it says "ready", waits for "go", does its part, and prints what came.

sqlite_process.py claim FILE COUNT        claims until nothing is left; prints the job ids
sqlite_process.py enqueue FILE KEY        enqueues one job under KEY; prints the answered id
sqlite_process.py sweep FILE              runs one round of upkeep; prints the lapsed pairs
sqlite_process.py migrate FILE            migrates; prints the names of the steps applied
"""

import os
import sys
from datetime import UTC, datetime, timedelta

from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.workers import WorkerInfo

CLOCK = VirtualClock(datetime.now(UTC))


def fresh():
    return uuid7(1, int.from_bytes(os.urandom(10), "big"))


def claim(store, count):
    worker = fresh()
    info = WorkerInfo(id=worker, host="host", pid=os.getpid(), version="0", queues=("default",),
                      wire_names=frozenset(), slots=1)  # fmt: skip
    store.perform_sync(Register(info=info, lease=timedelta(minutes=10)))
    request = ClaimRequest(
        shares=(Share("default", int(count)),), limit=int(count), wire_names=None
    )
    yield
    while claimed := store.perform_sync(Exchange(worker=worker, claim=request)).claimed:
        yield from (job.id for job in claimed)


def enqueue(store, key):
    yield
    job = NewJob(id=fresh(), wire_name="t.job", idempotency_key=key)
    yield store.perform_sync(Enqueue((job,)))[0].job_id


def sweep(store):
    lease = timedelta(minutes=10)
    store.perform_sync(Maintain(lease=lease))  # the first look at the write lock (clause C10)
    yield
    CLOCK.advance(lease)
    for lapsed in store.perform_sync(Maintain(lease=lease)).lapsed:
        yield f"{lapsed.job_id}/{lapsed.attempt}"


def migrate(store):
    yield
    yield from store.migrate()


def main(part, path, *more):
    store = SqliteStore(path, clock=CLOCK, busy_timeout=timedelta(seconds=60))
    answers = globals()[part](store, *more)
    next(answers)
    print("ready", flush=True)
    sys.stdin.readline()
    for answer in answers:
        print(answer)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
