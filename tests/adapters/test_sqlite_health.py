"""What an SQLite file and the system say of themselves, and that nobody is disturbed by asking."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tidemill.adapters import sqlite_look
from tidemill.adapters.sqlite import SqliteStore
from tidemill.adapters.sqlite_health import has_tables, writer_of
from tidemill.errors import StoreError
from tidemill.store.doctor import ReadClock
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import ListQueues
from tidemill.values.ids import JobId, uuid7
from tidemill.values.jobs import NewJob

LOCKS = Path("/proc/locks")
HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        store.migrate()
    return tmp_path / "jobs.db"


@pytest.fixture
def store(path):
    with closing(SqliteStore(path, auto_migrate=False)) as store:
        yield store


@pytest.fixture
def holder(path):
    """Another process, in the middle of a write transaction."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    yield process
    process.communicate("")


def test_a_file_tells_its_version_mode_and_sizes(store, path):
    health = store.examine()
    assert (health.product, health.place) == ("SQLite", str(path))
    assert health.settings["version"] == sqlite3.sqlite_version
    assert health.settings["journal_mode"] == "wal"
    assert int(health.settings["file_bytes"]) == path.stat().st_size
    assert int(health.settings["disk_free_bytes"]) > 0
    assert (health.sessions, health.tables, health.unwritable) == ((), (), None)


def test_the_process_that_keeps_the_write_lock_is_named(store, holder):
    (writer,) = store.examine().sessions
    assert writer.pid == holder.pid
    assert writer.application.startswith("python")
    assert writer.holds == "the write lock"


def test_a_process_that_has_let_go_of_the_lock_is_not_named(store, holder, path):
    holder.communicate("")
    assert store.examine().sessions == ()


def test_looking_for_the_writer_drops_no_lock_of_our_own(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            assert writer_of(path, LOCKS.read_text().splitlines()) == os.getpid()
            with (
                closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other,
                pytest.raises(sqlite3.OperationalError, match="locked"),
            ):
                other.execute("BEGIN IMMEDIATE")


@pytest.mark.parametrize("locks", [[], ["nonsense"], ["1: POSIX ADVISORY WRITE 7 fe:00:1 120 120"]])
def test_without_a_list_of_locks_nobody_is_named(path, locks):
    with closing(sqlite3.connect(path)) as db:
        db.execute("SELECT * FROM tidemill_meta").fetchall()
        assert writer_of(path, locks) is None


def test_the_note_of_a_long_wait_is_told(store, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(
            "INSERT INTO tidemill_meta VALUES ('unwritable_until', 1000000),"
            " ('unwritable_for', 2500000)"
        )
    noted = store.examine().unwritable
    assert (noted.until.timestamp(), noted.waited.total_seconds()) == (1, 2.5)


def files_beside(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_asking_changes_no_file_and_makes_none(path, mode):
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
    before = files_beside(path)
    with closing(SqliteStore(path)) as store:
        assert store.examine().settings["journal_mode"] == mode
        with store.looking() as look:
            look.perform(ReadClock())
    assert files_beside(path) == before


def test_the_log_that_a_crash_left_is_read_and_left(path, tmp_path):
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("INSERT INTO tidemill_queues VALUES ('mail', 1)")
        for file in path.parent.glob("jobs.db*"):
            shutil.copy(file, crashed)
    before = files_beside(crashed / "jobs.db")
    assert before["jobs.db-wal"]
    with closing(SqliteStore(crashed / "jobs.db")) as store, store.looking() as look:
        (queue,) = look.perform(ListQueues())
    assert (queue.queue, queue.paused) == ("mail", True)
    after = files_beside(crashed / "jobs.db")
    assert {name: after[name] for name in ("jobs.db", "jobs.db-wal")} == {
        name: before[name] for name in ("jobs.db", "jobs.db-wal")
    }


def test_who_looks_cannot_write(store):
    job = NewJob(id=JobId(uuid7(1, 1)), wire_name="t.job")
    with store.looking() as look, pytest.raises(StoreError, match="readonly"):
        look.perform(Enqueue((job,)))


def test_a_question_that_takes_too_long_is_given_up_and_the_next_is_asked(store, path, monkeypatch):
    with closing(sqlite3.connect(path)) as db, db:
        names = [(f"q{n}",) for n in range(2_000)]
        db.executemany("INSERT INTO tidemill_queues VALUES (?, 1)", names)
    monkeypatch.setattr(sqlite_look, "QUESTION", timedelta(0))
    with store.looking() as look:
        with pytest.raises(StoreError, match="took longer than it may"):
            look.perform(ListQueues())
        monkeypatch.setattr(sqlite_look, "QUESTION", timedelta(hours=1))
        assert len(look.perform(ListQueues())) == len(names)


def test_a_database_without_our_tables_is_told_with_its_version_zero(tmp_path):
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE letters (text)")
    with closing(SqliteStore(path, auto_migrate=False)) as store:
        assert store.examine().schema.version == 0
    assert has_tables(path) is False


def test_a_database_of_ours_has_tables_and_of_other_files_nothing_is_told(path, tmp_path):
    (tmp_path / "notes.txt").write_text("no database " * 100)
    assert has_tables(path) is True
    assert has_tables(tmp_path / "notes.txt") is None
    assert has_tables(tmp_path / "missing.db") is None
    assert not (tmp_path / "missing.db").exists()


def test_a_file_that_is_no_database_is_an_error_that_says_so(tmp_path):
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with (
        closing(SqliteStore(tmp_path / "notes.txt")) as store,
        pytest.raises(StoreError, match="not an SQLite database"),
    ):
        store.examine()
