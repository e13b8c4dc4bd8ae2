"""Making a definition of a function or method, or saying at once why it cannot be a job."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from tidemill.codec.arguments import Arguments
from tidemill.codec.outputs import Output
from tidemill.context import JobContext
from tidemill.errors import DeclarationError
from tidemill.injection import INJECTED, Injection, services_among
from tidemill.registry import ExecutorKind, Extra, JobDefaults, JobDefinition
from tidemill.shell.job_class import JobClass
from tidemill.values.jobs import PRIORITY_RANGE

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CONTEXT_WORD = re.compile(rf"\b{JobContext.__name__}\b")


def define(
    function: Callable[..., Any],
    wire_name: str,
    *,
    aliases: tuple[str, ...] = (),
    defaults: JobDefaults | None = None,
    executor: ExecutorKind | None = None,
    extra: Extra = "refuse",
    method: bool = False,
) -> JobDefinition:
    """The definition of a function, or of a method of a class, as a job.

    Annotations are left for later, and so is the class.

    Raises:
        DeclarationError: the name, the function or a parameter cannot work.
    """
    for name in (wire_name, *aliases):
        _require_wire_name(name)
    if len({wire_name, *aliases}) <= len(aliases):
        message = f"Job {wire_name!r} lists a name twice in {(wire_name, *aliases)}."
        raise DeclarationError(message)
    _require_function(function, wire_name)
    defaults = defaults or JobDefaults()
    _require_priority(defaults.priority, wire_name)
    parameters = _parameters(function, wire_name, method=method)
    wants_context = _context_is_first(function, parameters, wire_name)
    services = services_among(parameters, wire_name)
    job_class = JobClass(function, wire_name) if method else None
    return JobDefinition(
        wire_name=wire_name,
        function=function if job_class is None else job_class.handler,
        aliases=aliases,
        defaults=defaults,
        executor=_executor(function, executor, wire_name),
        in_process=executor == "process",
        wants_context=wants_context,
        injection=Injection(wire_name, function, services, job_class)
        if services or job_class
        else None,
        job_class=job_class,
        arguments=Arguments(
            wire_name,
            function,
            parameters[1:] if wants_context else parameters,
            injected=services,
            ignore_unknown=extra == "ignore",
        ),
        output=Output(wire_name, function),
    )


def _require_wire_name(name: str) -> None:
    if not name or not name.isprintable() or name != name.strip():
        message = (
            f"{name!r} cannot be a wire name: give it visible text without white space around "
            'it, such as "orders.capture".'
        )
        raise DeclarationError(message)


def _require_function(function: Callable[..., Any], wire_name: str) -> None:
    what = None
    if inspect.isclass(function):
        what = "a class"
    elif inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        what = "a generator function"
    elif not inspect.isfunction(function):
        what = f"a {type(function).__qualname__}"
    if what is not None:
        message = (
            f"Job {wire_name!r} is declared on {function!r}, which is {what}: "
            "a handler is a function that returns, `def` or `async def`."
        )
        raise DeclarationError(message)


def _parameters(
    function: Callable[..., Any], wire_name: str, *, method: bool
) -> tuple[inspect.Parameter, ...]:
    """The parameters, without the `self` of a method."""
    parameters = tuple(inspect.signature(function).parameters.values())
    place, _, _ = function.__qualname__.rpartition(".")
    in_class = bool(place) and not place.endswith("<locals>")
    takes_self = bool(parameters) and parameters[0].kind in _POSITIONAL
    if method and not (in_class and takes_self):
        message = (
            f"Job {wire_name!r} is declared with job_method on {function.__qualname__}, which is "
            "no method: use it in the body of a class, above `def name(self, …)`. "
            f'For a function, write @mill.job("{wire_name}").'
        )
        raise DeclarationError(message)
    if not method and in_class and takes_self and parameters[0].name == "self":
        message = (
            f"Job {wire_name!r} is declared on the method {function.__qualname__}: write "
            f'@mill.job_method("{wire_name}"), and its class is resolved for each attempt.'
        )
        raise DeclarationError(message)
    return parameters[1:] if method else parameters


def _require_priority(priority: object, wire_name: str) -> None:
    if not isinstance(priority, int):
        message = (
            f"Priority {priority!r} of job {wire_name!r} is of type {type(priority).__name__}; "
            f"give a whole number, {PRIORITY_RANGE.start} to {PRIORITY_RANGE.stop - 1}."
        )
        raise DeclarationError(message)
    if priority not in PRIORITY_RANGE:
        message = (
            f"Priority {priority} of job {wire_name!r} is outside "
            f"{PRIORITY_RANGE.start}…{PRIORITY_RANGE.stop - 1}; give one within."
        )
        raise DeclarationError(message)


def _executor(
    function: Callable[..., Any], asked: ExecutorKind | None, wire_name: str
) -> Literal["async", "thread"]:
    coroutine = inspect.iscoroutinefunction(function)
    if coroutine and asked == "thread":
        message = (
            f'Job {wire_name!r} is `async def` and asks for executor="thread": '
            "a coroutine runs on the event loop. Drop the executor, or make it a plain `def`."
        )
        raise DeclarationError(message)
    if asked == "process":
        _require_importable(function, wire_name)
        asked = None
    return asked or ("async" if coroutine else "thread")


def _require_importable(function: Callable[..., Any], wire_name: str) -> None:
    """Another process finds the handler by importing its module, so it has to stand there."""
    for part, what in (("<lambda>", "a lambda"), ("<locals>", "inside a function")):
        if part in function.__qualname__:
            message = (
                f'Job {wire_name!r} asks for executor="process" and is declared on '
                f"{function.__qualname__}, which is {what}: another process could not import it. "
                "Declare it at the top level of a module."
            )
            raise DeclarationError(message)


def _context_is_first(
    function: Callable[..., Any], parameters: tuple[inspect.Parameter, ...], wire_name: str
) -> bool:
    for position, parameter in enumerate(parameters):
        if parameter.default is INJECTED or not _is_context(function, parameter):
            continue
        if position or parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            message = (
                f"Parameter {parameter.name!r} of job {wire_name!r} is the JobContext, which has "
                "to be the first positional parameter: move it to the front."
            )
            raise DeclarationError(message)
        return True
    return False


def _is_context(function: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        # Text that names the context is recognised as it stands; what text does not tell is
        # looked up only where nothing has to be imported for it.
        if _CONTEXT_WORD.search(annotation):
            return True
        scope = inspect.unwrap(function).__globals__
        return annotation.isidentifier() and scope.get(annotation) is JobContext
    if get_origin(annotation) is not None:
        return JobContext in get_args(annotation)
    return annotation is JobContext
