"""A fork waits for calls under way, holds up further ones, and waits for nobody for ever."""

import threading

import pytest
from tests.waiting import wait_until

from tidemill.adapters.sqlite_forks import Gate, calls_sqlite, gate


@pytest.fixture
def door():
    return Gate(longest_wait=60)


def in_thread(call):
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_a_fork_waits_until_nobody_is_inside(door):
    inside, leave, forked = threading.Event(), threading.Event(), threading.Event()

    def call():
        with door:
            inside.set()
            leave.wait()

    calling = in_thread(call)
    inside.wait()
    forking = in_thread(lambda: (door.before_fork(), forked.set()))
    wait_until(lambda: door._forks == 1)
    assert not forked.is_set()
    leave.set()
    assert forked.wait(60)
    calling.join()
    forking.join()


def test_a_call_waits_until_the_fork_is_over(door):
    door.before_fork()
    entered = threading.Event()

    def call():
        with door:
            entered.set()

    calling = in_thread(call)
    wait_until(lambda: len(door._changed._waiters) == 1)
    assert not entered.is_set()
    door.after_fork_in_parent()
    assert entered.wait(60)
    calling.join()


def test_a_call_that_is_under_way_may_call_again_while_a_fork_waits(door):
    forked = threading.Event()
    with door:
        forking = in_thread(lambda: (door.before_fork(), forked.set()))
        wait_until(lambda: door._forks == 1)
        with door:
            assert not forked.is_set()
    assert forked.wait(60)
    forking.join()


def test_a_call_that_forks_does_not_wait_for_itself(door):
    with door:
        door.before_fork()
        door.after_fork_in_parent()
    assert door._inside == 0


def test_a_fork_waits_no_longer_than_it_may():
    door = Gate(longest_wait=0)
    with door:
        forking = in_thread(door.before_fork)
        forking.join(60)
        assert not forking.is_alive()


def test_a_child_has_a_gate_that_nobody_stands_in(door):
    with door:
        forking = in_thread(door.after_fork_in_child)
        forking.join()
        assert (door._inside, door._forks) == (0, 0)
        door._inside = 1


def test_what_calls_sqlite_is_counted_and_answers_as_before():
    @calls_sqlite
    def count(more: int) -> int:
        """Say so."""
        return gate._inside + more

    assert count(1) == 2
    assert (gate._inside, count.__doc__) == (0, "Say so.")
