"""What the application has set on its connection is neither in the way nor changed."""

import sqlite3
from contextlib import closing, contextmanager
from datetime import timedelta
from uuid import UUID

import aiosqlite
import asyncpg
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.adapt import Loader
from psycopg.rows import scalar_row, tuple_row
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from tests.bridges.conftest import Shop, Where
from tests.bridges.kinds import in_asyncpg

from tidemill import JobRef
from tidemill.bridges.join import join
from tidemill.store.complete import Complete
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Register
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import Attempt, WorkerId, uuid7
from tidemill.values.outcomes import Answer
from tidemill.values.workers import WorkerInfo

KEYS = ("k", "l", "k")


def everything(shop: Shop, tx: object) -> list[JobRef[str]]:
    """Plain, keyed and tagged jobs, and answers from what is there."""
    refs = [shop.capture.enqueue_in(tx, "p-1")]
    refs += [shop.keyed(key).enqueue_in(tx, "p-2") for key in KEYS]
    tagged = shop.keyed("m").with_options(tags=["vip"], delay="1h", expires="2h", timeout="5s")
    return refs + shop.mill.enqueue_many_in(tx, [tagged.bind("p-3"), shop.keyed("l").bind("p-4")])


async def everything_awaited(shop: Shop, tx: object) -> list[JobRef[str]]:
    refs = [await shop.capture.enqueue_in(tx, "p-1")]
    refs += [await shop.keyed(key).enqueue_in(tx, "p-2") for key in KEYS]
    tagged = shop.keyed("m").with_options(tags=["vip"], delay="1h", expires="2h", timeout="5s")
    calls = [tagged.bind("p-3"), shop.keyed("l").bind("p-4")]
    return refs + await shop.mill.enqueue_many_in(tx, calls)


def stored(shop: Shop, refs: list[JobRef[str]]) -> None:
    assert [ref.deduplicated for ref in refs] == [False, False, False, True, False, True]
    assert refs[3].id == refs[1].id
    assert refs[5].id == refs[2].id
    assert sorted(shop.ids()) == sorted({ref.id for ref in refs})


@contextmanager
def converters():
    """Every type that our tables declare is converted to something else, process-wide."""
    names = ("BLOB", "TEXT", "INTEGER")
    for name in names:
        sqlite3.register_converter(name, lambda stored: ("converted", stored))
    yield
    for name in names:
        del sqlite3.converters[name]


def shouting(stored: bytes) -> str:
    return stored.decode().upper() + "!"


def test_row_and_text_factories_and_converters_of_sqlite3(on_sqlite: Shop) -> None:
    with (
        converters(),
        closing(sqlite3.connect(on_sqlite.place, detect_types=sqlite3.PARSE_DECLTYPES)) as mine,
    ):
        mine.row_factory = lambda _cursor, row: {"row": row}
        mine.text_factory = shouting
        refs = everything(on_sqlite, mine)
        assert mine.execute("SELECT 'a' AS a").fetchall() == [{"row": ("A!",)}]
        assert mine.text_factory is shouting
        mine.commit()
    stored(on_sqlite, refs)


def test_whoever_holds_a_job_is_read_past_converters_too(on_sqlite: Shop) -> None:
    shop = on_sqlite
    ref = shop.capture.sync.enqueue("p-1")
    workers = [WorkerId(uuid7(n, n)) for n in (1, 2)]
    for worker in workers:
        info = WorkerInfo(
            id=worker, host="host", pid=1, version="0", queues=("default",),
            wire_names=None, slots=1,
        )  # fmt: skip
        shop.store.perform_sync(Register(info=info, lease=timedelta(seconds=60)))
    claim = ClaimRequest(shares=(Share("default", 1),), limit=1, wire_names=None)
    shop.store.perform_sync(Exchange(worker=workers[0], claim=claim))
    with (
        converters(),
        closing(sqlite3.connect(shop.place, detect_types=sqlite3.PARSE_DECLTYPES)) as mine,
    ):
        late = Complete(job_id=ref.id, attempt=Attempt(1), worker=workers[1])
        reported = join(shop.store, mine).perform(late)
        mine.rollback()
    assert reported.answer is Answer.STALE
    assert (reported.holder.worker, reported.holder.attempt) == (workers[0], 1)


async def test_row_and_text_factories_and_converters_of_aiosqlite(on_sqlite: Shop) -> None:
    declared = {"detect_types": sqlite3.PARSE_DECLTYPES}
    with converters():
        async with aiosqlite.connect(on_sqlite.place, **declared) as mine:
            mine.row_factory = lambda _cursor, row: {"row": row}
            mine.text_factory = bytes
            refs = await everything_awaited(on_sqlite, mine)
            assert await mine.execute_fetchall("SELECT 'a' AS a") == [{"row": (b"a",)}]
            assert mine.text_factory is bytes
            await mine.commit()
    stored(on_sqlite, refs)


def test_converters_and_text_factories_below_sqlalchemy(on_sqlite: Shop) -> None:
    engine = sa.create_engine(
        f"sqlite:///{on_sqlite.place}", connect_args={"detect_types": sqlite3.PARSE_DECLTYPES}
    )

    @sa.event.listens_for(engine, "connect")
    def connected(connection, _record) -> None:
        connection.text_factory = bytes

    with converters(), engine.begin() as mine:
        refs = everything(on_sqlite, mine)
        assert mine.exec_driver_sql("SELECT 'a' AS a").scalar() == b"a"
    engine.dispose()
    stored(on_sqlite, refs)


@pytest.mark.parametrize("users", [1, 5_000])
def test_the_busy_timeout_of_a_connection_stays(brief_on_sqlite: Shop, users: int) -> None:
    shop = brief_on_sqlite
    with closing(sqlite3.connect(shop.place, timeout=users / 1000)) as mine:
        shop.keyed("k").enqueue_in(mine, "p-1")
        assert mine.execute("PRAGMA busy_timeout").fetchone() == (users,)
        mine.rollback()
        with closing(sqlite3.connect(shop.place, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Exception, match="Another connection writes"):
                shop.keyed("k").enqueue_in(mine, "p-1")
            assert mine.execute("PRAGMA busy_timeout").fetchone() == (users,)


class Backwards(Loader):
    """An application's own way to read a type."""

    def load(self, data: object) -> str:
        return bytes(data).decode("latin-1")[::-1]


TYPES = ("uuid", "text", "bytea", "int2", "int8", "bool", "timestamptz", "interval")


@pytest.mark.parametrize("factory", [scalar_row, tuple_row])
def test_row_factories_and_adapters_of_psycopg(on_postgres: Shop, factory) -> None:
    class BackwardsBinary(Backwards):
        format = psycopg.pq.Format.BINARY

    with psycopg.connect(on_postgres.place, row_factory=factory) as mine:
        for name in TYPES:
            mine.adapters.register_loader(name, Backwards)
            mine.adapters.register_loader(name, BackwardsBinary)
        mine.adapters.register_dumper(UUID, psycopg.types.string.StrDumper)
        refs = everything(on_postgres, mine)
        (row,) = mine.execute("SELECT 'abc'::text")
        assert row in {"cba", ("cba",)}
    stored(on_postgres, refs)


async def test_row_factories_of_an_async_psycopg_connection(on_postgres: Shop) -> None:
    url = on_postgres.place
    async with await psycopg.AsyncConnection.connect(url, row_factory=scalar_row) as mine:
        mine.adapters.register_loader("uuid", Backwards)
        refs = await everything_awaited(on_postgres, mine)
    stored(on_postgres, refs)


async def test_codecs_and_record_classes_of_asyncpg(on_postgres: Shop) -> None:
    class Mine(asyncpg.Record):
        def __getitem__(self, key):
            return "mine" if key in {"id", "now", "added"} else super().__getitem__(key)

    mine = await asyncpg.connect(on_postgres.place, record_class=Mine)
    for name in ("uuid", "timestamptz"):
        await mine.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=str)
    for name in ("json", "jsonb"):
        await mine.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=len)
    async with in_asyncpg(mine) as transaction:
        refs = await everything_awaited(on_postgres, mine)
        assert (await mine.fetch("SELECT 1 AS id"))[0]["id"] == "mine"
        await transaction.commit()
    await mine.close()
    stored(on_postgres, refs)


async def test_a_session_in_another_time_zone_and_with_other_date_styles(on_server: Where) -> None:
    shop = on_server.shop
    async with on_server.transaction() as transaction:
        await transaction.execute("SET LOCAL TimeZone = 'Pacific/Kiritimati'")
        await transaction.execute("SET LOCAL IntervalStyle = 'sql_standard'")
        ref = await transaction.enqueue(shop.keyed("k").with_options(delay="1h"), "p-1")
        await transaction.commit()
    (job,) = shop.jobs()
    assert (job.id, job.due_at - job.created_at) == (ref.id, timedelta(hours=1))


@pytest.mark.parametrize("users", ["0", "50ms", "1h"])
async def test_the_lock_timeout_of_a_transaction_stays(on_server: Where, users: str) -> None:
    shop = on_server.shop
    async with on_server.transaction() as transaction:
        await transaction.execute(f"SET LOCAL lock_timeout = '{users}'")
        calls = [shop.keyed("l").bind("p-1"), shop.capture.bind("p-1")]
        for enqueue in (
            lambda: transaction.enqueue(shop.capture, "p-1"),
            lambda: transaction.enqueue(shop.keyed("k"), "p-1"),
            lambda: transaction.enqueue_many(shop.mill, calls),
        ):
            await enqueue()
            assert await transaction.execute("SHOW lock_timeout") == [(users,)]
        await transaction.execute("RESET lock_timeout")
        await transaction.commit()
        assert await transaction.execute("SHOW lock_timeout") == [("0",)]


async def test_a_tighter_lock_timeout_of_the_transaction_holds(on_server: Where) -> None:
    """The store would wait for half a minute."""
    shop = on_server.shop
    async with on_server.transaction() as first, on_server.transaction() as second:
        await first.enqueue(shop.keyed("k"), "p-1")
        await second.execute("SET LOCAL lock_timeout = '20ms'")
        with pytest.raises(Exception, match="Another open transaction"):
            await second.enqueue(shop.keyed("k"), "p-1")
        await second.rollback()
        await first.rollback()


def test_a_session_keeps_what_was_added_to_it_for_its_own_flush(on_postgres: Shop) -> None:
    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        name: Mapped[str] = mapped_column(primary_key=True)

    engine = sa.create_engine(on_postgres.place.replace("postgresql:", "postgresql+psycopg:"))
    with Session(engine) as session, session.begin():
        session.add(Order(name="o-1"))
        ref = on_postgres.capture.enqueue_in(session, "p-1")
        session.add(Order(name="o-2"))
    engine.dispose()
    assert (on_postgres.ids(), on_postgres.orders()) == ([ref.id], ["o-1", "o-2"])
