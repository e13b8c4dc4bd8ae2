"""Tasks and threads that share a connection, where its library lets them."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.bridges.conftest import Shop
from tests.bridges.kinds import ON_POSTGRES, ON_SQLITE

from tidemill.bridges.turns import turn, turn_async
from tidemill.errors import BoundExceeded

pytestmark = pytest.mark.anyio

SHARED = [
    ("on_sqlite", "aiosqlite"),
    ("on_sqlite", "sqlalchemy async connection"),
    ("on_postgres", "psycopg async"),
    ("on_postgres", "asyncpg"),
    ("on_postgres", "sqlalchemy async connection, psycopg"),
]
OVER_ITS_BOUND = "k" * 1000


def opened(request: pytest.FixtureRequest, database: str, kind: str) -> tuple[Shop, Any]:
    shop: Shop = request.getfixturevalue(database)
    openers = ON_SQLITE if database == "on_sqlite" else ON_POSTGRES
    return shop, openers[kind](shop.place)


@pytest.mark.parametrize("refused", [0, 2, 4])
@pytest.mark.parametrize(("database", "kind"), SHARED, ids=str)
async def test_a_call_that_is_refused_undoes_none_of_the_others(request, database, kind, refused):
    shop, opener = opened(request, database, kind)
    handles = [shop.capture.with_options(tags=["vip"])] * 5
    handles[refused] = shop.keyed(OVER_ITS_BOUND).with_options(tags=["vip"])
    async with opener as transaction:
        calls = [transaction.enqueue(each, "p-1") for each in handles]
        said = await asyncio.gather(*calls, return_exceptions=True)
        await transaction.commit()
    refs = [each.id for each in said if not isinstance(each, BaseException)]
    assert [type(each) for each in said if isinstance(each, BaseException)] == [BoundExceeded]
    assert sorted(shop.ids()) == sorted(refs)
    assert len(refs) == 4


@pytest.mark.parametrize("database", ["on_sqlite", "on_postgres"])
async def test_a_call_that_is_refused_undoes_nothing_of_the_applications(request, database) -> None:
    kind = "aiosqlite" if database == "on_sqlite" else "psycopg async"
    shop, opener = opened(request, database, kind)
    tagged = shop.keyed(OVER_ITS_BOUND).with_options(tags=["vip"])

    async def order() -> None:
        for each in range(6):
            await transaction.execute(f"INSERT INTO orders VALUES ('o-{each}')")

    async with opener as transaction:
        said = await asyncio.gather(
            transaction.enqueue(tagged, "p-1"), order(), return_exceptions=True
        )
        await transaction.commit()
    assert isinstance(said[0], BoundExceeded)
    assert shop.orders() == [f"o-{each}" for each in range(6)]


def test_threads_take_turns_on_one_connection_and_not_on_two() -> None:
    one, other = object(), object()
    inside = threading.Event()
    ended: list[str] = []

    def second() -> None:
        inside.set()
        with turn(one):
            ended.append("second")

    with ThreadPoolExecutor() as threads:
        with turn(one), turn(one):  # as by a listener that calls too
            waiting = threads.submit(second)
            assert inside.wait(30)
            with turn(other):
                ended.append("other")
            assert not waiting.done()
            ended.append("first")
        waiting.result(30)
    assert ended == ["other", "first", "second"]


async def test_a_task_that_gives_up_waiting_leaves_the_turn_to_the_others() -> None:
    connection = object()
    begun = asyncio.Event()

    async def wait_for_it() -> str:
        begun.set()
        async with turn_async(connection):
            return "had it"

    async with turn_async(connection):
        impatient = asyncio.create_task(wait_for_it())
        await begun.wait()
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        patient = asyncio.create_task(wait_for_it())
    assert await patient == "had it"
