"""Whose calls come first: a worker's own never wait behind those of its handlers."""

from __future__ import annotations

from typing import Any

from tidemill.store.contract import Operation
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain


def is_workers_own(operation: Operation[Any]) -> bool:
    """Whether a worker performs it for itself: reporting, claiming and upkeep."""
    return isinstance(operation, Exchange | Maintain)
