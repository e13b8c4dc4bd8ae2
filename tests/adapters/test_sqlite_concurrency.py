"""Many processes at once on one file."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.adapters.together import together

from tidemill.adapters.sqlite import SqliteStore
from tidemill.sql.migrations import migrations
from tidemill.store.monitor import CountJobs

PROCESS = Path(__file__).with_name("sqlite_process.py")


def processes(*parts):
    """Run each part in a process of its own, all let go at once; answer what each printed."""
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "error", str(PROCESS), *map(str, part)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for part in parts
    ]  # fmt: skip
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate()[0].split() for process in started]
    assert [process.returncode for process in started] == [0] * len(parts)
    return printed


def test_claimers_in_processes_never_share_a_job(bench, path):
    bench.enqueue(*[bench.job() for _ in range(300)])
    printed = processes(*[("claim", path, size) for size in (1, 3, 10)])
    claimed = Counter(job for found in printed for job in found)
    assert len(claimed) == 300
    assert set(claimed.values()) == {1}


def test_enqueues_of_one_key_in_two_processes_yield_one_job(bench, path):
    one, other = processes(("enqueue", path, "k"), ("enqueue", path, "k"))
    assert one == other
    (count,) = bench.store.perform_sync(CountJobs())
    assert count.count == 1


def test_sweepers_in_two_processes_lapse_each_attempt_once(bench, path):
    bench.enqueue(*[bench.job() for _ in range(50)])
    bench.claim(bench.register(), limit=50)  # under a clock that stands in the past
    printed = processes(("sweep", path), ("sweep", path))
    lapsed = Counter(pair for found in printed for pair in found)
    assert len(lapsed) == 50
    assert set(lapsed.values()) == {1}


def test_a_second_migrator_finds_nothing_to_do(tmp_path):
    file = tmp_path / "new.db"
    printed = processes(("migrate", file), ("migrate", file), ("migrate", file))
    applied = sorted(step for steps in printed for step in steps)
    assert applied == [step.name for step in migrations("sqlite")]


def test_stores_that_open_a_new_file_at_once_all_find_it_ready(tmp_path):
    opened = [SqliteStore(tmp_path / "new.db") for _ in range(6)]
    answers = together(6, lambda n: opened[n].perform_sync(CountJobs()))
    assert answers == [()] * 6
    for each in opened:
        each.close()
