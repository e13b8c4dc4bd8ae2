"""Identities. A type each, so that a checker tells a worker from a job."""

from __future__ import annotations

from typing import NewType
from uuid import UUID

JobId = NewType("JobId", UUID)
WorkerId = NewType("WorkerId", UUID)
ActionId = NewType("ActionId", UUID)
Attempt = NewType("Attempt", int)

_RANDOM_BITS = 74


def uuid7(unix_ms: int, entropy: int) -> UUID:
    """Lay out a version 7 UUID (RFC 9562, section 5.7).

    Args:
        unix_ms: milliseconds since 1970 (48 bits are kept).
        entropy: random bits; the low 74 are kept.

    Byte order is time order, which keeps primary keys clustered by creation.
    """
    random = entropy & ((1 << _RANDOM_BITS) - 1)
    value = (unix_ms & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76
    value |= (random >> 62) << 64
    value |= 0b10 << 62
    value |= random & 0x3FFF_FFFF_FFFF_FFFF
    return UUID(int=value)
