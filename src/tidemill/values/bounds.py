"""Every bound a store keeps, named (clauses F5, K2, D6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The largest of everything. Bytes are bytes of UTF-8.

    Requests over a bound are refused; error text, progress and log lines are cut with a note, since
    recording how an attempt goes must never fail; page sizes are clamped.
    """

    payload_bytes: int = 65_536
    output_bytes: int = 65_536
    name_bytes: int = 128
    """Wire names, queue names, tenants, tag keys and tag values."""
    key_bytes: int = 255
    tags_per_job: int = 64
    trace_context_bytes: int = 512
    error_message_bytes: int = 2_048
    error_detail_bytes: int = 16_384
    attempts_kept: int = 10
    children: int = 1_000
    """Jobs that one attempt may leave with its outcome."""
    progress_message_bytes: int = 512
    log_lines: int = 500
    """Lines of one attempt; those of the last `attempts_kept` attempts are kept."""
    log_line_bytes: int = 4_096
    """A line's message with its fields."""
    log_lines_shown: int = 20
    """Lines that a job's details show."""
    page_size: int = 200


DEFAULT_BOUNDS = Bounds()
