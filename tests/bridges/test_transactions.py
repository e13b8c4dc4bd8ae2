"""Enqueuing in the application's own transaction, on every kind of connection (clauses F3, F4)."""

import pytest
from tests.bridges.conftest import Where

from tidemill.errors import BoundExceeded, EncodingError
from tidemill.values.states import JobState

pytestmark = pytest.mark.anyio

ORDER = "INSERT INTO orders (name) VALUES ('o-1')"


async def test_a_commit_shows_the_job_and_the_order(where: Where) -> None:
    shop = where.shop
    async with where.transaction() as transaction:
        await transaction.execute(ORDER)
        ref = await transaction.enqueue(shop.capture, "p-1")
        assert shop.ids() == []
        await transaction.commit()
    assert (shop.ids(), shop.orders()) == ([ref.id], ["o-1"])
    assert not ref.deduplicated


async def test_a_rollback_leaves_neither(where: Where) -> None:
    async with where.transaction() as transaction:
        await transaction.execute(ORDER)
        await transaction.enqueue(where.shop.capture, "p-1")
        await transaction.enqueue(where.shop.keyed("k"), "p-1")
        await transaction.rollback()
    assert (where.shop.ids(), where.shop.orders()) == ([], [])


async def test_a_job_may_be_the_first_thing_in_a_transaction(where: Where) -> None:
    async with where.transaction() as transaction:
        ref = await transaction.enqueue(where.shop.capture, "p-1")
        await transaction.execute(ORDER)
        await transaction.commit()
    assert (where.shop.ids(), where.shop.orders()) == ([ref.id], ["o-1"])


async def test_a_connection_that_is_left_open_rolls_the_job_back(where: Where) -> None:
    async with where.transaction() as transaction:
        await transaction.enqueue(where.shop.capture, "p-1")
    assert where.shop.ids() == []


async def test_every_option_is_stored(where: Where) -> None:
    options = {"queue": "slow", "priority": 7, "delay": "1h", "tenant": "acme", "timeout": "5s"}
    later = where.shop.capture.with_options(**options, tags=["vip", ("order", "42")])
    async with where.transaction() as transaction:
        ref = await transaction.enqueue(later, "p-1")
        await transaction.commit()
    details = await where.shop.mill.jobs.get(ref)
    job = details.record
    assert job.state is JobState.SCHEDULED
    assert (job.queue, job.priority, job.tenant) == ("slow", 7, "acme")
    assert str(job.timeout) == "0:00:05"
    assert {(tag.key, tag.value) for tag in details.tags} == {("vip", ""), ("order", "42")}


async def test_a_key_of_a_committed_job_answers_that_job(where: Where) -> None:
    shop = where.shop
    before = await shop.keyed("k").enqueue("p-1")
    async with where.transaction() as transaction:
        ref = await transaction.enqueue(shop.keyed("k"), "p-2")
        other = await transaction.enqueue(shop.keyed("l"), "p-2")
        await transaction.commit()
    assert (ref.id, ref.deduplicated) == (before.id, True)
    assert not other.deduplicated
    assert sorted(shop.ids()) == sorted([before.id, other.id])


async def test_a_key_is_known_again_in_the_same_transaction(where: Where) -> None:
    async with where.transaction() as transaction:
        first = await transaction.enqueue(where.shop.keyed("k"), "p-1")
        second = await transaction.enqueue(where.shop.keyed("k"), "p-1")
        await transaction.commit()
    assert (second.id, second.deduplicated) == (first.id, True)
    assert where.shop.ids() == [first.id]


async def test_many_jobs_are_stored_in_order(where: Where) -> None:
    shop = where.shop
    calls = [shop.capture.bind(f"p-{n}") for n in range(20)]
    calls += [shop.keyed("k").bind("p-20"), shop.keyed("k").bind("p-21")]
    async with where.transaction() as transaction:
        refs = await transaction.enqueue_many(shop.mill, calls)
        await transaction.commit()
    assert [ref.deduplicated for ref in refs] == [False] * 21 + [True]
    assert len({ref.id for ref in refs}) == 21
    assert sorted(shop.ids()) == sorted({ref.id for ref in refs})


async def test_a_job_in_a_savepoint_that_is_rolled_back_is_gone(where: Where) -> None:
    shop = where.shop
    async with where.transaction() as transaction:
        await transaction.execute(ORDER)
        kept = await transaction.enqueue(shop.capture, "p-1")
        await transaction.execute("SAVEPOINT mine")
        await transaction.enqueue(shop.capture, "p-2")
        await transaction.enqueue(shop.keyed("k"), "p-2")
        await transaction.execute("ROLLBACK TO SAVEPOINT mine")
        again = await transaction.enqueue(shop.keyed("k"), "p-3")
        await transaction.commit()
    assert not again.deduplicated
    assert sorted(shop.ids()) == sorted([kept.id, again.id])
    assert shop.orders() == ["o-1"]


async def test_what_the_library_refuses_leaves_the_transaction_as_it_was(where: Where) -> None:
    shop = where.shop
    async with where.transaction() as transaction:
        await transaction.execute(ORDER)
        with pytest.raises(BoundExceeded):
            await transaction.enqueue(shop.capture, "x" * 100_000)
        with pytest.raises(EncodingError):
            await transaction.enqueue(shop.capture, 1)
        ref = await transaction.enqueue(shop.capture, "p-1")
        await transaction.commit()
    assert (shop.ids(), shop.orders()) == ([ref.id], ["o-1"])


async def test_a_worker_runs_the_job_after_the_commit(where: Where) -> None:
    shop = where.shop
    async with shop.mill.worker():
        async with where.transaction() as transaction:
            ref = await transaction.enqueue(shop.capture, "p-1")
            await transaction.commit()
        assert await ref.result(timeout=30) == "p-1"
