"""Reports: batches, lost answers, and text that no database likes (clauses D3–D7)."""

from __future__ import annotations

import pytest

from tidemill.conformance.scenes import (
    AT_ONCE,
    BROKEN,
    LEASE,
    cancel,
    claim,
    claim_one,
    details,
    enqueue_one,
    exchange,
    fail,
    failure,
    lapse,
    outcome,
    register,
    report,
    request,
    requeue,
    send,
    start,
    state_of,
)
from tidemill.core.storable import OUTPUT_TOO_LARGE
from tidemill.store.contract import Store
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetEnd
from tidemill.values.ids import Attempt
from tidemill.values.monitor import JobEnd
from tidemill.values.outcomes import Answer, ErrorInfo, Outcome, Verdict
from tidemill.values.retry import Retry
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

ENDS = [Verdict.FAILED, Verdict.DISCARDED, Verdict.UNROUTABLE, Verdict.RELEASED, Verdict.SNOOZED]
NASTY = "a NUL \0, a lone surrogate \udc80, another \ud800, and the sign 🜂"


def test_everything_that_a_success_carries_commits_with_it(store: Store) -> None:
    """D3, K1, K2."""
    job = start(store, register(store), tags=frozenset({Tag("asked")}))
    report(store, job, Verdict.SUCCEEDED, output=b'{"kg":7}', tags=frozenset({Tag("fine", "yes")}))
    ended = details(store, job.id)
    assert ended.output == b'{"kg":7}'
    assert ended.tags == {Tag("asked"), Tag("fine", "yes")}
    assert store.perform_sync(GetEnd(job.id)) == JobEnd(
        state=JobState.SUCCEEDED, cause=None, output=b'{"kg":7}'
    )


def test_a_success_without_an_output_has_none(store: Store) -> None:
    """K2."""
    job = start(store, register(store))
    report(store, job, Verdict.SUCCEEDED)
    assert details(store, job.id).output is None


@pytest.mark.parametrize("verdict", [*ENDS, Verdict.CANCELLED])
def test_only_a_success_keeps_an_output(store: Store, verdict: Verdict) -> None:
    """K2."""
    job = start(store, register(store))
    report(store, job, verdict, error=BROKEN, output=b"1")
    assert details(store, job.id).output is None


def test_a_success_keeps_its_worker_and_attempt_and_leaves_no_attempt_record(store: Store) -> None:
    """D5, E5."""
    job = start(store, register(store))
    report(store, job, Verdict.SUCCEEDED)
    ended = details(store, job.id)
    assert (ended.record.worker, ended.record.attempt) == (job.worker, job.attempt)
    assert ended.attempts == ()


@pytest.mark.parametrize("verdict", [*ENDS, Verdict.CANCELLED])
def test_every_end_that_is_not_a_success_leaves_its_attempt_record(
    store: Store, clock: VirtualClock, verdict: Verdict
) -> None:
    """D5, E5."""
    job = start(store, register(store))
    clock.advance(LEASE / 3)
    report(store, job, verdict, error=BROKEN)
    (record,) = details(store, job.id).attempts
    assert (record.job_id, record.attempt, record.worker) == (job.id, job.attempt, job.worker)
    assert record.verdict is verdict
    assert record.error is not None
    assert (record.error.kind, record.error.message, record.error.detail) == (
        BROKEN.kind,
        BROKEN.message,
        BROKEN.detail,
    )
    assert (record.started_at, record.ended_at) == (job.started_at, clock())
    assert not record.stale


def test_a_job_that_is_not_running_nor_succeeded_names_no_worker(store: Store) -> None:
    """D5."""
    job = start(store, register(store))
    fail(store, job)
    assert details(store, job.id).record.worker is None


@pytest.mark.parametrize("verdict", [*ENDS, Verdict.SUCCEEDED])
def test_a_report_whose_answer_was_lost_is_already_applied_and_changes_nothing(
    store: Store, verdict: Verdict
) -> None:
    """D5, M3."""
    job = start(store, register(store))
    assert report(store, job, verdict, output=b"1").answer is Answer.APPLIED
    before = details(store, job.id)
    repeated = report(store, job, verdict, output=b"1")
    assert repeated.answer is Answer.ALREADY_APPLIED
    assert repeated.state is before.record.state
    assert details(store, job.id) == before


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.RELEASED, Verdict.SNOOZED])
def test_a_repeated_report_is_superseded_when_the_job_moved_on(
    store: Store, verdict: Verdict
) -> None:
    """D5."""
    worker = register(store)
    job = start(store, worker, retry=AT_ONCE)
    report(store, job, verdict)
    claim_one(store, worker)
    before = details(store, job.id)
    assert report(store, job, verdict).answer is Answer.SUPERSEDED
    assert details(store, job.id) == before


def test_a_repeated_report_is_answered_rightly_after_the_lease_ended(
    store: Store, clock: VirtualClock
) -> None:
    """D5: what was applied stays applied, whatever became of the worker."""
    worker = register(store)
    failed = start(store, worker)
    fail(store, failed)
    succeeded = start(store, worker)
    report(store, succeeded, Verdict.SUCCEEDED)
    lapse(store, clock)
    assert fail(store, failed).answer is Answer.ALREADY_APPLIED
    assert report(store, succeeded, Verdict.SUCCEEDED).answer is Answer.ALREADY_APPLIED


def test_a_repeated_report_is_answered_rightly_after_a_requeue(store: Store) -> None:
    """D5."""
    worker = register(store)
    job = start(store, worker)
    report(store, job, Verdict.DISCARDED, error=BROKEN)
    requeue(store, job.id)
    claim_one(store, worker)
    sent = outcome(job, Verdict.DISCARDED, error=BROKEN)
    assert send(store, worker, sent).answer is Answer.SUPERSEDED


def test_a_repeat_by_another_worker_is_stale(store: Store) -> None:
    """D5: the record must show this very verdict of this very attempt of this very worker."""
    job = start(store, register(store))
    fail(store, job)
    assert send(store, register(store), failure(job)).answer is Answer.STALE


def test_the_same_outcome_twice_in_one_batch_is_applied_once(store: Store) -> None:
    """D4, D5."""
    job = start(store, register(store))
    answered = exchange(store, job.worker, failure(job), failure(job))
    assert [reported.answer for reported in answered.reported] == [
        Answer.APPLIED,
        Answer.ALREADY_APPLIED,
    ]
    assert details(store, job.id).record.failures == 1


def test_a_stale_or_over_size_outcome_never_affects_its_neighbours(store: Store) -> None:
    """D4, D7."""
    worker = register(store)
    for _ in range(4):
        enqueue_one(store, retry=AT_ONCE)
    good, stale, large, last = claim(store, worker, 4)
    wrong = Outcome(job_id=stale.id, attempt=Attempt(7), verdict=Verdict.SUCCEEDED)
    over = b"x" * (store.bounds.output_bytes + 1)
    answered = exchange(
        store,
        worker,
        outcome(good, Verdict.SUCCEEDED, output=b"1"),
        wrong,
        outcome(large, Verdict.SUCCEEDED, output=over),
        failure(last),
    )
    assert [(each.job_id, each.answer) for each in answered.reported] == [
        (good.id, Answer.APPLIED),
        (stale.id, Answer.STALE),
        (large.id, Answer.APPLIED),
        (last.id, Answer.APPLIED),
    ]
    assert details(store, good.id).output == b"1"
    assert state_of(store, stale.id) is JobState.RUNNING
    assert details(store, large.id).record.failures == 1
    assert details(store, last.id).record.failures == 1


def test_a_large_mixed_batch_is_answered_in_its_order(store: Store) -> None:
    """D4."""
    worker = register(store)
    for _ in range(60):
        enqueue_one(store)
    jobs = claim(store, worker, 60)
    verdicts = [Verdict.SUCCEEDED, Verdict.FAILED, Verdict.RELEASED]
    sent = [outcome(job, verdicts[at % 3]) for at, job in enumerate(jobs)]
    answered = exchange(store, worker, *sent)
    assert [each.job_id for each in answered.reported] == [job.id for job in jobs]
    assert {each.answer for each in answered.reported} == {Answer.APPLIED}
    expected = [JobState.SUCCEEDED, JobState.SCHEDULED, JobState.READY]
    assert [each.state for each in answered.reported] == [expected[at % 3] for at in range(60)]


def test_what_an_exchange_released_may_be_claimed_by_it(store: Store) -> None:
    """D3: outcomes are judged before the claim."""
    job = start(store, register(store))
    answered = exchange(store, job.worker, outcome(job, Verdict.RELEASED), claim=request())
    assert [(again.id, again.attempt) for again in answered.claimed] == [(job.id, 2)]


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.DISCARDED, Verdict.UNROUTABLE])
def test_error_text_that_no_database_holds_is_escaped_and_recorded(
    store: Store, verdict: Verdict
) -> None:
    """D6."""
    job = start(store, register(store))
    error = ErrorInfo(f"Kind{NASTY}", NASTY, NASTY)
    assert report(store, job, verdict, error=error).answer is Answer.APPLIED
    (record,) = details(store, job.id).attempts
    assert record.error is not None
    for text in (record.error.kind, record.error.message, record.error.detail):
        assert r"a NUL \x00, a lone surrogate \udc80, another \ud800, and the sign 🜂" in text


def test_over_long_error_text_is_cut_with_a_note(store: Store) -> None:
    """D6."""
    job = start(store, register(store))
    bounds = store.bounds
    error = ErrorInfo("K" * 10_000, "m" * 100_000, "🜂" * 100_000)
    assert fail(store, job, error=error).answer is Answer.APPLIED
    (record,) = details(store, job.id).attempts
    assert record.error is not None
    assert len(record.error.kind.encode()) <= bounds.key_bytes
    assert len(record.error.message.encode()) <= bounds.error_message_bytes
    assert len(record.error.detail.encode()) <= bounds.error_detail_bytes
    assert record.error.message.endswith("[cut: 100,000 bytes]")
    assert record.error.detail.endswith("[cut: 400,000 bytes]")


def test_tags_that_no_database_holds_are_made_to_fit(store: Store) -> None:
    """D6, K1: a tag never keeps a job running."""
    job = start(store, register(store))
    many = frozenset(Tag(f"t{at}") for at in range(store.bounds.tags_per_job + 5))
    tags = many | {Tag("", "no key"), Tag("a" * 9_999), Tag(NASTY, NASTY)}
    assert report(store, job, Verdict.SUCCEEDED, tags=tags).answer is Answer.APPLIED
    kept = details(store, job.id).tags
    assert len(kept) == store.bounds.tags_per_job
    assert all(0 < len(tag.key.encode()) <= store.bounds.name_bytes for tag in kept)


def test_an_output_over_its_bound_fails_the_attempt_with_that_reason(store: Store) -> None:
    """D7."""
    job = start(store, register(store), retry=Retry.never())
    over = b"x" * (store.bounds.output_bytes + 1)
    reported = report(store, job, Verdict.SUCCEEDED, output=over, tags=frozenset({Tag("x")}))
    assert (reported.answer, reported.state) == (Answer.APPLIED, JobState.DEAD)
    ended = details(store, job.id)
    assert (ended.output, ended.tags) == (None, frozenset())
    (record,) = ended.attempts
    assert record.verdict is Verdict.FAILED
    assert record.error is not None
    assert record.error.kind == OUTPUT_TOO_LARGE
    assert f"{len(over):,}" in record.error.message


def test_an_output_of_exactly_its_bound_is_kept_whole(store: Store) -> None:
    """D7."""
    job = start(store, register(store))
    output = b"x" * store.bounds.output_bytes
    assert report(store, job, Verdict.SUCCEEDED, output=output).answer is Answer.APPLIED
    assert details(store, job.id).output == output


def test_a_repeated_report_of_an_over_size_output_is_already_applied(store: Store) -> None:
    """D5, D7."""
    job = start(store, register(store))
    over = b"x" * (store.bounds.output_bytes + 1)
    report(store, job, Verdict.SUCCEEDED, output=over)
    again = report(store, job, Verdict.SUCCEEDED, output=over)
    assert again.answer is Answer.ALREADY_APPLIED


def test_a_repeated_report_of_an_honoured_cancel_is_already_applied(store: Store) -> None:
    """D5, G2."""
    job = start(store, register(store))
    cancel(store, job.id)
    report(store, job, Verdict.CANCELLED)
    assert report(store, job, Verdict.CANCELLED).answer is Answer.ALREADY_APPLIED
    assert state_of(store, job.id) is JobState.CANCELLED
