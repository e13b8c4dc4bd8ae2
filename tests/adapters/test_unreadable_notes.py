"""Progress, log lines and marks that something else has changed are shown, and stop nothing."""

import pytest
from tests.adapters.conftest import outcome

from tidemill.store.complete import Complete
from tidemill.store.monitor import ListJobs
from tidemill.store.notes import ReadLog, TakeNotes
from tidemill.values.notes import LogLine, Note, Progress
from tidemill.values.outcomes import Answer
from tidemill.values.states import JobState
from tidemill.values.tags import Tag

NO_TEXT = "CAST(x'ff' AS TEXT)"


@pytest.fixture
def noted(bench):
    """A running job that has said something, and three lines of it."""
    bench.enqueue(bench.job())
    (job,) = bench.claim(bench.register())
    note(bench, job, 1, 2, 3)
    return job


def note(bench, job, *numbers):
    now = bench.clock()
    lines = tuple(LogLine(number, now, "a stone", '{"n":1}') for number in numbers)
    told = Note(
        job_id=job.id, attempt=job.attempt, progress=Progress(0.5, "half", now), lines=lines
    )
    (said,) = bench.store.perform_sync(TakeNotes(worker=job.worker, notes=(told,)))
    return said.answer


def read_log(bench, job, **more):
    return bench.store.perform_sync(ReadLog(job.id, **more))


WRONG_PROGRESS = ["'soon'", "'[1]'", '\'{"attempt":"x"}\'', "7", "x'00'", NO_TEXT]


@pytest.mark.parametrize("wrong", WRONG_PROGRESS)
def test_progress_that_cannot_be_read_is_flagged_and_replaced_by_the_next_word(
    bench, alter, noted, wrong
):
    alter(f"UPDATE tidemill_jobs SET progress = {wrong}")
    record = bench.get(noted.id).record
    assert (record.progress, record.unreadable) == (None, ("progress",))
    (listed,) = bench.store.perform_sync(ListJobs()).jobs
    assert listed == record
    assert note(bench, noted) is Answer.APPLIED
    assert bench.get(noted.id).record.unreadable == ()


def test_a_job_whose_progress_cannot_be_read_ends_as_any_other(bench, alter, noted):
    alter("UPDATE tidemill_jobs SET progress = 'soon'")
    (said,) = bench.report(noted.worker, outcome(noted, output=b"7"))
    assert (said.answer, said.state) == (Answer.APPLIED, JobState.SUCCEEDED)


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ("message = x'00ff'", {"message": "b'\\x00\\xff'"}),
        (f"message = {NO_TEXT}", {}),
        ("fields = 7", {"fields": "7"}),
        ("at = 'noon'", {}),
    ],
)
def test_a_line_that_cannot_be_read_is_shown_among_the_others(bench, alter, noted, wrong, shown):
    alter(f"UPDATE tidemill_log_lines SET {wrong} WHERE number = 2")
    lines = read_log(bench, noted).lines
    assert [line.number for line in lines] == [1, 2, 3]
    assert {name: getattr(lines[1], name) for name in shown} == shown
    assert bench.get(noted.id).log == lines


@pytest.mark.parametrize("text", ["'{bad'", "'[1]'", "'7'", "''"])
def test_fields_that_are_no_object_are_kept_as_text(bench, alter, noted, text):
    alter(f"UPDATE tidemill_log_lines SET fields = {text} WHERE number = 2")
    line = read_log(bench, noted).lines[1]
    assert (line.fields, line.values) == (text.strip("'"), {})


@pytest.mark.parametrize("wrong", ["attempt = 'many'", "number = 'last'", "number = x'07'"])
def test_a_line_without_a_place_keeps_no_page_from_its_end(bench, alter, noted, wrong):
    alter(f"UPDATE tidemill_log_lines SET {wrong} WHERE number = 3")
    page, seen = read_log(bench, noted, limit=1), []
    while page.next_cursor is not None and len(seen) < 9:
        seen += page.lines
        page = read_log(bench, noted, limit=1, cursor=page.next_cursor)
    seen += page.lines
    assert len(seen) == 3


@pytest.mark.parametrize("mark", ["'{bad'", "'7'", '\'{"tags":[],"children":[{}]}\'', "x'00'"])
def test_a_mark_that_cannot_be_read_is_told_and_settled_without(bench, alter, noted, mark, caplog):
    child = bench.job()
    bench.store.perform_sync(
        Complete(
            job_id=noted.id,
            attempt=noted.attempt,
            worker=noted.worker,
            tags=frozenset({Tag("fine")}),
            children=(child,),
        )
    )
    alter(f"UPDATE tidemill_jobs SET unsettled = {mark}")
    assert bench.maintain().settled == 1
    assert "cannot be read, and is not done" in caplog.text
    *_, kept = read_log(bench, noted).lines
    assert "cannot be read, and was not done" in kept.message
    assert kept.fields in {mark.strip("'"), "b'\\x00'"}
    assert str(noted.id) in caplog.text
    done = bench.get(noted.id)
    assert (done.record.unsettled, done.tags) == (False, frozenset())
    assert bench.get(child.id) is None
