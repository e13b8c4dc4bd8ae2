"""Many at once, in threads and in processes, on one file."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest

from tidemill.adapters.sqlite import SqliteStore
from tidemill.sql.migrations import migrations
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Deregister, Maintain
from tidemill.store.monitor import CountJobs
from tidemill.values.states import JobState

LEASE = timedelta(seconds=60)
PROCESS = Path(__file__).with_name("sqlite_process.py")


def together(number, part):
    """Run `part(n)` in `number` threads that start at one barrier; answer what each answered."""
    barrier = Barrier(number)

    def run(n):
        barrier.wait()
        return part(n)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))


def processes(*parts):
    """Run each part in a process of its own, all let go at once; answer what each printed."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", str(PROCESS), *map(str, part)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for part in parts
    ]  # fmt: skip
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate()[0].split() for process in started]
    assert [process.returncode for process in started] == [0] * len(parts)
    return printed


@pytest.fixture
def stores(path, clock):
    """Eight stores on the file, as eight processes would have them."""
    opened = [SqliteStore(path, clock=clock, busy_timeout=timedelta(seconds=60)) for _ in range(8)]
    yield opened
    for each in opened:
        each.close()


def test_eight_claimers_in_threads_never_share_a_job(bench, stores):
    bench.enqueue(*[bench.job() for _ in range(400)])
    workers = [bench.register() for _ in stores]

    def claim_all(n):
        ask = Exchange(worker=workers[n], claim=bench.request(limit=7))
        found = []
        while claimed := stores[n].perform_sync(ask).claimed:
            found += [job.id for job in claimed]
        return found

    claimed = Counter(job for found in together(8, claim_all) for job in found)
    assert len(claimed) == 400
    assert set(claimed.values()) == {1}


def test_claimers_in_processes_never_share_a_job(bench, path):
    bench.enqueue(*[bench.job() for _ in range(300)])
    printed = processes(*[("claim", path, size) for size in (1, 3, 10)])
    claimed = Counter(job for found in printed for job in found)
    assert len(claimed) == 300
    assert set(claimed.values()) == {1}


def test_enqueues_of_one_key_at_once_yield_one_job(bench, stores):
    jobs = [bench.job(idempotency_key="k") for _ in stores]
    answers = together(8, lambda n: stores[n].perform_sync(Enqueue((jobs[n],)))[0])
    assert len({answer.job_id for answer in answers}) == 1
    assert sorted(answer.deduplicated for answer in answers) == [False] + [True] * 7
    (count,) = bench.store.perform_sync(CountJobs())
    assert count.count == 1


def test_enqueues_of_one_key_in_two_processes_yield_one_job(bench, path):
    one, other = processes(("enqueue", path, "k"), ("enqueue", path, "k"))
    assert one == other
    (count,) = bench.store.perform_sync(CountJobs())
    assert count.count == 1


def test_one_request_sent_many_times_at_once_is_stored_once(bench, stores):
    job = bench.job()
    answers = together(8, lambda n: stores[n].perform_sync(Enqueue((job,)))[0])
    assert sorted(answer.repeated for answer in answers) == [False] + [True] * 7


def test_two_sweepers_lapse_each_attempt_once(bench, stores, clock):
    bench.enqueue(*[bench.job() for _ in range(100)])
    bench.claim(bench.register(), limit=100)
    for store in stores:
        store.perform_sync(Deregister(bench.fresh()))  # a look at the write lock (clause C10)
    clock.advance(LEASE)
    sweeps = together(8, lambda n: stores[n].perform_sync(Maintain(lease=LEASE)).lapsed)
    lapsed = Counter((each.job_id, each.attempt) for sweep in sweeps for each in sweep)
    assert len(lapsed) == 100
    assert set(lapsed.values()) == {1}
    assert {bench.get(job).record.lapses for job, _attempt in lapsed} == {1}


def test_sweepers_in_two_processes_lapse_each_attempt_once(bench, path):
    bench.enqueue(*[bench.job() for _ in range(50)])
    bench.claim(bench.register(), limit=50)  # under a clock that stands in the past
    printed = processes(("sweep", path), ("sweep", path))
    lapsed = Counter(pair for found in printed for pair in found)
    assert len(lapsed) == 50
    assert set(lapsed.values()) == {1}


def test_a_second_migrator_finds_nothing_to_do(tmp_path):
    file = tmp_path / "new.db"
    printed = processes(("migrate", file), ("migrate", file), ("migrate", file))
    applied = sorted(step for steps in printed for step in steps)
    assert applied == [step.name for step in migrations("sqlite")]


def test_stores_that_open_a_new_file_at_once_all_find_it_ready(tmp_path):
    opened = [SqliteStore(tmp_path / "new.db") for _ in range(6)]
    answers = together(6, lambda n: opened[n].perform_sync(CountJobs()))
    assert answers == [()] * 6
    for each in opened:
        each.close()


def test_every_finished_job_finished_once_whatever_workers_race_for_it(
    bench, stores, clock, outcome
):
    bench.enqueue(*[bench.job() for _ in range(200)])
    workers = [bench.register() for _ in stores]

    def work(n):
        done, reports = 0, ()
        while True:
            ask = Exchange(worker=workers[n], outcomes=reports, claim=bench.request(limit=5))
            answer = stores[n].perform_sync(ask)
            done += sum(each.answer.value == "applied" for each in answer.reported)
            if not answer.claimed:
                return done
            reports = tuple(outcome(job) for job in answer.claimed)

    assert sum(together(8, work)) == 200
    (count,) = bench.store.perform_sync(CountJobs())
    assert (count.state, count.count) == (JobState.SUCCEEDED, 200)
