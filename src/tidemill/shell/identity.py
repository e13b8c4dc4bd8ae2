"""Minting ids: UUIDv7, monotone within a process (clauses A2, A3)."""

from __future__ import annotations

import os
import secrets
import time
from threading import Lock
from uuid import UUID

from tidemill.values.ids import uuid7

_NS_PER_MS = 1_000_000
_ENTROPY_BITS = 74
_HEADROOM_BITS = 73
_STEP_BITS = 32


class Mint:
    """Makes ids of which each is greater than the one before.

    Within one millisecond, and whenever the clock is set back, the id before is counted on by a
    random step (RFC 9562, section 6.2, method 2). The counter starts with its highest bit clear,
    so that it does not overflow within a millisecond.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._ms = 0
        self._entropy = 0

    def new(self, unix_ms: int) -> UUID:
        """The next id, for an instant in milliseconds since 1970."""
        with self._lock:
            if unix_ms > self._ms:
                self._ms = unix_ms
                self._entropy = secrets.randbits(_HEADROOM_BITS)
            else:
                self._entropy += 1 + secrets.randbits(_STEP_BITS)
                if self._entropy >> _ENTROPY_BITS:
                    self._ms += 1
                    self._entropy = secrets.randbits(_HEADROOM_BITS)
            return uuid7(self._ms, self._entropy)


_mint = Mint()


def _after_fork() -> None:
    """A lock that another thread held at the fork would stay locked in the child for ever."""
    global _mint  # noqa: PLW0603 - one mint for each process
    _mint = Mint()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def new_id() -> UUID:
    """A fresh UUIDv7, greater than every one this process minted before.

    Safe from any thread. A forked child draws new random steps, so it never repeats its parent.
    """
    return _mint.new(time.time_ns() // _NS_PER_MS)
