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
"""The most lines that travel together. Attempts take turns, and progress takes no room."""

_DOUBLINGS: Final = 30
_NEVER: Final = float("inf")


@dataclass(slots=True)
class Page:
    """What one attempt has said, as far as no answer has confirmed that it is stored.

    Attributes:
        closed: the store takes no more notes of it; what it says goes with its outcome.
        alone: its last note was refused among others, so the next one goes without them.
    """

    lines: list[LogLine] = field(default_factory=list[LogLine])
    progress: Progress | None = None
    closed: bool = False
    alone: bool = False

    def note(self, pair: Pair, room: int) -> Note:
        """What is to be sent: the word of progress, and the first lines for which there is room."""
        job_id, attempt = pair
        lines = tuple(self.lines[:room])
        return Note(job_id=job_id, attempt=attempt, progress=self.progress, lines=lines)

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
    _news: dict[Key, Page] = field(default_factory=dict[Key, Page])
    """The pages on which something waits to be sent, those that waited longest first."""
    _sent: tuple[WorkerId, tuple[Note, ...]] | None = None

    def write(self, key: Key, progress: Progress | None, lines: Sequence[LogLine]) -> None:
        """An attempt has said something."""
        if progress is None and not lines:
            return
        page = self._pages.setdefault(key, Page())
        page.lines += lines
        page.progress = progress or page.progress
        if not page.closed:
            self._news[key] = page

    def close(self, key: Key) -> None:
        """What this attempt says from now on goes with its outcome alone."""
        self._pages.setdefault(key, Page()).closed = True
        self._news.pop(key, None)

    def tear_out(self, key: Key) -> Page | None:
        """An attempt has ended: answer what the store may not have of it, if it said anything."""
        page = self._pages.pop(key, None)
        if page is not None:
            self._news.pop(key, None)
        return page

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
        if self._sent is not None or not any(owner == worker for owner, _ in self._news):
            return _NEVER
        return self.due_at

    def hear(self, at: float, event: NotesAnswered | NotesFailed) -> None:
        """The journey is over."""
        assert self._sent is not None, "an answer to notes that were not sent"
        (worker, notes), self._sent = self._sent, None
        if isinstance(event, NotesAnswered):
            self._answered(at, worker, zip(notes, event.answers, strict=True))
        elif event.refused:
            self._refused(at, worker, notes)
        else:
            self._failed(at, worker, notes)

    def _answered(
        self, at: float, worker: WorkerId, answered: Iterable[tuple[Note, Reported]]
    ) -> None:
        """What was busy is sent again; what was rejected waits for the end of its attempt."""
        self.faults = 0
        for note, said in answered:
            key, page = self._page_of(worker, note)
            if page is None:
                continue
            page.alone = False
            if said.answer is Answer.APPLIED:
                page.stored(note)
            elif said.answer is not Answer.BUSY:
                self.close(key)
            self._send_rest(key, page)
        self._pace(at)

    def _failed(self, at: float, worker: WorkerId, notes: tuple[Note, ...]) -> None:
        """There was no answer: all of it is sent again, ever less often."""
        wait = min(self.first_delay * 2.0 ** min(self.faults, _DOUBLINGS), self.longest_delay)
        self.faults += 1
        self.due_at = at + max(wait, self.interval)
        for note in notes:
            key, page = self._page_of(worker, note)
            if page is not None:
                self._send_rest(key, page)

    def _refused(self, at: float, worker: WorkerId, notes: tuple[Note, ...]) -> None:
        """The store refuses one of them: each is sent alone, and not again if it is that one."""
        for note in notes:
            key, page = self._page_of(worker, note)
            if page is None:
                continue
            page.alone = True
            if len(notes) == 1:
                self.close(key)
            self._send_rest(key, page)
        self._pace(at)

    def _pace(self, at: float) -> None:
        """An interval between journeys, but for those that are made one by one."""
        singly = any(page.alone for page in self._news.values())
        self.due_at = at if singly else at + self.interval

    def _page_of(self, worker: WorkerId, note: Note) -> tuple[Key, Page | None]:
        key = (worker, Pair(note.job_id, note.attempt))
        return key, self._pages.get(key)

    def _send_rest(self, key: Key, page: Page) -> None:
        """What waits on this page is sent after what waits already."""
        if not page.closed and (page.lines or page.progress is not None):
            self._news.setdefault(key, page)

    def _gather(self, worker: WorkerId) -> tuple[Note, ...]:
        notes: list[Note] = []
        room = LINES_AT_ONCE
        for key, page in tuple(self._news.items()):
            if key[0] != worker:
                continue
            if page.alone and notes:
                continue
            note = page.note(key[1], room)
            if note.progress is None and not note.lines:
                continue
            room -= len(note.lines)
            notes.append(note)
            del self._news[key]
            if page.alone:
                break
        return tuple(notes)


def with_last_words(outcome: Outcome, page: Page | None) -> Outcome:
    """The outcome with what the store may not have yet of what its attempt said."""
    if page is None or (page.progress is None and not page.lines):
        return outcome
    return replace(outcome, progress=page.progress, lines=tuple(page.lines))
