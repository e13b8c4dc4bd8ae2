"""Notes: progress and log lines of running attempts, and the fence on them (clauses D1, D2, D6)."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    LEASE,
    MICROSECOND,
    NOTED_AT,
    SECOND,
    cancel,
    claim_one,
    complete,
    details,
    exchange,
    failure,
    fresh_job_id,
    halfway,
    lapse,
    line,
    log_of,
    note,
    outcome,
    register,
    report,
    requeue,
    start,
    state_of,
)
from tidemill.errors import InvalidValue
from tidemill.store.contract import Store
from tidemill.store.cursors import cursor_after
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import ListJobs
from tidemill.store.notes import ReadLog, TakeNotes
from tidemill.values.ids import Attempt
from tidemill.values.jobs import Claimed, Holder
from tidemill.values.notes import JobLine, JobProgress, Note
from tidemill.values.outcomes import Answer, Reported, Verdict
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

REPORTABLE = [verdict for verdict in Verdict if verdict is not Verdict.LAPSED]


def as_read(job: Claimed, number: int, message: str = "a stone", fields: str = "") -> JobLine:
    """A line as it is read back."""
    return JobLine(attempt=job.attempt, number=number, at=NOTED_AT, message=message, fields=fields)


def assert_nothing_was_noted(store: Store, job: Claimed) -> None:
    """No word of this attempt is there, and none is recorded as a stale report either."""
    found = details(store, job.id)
    assert (found.record.progress, found.log, log_of(store, job.id)) == (None, (), ())
    assert not any(attempt.stale for attempt in found.attempts)


def test_progress_is_seen_while_its_attempt_runs(store: Store) -> None:
    """D2, K1."""
    job = start(store, register(store))
    assert note(store, job, progress=halfway()) is Answer.APPLIED
    record = details(store, job.id).record
    assert record.state is JobState.RUNNING
    assert record.progress == JobProgress(
        attempt=job.attempt, fraction=0.5, message="grinding", at=NOTED_AT
    )
    (listed,) = store.perform_sync(ListJobs()).jobs
    assert listed == record


def test_each_word_of_progress_replaces_the_one_before(store: Store) -> None:
    """D2."""
    job = start(store, register(store))
    note(store, job, progress=halfway())
    note(store, job, progress=halfway(None, "resting"))
    progress = details(store, job.id).record.progress
    assert progress is not None
    assert (progress.fraction, progress.message) == (None, "resting")


def test_progress_changes_nothing_else(store: Store) -> None:
    """D2."""
    job = start(store, register(store), tags=frozenset({Tag("run", "7")}))
    before = details(store, job.id)
    note(store, job, progress=halfway())
    now = details(store, job.id)
    assert replace(now, record=replace(now.record, progress=None)) == before


def test_log_lines_are_read_in_the_order_of_their_attempts_and_numbers(store: Store) -> None:
    """D2."""
    worker = register(store)
    first = start(store, worker, retry=AT_ONCE)
    note(store, first, line(2, "two"), line(1, "one", fields='{"stones":3}'))
    report(store, first, Verdict.FAILED, error=BROKEN)
    second = claim_one(store, worker)
    note(store, second, line(1, "again"))
    expected = (
        as_read(first, 1, "one", '{"stones":3}'),
        as_read(first, 2, "two"),
        as_read(second, 1, "again"),
    )
    assert log_of(store, first.id) == expected
    assert details(store, first.id).log == expected
    assert expected[0].values == {"stones": 3}


def test_a_note_may_be_sent_twice(store: Store) -> None:
    """D2, M3: a line that is there stays as it is."""
    job = start(store, register(store))
    for _ in range(2):
        assert note(store, job, line(1), line(2), progress=halfway()) is Answer.APPLIED
    note(store, job, line(2, "another stone"), line(3))
    assert log_of(store, job.id) == tuple(as_read(job, number) for number in (1, 2, 3))


def test_a_log_is_read_page_by_page(store: Store) -> None:
    """D2, L2: also while lines are added."""
    job = start(store, register(store))
    note(store, job, *(line(number) for number in (1, 2, 3)))
    page = store.perform_sync(ReadLog(job.id, limit=2))
    assert [each.number for each in page.lines] == [1, 2]
    note(store, job, line(4))
    rest = store.perform_sync(ReadLog(job.id, cursor=page.next_cursor, limit=2))
    assert [each.number for each in rest.lines] == [3, 4]
    assert rest.next_cursor is None


def test_a_page_of_a_log_is_clamped(store: Store) -> None:
    """D2, L2."""
    job = start(store, register(store))
    size = store.bounds.page_size
    note(store, job, *(line(number) for number in range(1, size + 2)))
    page = store.perform_sync(ReadLog(job.id, limit=10 * size))
    assert len(page.lines) == size
    assert page.next_cursor is not None
    assert len(store.perform_sync(ReadLog(job.id, limit=-1)).lines) == 1


def test_the_lines_of_one_attempt_are_read_page_by_page(store: Store) -> None:
    """D2, L2."""
    worker = register(store)
    job = start(store, worker, retry=AT_ONCE)
    for _ in range(3):
        note(store, job, line(1), line(2), line(3))
        report(store, job, Verdict.RELEASED)
        job = claim_one(store, worker)
    second = Attempt(2)
    page = store.perform_sync(ReadLog(job.id, second, limit=2))
    assert [(each.attempt, each.number) for each in page.lines] == [(2, 1), (2, 2)]
    rest = store.perform_sync(ReadLog(job.id, second, cursor=page.next_cursor, limit=2))
    assert [(each.attempt, each.number) for each in rest.lines] == [(2, 3)]
    assert rest.next_cursor is None
    assert store.perform_sync(ReadLog(job.id, Attempt(9))).lines == ()


@pytest.mark.parametrize("cursor", ["", "?", "AAAA", "é", "_" * 23, cursor_after(fresh_job_id())])
def test_a_cursor_that_no_log_gave_is_refused(store: Store, cursor: str) -> None:
    """D2, L2."""
    with pytest.raises(InvalidValue, match="is not a page cursor"):
        store.perform_sync(ReadLog(fresh_job_id(), cursor=cursor))


def test_the_log_of_an_unknown_job_is_empty(store: Store) -> None:
    """D2."""
    assert log_of(store, fresh_job_id()) == ()


def test_a_jobs_details_show_the_end_of_its_log(store: Store) -> None:
    """D2."""
    job = start(store, register(store))
    count = store.bounds.log_lines_shown + 3
    note(store, job, *(line(number) for number in range(1, count + 1)))
    assert details(store, job.id).log == tuple(as_read(job, each) for each in range(4, count + 1))


def test_a_note_of_another_worker_is_stale_and_writes_nothing(store: Store) -> None:
    """D1, D2."""
    job = start(store, register(store))
    told = Note(job_id=job.id, attempt=job.attempt, progress=halfway(), lines=(line(1),))
    (said,) = store.perform_sync(TakeNotes(worker=register(store), notes=(told,)))
    holder = Holder(job.worker, job.attempt, JobState.RUNNING)
    assert said == Reported(job.id, job.attempt, Answer.STALE, JobState.RUNNING, holder)
    assert_nothing_was_noted(store, job)


@pytest.mark.parametrize("attempt", [0, 2])
def test_a_note_of_another_attempt_is_stale_and_writes_nothing(store: Store, attempt: int) -> None:
    """D1, D2."""
    job = start(store, register(store))
    said = note(store, job, line(1), progress=halfway(), attempt=Attempt(attempt))
    assert said is Answer.STALE
    assert_nothing_was_noted(store, job)


def test_a_note_of_an_earlier_attempt_of_the_same_worker_is_stale(store: Store) -> None:
    """D1, D2, A4."""
    worker = register(store)
    first = start(store, worker, retry=AT_ONCE)
    report(store, first, Verdict.RELEASED)
    again = claim_one(store, worker)
    assert note(store, first, line(1), progress=halfway()) is Answer.STALE
    assert_nothing_was_noted(store, again)


def test_a_note_with_a_dead_lease_is_stale(store: Store, clock: VirtualClock) -> None:
    """D1, D2, C5: the lease is dead at its expiry instant, swept or not."""
    job = start(store, register(store))
    clock.advance(LEASE)
    assert note(store, job, line(1), progress=halfway()) is Answer.STALE
    assert_nothing_was_noted(store, job)


def test_a_note_in_the_last_instant_of_the_lease_is_taken(
    store: Store, clock: VirtualClock
) -> None:
    """D1, D2, C5."""
    job = start(store, register(store))
    clock.advance(LEASE - MICROSECOND)
    assert note(store, job, line(1)) is Answer.APPLIED


@pytest.mark.parametrize("verdict", REPORTABLE)
def test_a_note_of_an_attempt_that_has_ended_is_stale(store: Store, verdict: Verdict) -> None:
    """D1, D2, B1."""
    job = start(store, register(store), retry=AT_ONCE)
    report(store, job, verdict, error=BROKEN, delay=SECOND)
    assert note(store, job, line(1), progress=halfway()) is Answer.STALE
    found = details(store, job.id)
    assert (found.record.progress, found.log) == (None, ())


def test_a_note_of_a_lapsed_attempt_is_stale(store: Store, clock: VirtualClock) -> None:
    """D1, D2, C6."""
    job = start(store, register(store), retry=AT_ONCE)
    lapse(store, clock)
    assert note(store, job, line(1), progress=halfway()) is Answer.STALE
    assert_nothing_was_noted(store, job)


def test_a_note_of_an_unknown_job_is_gone(store: Store) -> None:
    """D5, D2."""
    job = replace(start(store, register(store)), id=fresh_job_id())
    assert note(store, job, line(1)) is Answer.GONE
    assert log_of(store, job.id) == ()


def test_each_note_is_judged_alone(store: Store) -> None:
    """D4, D2."""
    worker = register(store)
    one, other = start(store, worker), start(store, worker)
    stale = Note(job_id=one.id, attempt=Attempt(7), lines=(line(1),))
    fine = Note(job_id=other.id, attempt=other.attempt, lines=(line(1),))
    said = store.perform_sync(TakeNotes(worker=worker, notes=(stale, fine)))
    assert [each.answer for each in said] == [Answer.STALE, Answer.APPLIED]
    assert [each.job_id for each in said] == [one.id, other.id]
    assert (log_of(store, one.id), log_of(store, other.id)) == ((), (as_read(other, 1),))


def test_no_notes_are_answered_by_none(store: Store) -> None:
    """D2."""
    assert store.perform_sync(TakeNotes(worker=register(store), notes=())) == ()


@pytest.mark.parametrize("verdict", REPORTABLE)
def test_what_an_attempt_said_last_rides_on_its_outcome_whatever_that_is(
    store: Store, verdict: Verdict
) -> None:
    """D2, D3."""
    job = start(store, register(store))
    note(store, job, line(1))
    rest = {"error": BROKEN, "delay": SECOND, "lines": (line(1), line(2)), "progress": halfway(1)}
    assert report(store, job, verdict, **rest).answer is Answer.APPLIED
    found = details(store, job.id)
    assert found.log == (as_read(job, 1), as_read(job, 2))
    assert found.record.progress == JobProgress(
        attempt=job.attempt, fraction=1, message="grinding", at=NOTED_AT
    )


def test_what_a_stale_outcome_carries_is_dropped(store: Store, clock: VirtualClock) -> None:
    """D1, D2."""
    job = start(store, register(store), retry=AT_ONCE)
    lapse(store, clock)
    said = report(store, job, Verdict.SUCCEEDED, lines=(line(1),), progress=halfway())
    assert said.answer is Answer.STALE
    found = details(store, job.id)
    assert (found.log, found.record.progress) == ((), None)


def test_one_batch_takes_outcomes_that_say_much_and_little(store: Store) -> None:
    """D2, D4."""
    worker = register(store)
    plain, telling, failing = start(store, worker), start(store, worker), start(store, worker)
    said = exchange(
        store,
        worker,
        outcome(plain, Verdict.SUCCEEDED),
        outcome(telling, Verdict.SUCCEEDED, lines=(line(1),)),
        failure(failing, progress=halfway()),
    ).reported
    assert [each.answer for each in said] == [Answer.APPLIED] * 3
    assert log_of(store, telling.id) == (as_read(telling, 1),)
    assert details(store, failing.id).record.progress is not None


def test_progress_outlives_its_attempt_until_the_next_one_says_something(store: Store) -> None:
    """D2."""
    worker = register(store)
    first = start(store, worker, retry=AT_ONCE)
    note(store, first, progress=halfway())
    report(store, first, Verdict.FAILED, error=BROKEN)
    second = claim_one(store, worker)
    seen = details(store, first.id).record.progress
    assert seen is not None
    assert seen.attempt == first.attempt
    note(store, second, progress=halfway(0.1))
    seen = details(store, first.id).record.progress
    assert seen is not None
    assert (seen.attempt, seen.fraction) == (second.attempt, 0.1)


def test_the_log_survives_a_requeue(store: Store) -> None:
    """D2, A4."""
    worker = register(store)
    job = start(store, worker)
    report(store, job, Verdict.DISCARDED, error=BROKEN, lines=(line(1),))
    requeue(store, job.id)
    again = claim_one(store, worker)
    note(store, again, line(1))
    assert log_of(store, job.id) == (as_read(job, 1), as_read(again, 1))


def test_the_lines_of_the_last_attempts_are_kept(store: Store) -> None:
    """D2, E5."""
    worker = register(store)
    job = start(store, worker, retry=AT_ONCE)
    kept = store.bounds.attempts_kept
    for _ in range(kept + 1):
        report(store, job, Verdict.RELEASED, lines=(line(1), line(2)))
        job = claim_one(store, worker)
    note(store, job, line(1))
    attempts = [each.attempt for each in log_of(store, job.id)]
    assert attempts[0] == job.attempt - kept + 1
    assert (attempts[-1], len(set(attempts))) == (job.attempt, kept)


@pytest.mark.parametrize("text", ["nul \0 here", "\ud800 alone", "long " * 2_000])
def test_text_that_no_database_holds_is_escaped_or_cut_and_never_refused(
    store: Store, text: str
) -> None:
    """D6, D2."""
    job = start(store, register(store))
    said = note(store, job, line(1, text), line(2), progress=halfway(message=text))
    assert said is Answer.APPLIED
    first, second = log_of(store, job.id)
    progress = details(store, job.id).record.progress
    assert progress is not None
    assert second == as_read(job, 2)
    assert 0 < len(first.message.encode()) <= store.bounds.log_line_bytes
    assert 0 < len(progress.message.encode()) <= store.bounds.progress_message_bytes
    assert text[:3] == first.message[:3] or "\\ud800" in first.message


def test_fields_over_the_bound_are_replaced_by_their_size(store: Store) -> None:
    """D6, D2."""
    job = start(store, register(store))
    fields = '{"stones":"' + "o" * store.bounds.log_line_bytes + '"}'
    note(store, job, line(1, fields=fields))
    (found,) = log_of(store, job.id)
    assert found.values == {"cut": f"{len(fields):,} bytes"}


@pytest.mark.parametrize(("said", "kept"), [(nan, None), (inf, None), (-3.0, 0.0), (45.0, 1.0)])
def test_a_fraction_that_is_none_is_kept_as_what_comes_nearest(
    store: Store, said: float, kept: float | None
) -> None:
    """D6, D2."""
    job = start(store, register(store))
    note(store, job, progress=halfway(said))
    progress = details(store, job.id).record.progress
    assert progress is not None
    assert progress.fraction == kept


def test_lines_over_their_number_are_left_out(store: Store) -> None:
    """D6, D2: one more is kept, to say how many were left out."""
    job = start(store, register(store))
    most = store.bounds.log_lines
    note(store, job, line(0), *(line(number) for number in range(most, most + 4)))
    assert [each.number for each in log_of(store, job.id)] == [most, most + 1]


def test_a_note_is_taken_while_a_cancel_is_requested(store: Store) -> None:
    """D2, G2."""
    job = start(store, register(store))
    cancel(store, job.id)
    assert note(store, job, line(1)) is Answer.APPLIED
    assert details(store, job.id).record.cancel_requested is not None


def test_what_is_said_around_a_completion_is_written_with_the_report_of_its_end(
    store: Store,
) -> None:
    """D2, D8."""
    job = start(store, register(store))
    complete(store, job)
    assert note(store, job, line(1)) is Answer.STALE
    said = report(
        store,
        job,
        Verdict.FAILED,
        error=BROKEN,
        in_transaction=True,
        lines=(line(1),),
        progress=halfway(1),
    )
    assert said.answer is Answer.ALREADY_APPLIED
    found = details(store, job.id)
    assert found.log == (as_read(job, 1),)
    assert found.record.progress is not None
    assert state_of(store, job.id) is JobState.SUCCEEDED
