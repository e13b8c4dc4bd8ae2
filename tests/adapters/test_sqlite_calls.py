"""Calls that are given up: before their turn they never happen, later they end as they would."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from tidemill.adapters.sqlite_channel import SqliteChannel
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.monitor import CountJobs, GetJob


class Occupied:
    """A store whose writer is busy with something until it is let go."""

    def __init__(self, store):
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.store = store

    def __enter__(self):
        self.store._open().writer.submit(self._wait)
        self.begun.wait()
        return self

    def __exit__(self, *_):
        self.go_on.set()
        self.store._open().writer.submit(lambda _channel: None).result()

    def _wait(self, _channel):
        self.begun.set()
        self.go_on.wait()


async def begin(call):
    """Start a call and let it be handed in."""
    waiting = asyncio.create_task(call)
    await asyncio.sleep(0)
    return waiting


async def give_up(waiting):
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_call_that_was_given_up_before_its_turn_never_reaches_the_database(bench, store):
    bench.register()
    jobs = [bench.job() for _ in range(6)]
    with Occupied(store):
        waiting = [await begin(store.perform(Enqueue((job,)))) for job in jobs]
        for each in waiting:
            await give_up(each)
    assert store.perform_sync(CountJobs()) == ()


async def test_claims_that_timed_out_behind_a_lock_leave_nothing_running(bench, store):
    bench.enqueue(*[bench.job() for _ in range(12)])
    worker = bench.register()
    ask = Exchange(worker=worker, claim=bench.request(limit=2), list_running=True)
    with Occupied(store):
        for _ in range(6):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await store.perform(ask)
    answer = await store.perform(ask)
    assert (len(answer.claimed), answer.running) == (2, ())


async def test_a_call_that_has_begun_goes_on_to_its_end_although_it_is_given_up(
    bench, store, monkeypatch
):
    begun, go_on = threading.Event(), threading.Event()
    perform = SqliteChannel.perform

    def slowly(channel, operation):
        begun.set()
        go_on.wait()
        return perform(channel, operation)

    monkeypatch.setattr(SqliteChannel, "perform", slowly)
    job = bench.job()
    waiting = await begin(store.perform(Enqueue((job,))))
    await asyncio.to_thread(begun.wait)
    await give_up(waiting)
    go_on.set()
    store._open().writer.submit(lambda _channel: None).result()
    assert (await store.perform(GetJob(job.id))).record.id == job.id


def test_a_thread_that_is_interrupted_while_it_waits_gives_its_call_up(bench, store, monkeypatch):
    job = bench.job()
    bench.register()

    def interrupted(_future, _timeout=None):
        raise KeyboardInterrupt

    with Occupied(store), monkeypatch.context() as patched:
        patched.setattr(Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bench.enqueue(job)
    assert bench.get(job.id) is None
