"""The notepad of an attempt: what is said on it is taken once, in order, until it is closed."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from tidemill.shell.notepad import Notepad, Said
from tidemill.values.notes import LogLine, Progress

AT = datetime(2026, 1, 1, tzinfo=UTC)
MOST = 500


class Pad:
    """A notepad, and how often it asked to be taken."""

    def __init__(self) -> None:
        self.asked = 0
        self.notepad = Notepad(self._asks)

    def _asks(self, notepad: Notepad) -> None:
        assert notepad is self.notepad
        self.asked += 1

    def log(self, message: str, most: int = MOST, at: datetime = AT) -> None:
        self.notepad.log(LogLine(1, at, message), most)


@pytest.fixture
def pad() -> Pad:
    return Pad()


def word(fraction: float) -> Progress:
    return Progress(fraction, "", AT)


def told(said: Said) -> list[tuple[int, str]]:
    return [(line.number, line.message) for line in said.lines]


def test_lines_are_numbered_from_one_and_go_on_after_they_were_taken(pad: Pad) -> None:
    pad.log("a")
    pad.log("b")
    assert told(pad.notepad.take()) == [(1, "a"), (2, "b")]
    pad.log("c")
    assert told(pad.notepad.take()) == [(3, "c")]
    assert not pad.notepad.take().anything


def test_the_last_word_of_progress_is_the_one_that_counts(pad: Pad) -> None:
    pad.notepad.say(word(0.1))
    pad.notepad.say(word(0.2))
    assert pad.notepad.take() == Said(word(0.2))
    pad.log("a")
    assert pad.notepad.take().progress is None


def test_it_asks_to_be_taken_once_until_it_is(pad: Pad) -> None:
    pad.log("a")
    pad.notepad.say(word(0.1))
    pad.log("b")
    assert pad.asked == 1
    pad.notepad.take()
    pad.notepad.say(word(0.2))
    pad.log("c")
    assert pad.asked == 2


def test_of_lines_over_their_number_the_last_one_says_how_many_are_missing(pad: Pad) -> None:
    for number in range(MOST + 3):
        pad.log(str(number), at=AT + timedelta(seconds=number))
    assert told(pad.notepad.take()) == [(number + 1, str(number)) for number in range(MOST)]
    (last,) = pad.notepad.close().lines
    assert (last.number, last.at) == (MOST + 1, AT + timedelta(seconds=MOST + 2))
    assert last.message == "… 3 more lines were not kept: an attempt keeps 500."


def test_as_many_lines_as_are_kept_leave_no_word_on_missing_ones(pad: Pad) -> None:
    for number in range(MOST):
        pad.log(str(number))
    assert len(pad.notepad.close().lines) == MOST


def test_closing_takes_what_is_left_and_nothing_is_heard_afterwards(pad: Pad) -> None:
    pad.log("a")
    pad.notepad.say(word(0.5))
    assert pad.notepad.close() == Said(word(0.5), (LogLine(1, AT, "a"),))
    pad.log("b")
    pad.notepad.say(word(0.6))
    pad.notepad.put(word(0.7), (LogLine(2, AT, "c"),))
    assert pad.asked == 1
    assert not pad.notepad.take().anything
    assert not pad.notepad.close().anything


def test_what_was_said_in_another_process_keeps_its_numbers(pad: Pad) -> None:
    pad.notepad.put(None, (LogLine(1, AT, "a"), LogLine(2, AT, "b")))
    pad.notepad.put(word(0.5), (LogLine(501, AT, "… more"),))
    assert pad.asked == 1
    assert told(pad.notepad.take()) == [(1, "a"), (2, "b"), (501, "… more")]
    pad.notepad.put(None, ())
    assert not pad.notepad.close().anything


def test_threads_lose_no_line_and_share_no_number(pad: Pad) -> None:
    taken: list[LogLine] = []
    together = threading.Barrier(5)

    def write(name: str) -> None:
        together.wait()
        for number in range(100):
            pad.log(f"{name}{number}")

    def take() -> None:
        together.wait()
        while len(taken) < 400:
            taken.extend(pad.notepad.take().lines)

    threads = [threading.Thread(target=write, args=[name]) for name in "abcd"]
    threads.append(threading.Thread(target=take))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line.number for line in taken] == list(range(1, 401))
    for name in "abcd":
        own = [line.message for line in taken if line.message.startswith(name)]
        assert own == [f"{name}{number}" for number in range(100)]
