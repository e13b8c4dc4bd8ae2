"""Jobs that ended dead or quarantined."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tidemill.doctor.words import SHOWN, counted, lasting, listed
from tidemill.values.doctor import DeadLetter, DeadLetters, Finding, Result

LATELY: Final = timedelta(days=1)
"""Dead letters that are older are history."""


def judge_dead_letters(letters: DeadLetters) -> list[Finding]:
    """Findings about jobs that ended dead or quarantined."""
    if not letters.groups:
        return [
            Finding(
                "dead letters",
                Result.OK,
                f"None of the newest {letters.newest:,} jobs is dead or quarantined.",
            )
        ]
    lately = letters.last_at is not None and letters.now - letters.last_at <= LATELY
    groups = _listed([_group(group, letters.now) for group in letters.groups], letters.kinds)
    last = _last(letters)
    kinds = ((letters.dead, "dead job"), (letters.quarantined, "quarantined job"))
    counts = [counted(count, kind) for count, kind in kinds if count]
    return [
        Finding(
            "dead letters",
            Result.WARNING if lately else Result.OK,
            f"{listed(counts)} among the newest {letters.newest:,}: {groups}.{last}",
            "See them with `tidemill jobs list --state dead,quarantined`, and why with `tidemill "
            "jobs show ID`; when it is mended, `tidemill jobs requeue ID`.",
        )
    ]


def _listed(groups: list[str], kinds: int) -> str:
    """The first of the groups, and how many kinds there are beside; commas are within each."""
    shown = groups[:SHOWN]
    more = max(kinds, len(groups)) - len(shown)
    return "; ".join([*shown, f"and {more:,} more"] if more > 0 else shown)


def _last(letters: DeadLetters) -> str:
    """When the last ended, if that is in no group that is shown."""
    shown = {group.newest_at for group in letters.groups[:SHOWN]}
    if letters.last_at is None or letters.last_at in shown:
        return ""
    return f" The last ended {lasting(letters.now - letters.last_at)} ago."


def _group(group: DeadLetter, now: datetime) -> str:
    cause = "" if group.cause is None else f" ({group.cause})"
    last = "" if group.newest_at is None else f", last {lasting(now - group.newest_at)} ago"
    return f'{group.count:,} × "{group.wire_name}" {group.state.value}{cause}{last}'
