"""On PostgreSQL too each hot statement reads its index, under the generic plan that it will have.

The table is the kind in which a wrong plan would hurt: twenty thousand jobs, most of them ended,
with statistics, and once without.
"""

from datetime import UTC, datetime

import psycopg
import pytest
from tests.postgres.servers import fresh_database

from tidemill.sql.catalogue import Catalogue
from tidemill.sql.codes import STATE_CODES
from tidemill.sql.dialects.postgres import PostgresDialect
from tidemill.values.ids import uuid7
from tidemill.values.states import JobState

CATALOGUE = Catalogue(PostgresDialect())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
IDS = tuple(uuid7(n, n) for n in range(500))
ID = IDS[0]

FILL = """
    INSERT INTO tidemill.jobs (id, wire_name, queue, priority, state, due_at, worker_id, created_at,
        digest, payload, held, not_after, idempotency_key, attempt)
    SELECT gen_random_uuid(), 'w', 'q', 0, CASE WHEN n % 50 < 4 THEN n % 50 ELSE {succeeded} END,
        now(), CASE WHEN n % 50 = {running} THEN ('00000000-0000-0000-0000-0000000000' || n % 7 + 10)::uuid END,
        now(), '', '', CASE WHEN n % 500 = 1 THEN 0 END, CASE WHEN n % 500 = 0 THEN now() END,
        CASE WHEN n % 100 < 4 THEN 'key' || n END, 0
    FROM generate_series(1, 20000) AS n;
    INSERT INTO tidemill.attempts (job_id, attempt, worker_id, verdict, stale, ended_at)
    SELECT id, 1, id, 1, false, now() FROM tidemill.jobs LIMIT 5000;
    INSERT INTO tidemill.log_lines (job_id, attempt, number, at, message, fields)
    SELECT id, 1, n, now(), 'a stone', '' FROM tidemill.jobs, generate_series(1, 10) AS n LIMIT 20000
"""  # noqa: E501 - one value a line reads better

END = {
    "id": ID, "holder": ID, "attempt": 1, "state": JobState.DEAD, "worker": None,
    "due_at": NOW, "cause": None, "finished_at": NOW, "failed": 0, "lapsed": 0, "output": None,
}  # fmt: skip

HOT = [
    ("opening", {"worker": ID, "queues": '["q"]'},
     {"jobs_ready", "jobs_scheduled", "jobs_cancels"}),
    ("cancel_requests", {"worker": ID}, {"jobs_cancels"}),
    ("every_held_job", {"limit": 500}, {"jobs_held"}),
    ("upkeep", {}, {"jobs_running", "jobs_expiry", "jobs_held", "jobs_unsettled"}),
    ("unsettled_jobs", {"limit": 500}, {"jobs_unsettled"}),
    ("complete_job", {"id": ID, "worker": ID, "attempt": 1, "output": None, "unsettled": "[]"},
     {"jobs_running"}),
    ("settle_jobs", {"ids": IDS}, {"jobs_pkey"}),
    ("next_due", {"queue": "q"}, {"jobs_scheduled"}),
    ("activate_due", {"queue": "q", "now": NOW, "limit": 100}, {"jobs_scheduled", "jobs_pkey"}),
    ("ready_jobs", {"queue": "q", "limit": 100, "worker": ID, "now": NOW, "names": ("w",)},
     {"jobs_ready"}),
    ("start_jobs", {"ids": IDS, "worker": ID, "now": NOW}, {"jobs_pkey"}),
    ("finish_plain", {"ids": IDS, "worker": ID, "attempt": 1, "now": NOW}, {"jobs_pkey"}),
    ("reported_jobs", {"ids": IDS}, {"jobs_pkey"}),
    ("stored_jobs", {"ids": IDS}, {"jobs_pkey"}),
    ("asked_jobs", {"ids": IDS}, {"jobs_pkey"}),
    ("running_jobs", {"worker": ID}, {"jobs_running"}),
    ("lapsed_jobs", {"now": NOW, "limit": 500}, {"jobs_running"}),
    ("expired_jobs", {"now": NOW, "limit": 500}, {"jobs_expiry"}),
    ("held_jobs", {"names": ("a", "b"), "limit": 500}, {"jobs_held"}),
    ("known_held", {"names": ("a", "b")}, {"jobs_held"}),
    ("key_holders", {"tenant": "", "keys": ("k", "l")}, {"jobs_key"}),
    ("recorded_verdict", {"job_id": ID, "attempt": 1, "worker": ID}, {"attempts_job"}),
    ("end_attempt", [END] * 500, {"jobs_pkey"}),
    ("prune_attempts", [{"job_id": ID, "stale": False, "kept": 9}] * 500,
     {"attempts_job", "attempts_pkey"}),
    ("job_attempts", {"id": ID}, {"attempts_job"}),
    ("write_progress", [{"job_id": ID, "worker": ID, "attempt": 1, "progress": "{}"}] * 500,
     {"jobs_pkey"}),
    ("prune_lines", [{"job_id": ID, "last": 1}] * 500, {"log_lines_pkey"}),
    ("job_log", {"id": ID, "attempt": 1, "number": 1, "every": True, "only": 0,
     "limit": 9}, {"log_lines_pkey"}),
    ("job_log_end", {"id": ID, "limit": 9}, {"log_lines_pkey"}),
    ("backlog_ready", {"limit": 9}, {"jobs_ready"}),
    ("backlog_due", {"now": NOW, "limit": 9}, {"jobs_scheduled"}),
    ("stuck_abandoned", {"now": NOW, "limit": 9}, {"jobs_running"}),
    ("stuck_overdue", {"now": NOW, "before": NOW, "limit": 9}, {"jobs_running"}),
    ("dead_letters", {"newest": 9, "limit": 9}, {"jobs_pkey"}),
]  # fmt: skip
NAMES = [hot[0] for hot in HOT]


@pytest.fixture(scope="module", params=["postgres_18_server", "postgres_15_server"])
def server(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module", params=["analysed", "without statistics"])
def connection(server, request, worker_id):
    codes = {state.value: code for state, code in STATE_CODES.items()}
    with (
        fresh_database(server, f"plans_{worker_id}") as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("ALTER TABLE tidemill.jobs SET (autovacuum_enabled = off)")
        connection.execute(FILL.format(**codes))
        if request.param == "analysed":
            connection.execute("ANALYZE")
        connection.execute("SET plan_cache_mode = force_generic_plan")
        yield connection


def plan_of(connection, name, parameters):
    """Every node of the generic plan of a statement."""
    if isinstance(parameters, list):
        sql, values = CATALOGUE.bind_columns(name, parameters)
    else:
        sql, values = CATALOGUE.bind(name, parameters)
    connection.execute(f"PREPARE hot AS {sql}")
    nulls = f"({', '.join(['NULL'] * len(values))})" if values else ""
    (plan,) = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE hot {nulls}").fetchone()[0]
    connection.execute("DEALLOCATE hot")
    return list(nodes(plan["Plan"]))


def nodes(node):
    yield node
    for inner in node.get("Plans", ()):
        yield from nodes(inner)


@pytest.mark.parametrize(("name", "parameters", "indexes"), HOT, ids=NAMES)
def test_a_hot_statement_reads_its_indexes_and_never_the_whole_table(
    connection, name, parameters, indexes
):
    plan = plan_of(connection, name, parameters)
    used = {node["Index Name"] for node in plan if "Index Name" in node}
    assert indexes <= used, used
    scanned = {node.get("Relation Name") for node in plan if node["Node Type"] == "Seq Scan"} - {
        "workers", "queues"
    }  # fmt: skip
    assert not scanned, f"{name} scans {scanned}"


@pytest.mark.parametrize("name", ["ready_jobs", "expired_jobs", "job_log_end"])
def test_an_order_is_read_from_the_index_and_never_sorted(connection, name):
    parameters = {hot[0]: hot[1] for hot in HOT}[name]
    assert not [node for node in plan_of(connection, name, parameters) if "Sort Key" in node]


def test_the_table_of_the_plans_is_one_in_which_a_wrong_plan_would_be_seen(connection):
    sql = "SELECT id FROM tidemill.jobs WHERE wire_name = 'w'"
    (plan,) = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchone()[0]
    assert {node["Node Type"] for node in nodes(plan["Plan"])} == {"Seq Scan"}
