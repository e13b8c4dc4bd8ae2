"""Every bound a store keeps, named (clauses F5, K2, D6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The largest of everything. Bytes are bytes of UTF-8.

    Requests over a bound are refused; error text is cut with a note, since recording a failure
    must never fail; page sizes are clamped.
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
    page_size: int = 200


DEFAULT_BOUNDS = Bounds()
