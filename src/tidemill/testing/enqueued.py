"""Asserting what was enqueued."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidemill.errors import DecodingError
from tidemill.jobs import JobHandle
from tidemill.registry import Registry
from tidemill.testing.parameters import parameters_of
from tidemill.testing.view import JobView

_MOST_SHOWN = 20


class Expectation:
    """A job that a test expects: its kind, and some of its arguments.

    Raises:
        TypeError: the handler has no parameter of that name.
    """

    def __init__(
        self, registry: Registry, handle: JobHandle[..., Any], arguments: Mapping[str, Any]
    ) -> None:
        definition = registry.get(handle.wire_name)
        if definition is None:
            message = f"{handle.wire_name!r} is not a job of this app."
            raise TypeError(message)
        self._definition = definition
        self._arguments = arguments
        self._defaults = {
            name: parameter.default for name, parameter in parameters_of(definition).items()
        }
        unknown = sorted(set(arguments) - set(self._defaults))
        if unknown:
            message = (
                f"{definition.wire_name!r} has no parameter {', '.join(map(repr, unknown))}; "
                f"it has {', '.join(map(repr, self._defaults)) or 'none'}."
            )
            raise TypeError(message)

    def __str__(self) -> str:
        return _call(self._definition.wire_name, self._arguments)

    def among(self, jobs: Iterable[JobView]) -> list[JobView]:
        """Those of the jobs that are as expected.

        Raises:
            AssertionError: none is.
        """
        __tracebackhide__ = True
        jobs = list(jobs)
        found = [job for job in jobs if self._fits(job)]
        if not found:
            message = f"{self} was not enqueued. {_listed(jobs, self._definition.names)}"
            raise AssertionError(message)
        return found

    def absent_from(self, jobs: Iterable[JobView]) -> None:
        """Assert that none of the jobs is such a one.

        Raises:
            AssertionError: one is.
        """
        __tracebackhide__ = True
        found = [job for job in jobs if self._fits(job)]
        if found:
            message = f"{self} was enqueued. {_listed(found, ())}"
            raise AssertionError(message)

    def _fits(self, job: JobView) -> bool:
        if job.wire_name not in self._definition.names:
            return False
        if not self._arguments:
            return True
        try:
            given = self._definition.decode(job.payload)
        except DecodingError:
            return False
        whole = self._defaults | given
        return all(whole[name] == value for name, value in self._arguments.items())


def _listed(jobs: list[JobView], first: tuple[str, ...]) -> str:
    """What was enqueued, jobs of the wanted names first."""
    if not jobs:
        return "Nothing was."
    jobs = sorted(jobs, key=lambda job: job.wire_name not in first)
    lines = [f"  {_call(job.wire_name, job.arguments)}{_options(job)}" for job in jobs]
    more = len(lines) - _MOST_SHOWN
    shown = lines[:_MOST_SHOWN] + ([f"  and {more} more"] if more > 0 else [])
    return "\n".join(["Enqueued:", *shown])


def _call(wire_name: str, arguments: Mapping[str, Any]) -> str:
    return f"{wire_name}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _options(job: JobView) -> str:
    return f"  [{job.state}, queue {job.queue}, due {job.due_at.isoformat()}]"
