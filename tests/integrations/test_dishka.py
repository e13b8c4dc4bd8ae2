"""dishka: what providers make for an attempt, and what becomes of it when the attempt ends."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from dishka import (
    AsyncContainer,
    Container,
    FromComponent,
    Provider,
    Scope,
    from_context,
    make_async_container,
    make_container,
    provide,
)

from tidemill import INJECTED, JobContext, JobNotSucceeded, Retry, Tidemill
from tidemill.errors import DeclarationError
from tidemill.integrations.dishka import FromDishka, TidemillProvider, setup_dishka
from tidemill.testing import Harness


class Engine:
    """Lasts as long as the process."""


class Session:
    """Lasts as long as one attempt."""

    def __init__(self, engine: Engine, key: str) -> None:
        self.engine, self.key, self.thread = engine, key, threading.get_ident()


class Missing:
    """Nobody provides it."""


class Closing:
    """What happened to the sessions."""

    def __init__(self) -> None:
        self.ends: list[BaseException | None] = []
        self.fault: Exception | None = None

    def end(self, error: BaseException | None) -> None:
        self.ends.append(error)
        if self.fault is not None:
            raise self.fault


class Providers(Provider):
    """The providers that both kinds of container can use."""

    closing = from_context(Closing, scope=Scope.APP)
    engine = provide(Engine, scope=Scope.APP)


class AsyncSessions(Providers):
    @provide(scope=Scope.REQUEST)
    async def session(
        self, engine: Engine, context: JobContext, closing: Closing
    ) -> AsyncIterable[Session]:
        error = yield Session(engine, f"{context.wire_name}/{context.attempt}")
        await asyncio.sleep(0)
        closing.end(error)


class SyncSessions(Providers):
    @provide(scope=Scope.REQUEST)
    def session(self, engine: Engine, context: JobContext, closing: Closing) -> Iterable[Session]:
        error = yield Session(engine, f"{context.wire_name}/{context.attempt}")
        closing.end(error)


@pytest.fixture
def closing() -> Closing:
    return Closing()


@pytest.fixture(params=["async", "sync"])
def container(request: pytest.FixtureRequest, closing: Closing) -> AsyncContainer | Container:
    context = {Closing: closing}
    if request.param == "async":
        return make_async_container(AsyncSessions(), TidemillProvider(), context=context)
    return make_container(SyncSessions(), TidemillProvider(), context=context)


@pytest.fixture
def mill(container: AsyncContainer | Container) -> Tidemill:
    made = Tidemill("memory://")
    setup_dishka(container, made)
    return made


async def test_app_services_are_shared_and_request_services_are_of_one_attempt(
    mill: Tidemill, closing: Closing
) -> None:
    seen: list[Session] = []

    @mill.job("coroutine")
    async def coroutine(session: FromDishka[Session] = INJECTED) -> str:
        seen.append(session)
        return session.key

    @mill.job("plain")
    def plain(session: FromDishka[Session] = INJECTED) -> str:
        seen.append(session)
        return session.key

    async with mill.worker():
        for handle in (coroutine, plain):
            ref = await handle.enqueue()
            assert await ref.result(timeout=30) == f"{handle.wire_name}/1"
    one, other = seen
    assert one is not other
    assert one.engine is other.engine
    assert closing.ends == [None, None]


async def test_a_synchronous_container_makes_services_on_the_thread_of_a_plain_handler(
    mill: Tidemill, container: AsyncContainer | Container
) -> None:
    @mill.job("plain")
    def plain(session: FromDishka[Session] = INJECTED) -> bool:
        return session.thread == threading.get_ident()

    async with mill.worker():
        ref = await plain.enqueue()
        assert await ref.result(timeout=30) is isinstance(container, Container)


@pytest.mark.parametrize("plain", [True, False])
async def test_a_provider_is_told_what_the_handler_raised(
    mill: Tidemill, closing: Closing, plain: bool
) -> None:
    error = LookupError("no such order")

    @mill.job("plain", retry=Retry.never())
    def raising(session: FromDishka[Session] = INJECTED) -> None:
        raise error

    @mill.job("coroutine", retry=Retry.never())
    async def raising_async(session: FromDishka[Session] = INJECTED) -> None:
        raise error

    async with Harness(mill) as h:
        ref = await (raising if plain else raising_async).enqueue()
        await h.run_until_idle(raise_errors=False)
        assert (await h.job(ref)).state == "dead"
    assert closing.ends == [error]


@pytest.mark.parametrize("plain", [True, False])
async def test_a_commit_that_fails_when_the_scope_closes_fails_the_attempt_with_its_own_error(
    mill: Tidemill, closing: Closing, plain: bool
) -> None:
    closing.fault = ConnectionError("the commit was refused")
    policy = Retry.fixed("1m", retry_on=(ConnectionError,), max_attempts=2)

    @mill.job("plain", retry=policy)
    def saving(session: FromDishka[Session] = INJECTED) -> None: ...

    @mill.job("coroutine", retry=policy)
    async def saving_async(session: FromDishka[Session] = INJECTED) -> None: ...

    async with Harness(mill) as h:
        ref = await (saving if plain else saving_async).enqueue()
        assert await h.run_until_idle() == 1
        job = await h.job(ref)
        assert job.state == "scheduled"
        assert job.error is not None
        assert (job.error.kind, job.error.message) == (
            "ConnectionError",
            "the commit was refused",
        )
        closing.fault = None
        await h.advance("1m")
        assert await h.run_until_idle() == 1
        assert (await h.job(ref)).state == "succeeded"


class First:
    """Made first, closed last."""


class Second:
    """Made of the first."""


class Slow(Provider):
    """The second one takes for ever to close."""

    scope = Scope.REQUEST

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[str] = []
        self.closing = asyncio.Event()

    @provide
    async def first(self) -> AsyncIterable[First]:
        yield First()
        self.ended.append("first")

    @provide
    async def second(self, first: First) -> AsyncIterable[Second]:
        yield Second()
        self.closing.set()
        await asyncio.Event().wait()
        self.ended.append("second")


async def test_a_cancelled_finalizer_keeps_none_of_the_others_from_running() -> None:
    provider, mill = Slow(), Tidemill()
    setup_dishka(make_async_container(provider), mill)
    assert mill.scopes is not None
    scope: Any = mill.scopes.open(None)

    async def attempt() -> None:
        async with scope:
            await scope.get(Second)

    running = asyncio.create_task(attempt())
    await provider.closing.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert provider.ended == ["first"]


async def test_a_component_is_told_from_others() -> None:
    cards, cash = Provider(component="cards"), Provider(component="cash")
    cards.provide(lambda: "card", provides=str, scope=Scope.REQUEST)
    cash.provide(lambda: "coin", provides=str, scope=Scope.APP)
    mill = Tidemill("memory://")
    setup_dishka(make_async_container(cards, cash), mill)

    @mill.job("pay")
    async def pay(
        one: Annotated[str, FromComponent("cards")] = INJECTED,
        other: Annotated[str, FromComponent("cash")] = INJECTED,
    ) -> str:
        return f"{one} and {other}"

    async with mill.worker():
        ref = await pay.enqueue()
        assert await ref.result(timeout=30) == "card and coin"


class Payments:
    """A controller."""

    def __init__(self, session: Session) -> None:
        self.session = session


def declare_method(mill: Tidemill) -> Any:
    class Controller(Payments):
        @mill.job_method("capture")
        async def capture(self, payment: str, other: FromDishka[Session] = INJECTED) -> str:
            return f"{payment} {self.session.key} {self.session is other}"

    return Controller


async def test_a_job_class_is_made_by_the_container_once_per_attempt(closing: Closing) -> None:
    mill = Tidemill("memory://")
    controller = declare_method(mill)
    own = Provider(scope=Scope.REQUEST)
    own.provide(controller)
    sessions = AsyncSessions(), TidemillProvider(), own
    setup_dishka(make_async_container(*sessions, context={Closing: closing}), mill)
    async with mill.worker():
        ref = await controller.capture.enqueue("p-1")
        assert await ref.result(timeout=30) == "p-1 capture/1 True"


@pytest.mark.parametrize("make", [make_async_container, make_container])
async def test_a_job_class_that_all_attempts_would_share_is_refused_at_start(make: Any) -> None:
    mill = Tidemill("memory://")

    class Controller:
        @mill.job_method("capture")
        def capture(self) -> None: ...

    shared = Provider(scope=Scope.APP)
    shared.provide(Controller)
    setup_dishka(make(shared), mill)
    with pytest.raises(DeclarationError) as refused:
        await mill.worker().start()
    assert "Job 'capture' cannot run: it is a method, and wants" in str(refused.value)
    assert "which the container provides once for all attempts. Provide the class in Scope.REQ" in (
        str(refused.value)
    )


@pytest.mark.parametrize("scope", [None, Scope.ACTION, Scope.STEP])
async def test_what_no_attempt_can_have_is_refused_at_start(
    mill: Tidemill, scope: Scope | None
) -> None:
    if scope is not None:
        inner = Provider(scope=scope)
        inner.provide(Missing)
        setup_dishka(make_async_container(inner), mill)

    @mill.job("lacking")
    async def lacking(missing: FromDishka[Missing] = INJECTED) -> None: ...

    with pytest.raises(DeclarationError) as refused:
        await mill.worker().start()
    assert "Job 'lacking' cannot run: its parameter 'missing' wants" in str(refused.value)
    assert "Missing, which the container does not provide to an attempt." in str(refused.value)


@pytest.mark.parametrize("scope", [Scope.APP, Scope.SESSION, Scope.REQUEST])
async def test_what_every_attempt_can_have_is_not_refused(scope: Scope) -> None:
    mill = Tidemill("memory://")
    given = Provider(scope=scope)
    given.provide(Missing)
    given.provide(lambda: [1], provides=list[int])
    setup_dishka(make_async_container(given, TidemillProvider()), mill)

    @mill.job("full")
    async def full(
        missing: FromDishka[Missing] = INJECTED,
        numbers: FromDishka[list[int]] = INJECTED,
        context: FromDishka[JobContext] = INJECTED,
        container: FromDishka[AsyncContainer] = INJECTED,
    ) -> str:
        assert await container.get(Missing) is missing
        return f"{numbers} {context.wire_name}"

    async with mill.worker():
        ref = await full.enqueue()
        assert await ref.result(timeout=30) == "[1] full"


async def test_a_provider_that_fails_fails_the_attempt(mill: Tidemill) -> None:
    def broken() -> Missing:
        message = "no configuration"
        raise LookupError(message)

    failing = Provider(scope=Scope.REQUEST)
    failing.provide(broken)
    setup_dishka(make_async_container(failing), mill)

    @mill.job("lacking", retry=Retry.never())
    async def lacking(missing: FromDishka[Missing] = INJECTED) -> None: ...

    async with mill.worker():
        ref = await lacking.enqueue()
        with pytest.raises(JobNotSucceeded, match="LookupError: no configuration"):
            await ref.result(timeout=30)


class Ledger(Provider):
    """A transaction that is committed when the scope closes, if the handler returned."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.left: list[BaseException | None] = []

    @provide(scope=Scope.REQUEST)
    def transaction(self) -> Iterable[sqlite3.Connection]:
        connection = sqlite3.connect(self.file, isolation_level=None)
        connection.execute("CREATE TABLE IF NOT EXISTS ledger (entry TEXT)")
        connection.execute("BEGIN IMMEDIATE")
        error = yield connection
        self.left.append(error)
        connection.execute("COMMIT" if error is None else "ROLLBACK")
        connection.close()
        if len(self.left) == 3:
            message = "closing the connection failed"
            raise ConnectionError(message)


async def test_a_session_that_commits_when_its_scope_closes_may_complete_the_job(
    tmp_path: Path,
) -> None:
    mill = Tidemill(f"sqlite:///{tmp_path}/jobs.db")
    ledger = Ledger(tmp_path / "jobs.db")
    setup_dishka(make_container(ledger), mill)

    @mill.job("post", retry=Retry.immediate(max_attempts=2))
    def post(
        context: JobContext, entry: str, tx: FromDishka[sqlite3.Connection] = INJECTED
    ) -> None:
        tx.execute("INSERT INTO ledger VALUES (?)", (f"{entry} in attempt {context.attempt}",))
        context.complete_in(tx, output=entry)
        if entry == "b" and context.attempt == 1:
            raise LookupError(entry)

    async with mill.worker(concurrency=1, poll_interval="50ms"):
        for entry in ("a", "b"):
            ref = await post.enqueue(entry)
            await mill.client.wait_for_end(ref.id, 60)
            job = await mill.jobs.get(ref)
            assert (job.record.state, job.output) == ("succeeded", f'"{entry}"'.encode())
    mill.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        posted = connection.execute("SELECT entry FROM ledger").fetchall()
    assert posted == [("a in attempt 1",), ("b in attempt 2",)]
    assert [type(each) for each in ledger.left] == [type(None), LookupError, type(None)]


async def test_another_container_takes_the_place_of_the_first(mill: Tidemill) -> None:
    other = Provider(scope=Scope.REQUEST)
    other.provide(lambda: SimpleNamespace(key="in a test"), provides=Session)
    setup_dishka(make_async_container(other), mill)

    @mill.job("a")
    async def a(session: FromDishka[Session] = INJECTED) -> str:
        return session.key

    async with Harness(mill) as h:
        assert await h.perform(a) == "in a test"


PROCESSES = """
import asyncio, os
from dishka import Provider, Scope, make_async_container
from tidemill import INJECTED, FromDishka, Tidemill
from tidemill.integrations.dishka import setup_dishka

mill = Tidemill("sqlite:///jobs.db")

class Pid(int): ...

@mill.job("compute", executor="process")
def compute(made_in: FromDishka[Pid] = INJECTED) -> bool:
    return made_in == os.getpid()

class Sums:
    @mill.job_method("add", executor="process")
    async def add(self, x: int, made_in: FromDishka[Pid] = INJECTED) -> list[int]:
        return [x + 1, int(made_in)]

own = Provider(scope=Scope.REQUEST)
own.provide(lambda: Pid(os.getpid()), provides=Pid)
own.provide(Sums)
setup_dishka(make_async_container(own), mill)

async def main():
    async with mill.worker():
        print(await (await compute.enqueue()).result(timeout=60))
        total, pid = await (await Sums.add.enqueue(1)).result(timeout=60)
        print(total, pid != os.getpid())
    mill.close()

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_handler_in_a_process_is_given_services_made_there(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(PROCESSES)
    ran = subprocess.run(
        [sys.executable, "sums.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.returncode) == ("True\n2 True\n", 0), ran.stderr


def test_without_dishka_the_import_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['dishka'] = None\n"
        "import tidemill\n"
        "try:\n    import tidemill.integrations.dishka\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert 'needs dishka, which is not installed: pip install "tidemill[di]".' in ran.stdout
