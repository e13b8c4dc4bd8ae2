"""The digest of a request's content, by which a repeated one is known (clause A2).

It is stored, and compared by later versions and by other processes, so it stands on nothing of
ours but this file: JSON with sorted names, instants as microseconds since 1970 UTC, durations as
microseconds, and nothing for what is left at its default. A field that is added later changes no
digest of a request that does not use it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from tidemill.core.instants import microseconds, microseconds_since_1970
from tidemill.values.jobs import NewJob
from tidemill.values.retry import DEFAULT_RETRY, Retry

_DIGEST_BYTES = 16


def content_digest(job: NewJob) -> bytes:
    """A digest of what was asked for, to tell a repeated request from another one."""
    text = json.dumps(_content(job), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    digest = blake2b(text.encode("ascii"), digest_size=_DIGEST_BYTES)
    digest.update(b"\0")  # stands in no JSON text, so that it ends there for sure
    digest.update(job.payload)
    return digest.digest()


def _content(job: NewJob) -> dict[str, Any]:
    content: dict[str, Any] = {
        "wire_name": job.wire_name,
        "queue": job.queue,
        "priority": job.priority,
        "delay": _duration(job.delay),
        "due_at": _instant(job.due_at),
        "not_after": _instant(job.not_after),
        "expires": _duration(job.expires),
        "timeout": _duration(job.timeout),
        "retry": _changed(job.retry) or None,
        "idempotency_key": job.idempotency_key,
        "tenant": job.tenant,
        "tags": [[tag.key, tag.value] for tag in sorted(job.tags)] or None,
        "trace_context": job.trace_context,
        "rerun_of": None if job.rerun_of is None else job.rerun_of.hex,
    }
    return {name: value for name, value in content.items() if value is not None}


@lru_cache(maxsize=512)
def _changed(retry: Retry) -> dict[str, Any]:
    """What a policy says otherwise than the default one."""
    default = _policy(DEFAULT_RETRY)
    return {name: value for name, value in _policy(retry).items() if value != default[name]}


def _policy(retry: Retry) -> dict[str, Any]:
    return {
        "max_attempts": retry.max_attempts,
        "backoff": retry.backoff.value,
        "delays": [microseconds(delay) for delay in retry.delays],
        "factor": float(retry.factor),
        "cap": microseconds(retry.cap),
        "jitter": float(retry.jitter),
        "count_lapses": retry.count_lapses,
        "interruption_limit": retry.interruption_limit,
        "retry_on": list(retry.retry_on),
        "discard_on": list(retry.discard_on),
    }


def _instant(value: datetime | None) -> int | None:
    return None if value is None else microseconds_since_1970(value)


def _duration(value: timedelta | None) -> int | None:
    return None if value is None else microseconds(value)
