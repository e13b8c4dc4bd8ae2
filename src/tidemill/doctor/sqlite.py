"""What an SQLite file tells: durability, its size and its log's, and who keeps others waiting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from tidemill.doctor.words import lasting, size
from tidemill.values.doctor import DatabaseHealth, Finding, Result, SessionHealth, Unwritable

LARGE_LOG: Final = 256_000_000
"""Bytes of write-ahead log: it is emptied after about 4 MB where no reader stands in the way."""
LARGE_HOLE: Final = 100_000_000
LITTLE_ROOM: Final = (1_000_000_000, 100_000_000)
"""Bytes left on the disk: a warning, and a problem."""
LATELY: Final = timedelta(hours=1)


def judge_sqlite(health: DatabaseHealth) -> list[Finding]:
    """Findings about an SQLite file."""
    return [
        _durability(health.settings),
        *_file(health.settings),
        *_write_lock(health.sessions, health.unwritable, health.now),
    ]


def _durability(settings: Mapping[str, str]) -> Finding:
    mode = settings["journal_mode"]
    if mode != "wal":
        return Finding(
            "durability",
            Result.PROBLEM,
            f"The journal mode is {mode}: readers and writers block each other.",
            "Something changed it after Tidemill had set it: find out what. The next worker that "
            "starts sets WAL again.",
        )
    if settings["synchronous"] == "FULL":
        return Finding("durability", Result.OK, "WAL, synchronous=FULL: a power cut loses nothing.")
    return Finding(
        "durability",
        Result.OK,
        "WAL, synchronous=NORMAL: a power cut may undo the last commits; ?synchronous=FULL in the "
        "URL closes that window.",
    )


def _file(settings: Mapping[str, str]) -> list[Finding]:
    whole, log = int(settings["file_bytes"]), int(settings["wal_bytes"])
    free = int(settings["disk_free_bytes"])
    hole = int(settings["freelist_count"]) * int(settings["page_size"])
    findings: list[Finding] = []
    if free < LITTLE_ROOM[0]:
        findings.append(
            Finding(
                "file",
                Result.PROBLEM if free < LITTLE_ROOM[1] else Result.WARNING,
                f"Only {size(free)} are left on the disk.",
                "Make room: on a full disk nothing can be enqueued or recorded.",
            )
        )
    if log > LARGE_LOG:
        findings.append(
            Finding(
                "file",
                Result.WARNING,
                f"The write-ahead log has grown to {size(log)}.",
                "Some process keeps a read transaction open, so that the log cannot be emptied: "
                "find and end it. Reads get slower until then.",
            )
        )
    if hole > max(LARGE_HOLE, whole // 2):
        findings.append(
            Finding(
                "file",
                Result.WARNING,
                f"{size(hole)} of the file's {size(whole)} are empty.",
                "They are used again as jobs come. VACUUM gives them back to the disk, and blocks "
                "every worker while it runs.",
            )
        )
    return findings or [
        Finding("file", Result.OK, f"{size(whole)}, {size(log)} of log, {size(free)} left on disk.")
    ]


def _write_lock(
    writers: tuple[SessionHealth, ...], noted: Unwritable | None, now: datetime
) -> list[Finding]:
    if writers:
        return [_held(writer) for writer in writers]
    if noted is not None and now - noted.until < LATELY:
        return [
            Finding(
                "write lock",
                Result.WARNING,
                f"Somebody waited {lasting(noted.waited)} to write, until "
                f"{lasting(now - noted.until)} ago.",
                "Find the write transaction that was open for so long and make it shorter: while "
                "one is open, nobody can enqueue, claim or report.",
            )
        ]
    return [Finding("write lock", Result.OK, "Nobody keeps the write lock for long.")]


def _held(writer: SessionHealth) -> Finding:
    name = f" ({writer.application})" if writer.application else ""
    who = f"Process {writer.pid}{name}" if writer.pid else "A process"
    return Finding(
        "write lock",
        Result.PROBLEM,
        f"{who} has held the write lock for at least {lasting(writer.open_for)}.",
        "While its transaction is open nobody can enqueue, claim, report or renew a lease. Have "
        "it commit, or end the process.",
    )
