"""The exceptions that handlers raised, as objects: a stored attempt keeps their text only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any

from tidemill.registry import JobDefinition, Registry
from tidemill.values.ids import JobId
from tidemill.values.jobs import Claimed
from tidemill.values.workers import Pair

_RUNNING: ContextVar[Pair] = ContextVar("tidemill_testing_attempt")


class Originals:
    """An app's definitions, with handlers that leave a note of what they raise."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._noting: dict[JobDefinition, JobDefinition] = {}
        self._raised: dict[JobId, tuple[Pair, BaseException]] = {}

    def get(self, wire_name: str) -> JobDefinition | None:
        """The definition that carries this name or alias; None if nobody does."""
        definition = self._registry.get(wire_name)
        if definition is None:
            return None
        noting = self._noting.get(definition)
        if noting is None:
            noting = replace(definition, function=self._noted(definition))
            self._noting[definition] = noting
        return noting

    def wire_names(self) -> frozenset[str]:
        """Every name and alias."""
        return self._registry.wire_names()

    @contextmanager
    def attempt(self, job: Claimed) -> Generator[None]:
        """What is started in this block belongs to this attempt."""
        token = _RUNNING.set(Pair(job.id, job.attempt))
        try:
            yield
        finally:
            _RUNNING.reset(token)

    def of(self, pair: Pair) -> BaseException | None:
        """What the handler of this attempt raised; None if it did not, or was cancelled."""
        at, error = self._raised.get(pair.job_id, (None, None))
        return error if at == pair else None

    def _noted(self, definition: JobDefinition) -> Callable[..., Any]:
        function = definition.function

        @wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            try:
                called: Coroutine[Any, Any, Any] = function(*args, **kwargs)
                return await called
            except BaseException as error:
                self._note(error)
                raise

        @wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except BaseException as error:
                self._note(error)
                raise

        return awaited if definition.is_async else plain

    def _note(self, error: BaseException) -> None:
        pair = _RUNNING.get(None)
        if pair is not None and not isinstance(error, asyncio.CancelledError):
            self._raised[pair.job_id] = (pair, error)
