"""The retry policy: data that travels with the job (clause E1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Self

from tidemill.errors import ConfigurationError

DEFAULT_MAX_ATTEMPTS = 5
DEFAULT_FIRST_DELAY = timedelta(seconds=5)
DEFAULT_CAP = timedelta(hours=1)
DEFAULT_JITTER = 0.1
DEFAULT_INTERRUPTION_LIMIT = 10

ExceptionNames = tuple[str, ...]


class Backoff(StrEnum):
    """How the wait grows from one try to the next."""

    NONE = "none"
    FIXED = "fixed"
    EXPONENTIAL = "exponential"
    LISTED = "listed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What happens after an attempt that did not succeed.

    Attributes:
        max_attempts: tries in all, the first included, before the job is `dead`. At least 1.
        backoff: how the wait grows.
        delays: the waits: one for `fixed` and the first one for `exponential`, each for `listed`
            (the last repeats), none for `none`.
        factor: growth per try of `exponential`.
        cap: the longest wait, before jitter.
        jitter: the share of the wait that is spread evenly around it, 0 to 1. Drawn from a hash
            of (job id, attempt), so the same attempt always waits the same time.
        count_lapses: whether a lapse spends a try. Off by default: a crash also takes the
            innocent jobs beside the guilty one. Lapses are bounded by `interruption_limit`.
        interruption_limit: lapses since the last requeue after which the job is `dead` as poison.
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
        _require(self.max_attempts >= 1, "max_attempts", self.max_attempts, "at least 1")
        _require(
            self.interruption_limit >= 0, "interruption_limit", self.interruption_limit, ">= 0"
        )
        _require(0 <= self.jitter <= 1, "jitter", self.jitter, "between 0 and 1")
        _require(1 <= self.factor < float("inf"), "factor", self.factor, "finite and at least 1")
        _require(self.cap >= timedelta(0), "cap", self.cap, "not negative")
        for delay in self.delays:
            _require(delay >= timedelta(0), "delay", delay, "not negative")
        if self.backoff is not Backoff.NONE and not self.delays:
            message = f"Retry with backoff {self.backoff.value!r} needs at least one delay."
            raise ConfigurationError(message)

    @classmethod
    def exponential(
        cls,
        *,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        first: timedelta = DEFAULT_FIRST_DELAY,
        factor: float = 2.0,
        cap: timedelta = DEFAULT_CAP,
        jitter: float = DEFAULT_JITTER,
        count_lapses: bool = False,
        interruption_limit: int = DEFAULT_INTERRUPTION_LIMIT,
        retry_on: tuple[type[BaseException] | str, ...] = (),
        discard_on: tuple[type[BaseException] | str, ...] = (),
    ) -> Self:
        """Wait `first`, then `factor` times longer each try, up to `cap` (the default policy)."""
        return cls(
            max_attempts=max_attempts,
            backoff=Backoff.EXPONENTIAL,
            delays=(first,),
            factor=factor,
            cap=cap,
            jitter=jitter,
            count_lapses=count_lapses,
            interruption_limit=interruption_limit,
            retry_on=_names(retry_on),
            discard_on=_names(discard_on),
        )

    @classmethod
    def fixed(
        cls,
        delay: timedelta,
        *,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        jitter: float = DEFAULT_JITTER,
        count_lapses: bool = False,
        interruption_limit: int = DEFAULT_INTERRUPTION_LIMIT,
        retry_on: tuple[type[BaseException] | str, ...] = (),
        discard_on: tuple[type[BaseException] | str, ...] = (),
    ) -> Self:
        """Wait the same `delay` before every further try."""
        return cls(
            max_attempts=max_attempts,
            backoff=Backoff.FIXED,
            delays=(delay,),
            cap=delay,
            jitter=jitter,
            count_lapses=count_lapses,
            interruption_limit=interruption_limit,
            retry_on=_names(retry_on),
            discard_on=_names(discard_on),
        )

    @classmethod
    def listed(
        cls,
        *delays: timedelta,
        max_attempts: int | None = None,
        jitter: float = DEFAULT_JITTER,
        count_lapses: bool = False,
        interruption_limit: int = DEFAULT_INTERRUPTION_LIMIT,
    ) -> Self:
        """Wait each of `delays` in turn; by default one try more than there are delays."""
        return cls(
            max_attempts=len(delays) + 1 if max_attempts is None else max_attempts,
            backoff=Backoff.LISTED,
            delays=delays,
            cap=max(delays, default=timedelta(0)),
            jitter=jitter,
            count_lapses=count_lapses,
            interruption_limit=interruption_limit,
        )

    @classmethod
    def immediate(cls, *, max_attempts: int = DEFAULT_MAX_ATTEMPTS) -> Self:
        """Try again at once."""
        return cls(max_attempts=max_attempts, backoff=Backoff.NONE, delays=(), jitter=0)

    @classmethod
    def never(cls) -> Self:
        """One try only: the first failure is final."""
        return cls(max_attempts=1, backoff=Backoff.NONE, delays=(), jitter=0)


def exception_name(kind: type[BaseException]) -> str:
    """The name by which a policy knows an exception class: `module.qualname`."""
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _names(kinds: tuple[type[BaseException] | str, ...]) -> ExceptionNames:
    return tuple(kind if isinstance(kind, str) else exception_name(kind) for kind in kinds)


def _require(holds: bool, name: str, value: object, rule: str) -> None:  # noqa: FBT001
    if not holds:
        message = f"Retry {name}={value!r} cannot work: it must be {rule}."
        raise ConfigurationError(message)


DEFAULT_RETRY = Retry()
