"""Real processes on one database, and what they leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

from tests.promises.promised import mill, work
from tests.waiting import GENEROUS, wait_until

from tidemill.config import open_store
from tidemill.store.contract import Store
from tidemill.store.monitor import CountJobs, GetJob, ListWorkers
from tidemill.values.bounds import DEFAULT_BOUNDS
from tidemill.values.ids import JobId
from tidemill.values.jobs import JobDetails

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
APP = "tests.promises.promised:mill"
SHORT = "1s"
"""The lease of a process that is about to lose it."""
LONG = "5s"
"""The lease of one that takes over. On SQLite it may have to wait for one of its own before."""


@dataclass
class Running:
    """A process that was started, and where its log goes."""

    process: subprocess.Popen[str]
    log: Path
    doomed: bool = False
    """Whether the test ended it otherwise than by asking."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.doomed = True
        self.signal(signal.SIGKILL)
        assert self.ended() == -signal.SIGKILL

    def stop(self) -> None:
        """Ask it to end, in order, once it hears signals."""
        self.wait_for_log("Serving ")
        assert self.alive, self.log.read_text()
        self.doomed = True
        self.signal(signal.SIGTERM)

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
    """One database, one journal, and the processes of a test."""

    root: Path
    store: Store
    url: str
    processes: list[Running] = field(default_factory=list)
    doors: list[int] = field(default_factory=list)

    @property
    def calm(self) -> Path:
        return self.root / "calm"

    @property
    def on_postgres(self) -> bool:
        return self.url.startswith("postgresql")

    def gate(self, name: str) -> Path:
        path = self.root / name
        os.mkfifo(path)
        return path

    def let_through(self, gate: Path, count: int) -> None:
        """Open the gate for so many of those who wait at it, now or later."""
        self.doors.append(os.open(gate, os.O_RDWR))
        os.write(self.doors[-1], bytes(count))

    def start(
        self, *arguments: str, stdout: IO[str] | int | None = None, url: str = "", **env: object
    ) -> Running:
        log = self.root / f"{len(self.processes)}.log"
        variables = {
            "PROMISE_JOURNAL": self.root / "journal",
            "PROMISE_CALM": self.calm,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "TIDEMILL_STORE": url or self.url,
            **env,
        }
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=HERE,
                env={**os.environ, **{name: str(value) for name, value in variables.items()}},
                stdin=subprocess.PIPE if stdout is not None else None,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )
        running = Running(process, log)
        self.processes.append(running)
        return running

    def start_victim(self, *options: str, **env: object) -> Running:
        return self.start_worker("--lease", SHORT, *options, **env)

    def start_survivor(self, *options: str, **env: object) -> Running:
        return self.start_worker("--lease", LONG, *options, **env)

    def start_worker(self, *options: str, url: str = "", **env: object) -> Running:
        command = ("-m", "tidemill", "worker", APP)
        return self.start(*command, *options, url=url, **env)

    def stop(self) -> None:
        """End every worker that the test did not end, and see that each was there to be asked."""
        asked = [running for running in self.processes if not running.doomed]
        for running in asked:
            running.stop()
        for running in asked:
            assert running.ended() == 0, running.log.read_text()

    def clear(self) -> None:
        """End what a failed test left running."""
        for door in self.doors:
            os.close(door)
        for running in self.processes:
            if running.alive:
                running.signal(signal.SIGKILL)
                running.ended()
            for stream in (running.process.stdin, running.process.stdout):
                if stream is not None:
                    stream.close()

    def enqueue_work(
        self, count: int, seconds: float = 0.05, delay: timedelta = timedelta(0)
    ) -> list[JobId]:
        """Jobs whose bodies take so long, due after the delay."""
        call = work.with_options(delay=delay).bind(seconds)
        return [ref.id for ref in mill.sync.enqueue_many([call] * count)]

    def lines(self) -> list[list[str]]:
        path = self.root / "journal"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def bodies(self, what: str) -> Counter[str]:
        """How often bodies wrote a line, by key."""
        return Counter(line[1] for line in self.lines() if line[0] == what)

    def wrote(self, what: str, key: object, running: Running | None = None) -> bool:
        return any(
            line[:2] == [what, str(key)] and (running is None or line[-1] == str(running.pid))
            for line in self.lines()
        )

    def begun_by(self, running: Running) -> set[str]:
        """The jobs whose bodies this process has begun."""
        mine = str(running.pid)
        return {line[1] for line in self.lines() if line[0] == "begin" and line[-1] == mine}

    def finished(self) -> set[str]:
        """The jobs a body of which has run to its end."""
        return {line[1] for line in self.lines() if line[0] == "finish"}

    def job(self, job_id: JobId) -> JobDetails:
        details = self.store.perform_sync(GetJob(job_id))
        assert details is not None
        return details

    def jobs(self, job_ids: Iterable[JobId]) -> list[JobDetails]:
        return [self.job(job_id) for job_id in job_ids]

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

    def all_ended(self) -> bool:
        counts = self.store.perform_sync(CountJobs())
        return all(each.state.terminal for each in counts if each.count)

    def live_workers(self) -> int:
        return sum(worker.live for worker in self.store.perform_sync(ListWorkers()))


@contextmanager
def site_on(url: str, root: Path) -> Iterator[Site]:
    """A site on this database, its application configured; what runs on it ends with the block."""
    with closing(open_store(url, DEFAULT_BOUNDS, _no_clock)) as store:
        mill.configure(store)
        site = Site(root, store, url)
        try:
            yield site
        finally:
            site.clear()


def _no_clock() -> None:
    message = "both stores have a clock of their own"
    raise AssertionError(message)
