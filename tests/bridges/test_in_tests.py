"""In a test the harness's store takes the job at once: it is in no transaction."""

import sqlite3
from contextlib import closing

import aiosqlite
import pytest
from tests.bridges.conftest import Shop

from tidemill.errors import TransactionRefused
from tidemill.testing import Harness

pytestmark = pytest.mark.anyio


def test_a_job_in_a_sync_transaction_runs_in_the_harness(on_sqlite: Shop) -> None:
    shop = on_sqlite
    with closing(sqlite3.connect(shop.place)) as connection, Harness(shop.mill) as harness:
        ref = shop.capture.enqueue_in(connection, "p-1")
        (other,) = shop.mill.enqueue_many_in(connection, [shop.keyed("k").bind("p-2")])
        assert not connection.in_transaction
        assert harness.sync.run_until_idle() == 2
        assert (ref.sync.result(), other.sync.result()) == ("p-1", "p-2")
    assert shop.ids() == []


async def test_a_job_in_an_async_transaction_runs_in_the_harness(on_sqlite: Shop) -> None:
    shop = on_sqlite
    async with aiosqlite.connect(shop.place) as connection, Harness(shop.mill) as harness:
        ref = await shop.capture.enqueue_in(connection, "p-1")
        (other,) = await shop.mill.enqueue_many_in(connection, [shop.keyed("k").bind("p-2")])
        assert await harness.run_until_idle() == 2
        assert (await ref.result(), await other.result()) == ("p-1", "p-2")


def test_what_is_no_transaction_is_refused_there_too(on_sqlite: Shop) -> None:
    with Harness(on_sqlite.mill), pytest.raises(TransactionRefused, match="What can be given"):
        on_sqlite.capture.enqueue_in(object(), "p-1")
