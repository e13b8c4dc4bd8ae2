"""A handler that pays an entry of a ledger in the same database, and completes in that transaction.

* `PROMISE_DIES_AT`: the moment at which this process is killed, as soon as a handler comes there.
* `PROMISE_STOPS_AT`: the moment at which it stops, and goes on when somebody says so.
* `PROMISE_LEDGER`: the URL of the ledger, where it is not the store's.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from typing import Any

import psycopg
from tests.promises.promised import AT_ONCE, child, journal, mill, stand_still

from tidemill import JobContext

MOMENTS = ("begun", "paid", "completed", "committed")


def connect(url: str) -> Any:
    """A connection to the ledger, without a transaction on it."""
    if url.startswith("sqlite:"):
        return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
    return psycopg.connect(url)


def come_to(moment: str) -> None:
    if os.environ.get("PROMISE_DIES_AT") == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("PROMISE_STOPS_AT") == moment:
        stand_still()


@mill.job("ledger.pay", retry=AT_ONCE)
def pay(ctx: JobContext, entry: int) -> None:
    """Pay the entry and complete in one transaction; a body of an attempt may pay only once."""
    journal("begin", ctx.job_id, ctx.attempt)
    ctx.add_tag("attempt", str(ctx.attempt))
    ctx.enqueue(child.bind(str(ctx.job_id), ctx.attempt))
    come_to("begun")
    url = os.environ.get("PROMISE_LEDGER") or os.environ["TIDEMILL_STORE"]
    with closing(connect(url)) as tx:
        tx.execute("BEGIN IMMEDIATE" if isinstance(tx, sqlite3.Connection) else "SELECT 1")
        tx.execute(f"UPDATE ledger SET paid = paid + 1 WHERE entry = {entry}")
        come_to("paid")
        ctx.complete_in(tx, output=ctx.attempt)
        journal("finish", ctx.job_id, ctx.attempt)
        come_to("completed")
        tx.commit()
    come_to("committed")
