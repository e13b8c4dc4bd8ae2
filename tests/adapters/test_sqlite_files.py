"""Where a store may live."""

from pathlib import Path

import pytest

from tidemill.adapters.sqlite import SqliteStore
from tidemill.adapters.sqlite_files import path_of, refuse_network
from tidemill.errors import ConfigurationError
from tidemill.store.monitor import CountJobs


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
    ["sqlite://jobs.db", "sqlite:///", "sqlite:///:memory:", "sqlite:///x.db?a=b", "mysql:///x"],
)
def test_a_url_that_names_no_file_is_refused(url):
    with pytest.raises(ConfigurationError):
        path_of(url)


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
