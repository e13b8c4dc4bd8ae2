"""Real processes on one SQLite file, and waiting for what they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest
from tests.promises.promised import mill
from tests.waiting import GENEROUS, wait_until

from tidemill.adapters.sqlite import SqliteStore
from tidemill.store.monitor import CountJobs, GetJob, ListWorkers
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobDetails

HERE = Path(__file__).parent
SHORT = "1s"
"""The lease of a process that is about to lose it. Whoever is to keep its own has a long one."""


@dataclass
class Running:
    """A process that was started, and where its log goes."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def freeze(self) -> None:
        """Stop it, and return when it stands still."""
        self.signal(signal.SIGSTOP)
        self.wait_frozen()

    def wait_frozen(self) -> None:
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def ended(self) -> int:
        return self.process.wait(GENEROUS)

    def wait_for_log(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.log.read_text().count(text) >= times)


@dataclass
class Site:
    """One database file, one journal, and the processes of a test."""

    root: Path
    store: SqliteStore
    url: str
    processes: list[Running] = field(default_factory=list)

    @property
    def calm(self) -> Path:
        return self.root / "calm"

    def gate(self, name: str) -> Path:
        path = self.root / name
        os.mkfifo(path)
        return path

    def start(self, *arguments: str, stdout: IO[str] | int | None = None, **env: object) -> Running:
        log = self.root / f"{len(self.processes)}.log"
        variables = {
            "PROMISE_JOURNAL": self.root / "journal",
            "PROMISE_CALM": self.calm,
            "TIDEMILL_STORE": self.url,
            **env,
        }
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=HERE,
                env={**os.environ, **{name: str(value) for name, value in variables.items()}},
                stdout=stdout,
                stderr=stderr,
                text=True,
            )
        running = Running(process, log)
        self.processes.append(running)
        return running

    def start_victim(self, *options: str, **env: object) -> Running:
        return self.start_worker("--lease", SHORT, *options, **env)

    def start_worker(self, *options: str, **env: object) -> Running:
        command = ("-m", "tidemill", "worker", "promised:mill")
        return self.start(*command, *options, **env)

    def lines(self) -> list[list[str]]:
        path = self.root / "journal"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def bodies(self, what: str) -> Counter[str]:
        """How often bodies wrote a line, by key."""
        return Counter(line[1] for line in self.lines() if line[0] == what)

    def wrote(self, what: str, key: str, running: Running | None = None) -> bool:
        return any(
            line[:2] == [what, key] and (running is None or line[-1] == str(running.pid))
            for line in self.lines()
        )

    def job(self, job_id: JobId) -> JobDetails:
        details = self.store.perform_sync(GetJob(job_id))
        assert details is not None
        return details

    def state(self, job_id: JobId) -> str:
        return self.job(job_id).record.state.value

    def wait_for(self, job_id: JobId, state: str) -> JobDetails:
        wait_until(lambda: self.state(job_id) == state)
        return self.job(job_id)

    def counts(self) -> Counter[str]:
        counted: Counter[str] = Counter()
        for each in self.store.perform_sync(CountJobs()):
            counted[each.state.value] += each.count
        return counted

    def live_workers(self) -> int:
        return sum(worker.live for worker in self.store.perform_sync(ListWorkers()))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    url = f"sqlite:///{tmp_path / 'promises.db'}"
    store = SqliteStore.from_url(url)
    mill.configure(store)
    site = Site(tmp_path, store, url)
    yield site
    for running in site.processes:
        if running.process.poll() is None:
            running.signal(signal.SIGKILL)
            running.ended()
        if running.process.stdout is not None:
            running.process.stdout.close()
    store.close()


@pytest.fixture(name="wait_until")
def wait_until_fixture() -> Callable[[Callable[[], object]], None]:
    return wait_until
