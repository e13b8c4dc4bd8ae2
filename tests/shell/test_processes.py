"""Handlers in processes: what they say comes back, and what befalls them befalls nobody else."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from uuid import UUID

import pytest
from tests.shell import process_app as app
from tests.waiting import until

from tidemill import Retry, Tidemill
from tidemill.errors import DeclarationError
from tidemill.store.monitor import GetJob
from tidemill.testing import Harness
from tidemill.values.ids import JobId
from tidemill.values.tags import Tag

pytestmark = pytest.mark.skipif(os.name != "posix", reason="handler processes need POSIX")
ENOUGH = 60


def is_gone(pid: int) -> bool:
    """Whether no such process runs; one that nobody has waited for runs no more."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state in {"Z", "X"}


@pytest.fixture
def mill(tmp_path, monkeypatch):
    # pytest imports tests without this, and processes import as a program does.
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    app.mill.configure(f"sqlite:///{tmp_path}/jobs.db")
    app.mill.store.migrate()
    yield app.mill
    app.mill.close()


class Running:
    """A worker at work, and what became of jobs."""

    def __init__(self, mill, path):
        self.mill = mill
        self.path = path
        self.told = 0

    def place(self):
        self.told += 1
        return self.path / f"told-{self.told}"

    async def said(self, place):
        """What a handler has written there, when it has."""
        await until(place.exists)
        return [int(word) for word in place.read_text().split()]

    async def result(self, handle, *args):
        return await (await handle.enqueue(*args)).result(timeout=ENOUGH)

    def details(self, ref):
        return self.mill.store.perform_sync(GetJob(getattr(ref, "id", ref)))

    async def end(self, ref):
        """How a job stands when it runs no more: its state, and the error of its last attempt."""
        await until(lambda: self.details(ref).state.value not in {"ready", "running"})
        return self.seen(ref)

    def seen(self, ref):
        details = self.details(ref)
        error = details.attempts[-1].error if details.attempts else None
        return details.state.value, error


@pytest.fixture
def running(mill, tmp_path):
    return Running(mill, tmp_path)


async def test_a_handler_runs_on_the_main_thread_of_a_process_that_is_used_again(running):
    async with running.mill.worker():
        pid, on_main_thread, stdin_is_empty = await running.result(app.where)
        assert (on_main_thread, stdin_is_empty) == (True, True)
        assert pid != os.getpid()
        assert await running.result(app.describe_async) == pid
        assert (await running.result(app.where))[0] == pid
    assert is_gone(pid)


async def test_a_context_works_there_and_what_it_adds_comes_back(running):
    async with running.mill.worker():
        ref = await app.describe.with_options(tenant="acme").enqueue("on")
        assert await ref.result(timeout=ENOUGH) == {
            "attempt": "1", "job": str(ref.id), "tenant": "acme", "deadline": "None", "word": "on",
        }  # fmt: skip
        other = await app.describe_async.enqueue()
        await other.result(timeout=ENOUGH)
    assert running.details(ref).tags == {Tag("said", "on")}
    assert running.details(other).tags == {Tag("said", "later")}


async def test_attempts_that_run_at_once_run_in_processes_of_their_own_and_no_more_than_slots(
    running,
):
    gates = [running.place() for _ in range(2)]
    for gate in gates:
        os.mkfifo(gate)
    async with running.mill.worker(concurrency=2):
        told = [running.place() for _ in gates]
        refs = [
            await app.gate.enqueue(str(place), str(gate))
            for place, gate in zip(told, gates, strict=True)
        ]
        pids = {pid for place in told for pid in await running.said(place)}
        assert len(pids) == 2
        for gate in gates:
            os.close(os.open(gate, os.O_WRONLY))
        assert {await ref.result(timeout=ENOUGH) for ref in refs} == pids
        later = [await running.result(app.where) for _ in range(3)]
        assert {pid for pid, _, _ in later} <= pids


@pytest.mark.parametrize(
    ("how", "state", "error"),
    [
        ("error", "dead", "LookupError: no such order"),
        ("exit", "dead", "SystemExit: 3"),
        ("discard", "dead", "tidemill.values.wishes.Discard: worthless"),
        ("snooze", "scheduled", None),
        ("again", "scheduled", "tidemill.values.wishes.RetryAfter"),
    ],
)
async def test_what_a_handler_raises_means_what_it_means_elsewhere(running, how, state, error):
    handle = app.fail if how != "again" else app.fail.with_options(retry=Retry())
    async with running.mill.worker():
        ended, kept = await running.end(await handle.enqueue(how))
    assert ended == state
    if error is None:
        assert kept is None
    else:
        assert f"{kept.kind}: {kept.message}".startswith(error)
        assert "in fail" in kept.detail
        assert "tidemill/shell" not in kept.detail


async def test_an_error_that_is_no_plain_data_is_told_as_text(running):
    async with running.mill.worker():
        state, error = await running.end(await app.local_error.enqueue())
        pid = (await running.result(app.where))[0]
    assert state == "dead"
    assert not is_gone(os.getpid())
    assert is_gone(pid)
    assert "local_error.<locals>" in f"{error.kind} {error.message}"


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("exit", "ended with exit code 3 before the handler was done"),
        ("kill", "was ended by SIGKILL; the system does so when memory runs out"),
        ("segfault", "was ended by SIGSEGV."),
    ],
)
async def test_a_process_that_dies_fails_its_own_attempt_and_nothing_else(running, how, told):
    gate, place = running.place(), running.place()
    os.mkfifo(gate)
    async with running.mill.worker(concurrency=2):
        neighbour = await app.gate.enqueue(str(place), str(gate))
        (pid,) = await running.said(place)
        ref = await app.die.enqueue(how)
        state, error = await running.end(ref)
        assert (state, error.kind) == ("dead", "tidemill.ProcessEnded")
        assert told in error.message
        assert running.details(ref).record.failures == 1
        os.close(os.open(gate, os.O_WRONLY))
        assert await neighbour.result(timeout=ENOUGH) == pid
        assert (await running.result(app.where))[1] is True


async def test_a_policy_that_names_exception_tries_again_after_a_process_has_died(running):
    policy = Retry.fixed("1h", max_attempts=2, retry_on=(Exception,))
    async with running.mill.worker():
        state, error = await running.end(await app.die.with_options(retry=policy).enqueue("exit"))
    assert (state, error.kind) == ("scheduled", "tidemill.ProcessEnded")


async def test_a_process_that_has_died_unseen_costs_no_attempt(running):
    async with running.mill.worker():
        pid = (await running.result(app.where))[0]
        os.kill(pid, signal.SIGKILL)
        await until(lambda: is_gone(pid))
        ref = await app.where.enqueue()
        assert (await ref.result(timeout=ENOUGH))[0] != pid
    assert running.details(ref).attempt == 1


async def test_a_request_to_stop_is_seen_while_a_handler_computes(running):
    place, other = running.place(), running.place()
    async with running.mill.worker():
        ref = await app.wait.enqueue(str(place))
        (pid,) = await running.said(place)
        await running.mill.jobs.cancel(ref, actor="ada")
        assert (await running.end(ref))[0] == "cancelled"
        ref = await app.finish_anyway.enqueue(str(other))
        assert await running.said(other) == [pid]
        await running.mill.jobs.cancel(ref, actor="ada")
        assert await ref.result(timeout=ENOUGH) == "operator"


async def test_a_coroutine_in_a_process_is_interrupted_and_its_process_used_again(running):
    place = running.place()
    async with running.mill.worker():
        ref = await app.wait_async.enqueue(str(place))
        (pid,) = await running.said(place)
        await running.mill.jobs.cancel(ref, actor="ada")
        assert (await running.end(ref))[0] == "cancelled"
        assert (await running.result(app.where))[0] == pid


async def test_a_handler_that_does_not_stop_is_killed_with_all_it_has_started(running, caplog):
    place = running.place()
    async with running.mill.worker(concurrency=1, kill_after="100ms"):
        ref = await app.deaf.enqueue(str(place))
        pids = await running.said(place)
        assert len(pids) == 2
        await running.mill.jobs.cancel(ref, actor="ada")
        assert (await running.end(ref))[0] == "cancelled"
        assert is_gone(pids[0])
        await until(lambda: is_gone(pids[1]))
        assert (await running.result(app.where))[0] not in pids
    assert f"its process {pids[0]} is killed" in caplog.text


async def test_a_handler_that_is_killed_for_its_timeout_has_failed_by_it(running, caplog):
    async with running.mill.worker(kill_after="0s"):
        ref = await app.deaf.with_options(timeout="100ms").enqueue(str(running.place()))
        state, error = await running.end(ref)
    assert (state, error.kind) == ("dead", "tidemill.HandlerTimeout")
    assert running.details(ref).record.failures == 1


async def test_a_shutdown_gives_back_what_does_not_stop_and_leaves_no_process(running):
    place = running.place()
    worker = running.mill.worker(grace="0s", kill_after="0s")
    await worker.start()
    ref = await app.deaf.enqueue(str(place))
    pids = await running.said(place)
    await worker.stop()
    record = running.details(ref).record
    assert (record.state.value, record.failures, record.lapses) == ("ready", 0, 0)
    assert is_gone(pids[0])
    await until(lambda: is_gone(pids[1]))


async def test_a_worker_that_is_out_of_patience_kills_what_still_runs(running):
    place = running.place()
    worker = running.mill.worker(grace="0s", patience="0s", kill_after="1h")
    await worker.start()
    ref = await app.deaf.enqueue(str(place))
    pid, _ = await running.said(place)
    await worker.stop()
    assert running.seen(ref) == ("ready", None)
    assert is_gone(pid)


async def test_what_a_handler_logs_and_prints_comes_out_of_the_worker(running, caplog, capfd):
    caplog.set_level(logging.INFO, "orders")
    async with running.mill.worker():
        await running.result(app.log, "on")
    assert [each.getMessage() for each in caplog.records if each.name == "orders"] == ["heard on"]
    assert capfd.readouterr().out == "printed on\n"


async def test_a_log_record_that_carries_what_cannot_be_read_is_heard_without_it(running, caplog):
    async with running.mill.worker():
        assert await running.result(app.log_error) == "done"
    said = [each for each in caplog.records if each.name == "orders"]
    assert [(each.levelname, each.getMessage()) for each in said] == [("WARNING", "refused")]
    assert said[0].funcName == "log_error"


async def test_a_handler_that_has_left_its_process_group_is_killed_too(running):
    async with running.mill.worker(kill_after="100ms"):
        place = running.place()
        ref = await app.leave_group.enqueue(str(place))
        (pid,) = await running.said(place)
        await running.mill.jobs.cancel(ref, actor="ada")
        assert (await running.end(ref))[0] == "cancelled"
    assert is_gone(pid)


async def test_a_process_that_becomes_another_program_is_said_to_have_hung_up(running):
    async with running.mill.worker():
        state, error = await running.end(await app.become.enqueue())
    assert (state, error.kind) == ("dead", "tidemill.ProcessEnded")
    assert "became another program" in error.message
    assert "memory" not in error.message


async def test_a_handler_may_fork_and_only_its_own_process_reports(running):
    async with running.mill.worker():
        pid = await running.result(app.fork)
        assert (await running.result(app.where))[0] == pid


async def test_a_handler_may_have_processes_of_its_own_that_obey_it(running):
    async with running.mill.worker():
        assert await running.result(app.own_processes) == (1, 1, -signal.SIGTERM)


async def test_a_handler_enqueues_into_the_store_of_its_worker(running):
    async with running.mill.worker():
        job_id = await running.result(app.enqueue)
        assert running.details(JobId(UUID(job_id))) is not None


async def test_methods_are_called_there_on_what_their_scope_gives(running):
    async with running.mill.worker():
        pid, said = await running.result(app.Clerk.file, "on")
        assert (pid == os.getpid(), said) == (False, "Clerk filed on")
        ref = await app.Clerk.file_async.enqueue()
        assert await ref.result(timeout=ENOUGH) == (pid, "Clerk")
    assert running.details(ref).tags == {Tag("filed", "")}


async def test_context_variables_of_one_attempt_are_not_seen_by_the_next(running):
    async with running.mill.worker():
        assert await running.result(app.variable) == "unset"
        assert await running.result(app.variable) == "unset"


async def test_an_app_that_cannot_be_imported_there_fails_the_attempt_with_its_error(
    running, monkeypatch
):
    monkeypatch.setenv("PROCESS_APP_IS_BROKEN", str(os.getpid()))
    async with running.mill.worker():
        state, error = await running.end(await app.where.enqueue())
        assert (state, error.kind) == ("dead", "ImportError")
        assert "could not load the application" in error.message
        assert "the application is being deployed" in error.message
        monkeypatch.delenv("PROCESS_APP_IS_BROKEN")
        assert (await running.result(app.where))[1] is True


async def test_a_job_that_only_the_worker_knows_fails_and_can_be_tried_elsewhere(
    running, monkeypatch
):
    async with running.mill.worker():
        assert await running.result(app.old) == sys.argv[0]
    monkeypatch.setenv("PROCESS_APP_IS_NEWER", str(os.getpid()))
    async with running.mill.worker():
        ref = await app.old.with_options(retry=Retry.fixed("1h", max_attempts=2)).enqueue()
        state, error = await running.end(ref)
    assert (state, error.kind) == ("scheduled", "tidemill.NoHandler")
    assert "Restart the worker." in error.message


async def test_a_handler_process_starts_no_worker(running):
    async with running.mill.worker():
        state, error = await running.end(await app.start_worker.enqueue())
    assert state == "dead"
    assert '`if __name__ == "__main__":`' in error.message


async def test_an_app_that_no_process_could_find_is_refused_when_its_worker_starts(tmp_path):
    hidden = Tidemill(f"sqlite:///{tmp_path}/jobs.db")
    hidden.job("where", executor="process")(app.where.function)
    worker = hidden.worker()
    with pytest.raises(DeclarationError, match="in no variable of a module"):
        await worker.start()
    hidden.close()


def test_the_harness_runs_it_in_the_test_and_still_encodes():
    with Harness(app.mill) as harness:
        refs = [app.describe_async.sync.enqueue(), app.describe.sync.enqueue("on")]
        assert harness.sync.run_until_idle() == 2
        pid, said = (harness.sync.job(ref.id).output for ref in refs)
    assert pid == os.getpid()
    assert said["word"] == "on"
