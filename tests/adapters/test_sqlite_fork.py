"""A forked child leaves its parent's connections alone and opens its own."""

import os
import subprocess
import sys

import pytest

CHILD = """
import os, sys
from datetime import timedelta
from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import CountJobs
from tidemill.values.ids import uuid7
from tidemill.values.jobs import NewJob

store = SqliteStore(sys.argv[1])
store.watch(lambda: None)
store.perform_sync(Enqueue((NewJob(id=uuid7(1, 1), wire_name="t.job"),)))
with store.dedicated() as channel:
    child = os.fork()
    if child == 0:
        store.perform_sync(Enqueue((NewJob(id=uuid7(2, 2), wire_name="t.job"),)))
        store.close()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
store.perform_sync(Enqueue((NewJob(id=uuid7(3, 3), wire_name="t.job"),)))
print(store.perform_sync(CountJobs())[0].count)
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_parent_and_child_both_work_after_a_fork(path):
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("3\n", "", 0)
