"""A forked child leaves its parent's connections alone and opens its own."""

import os
import sqlite3
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


HEART = """
import os, sys
from datetime import timedelta
from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat, Register
from tidemill.store.monitor import CountJobs
from tidemill.values.ids import uuid7
from tidemill.values.jobs import NewJob
from tidemill.values.workers import WorkerInfo

MINUTE = timedelta(minutes=1)
store = SqliteStore(sys.argv[1])
parent = os.getpid()

def register(channel, number):
    info = WorkerInfo(id=uuid7(number, 1), host="h", pid=os.getpid(), version="0", queues=(),
                      wire_names=None, slots=1)
    return channel.perform(Register(info=info, lease=MINUTE)).worker

def heart():
    with store.dedicated() as channel:
        worker = register(channel, 1)
        child = os.fork()
        if child == 0:
            with store.dedicated() as own:
                mine = register(own, 2)
                assert own.perform(Beat(worker=mine, lease=MINUTE)).live
                own.perform(Enqueue((NewJob(id=uuid7(3, 3), wire_name="t.job"),)))
            store.close()
            return 0
        assert os.waitpid(child, 0)[1] == 0
        assert channel.perform(Beat(worker=worker, lease=MINUTE)).live
        channel.perform(Enqueue((NewJob(id=uuid7(4, 4), wire_name="t.job"),)))
        return store.perform_sync(CountJobs())[0].count

answer = heart()
if os.getpid() == parent:
    print(answer)
    store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_heart_that_forks_beats_on_and_its_child_has_a_heart_of_its_own(path):
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", HEART, str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr, ended.returncode) == ("2\n", "", 0)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_parent_and_child_both_work_after_a_fork(path):
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("3\n", "", 0)


HAMMER = """
import os, signal, sys, threading
from tidemill.adapters.sqlite import SqliteStore
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.store.monitor import CountJobs
from tidemill.values.jobs import NewJob

forks = int(sys.argv[2])
store = SqliteStore(sys.argv[1])
over = threading.Event()

def enqueue(channel):
    channel(Enqueue((NewJob(id=new_id(), wire_name="t.job", payload=b"x" * 2000),)))

def write():
    while not over.is_set():
        enqueue(store.perform_sync)

def read():
    while not over.is_set():
        store.perform_sync(CountJobs())

def open_and_close():
    while not over.is_set():
        with store.dedicated() as channel:
            channel.perform(CountJobs())

enqueue(store.perform_sync)
threads = [threading.Thread(target=each) for each in (write, read, read, open_and_close)]
for thread in threads:
    thread.start()
ended = []
for _ in range(forks):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        for _ in range(3):
            enqueue(store.perform_sync)
        store.perform_sync(CountJobs())
        os._exit(0)
    ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over.set()
for thread in threads:
    thread.join()
store.close()
print(sorted(set(ended)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_is_forked_while_threads_are_at_work_can_work_too(path):
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HAMMER, str(path), "150"],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr, ended.returncode) == ("[0]\n", "", 0)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
