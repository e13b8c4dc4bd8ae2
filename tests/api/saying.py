"""What handlers say: heard without a worker, or said in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tidemill import Bounds, JobContext
from tidemill.shell.cancellation import Cancellation
from tidemill.shell.completion import Completion
from tidemill.shell.identity import new_id
from tidemill.shell.leaving import Leaving
from tidemill.shell.notepad import Notepad
from tidemill.shell.talk import AttemptTalk
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed, NewJob
from tidemill.values.notes import LogLine, Progress
from tidemill.values.retry import Retry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Saying:
    """What one attempt has said and left so far."""

    def __init__(self) -> None:
        self.leaving: Leaving | None = None
        self.progress: Progress | None = None
        self.lines: list[LogLine] = []
        self.notepad = Notepad(self._hear)

    def _hear(self, notepad: Notepad) -> None:
        said = notepad.take()
        self.progress = said.progress or self.progress
        self.lines += said.lines

    def left(self) -> tuple[NewJob, ...]:
        """The jobs that the attempt leaves."""
        assert self.leaving is not None
        return self.leaving.close()

    def end(self) -> None:
        """End the attempt."""
        self.lines += self.notepad.close().lines


def context(saying: Saying, bounds: Bounds | None = None) -> JobContext:
    """The context of an attempt that no worker runs."""
    job = Claimed(
        id=JobId(new_id()), attempt=Attempt(1), worker=WorkerId(new_id()), wire_name="grind",
        payload=b"{}", queue="default", priority=0, created_at=NOW, due_at=NOW, started_at=NOW,
        timeout=None, retry=Retry(), tenant=None, trace_context=None,
    )  # fmt: skip
    completion = Completion(lambda: None, lambda _: None)
    saying.leaving = Leaving(job)
    talk = AttemptTalk(completion, saying.leaving, saying.notepad)
    more = {} if bounds is None else {"bounds": bounds}
    return JobContext(job, Cancellation(), lambda: NOW, talk, **more)


PROGRAM = """
import asyncio, json, os, sqlite3, time
from tidemill import JobContext, Retry, Tidemill

mill = Tidemill("sqlite:///jobs.db")

@mill.job("ship", queue="vans")
async def ship(order: str) -> None: ...

@mill.job("work", executor="process", retry=Retry.immediate(max_attempts=2))
def work(ctx: JobContext) -> str:
    def looked(holds):
        while not holds(mill.jobs.sync.get(ctx.job_id).record):
            time.sleep(0.005)

    {handler}
    return str(os.getpid())

async def main():
    mill.store.migrate()
    ref = await work.with_options(tenant="acme").enqueue()
    async with mill.worker(lease="2s", poll_interval="50ms"):
        await mill.client.wait_for_end(ref.id, 60)
    job = await mill.jobs.get(ref)
    said = job.record.progress
    page = await mill.jobs.log(ref, limit=200)
    lines = list(page.lines)
    while page.next_cursor is not None:
        page = await mill.jobs.log(ref, cursor=page.next_cursor, limit=200)
        lines += page.lines
    children = (await mill.jobs.list(queue="vans")).jobs
    print(json.dumps({{
        "state": job.state,
        "elsewhere": job.output != str(os.getpid()).encode(),
        "errors": [each.error.message for each in job.attempts],
        "progress": said and [said.attempt, said.fraction, said.message],
        "log": [[each.attempt, each.number, each.message, each.values] for each in lines],
        "children": [[each.tenant, each.state] for each in children],
    }}))

if __name__ == "__main__":
    asyncio.run(main())
"""


def run_in_process(folder: Path, handler: str) -> dict[str, Any]:
    """Run a program whose job has these lines for its handler, in a process of its own.

    In them `ctx` is the context, `ship` another job, and `looked(holds)` waits until the record of
    the job in the store is as it should be. The answer is how the job stands in the end.
    """
    body = textwrap.indent(textwrap.dedent(handler).strip(), "    ").lstrip()
    (folder / "program.py").write_text(PROGRAM.format(handler=body), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, check=False,
        timeout=100,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["elsewhere"]
    return found
