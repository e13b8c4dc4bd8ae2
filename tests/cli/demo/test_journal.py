"""The journal: whole lines, whoever writes them and however many at once."""

import os
import subprocess
import sys
from collections import Counter
from uuid import UUID

import pytest

from tidemill.cli.demo.journal import Body, Journal, read_journal

JOB = UUID(int=7)
WRITER = """
import sys
from pathlib import Path
from uuid import UUID
from tidemill.cli.demo.journal import Journal
journal = Journal(Path(sys.argv[1]))
for attempt in range(500):
    journal.begin(UUID(int=7), attempt)
"""


def test_what_is_written_is_read(tmp_path):
    journal = Journal(tmp_path / "journal")
    journal.begin(JOB, 1)
    journal.begin(JOB, 2)
    journal.close()
    assert read_journal(tmp_path / "journal") == [
        Body(os.getpid(), JOB, 1),
        Body(os.getpid(), JOB, 2),
    ]


def test_several_processes_write_one_journal(tmp_path):
    path = tmp_path / "journal"
    started = [subprocess.Popen([sys.executable, "-c", WRITER, path]) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    by_process = Counter(body.pid for body in read_journal(path))
    assert by_process == {process.pid: 500 for process in started}


def test_a_damaged_line_is_an_error(tmp_path):
    (tmp_path / "journal").write_text("17 not-a-job 1\n")
    with pytest.raises(ValueError, match="badly formed"):
        read_journal(tmp_path / "journal")


def test_a_journal_that_nobody_wrote_is_empty(tmp_path):
    assert read_journal(tmp_path / "journal") == []
