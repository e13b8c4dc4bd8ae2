"""What a handler's process says, and in which order."""

from datetime import UTC, datetime
from threading import Thread

from tidemill.shell.handler_main import Mouth
from tidemill.shell.handler_talk import Ended, Noted
from tidemill.shell.notepad import Said
from tidemill.values.endings import Returned
from tidemill.values.notes import Progress

SAID = Said(Progress(0.5, "half", datetime(2026, 1, 1, tzinfo=UTC)))


class Link:
    """The worker's end: what was sent, in order."""

    def __init__(self):
        self.sent = []

    def send(self, word):
        self.sent.append(word)


def test_nothing_is_sent_between_taking_a_word_and_sending_it() -> None:
    """A word that was taken before the end of its attempt is not sent after it."""
    link = Link()
    mouth = Mouth(link)
    ending = Thread(target=lambda: mouth.say(Ended(Returned())))

    def take():
        ending.start()
        ending.join(0.05)  # it would have been done long before
        return SAID

    mouth.say_what(take)
    ending.join()
    assert link.sent == [Noted(SAID), Ended(Returned())]


def test_nothing_is_sent_of_a_notepad_that_is_empty() -> None:
    link = Link()
    Mouth(link).say_what(Said)
    assert link.sent == []
