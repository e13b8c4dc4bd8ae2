"""The app's store is stood in for, for the lifetime of a harness and no longer (clause N1)."""

from pathlib import Path
from typing import Any

import pytest

from tidemill import JobGroup, Tidemill
from tidemill.errors import StoreNotConfigured
from tidemill.store.memory import MemoryStore, VirtualClock
from tidemill.testing import Harness


class Closed(MemoryStore):
    """Remembers that it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def test_everything_of_the_app_goes_to_the_harness(mill: Tidemill) -> None:
    group = JobGroup("group.")

    @group.job("job")
    def job() -> None:
        """Do nothing."""

    mill.include(group)
    with Harness(mill) as h:
        assert mill.store is h.store
        ref = job.sync.enqueue()
        mill.sync.enqueue_many([job.bind()])
        assert mill.jobs.sync.get(ref).record.wire_name == "group.job"
        assert len(h.sync.jobs()) == 2


def test_the_apps_own_store_is_neither_opened_nor_closed(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    mill = Tidemill(f"sqlite:///{path}")

    @mill.job("job")
    def job() -> None:
        """Do nothing."""

    with Harness(mill):
        job.sync.enqueue()
        mill.close()
    assert not path.exists()
    job.sync.enqueue()
    assert path.exists()
    mill.close()


@pytest.mark.parametrize("leave", ["by the end", "by an error"])
def test_the_app_has_its_store_back(leave: str) -> None:
    own = Closed(VirtualClock())
    mill = Tidemill(store=own)
    try:
        with Harness(mill):
            assert mill.store is not own
            if leave == "by an error":
                raise KeyError
    except KeyError:
        pass
    assert mill.store is own
    assert not own.closed


def test_an_app_without_a_store_has_none_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMILL_STORE", raising=False)
    mill = Tidemill()

    @mill.job("job")
    def job() -> None:
        """Do nothing."""

    with Harness(mill):
        job.sync.enqueue()
    with pytest.raises(StoreNotConfigured):
        job.sync.enqueue()


def test_harnesses_may_be_nested(mill: Tidemill) -> None:
    @mill.job("job")
    def job() -> None:
        """Do nothing."""

    with Harness(mill) as outer:
        job.sync.enqueue()
        with Harness(mill) as inner:
            assert inner.sync.jobs() == []
            job.sync.enqueue()
            job.sync.enqueue()
            assert inner.sync.run_until_idle() == 2
        assert mill.store is outer.store
        assert len(outer.enqueued(job)) == 1
        assert outer.sync.run_until_idle() == 1


def test_start_up_code_that_configures_the_app_does_not_reach_the_real_store(
    tmp_path: Path,
) -> None:
    mill = Tidemill()

    @mill.job("job")
    def job() -> None:
        """Do nothing."""

    with Harness(mill) as h:
        mill.configure(f"sqlite:///{tmp_path}/jobs.db")
        job.sync.enqueue()
        assert len(h.enqueued(job)) == 1
    assert mill.jobs.sync.list().jobs == ()
    mill.close()
    assert (tmp_path / "jobs.db").exists()


def test_what_was_configured_meanwhile_replaces_and_closes_what_was_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[object] = []
    mill = Tidemill(f"sqlite:///{tmp_path}/before.db")
    mill.jobs.sync.counts()
    before: Any = mill.store
    close = before.close
    monkeypatch.setattr(before, "close", lambda: closed.append(close()))
    with Harness(mill):
        mill.configure(f"sqlite:///{tmp_path}/after.db")
    assert mill.store is not before
    assert len(closed) == 1
    mill.jobs.sync.counts()
    assert (tmp_path / "after.db").exists()
    mill.close()


def test_a_reference_still_answers_when_its_harness_is_gone(mill: Tidemill) -> None:
    @mill.job("job")
    def job() -> int:
        return 1

    with Harness(mill) as h:
        ref = job.sync.enqueue()
        h.sync.run_until_idle()
    assert ref.sync.result() == 1


def test_the_modules_an_app_imports_are_known() -> None:
    mill = Tidemill(imports=["tests_of_nowhere"])
    with pytest.raises(Exception, match="tests_of_nowhere"), Harness(mill):
        pass
    with pytest.raises(Exception, match="tests_of_nowhere"), Harness(mill):
        pass
