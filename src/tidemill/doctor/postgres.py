"""What a PostgreSQL server tells: durability, pooler, connections, bloat, open transactions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from tidemill.doctor.words import counted, does, lasting, size
from tidemill.values.doctor import DatabaseHealth, Finding, Result, SessionHealth, TableHealth

BLOATED_ROWS: Final = 50_000
"""Fewer dead rows than this are nobody's trouble."""
IDLE: Final = (timedelta(minutes=1), timedelta(minutes=10))
"""A transaction that stands idle: a warning, and a problem."""
OPEN: Final = (timedelta(minutes=10), timedelta(hours=1))
"""A transaction that is open at all: a warning, and a problem."""
HOLDING: Final = timedelta(minutes=1)
"""A transaction that holds locks on our tables: a warning."""
CROWDED: Final = (0.8, 0.95)
"""The share of the server's connections in use: a warning, and a problem."""
_SESSIONS: Final = 3


def judge_postgres(health: DatabaseHealth) -> list[Finding]:
    """Findings about a PostgreSQL server."""
    settings = health.settings
    return [
        *_writable(settings),
        _durability(settings),
        _pooler(settings),
        _connections(settings),
        *_bloat(health.tables, health.now, settings),
        *_transactions(health.sessions, settings),
    ]


def _writable(settings: Mapping[str, str]) -> list[Finding]:
    if settings["standby"] == "true":
        found = "The server is a standby, which takes no writes."
    elif settings["default_transaction_read_only"] == "on":
        found = "Transactions are read-only by default for this user or database."
    else:
        return []
    return [Finding("writing", Result.PROBLEM, found, "Connect to the primary, as its owner.")]


def _durability(settings: Mapping[str, str]) -> Finding:
    off = [name for name in ("fsync", "full_page_writes") if settings[name] == "off"]
    if off:
        return Finding(
            "durability",
            Result.PROBLEM,
            f"{' and '.join(off)} {does(len(off), 'is', 'are')} off: a crash of the server's host "
            "may destroy the database.",
            "Turn it on in postgresql.conf and reload, unless the data may be lost.",
        )
    level = settings["synchronous_commit"]
    if level == "off":
        return Finding(
            "durability",
            Result.WARNING,
            "synchronous_commit is off: a crash of the server may undo the last second of "
            "enqueued jobs and recorded outcomes.",
            "Turn it on for this database or user, unless that is what you want.",
        )
    return Finding("durability", Result.OK, f"fsync is on, synchronous_commit is {level}.")


def _pooler(settings: Mapping[str, str]) -> Finding:
    prepared = settings["prepared_statements"]
    if settings["pooler"] == "no":
        return Finding("pooler", Result.OK, "None: connections go straight to the server.")
    if prepared == "off":
        return Finding(
            "pooler",
            Result.OK,
            "A pooler stands between, and prepared_statements is off. Wake-up hints across "
            "processes need a direct URL; without one, workers poll.",
        )
    return Finding(
        "pooler",
        Result.WARNING,
        f"A pooler stands between, and prepared_statements is {prepared}.",
        "pgbouncer below 1.21 mixes prepared statements up in transaction mode: add "
        "?prepared_statements=off to the URL. A pooler in session mode needs nothing.",
    )


def _connections(settings: Mapping[str, str]) -> Finding:
    used, most = int(settings["connections"]), int(settings["max_connections"])
    found = f"{used:,} of the server's {most:,} connections are in use."
    share = used / most
    if share < CROWDED[0]:
        return Finding("connections", Result.OK, found)
    return Finding(
        "connections",
        Result.PROBLEM if share >= CROWDED[1] else Result.WARNING,
        found,
        "Raise max_connections, give stores smaller pools, or put a pooler between.",
    )


def _bloat(
    tables: tuple[TableHealth, ...], now: datetime, settings: Mapping[str, str]
) -> list[Finding]:
    findings: list[Finding] = []
    if settings["autovacuum"] == "off":
        findings.append(
            Finding(
                "bloat",
                Result.WARNING,
                "autovacuum is off: dead rows are never cleaned away, and claims slow down.",
                "Turn it on in postgresql.conf.",
            )
        )
    findings += [
        Finding(
            "bloat",
            Result.WARNING,
            f"{table.name} has {table.dead:,} dead rows beside {table.live:,} live ones "
            f"({size(table.size)}), {_vacuumed(table, now)}.",
            "If a transaction below is old, it keeps them: end it. Else run VACUUM "
            f"{table.name}, and let autovacuum come more often.",
        )
        for table in tables
        if table.dead >= BLOATED_ROWS and table.dead > table.live
    ]
    if findings or not tables:
        return findings
    dead, whole = sum(table.dead for table in tables), sum(table.size for table in tables)
    return [
        Finding("bloat", Result.OK, f"{counted(dead, 'dead row')} in {size(whole)} of our tables.")
    ]


def _vacuumed(table: TableHealth, now: datetime) -> str:
    if table.vacuumed_at is None:
        return "never vacuumed"
    return f"last vacuumed {lasting(now - table.vacuumed_at)} ago"


def _transactions(
    sessions: tuple[SessionHealth, ...], settings: Mapping[str, str]
) -> list[Finding]:
    judged = [(_judge(session), session) for session in sessions]
    told = [(result, session) for result, session in judged if result is not Result.OK]
    told.sort(key=lambda pair: (pair[0] is not Result.PROBLEM, -pair[1].open_for))
    hidden = "" if settings["sees_all_sessions"] == "true" else _HIDDEN
    if not told:
        return [Finding("transactions", Result.OK, "None has been open for long." + hidden)]
    return [_told(result, session) for result, session in told[:_SESSIONS]]


_HIDDEN: Final = " (Those of other users are not shown to this one: GRANT pg_monitor to it.)"


def _judge(session: SessionHealth) -> Result:
    if session.blocks:
        return Result.PROBLEM
    idle = timedelta(0) if session.idle_for is None else session.idle_for
    if idle >= IDLE[1] or session.open_for >= OPEN[1]:
        return Result.PROBLEM
    if idle >= IDLE[0] or session.open_for >= OPEN[0]:
        return Result.WARNING
    if session.holds and session.open_for >= HOLDING:
        return Result.WARNING
    return Result.OK


def _told(result: Result, session: SessionHealth) -> Finding:
    who = f"A transaction of {session.application or 'an unnamed application'} ({session.user}"
    where = f"{who}, pid {session.pid})" if session.pid is not None else f"{who})"
    holds = f", holds {session.holds}" if session.holds else ""
    waiting = does(session.blocks, "session waits", "sessions wait")
    blocks = f", and {session.blocks} {waiting} for it" if session.blocks else ""
    ending = f"SELECT pg_terminate_backend({session.pid})" if session.pid else "ROLLBACK PREPARED"
    return Finding(
        "transactions",
        result,
        f"{where} has been open for {lasting(session.open_for)}, is {session.state}{holds}"
        f"{blocks}.",
        "Nothing that ended since it began can be cleaned away, and jobs it holds do not move. "
        f"Have its application end it, or do so: {ending}.",
    )
