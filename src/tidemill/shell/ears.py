"""What a worker hears from a handler while that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemill.shell.notepad import Notepad


def _hear_nothing(*_: object) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Ears:
    """How a worker hears; both are called from any thread.

    Attributes:
        begin_completion: the handler is about to write its success in a transaction of its own.
        note: something was written on the attempt's empty notepad.
    """

    begin_completion: Callable[[], None] = _hear_nothing
    note: Callable[[Notepad], None] = _hear_nothing


DEAF = Ears()
