"""What is said around a program in a transaction of the user's, and in which order."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tidemill.bridges.course import course_of
from tidemill.drivers.footing import Footing
from tidemill.drivers.run_inside import Say, run_inside
from tidemill.sql.catalogue import Catalogue
from tidemill.sql.dialects.postgres import PostgresDialect
from tidemill.sql.dialects.sqlite import SqliteDialect
from tidemill.sql.program import Batch, Statement
from tidemill.sql.programs.env import Env
from tidemill.store.complete import Complete
from tidemill.store.enqueue import Enqueue
from tidemill.values.bounds import DEFAULT_BOUNDS
from tidemill.values.ids import Attempt, JobId, WorkerId, uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.tags import Tag

WAIT = timedelta(seconds=3)
UNDER_THE_BOUND = ["bound_lock_wait", "restore_lock_wait"]
IN_A_SAVEPOINT = ["SAVEPOINT tidemill", "RELEASE SAVEPOINT tidemill"]


def job(number: int = 1, **options: Any) -> NewJob:
    return NewJob(id=JobId(uuid7(number, 7)), wire_name="t.job", **options)


class Empty:
    """A connection to an empty store, which notes what is said to it."""

    def __init__(self, now: object, **answers: Any) -> None:
        self.said: list[str] = []
        self.answers = {
            "clock": [{"now": now}],
            "stored_jobs": [],
            "key_holders": [],
            "bound_lock_wait": [{"setting": "0", "bounded": "3000ms"}],
            **answers,
        }

    def step(self, act: Any) -> Any:
        name = act.sql if isinstance(act, Say) else act.name
        self.said.append(name)
        rows = len(act.rows) if isinstance(act, Batch) else 1
        return self.answers.get(name, [{"count": rows, "id": UUID(int=1)}])


class Failing(Empty):
    """One on which a statement fails; with `aborted`, all that follows it does too."""

    def __init__(self, name: str, *, aborted: bool) -> None:
        super().__init__(datetime(2026, 3, 1, tzinfo=UTC))
        self.name = name
        self.aborted = aborted

    def step(self, act: Any) -> Any:
        rows = super().step(act)
        if self.said[-1] == self.name or (self.aborted and self.name in self.said):
            raise TimeoutError(self.said[-1])
        return rows


class OnServer:
    """A store on PostgreSQL that notifies."""

    def __init__(self) -> None:
        dialect = PostgresDialect()
        self.footing = Footing(
            database="PostgreSQL",
            catalogue=Catalogue(dialect),
            env=Env(dialect, DEFAULT_BOUNDS),
            clock=None,
            lock_wait=WAIT,
            riding=lambda _operation, _answer: (Statement("notify", {"channel": "wake"}),),
        )

    def said(self, operation: Any, **answers: Any) -> list[str]:
        connection = Empty(datetime(2026, 3, 1, tzinfo=UTC), **answers)
        run_inside(course_of(operation, self.footing, WAIT), connection)
        assert connection.said.pop() == "notify"
        return connection.said


def test_a_plain_job_is_one_statement() -> None:
    assert OnServer().said(Enqueue((job(),))) == ["insert_one"]


def test_a_job_with_a_key_is_bounded_and_needs_no_savepoint() -> None:
    said = OnServer().said(Enqueue((job(idempotency_key="k"),)))
    assert [said[0], said[-1]] == UNDER_THE_BOUND
    assert said[1:-1] == ["clock", "stored_jobs", "key_holders", "insert_job"]


def test_a_bound_that_is_tighter_already_is_left_and_not_said_again() -> None:
    tighter = [{"setting": "1s", "bounded": None}]
    said = OnServer().said(Enqueue((job(idempotency_key="k"),)), bound_lock_wait=tighter)
    assert "restore_lock_wait" not in said


@pytest.mark.parametrize("tags", [frozenset(), frozenset({Tag("vip", "")})], ids=["many", "tags"])
def test_what_writes_more_than_once_is_in_a_savepoint(tags: frozenset[Tag]) -> None:
    jobs = (job(1, tags=tags),) if tags else (job(1), job(2))
    said = OnServer().said(Enqueue(jobs))
    assert [said[0], said[-1]] == IN_A_SAVEPOINT
    assert "bound_lock_wait" not in said


@pytest.mark.parametrize("aborted", [False, True])
def test_what_was_written_before_a_failure_is_undone_where_the_server_has_not_done_so(
    aborted: bool,
) -> None:
    """A driver may fail by itself, as at the end of a time-out of its own."""
    jobs = (job(1, tags=frozenset({Tag("vip", "")})), job(2))
    connection = Failing("insert_tag", aborted=aborted)
    with pytest.raises(TimeoutError, match="insert_tag"):
        run_inside(course_of(Enqueue(jobs), OnServer().footing, WAIT), connection)
    undone = ["ROLLBACK TO SAVEPOINT tidemill", "RELEASE SAVEPOINT tidemill"]
    after = connection.said[connection.said.index("insert_tag") + 1 :]
    assert after == ["SAVEPOINT tidemill_alive", *([] if aborted else undone)]


def test_a_drivers_own_failure_leaves_the_users_lock_timeout() -> None:
    connection = Failing("insert_job", aborted=False)
    with pytest.raises(TimeoutError, match="insert_job"):
        run_inside(
            course_of(Enqueue((job(1, idempotency_key="k"),)), OnServer().footing, WAIT), connection
        )
    assert connection.said[-1] == "restore_lock_wait"


def test_many_with_a_key_are_both() -> None:
    said = OnServer().said(Enqueue((job(1, idempotency_key="k"), job(2))))
    assert [said[0], said[-1]] == IN_A_SAVEPOINT
    assert [said[1], said[-2]] == UNDER_THE_BOUND


def test_a_completion_is_bounded_and_needs_no_savepoint() -> None:
    worker = WorkerId(uuid7(1, 1))
    said = OnServer().said(Complete(job_id=job().id, attempt=Attempt(1), worker=worker))
    assert said == [UNDER_THE_BOUND[0], "complete_job", UNDER_THE_BOUND[1]]


def test_on_sqlite_the_write_lock_comes_before_all_reading(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.touch()
    dialect = SqliteDialect()
    footing = Footing(
        database="SQLite",
        catalogue=Catalogue(dialect),
        env=Env(dialect, DEFAULT_BOUNDS),
        clock=None,
        lock_wait=WAIT,
        file=path,
    )
    connection = Empty(1, joined_file=[{"file": str(path)}], busy_timeout=[{"timeout": 5000}])
    run_inside(course_of(Enqueue((job(),)), footing, WAIT), connection)
    assert connection.said == [
        "joined_file",
        "busy_timeout",
        "PRAGMA busy_timeout = 3000",
        "take_write_lock",
        "PRAGMA busy_timeout = 5000",
        "SAVEPOINT tidemill",
        "clock",
        "stored_jobs",
        "insert_job",
        "RELEASE SAVEPOINT tidemill",
    ]
