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

    Raises:
        ValueError: the text does not read as a policy that can be followed.
    """
    if stored is None:
        return DEFAULT_RETRY
    try:
        return _decoder.decode(stored)
    except (msgspec.MsgspecError, TidemillError, TypeError, RecursionError) as error:
        message = f"the retry policy {stored!r:.80} cannot be read: {error}"
        raise ValueError(message) from error
