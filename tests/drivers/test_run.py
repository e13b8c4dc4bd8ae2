"""Running a program: when transactions open, end, and are undone."""

import asyncio

import pytest

from tidemill.drivers.run import run, run_async
from tidemill.errors import AnswerLost, InvalidValue, StoreUnavailable
from tidemill.sql.program import COMMIT, Batch, Statement, follow_up


class Recording:
    """An executor that writes down what it is told, and may refuse a statement some times."""

    def __init__(self, refuses=None, error=ValueError, times=1):
        self.log, self.open = [], False
        self.refuses, self.error, self.times = refuses, error, times

    @property
    def in_transaction(self):
        return self.open

    def begin(self, *, write):
        self.open = True
        self.log.append("begin write" if write else "begin read")

    def step(self, step):
        self.log.append(step.name)
        if step.name == self.refuses and self.times:
            self.times -= 1
            raise self.error(step.name)
        return [{"name": step.name}]

    def commit(self):
        self.open = False
        self.log.append("commit")

    def rollback(self):
        self.open = False
        self.log.append("rollback")


def two_steps():
    one = yield Statement("one")
    two = yield Batch("two", [{}])
    return one[0]["name"], two[0]["name"]


def test_a_program_is_sent_its_rows_and_its_value_is_answered():
    executor = Recording()
    assert run(two_steps(), executor, write=True) == ("one", "two")
    assert executor.log == ["begin write", "one", "two", "commit"]


def test_reading_takes_no_write_lock():
    executor = Recording()
    run(two_steps(), executor, write=False)
    assert executor.log[0] == "begin read"


def test_what_follows_a_commit_is_in_a_transaction_of_its_own():
    def program():
        yield Statement("one")
        yield COMMIT
        yield Statement("two")

    executor = Recording()
    run(program(), executor, write=True)
    assert executor.log == ["begin write", "one", "commit", "begin write", "two", "commit"]


def test_a_commit_with_nothing_after_it_opens_nothing():
    def program():
        yield Statement("one")
        yield COMMIT
        yield COMMIT

    executor = Recording()
    run(program(), executor, write=True)
    assert executor.log == ["begin write", "one", "commit"]


def test_a_program_that_refuses_at_sight_touches_nothing():
    def program():
        if True:
            raise KeyError
        yield Statement("one")

    executor = Recording()
    with pytest.raises(KeyError):
        run(program(), executor, write=True)
    assert executor.log == ["rollback"]
    assert "begin write" not in executor.log


def test_an_error_of_the_database_rolls_back_and_passes():
    executor = Recording(refuses="two")
    with pytest.raises(ValueError, match="two"):
        run(two_steps(), executor, write=True)
    assert executor.log == ["begin write", "one", "two", "rollback"]


def twice(do):
    try:
        return do()
    except StoreUnavailable:
        return do()


def one():
    rows = yield Statement("one")
    return rows[0]["name"]


def following():
    first = yield from one()
    rows = yield Batch("two", [{}])
    assert rows
    second = yield from follow_up(one, "nothing", "What follows")
    return first, second


def after_a_commit():
    yield Statement("one")
    yield COMMIT
    yield Statement("two")


def test_a_follow_up_runs_after_the_commit_in_a_transaction_of_its_own():
    executor = Recording()
    assert run(following(), executor, write=True) == ("one", "one")
    assert executor.log == [
        "begin write", "one", "two", "commit", "begin write", "one", "commit",
    ]  # fmt: skip


def test_a_follow_up_of_a_read_only_reads():
    executor = Recording()
    run(following(), executor, write=False)
    assert executor.log.count("begin read") == 2


class FailsLate(Recording):
    """An executor that refuses whatever comes after its first commit, some times."""

    def step(self, step):
        late = "commit" in self.log
        answer = super().step(step)
        if late and self.times:
            self.times -= 1
            raise self.error(step.name)
        return answer


def test_a_follow_up_that_was_busy_is_tried_again_alone():
    executor = FailsLate(error=StoreUnavailable)
    assert run(following(), executor, write=True, patiently=twice) == ("one", "one")
    assert executor.log == [
        "begin write", "one", "two", "commit",
        "begin write", "one", "rollback", "begin write", "one", "commit",
    ]  # fmt: skip


@pytest.mark.parametrize("error", [StoreUnavailable, InvalidValue, ValueError, KeyError])
def test_a_follow_up_that_fails_for_good_is_logged_and_takes_back_no_answer(error, caplog):
    executor = FailsLate(error=error, times=2)
    assert run(following(), executor, write=True, patiently=twice) == ("one", "nothing")
    assert "What follows could not be written" in caplog.text
    assert not executor.in_transaction


def test_a_process_that_dies_in_a_follow_up_dies():
    with pytest.raises(KeyboardInterrupt):
        run(following(), FailsLate(error=KeyboardInterrupt), write=True)


def test_a_program_goes_on_after_its_follow_up_in_a_new_transaction():
    def program():
        yield from follow_up(one, "nothing", "It")
        return (yield from one())

    executor = Recording()
    assert run(program(), executor, write=True) == "one"
    assert executor.log == ["begin write", "one", "commit", "begin write", "one", "commit"]


@pytest.mark.parametrize("error", [StoreUnavailable, InvalidValue])
def test_a_fault_after_a_commit_never_says_that_nothing_was_committed(error):
    executor = Recording(refuses="two", error=error)
    with pytest.raises(AnswerLost, match="part of this was committed"):
        run(after_a_commit(), executor, write=True)
    assert executor.log[-1] == "rollback"


@pytest.mark.parametrize("error", [StoreUnavailable, InvalidValue])
def test_a_fault_before_any_commit_is_told_as_it_is(error):
    with pytest.raises(error):
        run(after_a_commit(), Recording(refuses="one", error=error), write=True)


class Awaited:
    """The same executor, awaited."""

    def __init__(self, inner):
        self.inner = inner

    async def begin(self, *, write):
        self.inner.begin(write=write)

    async def step(self, step):
        return self.inner.step(step)

    async def commit(self):
        self.inner.commit()

    async def rollback(self):
        self.inner.rollback()


async def twice_async(do):
    try:
        return await do()
    except StoreUnavailable:
        return await do()


def run_awaited(program, executor):
    coming = run_async(program, Awaited(executor), write=True, patiently=twice_async)
    return asyncio.run(coming)


def test_awaited_a_follow_up_that_was_busy_is_tried_again_alone():
    executor = FailsLate(error=StoreUnavailable)
    assert run_awaited(following(), executor) == ("one", "one")
    assert executor.log == [
        "begin write", "one", "two", "commit",
        "begin write", "one", "rollback", "begin write", "one", "commit",
    ]  # fmt: skip


def test_awaited_a_follow_up_that_fails_for_good_is_logged_and_takes_back_no_answer(caplog):
    assert run_awaited(following(), FailsLate(error=ValueError)) == ("one", "nothing")
    assert "What follows could not be written" in caplog.text


@pytest.mark.parametrize("error", [StoreUnavailable, InvalidValue])
def test_awaited_a_fault_after_a_commit_never_says_that_nothing_was_committed(error):
    executor = Recording(refuses="two", error=error)
    with pytest.raises(AnswerLost, match="part of this was committed"):
        run_awaited(after_a_commit(), executor)
    assert executor.log[-1] == "rollback"


@pytest.mark.parametrize("error", [StoreUnavailable, InvalidValue])
def test_awaited_a_fault_before_any_commit_is_told_as_it_is(error):
    with pytest.raises(error):
        run_awaited(after_a_commit(), Recording(refuses="one", error=error))
