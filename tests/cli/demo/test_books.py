"""The audit: it passes books that balance, and finds each way in which they may not."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from tidemill.cli.demo.books import End, Entry, audit
from tidemill.cli.demo.journal import Body
from tidemill.cli.demo.records import RecordedFile

AT = datetime(2026, 3, 1, tzinfo=UTC)
A, B = UUID(int=1), UUID(int=2)
WORKER = UUID(int=99)
FILES = {A: RecordedFile("a.py", "aa", 3), B: RecordedFile("b.py", "bb", 4)}


def ended(attempt, verdict, *, stale=False):
    return End(attempt=attempt, worker=WORKER, verdict=verdict, stale=stale, ended_at=AT)


def job(job_id, ends=(), *, attempt=1, **changes):
    file = FILES.get(job_id, RecordedFile("?", "?", 0))
    lapses = sum(each.verdict == "lapsed" and not each.stale for each in ends)
    output = {"matches": True, "digest": file.digest, "size": file.size}
    return Entry(**{
        "id": job_id, "state": "succeeded", "cause": None, "attempt": attempt, "lapses": lapses,
        "payload": msgspec.json.encode(file._asdict()), "output": msgspec.json.encode(output),
        "ends": tuple(ends), **changes,
    })  # fmt: skip


LAPSED = ended(1, "lapsed")
JOBS = [job(A), job(B, [LAPSED, ended(1, "succeeded", stale=True)], attempt=2)]
BODIES = [Body(1, A, 1), Body(1, B, 1), Body(2, B, 2)]


def test_books_that_balance_have_no_faults_and_true_totals():
    found = audit(FILES, JOBS, BODIES)
    assert (found.faults, found.mismatched) == ([], [])
    totals = found.totals
    assert (totals.jobs, totals.succeeded, totals.attempts, totals.lapses) == (2, 2, 3, 1)
    assert (totals.bodies, totals.ran_twice, totals.stale, totals.size) == (3, 1, 1, 7)
    assert found.lapsed == [LAPSED]


def test_an_attempt_may_lapse_before_its_body_begins():
    found = audit(FILES, JOBS, [Body(1, A, 1), Body(2, B, 2)])
    assert (found.faults, found.totals.ran_twice) == ([], 0)


def test_a_file_that_differs_is_counted_and_named():
    output = msgspec.json.encode({"matches": False, "digest": "xx", "size": 3})
    found = audit(FILES, [replace(JOBS[0], output=output), JOBS[1]], BODIES)
    assert (found.faults, found.mismatched, found.totals.mismatches) == ([], ["a.py"], 1)


FAULTS = {
    "a job is lost": (JOBS[1:], BODIES, "is not in the tables"),
    "a job is listed twice": ([*JOBS, JOBS[0]], BODIES, "listed 2 times"),
    "a job is nobody's": ([*JOBS, job(UUID(int=3))], BODIES, "nobody enqueued it"),
    "a job did not succeed": (
        [job(A, state="dead", cause="poison"), JOBS[1]], BODIES, "is dead (poison)",
    ),
    "an attempt has no end": ([job(A, attempt=2), JOBS[1]], BODIES, "have ends for []"),
    "an attempt has two ends": (
        [job(A, [ended(1, "lapsed")]), JOBS[1]], BODIES, "have ends for [1]",
    ),
    "a lapse was not counted": (
        [JOBS[0], job(B, [LAPSED], attempt=2, lapses=0)], BODIES, "counts 0 lapses",
    ),
    "two workers ran one attempt": (JOBS, [*BODIES, Body(2, A, 1)], "began twice: [1, 1]"),
    "a success has no body": (JOBS, BODIES[1:], "whose body never began: []"),
    "a body ran on after the success": (JOBS, [*BODIES, Body(2, A, 2)], "beyond its attempt 1"),
    "a body is nobody's": (JOBS, [*BODIES, Body(2, UUID(int=3), 1)], "a body of job"),
    "an output is missing": ([replace(JOBS[0], output=None), JOBS[1]], BODIES, "has no output"),
    "an output lies": (
        [replace(JOBS[0], output=b'{"matches":true,"digest":"xx","size":3}'), JOBS[1]],
        BODIES, "judged a.py wrongly",
    ),
    "a payload is another job's": (
        [replace(JOBS[0], payload=JOBS[1].payload), JOBS[1]], BODIES, "was enqueued for",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("jobs", "bodies", "says"), FAULTS.values(), ids=FAULTS)
def test_each_fault_is_found(jobs, bodies, says):
    faults = audit(FILES, jobs, bodies).faults
    assert any(says in fault for fault in faults), faults


def test_the_sums_are_checked_by_themselves():
    found = audit(FILES, JOBS[:1], BODIES[:1])
    assert "2 files were enqueued, and 1 successes are recorded." in found.faults
