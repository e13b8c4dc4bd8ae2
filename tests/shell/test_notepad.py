"""The notepad of an attempt: what is said on it is taken once, in order, until it is closed."""

import gc
import os
import signal
import threading
from datetime import UTC, datetime

import pytest

from tidemill.shell.notepad import Notepad, Said
from tidemill.values.notes import LogLine, Progress

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Pad:
    """A notepad, and how often it asked to be taken."""

    def __init__(self):
        self.asked = 0
        self.notepad = Notepad(self._asks)
        self.refuses = False

    def _asks(self, notepad):
        assert notepad is self.notepad
        if self.refuses:
            raise RecursionError
        self.asked += 1

    def log(self, message):
        line = LogLine(self.notepad.next_number(), AT, message)
        self.notepad.put(None, (line,))


@pytest.fixture
def pad():
    return Pad()


def word(fraction):
    return Progress(fraction, "", AT)


def told(said):
    return [(line.number, line.message) for line in said.lines]


def test_lines_are_numbered_from_one_and_go_on_after_they_were_taken(pad):
    pad.log("a")
    pad.log("b")
    assert told(pad.notepad.take()) == [(1, "a"), (2, "b")]
    pad.log("c")
    assert told(pad.notepad.take()) == [(3, "c")]
    assert not pad.notepad.take().anything


def test_the_last_word_of_progress_is_the_one_that_counts(pad):
    pad.notepad.put(word(0.1))
    pad.notepad.put(word(0.2))
    assert pad.notepad.take() == Said(word(0.2))
    pad.log("a")
    assert pad.notepad.take().progress is None


def test_it_asks_to_be_taken_once_until_it_is(pad):
    pad.log("a")
    pad.notepad.put(word(0.1))
    assert pad.asked == 1
    pad.notepad.take()
    pad.log("b")
    assert pad.asked == 2


def test_what_was_said_in_another_process_is_put_as_it_is(pad):
    pad.notepad.put(word(0.5), (LogLine(7, AT, "there"),))
    assert pad.notepad.take() == Said(word(0.5), (LogLine(7, AT, "there"),))


def test_closing_takes_what_is_left_and_nothing_is_heard_afterwards(pad):
    pad.log("a")
    assert told(pad.notepad.close()) == [(1, "a")]
    pad.log("b")
    pad.notepad.put(word(1.0))
    assert not pad.notepad.take().anything
    assert pad.asked == 1


def test_a_word_that_could_not_be_told_of_is_told_of_by_the_next_one(pad):
    """A handler may speak at the end of its stack, and survive that."""
    pad.refuses = True
    with pytest.raises(RecursionError):
        pad.log("deep")
    pad.refuses = False
    pad.log("shallow")
    assert pad.asked == 1
    assert told(pad.notepad.take()) == [(1, "deep"), (2, "shallow")]


def test_threads_lose_no_line_and_share_no_number(pad):
    threads, each = 8, 500
    start, over = threading.Barrier(threads + 1), threading.Event()
    taken = []

    def speak():
        start.wait()
        for number in range(each):
            pad.log(f"line {number}")

    def take():
        while not over.is_set():
            taken.extend(pad.notepad.take().lines)

    speakers = [threading.Thread(target=speak) for _ in range(threads)]
    taker = threading.Thread(target=take, daemon=True)
    for thread in (*speakers, taker):
        thread.start()
    start.wait()
    for thread in speakers:
        thread.join()
    over.set()
    taker.join()
    taken.extend(pad.notepad.close().lines)
    assert sorted(line.number for line in taken) == list(range(1, threads * each + 1))


def test_a_signal_handler_may_speak_while_the_handler_does(pad):
    """It runs between any two instructions of whoever speaks, on the same thread."""
    spoken = 0

    def speak(_number, _frame):
        nonlocal spoken
        spoken += 1
        pad.log("signal")
        pad.notepad.put(word(0.5))

    before = signal.signal(signal.SIGALRM, speak)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        said = 0
        while spoken < 50:
            pad.log("handler")
            said += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    numbers = sorted(line.number for line in pad.notepad.take().lines)
    assert numbers == list(range(1, said + spoken + 1))


def test_a_destructor_may_speak_while_the_handler_does(pad):
    class Speaks:
        def __init__(self):
            self.me = self

        def __del__(self):
            pad.log("destructor")

    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for _ in range(300):
            Speaks()
            pad.log("handler")
    finally:
        gc.set_threshold(*threshold)
        gc.collect()
    numbers = sorted(line.number for line in pad.notepad.take().lines)
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == 600


def test_a_forked_child_may_speak_whatever_others_were_doing(pad):
    over = threading.Event()

    def speak():
        while not over.is_set():
            pad.log("thread")
            pad.notepad.take()

    thread = threading.Thread(target=speak)
    thread.start()
    codes = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # one that hangs is ended
            pad.log("child")
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    over.set()
    thread.join()
    assert set(codes) == {0}
