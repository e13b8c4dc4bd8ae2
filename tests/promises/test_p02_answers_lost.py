"""P2: a commit whose answer is lost counts once, whoever asks again; a silent line is left."""

from __future__ import annotations

import pytest
from tests.adapters.postgres_proxy import Cable
from tests.promises import promised
from tests.promises.books import balanced
from tests.waiting import wait_until

from tidemill.adapters.postgres import PostgresStore
from tidemill.adapters.sqlite import SqliteStore
from tidemill.errors import AnswerLost

COMMIT = b"COMMIT\0"  # and not the COMMITTED with which a transaction begins
CUTS = 6


@pytest.fixture
def cable(postgres_url):
    cable = Cable(postgres_url)
    yield cable
    cable.close()


class LosesEverySecond:
    """A store that commits, and loses every second answer."""

    def __init__(self, store):
        self._store, self._asked, self.cuts = store, 0, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def perform_sync(self, operation):
        answer = self._store.perform_sync(operation)
        self._asked += 1
        if self._asked % 2:
            self.cuts += 1
            message = "cut after the commit"
            raise AnswerLost(message)
        return answer


def test_a_report_whose_answer_is_lost_is_recorded_once_on_sqlite(sqlite_site):
    site = sqlite_site
    job_ids = site.enqueue_work(60, 0.02)
    site.start_worker("--concurrency", "4", "--lease", "3s", PROMISE_LOSSY="reports")
    jobs = balanced(site, job_ids)
    assert site.bodies("lost")["report"] >= CUTS
    assert {job.state for job in jobs} == {"succeeded"}


@pytest.mark.parametrize("after", [False, True], ids=["lost-on-the-way", "answer-lost"])
def test_a_commit_that_a_worker_hears_nothing_of_is_done_once_on_postgresql(
    postgres_site, cable, after
):
    site = postgres_site
    job_ids = site.enqueue_work(60, 0.02)
    worker = site.start_worker("--concurrency", "4", "--lease", "3s", url=cable.url)
    wait_until(lambda: site.begun_by(worker))
    for cut in range(1, CUTS + 1):
        cable.cut_at(COMMIT, after=after)
        job_ids += site.enqueue_work(5, 0.02)
        wait_until(lambda cut=cut: cable.cuts == cut and site.all_ended())
    jobs = balanced(site, job_ids)
    assert {job.state for job in jobs} == {"succeeded"}


def test_an_enqueue_whose_answer_is_lost_is_stored_once_on_sqlite(sqlite_site):
    site = sqlite_site
    store = SqliteStore.from_url(site.url)
    far = LosesEverySecond(store)
    with promised.mill.using(far):
        job_ids = [promised.work.sync.enqueue(0.0).id for _ in range(10)]
    store.close()
    assert far.cuts >= len(job_ids)
    site.start_worker()
    assert {job.state for job in balanced(site, job_ids)} == {"succeeded"}


@pytest.mark.parametrize("after", [False, True], ids=["lost-on-the-way", "answer-lost"])
def test_an_enqueue_that_nobody_hears_of_is_stored_once_on_postgresql(postgres_site, cable, after):
    site = postgres_site
    far = PostgresStore(cable.url, hints=False)
    job_ids = []
    with promised.mill.using(far):
        for cut in range(1, CUTS + 1):
            cable.cut_at(COMMIT, after=after)
            job_ids += site.enqueue_work(2, 0.02)
            assert cable.cuts == cut
    far.close()
    site.start_worker()
    assert {job.state for job in balanced(site, job_ids)} == {"succeeded"}


def test_a_line_that_falls_silent_costs_no_job_and_no_worker(postgres_site, cable):
    site = postgres_site
    job_ids = site.enqueue_work(20, 0.2)
    silenced = site.start_victim("--delivery-timeout", "1s", url=cable.url, PROMISE_HASTY=1)
    wait_until(lambda: site.begun_by(silenced))
    cable.fall_silent()
    other = site.start_survivor()
    wait_until(site.all_ended)
    other.stop()
    assert other.ended() == 0
    more = site.enqueue_work(5, 0.02)
    wait_until(lambda: site.begun_by(silenced) >= set(map(str, more)))
    jobs = balanced(site, job_ids + more)
    assert {job.state for job in jobs} == {"succeeded"}
