"""The database itself: whether it answers, its schema, its clock, and what each kind tells."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tidemill.doctor.postgres import judge_postgres
from tidemill.doctor.sqlite import judge_sqlite
from tidemill.doctor.words import lasting
from tidemill.values.doctor import DatabaseHealth, Finding, Result, SchemaHealth
from tidemill.values.urls import migrating

SLOW: Final = timedelta(milliseconds=50)
"""An answer that takes longer is told of: each claim takes one or two."""
CLOCK_DIFFERENCE: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Trip:
    """One question to the store's clock: the host's time before and after, and its answer."""

    sent: datetime
    answer: datetime
    received: datetime

    @property
    def took(self) -> timedelta:
        """How long the question took."""
        return self.received - self.sent

    @property
    def difference(self) -> timedelta:
        """How far the store's clock is ahead of the host's, within half of `took`."""
        return self.answer - (self.sent + self.took / 2)


def judge_database(health: DatabaseHealth) -> list[Finding]:
    """Findings from what a database says of itself."""
    findings = [_schema(health.schema)]
    match health.product:
        case "PostgreSQL":
            return findings + judge_postgres(health)
        case "SQLite":
            return findings + judge_sqlite(health)
        case _:
            return findings


def judge_answer(health: DatabaseHealth, trip: Trip) -> Finding:
    """The finding about how fast the store answers."""
    version = health.settings.get("version", "").partition(" ")[0]
    what = f"{health.product} {version}".strip()
    return Finding(
        "store",
        Result.WARNING if trip.took > SLOW else Result.OK,
        f"{what} at {health.place} answers in {lasting(trip.took)}.",
        "Each claim and report takes at least one such trip: run the workers nearer to the "
        "database, or give them more slots."
        if trip.took > SLOW
        else "",
    )


def judge_clock(health: DatabaseHealth, trip: Trip) -> Finding:
    """The finding about the clocks; the store's alone decides when jobs are due."""
    if health.product == "SQLite":
        return Finding("clock", Result.OK, "The store's clock is this host's.")
    differs = max(abs(trip.difference) - trip.took / 2, timedelta(0))
    if differs < CLOCK_DIFFERENCE:
        return Finding("clock", Result.OK, "The clocks of this host and of the server agree.")
    ahead = "behind" if trip.difference > timedelta(0) else "ahead of"
    return Finding(
        "clock",
        Result.WARNING,
        f"This host's clock is {lasting(differs)} {ahead} the server's.",
        "Nothing is decided by it: due times and leases follow the server's clock. But jobs may "
        "start that much later than the times this host computes, and logs do not line up: set "
        "up NTP.",
    )


def _schema(schema: SchemaHealth) -> Finding:
    if schema.version == 0:
        return Finding(
            "schema",
            Result.PROBLEM,
            "This database has no Tidemill tables.",
            f"Check the URL, or run `{migrating()}` to make them.",
        )
    if schema.min_compatible > schema.known:
        return Finding(
            "schema",
            Result.PROBLEM,
            f"The schema is at version {schema.version} and works with versions from "
            f"{schema.min_compatible} on; this Tidemill knows version {schema.known}.",
            "Upgrade Tidemill on this host.",
        )
    if schema.version < schema.known:
        return Finding(
            "schema",
            Result.PROBLEM,
            f"The schema is at version {schema.version}, and this Tidemill needs version "
            f"{schema.known}.",
            f"Run `{migrating()}`; --plan shows its SQL first.",
        )
    newer = "" if schema.version == schema.known else f", newer than this Tidemill's {schema.known}"
    return Finding("schema", Result.OK, f"Version {schema.version}{newer}, which fits.")
