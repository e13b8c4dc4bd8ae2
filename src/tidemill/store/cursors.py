"""Opaque page cursors: the id of the last job shown, in URL-safe text."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from uuid import UUID

from tidemill.errors import InvalidValue
from tidemill.values.ids import JobId

_ID_BYTES = 16


def cursor_after(job_id: JobId) -> str:
    """The cursor that continues after this job."""
    return urlsafe_b64encode(job_id.bytes).decode().rstrip("=")


def read_cursor(cursor: str) -> JobId:
    """The job that a cursor continues after.

    Raises:
        InvalidValue: it is not a cursor.
    """
    try:
        raw = urlsafe_b64decode(cursor + "==")
    except (BadBase64, ValueError, TypeError) as error:
        raise _bad(cursor) from error
    if len(raw) != _ID_BYTES:
        raise _bad(cursor)
    return JobId(UUID(bytes=raw))


def _bad(cursor: str) -> InvalidValue:
    return InvalidValue(
        f"{cursor!r:.42} is not a page cursor; start from the first page, without a cursor."
    )
