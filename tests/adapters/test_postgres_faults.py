"""Cables cut, servers restarting, locks held: what a caller is told, and what was done (M3, D5)."""

import asyncio
from datetime import timedelta

import psycopg
import pytest
from tests.adapters.conftest import Bench
from tests.adapters.postgres_proxy import Cable
from tests.adapters.ways import WAYS

from tidemill.adapters.postgres import PostgresStore
from tidemill.errors import AnswerLost, StoreError, StoreUnavailable
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import CountJobs
from tidemill.values.outcomes import Answer

COMMIT = b"COMMIT\0"  # and not the COMMITTED with which a transaction begins
MOMENT = timedelta(milliseconds=50)


@pytest.fixture
def cable(postgres_url):
    cable = Cable(postgres_url)
    yield cable
    cable.close()


@pytest.fixture
def far(cable, clock):
    """A store at the other end of the cable."""
    store = PostgresStore(cable.url, clock=clock, hints=False)
    yield store
    store.close()


@WAYS
@pytest.mark.parametrize("after", [False, True], ids=["lost-on-the-way", "answer-lost"])
def test_a_cable_cut_around_a_commit_leaves_the_answer_unknown(mill, far, cable, perform, after):
    request = Enqueue((mill.job(), mill.job()))
    cable.cut_at(COMMIT, after=after)
    with pytest.raises(AnswerLost, match="before a commit was answered"):
        perform(far, request)
    assert cable.cuts == 1
    again = mill.store.perform_sync(request)
    assert {each.repeated for each in again} == {after}


@WAYS
@pytest.mark.parametrize("after", [False, True], ids=["lost-on-the-way", "answer-lost"])
def test_a_write_of_one_statement_is_its_own_commit(mill, far, cable, perform, after):
    payload = b'{"flour": "rye"}'
    request = Enqueue((mill.job(payload=payload),))
    cable.cut_at(payload, after=after)
    with pytest.raises(AnswerLost, match="before a commit was answered"):
        perform(far, request)
    assert cable.cuts == 1
    (again,) = mill.store.perform_sync(request)
    assert again.repeated is after


@WAYS
def test_a_cable_cut_before_the_commit_is_not_noticed(mill, far, cable, perform):
    cable.cut_at(b"INSERT INTO", after=True)
    answers = perform(far, Enqueue((mill.job(), mill.job())))
    assert cable.cuts == 1
    assert {each.repeated for each in answers} == {False}
    (count,) = mill.store.perform_sync(CountJobs())
    assert count.count == 2


def test_a_report_whose_answer_was_lost_is_asked_again_and_known(mill, far, cable, outcome):
    mill.enqueue(mill.job())
    worker = mill.register()
    (job,) = mill.claim(worker)
    near = Bench(far, mill.clock)
    cable.cut_at(COMMIT, after=True)
    with pytest.raises(AnswerLost):
        near.report(worker, outcome(job))
    (answer,) = near.report(worker, outcome(job))
    assert answer.answer is Answer.ALREADY_APPLIED


@WAYS
def test_connections_that_the_server_ended_are_replaced(mill, postgres_url, perform):
    perform(mill.store, CountJobs())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert perform(mill.store, CountJobs()) == ()
    assert len(perform(mill.store, Enqueue((mill.job(),)))) == 1


def test_an_async_pool_outlives_a_restart(mill, postgres_url):
    async def story():
        await asyncio.gather(*[mill.store.perform(CountJobs()) for _ in range(4)])
        async with await psycopg.AsyncConnection.connect(
            postgres_url, autocommit=True
        ) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        return await asyncio.gather(*[mill.store.perform(CountJobs()) for _ in range(4)])

    assert asyncio.run(story()) == [()] * 4


@WAYS
def test_a_lock_that_others_keep_is_waited_for_a_bounded_time(mill, postgres_url, perform):
    store = PostgresStore(postgres_url, clock=mill.clock, lock_timeout=MOMENT, hints=False)
    request = Enqueue((mill.job(), mill.job()))
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE tidemill.jobs IN EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable, match="lock time-out"):
            perform(store, request)
    assert not any(answer.repeated for answer in perform(store, request))
    store.close()


@WAYS
def test_a_server_that_is_not_there_is_unavailable_and_the_password_stays_secret(perform):
    store = PostgresStore("postgresql://miller:s3cret@127.0.0.1:1/mill")
    with pytest.raises(StoreUnavailable, match=r"miller@127\.0\.0\.1:1/mill") as caught:
        perform(store, CountJobs())
    error = caught.value
    while error is not None:
        assert "s3cret" not in str(error)
        error = error.__cause__
    store.close()


@WAYS
@pytest.mark.parametrize("word", [COMMIT, b"SELECT coalesce"], ids=["commit", "statement"])
def test_a_server_that_falls_silent_is_not_waited_for_forever(
    mill, cable, monkeypatch, perform, word
):
    monkeypatch.setattr("tidemill.adapters.postgres_site.SILENCE_SECONDS", 0.0)
    far = PostgresStore(cable.url, clock=mill.clock, statement_timeout=MOMENT * 4, hints=False)
    far.perform_sync(CountJobs())
    cable.stall_at(word)
    request = Enqueue((mill.job(), mill.job()))
    if word is COMMIT:
        with pytest.raises(AnswerLost):
            perform(far, request)
    else:
        assert len(perform(far, request)) == 2
    far.close()


async def test_a_caller_that_gives_up_on_a_silent_server_leaves_no_silent_connection(
    mill, cable, far
):
    await far.perform(Enqueue((mill.job(),)))
    payload = b'{"flour": "rye"}'
    cable.stall_at(payload)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await far.perform(Enqueue((mill.job(payload=payload),)))
    async with asyncio.timeout(10):  # and the silence would be noticed by itself after fifteen
        (count,) = await far.perform(CountJobs())
    assert count.count == 1


def test_all_connections_in_use_is_unavailable_and_not_a_hang(mill, monkeypatch):
    monkeypatch.setattr("tidemill.adapters.postgres_sync._WAIT_SECONDS", 0.01)
    store = PostgresStore(mill.store._site.url.libpq, clock=mill.clock, sync_pool=1)
    store.perform_sync(CountJobs())
    with (
        store._opened._pool.lend(),
        pytest.raises(StoreUnavailable, match="All 1 connections"),
    ):
        store.perform_sync(CountJobs())
    store.close()


def test_a_database_that_is_missing_is_an_error_with_advice(postgres_18_server):
    place = postgres_18_server.replace("/postgres?", "/nowhere?")
    store = PostgresStore(place)
    with pytest.raises(StoreError, match="Create the database") as caught:
        store.perform_sync(CountJobs())
    assert not isinstance(caught.value, StoreUnavailable)
    store.close()
