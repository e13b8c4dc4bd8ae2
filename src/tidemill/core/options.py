"""What a node is told once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What a node is told once. Times are seconds; they shape latency, never correctness.

    Attributes:
        slots: attempts that may run at once.
        wire_names: the names it knows; None claims every name (unknown ones are quarantined).
        claim_batch, outcome_batch: the most in one exchange.
        poll_interval: the longest wait between polls of an idle node.
        listen_interval: between exchanges of a node without a free slot, to hear cancel requests.
        maintenance_interval: between two rounds of upkeep.
        note_interval: between two journeys of notes: how old what a running attempt says may be.
        fault_delay, fault_delay_cap: the first and the longest wait after a fault.
        busy_delay: before an outcome whose row was locked is offered again; it doubles each time,
            up to `fault_delay_cap`.
        patience: how long a handler may ignore a shutdown before its job is given back.
        keep_tracebacks: report the traceback of a failed attempt.
        flush: how long the last outcomes are offered before they are given up.
    """

    slots: int
    wire_names: frozenset[str] | None
    claim_batch: int = 500
    outcome_batch: int = 500
    poll_interval: float = 1.0
    listen_interval: float = 1.0
    maintenance_interval: float = 1.0
    note_interval: float = 1.0
    fault_delay: float = 0.1
    fault_delay_cap: float = 5.0
    busy_delay: float = 0.05
    patience: float = 5.0
    flush: float = 10.0
    keep_tracebacks: bool = True
