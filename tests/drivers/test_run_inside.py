"""Running a course in somebody else's transaction: nothing begins, nothing ends, errors come in."""

import asyncio

import pytest

from tidemill.drivers.run_inside import Say, StepFailed, run_inside, run_inside_async
from tidemill.sql.program import COMMIT, Batch, Statement, follow_up


class Recording:
    """A connection that writes down what it is told, and may refuse one step."""

    def __init__(self, refuses=None, error=None):
        self.log, self.refuses, self.error = [], refuses, error

    def step(self, act):
        name = act.sql if isinstance(act, Say) else act.name
        self.log.append(name)
        if name == self.refuses:
            raise self.error or ValueError(name)
        return [{"name": name}]


class Awaited(Recording):
    """The same, awaited."""

    async def step(self, act):
        return super().step(act)


def plain(course, recording):
    return run_inside(course, recording)


def awaited(course, recording):
    steps = Awaited(recording.refuses, recording.error)
    steps.log = recording.log
    return asyncio.run(run_inside_async(course, steps))


@pytest.fixture(params=[plain, awaited])
def run(request):
    return request.param


def two_steps():
    one = yield Statement("one")
    two = yield Batch("two", [{}])
    return one[0]["name"], two[0]["name"]


def test_a_course_is_sent_its_rows_and_its_value_is_answered(run):
    recording = Recording()
    assert run(two_steps(), recording) == ("one", "two")
    assert recording.log == ["one", "two"]


def test_a_course_without_a_step_touches_nothing(run):
    def none():
        return 7
        yield

    recording = Recording()
    assert run(none(), recording) == 7
    assert recording.log == []


def test_an_error_is_raised_in_the_course_which_may_undo_before_it_passes(run):
    def careful():
        yield Say("mark")
        try:
            yield from two_steps()
        except StepFailed:
            yield Say("undo")
            raise

    recording = Recording(refuses="two")
    with pytest.raises(ValueError, match="two"):
        run(careful(), recording)
    assert recording.log == ["mark", "one", "two", "undo"]


def test_an_error_in_undoing_is_raised_there_too(run):
    def careful():
        try:
            yield Statement("one")
        except StepFailed:
            try:
                yield Say("undo")
            except StepFailed:
                return "both failed"

    class Twice(Recording):
        def step(self, act):
            super().step(act)
            raise (KeyError if isinstance(act, Say) else ValueError)(act)

    assert run_inside(careful(), Twice()) == "both failed"


def test_the_error_that_passes_is_the_databases_own_with_its_cause(run):
    cause, error = KeyError("below"), ValueError("one")
    error.__cause__ = cause
    with pytest.raises(ValueError, match="one") as raised:
        run(two_steps(), Recording(refuses="one", error=error))
    assert raised.value is error
    assert raised.value.__cause__ is cause


def test_an_error_of_the_course_itself_is_no_failed_step(run):
    def faulty():
        try:
            yield Statement("one")
            raise LookupError
        except StepFailed:
            pytest.fail("the step did not fail")

    with pytest.raises(LookupError):
        run(faulty(), Recording())


def test_a_cancelled_caller_is_no_failed_step_and_may_be_undone():
    undone = []

    def careful():
        try:
            yield Statement("one")
        except asyncio.CancelledError:
            yield Say("undo")
            undone.append(True)
            raise

    recording = Awaited(refuses="one", error=asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_inside_async(careful(), recording))
    assert (recording.log, undone) == (["one", "undo"], [True])


def commits():
    yield COMMIT


def is_followed():
    yield from follow_up(two_steps, None, "x")


@pytest.mark.parametrize("ends", [commits, is_followed])
def test_a_program_that_commits_is_refused(run, ends):
    recording = Recording()
    with pytest.raises(TypeError, match="somebody else's"):
        run(ends(), recording)
    assert recording.log == []
