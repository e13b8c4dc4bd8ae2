"""One app for every event loop and thread of a program, on each database (rules N2 and N3)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidemill import Tidemill
from tidemill.errors import WrongContext


@pytest.fixture(params=["sqlite", "postgres"])
def mill(request, tmp_path):
    url = f"sqlite:///{tmp_path}/jobs.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    mill = Tidemill(url)
    mill.store.migrate()
    yield mill
    mill.close()


@pytest.fixture
def double(mill):
    @mill.job("double")
    async def double(number: int) -> int:
        return 2 * number

    return double


async def worked(mill, double, number):
    async with mill.worker(poll_interval="100ms"):
        return await (await double.enqueue(number)).result(timeout=30)


def test_one_loop_after_the_other(mill, double):
    assert [asyncio.run(worked(mill, double, number)) for number in (1, 2)] == [2, 4]
    for number in (3, 4):
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(worked(mill, double, number)) == 2 * number
        loop.close()


def test_loops_in_several_threads_at_once(mill, double):
    async def several(first):
        refs = await asyncio.gather(*(double.enqueue(first + each) for each in range(10)))
        return [(await mill.jobs.get(ref)).id for ref in refs]

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda first: asyncio.run(several(first)), (0, 10, 20)))
    assert len({job_id for ids in found for job_id in ids}) == 30


def test_sync_verbs_from_threads_and_a_loop_beside_them(mill, double):
    async def beside():
        await double.enqueue(0)
        async with mill.worker(poll_interval="100ms"):
            ref = await asyncio.to_thread(double.sync.enqueue, 21)
            return await asyncio.to_thread(ref.sync.result, 30)

    with ThreadPoolExecutor(4) as threads:
        refs = list(threads.map(double.sync.enqueue, range(20)))
    assert len({ref.id for ref in refs}) == 20
    assert asyncio.run(beside()) == 42
    assert [ref.sync.result(30) for ref in refs] == [2 * each for each in range(20)]


def test_a_sync_verb_under_a_running_loop_is_refused_and_nothing_is_enqueued(mill, double):
    async def wrong():
        double.sync.enqueue(1)

    with pytest.raises(WrongContext, match="await"):
        asyncio.run(wrong())
    assert mill.jobs.sync.counts() == ()


@pytest.mark.parametrize("number", [1, 2])
async def test_a_loop_for_each_test_function(mill, double, number):
    assert await worked(mill, double, number) == 2 * number
