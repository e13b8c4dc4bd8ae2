"""How a worker hears that it is to end: from signals alone, or from its supervisor."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from tests.waiting import until

from tidemill.shell.signals import (
    END,
    HURRY,
    EndedEarly,
    ended_early,
    hear_signals,
    hear_supervisor,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are a POSIX matter")


class Recorder:
    """Stands for a worker, and keeps what it is asked."""

    def __init__(self):
        self.asked = []

    @property
    def ending(self):
        return bool(self.asked)

    def asked_to_end(self, why=""):
        self.asked.append(f"end {why}".strip())

    def asked_to_hurry(self):
        self.asked.append("hurry")


@pytest.fixture
def actions():
    """Put back what signals do."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield before
    for number, action in before.items():
        signal.signal(number, action)


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for end in ends:
        os.close(end)


NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def sent(number):
    """Send a signal to this process, and let the loop hear it."""
    os.kill(os.getpid(), number)
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("number", NUMBERS)
async def test_the_first_signal_ends_and_the_second_hurries(actions, number):
    worker = Recorder()
    with hear_signals(worker):
        await sent(number)
        await sent(signal.SIGTERM)
    assert worker.asked == ["end", "hurry"]
    assert {each: signal.getsignal(each) for each in NUMBERS} == actions


async def test_a_process_that_ends_with_its_worker_is_deaf_from_then_on(actions):
    with hear_signals(Recorder(), deaf_afterwards=True):
        pass
    assert {signal.getsignal(number) for number in NUMBERS} == {signal.SIG_IGN}


def test_a_child_that_is_forked_before_a_worker_hears_obeys_signals_as_any_process(actions):
    with ended_early():
        child = os.fork()
        if child == 0:
            os._exit(sum(signal.getsignal(number) != actions[number] for number in NUMBERS))
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_ends_a_process_in_order_whose_worker_has_not_started(actions, number):
    with ended_early() as unless_told:
        unless_told()
        with pytest.raises(EndedEarly) as told:
            os.kill(os.getpid(), number)
        assert told.value.code == 0
        with pytest.raises(EndedEarly):
            unless_told()
    assert {each: signal.getsignal(each) for each in NUMBERS} == actions


async def test_a_worker_hears_the_signals_that_ended_its_process_before(actions):
    worker = Recorder()
    with ended_early(), hear_signals(worker, deaf_afterwards=True):
        await sent(signal.SIGTERM)
    assert worker.asked == ["end"]
    assert {signal.getsignal(number) for number in NUMBERS} == {signal.SIG_IGN}


async def test_what_was_started_by_nohup_stays_when_its_terminal_goes(actions):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    worker = Recorder()
    with hear_signals(worker):
        await sent(signal.SIGHUP)
        assert worker.asked == []
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


async def test_signals_never_hurry_a_supervised_worker_but_orders_do(actions, pipe):
    worker = Recorder()
    with hear_supervisor(worker, orders=pipe[0]):
        os.write(pipe[1], END)
        await until(lambda: worker.asked == ["end"])
        for number in NUMBERS:
            await sent(number)
        os.write(pipe[1], HURRY)
        await until(lambda: len(worker.asked) > 1)
    assert worker.asked == ["end", "hurry"]


async def test_a_signal_ends_a_supervised_worker_and_its_supervisor_may_say_so_too(actions, pipe):
    worker = Recorder()
    with hear_supervisor(worker, orders=pipe[0]):
        await sent(signal.SIGTERM)
        os.write(pipe[1], END + HURRY)
        await until(lambda: len(worker.asked) > 1)
    assert worker.asked == ["end", "hurry"]


async def test_a_worker_ends_when_its_supervisor_is_gone(actions):
    read, write = os.pipe()
    worker = Recorder()
    with hear_supervisor(worker, orders=read):
        os.close(write)
        await until(lambda: worker.asked)
        for _ in range(3):
            await asyncio.sleep(0)
    os.close(read)
    assert worker.asked == ["end because the supervisor is gone"]
