"""Our exchange on SQLite beside a bare loop of the same two updates, as a ratio.

    python benchmarks/sqlite_raw.py [JOBS]

Both sides claim and finish every job in batches, each batch in one transaction, in WAL mode with
`synchronous=NORMAL`, on one connection. The bare loop knows no fence, no lease, no retry, no tags:
it is the floor that the database and `sqlite3` set. The two alternate, and the median ratio of the
rounds is told, so that a busy machine slows both alike.
"""

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Register
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.workers import WorkerInfo

ROUNDS = 5
BATCHES = (1, 10, 100, 500)


def fresh(n):
    return uuid7(1 + n // 20, int.from_bytes(os.urandom(10), "big"))


def ours(path, jobs, batch):
    """Seconds that a store takes to claim and finish `jobs` jobs."""
    store = SqliteStore(path)
    for start in range(0, jobs, 1000):
        part = range(start, min(start + 1000, jobs))
        store.perform_sync(Enqueue(tuple(NewJob(id=fresh(n), wire_name="b.job") for n in part)))
    worker = fresh(0)
    info = WorkerInfo(id=worker, host="h", pid=1, version="0", queues=("default",),
                      wire_names=frozenset({"b.job"}), slots=batch)  # fmt: skip
    store.perform_sync(Register(info=info, lease=timedelta(hours=1)))
    request = ClaimRequest(
        shares=(Share("default", batch),), limit=batch, wire_names=info.wire_names
    )
    reports, started = (), time.perf_counter()
    while True:
        ask = Exchange(worker=worker, outcomes=reports, claim=request)
        claimed = store.perform_sync(ask).claimed
        if not claimed:
            break
        reports = tuple(
            Outcome(job_id=job.id, attempt=job.attempt, verdict=Verdict.SUCCEEDED)
            for job in claimed
        )
    seconds = time.perf_counter() - started
    store.close()
    return seconds


def bare(path, jobs, batch):
    """Seconds that a loop of plain updates takes for as many rows."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("CREATE TABLE jobs (id BLOB PRIMARY KEY, queue TEXT, state INT, payload BLOB)")
    db.execute("CREATE INDEX ready ON jobs (queue, id) WHERE state = 1")
    rows = [(fresh(n).bytes, "default", 1, b"{}") for n in range(jobs)]
    db.execute("BEGIN")
    db.executemany("INSERT INTO jobs VALUES (?, ?, ?, ?)", rows)
    db.execute("COMMIT")
    find = "SELECT id, payload FROM jobs WHERE state = 1 AND queue = ? ORDER BY id LIMIT ?"
    claimed, started = [], time.perf_counter()
    while True:
        db.execute("BEGIN IMMEDIATE")
        db.executemany("UPDATE jobs SET state = 4 WHERE id = ? AND state = 3", claimed)
        claimed = [(row[0],) for row in db.execute(find, ("default", batch)).fetchall()]
        db.executemany("UPDATE jobs SET state = 3 WHERE id = ?", claimed)
        db.execute("COMMIT")
        if not claimed:
            break
    seconds = time.perf_counter() - started
    db.close()
    return seconds


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(f"{'batch':>5}  {'bare/s':>8}  {'ours/s':>8}  ours takes")
    for batch in BATCHES:
        count = min(jobs, 300 * batch)
        floors, seconds = [], []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                floors.append(bare(Path(folder) / "bare.db", count, batch))
                seconds.append(ours(Path(folder) / "ours.db", count, batch))
        ratio = statistics.median(b / a for a, b in zip(floors, seconds, strict=True))
        best = f"{count / min(floors):>8,.0f}  {count / min(seconds):>8,.0f}"
        print(f"{batch:>5}  {best}  {ratio:.1f} x as long")


if __name__ == "__main__":
    main()
