"""One worker drains jobs that do nothing, then stands idle: what each costs the database.

    python benchmarks/no_op_drain.py [--jobs N] [--concurrency N] [--idle SECONDS] [POSTGRES_URL]

Runs on SQLite in a temporary directory, and on PostgreSQL if a server's URL is given; there it
makes a database of its own and drops it. It tells, for the drain, jobs per second, and commits and
statements per job; for the idle worker, statements per second and its share of a core. Statements
and commits are counted where our drivers send them, and PostgreSQL's own count of committed
transactions stands beside. A commit there also ends a read-only transaction, and a statement that
commits by itself counts as one statement and one transaction; sessions tell the server's count up
to ten seconds late, so it is read after a pause, with what the idle worker did meanwhile.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tidemill import Tidemill
from tidemill.drivers.asyncpg import AsyncpgExecutor
from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.drivers.sqlite import SqliteExecutor
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.values.jobs import NewJob

NAME = "tidemill_no_op_drain"
WIRE_NAME = "bench.nothing"
PAUSE = 11
"""Seconds after which every session has told what it committed."""
CHUNK = 1_000
sent: Counter[str] = Counter()


def count_what_is_sent():
    """Count what every driver sends: `begin` and `commit`, and all else as `statements`."""
    for kind in (AsyncpgExecutor, PsycopgExecutor, SqliteExecutor):
        for name in ("begin", "step", "commit"):
            setattr(kind, name, counted(getattr(kind, name), name))


def counted(method, name):
    def wrapped(*given, **options):
        sent["statements" if name == "step" else name] += 1
        return method(*given, **options)

    return wrapped


@contextmanager
def sqlite_url():
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder:
        yield f"sqlite:///{Path(folder) / 'jobs.db'}"


@contextmanager
def postgres_url(server):
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {NAME}")
        place, mark, options = server.partition("?")
        try:
            yield f"{place.rpartition('/')[0]}/{NAME}{mark}{options}"
        finally:
            connection.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def transactions(url):
    """What the server says it has committed in this database; None where nobody says."""
    if not url.startswith("postgres"):
        return None
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.info.server_version >= 150_000:
            connection.execute("SELECT pg_stat_force_next_flush()")
        asked = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        return connection.execute(asked).fetchone()[0]


@dataclass
class Cost:
    """What a stretch of time cost."""

    seconds: float
    cpu: float
    sent: Counter[str]
    committed: int | None


class Meter:
    """Measures from its making on."""

    def __init__(self, url):
        self.url = url
        self.committed = transactions(url)
        sent.clear()
        self.cpu, self.began = time.process_time(), time.perf_counter()

    def read(self):
        seconds, cpu = time.perf_counter() - self.began, time.process_time() - self.cpu
        return Cost(seconds, cpu, Counter(sent), self.committed_since())

    def committed_since(self):
        now = transactions(self.url)
        return None if now is None else now - self.committed


def fill(mill, jobs):
    for start in range(0, jobs, CHUNK):
        part = range(min(CHUNK, jobs - start))
        mill.store.perform_sync(
            Enqueue(tuple(NewJob(id=new_id(), wire_name=WIRE_NAME) for _ in part))
        )


async def drain_and_idle(url, jobs, concurrency, idle):
    """The cost of the drain, and of standing idle after it."""
    mill = Tidemill(url)
    mill.store.migrate()
    fill(mill, jobs)
    done = asyncio.Event()
    ended = 0

    @mill.job(WIRE_NAME)
    async def nothing() -> None:
        nonlocal ended
        ended += 1
        if ended == jobs:
            done.set()

    meter = Meter(url)
    async with mill.worker(concurrency=concurrency):
        await done.wait()
        drain = meter.read()
        await asyncio.sleep(PAUSE)
        drain.committed = meter.committed_since()
        meter = Meter(url)
        await asyncio.sleep(idle)
        stood = meter.read()
    mill.close()
    return drain, stood


def tell(name, jobs, drain, stood):
    print(f"\n{name}")
    print(f"  jobs per second          {jobs / drain.seconds:10,.0f}")
    print(f"  statements per job       {drain.sent['statements'] / jobs:10.3f}")
    print(f"  commits per job          {drain.sent['commit'] / jobs:10.3f}")
    if drain.committed is not None:
        print(f"    as the server counts   {drain.committed / jobs:10.3f}")
    print(f"  worker's CPU per job     {drain.cpu / jobs * 1e6:10.1f} µs")
    print(f"  idle: statements/s       {stood.sent['statements'] / stood.seconds:10.2f}")
    print(f"  idle: commits/s          {stood.sent['commit'] / stood.seconds:10.2f}")
    if stood.committed is not None:
        print(f"    as the server counts   {stood.committed / stood.seconds:10.2f}")
    print(f"  idle: share of a core    {stood.cpu / stood.seconds:10.2%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("postgres", nargs="?", metavar="POSTGRES_URL")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--idle", type=float, default=20, metavar="SECONDS")
    asked = parser.parse_args()
    count_what_is_sent()
    print(f"{asked.jobs:,} jobs, concurrency {asked.concurrency}, {os.cpu_count()} cores")
    places = {"SQLite": sqlite_url()}
    if asked.postgres:
        places["PostgreSQL"] = postgres_url(asked.postgres)
    for name, place in places.items():
        with place as url:
            cost = asyncio.run(drain_and_idle(url, asked.jobs, asked.concurrency, asked.idle))
            tell(name, asked.jobs, *cost)


if __name__ == "__main__":
    main()
