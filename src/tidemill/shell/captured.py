"""An exception as text: what a failed attempt leaves behind."""

from __future__ import annotations

import traceback

from tidemill.values.outcomes import ErrorInfo
from tidemill.values.retry import exception_name

_FRAMES = 50


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
        lines = traceback.format_exception(error, limit=-_FRAMES)
    except BaseException as failure:  # noqa: BLE001 - a user's exception may do anything
        return f"<the traceback could not be made: {type(failure).__name__}>"
    return "".join(lines)
