"""Opaque page cursors: what was shown last, in URL-safe text."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from uuid import UUID

from tidemill.errors import InvalidValue
from tidemill.values.ids import Attempt, JobId

_ID_BYTES = 16
_LINE = struct.Struct(">cQQ")
_KIND = b"L"
"""What tells a line's cursor from a job's."""
_COUNTS = range(1 << 63)


def cursor_after(job_id: JobId) -> str:
    """The cursor that continues after this job."""
    return _write(job_id.bytes)


def read_cursor(cursor: str) -> JobId:
    """The job that a cursor continues after.

    Raises:
        InvalidValue: it is not a cursor.
    """
    return JobId(UUID(bytes=_read(cursor, _ID_BYTES)))


def cursor_after_line(attempt: Attempt, number: int) -> str:
    """The cursor that continues after this line of a job's log."""
    return _write(_LINE.pack(_KIND, attempt, number))


def read_line_cursor(cursor: str) -> tuple[Attempt, int]:
    """The line that a cursor continues after: its attempt and its number there.

    Raises:
        InvalidValue: it is not a cursor.
    """
    kind, attempt, number = _LINE.unpack(_read(cursor, _LINE.size))
    if kind != _KIND or attempt not in _COUNTS or number not in _COUNTS:
        raise _bad(cursor)
    return Attempt(attempt), number


def _write(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _read(cursor: str, size: int) -> bytes:
    try:
        raw = urlsafe_b64decode(cursor + "==")
    except (BadBase64, ValueError, TypeError) as error:
        raise _bad(cursor) from error
    if len(raw) != size:
        raise _bad(cursor)
    return raw


def _bad(cursor: str) -> InvalidValue:
    return InvalidValue(
        f"{cursor!r:.42} is not a page cursor; start from the first page, without a cursor."
    )
