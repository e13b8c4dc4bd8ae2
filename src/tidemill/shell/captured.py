"""An exception as text: what a failed attempt leaves behind."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

from tidemill.values.outcomes import ErrorInfo
from tidemill.values.retry import exception_name

_FRAMES = 50
_OUR_ROOM = str(Path(__file__).parent)


def captured(error: BaseException) -> ErrorInfo:
    """The error as data. Never raises, whatever the exception does in its own `__str__`."""
    kind = type(error)
    ancestry = tuple(exception_name(ancestor) for ancestor in kind.__mro__[:-1])
    return ErrorInfo(exception_name(kind), _message(error), _detail(error), ancestry)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as failure:  # noqa: BLE001 - a user's __str__ may do anything
        return f"<the message could not be made: {type(failure).__name__}>"


def _detail(error: BaseException) -> str:
    try:
        kind, trace = type(error), _from_the_handler_on(error.__traceback__)
        lines = traceback.format_exception(kind, error, trace, limit=-_FRAMES)
    except BaseException as failure:  # noqa: BLE001 - a user's exception may do anything
        return f"<the traceback could not be made: {type(failure).__name__}>"
    return "".join(lines)


def _from_the_handler_on(trace: TracebackType | None) -> TracebackType | None:
    """The trace without the frames that led to the handler; whole if the handler is not in it."""
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_OUR_ROOM):
        rest = rest.tb_next
    return trace if rest is None else rest
