"""Held jobs: for whom they are released (clause J3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

UNHELD_AT_ONCE: Final = 10_000
"""The most held jobs that a registration releases; rounds of upkeep release the rest."""


def known_by(workers: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """The wire names that any of these workers knows; None, every name, if one of them does."""
    known: set[str] = set()
    for names in workers:
        if names is None:
            return None
        known |= names
    return frozenset(known)
