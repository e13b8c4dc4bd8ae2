"""What a user's type checker must refuse, and must not refuse beside it.

The sample is run through both checkers in their strict modes; each has to report errors on
exactly the lines that are marked.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"

SAMPLE = '''\
"""A user's program with mistakes in it."""

from datetime import timedelta
from sqlite3 import Connection

from tidemill import INJECTED, FromDishka, JobContext, JobHandle, JobRef, Retry, Tidemill

mill = Tidemill()


@mill.job("capture")
async def capture(context: JobContext, payment_id: str) -> int:
    return len(payment_id)


@mill.job("render")
def render(order: int, *, size: int = 1) -> str:
    return str(order * size)


class Payments:
    @mill.job_method("refund")
    async def refund(
        self, context: JobContext, payment_id: str, gateway: FromDishka[dict[str, int]] = INJECTED
    ) -> int:
        return gateway.missing(payment_id)  # refused


async def methods(context: JobContext, payments: Payments) -> None:
    await Payments.refund.enqueue("p-1")
    await Payments.refund.enqueue(1)  # refused
    await Payments.refund.enqueue(context, "p-1")  # refused
    await Payments.refund.enqueue(payments, context, "p-1")  # refused
    await payments.refund(context, "p-1")
    await payments.refund("p-1")  # refused
    await Payments.refund(context, "p-1")  # refused
    wrong: JobRef[str] = await Payments.refund.enqueue("p-1")  # refused
    mill.lifespan_with_worker(queues=["mail"], concurrency=3)
    mill.lifespan_with_worker(concurency=3)  # refused
    mill.job("bump", tags=["x"])  # refused
    mill.job_method("bump", prio=3)  # refused
    with mill.worker():  # refused
        pass
    print(wrong)


async def mistakes(context: JobContext) -> None:
    await capture.enqueue("p-1")
    await capture.enqueue(1)  # refused
    await capture.enqueue()  # refused
    await capture.enqueue("p-1", "more")  # refused
    await capture.enqueue(payment="p-1")  # refused
    await capture.enqueue(context, "p-1")  # refused
    capture.enqueue("p-1")  # refused
    await render.enqueue(1, size=2)
    await render.enqueue(1, 2)  # refused
    await render.enqueue(1, size="big")  # refused
    capture.bind("p-1")
    capture.bind(b"p-1")  # refused
    capture.sync.enqueue("p-1")
    capture.sync.enqueue(1)  # refused
    await capture(context, "p-1")
    await capture("p-1")  # refused
    render(1)
    render("1")  # refused


async def results() -> None:
    ref: JobRef[int] = await capture.enqueue("p-1")
    number: int = await ref.result(timeout=1)
    text: str = await ref.result(timeout=1)  # refused
    other: JobRef[str] = ref  # refused
    wider: JobRef[object] = ref
    print(number, text, other, wider)


def saying(context: JobContext) -> None:
    context.progress(0.5, "half")
    context.progress(None)
    context.progress("half")  # refused
    context.progress(0.5, 5)  # refused
    context.progress()  # refused
    context.log("copied", rows=12, table="orders")
    context.log(rows=12)  # refused
    context.log("copied", 12)  # refused
    ref: JobRef[int] = context.enqueue(capture.bind("p-1"))
    other: JobRef[str] = context.enqueue(capture.bind("p-1"))  # refused
    context.enqueue(capture)  # refused
    context.enqueue(capture.bind(1))  # refused
    context.enqueue(render.with_options(delay="1h").bind(1))
    print(ref, other)


async def awaiting(context: JobContext) -> None:
    await context.enqueue(capture.bind("p-1"))  # refused
    await context.progress(0.5)  # refused


class Awaited:
    async def execute(self, sql: str) -> None:
        print(sql)


async def transactions(blocking: Connection, awaited: Awaited) -> None:
    ref: JobRef[int] = capture.enqueue_in(blocking, "p-1")
    capture.enqueue_in(blocking, 1)  # refused
    capture.enqueue_in(blocking)  # refused
    await capture.enqueue_in(blocking, "p-1")  # refused
    capture.enqueue_in("tx", "p-1")  # refused
    capture.enqueue_in(blocking.cursor(), "p-1")  # refused
    ref = await capture.enqueue_in(awaited, "p-1")
    await capture.enqueue_in(awaited, 1)  # refused
    capture.enqueue_in(awaited, "p-1")  # refused
    ref = capture.enqueue_in(awaited, "p-1")  # refused
    await mill.enqueue_many_in(awaited, [capture.bind("p-1"), capture.bind("p-2")])
    mill.enqueue_many_in(awaited, [capture.bind("p-1")])  # refused
    mill.enqueue_many_in(blocking, [capture.bind("p-1")])
    mill.enqueue_many_in(blocking, [capture])  # refused
    print(ref)


async def options() -> None:
    await capture.with_options(delay=timedelta(hours=1)).enqueue("p-1")
    await capture.with_options(delay="1h", tags=["vip", ("order", "42")]).enqueue("p-1")
    await capture.with_options(delay=5).enqueue("p-1")  # refused
    await capture.with_options(at="tomorrow").enqueue("p-1")  # refused
    await capture.with_options(tags=[1]).enqueue("p-1")  # refused
    await capture.with_options(priority="high").enqueue("p-1")  # refused
    await capture.with_options(tag="vip").enqueue("p-1")  # refused
    await capture.with_options(priority=1).enqueue(1)  # refused
    await mill.enqueue_many([capture.bind("p-1"), render.bind(1)])
    await mill.enqueue_many([capture, render])  # refused
    await mill.jobs.cancel((await capture.enqueue("p-1")).id)  # refused


mill.job("named", retry=3)  # refused
mill.job("named", retry=Retry.exponential(first="5s", cap=timedelta(hours=2), retry_on=(OSError,)))
mill.job("named", retry=Retry.exponential(first=5))  # refused
mill.job("named", retry=Retry.immediate(retries=3))  # refused
mill.job("named", retry=Retry.never(max_attempts=3))  # refused
mill.job("named", extra="maybe")  # refused
mill.job("named", executor="fork")  # refused
wrong: JobHandle[[int], int] = capture  # refused
'''


def refused(checker: list[str], where: Path) -> set[int]:
    """The lines of the sample with errors, as one checker sees them."""
    ran = subprocess.run(
        [sys.executable, "-m", *checker, "sample.py"],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    if "--outputjson" in checker:
        found = json.loads(ran.stdout)["generalDiagnostics"]
        return {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}
    return {
        int(line) for line in re.findall(r"^sample\.py:(\d+): error:", ran.stdout, re.MULTILINE)
    }


@pytest.mark.parametrize(
    "checker", [["mypy", "--strict"], ["pyright", "--outputjson"]], ids=lambda value: value[0]
)
def test_each_mistake_of_a_user_is_refused_and_nothing_else(
    checker: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nmypy_path = {SRC}\n", encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "strict", "extraPaths": [str(SRC)], "include": ["."]}),
        encoding="utf-8",
    )
    marked = {
        number
        for number, line in enumerate(SAMPLE.splitlines(), start=1)
        if line.endswith("# refused")
    }
    assert refused(checker, tmp_path) == marked
