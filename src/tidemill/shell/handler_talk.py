"""What a worker and one of its handler processes say to each other.

Both ends run the same version and trust each other, so the words travel pickled, over a pair of
sockets that nobody else can open. Payload and output stay the bytes that the store keeps.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from logging import LogRecord, makeLogRecord
from threading import Event
from typing import Any, Final, Self

from tidemill.shell.definitions import ContextFactory, Definitions
from tidemill.shell.notepad import Said
from tidemill.shell.scope import Scopes
from tidemill.values.endings import CancelReason, Ending
from tidemill.values.jobs import Claimed
from tidemill.values.outcomes import ErrorInfo
from tidemill.values.workers import Pair

inside = Event()
"""Set in a handler process, and nowhere else."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a handler process runs attempts with."""

    definitions: Definitions
    context_factory: ContextFactory
    scopes: Scopes | None = None


Load = Callable[[], Found]
"""Finds the jobs again, in a handler process; it is pickled by the name of its function."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first word to a handler process.

    Attributes:
        load: finds the jobs; what it raises is told with `NotReady`.
        argv: the arguments that the worker's program was started with.
        levels: the levels of the worker's loggers, by name; the root's is the empty name.
    """

    load: Load
    argv: tuple[str, ...]
    levels: dict[str, int]


@dataclass(frozen=True, slots=True)
class Do:
    """Run this attempt. `now` is the store's time at the instant `at` of the node's clock."""

    job: Claimed
    now: datetime
    at: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Have this attempt stop, if it still runs."""

    pair: Pair
    reason: CancelReason


@dataclass(frozen=True, slots=True)
class NotReady:
    """The jobs could not be found; the process ends."""

    error: ErrorInfo


@dataclass(frozen=True, slots=True)
class Begun:
    """The attempt was taken: from here on its end is its own."""


@dataclass(frozen=True, slots=True)
class Completing:
    """The handler is about to write its success in a transaction of its own."""


@dataclass(frozen=True, slots=True)
class Noted:
    """The handler said something of its attempt."""

    said: Said


@dataclass(frozen=True, slots=True)
class Ended:
    """How the attempt ended."""

    ending: Ending


_PLAIN: Final = (
    *("name", "levelno", "levelname", "msg", "created", "msecs", "relativeCreated"),
    *("pathname", "filename", "module", "lineno", "funcName"),
    *("process", "processName", "thread", "threadName"),
)


@dataclass(frozen=True, slots=True)
class Logged:
    """A log record, to be handled by the worker's loggers.

    Attributes:
        whole: the record, pickled by itself: what a user has attached to it may not survive that,
            and must not make this word unreadable.
        plain: its text and place, which always do.
    """

    whole: bytes
    plain: dict[str, Any]

    @classmethod
    def of(cls, record: LogRecord) -> Self:
        """The word for a record whose text is made."""
        plain = {name: getattr(record, name, None) for name in _PLAIN}
        try:
            return cls(pickle.dumps(record), plain)
        except Exception:  # noqa: BLE001 - a user's object may do anything when it is pickled
            return cls(b"", plain)

    def record(self) -> LogRecord:
        """The record, without what was attached to it if that cannot be read."""
        try:
            record = pickle.loads(self.whole)  # noqa: S301 - both ends trust each other
        except Exception:  # noqa: BLE001 - nor when it is unpickled
            return makeLogRecord(self.plain)
        return record if isinstance(record, LogRecord) else makeLogRecord(self.plain)


Reply = NotReady | Begun | Completing | Noted | Ended | Logged
