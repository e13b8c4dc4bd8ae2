"""A part of a transaction that may fail by itself: then it is undone, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from tidemill.errors import Refused, StoreUnavailable
from tidemill.sql.program import Program, Statement

T = TypeVar("T")

BRIEFLY: Final = "100ms"
"""How long a part waits for a lock that somebody else holds, in PostgreSQL's spelling."""

Failure = StoreUnavailable | Refused


def tentatively(
    make: Callable[[], Program[T]],
    otherwise: Callable[[Failure], T],
    *,
    wait: str = BRIEFLY,
) -> Program[T]:
    """Run a program as a part of this transaction; if it fails, undo it and answer `otherwise`.

    Args:
        make: makes the program, which neither commits nor has follow-ups.
        otherwise: what to answer to the failure; it may raise it, which undoes the transaction.
        wait: how long each lock is waited for meanwhile.

    Raises:
        StoreUnavailable: the part could not even be undone.
    """
    yield Statement("begin_part")
    try:
        rows = yield Statement("shorten_waits", {"wait": wait})
        answer = yield from make()
        yield Statement("restore_waits", {"before": rows[0]["before"]})
    except (StoreUnavailable, Refused) as failure:
        yield Statement("undo_part")
        yield Statement("keep_part")  # with nothing in it
        return otherwise(failure)
    yield Statement("keep_part")
    return answer
