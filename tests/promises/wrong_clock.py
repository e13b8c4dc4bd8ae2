"""A worker whose clocks are wrong: `PROMISE_CLOCK` is a file that says by how many seconds.

Its wall clock is off by as much, and its monotonic clock began as much earlier. Where the host's
clock is the store's, that is off too: it is then the clock of the host that somebody has set.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

NANOSECONDS = 1_000_000_000
START = float(Path(os.environ["PROMISE_CLOCK"]).read_text())
_time, _time_ns, _clock_gettime = time.time, time.time_ns, time.clock_gettime


def off() -> float:
    return float(Path(os.environ["PROMISE_CLOCK"]).read_text())


def host_clock() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=off())


time.time = lambda: _time() + off()
time.time_ns = lambda: _time_ns() + int(off() * NANOSECONDS)
time.clock_gettime = lambda which: _clock_gettime(which) + abs(START)

from tests.promises.promised import mill  # noqa: E402 - it finds the clocks wrong already

from tidemill.adapters.sqlite import SqliteStore  # noqa: E402 - the same
from tidemill.cli.main import main  # noqa: E402 - the same

url = os.environ["TIDEMILL_STORE"]
if url.startswith("sqlite:"):
    mill.configure(SqliteStore.from_url(url, clock=host_clock))
sys.argv = ["tidemill", "worker", "tests.promises.promised:mill", *sys.argv[1:]]
main()
