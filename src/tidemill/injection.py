"""Services: parameters of a handler that its attempt's scope fills, and no payload carries."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

from tidemill.codec.annotations import resolve_annotation
from tidemill.errors import DeclarationError
from tidemill.shell.job_class import JobClass

T = TypeVar("T")

_WORD = re.compile(r"\bFromDishka\b")


class _Injected:
    """The default of a parameter that is a service: the worker gives it, the caller does not."""

    def __repr__(self) -> str:
        return "INJECTED"

    def __getattr__(self, name: str) -> Any:
        message = (
            f"This service was not injected, so it has no {name!r}: a job's function that is "
            "called directly, as in a unit test, has to be given its services by the caller."
        )
        raise AttributeError(message)


INJECTED: Any = _Injected()


class _FromScope:
    """Marks an annotation as a service."""

    def __repr__(self) -> str:
        return "FromDishka"


_MARK = _FromScope()

if TYPE_CHECKING:
    FromDishka = Annotated[T, "a service"]
else:

    class FromDishka:
        """`gateway: FromDishka[Gateway] = INJECTED`: a service that the attempt's scope gives.

        To type checkers `FromDishka[Gateway]` is `Gateway`. dishka's own marker of this name, and
        a plain annotation, do as well: the default is what makes a parameter a service.
        """

        def __class_getitem__(cls, wanted: Any) -> Any:
            """The annotation of a service of this type."""
            return Annotated[wanted, _MARK]


class Injection:
    """What a handler takes from the scope of its attempt.

    Args:
        wire_name: names the job in errors.
        function: the handler.
        services: the parameters that are services.
        owner: the class whose method it is; None for a function.
    """

    def __init__(
        self,
        wire_name: str,
        function: Callable[..., Any],
        services: Mapping[str, inspect.Parameter],
        owner: JobClass | None,
    ) -> None:
        self._wire_name = wire_name
        self._function = function
        self._parameters = services
        self._owner = owner

    @property
    def services(self) -> Mapping[str, Any]:
        """The types of the services, by parameter name.

        Raises:
            DeclarationError: an annotation cannot be found.
        """
        return self._resolved

    @cached_property
    def _resolved(self) -> Mapping[str, Any]:
        wanted: dict[str, Any] = {}
        for name, parameter in self._parameters.items():
            where = f"parameter {name!r} of {self._wire_name!r}"
            kind = resolve_annotation(self._function, parameter.annotation, where)
            wanted[name] = _wanted(kind)
        return wanted

    @property
    def job_class(self) -> type | None:
        """The class whose method the handler is; None for a function.

        Raises:
            DeclarationError: no class has taken the method in.
        """
        return None if self._owner is None else self._owner.owner

    def resolve(self) -> None:
        """Find everything that is named here.

        Raises:
            DeclarationError: something cannot be found.
        """
        _ = self.services, self.job_class


def services_among(
    parameters: tuple[inspect.Parameter, ...], wire_name: str
) -> dict[str, inspect.Parameter]:
    """The parameters that are services.

    Raises:
        DeclarationError: one that is said to be one in a way that cannot work.
    """
    services: dict[str, inspect.Parameter] = {}
    for parameter in parameters:
        if parameter.default is INJECTED:
            _require_annotation(parameter, wire_name)
            services[parameter.name] = parameter
        elif _is_marked(parameter.annotation):
            message = (
                f"Parameter {parameter.name!r} of job {wire_name!r} is a service without its "
                f"default: write {parameter.name}: FromDishka[…] = INJECTED, so that nobody has "
                "to pass it."
            )
            raise DeclarationError(message)
    return services


def _require_annotation(parameter: inspect.Parameter, wire_name: str) -> None:
    if parameter.annotation is inspect.Parameter.empty:
        message = (
            f"Parameter {parameter.name!r} of job {wire_name!r} is a service without a type: write "
            f"{parameter.name}: FromDishka[…] = INJECTED."
        )
        raise DeclarationError(message)


def _is_marked(annotation: object) -> bool:
    if isinstance(annotation, str):
        return _WORD.search(annotation) is not None
    return get_origin(annotation) is Annotated and _mark_in(annotation) is not None


def _mark_in(annotation: object) -> object | None:
    """Our mark, or dishka's, which is told by where it comes from and so need not be loaded."""
    for mark in get_args(annotation)[1:]:
        if mark is _MARK or type(mark).__module__.partition(".")[0] == "dishka":
            found: object = mark
            return found
    return None


def _wanted(kind: Any) -> Any:
    """What to ask the scope for. A component of dishka's is part of it, the mere mark is not."""
    mark = _mark_in(kind) if get_origin(kind) is Annotated else None
    component: object = getattr(mark, "component", "")
    return kind if mark is None or component else get_args(kind)[0]
