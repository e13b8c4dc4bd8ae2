"""The host's clock, for the stores that have none of their own."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The host's time: aware, UTC."""
    return datetime.now(UTC)
