"""P13: what a handler writes in the transaction that completes its job is written exactly once."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import closing

import pytest
from tests.adapters.postgres_proxy import Cable
from tests.promises import ledger, promised
from tests.promises.books import assert_one_child_each, balanced, children
from tests.waiting import wait_until

ENTRIES = 24
COMMIT = b"COMMIT"
IMPORT = ("--import", "tests.promises.ledger")


@pytest.fixture
def paying(site):
    """A site with a ledger of unpaid entries beside its jobs."""
    yield from with_ledger(site)


@pytest.fixture
def paying_on_postgres(postgres_site):
    yield from with_ledger(postgres_site)


def with_ledger(site):
    with closing(ledger.connect(site.url)) as connection:
        connection.execute("CREATE TABLE ledger (entry integer PRIMARY KEY, paid integer NOT NULL)")
        for entry in range(ENTRIES):
            connection.execute(f"INSERT INTO ledger VALUES ({entry}, 0)")
        connection.commit()
    yield site
    site.clear()  # whoever holds the table
    with closing(ledger.connect(site.url)) as connection:
        connection.execute("DROP TABLE ledger")
        connection.commit()


def enqueue_payments():
    calls = [ledger.pay.bind(entry) for entry in range(ENTRIES)]
    return [ref.id for ref in promised.mill.sync.enqueue_many(calls)]


def payments(site):
    with closing(ledger.connect(site.url)) as connection:
        return [paid for (paid,) in connection.execute("SELECT paid FROM ledger").fetchall()]


def states(site, job_ids):
    return Counter(site.state(job_id) for job_id in job_ids)


def assert_paid_once(site, job_ids):
    wait_until(lambda: all(job.tags for job in site.jobs(job_ids)))  # and so all is settled
    wait_until(site.all_ended)
    jobs = balanced(site, job_ids + children(site))[: len(job_ids)]
    assert_one_child_each(site, jobs)
    assert {job.state for job in jobs} == {"succeeded"}
    assert payments(site) == [1] * ENTRIES
    return jobs


def test_a_worker_killed_at_any_moment_of_the_transaction_pays_nothing_twice(paying):
    site = paying
    job_ids = enqueue_payments()
    for moment in ledger.MOMENTS:
        victim = site.start_victim("--concurrency", "4", *IMPORT, PROMISE_DIES_AT=moment)
        victim.doomed = True
        assert victim.ended() == -signal.SIGKILL, victim.log.read_text()
    site.start_survivor("--concurrency", "4", *IMPORT)
    jobs = assert_paid_once(site, job_ids)
    assert any(job.record.lapses for job in jobs)


def test_a_worker_that_wakes_with_its_lease_over_pays_nothing(paying):
    site = paying
    job_ids = enqueue_payments()
    sleeper = site.start_victim("--concurrency", "1", *IMPORT, PROMISE_STOPS_AT="begun")
    sleeper.wait_frozen()
    other = site.start_survivor(*IMPORT)
    wait_until(site.all_ended)
    sleeper.signal(signal.SIGCONT)
    jobs = assert_paid_once(site, job_ids)
    late = site.begun_by(sleeper)
    assert late
    assert late <= site.begun_by(other)
    assert all(job.record.lapses for job in jobs if str(job.id) in late)


def test_a_worker_that_stood_still_in_its_transaction_pays_once(paying_on_postgres):
    site = paying_on_postgres
    job_ids = enqueue_payments()
    sleeper = site.start_victim("--concurrency", "1", *IMPORT, PROMISE_STOPS_AT="completed")
    sleeper.wait_frozen()
    (held,) = site.begun_by(sleeper)
    other = site.start_survivor(*IMPORT)
    wait_until(lambda: states(site, job_ids)["succeeded"] == len(job_ids) - 1)
    wait_until(lambda: site.live_workers() == 1)  # its lease is over
    sleeper.signal(signal.SIGCONT)
    wait_until(site.all_ended)
    assert_paid_once(site, job_ids)
    assert held not in site.begun_by(other)


@pytest.mark.parametrize("after", [False, True], ids=["lost-on-the-way", "answer-lost"])
def test_a_commit_that_the_handler_hears_nothing_of_pays_once(paying_on_postgres, after):
    site = paying_on_postgres
    job_ids = enqueue_payments()
    cable = Cable(site.url)
    worker = site.start_worker("--concurrency", "2", *IMPORT, PROMISE_LEDGER=cable.url)
    for cut in range(1, 4):
        cable.cut_at(COMMIT, after=after)
        wait_until(lambda cut=cut: cable.cuts == cut or site.all_ended())
    jobs = assert_paid_once(site, job_ids)
    cable.close()
    assert cable.cuts
    assert worker.process.returncode == 0
    failures = sum(job.record.failures for job in jobs)
    assert failures == (0 if after else cable.cuts)
