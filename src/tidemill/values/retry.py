"""The retry policy: data that travels with the job (clause E1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Self, TypedDict, Unpack, cast

from tidemill.errors import ConfigurationError
from tidemill.values.durations import Duration, duration

DEFAULT_MAX_ATTEMPTS = 5
DEFAULT_FIRST_DELAY = timedelta(seconds=5)
DEFAULT_CAP = timedelta(hours=1)
DEFAULT_JITTER = 0.1
DEFAULT_INTERRUPTION_LIMIT = 10
MOST_EXCEPTION_NAMES = 64

_SURROGATE = re.compile("[\ud800-\udfff]")

ExceptionNames = tuple[str, ...]
ExceptionKinds = tuple[type[BaseException] | str, ...]
"""Exception classes, or their names as `module.qualname` (built-in ones: the bare name)."""


class Backoff(StrEnum):
    """How the wait grows from one attempt to the next."""

    NONE = "none"
    FIXED = "fixed"
    EXPONENTIAL = "exponential"
    LISTED = "listed"


class RetryOptions(TypedDict, total=False):
    """What every way to make a policy takes beside its waits; `Retry` says what each means."""

    count_lapses: bool
    interruption_limit: int
    retry_on: ExceptionKinds
    discard_on: ExceptionKinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What happens after an attempt that did not succeed.

    Made by `exponential`, `fixed`, `listed`, `immediate` or `never`, whose waits may be timedeltas
    or text such as `"30s"`. A policy that cannot work raises ConfigurationError.

    Attributes:
        max_attempts: attempts that may fail, the first included, before the job is `dead`; at
            least 1. Released and snoozed ones do not count, nor lapsed ones unless `count_lapses`.
        backoff: how the wait grows.
        delays: the waits: one for `fixed` and the first one for `exponential`, each for `listed`
            (the last repeats), none for `none`.
        factor: growth per attempt of `exponential`.
        cap: the longest wait, before jitter.
        jitter: the share of the wait that is spread evenly around it, 0 to 1. Drawn from a hash
            of (job id, attempt), so the same attempt always waits the same time.
        count_lapses: whether a lapse counts as a failure. Off by default: a crash also takes the
            innocent jobs beside the guilty one. Lapses are bounded by `interruption_limit`.
        interruption_limit: lapses since the last requeue that are forgiven; one more and the job
            is `dead` as poison, so with the default of 10 the eleventh lapse is the last.
        retry_on: names of the exceptions that may be retried; empty means all of them.
        discard_on: names of the exceptions that end the job at once.
    """

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    backoff: Backoff = Backoff.EXPONENTIAL
    delays: tuple[timedelta, ...] = (DEFAULT_FIRST_DELAY,)
    factor: float = 2.0
    cap: timedelta = DEFAULT_CAP
    jitter: float = DEFAULT_JITTER
    count_lapses: bool = False
    interruption_limit: int = DEFAULT_INTERRUPTION_LIMIT
    retry_on: ExceptionNames = ()
    discard_on: ExceptionNames = ()

    def __post_init__(self) -> None:
        """Refuse a policy that cannot be followed."""
        attempts, limit = self.max_attempts, self.interruption_limit
        whole = type(attempts) is int and attempts >= 1
        _require("max_attempts", attempts, "a whole number, at least 1", holds=whole)
        whole = type(limit) is int and limit >= 0
        _require("interruption_limit", limit, "a whole number, at least 0", holds=whole)
        for name in ("retry_on", "discard_on"):
            _require_names(name, getattr(self, name))
        _require("jitter", self.jitter, "between 0 and 1", holds=0 <= self.jitter <= 1)
        grows = 1 <= self.factor < float("inf")
        _require("factor", self.factor, "finite and at least 1", holds=grows)
        for name, wait in (("cap", self.cap), *(("delay", each) for each in self.delays)):
            _require(name, str(wait), "not negative", holds=wait >= timedelta(0))
        if self.backoff is not Backoff.NONE and not self.delays:
            message = f"Retry with backoff {self.backoff.value!r} needs at least one delay."
            raise ConfigurationError(message)

    @classmethod
    def exponential(
        cls,
        *,
        first: Duration = DEFAULT_FIRST_DELAY,
        factor: float = 2.0,
        cap: Duration = DEFAULT_CAP,
        jitter: float = DEFAULT_JITTER,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        **options: Unpack[RetryOptions],
    ) -> Self:
        """Wait `first`, then `factor` times longer each time, up to `cap` (the default policy)."""
        return cls(
            max_attempts=max_attempts,
            backoff=Backoff.EXPONENTIAL,
            delays=(duration(first, "Retry first"),),
            factor=factor,
            cap=duration(cap, "Retry cap"),
            jitter=jitter,
            **_fields(options),
        )

    @classmethod
    def fixed(
        cls,
        delay: Duration,
        *,
        jitter: float = DEFAULT_JITTER,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        **options: Unpack[RetryOptions],
    ) -> Self:
        """Wait the same `delay` before every further attempt."""
        wait = duration(delay, "Retry delay")
        return cls(
            max_attempts=max_attempts,
            backoff=Backoff.FIXED,
            delays=(wait,),
            cap=wait,
            jitter=jitter,
            **_fields(options),
        )

    @classmethod
    def listed(
        cls,
        *delays: Duration,
        jitter: float = DEFAULT_JITTER,
        max_attempts: int | None = None,
        **options: Unpack[RetryOptions],
    ) -> Self:
        """Wait each of `delays` in turn; by default one attempt more than there are delays."""
        waits = tuple(duration(delay, "Retry delay") for delay in delays)
        return cls(
            max_attempts=len(waits) + 1 if max_attempts is None else max_attempts,
            backoff=Backoff.LISTED,
            delays=waits,
            cap=max(waits, default=timedelta(0)),
            jitter=jitter,
            **_fields(options),
        )

    @classmethod
    def immediate(
        cls, *, max_attempts: int = DEFAULT_MAX_ATTEMPTS, **options: Unpack[RetryOptions]
    ) -> Self:
        """Try again at once."""
        return cls(
            max_attempts=max_attempts,
            backoff=Backoff.NONE,
            delays=(),
            jitter=0,
            **_fields(options),
        )

    @classmethod
    def never(
        cls, *, interruption_limit: int = DEFAULT_INTERRUPTION_LIMIT, count_lapses: bool = False
    ) -> Self:
        """One attempt only: the first failure is final.

        A lapse is no failure: it is tried again, up to `interruption_limit` times, unless
        `count_lapses`.
        """
        return cls(
            max_attempts=1,
            backoff=Backoff.NONE,
            delays=(),
            jitter=0,
            interruption_limit=interruption_limit,
            count_lapses=count_lapses,
        )


def exception_name(kind: type[BaseException]) -> str:
    """The name by which a policy knows an exception class: `module.qualname`.

    The main program's module has another name where a process has run it again.
    """
    if kind.__module__ == "builtins":
        return kind.__qualname__
    module = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__
    return f"{module}.{kind.__qualname__}"


def _fields(options: RetryOptions) -> dict[str, Any]:
    fields: dict[str, Any] = dict(options)
    for name in ("retry_on", "discard_on"):
        if name in fields:
            kinds = fields[name]
            one = isinstance(kinds, str | type)  # a text would be read as its characters
            fields[name] = kinds if one else _names(kinds)
    return fields


def _names(kinds: ExceptionKinds) -> ExceptionNames:
    return tuple(kind if isinstance(kind, str) else exception_name(kind) for kind in kinds)


def _require_names(name: str, names: object) -> None:
    rule = f"a tuple of exception classes or their names, at most {MOST_EXCEPTION_NAMES}"
    given = cast("tuple[object, ...]", names) if isinstance(names, tuple) else (None,)
    texts = all(isinstance(each, str) and not _SURROGATE.search(each) for each in given)
    few = len(given) <= MOST_EXCEPTION_NAMES
    _require(name, f"{names!r:.80}", rule, holds=texts and few)


def _require(name: str, value: object, rule: str, *, holds: bool) -> None:
    if not holds:
        message = f"Retry {name}={value!r} cannot work: it must be {rule}."
        raise ConfigurationError(message)


DEFAULT_RETRY = Retry()
