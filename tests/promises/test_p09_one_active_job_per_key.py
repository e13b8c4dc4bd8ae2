"""P9: two processes that enqueue under one key at once get one active job between them."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter, defaultdict
from uuid import UUID

import psycopg
import pytest
from tests.promises.books import balanced
from tests.waiting import wait_until

from tidemill.store.monitor import ListJobs
from tidemill.values.ids import JobId

ROUNDS = 60


def start_enqueuer(site, **env):
    return site.start("key_enqueuer.py", stdout=subprocess.PIPE, **env)


def tell(enqueuer, key):
    enqueuer.process.stdin.write(f"{key}\n")
    enqueuer.process.stdin.flush()


def answer_of(enqueuer):
    """The job that stands for the request, and whether it was there before."""
    job_id, deduplicated = enqueuer.process.stdout.readline().split()
    return JobId(UUID(job_id)), deduplicated == "True"


def end(*enqueuers):
    for enqueuer in enqueuers:
        enqueuer.process.stdin.close()
        assert enqueuer.ended() == 0, enqueuer.log.read_text()
        enqueuer.doomed = True


def crowded_keys(site):
    """The keys that more than one active job has, in one look."""
    page = site.store.perform_sync(ListJobs(limit=200))
    keys = Counter(job.idempotency_key for job in page.jobs if not job.state.terminal)
    return [key for key, count in keys.items() if count > 1]


def test_processes_that_race_for_a_key_while_its_job_runs_and_ends_share_it(site):
    enqueuers = [start_enqueuer(site) for _ in range(3)]
    site.start_worker("--poll-interval", "100ms")
    answers, crowded = defaultdict(list), []
    for number in range(ROUNDS):
        key = f"k{number % 2}"
        for enqueuer in enqueuers:
            tell(enqueuer, key)
        crowded += crowded_keys(site)
        answers[key] += [answer_of(enqueuer) for enqueuer in enqueuers]
    end(*enqueuers)
    made = {job_id: key for key in answers for job_id, known in answers[key] if not known}
    jobs = balanced(site, made)
    assert crowded == []
    assert {job.state for job in jobs} == {"succeeded"}
    assert all(made[job_id] == key for key in answers for job_id, _ in answers[key])
    assert all(job.record.idempotency_key == made[job.id] for job in jobs)
    assert len(jobs) < len(enqueuers) * ROUNDS


@pytest.mark.parametrize("fate", ["commits", "dies"])
def test_who_asks_for_a_key_that_is_being_written_answers_what_became_of_it(site, fate):
    first, second = start_enqueuer(site, PROMISE_PAUSE=1), start_enqueuer(site)
    tell(first, "k")
    first.wait_frozen()
    tell(second, "k")
    if site.on_postgres:
        wait_until(lambda: waits_for_a_lock(site))
    if fate == "commits":
        first.signal(signal.SIGCONT)
        kept, known = answer_of(first)
        assert not known
        assert answer_of(second) == (kept, True)
        end(first, second)
    else:
        first.kill()
        kept, known = answer_of(second)
        assert not known
        end(second)
    site.start_worker()
    (job,) = balanced(site, [kept])
    assert (job.state, job.record.idempotency_key) == ("succeeded", "k")


def waits_for_a_lock(site):

    with psycopg.connect(site.url, autocommit=True) as connection:
        waiting = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return waiting.fetchone()[0]
