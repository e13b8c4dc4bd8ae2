"""What other sessions of a PostgreSQL database do meanwhile, and waiting until one does it."""

from contextlib import contextmanager

import psycopg

from tidemill.drivers.psycopg import PsycopgExecutor
from tidemill.sql.programs.registry import program_for


def wait_until_blocked(watcher):
    """Return once some session of this database waits for a lock."""
    wait_until(watcher, "wait_event_type = 'Lock'")


def wait_until(watcher, holds):
    """Return once this is said of some session of this database."""
    asked = f"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {holds}"
    while not watcher.execute(asked).fetchone()[0]:
        watcher.execute("SELECT 1 FROM pg_backend_pid()")


@contextmanager
def holding(url, job_id):
    """Another transaction that holds a job's row."""
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM tidemill.jobs WHERE id = %s FOR UPDATE", (job_id,))
        yield other


class Unfinished:
    """A request performed on a connection of a user's, whose transaction is still open."""

    def __init__(self, url, store, operation):
        self.connection = psycopg.connect(url, autocommit=True)
        site = store._site
        executor = PsycopgExecutor(
            self.connection, site.catalogue, {True: "BEGIN", False: "BEGIN"}, site.clock
        )
        executor.begin(write=True)
        program = program_for(operation, site.env)
        self.answer = rest_of(program, executor, next(program))

    def end(self, how):
        self.connection.execute(how)
        self.connection.close()


def rest_of(program, executor, step):
    """Run a program on from a step, and answer its value."""
    try:
        while True:
            step = program.send(executor.step(step))
    except StopIteration as stop:
        return stop.value
