"""What attempts have said and the store may not have yet: when it is sent, and what rides along.

Notes travel by themselves, one journey at a time and an interval apart, so that they neither
hurry nor delay an exchange. Whatever no answer has confirmed when an attempt ends goes with its
outcome: a line may be sent twice, and is stored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tidemill.core.events import NotesAnswered, NotesFailed
from tidemill.core.holdings import Key
from tidemill.values.ids import WorkerId
from tidemill.values.notes import LogLine, Note, Progress
from tidemill.values.outcomes import Answer, Outcome, Reported
from tidemill.values.workers import Pair

LINES_AT_ONCE: Final = 1_000
"""The most lines that travel together, but for those of one attempt."""

_DOUBLINGS: Final = 30
_NEVER: Final = float("inf")


@dataclass(slots=True)
class Page:
    """What one attempt has said, as far as no answer has confirmed that it is stored.

    Attributes:
        news: whether there is something that was never sent.
        closed: the store takes no more notes of it; what it says goes with its outcome.
    """

    lines: list[LogLine] = field(default_factory=list[LogLine])
    progress: Progress | None = None
    news: bool = False
    closed: bool = False

    def note(self, pair: Pair) -> Note:
        """All of it, to be sent."""
        job_id, attempt = pair
        return Note(job_id=job_id, attempt=attempt, progress=self.progress, lines=tuple(self.lines))

    def stored(self, note: Note) -> None:
        """The store has this."""
        sent = {line.number for line in note.lines}
        self.lines = [line for line in self.lines if line.number not in sent]
        if self.progress is note.progress:
            self.progress = None


@dataclass(slots=True)
class Notebook:
    """The pages of the attempts that run, and the instant of the next journey, in seconds."""

    interval: float
    first_delay: float
    longest_delay: float
    due_at: float = 0.0
    faults: int = 0
    _pages: dict[Key, Page] = field(default_factory=dict[Key, Page])
    _sent: tuple[WorkerId, tuple[Note, ...]] | None = None

    def write(self, key: Key, progress: Progress | None, lines: Sequence[LogLine]) -> None:
        """An attempt has said something."""
        if progress is None and not lines:
            return
        page = self._pages.setdefault(key, Page())
        page.lines += lines
        page.progress = progress or page.progress
        page.news = True

    def close(self, key: Key) -> None:
        """What this attempt says from now on goes with its outcome alone."""
        self._pages.setdefault(key, Page()).closed = True

    def tear_out(self, key: Key) -> Page:
        """An attempt has ended: answer what the store may not have of it."""
        return self._pages.pop(key, None) or Page()

    def load(self, at: float, worker: WorkerId | None) -> tuple[Note, ...]:
        """What is to be sent now; it is then on its way."""
        if worker is None or self._sent is not None or at < self.due_at:
            return ()
        notes = self._gather(worker)
        if notes:
            self._sent = (worker, notes)
        return notes

    def next_at(self, worker: WorkerId | None) -> float:
        """When there is something to be sent; infinity while there is not."""
        if self._sent is not None or not any(self._waiting(worker)):
            return _NEVER
        return self.due_at

    def hear(self, at: float, event: NotesAnswered | NotesFailed) -> None:
        """The journey is over."""
        assert self._sent is not None, "an answer to notes that were not sent"
        (worker, notes), self._sent = self._sent, None
        if isinstance(event, NotesAnswered):
            self._answered(at, worker, zip(notes, event.answers, strict=True))
        else:
            self._failed(at, worker, notes, refused=event.refused)

    def _answered(
        self, at: float, worker: WorkerId, answered: Iterable[tuple[Note, Reported]]
    ) -> None:
        """What was busy is sent again; what was rejected waits for the end of its attempt."""
        self.faults = 0
        self.due_at = at + self.interval
        for note, said in answered:
            page = self._pages.get((worker, Pair(note.job_id, note.attempt)))
            if page is None:
                continue
            if said.answer is Answer.APPLIED:
                page.stored(note)
            elif said.answer is Answer.BUSY:
                page.news = True
            else:
                page.closed = True

    def _failed(
        self, at: float, worker: WorkerId, notes: tuple[Note, ...], *, refused: bool
    ) -> None:
        """There was no answer, or the request itself was refused, which no repeat will mend."""
        self.faults += 1
        wait = min(self.first_delay * 2.0 ** min(self.faults, _DOUBLINGS), self.longest_delay)
        self.due_at = at + max(wait, self.interval)
        for note in notes:
            page = self._pages.get((worker, Pair(note.job_id, note.attempt)))
            if page is not None:
                page.news, page.closed = True, page.closed or refused

    def _waiting(self, worker: WorkerId | None) -> list[tuple[Pair, Page]]:
        return [
            (pair, page)
            for (owner, pair), page in self._pages.items()
            if owner == worker and page.news and not page.closed
        ]

    def _gather(self, worker: WorkerId) -> tuple[Note, ...]:
        notes: list[Note] = []
        room = LINES_AT_ONCE
        for pair, page in self._waiting(worker):
            if notes and len(page.lines) > room:
                break
            room -= len(page.lines)
            page.news = False
            notes.append(page.note(pair))
        return tuple(notes)


def with_last_words(outcome: Outcome, page: Page) -> Outcome:
    """The outcome with what the store may not have yet of what its attempt said."""
    if page.progress is None and not page.lines:
        return outcome
    return replace(outcome, progress=page.progress, lines=tuple(page.lines))
