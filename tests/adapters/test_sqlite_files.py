"""Where a store may live."""

from datetime import timedelta
from pathlib import Path

import pytest

from tidemill.adapters.sqlite import SqliteStore
from tidemill.adapters.sqlite_channel import BUSY
from tidemill.adapters.sqlite_files import (
    BUSY_TIMEOUT,
    Settings,
    path_of,
    refuse_network,
    settings_of,
)
from tidemill.config import open_store
from tidemill.errors import ConfigurationError
from tidemill.shell.settings import WorkerSettings
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import CountJobs
from tidemill.values.bounds import Bounds


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:///a/b.db", "a/b.db"),
        ("sqlite:////srv/jobs.db", "/srv/jobs.db"),
        ("sqlite:///with%20space.db", "with space.db"),
    ],
)
def test_a_url_names_a_file(url, path):
    assert path_of(url) == Path(path)


@pytest.mark.parametrize(
    "url",
    ["sqlite://jobs.db", "sqlite:///", "sqlite:///:memory:", "sqlite:///x.db#a", "mysql:///x"],
)
def test_a_url_that_names_no_file_is_refused(url):
    with pytest.raises(ConfigurationError):
        path_of(url)


def test_a_url_that_says_no_more_than_its_file_means_the_defaults():
    settings = settings_of("sqlite:///jobs.db")
    assert settings == Settings(Path("jobs.db"), "NORMAL", BUSY_TIMEOUT)


@pytest.mark.parametrize(
    ("said", "synchronous", "wait"),
    [
        ("synchronous=FULL", "FULL", BUSY_TIMEOUT),
        ("synchronous=normal", "NORMAL", BUSY_TIMEOUT),
        ("busy_timeout=250ms", "NORMAL", timedelta(milliseconds=250)),
        ("busy_timeout=1m&synchronous=full", "FULL", timedelta(minutes=1)),
    ],
)
def test_a_url_may_say_how_its_file_is_used(said, synchronous, wait):
    settings = settings_of(f"sqlite:////srv/with%20space.db?{said}")
    assert settings == Settings(Path("/srv/with space.db"), synchronous, wait)
    assert path_of(f"sqlite:////srv/with%20space.db?{said}") == settings.path


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("a=b", "'a' .* is not known; known are synchronous, busy_timeout"),
        ("Synchronous=FULL", "is not known"),
        ("synchronous=OFF", "'OFF' cannot work: it is NORMAL"),
        ("synchronous=", "'' cannot work"),
        ("synchronous=FULL&synchronous=FULL", "given twice"),
        ("busy_timeout=5", "its unit"),
        ("busy_timeout=0s", "longer than nothing"),
    ],
)
def test_a_url_that_says_something_that_cannot_work_is_refused_with_what_can(said, why):
    with pytest.raises(ConfigurationError, match=why):
        settings_of(f"sqlite:///x.db?{said}")


@pytest.mark.parametrize(("said", "level"), [("", 1), ("?synchronous=FULL", 2)])
def test_every_connection_of_a_store_keeps_what_its_url_said(tmp_path, said, level):
    store = SqliteStore.from_url(f"sqlite:///{tmp_path}/jobs.db{said}")

    def asked(channel):
        return channel._connection.execute("PRAGMA synchronous").fetchone()[0]

    store.perform_sync(CountJobs())
    threads = store._opened
    assert [each.submit(asked).result() for each in (threads.writer, threads.reader)] == [level] * 2
    with store.dedicated() as channel:
        assert asked(channel) == level
    store.close()


def test_an_app_takes_the_url_that_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///orders.db?synchronous=FULL", Bounds(), VirtualClock())
    assert store.perform_sync(CountJobs()) == ()
    assert [file.name for file in tmp_path.glob("*.db*") if "-" not in file.name] == ["orders.db"]
    store.close()


def test_two_calls_that_wait_for_the_lock_in_a_row_end_within_the_delivery_time_out():
    longest = BUSY.most * (BUSY_TIMEOUT + timedelta(seconds=BUSY.longest))
    assert 2 * longest < WorkerSettings().delivery_timeout


def test_a_store_is_made_from_a_url(tmp_path):
    store = SqliteStore.from_url(f"sqlite:///{tmp_path}/jobs.db")
    assert store.perform_sync(CountJobs()) == ()
    assert (tmp_path / "jobs.db").exists()
    store.close()


MOUNTS = ["/dev/sda1 / ext4 rw 0 0", "server:/x /mnt/shared\\040disk nfs4 rw 0 0",
          "/dev/sdb1 /mnt/shared\\040disk/local xfs rw 0 0"]  # fmt: skip


def test_a_network_file_system_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"nfs4.*local disk"):
        refuse_network(Path("/mnt/shared disk/jobs.db"), MOUNTS)


@pytest.mark.parametrize("path", ["/srv/jobs.db", "/mnt/shared disk/local/jobs.db"])
def test_a_local_disk_is_taken_even_beneath_a_network_one(path):
    refuse_network(Path(path), MOUNTS)


def test_a_relative_path_keeps_its_file_when_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("jobs.db")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    store.perform_sync(CountJobs())
    assert (tmp_path / "jobs.db").exists()
    store.close()
