"""A worker's settings. They shape latency and throughput, never correctness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tidemill.core.options import NodeOptions
from tidemill.core.pulse import PulseOptions
from tidemill.errors import ConfigurationError
from tidemill.values.jobs import DEFAULT_QUEUE

_SHORTEST_LEASE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How one worker runs.

    Attributes:
        queues: names in strict order, or names with weights (default: the queue `default`).
        concurrency: attempts that run at once (default 20).
        lease: how long a heartbeat lasts (default 60 s, at least 1 s); beats go out every third.
        poll_interval: the longest wait between polls when idle (default 1 s).
        maintenance_interval: between two rounds of upkeep (default 1 s).
        grace: how long a shutdown lets handlers finish before it cancels them (default 30 s).
        patience: how long a cancelled handler may take before its job is given back (default 5 s).
        kill_after: how long a handler in a process may take to end after it was asked to stop,
            before the process is killed (default 5 s).
        delivery_timeout: how long one store call may take before its answer is given up
            (default 10 s).
        stall_limit: an event loop that has not turned for so long is left to lapse (default
            5 min, at least the lease).
        keep_tracebacks: store the traceback of a failed attempt (default on).
        quarantine_unknown: claim jobs of unknown wire names and quarantine them, instead of
            leaving them to workers that know them (default off).
    """

    queues: Sequence[str] | Mapping[str, int] = (DEFAULT_QUEUE,)
    concurrency: int = 20
    lease: timedelta = timedelta(seconds=60)
    poll_interval: timedelta = timedelta(seconds=1)
    maintenance_interval: timedelta = timedelta(seconds=1)
    grace: timedelta = timedelta(seconds=30)
    patience: timedelta = timedelta(seconds=5)
    kill_after: timedelta = timedelta(seconds=5)
    delivery_timeout: timedelta = timedelta(seconds=10)
    stall_limit: timedelta = timedelta(minutes=5)
    keep_tracebacks: bool = True
    quarantine_unknown: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if self.concurrency < 1:
            message = f"concurrency={self.concurrency} leaves no slot; give at least 1."
            raise ConfigurationError(message)
        if self.lease < _SHORTEST_LEASE:
            message = f"lease={self.lease} is too short to be renewed in time; give at least 1 s."
            raise ConfigurationError(message)
        for name in ("poll_interval", "maintenance_interval", "delivery_timeout", "stall_limit"):
            if getattr(self, name) <= timedelta(0):
                message = f"{name}={getattr(self, name)} must be greater than zero."
                raise ConfigurationError(message)
        if self.stall_limit < self.lease:
            message = (
                f"stall_limit={self.stall_limit} is shorter than lease={self.lease}: a healthy "
                "loop is seen to turn only at heartbeats. Give at least the lease."
            )
            raise ConfigurationError(message)
        for name in ("grace", "patience", "kill_after"):
            if getattr(self, name) < timedelta(0):
                message = f"{name}={getattr(self, name)} must not be negative."
                raise ConfigurationError(message)

    @property
    def longest_end(self) -> timedelta:
        """How long an end in order takes at most: one time-out for reports, one for closing."""
        return self.grace + self.patience + 2 * self.delivery_timeout

    def node_options(self, wire_names: frozenset[str] | None) -> NodeOptions:
        """What the node is told; `wire_names` are those it claims, None for every name."""
        return NodeOptions(
            slots=self.concurrency,
            wire_names=wire_names,
            poll_interval=self.poll_interval.total_seconds(),
            listen_interval=self.poll_interval.total_seconds(),
            maintenance_interval=self.maintenance_interval.total_seconds(),
            patience=self.patience.total_seconds(),
            flush=self.delivery_timeout.total_seconds(),
            keep_tracebacks=self.keep_tracebacks,
        )

    def pulse_options(self) -> PulseOptions:
        """What the pulse is told."""
        return PulseOptions.for_lease(
            self.lease.total_seconds(), stall_limit=self.stall_limit.total_seconds()
        )
