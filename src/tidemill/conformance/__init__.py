"""The conformance kit: the clauses of the storage contract as facts that run on any store.

Each module is a topic, each of its `test_` functions is a fact: named by the sentence it shows,
with the clauses it shows first in its docstring. A store passes the kit or is called
experimental.

To run it on your own store you need pytest and two files. In `conftest.py`::

    import pytest
    from tidemill.conformance.plugin import *   # the fixtures `store` and `clock`, the summary

    @pytest.fixture
    def store_factory(tmp_path):
        def open_store(clock):                  # a VirtualClock: what the store takes for the time
            store = MyStore(tmp_path / "jobs", clock=clock)
            store.migrate()
            return store
        return open_store

    @pytest.fixture
    def own_clock_store_factory(tmp_path):
        return lambda: MyStore(tmp_path / "own.db")     # on whatever clock users would have

    @pytest.fixture
    def block_writers():
        return contextlib.nullcontext           # or what `plugin.BlockWriters` says

    @pytest.fixture
    def transactions_factory(tmp_path):         # only if its capabilities say `bridges`
        return lambda: MyUsers(tmp_path / "jobs")       # a `plugin.Transactions`

and in `test_conformance.py`, a line for each of `TOPICS`::

    from tidemill.conformance.fence import *
    from tidemill.conformance.claim import *
    ...

The factory answers an opened, migrated and empty store each time it is called. Give the fixture
`params` to run several stores side by side; their names then stand in the test ids, and the run
ends with a line per store.

A store without bridges leaves out the topic `transactions`, and the last line says so. Where one
writer can hold up all others, as in a file with one lock, `block_writers` does so: heartbeats are
held up too, and must cost no lease.

Facts about one store at a time are all that is here: they run without sleeping and in any order,
on virtual time, and where a database has a clock of its own on that. Most of them know one caller
at a time. Those of `faults` and `renewal` have a whole worker at a store that fails to order;
those of `transactions` have a user write beside it, and wait for a lock that is not given for as
long as they bound it.
"""

from __future__ import annotations

import pytest

TOPICS = (
    "cancel",
    "channels",
    "children",
    "claim",
    "completion",
    "doctor",
    "enqueue",
    "faults",
    "fence",
    "identity_and_time",
    "lease",
    "monitor",
    "notes",
    "operators",
    "own_clock",
    "pause",
    "renewal",
    "reports",
    "retries",
    "states",
    "transactions",
)
"""The modules that hold facts."""

# pytest explains a failed assertion only in modules that it was told of before their import.
for _topic in (*TOPICS, "endstates", "floor", "scenes", "timeline"):
    pytest.register_assert_rewrite(f"{__name__}.{_topic}")
