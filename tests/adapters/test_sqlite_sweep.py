"""The sweep against a real file: rows nobody can read, and rows that move on meanwhile (C6)."""

import pytest
from tests.adapters.conftest import LEASE

from tidemill.adapters.sqlite import SqliteStore
from tidemill.errors import StoreUnavailable
from tidemill.sql.program import Batch
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain
from tidemill.values.outcomes import Answer, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState

SWEEP = Maintain(lease=LEASE)


@pytest.fixture
def other(path, clock):
    """Another process's store on the same file."""
    store = SqliteStore(path, clock=clock)
    yield store
    store.close()


@pytest.mark.parametrize(
    "wrong",
    ["worker_id = x'0102'", "retry = 7", "attempt = 'many'", "lapses = 'many'", "due_at = 'soon'"],
)
def test_a_row_that_cannot_be_read_does_not_keep_the_sweep_from_the_others(
    bench, clock, alter, wrong, caplog
):
    jobs = [bench.job() for _ in range(3)]
    bench.enqueue(*jobs)
    bench.claim(bench.register())
    alter(f"UPDATE tidemill_jobs SET {wrong} WHERE id = ?", jobs[0].id.bytes)
    clock.advance(LEASE)
    lapsed = {each.job_id for each in bench.maintain().lapsed}
    assert lapsed >= {job.id for job in jobs[1:]}
    assert jobs[0].id not in lapsed
    assert "is quarantined: its " in caplog.text


def test_a_workers_row_that_cannot_be_read_stops_no_part_of_the_sweep(bench, clock, alter):
    bench.enqueue(bench.job())
    lost = bench.register()
    bench.claim(lost)
    broken = bench.register()
    alter("UPDATE tidemill_workers SET wire_names = '{', queues = '' WHERE id = ?", broken.bytes)
    alter("UPDATE tidemill_workers SET id = x'00' WHERE id = ?", broken.bytes)
    assert bench.maintain().lapsed == ()
    clock.advance(LEASE)
    assert [each.worker for each in bench.maintain().lapsed] == [lost]


def test_a_sweep_that_chose_a_job_by_an_earlier_look_leaves_it_once_it_has_moved_on(
    bench, clock, other, outcome
):
    """Between the look and the write another process recovered the job, and it succeeded."""
    bench.enqueue(bench.job(retry=Retry.immediate()))
    bench.claim(bench.register())
    clock.advance(LEASE)
    with bench.store.dedicated() as channel:
        assert channel.glance(SWEEP) is None, "it has seen that there is something to do"
        other.perform_sync(SWEEP)
        clock.advance(LEASE)
        assert len(other.perform_sync(SWEEP).lapsed) == 1
        worker = bench.register()
        (again,) = other.perform_sync(Exchange(worker=worker, claim=bench.request())).claimed
        ended = Exchange(worker=worker, outcomes=(outcome(again, output=b"1"),))
        assert other.perform_sync(ended).reported[0].answer is Answer.APPLIED
        assert channel.write(SWEEP).lapsed == ()
    details = bench.get(again.id)
    assert (details.record.state, details.output) == (JobState.SUCCEEDED, b"1")


@pytest.mark.parametrize("moved", ["state = 4", "attempt = attempt + 1", "worker_id = x'00'"])
def test_the_end_of_an_attempt_is_fenced_in_its_own_statement(bench, outcome, moved):
    """A row that changed after it was judged is not overwritten, and nothing else is either."""
    jobs = [bench.job(), bench.job()]
    bench.enqueue(*jobs)
    worker = bench.register()
    kept, gone = bench.claim(worker)
    report = Exchange(
        worker=worker, outcomes=(outcome(kept, Verdict.FAILED), outcome(gone, Verdict.FAILED))
    )
    with bench.store.dedicated() as channel:
        step = channel._executor.step

        def meddle(asked):
            if isinstance(asked, Batch) and asked.name == "end_attempt":
                sql = f"UPDATE tidemill_jobs SET {moved} WHERE id = ?"
                channel._connection.execute(sql, (gone.id.bytes,))
            return step(asked)

        channel._executor.step = meddle
        with pytest.raises(StoreUnavailable, match="Of 2 attempts judged, 1 had moved on"):
            channel.perform(report)
        channel._executor.step = step
        assert {bench.get(job.id).record.state for job in jobs} == {JobState.RUNNING}
        assert [each.answer for each in channel.perform(report).reported] == [Answer.APPLIED] * 2


def test_what_upkeep_swept_is_told_although_its_other_parts_failed(
    bench, clock, store, monkeypatch, caplog
):
    bench.enqueue(bench.job(), bench.job(expires=LEASE))
    worker = bench.register()
    (job,) = bench.claim(worker, limit=1)
    clock.advance(LEASE)
    with store.dedicated() as channel:
        step = channel._executor.step

        def fail_late(asked):
            if asked.name in {"expired_jobs", "known_names"}:
                message = "busy"
                raise StoreUnavailable(message)
            return step(asked)

        monkeypatch.setattr(channel._executor, "step", fail_late)
        done = channel.write(SWEEP)
    assert [lapsed.job_id for lapsed in done.lapsed] == [job.id]
    assert (done.expired, done.unheld) == (0, 0)
    assert bench.get(job.id).record.state is JobState.SCHEDULED
    assert "A sweep of expired jobs could not be written" in caplog.text
    assert bench.maintain().expired == 1


def test_a_claim_is_answered_although_the_record_of_a_stale_report_was_lost(
    bench, store, monkeypatch, outcome, caplog
):
    """Asked again it would claim a second time, and the first jobs would be nobody's."""
    bench.enqueue(*[bench.job() for _ in range(5)])
    worker = bench.register()
    (job,) = bench.claim(worker, limit=1)
    stale = type(outcome(job))(job_id=job.id, attempt=7, verdict=Verdict.SUCCEEDED)
    ask = Exchange(worker=worker, outcomes=(stale,), claim=bench.request(limit=2))
    with store.dedicated() as channel:
        step = channel._executor.step

        def fail_late(asked):
            if isinstance(asked, Batch) and asked.name == "insert_attempt":
                message = "busy"
                raise StoreUnavailable(message)
            return step(asked)

        monkeypatch.setattr(channel._executor, "step", fail_late)
        answer = channel.perform(ask)
    assert (len(answer.claimed), answer.reported[0].answer) == (2, Answer.STALE)
    listed = store.perform_sync(Exchange(worker=worker, list_running=True)).running
    assert {pair.job_id for pair in listed} == {job.id, *(each.id for each in answer.claimed)}
    assert bench.get(job.id).attempts == ()
    assert "records of 1 stale reports" in caplog.text
