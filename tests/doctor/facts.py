"""Facts of a store, as the rules of the doctor are told of them; each is well unless it is said."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from tidemill.values.doctor import (
    Backlog,
    DatabaseHealth,
    QueueHealth,
    SchemaHealth,
    SessionHealth,
    StuckJob,
    StuckJobs,
    StuckWork,
    WorkerHealth,
    Workforce,
)
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.monitor import WorkerRecord

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
LEASE = timedelta(seconds=60)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
POSTGRES = {
    "version": "18.0 (Debian)", "fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
    "autovacuum": "on", "max_connections": "100", "connections": "5", "standby": "false",
    "default_transaction_read_only": "off", "sees_all_sessions": "true", "pooler": "no",
    "prepared_statements": "auto",
}  # fmt: skip
SQLITE = {
    "version": "3.40.1", "journal_mode": "wal", "synchronous": "NORMAL", "page_size": "4096",
    "freelist_count": "0", "file_bytes": "81920", "wal_bytes": "0",
    "disk_free_bytes": "90000000000",
}  # fmt: skip


def worker(*, beaten=SECOND, lapsed=False, **changes):
    """A worker whose last heartbeat was `beaten` ago."""
    expires = NOW - beaten + LEASE
    record = WorkerRecord(**{
        "id": WorkerId(UUID(int=7)), "host": "mill-1", "pid": 42, "version": "1",
        "queues": ("default",), "wire_names": frozenset({"orders.capture"}), "slots": 10,
        "started_at": NOW - HOUR, "lease_expires_at": expires,
        "lapsed_at": expires if lapsed else None, "live": not lapsed, "running": 3, **changes,
    })  # fmt: skip
    return WorkerHealth(record, LEASE)


def force(*workers, more=False):
    return Workforce(NOW, workers, more)


def queue(name="default", *, ready=1, due=0, age=SECOND, paused=False):
    return QueueHealth(queue=name, paused=paused, ready=ready, due=due, oldest_due_at=NOW - age)


def backlog(*queues):
    return Backlog(NOW, queues, more=False)


def stuck_job(number=1, since=NOW - HOUR):
    return StuckJob(
        id=JobId(UUID(int=number)), wire_name="orders.capture", queue="default",
        attempt=Attempt(2), worker=None, since=since,
    )  # fmt: skip


def stuck(**kinds):
    """Stuck work: `abandoned=(job, …)` and so on; `count` is theirs."""
    none = StuckJobs((), 0)
    given = {kind: StuckJobs(jobs, len(jobs)) for kind, jobs in kinds.items()}
    return StuckWork(now=NOW, **{"abandoned": none, "overdue": none, "unsettled": none, **given})


def session(open_for, **changes):
    return SessionHealth(**{
        "pid": 77, "application": "billing", "user": "app", "state": "active",
        "open_for": open_for, **changes,
    })  # fmt: skip


def database(product="PostgreSQL", schema=(2, 1, 2), *, settings=(), **changes):
    plain = POSTGRES if product == "PostgreSQL" else SQLITE
    return DatabaseHealth(**{
        "product": product, "place": "here", "now": NOW, "schema": SchemaHealth(*schema),
        "settings": {**plain, **dict(settings)}, **changes,
    })  # fmt: skip


def told(findings):
    """What is not well: (check, result, found) of each finding that is not ok."""
    return [(each.check, each.result.value, each.found) for each in findings if each.result != "ok"]
