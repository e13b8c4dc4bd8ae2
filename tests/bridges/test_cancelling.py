"""A caller that gives up at any step of a call leaves all of it or nothing, never a part."""

import asyncio
from contextlib import suppress
from itertools import count

import pytest
from tests.bridges.conftest import Shop
from tests.bridges.kinds import ON_POSTGRES, ON_SQLITE

from tidemill.drivers.asyncpg_steps import AsyncpgSteps
from tidemill.drivers.psycopg_steps import PsycopgAsyncSteps
from tidemill.drivers.sqlalchemy_steps import SqlalchemySteps
from tidemill.drivers.sqlite_steps import AiosqliteSteps

pytestmark = pytest.mark.anyio

KINDS = [
    ("on_sqlite", "aiosqlite", AiosqliteSteps),
    ("on_sqlite", "sqlalchemy async session", SqlalchemySteps),
    ("on_postgres", "psycopg async", PsycopgAsyncSteps),
    ("on_postgres", "asyncpg", AsyncpgSteps),
    ("on_postgres", "sqlalchemy async connection, psycopg", SqlalchemySteps),
    ("on_postgres", "sqlalchemy async session, asyncpg", SqlalchemySteps),
]


class Abandoned:
    """Cancels the calling task as it comes to one of its steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: type) -> None:
        self.at = 0
        self.come = count(1)
        step = steps.step

        def counted(itself, act):
            if next(self.come) == self.at:
                asyncio.current_task().cancel()
            return step(itself, act)

        monkeypatch.setattr(steps, "step", counted)

    def next_at(self, at: int) -> None:
        """Cancel at that step from here on."""
        self.at, self.come = at, count(1)

    @property
    def was_reached(self) -> bool:
        return next(self.come) > self.at


@pytest.mark.parametrize(("database", "kind", "steps"), KINDS, ids=str)
async def test_all_or_nothing_is_left(request, monkeypatch, database, kind, steps) -> None:
    shop: Shop = request.getfixturevalue(database)
    openers = ON_SQLITE if database == "on_sqlite" else ON_POSTGRES
    abandoned = Abandoned(monkeypatch, steps)
    reached, at = True, 0
    while reached:
        at += 1
        tagged = shop.keyed(f"k-{at}").with_options(tags=["vip"])
        before = len(shop.ids())
        abandoned.next_at(at)
        async with openers[kind](shop.place) as transaction:
            with suppress(asyncio.CancelledError):
                calls = [tagged.bind("p-1"), shop.keyed(f"l-{at}").bind("p-2")]
                await transaction.enqueue_many(shop.mill, calls)
            reached = abandoned.was_reached
            with suppress(Exception):
                await transaction.commit()
        assert len(shop.ids()) - before in {0, 2}
    assert at > 8
