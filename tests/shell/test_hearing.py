"""Hearing what handlers say: together, a moment later, and on the loop's thread."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from tidemill.shell.hearing import Hearing
from tidemill.shell.notepad import Notepad
from tidemill.shell.speaking import Speaker
from tidemill.values.notes import LogLine

pytestmark = pytest.mark.anyio
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Heard:
    """Notepads that are heard, and what was on them, by name and in order."""

    def __init__(self):
        self.said = []
        self.threads = set()
        self.event = asyncio.Event()
        self.hearing = Hearing(asyncio.get_running_loop())

    def pad(self, name):
        def hear(said):
            self.said.append((name, [line.number for line in said.lines]))
            self.threads.add(threading.get_ident())
            self.event.set()

        return Notepad(lambda pad: self.hearing.note(pad, hear))

    async def hear(self, count):
        async with asyncio.timeout(30):
            while len(self.said) < count:
                await self.event.wait()
                self.event.clear()


def log(pad):
    pad.put(None, (LogLine(pad.next_number(), AT, "a stone"),))


async def test_what_several_say_is_heard_together_on_the_loops_thread() -> None:
    heard = Heard()
    first, second = heard.pad("first"), heard.pad("second")

    def speak():
        for _ in range(3):
            log(first)
            log(second)

    await asyncio.to_thread(speak)
    await heard.hear(2)
    assert heard.said == [("first", [1, 2, 3]), ("second", [1, 2, 3])]
    assert heard.threads == {threading.get_ident()}


async def test_what_is_said_after_it_was_heard_is_heard_again() -> None:
    heard = Heard()
    pad = heard.pad("pad")
    for number in (1, 2, 3):
        log(pad)
        await heard.hear(number)
    assert heard.said == [("pad", [1]), ("pad", [2]), ("pad", [3])]


def test_a_word_said_at_the_end_of_the_stack_silences_nobody() -> None:
    """What the loop could not be told of, it is told of with the next word, whoever says it."""

    class Loop:
        calls = 0

        def call_soon_threadsafe(self, _call):
            self.calls += 1
            if self.calls == 1:
                raise RecursionError

    loop: Any = Loop()
    hearing = Hearing(loop)
    deep, other = (Notepad(lambda pad: hearing.note(pad, lambda _: None)) for _ in range(2))
    with pytest.raises(RecursionError):
        log(deep)
    log(other)
    assert loop.calls == 2


def test_nobody_is_told_when_the_loop_has_closed() -> None:
    async def make():
        return Heard()

    heard = asyncio.run(make())
    log(heard.pad("pad"))
    assert heard.said == []


async def test_a_process_passes_on_what_is_said_while_its_main_thread_computes() -> None:
    sent, done = [], threading.Event()

    def send(notepad):
        sent.append([line.number for line in notepad.take().lines])
        done.set()

    speaker = Speaker(send)
    pad = Notepad(speaker.note)
    log(pad)
    log(pad)
    assert done.wait(30)  # this thread, the main one, does nothing else
    assert sent == [[1, 2]]
    speaker.close()
