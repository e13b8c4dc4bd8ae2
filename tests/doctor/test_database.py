"""What the doctor says about a database, from what it says of itself."""

from datetime import timedelta

import pytest
from tests.doctor.facts import HOUR, MINUTE, NOW, SECOND, database, session, told

from tidemill.doctor.database import Trip, judge_answer, judge_clock, judge_database
from tidemill.values.doctor import Result, TableHealth, Unwritable

MS = timedelta(milliseconds=1)


def trip(took=MS, ahead=timedelta(0)):
    return Trip(NOW, NOW + took / 2 + ahead, NOW + took)


@pytest.mark.parametrize("product", ["PostgreSQL", "SQLite", "memory"])
def test_a_database_that_is_well_has_no_findings_but_good_ones(product):
    assert told(judge_database(database(product))) == []


@pytest.mark.parametrize(
    ("schema", "fits", "says"),
    [
        ((0, 0, 2), False, "This database has no Tidemill tables."),
        ((1, 1, 2), False, "The schema is at version 1, and this Tidemill needs version 2."),
        ((9, 8, 2), False, "works with versions from 8 on; this Tidemill knows version 2."),
        ((2, 1, 2), True, "Version 2, which fits."),
        ((3, 2, 2), True, "Version 3, newer than this Tidemill's 2, which fits."),
    ],
)
def test_the_schema_is_missing_older_newer_or_fits(schema, fits, says):
    health = database(schema=schema)
    found = judge_database(health)[0]
    assert says in found.found
    assert health.schema.fits is fits is (found.result is Result.OK)


def test_an_answer_is_told_with_its_time_and_a_slow_one_is_a_warning():
    found = judge_answer(database(), trip())
    assert (found.result, found.found) == (Result.OK, "PostgreSQL 18.0 at here answers in 1 ms.")
    assert judge_answer(database(), trip(51 * MS)).result is Result.WARNING


@pytest.mark.parametrize(
    ("ahead", "says"),
    [
        (timedelta(0), "The clocks of this host and of the server agree."),
        (0.9 * SECOND, "The clocks of this host and of the server agree."),
        (10 * SECOND, "This host's clock is 9 s behind the server's."),
        (-10 * SECOND, "This host's clock is 9 s ahead of the server's."),
    ],
)
def test_a_difference_of_clocks_is_told_as_far_as_the_trip_lets_it_be_known(ahead, says):
    assert judge_clock(database(), trip(took=SECOND / 2, ahead=ahead)).found == says


def test_a_difference_within_the_time_of_the_trip_is_none():
    assert judge_clock(database(), trip(took=4 * SECOND, ahead=2 * SECOND)).result is Result.OK


SETTINGS = {
    "fsync": ({"fsync": "off"}, "durability", "problem", "fsync is off"),
    "pages": ({"full_page_writes": "off"}, "durability", "problem", "full_page_writes is off"),
    "commit": ({"synchronous_commit": "off"}, "durability", "warning", "the last second"),
    "pooler": ({"pooler": "yes"}, "pooler", "warning", "prepared_statements is auto"),
    "standby": ({"standby": "true"}, "writing", "problem", "takes no writes"),
    "read only": ({"default_transaction_read_only": "on"}, "writing", "problem", "read-only"),
    "connections": ({"connections": "80"}, "connections", "warning", "80 of the server's 100"),
    "no connection": ({"connections": "95"}, "connections", "problem", "95 of the server's 100"),
    "vacuum": ({"autovacuum": "off"}, "bloat", "warning", "autovacuum is off"),
}


@pytest.mark.parametrize(("settings", "check", "result", "says"), SETTINGS.values(), ids=SETTINGS)
def test_each_setting_of_a_server_that_bodes_ill_is_told(settings, check, result, says):
    ((where, how, found),) = told(judge_database(database(settings=settings)))
    assert (where, how) == (check, result)
    assert says in found


def test_a_pooler_is_well_where_statements_are_not_prepared():
    health = database(settings={"pooler": "yes", "prepared_statements": "off"})
    assert told(judge_database(health)) == []


@pytest.mark.parametrize(("dead", "live", "warned"), [
    (49_999, 10, False), (50_000, 10, True), (50_000, 60_000, False),
])  # fmt: skip
def test_a_table_with_more_dead_rows_than_live_ones_is_bloated(dead, live, warned):
    table = TableHealth(
        name="tidemill.jobs", live=live, dead=dead, size=10**9, vacuumed_at=NOW - HOUR
    )
    findings = told(judge_database(database(tables=(table,))))
    assert [found for _, _, found in findings] == [
        "tidemill.jobs has 50,000 dead rows beside 10 live ones (1.0 GB), last vacuumed 1 h ago."
    ] * warned


SESSIONS = {
    "short": (session(MINUTE), None),
    "open": (session(10 * MINUTE), "warning"),
    "open for hours": (session(HOUR), "problem"),
    "idle": (session(2 * MINUTE, idle_for=MINUTE), "warning"),
    "idle for long": (session(12 * MINUTE, idle_for=10 * MINUTE), "problem"),
    "holding": (session(MINUTE, holds="RowExclusiveLock on jobs"), "warning"),
    "holding briefly": (session(30 * SECOND, holds="RowExclusiveLock on jobs"), None),
    "blocking": (session(11 * SECOND, blocks=2), "problem"),
}


@pytest.mark.parametrize(("seen", "result"), SESSIONS.values(), ids=SESSIONS)
def test_a_transaction_is_told_by_how_long_it_stands_and_whom_it_keeps(seen, result):
    findings = told(judge_database(database(sessions=(seen,))))
    assert [how for _, how, _ in findings] == ([result] if result else [])


def test_a_transaction_is_told_with_who_holds_it_and_how_to_end_it():
    seen = session(
        3 * MINUTE, state="idle in transaction", idle_for=MINUTE,
        holds="RowExclusiveLock on jobs", blocks=1,
    )  # fmt: skip
    (found,) = [each for each in judge_database(database(sessions=(seen,))) if each.advice]
    assert found.found == (
        "A transaction of billing (app, pid 77) has been open for 3 min, is idle in transaction, "
        "holds RowExclusiveLock on jobs, and 1 session waits for it."
    )
    assert "SELECT pg_terminate_backend(77)" in found.advice


def test_of_many_transactions_the_worst_three_are_told():
    seen = [session(n * HOUR, pid=n, blocks=n % 2) for n in range(1, 10)]
    findings = told(judge_database(database(sessions=tuple(seen))))
    assert [found.split("pid ")[1][0] for _, _, found in findings] == ["9", "8", "7"]


def test_it_says_when_other_users_sessions_are_hidden_from_it():
    found = judge_database(database(settings={"sees_all_sessions": "false"}))[-1]
    assert "GRANT pg_monitor" in found.found


FILES = {
    "journal": ({"journal_mode": "delete"}, "durability", "problem", "journal mode is delete"),
    "log": ({"wal_bytes": "300000000"}, "file", "warning", "log has grown to 300 MB"),
    "little room": ({"disk_free_bytes": "900000000"}, "file", "warning", "Only 900 MB are left"),
    "no room": ({"disk_free_bytes": "90000000"}, "file", "problem", "Only 90 MB are left"),
    "a hole": (
        {"freelist_count": "50000", "file_bytes": "300000000"},
        "file", "warning", "205 MB of the file's 300 MB are empty",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "check", "result", "says"), FILES.values(), ids=FILES)
def test_each_ill_sign_of_a_file_is_told(settings, check, result, says):
    ((where, how, found),) = told(judge_database(database("SQLite", settings=settings)))
    assert (where, how) == (check, result)
    assert says in found


def test_a_process_that_keeps_the_write_lock_is_a_problem():
    writer = session(SECOND, application="python", user="", state="writing")
    ((_, how, found),) = told(judge_database(database("SQLite", sessions=(writer,))))
    assert (how, found) == (
        "problem", "Process 77 (python) has held the write lock for at least 1 s.",
    )  # fmt: skip


@pytest.mark.parametrize(("ago", "warned"), [(59 * MINUTE, True), (61 * MINUTE, False)])
def test_a_long_wait_for_the_write_lock_within_the_hour_is_a_warning(ago, warned):
    noted = Unwritable(NOW - ago, 40 * SECOND)
    findings = told(judge_database(database("SQLite", unwritable=noted)))
    assert [found for _, _, found in findings] == [
        "Somebody waited 40 s to write, until 59 min ago."
    ] * warned
