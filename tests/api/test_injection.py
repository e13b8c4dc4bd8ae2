"""Services: parameters that the caller never passes, and the worker always gives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import dishka
import pytest

from tidemill import INJECTED, FromDishka, JobContext, JobNotSucceeded, Retry, Tidemill
from tidemill.errors import DeclarationError, DecodingError
from tidemill.registry import JobDefinition
from tidemill.testing import Harness, Manifest

if TYPE_CHECKING:
    from decimal import Decimal


class Gateway:
    """What captures payments."""

    def capture(self, payment: str) -> str:
        return f"captured {payment}"


@asynccontextmanager
async def scopes(context: JobContext) -> AsyncGenerator[Any]:
    made: dict[Any, Any] = {Gateway: Gateway(), JobContext: context}

    async def get(wanted: Any) -> Any:
        return made[wanted]

    yield SimpleNamespace(get=get)


@pytest.fixture
def mill() -> Tidemill:
    made = Tidemill("memory://")
    made.use_scopes(scopes)
    return made


def definition(mill: Tidemill, name: str) -> JobDefinition:
    found = mill.registry.get(name)
    assert found is not None
    return found


def services(mill: Tidemill) -> object:
    injection = definition(mill, "a").injection
    return injection and injection.services


async def test_a_handler_is_given_its_services_by_a_worker(mill: Tidemill) -> None:
    @mill.job("capture")
    async def capture(
        context: JobContext, payment: str, gateway: FromDishka[Gateway] = INJECTED
    ) -> str:
        return gateway.capture(payment)

    @mill.job("render")
    def render(payment: str, *, gateway: FromDishka[Gateway] = INJECTED) -> str:
        return gateway.capture(payment)

    async with mill.worker():
        for handle in (capture, render):
            ref = await handle.enqueue("p-1")
            assert await ref.result(timeout=30) == "captured p-1"
            assert (await mill.jobs.get(ref)).payload == b'{"payment":"p-1"}'


async def test_a_handler_is_given_its_services_by_a_harness(mill: Tidemill) -> None:
    @mill.job("capture")
    async def capture(payment: str, gateway: FromDishka[Gateway] = INJECTED) -> str:
        return gateway.capture(payment)

    async with Harness(mill) as h:
        assert await h.perform(capture, "p-1") == "captured p-1"
        await capture.enqueue("p-2")
        assert await h.run_until_idle() == 1
        assert len(h.enqueued(capture, payment="p-2")) == 1


def _marked(gateway: FromDishka[Gateway] = INJECTED) -> None: ...
def _plain(gateway: Gateway = INJECTED) -> None: ...
def _by_keyword(*, gateway: FromDishka[Gateway] = INJECTED) -> None: ...
def _dishkas(gateway: dishka.FromDishka[Gateway] = INJECTED) -> None: ...


def _evaluated(annotation: Any) -> Callable[..., None]:
    def handler(gateway=INJECTED): ...

    handler.__annotations__["gateway"] = annotation
    return handler


@pytest.mark.parametrize("function", [_marked, _plain, _by_keyword, _dishkas])
def test_a_service_is_known_by_its_default(mill: Tidemill, function: Callable[..., None]) -> None:
    mill.job("a")(function)
    assert services(mill) == {"gateway": Gateway}
    assert definition(mill, "a").decode(b"{}") == {}


@pytest.mark.parametrize(
    "annotation",
    [
        FromDishka[Gateway],
        FromDishka["Gateway"],
        dishka.FromDishka[Gateway],
        Annotated[Gateway, dishka.FromComponent("")],
        Gateway,
    ],
    ids=["ours", "quoted", "dishka's", "by component", "plain"],
)
def test_an_evaluated_annotation_says_the_same(mill: Tidemill, annotation: Any) -> None:
    mill.job("a")(_evaluated(annotation))
    assert services(mill) == {"gateway": Gateway}


def test_the_type_of_a_service_may_be_imported_for_type_checkers_only(mill: Tidemill) -> None:
    @mill.job("a")
    def a(rate: FromDishka[Decimal] = INJECTED) -> None: ...

    found = definition(mill, "a")
    found.resolve()
    assert found.injection is not None
    assert found.injection.services["rate"].__name__ == "Decimal"


def test_a_component_of_dishkas_is_part_of_what_is_wanted(mill: Tidemill) -> None:
    wanted = Annotated[Gateway, dishka.FromComponent("cards")]
    mill.job("a")(_evaluated(wanted))
    assert services(mill) == {"gateway": wanted}


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((Gateway(),), {}), ((), {"gateway": Gateway()}), ((INJECTED,), {})],
    ids=["by position", "by name", "the default"],
)
def test_a_service_cannot_be_passed(mill: Tidemill, args: Any, kwargs: Any) -> None:
    @mill.job("capture")
    def capture(payment: str, gateway: FromDishka[Gateway] = INJECTED, size: int = 1) -> None: ...

    with pytest.raises(TypeError, match="capture: 'gateway' cannot be passed: the worker gives"):
        capture.bind("p-1", *args, **kwargs)
    assert capture.bind("p-1", size=2).payload == b'{"payment":"p-1","size":2}'


def test_a_service_in_a_stored_payload_is_a_parameter_that_the_handler_does_not_take(
    mill: Tidemill,
) -> None:
    mill.job("strict")(_marked)
    mill.job("lenient", extra="ignore")(_by_keyword)
    with pytest.raises(DecodingError, match="holds 'gateway', which its handler does not take"):
        definition(mill, "strict").decode(b'{"gateway":1}')
    assert definition(mill, "lenient").decode(b'{"gateway":1}') == {}


def test_services_are_no_part_of_the_manifest(mill: Tidemill, tmp_path: Any) -> None:
    def before(payment: str) -> None: ...
    def after(payment: str, gateway: FromDishka[Gateway] = INJECTED) -> None: ...

    manifest = Manifest(tmp_path / "jobs.json")
    mill.job("capture")(before)
    with pytest.raises(AssertionError, match="was written"):
        manifest.check(mill)
    other = Tidemill()
    other.job("capture")(after)
    manifest.check(other)


def _no_default(gateway: FromDishka[Gateway]) -> None: ...
def _other_default(gateway: FromDishka[Gateway] = None) -> None: ...
def _no_default_evaluated(gateway): ...


_no_default_evaluated.__annotations__["gateway"] = dishka.FromDishka[Gateway]


@pytest.mark.parametrize("function", [_no_default, _other_default, _no_default_evaluated])
def test_a_service_without_its_default_is_refused(
    mill: Tidemill, function: Callable[..., None]
) -> None:
    with pytest.raises(DeclarationError, match=r"'gateway' of job 'a' .* FromDishka\[…\] = INJEC"):
        mill.job("a")(function)


def test_a_service_without_a_type_is_refused(mill: Tidemill) -> None:
    def handler(gateway=INJECTED): ...

    with pytest.raises(DeclarationError, match=r"'gateway' of job 'a' is a service without a type"):
        mill.job("a")(handler)


async def test_a_worker_does_not_start_without_a_scope_for_its_jobs() -> None:
    mill = Tidemill("memory://")

    @mill.job("capture")
    async def capture(gateway: FromDishka[Gateway] = INJECTED) -> None: ...

    with pytest.raises(DeclarationError) as refused:
        await mill.worker().start()
    assert "Job 'capture' cannot run: its parameter 'gateway' wants" in str(refused.value)
    assert "setup_dishka(container, mill)" in str(refused.value)


async def test_a_service_that_cannot_be_had_is_a_failed_attempt_that_is_tried_again() -> None:
    tried: list[int] = []

    @asynccontextmanager
    async def moody(context: JobContext) -> AsyncGenerator[Any]:
        async def get(wanted: Any) -> Any:
            tried.append(context.attempt)
            if context.attempt < 3:
                message = "no gateway yet"
                raise ConnectionError(message)
            return Gateway()

        yield SimpleNamespace(get=get)

    mill = Tidemill("memory://")
    mill.use_scopes(moody)

    @mill.job("capture", retry=Retry.fixed("1m", retry_on=(ConnectionError,)))
    async def capture(gateway: FromDishka[Gateway] = INJECTED) -> str:
        return gateway.capture("p-1")

    async with Harness(mill) as h:
        ref = await capture.enqueue()
        assert await h.run_for("1h") == 3
        assert await ref.result() == "captured p-1"
        errors = [each.error for each in (await h.job(ref)).attempts]
        assert [each and each.message for each in errors] == ["no gateway yet"] * 2
    assert tried == [1, 2, 3]


async def test_a_success_whose_scope_does_not_close_is_no_success() -> None:
    @asynccontextmanager
    async def unable(context: JobContext) -> AsyncGenerator[Any]:
        async def get(wanted: Any) -> Any:
            return Gateway()

        yield SimpleNamespace(get=get)
        message = "the commit was refused"
        raise ConnectionError(message)

    mill = Tidemill("memory://")
    mill.use_scopes(unable)

    @mill.job("capture", retry=Retry.never())
    async def capture(gateway: FromDishka[Gateway] = INJECTED) -> str:
        return gateway.capture("p-1")

    async with mill.worker():
        ref = await capture.enqueue()
        with pytest.raises(JobNotSucceeded, match="ConnectionError: the commit was refused"):
            await ref.result(timeout=30)


async def test_a_function_that_is_called_directly_is_given_its_services_by_the_caller(
    mill: Tidemill,
) -> None:
    @mill.job("capture")
    async def capture(payment: str, gateway: FromDishka[Gateway] = INJECTED) -> str:
        return gateway.capture(payment)

    assert await capture("p-1", Gateway()) == "captured p-1"
    with pytest.raises(AttributeError, match="was not injected, so it has no 'capture'"):
        await capture("p-1")


def test_the_marks_of_services_are_light() -> None:
    program = (
        "import sys; from tidemill import INJECTED, FromDishka, Tidemill\n"
        "mill = Tidemill()\n"
        "@mill.job('a')\n"
        "def a(x: int, service: FromDishka[dict] = INJECTED) -> None: ...\n"
        "a.bind(1)\n"
        "print('dishka' in sys.modules, repr(INJECTED), FromDishka.__doc__ is not None)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["False", "INJECTED", "True"]
