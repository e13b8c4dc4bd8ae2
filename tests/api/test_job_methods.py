"""Jobs that are methods: their class is resolved once per attempt, like a controller."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from tidemill import (
    INJECTED,
    FromDishka,
    JobContext,
    JobGroup,
    JobHandle,
    JobNotSucceeded,
    Retry,
    Tidemill,
)
from tidemill.errors import DeclarationError
from tidemill.testing import Harness, Manifest

mill = Tidemill("memory://")


class Rates:
    """A service."""


class Payments:
    """A controller."""

    made: ClassVar[list[Payments]] = []

    def __init__(self) -> None:
        self.made.append(self)

    @mill.job_method("payments.capture", queue="payments", aliases=["payments.take"])
    async def capture(self, context: JobContext, payment: str, *, amount: int = 1) -> str:
        """Take the money."""
        return f"{self.name()} took {amount} for {payment} in attempt {context.attempt}"

    @mill.job_method("payments.refund")
    async def refund(self, payment: str) -> list[str]:
        await self.render.enqueue(1)
        return [self.name(), payment]

    @mill.job_method("payments.render")
    def render(self, order: int, rates: FromDishka[Rates] = INJECTED) -> str:
        return f"{order} by {type(rates).__name__}"

    @mill.job_method("payments.count")
    def count(self, context: JobContext) -> int:
        return context.attempt

    def name(self) -> str:
        return type(self).__name__


class Careful(Payments):
    """Stands in for its base."""

    async def refund(self, payment: str) -> list[str]:
        return ["carefully", payment]


@pytest.fixture
def provided() -> dict[type, Any]:
    """What scopes make of each class."""
    return {Payments: Payments, Rates: Rates}


@pytest.fixture(autouse=True)
def _scopes(provided: dict[type, Any]) -> None:
    @asynccontextmanager
    async def scopes(context: JobContext) -> AsyncGenerator[Any]:
        async def get(wanted: Any) -> Any:
            return provided[wanted]()

        yield SimpleNamespace(get=get)

    mill.use_scopes(scopes)
    Payments.made.clear()


def share_scopes(app: Tidemill) -> None:
    assert mill.scopes is not None
    app.use_scopes(mill.scopes.open)


async def test_a_method_is_run_on_an_object_of_its_class() -> None:
    async with Harness(mill) as h:
        taken = await Payments.capture.enqueue("p-1", amount=3)
        refunded = await Payments.refund.enqueue("p-2")
        counted = await Payments.count.enqueue()
        assert await h.run_until_idle() == 4
        assert await taken.result() == "Payments took 3 for p-1 in attempt 1"
        assert await refunded.result() == ["Payments", "p-2"]
        assert await counted.result() == 1
        (rendered,) = h.enqueued(Payments.render, order=1)
        assert rendered.output == "1 by Rates"
    assert len(set(map(id, Payments.made))) == 4


async def test_a_worker_runs_methods() -> None:
    async with mill.worker(queues=["payments", "default"]):
        ref = await Payments.capture.enqueue("p-1")
        assert await ref.result(timeout=30) == "Payments took 1 for p-1 in attempt 1"
        other = await Payments.render.with_options(queue="payments").enqueue(7)
        assert await other.result(timeout=30) == "7 by Rates"


def test_a_method_is_a_handle_on_its_class() -> None:
    assert isinstance(Payments.capture, JobHandle)
    assert (Payments.capture.wire_name, Payments.capture.__doc__) == (
        "payments.capture",
        "Take the money.",
    )
    assert Payments.capture.bind("p-1").payload == b'{"payment":"p-1"}'
    assert Payments.capture.function.__qualname__ == "Payments.capture"
    with pytest.raises(TypeError, match="'rates' cannot be passed"):
        Payments.render.bind(1, Rates())


async def test_a_method_is_a_method_on_an_object() -> None:
    payments, context = Payments(), SimpleNamespace(attempt=7)
    asked: Any = context
    assert await payments.capture(asked, "p-1") == "Payments took 1 for p-1 in attempt 7"
    assert payments.render(2, Rates()) == "2 by Rates"
    assert payments.count(asked) == 7
    assert Payments.count(payments, asked) == 7


async def test_what_stands_in_for_a_class_may_override_its_methods(
    provided: dict[type, Any],
) -> None:
    provided[Payments] = Careful
    async with Harness(mill) as h:
        assert await h.perform(Payments.refund, "p-1") == ["carefully", "p-1"]
        assert await h.perform(Payments.capture, "p-1") == "Careful took 1 for p-1 in attempt 1"


def test_a_subclass_has_the_jobs_of_its_base() -> None:
    assert Careful.capture is Payments.capture
    assert not isinstance(Careful.refund, JobHandle)


async def test_a_class_that_its_decorator_makes_anew_is_the_one_that_is_asked_for(
    provided: dict[type, Any],
) -> None:
    app = Tidemill("memory://")
    share_scopes(app)

    @dataclass(slots=True)
    class Slotted:
        rate: int = 3

        @app.job_method("slotted.run")
        def run(self) -> int:
            return self.rate

    provided[Slotted] = Slotted
    async with Harness(app) as h:
        assert await h.perform(Slotted.run) == 3


def test_a_job_that_another_class_borrows_stays_with_its_own() -> None:
    class Borrower:
        take = Payments.capture

    found = mill.registry.get("payments.capture")
    assert found is not None
    assert found.injection is not None
    assert found.injection.job_class is Payments
    assert Borrower.take is Payments.capture


def test_the_manifest_has_methods_without_self_and_services(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="was written"):
        Manifest(tmp_path / "jobs.json").check(mill)
    jobs = json.loads((tmp_path / "jobs.json").read_text())["jobs"]
    assert list(jobs["payments.render"]["parameters"]) == ["order"]
    assert list(jobs["payments.capture"]["parameters"]) == ["payment", "amount"]


async def test_an_overriding_job_is_run_under_both_names(provided: dict[type, Any]) -> None:
    app = Tidemill("memory://")
    share_scopes(app)

    class Base:
        @app.job_method("base.run")
        def run(self, x: int) -> str:
            return f"base {x}"

    class Special(Base):
        @app.job_method("special.run")
        def run(self, x: int) -> str:
            return f"special {x}"

    provided |= {Base: Special, Special: Special}
    async with Harness(app) as h:
        assert await h.perform(Base.run, 1) == "special 1"
        assert await h.perform(Special.run, 2) == "special 2"


async def test_the_error_of_a_method_keeps_its_traceback(provided: dict[type, Any]) -> None:
    app = Tidemill("memory://")
    share_scopes(app)

    class Faulty:
        @app.job_method("faulty.run")
        async def run(self) -> None:
            message = "no such card"
            raise LookupError(message)

    provided[Faulty] = Faulty
    async with app.worker():
        ref = await Faulty.run.with_options(retry=Retry.never()).enqueue()
        with pytest.raises(JobNotSucceeded) as raised:
            await ref.result(timeout=30)
    error = raised.value.error
    assert error is not None
    assert "in run" in error.detail
    assert "src/tidemill" not in error.detail


def _no_self() -> None: ...
def _function(payment: str) -> None: ...


@pytest.mark.parametrize("function", [_no_self, _function])
def test_a_function_is_no_method(function: Any) -> None:
    with pytest.raises(DeclarationError, match=r'is no method.*write @mill.job\("a"\)'):
        Tidemill().job_method("a")(function)


def test_a_method_is_no_function() -> None:
    with pytest.raises(DeclarationError, match=r'on the method .*: write @mill.job_method\("a"\)'):

        class Payments:
            @Tidemill().job("a")
            def capture(self) -> None: ...


def test_the_context_comes_right_after_self() -> None:
    with pytest.raises(DeclarationError, match="'context' of job 'a' is the JobContext"):

        class Payments:
            @Tidemill().job_method("a")
            def capture(self, payment: str, context: JobContext) -> None: ...


async def test_a_method_that_no_class_has_taken_in_is_refused_when_a_worker_starts() -> None:
    app = Tidemill("memory://")
    share_scopes(app)

    class Payments:
        @property
        @app.job_method("a")
        def capture(self) -> None: ...

    with pytest.raises(DeclarationError, match=r"'a' is declared on .*capture, which no class has"):
        await app.worker().start()


async def test_a_worker_does_not_start_without_scopes_for_a_job_class() -> None:
    app = Tidemill("memory://")

    class Payments:
        @app.job_method("a")
        def capture(self) -> None: ...

    with pytest.raises(DeclarationError, match=r"'a' cannot run: it is a method, and wants .*Paym"):
        await app.worker().start()


SOURCE = """
class Payments:
    @mill.job_method("capture")
    def capture(self) -> int:
        return 1
"""


def declared(app: Tidemill, name: str, file: str) -> Any:
    module = ModuleType(name)
    module.__dict__["mill"] = app
    exec(compile(SOURCE, file, "exec"), module.__dict__)
    return module.__dict__["Payments"]


@pytest.mark.parametrize("names", [("shop", "shop"), ("__main__", "shop"), ("shop", "__main__")])
def test_the_same_class_declared_again_replaces_the_one_before(names: tuple[str, str]) -> None:
    app = Tidemill()
    for name in names:
        payments = declared(app, name, "shop.py")
    found = app.registry.get("capture")
    assert found is not None
    assert found.injection is not None
    assert found.injection.job_class is payments


def test_the_same_name_in_another_class_is_refused_with_both_places() -> None:
    app = Tidemill()
    declared(app, "shop", "shop.py")
    with pytest.raises(DeclarationError) as refused:
        declared(app, "store", "store.py")
    assert "shop.Payments.capture (shop.py:3)" in str(refused.value)
    assert "store.Payments.capture (store.py:3)" in str(refused.value)


def test_a_group_declares_methods() -> None:
    app, group = Tidemill(), JobGroup("payments.")

    class Payments:
        @group.job_method("capture")
        def capture(self, x: int) -> None: ...

    app.include(group)
    assert Payments.capture.wire_name == "payments.capture"
    assert app.registry.wire_names() == {"payments.capture"}
