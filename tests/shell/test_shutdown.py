"""Ending in the stated order: claims stop, handlers finish, are cancelled, are given back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from tests.waiting import until

from tidemill.shell.settings import WorkerSettings
from tidemill.store.exchange import Exchange
from tidemill.values.endings import CancelReason

HOUR = 3600.0


async def test_a_shutdown_goes_through_its_phases_in_order(
    jobs, books, make_worker, wait_until, threads_of_ours
):
    started = threading.Semaphore(0)
    finish, wake, told = asyncio.Event(), threading.Event(), []

    @jobs
    async def short():
        started.release()
        await finish.wait()
        return "finished"

    @jobs
    async def long(ctx):
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(ctx.cancel_reason)

    @jobs
    def stubborn(ctx):
        started.release()
        wake.wait(HOUR)
        told.append(ctx.cancel_reason)
        return "too late"

    brief, lasting, deaf = (books.enqueue(name) for name in ("short", "long", "stubborn"))
    worker = make_worker(grace=HOUR, patience=HOUR)
    await worker.start()
    await wait_until(lambda: books.states([brief, lasting, deaf])["running"] == 3)
    for _ in range(3):
        await wait_until(lambda: started.acquire(blocking=False))

    worker.drain()
    late = books.enqueue("short")
    finish.set()
    await books.wait_for(brief, "succeeded")
    assert (books.state(late), books.job(late).record.attempt) == ("ready", 0)
    assert (told, books.states([lasting, deaf])["running"]) == ([], 2)

    worker.hurry()  # the grace period is over
    await books.wait_for(lasting, "ready")
    assert told == [CancelReason.SHUTDOWN]
    assert books.state(deaf) == "running"

    worker.hurry()  # and so is patience
    await worker.wait()
    for job_id in (lasting, deaf):
        record = books.job(job_id).record
        assert (record.state, record.attempt) == ("ready", 1)
        assert (record.failures, record.lapses) == (0, 0)
    assert books.workers() == []
    assert "tidemill-heart" not in threads_of_ours()

    before = books.job(deaf)
    wake.set()
    await wait_until(lambda: not threads_of_ours())
    assert told == [CancelReason.SHUTDOWN, CancelReason.SHUTDOWN]
    assert books.job(deaf) == before


async def test_a_coroutine_that_ignores_its_cancellation_is_given_back_while_it_runs(
    jobs, books, make_worker, wait_until
):
    started, release = asyncio.Event(), asyncio.Event()

    @jobs
    async def stubborn():
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    job_id = books.enqueue("stubborn")
    worker = make_worker(grace=0, patience=0)
    await worker.start()
    await started.wait()
    await worker.stop()
    assert (books.state(job_id), worker.unfinished) == ("ready", 1)
    before = books.job(job_id)
    release.set()
    await wait_until(lambda: not worker.unfinished)
    assert books.job(job_id) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_lets_handlers_finish(jobs, books, make_worker, number):
    started, go = asyncio.Event(), asyncio.Event()

    @jobs
    async def job():
        started.set()
        await go.wait()

    job_id = books.enqueue("job")
    worker = make_worker(grace=HOUR)
    running = asyncio.create_task(worker.run())
    await started.wait()
    os.kill(os.getpid(), number)
    late = await enqueued_after_the_drain(books, worker)
    go.set()
    await running
    assert (books.state(job_id), books.state(late)) == ("succeeded", "ready")


async def test_a_second_signal_hurries(jobs, books, make_worker):
    started, told = asyncio.Event(), []

    @jobs
    async def job(ctx):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(ctx.cancel_reason)

    job_id = books.enqueue("job")
    worker = make_worker(grace=HOUR, patience=HOUR)
    running = asyncio.create_task(worker.run())
    await started.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await enqueued_after_the_drain(books, worker)
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    record = books.job(job_id).record
    assert (record.state, record.failures, record.lapses) == ("ready", 0, 0)
    assert told == [CancelReason.SHUTDOWN]


async def enqueued_after_the_drain(books, worker):
    await books.until(lambda: worker._pump.draining)
    return books.enqueue("job")


STUBBORN = """
import asyncio, os, signal, sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from tidemill.context import JobContext
from tidemill.shell.identity import new_id
from tidemill.shell.process import run_process
from tidemill.shell.settings import WorkerSettings
from tidemill.shell.worker import Worker
from tidemill.store.enqueue import Enqueue
from tidemill.store.memory import MemoryStore
from tidemill.values.jobs import NewJob

class Job:
    wants_context, is_async, in_process, injection = False, True, False, None
    def decode(self, payload): return {}
    def resolve(self): pass
    async def function(self):
        print("started", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("ignored", flush=True)

class Jobs:
    def get(self, name): return Job()
    def wire_names(self): return frozenset({"job"})

store = MemoryStore(lambda: datetime.now(UTC))
store.perform_sync(Enqueue((NewJob(id=new_id(), wire_name="job"),)))
settings = WorkerSettings(grace=timedelta(0), patience=timedelta(0))
run_process(Worker(store, Jobs(), JobContext, settings))
"""


def test_a_handler_that_never_stops_does_not_keep_the_process():
    ended = subprocess.run(
        [sys.executable, "-c", STUBBORN], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "started\nignored\n")
    assert "1 handlers ignore that they were asked to stop" in ended.stderr


def test_reports_and_closing_share_the_delivery_time_out_of_the_settings():
    settings = WorkerSettings(
        grace=timedelta(seconds=1),
        patience=timedelta(seconds=2),
        delivery_timeout=timedelta(seconds=3),
    )
    assert settings.node_options(None).flush == 3
    assert settings.longest_end == timedelta(seconds=1 + 2 + 3 + 3)


async def test_an_end_is_not_put_off_by_a_store_that_answers_nothing(
    jobs, books, store, make_worker
):
    started, finish, never = asyncio.Event(), asyncio.Event(), threading.Event()

    @jobs
    async def job():
        started.set()
        await finish.wait()

    job_id = books.enqueue("job")
    worker = make_worker(grace=0, patience=0, delivery_timeout=0.1)
    await worker.start()
    await started.wait()
    gate = store.hold(lambda operation: isinstance(operation, Exchange))
    store.block_threads(never)
    finish.set()
    await books.until(lambda: worker._pump.running == 0)
    async with asyncio.timeout(8):
        await worker.stop()
    assert books.state(job_id) == "running"
    never.set()
    gate.set()


async def test_a_second_signal_in_the_same_moment_hurries_too(jobs, books, make_worker):
    started = asyncio.Event()

    @jobs
    async def job():
        started.set()
        await asyncio.Event().wait()

    job_id = books.enqueue("job")
    worker = make_worker(grace=HOUR, patience=HOUR)
    running = asyncio.create_task(worker.run())
    await started.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    await running
    assert books.state(job_id) == "ready"


async def test_signals_do_afterwards_what_they_did_before(make_worker):
    told = []
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("before"))
    try:
        worker = make_worker()
        running = asyncio.create_task(worker.run())
        await until(lambda: worker._pump is not None)
        os.kill(os.getpid(), signal.SIGTERM)
        await running
        assert told == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert told == ["before"]
    finally:
        signal.signal(signal.SIGTERM, before)
