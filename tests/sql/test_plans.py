"""Each hot statement reads its index, in a table where the wrong plan would hurt."""

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from tidemill.sql.catalogue import Catalogue
from tidemill.sql.codes import STATES
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.migrations import migrations
from tidemill.values.ids import uuid7
from tidemill.values.states import JobState

CATALOGUE = Catalogue(SqliteDialect())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG = timedelta(days=365_000)
IDS = tuple(uuid7(n, n) for n in range(3))
ID = IDS[0]


EVEN = dict.fromkeys(JobState, 250)
CROWDED = {
    **dict.fromkeys(JobState, 0),
    JobState.SUCCEEDED: 15_000,
    JobState.DEAD: 3_000,
    JobState.READY: 50,
    JobState.SCHEDULED: 20,
    JobState.RUNNING: 20,
}
"""What has ended or is held outnumbers what is on its way by far."""
HELD = 2_000
INSERT = (
    "INSERT INTO tidemill_jobs (id, wire_name, queue, priority, state, held, due_at, not_after,"
    " created_at, digest, payload, worker_id, idempotency_key, attempt, cancel_requested)"
    " VALUES (?, 'w', 'q', 0, ?, ?, 0, ?, 0, x'', x'', ?, ?, ?, ?)"
)


def fill(connection, counts, held):
    states = [state for state, count in counts.items() for _ in range(count)]
    rows = [
        (
            uuid7(n, n).bytes, STATES.index(state), None, n if n % 3 == 0 else None,
            uuid7(n % 5, 0).bytes, f"k{n}" if n % 7 == 0 else None,
            int(state is not JobState.READY and state is not JobState.SCHEDULED),
            "a" if state is JobState.RUNNING and n % 4 == 0 else None,
        )
        for n, state in enumerate(states)
    ]  # fmt: skip
    ready = STATES.index(JobState.READY)
    rows += [(uuid7(10**6 + n, n).bytes, ready, 0, None, None, None, 0, None) for n in range(held)]
    connection.executemany(INSERT, rows)
    connection.execute("ANALYZE")


@pytest.fixture(scope="module", params=["fresh", "analysed", "crowded"])
def connection(request):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for step in migrations("sqlite"):
        for name in step.statements:
            connection.execute(CATALOGUE.bind(name, {})[0])
    if request.param == "analysed":
        fill(connection, EVEN, 0)
    if request.param == "crowded":
        fill(connection, CROWDED, HELD)
    yield connection
    connection.close()


HOT = [
    ("ready_jobs", {"queue": "q", "limit": 9}, "tidemill_jobs_ready (queue=?)"),
    ("opening", {"worker": ID, "queues": '["q"]'}, "tidemill_jobs_ready (queue=?)"),
    ("opening", {"worker": ID, "queues": '["q"]'}, "tidemill_jobs_scheduled (queue=?)"),
    ("upkeep", {}, "tidemill_jobs_running"),
    ("known_held", {"names": ("a", "b")}, "tidemill_jobs_held (wire_name=?)"),
    ("next_due", {"queue": "q"}, "tidemill_jobs_scheduled (queue=?)"),
    ("activate_due", {"queue": "q", "now": NOW, "limit": 9},
     "tidemill_jobs_scheduled (queue=? AND due_at<?)"),
    ("running_jobs", {"worker": ID}, "tidemill_jobs_running (worker_id=?)"),
    ("lapsed_jobs", {"now": NOW, "limit": 9, "writable_for": LONG}, "tidemill_jobs_running"),
    ("cancel_requests", {"worker": ID}, "tidemill_jobs_cancels (worker_id=?)"),
    ("every_held_job", {"limit": 9}, "tidemill_jobs_held"),
    ("end_attempt", {"id": ID, "state": 4, "worker": None, "due_at": 0, "cause": None,
     "finished_at": 0, "failed": 0, "lapsed": 0, "output": None, "holder": ID, "attempt": 1},
     "id=?"),
    ("upkeep", {}, "tidemill_jobs_unsettled"),
    ("upkeep", {}, "tidemill_jobs_scheduled (queue=? AND due_at>?)"),
    ("upkeep", {}, "tidemill_jobs_scheduled (queue>?)"),
    ("activate_undue", {"limit": 9}, "tidemill_jobs_scheduled (queue=? AND due_at>?)"),
    ("activate_undue", {"limit": 9}, "tidemill_jobs_scheduled (queue>?)"),
    ("unsettled_jobs", {"limit": 9}, "tidemill_jobs_unsettled"),
    ("complete_job", {"id": ID, "worker": ID, "attempt": 1, "output": None, "unsettled": "[]"},
     "id=?"),
    ("count_ready", {}, "tidemill_jobs_ready"),
    ("count_scheduled", {}, "tidemill_jobs_scheduled"),
    ("count_running", {}, "tidemill_jobs_running"),
    ("count_held", {}, "tidemill_jobs_held"),
    ("expired_jobs", {"now": NOW, "limit": 9},
     "tidemill_jobs_expiry (not_after>? AND not_after<?)"),
    ("held_jobs", {"names": ("a", "b"), "limit": 9}, "tidemill_jobs_held (wire_name=?)"),
    ("key_holders", {"tenant": "", "keys": ("k",)},
     "tidemill_jobs_key (tenant=? AND idempotency_key=?)"),
    ("stored_jobs", {"ids": IDS}, "autoindex_tidemill_jobs_1 (id=?)"),
    ("start_jobs", {"ids": IDS, "worker": ID, "now": NOW}, "autoindex_tidemill_jobs_1 (id=?)"),
    ("finish_plain", {"ids": IDS, "worker": ID, "attempt": 1, "now": NOW},
     "tidemill_jobs_running (worker_id=? AND id=?)"),
    ("reported_jobs", {"ids": IDS}, "autoindex_tidemill_jobs_1 (id=?)"),
    ("recorded_verdict", {"job_id": ID, "attempt": 1, "worker": ID},
     "tidemill_attempts_job (job_id=? AND stale=?)"),
    ("prune_attempts", {"job_id": ID, "stale": 0, "kept": 9},
     "tidemill_attempts_job (job_id=? AND stale=?"),
    ("write_progress", {"job_id": ID, "worker": ID, "attempt": 1, "progress": "{}"}, "id=?"),
    ("prune_lines", {"job_id": ID, "last": 1},
     "autoindex_tidemill_log_lines_1 (job_id=? AND attempt<?)"),
    ("job_log", {"id": ID, "attempt": 1, "number": 1, "every": True, "only": 0,
     "limit": 9},
     "autoindex_tidemill_log_lines_1 (job_id=? AND (attempt,number)>(?,?))"),
    ("job_log_end", {"id": ID, "limit": 9}, "autoindex_tidemill_log_lines_1 (job_id=?)"),
    ("backlog_ready", {"limit": 9}, "tidemill_jobs_ready"),
    ("backlog_due", {"now": NOW, "limit": 9}, "tidemill_jobs_scheduled"),
    ("stuck_abandoned", {"now": NOW, "limit": 9}, "tidemill_jobs_running"),
    ("stuck_overdue", {"now": NOW, "before": NOW, "limit": 9}, "tidemill_jobs_running"),
    ("stuck_unsettled", {"before": NOW, "limit": 9}, "tidemill_jobs_unsettled"),
    ("waiting_names", {"sample": 9, "limit": 9}, "tidemill_jobs_ready"),
    ("waiting_names", {"sample": 9, "limit": 9}, "tidemill_jobs_held"),
    ("waiting_names", {"sample": 9, "limit": 9}, "tidemill_jobs_scheduled"),
    ("dead_letters", {"newest": 9, "limit": 9}, "autoindex_tidemill_jobs_1"),
    ("newest_jobs", {"before": ID, "states": (1, 2), "strays": True, "queue": None,
                     "wire_name": None, "limit": 9},
     "autoindex_tidemill_jobs_1 (id<?)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameters", "index"), HOT, ids=[f"{hot[0]}-{n}" for n, hot in enumerate(HOT)]
)
def test_a_hot_statement_reads_its_index(connection, name, parameters, index):
    sql, values = CATALOGUE.bind(name, parameters, lambda: NOW)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert any(index in line for line in plan), plan
    assert not any(line.startswith("SCAN tidemill_jobs") and "INDEX" not in line for line in plan)


SORTED = [
    "ready_jobs",
    "activate_due",
    "expired_jobs",
    "newest_jobs",
    "every_held_job",
    "unsettled_jobs",
    "job_log",
    "job_log_end",
]


@pytest.mark.parametrize("name", SORTED)
def test_an_order_is_read_from_the_index_and_never_sorted(connection, name):
    parameters = {hot[0]: hot[1] for hot in HOT}[name]
    sql, values = CATALOGUE.bind(name, parameters, lambda: NOW)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert not any("TEMP B-TREE" in line for line in plan), plan


def test_a_plain_job_has_one_index_entry_beside_its_primary_key(connection):
    partial = [
        row[0]
        for row in connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'tidemill_jobs'"
            " AND sql IS NOT NULL"
        )
    ]
    state = {state.value: code for code, state in enumerate(STATES)}
    for word in ("scheduled", "ready", "running", "succeeded"):
        matching = 0
        for text in partial:
            condition = text.partition(" WHERE ")[2]
            row = (
                "SELECT NULL AS held, NULL AS not_after, NULL AS idempotency_key, 0 AS attempt,"
                " NULL AS cancel_requested, NULL AS unsettled"
            )
            asked = f"SELECT count(*) FROM ({row}, {state[word]} AS state) WHERE {condition}"
            matching += connection.execute(asked).fetchone()[0]
        assert matching == (0 if word == "succeeded" else 1), word
