"""A database file that is removed or replaced under a running process: never unnoticed (M3)."""

import logging
import sqlite3
from pathlib import Path

import pytest
from tests.adapters.conftest import LEASE
from tests.waiting import until

from tidemill import Tidemill
from tidemill.adapters.sqlite import SqliteStore
from tidemill.errors import StoreUnavailable
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat
from tidemill.store.monitor import CountJobs, ListJobs


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)


def make(path: Path) -> None:
    """A database of Tidemill's beside, moved into place, as a backup is."""
    beside = path.with_suffix(".new")
    store = SqliteStore(beside)
    store.migrate()
    store.close()
    beside.replace(path)


def count(store) -> int:
    return sum(each.count for each in store.perform_sync(CountJobs()))


@pytest.mark.parametrize("ask", ["write", "read", "beat"])
def test_a_removed_file_is_told_at_the_next_call_and_not_made_again(
    bench, store, path, ask, caplog
):
    bench.enqueue(bench.job())
    worker = bench.register()
    with store.dedicated() as heart:
        heart.perform(Beat(worker=worker, lease=LEASE))
        count(store)
        remove(path)
        calls = {
            "write": lambda: bench.enqueue(bench.job()),
            "read": lambda: count(store),
            "beat": lambda: heart.perform(Beat(worker=worker, lease=LEASE)),
        }
        with pytest.raises(
            StoreUnavailable, match=r"jobs\.db was removed.*`tidemill migrate --store "
        ):
            calls[ask]()
        assert "jobs.db was removed" in caplog.text
        with pytest.raises(StoreUnavailable, match=r"jobs\.db is gone"):
            calls[ask]()
    with pytest.raises(StoreUnavailable, match=r"is gone"), store.dedicated():
        pass
    assert not path.exists()


def test_another_file_of_tidemill_is_used_after_one_loud_error(bench, store, path):
    bench.enqueue(bench.job(), bench.job())
    remove(path)
    make(path)
    fresh = bench.job()
    with pytest.raises(StoreUnavailable, match="replaced by another file"):
        bench.enqueue(fresh)
    bench.enqueue(fresh)
    assert [job.id for job in store.perform_sync(ListJobs()).jobs] == [fresh.id]


def test_a_file_that_was_put_back_is_used_again(bench, store, path):
    job = bench.job()
    bench.enqueue(job)
    store.perform_sync(CountJobs())
    kept = path.with_suffix(".kept")
    with sqlite3.connect(path) as connection:
        connection.execute("VACUUM INTO ?", (str(kept),))
    connection.close()
    remove(path)
    with pytest.raises(StoreUnavailable):
        count(store)
    kept.replace(path)
    assert count(store) == 1
    with pytest.raises(StoreUnavailable):
        bench.enqueue(job)
    assert bench.enqueue(job)[0].repeated


def test_an_empty_file_in_its_place_is_not_filled_by_a_running_process(bench, store, path):
    bench.enqueue(bench.job())
    remove(path)
    path.touch()
    with pytest.raises(StoreUnavailable, match="replaced by another file"):
        bench.enqueue(bench.job())
    with pytest.raises(StoreUnavailable, match="without Tidemill's tables"):
        bench.enqueue(bench.job())
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()
    other = SqliteStore(path)
    other.migrate()
    other.close()
    bench.enqueue(bench.job())
    assert count(store) == 1


def test_to_let_go_of_a_replaced_file_leaves_the_new_one_and_its_log_alone(bench, store, path):
    bench.enqueue(bench.job())
    remove(path)
    make(path)
    other = SqliteStore(path)
    kept = bench.job()
    other.perform_sync(Enqueue((kept,)))
    with pytest.raises(StoreUnavailable):
        bench.enqueue(bench.job())
    store.close()
    assert [job.id for job in other.perform_sync(ListJobs()).jobs] == [kept.id]
    other.close()


@pytest.mark.anyio
async def test_a_worker_outlives_a_removed_file_and_goes_on_with_another(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="tidemill")
    path = tmp_path / "lost.db"
    mill = Tidemill(f"sqlite:///{path}")

    @mill.job("t.write")
    async def write() -> None: ...

    async with mill.worker(lease="3s", poll_interval="50ms"):
        await (await write.enqueue()).result(timeout=60)
        remove(path)
        await until(lambda: "The store does not answer" in caplog.text)
        await until(lambda: "had no answer" in caplog.text)
        assert not path.exists()
        make(path)
        await until(lambda: "The store answers again" in caplog.text)
        await (await write.enqueue()).result(timeout=60)
    assert "was removed while it was open" in caplog.text
