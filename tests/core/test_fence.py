"""The fence: every conjunct alone, and every answer (clauses D1, D5)."""

from itertools import product
from uuid import UUID

import pytest

from tidemill.core.fence import Reporter, admits, answer, judge_note
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Holder
from tidemill.values.notes import Note
from tidemill.values.outcomes import Answer, Outcome, Verdict
from tidemill.values.states import JobState

WORKER = WorkerId(UUID(int=1))
OTHER = WorkerId(UUID(int=2))
LIVE = Reporter(WORKER, lease_live=True)
DEAD = Reporter(WORKER, lease_live=False)
REPORTABLE = [verdict for verdict in Verdict if verdict is not Verdict.LAPSED]


def report(verdict: Verdict = Verdict.SUCCEEDED, attempt: int = 2) -> Outcome:
    return Outcome(job_id=JobId(UUID(int=9)), attempt=Attempt(attempt), verdict=verdict)


def row(
    state: JobState = JobState.RUNNING, worker: WorkerId | None = WORKER, attempt: int = 2
) -> Holder:
    return Holder(worker, Attempt(attempt), state)


@pytest.mark.parametrize(
    ("state", "worker", "attempt", "live"),
    list(product(JobState, [WORKER, OTHER, None], [1, 2, 3], [True, False])),
)
def test_a_report_and_a_note_write_iff_every_one_of_the_four_conditions_holds(
    state, worker, attempt, live
) -> None:
    reporter = Reporter(WORKER, lease_live=live)
    holds = state is JobState.RUNNING and worker == WORKER and attempt == 2 and live
    assert admits(reporter, Attempt(2), row(state, worker, attempt)) is holds
    note = Note(job_id=JobId(UUID(int=9)), attempt=Attempt(2))
    said = judge_note(reporter, note, row(state, worker, attempt))
    assert said.answer is (Answer.APPLIED if holds else Answer.STALE)


@pytest.mark.parametrize("verdict", REPORTABLE)
def test_the_verdict_does_not_matter_to_the_fence(verdict) -> None:
    assert answer(LIVE, report(verdict), row(), None) is Answer.APPLIED


@pytest.mark.parametrize("verdict", REPORTABLE)
@pytest.mark.parametrize(
    ("reporter", "holder"),
    [
        (DEAD, row()),
        (LIVE, row(worker=OTHER)),
        (LIVE, row(worker=None)),
        (LIVE, row(attempt=1)),
        (LIVE, row(attempt=3)),
        *[(LIVE, row(state, None)) for state in JobState if state is not JobState.RUNNING],
    ],
)
def test_a_report_that_one_condition_rejects_and_no_record_shows_is_stale(
    verdict, reporter, holder
) -> None:
    assert answer(reporter, report(verdict), holder, None) is Answer.STALE


@pytest.mark.parametrize("reporter", [LIVE, DEAD])
@pytest.mark.parametrize("verdict", REPORTABLE)
def test_a_report_on_no_row_is_gone(reporter, verdict) -> None:
    assert answer(reporter, report(verdict), None, None) is Answer.GONE


@pytest.mark.parametrize("reporter", [LIVE, DEAD])
def test_a_success_that_the_row_shows_is_already_applied_with_a_dead_lease_too(reporter) -> None:
    assert answer(reporter, report(), row(JobState.SUCCEEDED), None) is Answer.ALREADY_APPLIED


@pytest.mark.parametrize(
    ("verdict", "holder"),
    [
        (Verdict.SUCCEEDED, row(JobState.SUCCEEDED, OTHER)),
        (Verdict.SUCCEEDED, row(JobState.SUCCEEDED, attempt=3)),
        (Verdict.FAILED, row(JobState.SUCCEEDED)),
        (Verdict.SUCCEEDED, row(JobState.DEAD)),
    ],
)
def test_a_row_that_shows_something_else_is_no_proof(verdict, holder) -> None:
    assert answer(LIVE, report(verdict), holder, None) is Answer.STALE


@pytest.mark.parametrize("reporter", [LIVE, DEAD])
@pytest.mark.parametrize("verdict", [v for v in REPORTABLE if v is not Verdict.SUCCEEDED])
def test_an_end_that_the_record_shows_is_already_applied_until_the_job_moved_on(
    reporter, verdict
) -> None:
    ended = row(JobState.SCHEDULED, None)
    assert answer(reporter, report(verdict), ended, verdict) is Answer.ALREADY_APPLIED
    moved = row(JobState.RUNNING, OTHER, 3)
    assert answer(reporter, report(verdict), moved, verdict) is Answer.SUPERSEDED


@pytest.mark.parametrize(
    ("sent", "recorded"),
    [pair for pair in product(REPORTABLE, Verdict) if pair[0] is not pair[1]],
)
def test_a_record_of_another_verdict_is_no_proof(sent, recorded) -> None:
    holder = row(JobState.SCHEDULED, None)
    assert answer(LIVE, report(sent), holder, recorded) is Answer.STALE


def test_a_report_that_the_fence_admits_is_applied_whatever_a_record_says() -> None:
    assert answer(LIVE, report(Verdict.FAILED), row(), Verdict.FAILED) is Answer.APPLIED
