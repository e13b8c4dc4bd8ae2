"""Completing a job from a handler that runs in a process of its own (D8)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="handler processes need POSIX")

PROGRAM = """
import asyncio, json, os, sqlite3
from tidemill import JobContext, Retry, Tidemill

mill = Tidemill("sqlite:///jobs.db")

@mill.job("ledger.post", executor="process", retry=Retry.immediate(max_attempts=3))
def post(ctx: JobContext, commit_in: int) -> str:
    tx = sqlite3.connect("jobs.db")
    tx.execute("INSERT INTO ledger VALUES (?)", (os.getpid(),))
    ctx.add_tag("posted")
    ctx.complete_in(tx, "posted")
    (tx.commit if ctx.attempt == commit_in else tx.rollback)()
    return "returned"

async def main():
    ref = await post.enqueue(2)
    async with mill.worker(lease="2s", poll_interval="50ms"):
        await mill.client.wait_for_end(ref.id, 60)
    job = await mill.jobs.get(ref)
    entries = sqlite3.connect("jobs.db").execute("SELECT pid FROM ledger").fetchall()
    kinds = [each.error.kind for each in job.attempts]
    told = [job.state, job.attempt, kinds, sorted(tag.key for tag in job.tags)]
    print(json.dumps([*told, [pid != os.getpid() for (pid,) in entries], await ref.result()]))

if __name__ == "__main__":
    mill.store.migrate()
    sqlite3.connect("jobs.db").execute("CREATE TABLE ledger (pid INTEGER)")
    asyncio.run(main())
"""


def test_a_handler_in_a_process_completes_in_its_own_transaction(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=100,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    state, attempt, errors, tags, elsewhere, output = json.loads(ran.stdout)
    assert (state, attempt, output) == ("succeeded", 2, "posted")
    assert errors == ["tidemill.CompletionRolledBack"]
    assert elsewhere == [True]
    assert tags == ["posted"]
