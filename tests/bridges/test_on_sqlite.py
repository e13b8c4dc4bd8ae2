"""What only SQLite asks for: undoing a half, hearing of a commit, and the lock that all share."""

import sqlite3
from contextlib import closing, suppress

import pytest
import sqlalchemy as sa
from tests.bridges.conftest import Shop, Where

from tidemill.errors import Refused, TransactionRefused

pytestmark = pytest.mark.anyio

ORDER = "INSERT INTO orders (name) VALUES ('o-1')"


def refuse_tags(shop: Shop, how: str) -> None:
    """From here on the database refuses what a tagged job writes last."""
    with closing(sqlite3.connect(shop.place)) as connection:
        connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON tidemill_tags "
            f"BEGIN SELECT RAISE({how}, 'no tags today'); END"
        )


async def test_a_failure_that_is_swallowed_leaves_no_half_of_the_job(on_file: Where) -> None:
    shop = on_file.shop
    refuse_tags(shop, "ABORT")
    tagged = shop.keyed("k").with_options(tags=["vip"])
    async with on_file.transaction() as transaction:
        await transaction.execute(ORDER)
        kept = await transaction.enqueue(shop.capture, "p-1")
        with pytest.raises(Refused, match="no tags today"):
            await transaction.enqueue(tagged, "p-2")
        calls = [shop.capture.bind("p-3"), tagged.bind("p-4")]
        with pytest.raises(Refused, match="no tags today"):
            await transaction.enqueue_many(shop.mill, calls)
        again = await transaction.enqueue(shop.keyed("k"), "p-5")
        await transaction.commit()
    assert not again.deduplicated
    assert sorted(shop.ids()) == sorted([kept.id, again.id])
    assert shop.orders() == ["o-1"]


async def test_a_failure_that_ends_the_transaction_leaves_nothing(on_file: Where) -> None:
    shop = on_file.shop
    refuse_tags(shop, "ROLLBACK")
    async with on_file.transaction() as transaction:
        await transaction.execute(ORDER)
        with pytest.raises(Exception, match="no tags today"):
            await transaction.enqueue(shop.capture.with_options(tags=["vip"]), "p-1")
        with suppress(Exception):
            await transaction.commit()
    assert (shop.ids(), shop.orders()) == ([], [])


def test_after_a_failure_that_ended_the_transaction_a_further_job_is_refused(on_sqlite: Shop):
    refuse_tags(on_sqlite, "ROLLBACK")
    with closing(sqlite3.connect(on_sqlite.place, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(Exception, match="no tags today"):
            on_sqlite.capture.with_options(tags=["vip"]).enqueue_in(connection, "p-1")
        with pytest.raises(TransactionRefused, match="has no transaction open"):
            on_sqlite.capture.enqueue_in(connection, "p-2")
    assert on_sqlite.ids() == []


async def test_a_worker_that_polls_seldom_hears_of_the_commit(on_file: Where) -> None:
    shop = on_file.shop
    async with shop.mill.worker(poll_interval="10m"):
        async with on_file.transaction() as transaction:
            ref = await transaction.enqueue(shop.capture, "p-1")
            await transaction.commit()
        assert await ref.result(timeout=30) == "p-1"


async def test_sqlalchemy_that_begins_immediately_is_taken(on_sqlite: Shop) -> None:
    """As its documentation has it for SQLite."""
    engine = sa.create_engine(f"sqlite:///{on_sqlite.place}")

    @sa.event.listens_for(engine, "connect")
    def connected(connection, _record) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def begun(connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.begin() as connection:
        ref = on_sqlite.capture.enqueue_in(connection, "p-1")
    with engine.connect() as connection:
        on_sqlite.capture.enqueue_in(connection, "p-2")
        connection.rollback()
    engine.dispose()
    assert on_sqlite.ids() == [ref.id]
