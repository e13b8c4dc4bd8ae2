"""What a handler says of its attempt while it runs, kept until its worker takes it (clause D2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock

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


@dataclass(slots=True)
class _Kept:
    progress: Progress | None = None
    lines: list[LogLine] = field(default_factory=list[LogLine])


class Notepad:
    """One attempt's. Written and read from any thread.

    Args:
        note: called with the pad when something is written on an empty one, by whoever writes.
    """

    __slots__ = ("_closed", "_kept", "_last", "_lock", "_note", "_numbers", "_over")

    def __init__(self, note: Callable[[Notepad], None]) -> None:
        self._note = note
        self._lock = Lock()
        self._kept: _Kept | None = None
        self._numbers = 0
        self._over = 0
        self._last: tuple[datetime, int] | None = None
        self._closed = False

    def say(self, progress: Progress) -> None:
        """Replace the word of progress."""
        self.put(progress, ())

    def log(self, line: LogLine, most: int) -> None:
        """Add a line, under the next number; over `most` of them it is only counted."""
        with self._lock:
            if self._closed:
                return
            if self._numbers >= most:
                self._over += 1
                self._last = (line.at, most)
                return
            self._numbers += 1
            news = self._keep(None, (replace(line, number=self._numbers),))
        if news:
            self._note(self)

    def put(self, progress: Progress | None, lines: Sequence[LogLine]) -> None:
        """Write down what was said elsewhere, in the handler's own process."""
        with self._lock:
            news = not self._closed and self._keep(progress, lines)
        if news:
            self._note(self)

    def take(self) -> Said:
        """What was said since this was last asked."""
        with self._lock:
            return self._take()

    def close(self) -> Said:
        """The same, at the end of the attempt: what comes after it is not heard.

        The last line says how many were left out, if any were.
        """
        with self._lock:
            self._closed = True
            if self._last is not None:
                at, most = self._last
                message = f"… {self._over:,} more lines were not kept: an attempt keeps {most:,}."
                self._keep(None, (LogLine(most + 1, at, message),))
                self._last = None
            return self._take()

    def _keep(self, progress: Progress | None, lines: Sequence[LogLine]) -> bool:
        """Write on the pad, and answer whether it was empty."""
        empty = self._kept is None
        kept = self._kept = self._kept or _Kept()
        kept.progress = progress or kept.progress
        kept.lines += lines
        return empty

    def _take(self) -> Said:
        kept, self._kept = self._kept, None
        return Said() if kept is None else Said(kept.progress, tuple(kept.lines))
