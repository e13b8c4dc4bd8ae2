"""The retry policy as compact JSON text; the default policy is NULL and costs nothing."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from tidemill.errors import TidemillError
from tidemill.values.retry import DEFAULT_RETRY, Retry

_decoder = msgspec.json.Decoder(Retry)


@lru_cache(maxsize=512)
def encode_retry(retry: Retry) -> str | None:
    """The stored text of a policy."""
    return None if retry == DEFAULT_RETRY else msgspec.json.encode(retry).decode()


@lru_cache(maxsize=512)
def decode_retry(stored: str | None) -> Retry:
    """The policy of a stored text.

    A text that no longer reads stands for the default policy: one bad row must not stop the sweep
    from reaching the others (clause C6).
    """
    if stored is None:
        return DEFAULT_RETRY
    try:
        return _decoder.decode(stored)
    except (msgspec.MsgspecError, TidemillError, TypeError):
        return DEFAULT_RETRY
