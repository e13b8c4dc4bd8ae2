"""What the demonstration shows while it runs: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_TENTHS = 10


class Screen(Protocol):
    """Told what happens, in sentences, and how many jobs have succeeded."""

    def say(self, sentence: str) -> None:
        """Something happened."""
        ...

    def show(self, succeeded: int) -> None:
        """The number of jobs that have succeeded so far."""
        ...


@contextmanager
def screen(total: int) -> Generator[Screen]:
    """The screen that fits where the output goes; `total` is the number of jobs."""
    if not sys.stdout.isatty():
        yield PlainScreen(total)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", justify="right"),
    )
    with Progress(*columns) as progress:
        yield LiveScreen(progress, progress.add_task("Verifying", total=total, rate=""))


class PlainScreen:
    """A line for every event, and for every tenth of the work."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._tenth = 0
        self._start = monotonic()

    def say(self, sentence: str) -> None:
        click.echo(f"{monotonic() - self._start:5.1f} s  {sentence}")

    def show(self, succeeded: int) -> None:
        tenth = _TENTHS * succeeded // self._total
        if tenth > self._tenth:
            self._tenth = tenth
            self.say(f"{succeeded:,} of {self._total:,} jobs succeeded.")


class LiveScreen:
    """A bar that stays at the bottom, the events above it."""

    def __init__(self, progress: Progress, bar: TaskID) -> None:
        self._progress = progress
        self._bar = bar
        self._start = monotonic()

    def say(self, sentence: str) -> None:
        at = f"{monotonic() - self._start:5.1f} s  "
        self._progress.console.print(at + sentence, markup=False, highlight=False)

    def show(self, succeeded: int) -> None:
        rate = succeeded / max(monotonic() - self._start, 0.001)
        self._progress.update(self._bar, completed=succeeded, rate=f"{rate:,.0f}/s")
