"""Waiting for a result."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from tidemill import JobNotSucceeded, JobRef, ResultTimeout, Tidemill
from tidemill.errors import DecodingError, NotFound, StoreError
from tidemill.shell.identity import new_id
from tidemill.store.contract import Operation
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Register
from tidemill.store.memory import MemoryStore, VirtualClock
from tidemill.store.monitor import GetEnd, GetJob
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import JobId, WorkerId
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.workers import WorkerInfo


@dataclass
class Receipt:
    amount: int


class Looked(MemoryStore):
    """Tells when somebody has looked how a job stands."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.looks = 0
        self.on_look: Callable[[], None] = lambda: None

    def perform_sync(self, operation: Operation[Any]) -> Any:
        answer = super().perform_sync(operation)
        if isinstance(operation, GetEnd):
            self.looks += 1
            self.on_look()
        return answer


@pytest.fixture
def store(clock: VirtualClock) -> Looked:
    return Looked(clock)


def end(
    store: MemoryStore,
    verdict: Verdict,
    output: bytes | None = None,
    error: ErrorInfo | None = None,
) -> None:
    """Claim the one job there is and end it."""
    worker = WorkerId(new_id())
    info = WorkerInfo(
        id=worker,
        host="h",
        pid=1,
        version="1",
        queues=("default",),
        wire_names=frozenset({"sell"}),
        slots=1,
    )
    store.perform_sync(Register(info=info, lease=timedelta(minutes=1)))
    claim = ClaimRequest(shares=(Share("default", 1),), limit=1, wire_names=None)
    (job,) = store.perform_sync(Exchange(worker=worker, claim=claim)).claimed
    if verdict is not Verdict.SUCCEEDED:
        error = error or ErrorInfo("E", "broken")
    outcome = Outcome(
        job_id=job.id, attempt=job.attempt, verdict=verdict, output=output, error=error
    )
    store.perform_sync(Exchange(worker=worker, outcomes=(outcome,)))


def enqueued(mill: Tidemill) -> JobRef[Receipt]:
    @mill.job("sell")
    def sell() -> Receipt:
        return Receipt(1)

    refs: list[JobRef[Receipt]] = []
    outside_the_loop = threading.Thread(target=lambda: refs.append(sell.sync.enqueue()))
    outside_the_loop.start()
    outside_the_loop.join()
    return refs[0]


async def test_a_result_is_what_the_handler_returned(mill: Tidemill, store: Looked) -> None:
    ref = enqueued(mill)
    end(store, Verdict.SUCCEEDED, b'{"amount":3}')
    assert await ref.result() == Receipt(3)
    assert await ref.result(timeout="10s") == Receipt(3)
    assert await asyncio.to_thread(ref.sync.result, timedelta(seconds=10)) == Receipt(3)


async def test_a_result_is_waited_for(mill: Tidemill, store: Looked) -> None:
    ref = enqueued(mill)

    def finish() -> None:
        if store.looks == 3:
            end(store, Verdict.SUCCEEDED, b'{"amount":3}')

    store.on_look = finish
    assert await ref.result(timeout=60) == Receipt(3)


def test_a_thread_waits_for_a_result(mill: Tidemill, store: Looked) -> None:
    ref = enqueued(mill)

    def finish() -> None:
        if store.looks == 3:
            end(store, Verdict.SUCCEEDED, b'{"amount":3}')

    store.on_look = finish
    assert ref.sync.result(timeout=60) == Receipt(3)


async def test_a_hint_makes_the_waiting_look_at_once(
    mill: Tidemill, store: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.client._FIRST_WAIT", 600)
    monkeypatch.setattr("tidemill.client._LONGEST_WAIT", 600)
    ref = enqueued(mill)
    looked = asyncio.Event()
    store.on_look = looked.set
    waiting = asyncio.create_task(ref.result())
    await looked.wait()
    end(store, Verdict.SUCCEEDED, b'{"amount":3}')
    await _another(mill)
    assert await waiting == Receipt(3)


async def _another(mill: Tidemill) -> None:
    @mill.job("other")
    def other() -> None: ...

    await other.enqueue()


@pytest.mark.parametrize("timeout", [0, "1ms", timedelta(milliseconds=1)])
async def test_a_result_that_is_not_there_in_time_is_told(mill: Tidemill, timeout: Any) -> None:
    ref = enqueued(mill)
    with pytest.raises(ResultTimeout, match=str(ref.id)):
        await ref.result(timeout=timeout)
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(ref.sync.result, timeout)


async def test_a_job_that_ended_otherwise_has_no_result(mill: Tidemill, store: Looked) -> None:
    ref = enqueued(mill)
    end(store, Verdict.DISCARDED)
    with pytest.raises(JobNotSucceeded, match="ended dead") as raised:
        await ref.result()
    assert (raised.value.state, raised.value.cause) == ("dead", "discarded")
    assert raised.value.job_id == ref.id


async def test_a_job_that_failed_tells_its_last_error_and_where_its_attempts_are(
    mill: Tidemill, store: Looked
) -> None:
    ref = enqueued(mill)
    end(store, Verdict.DISCARDED, error=ErrorInfo("builtins.RuntimeError", "kaputt"))
    for result in (ref.result, lambda: asyncio.to_thread(ref.sync.result)):
        with pytest.raises(
            JobNotSucceeded, match="Its last error was RuntimeError: kaputt"
        ) as told:
            await result()
        assert told.value.error == ErrorInfo("builtins.RuntimeError", "kaputt")
        assert f"tidemill jobs show {ref.id} --traceback" in str(told.value)


async def test_a_job_that_never_failed_has_no_last_error(mill: Tidemill) -> None:
    ref = enqueued(mill)
    await mill.jobs.cancel(ref, actor="ada")
    with pytest.raises(JobNotSucceeded, match=r"cancelled \(cause: operator:ada\)") as told:
        await ref.result()
    assert told.value.error is None
    assert "error was" not in str(told.value)


async def test_how_a_job_ended_is_told_even_if_its_error_cannot_be_read(
    mill: Tidemill, store: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = enqueued(mill)
    end(store, Verdict.DISCARDED)
    answering = store.perform

    async def failing(operation: Operation[Any]) -> Any:
        if isinstance(operation, GetJob):
            raise StoreError("gone")
        return await answering(operation)

    monkeypatch.setattr(store, "perform", failing)
    with pytest.raises(JobNotSucceeded, match="ended dead") as told:
        await ref.result()
    assert told.value.error is None


async def test_a_job_that_is_not_there_is_told(mill: Tidemill) -> None:
    ref = enqueued(mill)
    gone: JobRef[Any] = JobRef(JobId(new_id()), False, mill.client, ref._read)
    with pytest.raises(NotFound, match=str(gone.id)):
        await gone.result()


async def test_an_output_that_no_longer_reads_is_told(mill: Tidemill, store: Looked) -> None:
    ref = enqueued(mill)
    end(store, Verdict.SUCCEEDED, b'{"total":3}')
    with pytest.raises(DecodingError, match="The output of 'sell'"):
        await ref.result()


async def test_waiting_leaves_nobody_watching(mill: Tidemill, store: Looked) -> None:
    ref = enqueued(mill)
    with pytest.raises(ResultTimeout):
        await ref.result(timeout=0)
    assert store._watchers == {}
