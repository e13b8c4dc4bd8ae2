"""What a handler says of its attempt while it runs, kept until its worker takes it (clause D2).

Nothing here takes a lock: a signal handler, a destructor or a forked child may speak while somebody
else does, and must neither wait nor be waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from tidemill.values.notes import LogLine, Progress


@dataclass(frozen=True, slots=True)
class Said:
    """What was said since it was last taken."""

    progress: Progress | None = None
    lines: tuple[LogLine, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether anything was said at all."""
        return self.progress is not None or bool(self.lines)


NOTHING = Said()


class Notepad:
    """One attempt's. Written and read from any thread.

    Args:
        note: called with the pad when there is something to take and nobody was told yet, by
            whoever writes.
    """

    __slots__ = ("_asked", "_closed", "_lines", "_note", "_numbers", "_progress")

    def __init__(self, note: Callable[[Notepad], None]) -> None:
        self._note = note
        self._progress: deque[Progress] = deque(maxlen=1)
        self._lines: deque[LogLine] = deque()
        self._numbers = count(1)
        self._asked = False
        self._closed = False

    def next_number(self) -> int:
        """The number of a line that is about to be put, from 1."""
        return next(self._numbers)

    def put(self, progress: Progress | None, lines: Sequence[LogLine] = ()) -> None:
        """Replace the word of progress, and add lines. After the end nothing is heard."""
        if self._closed:
            return
        if progress is not None:
            self._progress.append(progress)
        self._lines.extend(lines)
        if not self._asked:
            self._ask()

    def take(self) -> Said:
        """What was said since this was last asked."""
        self._asked = False  # first: what is put from now on asks again
        if not self._progress and not self._lines:
            return NOTHING
        progress = self._progress.pop() if self._progress else None
        return Said(progress, tuple(self._pop_lines()))

    def close(self) -> Said:
        """The same, at the end of the attempt."""
        self._closed = True
        return self.take()

    def _ask(self) -> None:
        self._asked = True
        try:
            self._note(self)
        except BaseException:  # such as the end of the stack: the next word asks again
            self._asked = False
            raise

    def _pop_lines(self) -> list[LogLine]:
        lines: list[LogLine] = []
        while self._lines:
            lines.append(self._lines.popleft())
        return lines
