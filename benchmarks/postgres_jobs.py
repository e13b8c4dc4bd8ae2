"""Tidemill on PostgreSQL, beside SQLite and beside bare statements of the same driver.

    python benchmarks/postgres_jobs.py postgresql://postgres@127.0.0.1:5432/postgres [JOBS]

It makes a database of its own and drops it. For the drain of no-op jobs by one worker it tells
jobs, commits, trips to the server and CPU per job; for the exchange alone, what asyncpg and psycopg
cost in our own code; for single enqueues, the ratio to a bare INSERT; and what an idle worker asks.
Every figure is the median of its rounds.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
import psycopg

from tidemill import Tidemill
from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.drivers.asyncpg import AsyncpgExecutor
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Register
from tidemill.store.monitor import CountJobs
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.outcomes import Outcome, Verdict
from tidemill.values.workers import WorkerInfo

NAME = "tidemill_bench"
ROUNDS = 3
TICKS = os.sysconf("SC_CLK_TCK")
trips: Counter[str] = Counter()


def count_trips():
    """Count what both drivers send."""
    for kind in (AsyncpgExecutor, PsycopgExecutor):
        for name in ("begin", "step", "commit"):
            setattr(kind, name, counted(getattr(kind, name), name))


def counted(method, name):
    def wrapped(*given, **options):
        trips[given[1].name if name == "step" else name] += 1
        return method(*given, **options)

    return wrapped


def server_cpu():
    """Seconds of CPU that all processes named postgres on this host have used."""
    total = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            comm, rest = place.read_text().rsplit(")", 1)
        except OSError:
            continue
        if comm.endswith("(postgres"):
            total += sum(map(int, rest.split()[11:13]))
    return total / TICKS


@contextmanager
def database(server):
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {NAME}")
        url = f"{server.rpartition('/')[0]}/{NAME}"
        store = PostgresStore(url)
        store.migrate()
        store.close()
        yield url
        connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def fresh(n):
    return uuid7(1 + n // 20, int.from_bytes(os.urandom(10), "big"))


def fill(store, jobs, name):
    for start in range(0, jobs, 1000):
        part = range(start, min(start + 1000, jobs))
        store.perform_sync(Enqueue(tuple(NewJob(id=fresh(n), wire_name=name) for n in part)))


def emptied(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE tidemill.jobs, tidemill.workers, tidemill.attempts")
        connection.execute("VACUUM ANALYZE tidemill.jobs")


def commits(url):
    if not url.startswith("postgresql"):
        return 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        asked = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
        return connection.execute(asked, (NAME,)).fetchone()[0]


async def drain(url, jobs, concurrency):
    """One worker, from a full queue to an empty one."""
    mill = Tidemill(url)
    done = asyncio.Event()
    ended = 0

    @mill.job("bench.nothing")
    async def nothing() -> None:
        nonlocal ended
        ended += 1
        if ended == jobs:
            done.set()

    store = mill.store
    before = commits(url)
    trips.clear()
    cpu, server, started = time.process_time(), server_cpu(), time.perf_counter()
    async with mill.worker(concurrency=concurrency):
        await done.wait()
    counts = await store.perform(CountJobs())
    assert {each.state for each in counts} == {"succeeded"}
    seconds = time.perf_counter() - started
    cpu, server = time.process_time() - cpu, server_cpu() - server
    sent = sum(trips.values())
    mill.close()
    return jobs / seconds, (commits(url) - before) / jobs, sent / jobs, cpu / jobs, server / jobs


def drains(url, jobs):
    print(f"\nDrain of {jobs:,} no-op jobs, one worker")
    print("store       slots   jobs/s  commits/job  trips/job  client µs  server µs")
    for concurrency in (20, 100, 500):
        for kind in ("PostgreSQL", "SQLite"):
            results = []
            for _ in range(ROUNDS):
                with tempfile.TemporaryDirectory() as folder:
                    where = url if kind == "PostgreSQL" else f"sqlite:///{folder}/jobs.db"
                    if kind == "PostgreSQL":
                        emptied(url)
                        store = PostgresStore(url)
                    else:
                        store = SqliteStore(Path(folder) / "jobs.db")
                    fill(store, jobs, "bench.nothing")
                    store.close()
                    results.append(asyncio.run(drain(where, jobs, concurrency)))
            rate, commit, sent, cpu, server = map(statistics.median, zip(*results, strict=True))
            print(
                f"{kind:10}  {concurrency:5}  {rate:7,.0f}  {commit:11.4f}  {sent:9.4f}"
                f"  {cpu * 1e6:9.1f}  {server * 1e6:9.1f}"
            )


def requests(store, batch):
    worker = fresh(0)
    names = frozenset({"b.job"})
    info = WorkerInfo(id=worker, host="h", pid=1, version="0", queues=("default",),
                      wire_names=names, slots=batch)  # fmt: skip
    store.perform_sync(Register(info=info, lease=timedelta(hours=1)))
    claim = ClaimRequest(shares=(Share("default", batch),), limit=batch, wire_names=names)
    return worker, claim


def reports(claimed):
    return tuple(
        Outcome(job_id=job.id, attempt=job.attempt, verdict=Verdict.SUCCEEDED) for job in claimed
    )


def by_psycopg(store, worker, claim):
    outcomes = ()
    while True:
        ask = Exchange(worker=worker, outcomes=outcomes, claim=claim)
        claimed = store.perform_sync(ask).claimed
        if not claimed:
            return
        outcomes = reports(claimed)


async def by_asyncpg(store, worker, claim):
    outcomes = ()
    while True:
        ask = Exchange(worker=worker, outcomes=outcomes, claim=claim)
        claimed = (await store.perform(ask)).claimed
        if not claimed:
            return
        outcomes = reports(claimed)


def exchanges(url):
    print("\nExchange alone: claim and report in one transaction")
    print("driver    batch   jobs/s  client µs/job  server µs/job")
    for batch in (1, 10, 100, 500):
        jobs = min(10_000, 400 * batch)
        for driver in ("asyncpg", "psycopg"):
            results = []
            for _ in range(ROUNDS):
                emptied(url)
                store = PostgresStore(url, hints=False)
                fill(store, jobs, "b.job")
                worker, claim = requests(store, batch)
                cpu, server, started = time.process_time(), server_cpu(), time.perf_counter()
                if driver == "asyncpg":
                    asyncio.run(by_asyncpg(store, worker, claim))
                else:
                    by_psycopg(store, worker, claim)
                seconds = time.perf_counter() - started
                cpu, server = time.process_time() - cpu, server_cpu() - server
                store.close()
                results.append((jobs / seconds, cpu / jobs, server / jobs))
            rate, cpu, server = map(statistics.median, zip(*results, strict=True))
            print(f"{driver:8}  {batch:5}  {rate:7,.0f}  {cpu * 1e6:13.1f}  {server * 1e6:13.1f}")


INSERT = """
    INSERT INTO tidemill.jobs (id, wire_name, queue, priority, state, due_at, created_at, digest,
        payload)
    VALUES ($1, 'b.job', 'default', 0, 1, clock_timestamp(), clock_timestamp(), '', $2)
"""


async def single_enqueues(url, jobs):
    connection = await asyncpg.connect(url)
    store = PostgresStore(url)
    ratios = []
    for _ in range(ROUNDS):
        emptied(url)
        started = time.perf_counter()
        for n in range(jobs):
            await connection.execute(INSERT, fresh(n), b"{}")
        bare = time.perf_counter() - started
        emptied(url)
        started = time.perf_counter()
        for n in range(jobs):
            await store.perform(Enqueue((NewJob(id=fresh(n), wire_name="b.job"),)))
        ratios.append((jobs / bare, jobs / (time.perf_counter() - started)))
    await connection.close()
    store.close()
    bare, ours = map(statistics.median, zip(*ratios, strict=True))
    ratio = statistics.median(each[1] / each[0] for each in ratios)
    print(
        f"\nSingle enqueue, one caller: {ours:,.0f}/s, {ratio:.2f} of a bare INSERT ({bare:,.0f}/s)"
    )
    emptied(url)
    store, started = PostgresStore(url), time.perf_counter()
    fill(store, 20_000, "b.job")
    print(f"Enqueue in batches of 1,000: {20_000 / (time.perf_counter() - started):,.0f}/s")
    store.close()


async def idle(url, seconds):
    emptied(url)
    mill = Tidemill(url)

    @mill.job("bench.nothing")
    async def nothing() -> None: ...

    async with mill.worker():
        await asyncio.sleep(1)
        trips.clear()
        cpu = time.process_time()
        await asyncio.sleep(seconds)
        share = (time.process_time() - cpu) / seconds
        sent = dict(trips)
    mill.close()
    rate = sum(sent.values()) / seconds
    print(f"\nIdle for {seconds} s: {rate:.2f} trips/s {sent}, {share:.2%} of a core")


def main():
    server = sys.argv[1] if len(sys.argv) > 1 else "postgresql://postgres@127.0.0.1:5432/postgres"
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    count_trips()
    with database(server) as url:
        drains(url, jobs)
        exchanges(url)
        asyncio.run(single_enqueues(url, 1000))
        asyncio.run(idle(url, 40))


if __name__ == "__main__":
    main()
