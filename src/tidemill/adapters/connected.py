"""What every store on connections of our own does in the same words, whatever the database.

It opens nothing before its first operation, then once in a process; it ends what it opened when it
is closed or nobody holds it any more; and in a forked child it leaves alone what the parent opened.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from tidemill.adapters.hints import Hints
from tidemill.errors import StoreError
from tidemill.sql.catalogue import Catalogue, substitute
from tidemill.sql.migrations import Migration
from tidemill.sql.programs.env import Env
from tidemill.values.bounds import Bounds


class Site(Protocol):
    """What all connections of one store share."""

    @property
    def catalogue(self) -> Catalogue:
        """Its statements."""
        ...

    @property
    def env(self) -> Env:
        """What its programs are given."""
        ...

    @property
    def hints(self) -> Hints:
        """Whom to wake."""
        ...


class Open(Protocol):
    """What one process has open. It holds no reference to the store, which may so be forgotten."""

    def stop(self) -> None:
        """Close it all, in the process that opened it; elsewhere do nothing."""
        ...


S = TypeVar("S", bound=Site)
T = TypeVar("T", bound=Open)


class ConnectedStore(Generic[S, T]):
    """The part of a store that is about its connections being there.

    Args:
        site: what they share.
        opening: opens what one process needs.
    """

    def __init__(self, site: S, opening: Callable[[S], T]) -> None:
        self._site = site
        self._opening = opening
        self._lock = Lock()
        self._opened: T | None = None
        self._closed = False
        _stores.add(self)

    @property
    def bounds(self) -> Bounds:
        return self._site.env.bounds

    def close(self) -> None:
        with self._lock:
            opened, self._opened = self._opened, None
            self._closed = True
        if opened is not None:
            opened.stop()

    def forget_parent(self) -> None:
        """In a forked child: leave the parent's connections alone, and open others when needed."""
        self._lock = Lock()
        self._opened = None
        self._site.hints.forget()

    def _open(self) -> T:
        with self._lock:
            if self._closed:
                message = "The store was closed; make a new one."
                raise StoreError(message)
            if self._opened is None:
                self._opened = self._opening(self._site)
                weakref.finalize(self, self._opened.stop)
            return self._opened

    def _shown(self, steps: tuple[Migration, ...]) -> tuple[tuple[str, str], ...]:
        """Steps of a migration by their names and texts, as this database gets them."""
        fragments = self._site.catalogue.dialect.fragments
        return tuple((step.name, substitute(step.text, fragments)) for step in steps)


_stores: weakref.WeakSet[ConnectedStore[Any, Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for store in tuple(_stores):
        store.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
