"""A fork waits until no thread of ours is inside SQLite.

SQLite guards what all connections of a process share by locks of the process. A thread that holds
one while another thread forks leaves it locked in the child for ever, where every connection, the
child's own ones too, would then hang or be busy. So calls on our own connections are counted, a
fork waits for those under way, and holds further ones up until it is done. Connections of the
application's own are its own affair.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from threading import Condition, local
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_WAIT: Final = 1.0
"""Seconds that a fork waits. A call that takes longer waits itself, for the file's lock or for the
disk, and holds none of the process's locks meanwhile."""


class _Depth(local):
    """How deep the present thread is inside calls."""

    calls = 0


class Gate:
    """Lets calls in while nobody forks."""

    def __init__(self, longest_wait: float = LONGEST_WAIT) -> None:
        self._longest_wait = longest_wait
        self._changed = Condition()
        self._inside = 0
        self._forks = 0
        self._depth = _Depth()

    def __enter__(self) -> None:
        if self._depth.calls == 0:  # a call within a call was let in already
            with self._changed:
                while self._forks:
                    self._changed.wait()
                self._inside += 1
        self._depth.calls += 1

    def __exit__(self, *_: object) -> None:
        self._depth.calls -= 1
        if self._depth.calls == 0:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait for the calls under way, and let no other one in."""
        own = 1 if self._depth.calls else 0
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: self._inside == own, self._longest_wait)

    def after_fork_in_parent(self) -> None:
        """Let calls in again."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Only the thread that has forked is here."""
        self._changed = Condition()
        self._inside = 1 if self._depth.calls else 0
        self._forks = 0


gate: Final = Gate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=gate.before_fork,
        after_in_parent=gate.after_fork_in_parent,
        after_in_child=gate.after_fork_in_child,
    )


def calls_sqlite(function: Callable[P, R]) -> Callable[P, R]:
    """A function that calls SQLite: no fork happens within it."""

    @wraps(function)
    def counted(*args: P.args, **kwargs: P.kwargs) -> R:
        with gate:
            return function(*args, **kwargs)

    return counted
