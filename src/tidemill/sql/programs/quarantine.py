"""Quarantine: jobs whose rows cannot be read end in a clear state with a clear reason (P15)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tidemill.core.storable import storable_text
from tidemill.core.transitions import By, check
from tidemill.sql.program import Batch, Program, Row
from tidemill.sql.programs.env import Env
from tidemill.sql.reading import NOBODY, id_of, shown
from tidemill.values import causes
from tidemill.values.ids import WorkerId
from tidemill.values.outcomes import Verdict
from tidemill.values.states import JobState

_log = logging.getLogger("tidemill.store")

UNREADABLE_JOB: Final = "tidemill.UnreadableJob"
_LARGE: Final = "payload"


@dataclass(frozen=True, slots=True)
class Broken:
    """A row that cannot be read, as it is stored, and what its last attempt is to say of it.

    Attributes:
        columns: the names of those that cannot be read.
        attempt: the number of the attempt that ends with it; None leaves what is stored.
    """

    row: Row
    columns: tuple[str, ...]
    attempt: int | None
    worker: WorkerId | None
    verdict: Verdict
    started_at: datetime | None


def quarantine(env: Env, broken: Sequence[Broken], now: datetime) -> Program[None]:
    """End each, with a record of the columns that cannot be read. Ids are as the driver gave them.

    Whatever is wrong with a row is left as it is, to be looked at and mended.
    """
    check(JobState.RUNNING, JobState.QUARANTINED, By.UNROUTABLE)
    if not broken:
        return
    yield Batch("quarantine_job", [_ended(each, now) for each in broken])
    yield Batch("insert_attempt", [_recorded(env, each, now) for each in broken])
    kept = env.bounds.attempts_kept
    ids = [{"job_id": each.row["id"], "stale": False, "kept": kept} for each in broken]
    yield Batch("prune_attempts", ids)
    for each in broken:
        columns = ", ".join(each.columns)
        _log.error(
            "Job %s is quarantined: its %s cannot be read.", id_of(env.dialect, each.row), columns
        )


def _ended(each: Broken, now: datetime) -> dict[str, object]:
    stored = each.row["attempt"] if each.attempt is None else each.attempt
    return {
        "id": each.row["id"],
        "attempt": stored,
        "cause": causes.UNREADABLE,
        "finished_at": now,
    }


def _recorded(env: Env, each: Broken, now: datetime) -> dict[str, object]:
    return {
        "job_id": each.row["id"],
        "attempt": each.attempt or 0,
        "worker": each.worker or NOBODY,
        "verdict": each.verdict,
        "stale": False,
        "started_at": each.started_at,
        "ended_at": now,
        "holder_worker": None,
        "holder_attempt": None,
        "holder_state": None,
        "error_kind": UNREADABLE_JOB,
        "error_message": storable_text(_why(each), env.bounds.error_message_bytes),
        "error_detail": None,
    }


def _why(each: Broken) -> str:
    found = [
        name if name == _LARGE else f"{name} = {shown(each.row[name])}" for name in each.columns
    ]
    return (
        f"The row of this job cannot be read: {'; '.join(found)}. Something other than Tidemill "
        "has changed it, or the database is damaged. Mend it by SQL and requeue the job."
    )
