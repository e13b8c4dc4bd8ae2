"""Running a program: when transactions open, end, and are undone."""

import pytest

from tidemill.drivers.run import run
from tidemill.sql.program import COMMIT, Batch, Statement


class Recording:
    """An executor that writes down what it is told, and may refuse a statement."""

    def __init__(self, refuses=None):
        self.log, self.open, self.refuses = [], False, refuses

    @property
    def in_transaction(self):
        return self.open

    def begin(self, *, write):
        self.open = True
        self.log.append("begin write" if write else "begin read")

    def step(self, step):
        self.log.append(step.name)
        if step.name == self.refuses:
            raise ValueError(step.name)
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
