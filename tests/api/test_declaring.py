"""Declaring jobs: what the decorator takes, and what it refuses at once."""

import functools
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Annotated, Any

import pytest

from tidemill import JobContext, JobGroup, Retry, Tidemill
from tidemill.context import JobContext as Ctx
from tidemill.errors import ConfigurationError, DeclarationError
from tidemill.jobs import JobHandle
from tidemill.registry import JobDefinition


def definition(mill: Tidemill, name: str) -> JobDefinition:
    found = mill.registry.get(name)
    assert found is not None
    return found


def test_a_declared_job_is_found_by_its_name_and_aliases(mill: Tidemill) -> None:
    @mill.job("orders.capture", aliases=["orders.take", "take"])
    async def capture(payment_id: str) -> None: ...

    assert mill.registry.wire_names() == {"orders.capture", "orders.take", "take"}
    assert definition(mill, "take") is definition(mill, "orders.capture")
    assert mill.registry.get("capture") is None
    assert list(mill.registry) == [definition(mill, "take")]


def test_the_handle_looks_like_the_function(mill: Tidemill) -> None:
    @mill.job("render")
    def render(order: int) -> str:
        """Draws it."""
        return str(order)

    assert isinstance(render, JobHandle)
    assert (render.__name__, render.__doc__, render.wire_name) == ("render", "Draws it.", "render")
    assert repr(render).startswith("<job 'render': ")


async def test_calling_the_handle_calls_the_function(mill: Tidemill) -> None:
    @mill.job("a")
    async def a(context: JobContext, x: int) -> int:
        return x + 1

    @mill.job("b")
    async def b(x: int) -> int:
        return x + 2

    @mill.job("c")
    def c(context: JobContext, x: int) -> int:
        return x + 3

    @mill.job("d")
    def d(x: int) -> int:
        return x + 4

    context: Any = object()
    assert [await a(context, 1), await b(1), c(context, 1), d(x=1)] == [2, 3, 4, 5]


def test_what_the_shell_asks_of_a_definition(mill: Tidemill) -> None:
    @mill.job("a", timeout="1m")
    async def a(context: JobContext, x: int) -> int:
        return x

    @mill.job("b")
    def b(x: int = 1) -> None: ...

    first, second = definition(mill, "a"), definition(mill, "b")
    assert (first.is_async, first.wants_context) == (True, True)
    assert (second.is_async, second.wants_context) == (False, False)
    assert (first.defaults.timeout, second.defaults.timeout) == (timedelta(minutes=1), None)
    assert first.function is a.function
    assert first.decode(b'{"x":7}') == {"x": 7}
    assert (first.encode_output(7), second.encode_output(None)) == (b"7", None)
    first.resolve()


@pytest.mark.parametrize(
    "annotation",
    [
        JobContext,
        "JobContext",
        "tidemill.JobContext",
        "Ctx",
        Annotated[Ctx, "mine"],
        "Annotated[JobContext, 1]",
    ],
    ids=repr,
)
def test_the_context_is_known_however_it_is_written(mill: Tidemill, annotation: Any) -> None:
    def handler(c, x: int): ...

    handler.__annotations__["c"] = annotation
    mill.job("a")(handler)
    assert definition(mill, "a").wants_context
    assert definition(mill, "a").decode(b'{"x":1}') == {"x": 1}
    definition(mill, "a").resolve()


def test_the_context_may_be_positional_only(mill: Tidemill) -> None:
    def handler(context: JobContext, /, x: int) -> None: ...

    mill.job("a")(handler)
    assert definition(mill, "a").wants_context


def _context_second(x: int, context: JobContext) -> None: ...
def _context_by_keyword(*, context: JobContext) -> None: ...
def _stars(*x: int) -> None: ...
def _words(**x: int) -> None: ...
def _positional(x: int, /) -> None: ...
def _generator():
    yield 1


async def _async_generator():
    yield 1


class _Class:
    def method(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_context_second, "JobContext, .* first positional"),
        (_context_by_keyword, "JobContext, .* first positional"),
        (_stars, r"takes \*x"),
        (_words, r"takes \*\*x"),
        (_positional, "positional-only"),
        (_generator, "a generator function"),
        (_async_generator, "a generator function"),
        (_Class, "a class"),
        (_Class().method, "a method"),
        (functools.partial(_stars), "a partial"),
        (len, "a builtin_function"),
    ],
)
def test_what_cannot_be_a_handler_is_refused_where_it_is_declared(
    mill: Tidemill, function: Callable[..., Any], why: str
) -> None:
    with pytest.raises(DeclarationError, match=rf"'orders\.bad'.*{why}"):
        mill.job("orders.bad")(function)
    assert mill.registry.wire_names() == frozenset()


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\0b", "\ud800"])
def test_a_name_that_nobody_can_read_is_refused(mill: Tidemill, name: str) -> None:
    with pytest.raises(DeclarationError, match="wire name"):
        mill.job(name)(_none)
    with pytest.raises(DeclarationError, match="wire name"):
        mill.job("fine", aliases=[name])(_none)


@pytest.mark.parametrize("home", [Tidemill(), JobGroup("orders.")])
def test_the_decorator_without_its_name_is_refused_with_what_to_write(home: Any) -> None:
    with pytest.raises(DeclarationError, match=r'@mill\.job\("wire\.name"\) above _none'):
        home.job(_none)
    with pytest.raises(DeclarationError, match="was given 7"):
        home.job(7)


@pytest.mark.parametrize("home", [Tidemill(), JobGroup("orders.")])
def test_a_job_is_not_declared_again_under_another_name(home: Any) -> None:
    sell = home.job("sell")(_none)
    with pytest.raises(DeclarationError, match="_none is a job already") as raised:
        home.job("old")(sell)
    assert f"aliases=['{sell.wire_name.removesuffix('sell')}old']" in str(raised.value)


def _none() -> None: ...


def test_an_alias_that_repeats_a_name_is_refused(mill: Tidemill) -> None:
    with pytest.raises(DeclarationError, match="twice"):
        mill.job("a", aliases=["b", "a"])(_none)


def test_two_functions_of_one_name_are_refused_with_both_places(mill: Tidemill) -> None:
    mill.job("orders.sell")(_none)
    with pytest.raises(DeclarationError) as raised:
        mill.job("orders.buy", aliases=["orders.sell"])(_other)
    assert f"{__name__}._none ({__file__}:" in str(raised.value)
    assert f"{__name__}._other ({__file__}:" in str(raised.value)
    assert mill.registry.wire_names() == {"orders.sell"}


def _other() -> None: ...


def test_the_same_function_declared_again_replaces_the_one_before(mill: Tidemill) -> None:
    def make(default: int) -> Callable[..., Any]:
        def sell(x: int = default) -> None: ...

        return sell

    mill.job("sell", aliases=["old"])(make(1))
    again = mill.job("sell", aliases=["older"])(make(2))
    assert definition(mill, "sell").function is again.function
    assert mill.registry.wire_names() == {"sell", "older"}


def test_a_module_that_runs_as_main_and_is_imported_too_declares_once(mill: Tidemill) -> None:
    source = "def sell() -> None: ...\n"
    functions = []
    for name in ("__main__", "shop"):
        module = ModuleType(name)
        exec(compile(source, "shop.py", "exec"), module.__dict__)
        functions.append(module.__dict__["sell"])
    for function in functions:
        mill.job("sell")(function)
    assert definition(mill, "sell").function is functions[1]


def test_an_executor_has_to_fit_its_function(mill: Tidemill) -> None:
    async def coroutine() -> None: ...

    with pytest.raises(DeclarationError, match=r"event loop"):
        mill.job("a", executor="thread")(coroutine)

    def returns_a_coroutine():
        return coroutine()

    mill.job("b", executor="async")(returns_a_coroutine)
    assert definition(mill, "b").is_async


def test_settings_that_cannot_work_are_refused(mill: Tidemill) -> None:
    with pytest.raises(ConfigurationError, match=r"timeout of 'a'='soon'"):
        mill.job("a", timeout="soon")
    with pytest.raises(DeclarationError, match="Priority 40000 of job 'a'"):
        mill.job("a", priority=40_000)(_none)
    high: Any = "high"
    with pytest.raises(DeclarationError, match="Priority 'high' of job 'a' is of type str"):
        mill.job("a", priority=high)(_none)


def test_an_annotation_is_only_looked_up_when_it_is_needed(mill: Tidemill) -> None:
    def sell(order: "Nowhere") -> None: ...  # noqa: F821 - that it does not exist is the point

    mill.job("sell")(sell)
    with pytest.raises(DeclarationError, match="'Nowhere' of parameter 'order' of 'sell'"):
        definition(mill, "sell").resolve()


UNKNOWN_NAMES = """
from tidemill import INJECTED, Tidemill
from tidemill.errors import DeclarationError

mill = Tidemill()
@mill.job("parameter")
def parameter(order: "Nowhere") -> None: ...
@mill.job("output")
def output() -> "Nowhere": ...
@mill.job("service")
def service(stock: "Nowhere" = INJECTED) -> None: ...
for each in mill.registry:
    try:
        each.resolve()
    except DeclarationError:
        print(each.wire_name)
"""


def test_names_that_do_not_exist_are_found_by_an_optimising_python_too() -> None:
    command = [sys.executable, "-O", "-c", UNKNOWN_NAMES]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["parameter", "output", "service"]


def test_a_group_puts_its_prefix_before_every_name(mill: Tidemill) -> None:
    group = JobGroup("orders.")
    group.job("sell", aliases=["shop.sell"])(_none)
    assert mill.registry.wire_names() == frozenset()
    mill.include(group)
    group.job("buy")(_other)
    assert mill.registry.wire_names() == {"orders.sell", "orders.buy", "shop.sell"}


async def test_jobs_of_a_group_are_enqueued_with_the_app_that_includes_it(mill: Tidemill) -> None:
    group = JobGroup("orders.")
    sell = group.job("sell", queue="shop")(_none)
    with pytest.raises(ConfigurationError, match=r"'orders\.' have no app"):
        await sell.enqueue()
    mill.include(group)
    ref = await sell.enqueue()
    record = (await mill.jobs.get(ref)).record
    assert (record.wire_name, record.queue) == ("orders.sell", "shop")


def test_a_group_belongs_to_one_app(mill: Tidemill) -> None:
    group = JobGroup("orders.")
    mill.include(group)
    mill.include(group)
    with pytest.raises(DeclarationError, match=r"'orders\.' is already included"):
        Tidemill().include(group)


def test_an_empty_name_in_a_group_is_still_empty() -> None:
    with pytest.raises(DeclarationError, match="'' cannot be a wire name"):
        JobGroup("orders.").job("")(_none)


def test_a_group_whose_name_is_taken_is_refused(mill: Tidemill) -> None:
    mill.job("orders.sell")(_none)
    group = JobGroup("orders.")
    group.job("sell")(_other)
    with pytest.raises(DeclarationError, match="declared twice"):
        mill.include(group)


def test_imports_are_loaded_when_asked_for(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_jobs.py").write_text("import imported_need\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    app = Tidemill(imports=["imported_jobs"])
    assert "imported_jobs" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="imported_need"):
        app.load_imports()
    (tmp_path / "imported_need.py").write_text("", encoding="utf-8")
    app.load_imports()
    assert sys.modules.pop("imported_jobs")
    assert sys.modules.pop("imported_need")


@pytest.mark.parametrize("name", ["imported_nowhere", "imported_nowhere.jobs"])
def test_an_import_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"'{name}'.*no module 'imported_nowhere'"):
        Tidemill(imports=[name]).load_imports()


def test_the_default_policy_travels_with_the_declaration(mill: Tidemill) -> None:
    mill.job("a", retry=Retry.never(), queue="slow", priority=3)(_none)
    defaults = definition(mill, "a").defaults
    assert (defaults.retry, defaults.queue, defaults.priority) == (Retry.never(), "slow", 3)


@pytest.mark.parametrize(
    "name", ["delay", "at", "expires", "idempotency_key", "tenant", "tags", "after"]
)
@pytest.mark.parametrize("decorator", ["job", "job_method"])
def test_an_option_of_one_enqueue_is_told_where_it_belongs(
    mill: Tidemill, name: str, decorator: str
) -> None:
    words = rf"`{name}` belongs to one enqueue.*`with_options\({name}=…\)`"
    with pytest.raises(DeclarationError, match=words):
        getattr(mill, decorator)("bump", **{name: "x"})


def test_an_option_that_does_not_exist_is_no_argument(mill: Tidemill) -> None:
    with pytest.raises(TypeError, match=r"job\(\) has no option 'prio'"):
        getattr(mill, "job")("bump", prio=3)  # noqa: B009 - what a type checker would refuse
