"""Why a job is in its terminal state: the words kept in its `cause` (clause B2)."""

from __future__ import annotations

from typing import Final

ATTEMPTS_EXHAUSTED: Final = "attempts-exhausted"
DISCARDED: Final = "discarded"
NOT_RETRYABLE: Final = "not-retryable"
POISON: Final = "poison"
EXPIRED: Final = "expired"
NO_HANDLER: Final = "no-handler"
PAYLOAD: Final = "payload"
UNREADABLE: Final = "unreadable"


def operator(actor: str) -> str:
    """The cause of a state that a person or tool asked for."""
    return f"operator:{actor}"
