"""What a handler's context has to tell the worker that runs it."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.shell.completion import Completion
from tidemill.shell.leaving import Leaving
from tidemill.shell.notepad import Notepad


@dataclass(slots=True)
class AttemptTalk:
    """One attempt's ways of saying something.

    Attributes:
        completion: the success that it writes in a transaction of its own.
        leaving: the jobs that it leaves to be stored with its success.
        notepad: its progress and its log.
    """

    completion: Completion
    leaving: Leaving
    notepad: Notepad
