"""The demonstration's worker processes: started, killed, paused and stopped like anyone's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tidemill.cli.demo.app import JOURNAL_VARIABLE, PACE_VARIABLE, QUEUE
from tidemill.config import STORE_VARIABLE
from tidemill.errors import TidemillError

APP = "tidemill.cli.demo.app:mill"
_DRAIN_SECONDS = 60.0


class WorkerEnded(TidemillError):
    """A worker process ended that nobody had asked to."""


@dataclass(slots=True)
class WorkerProcess:
    """One `tidemill worker` process, known by the number it was started as."""

    number: int
    process: subprocess.Popen[bytes]
    log: Path
    killed: bool = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def pause(self) -> None:
        """Stop it where it stands; answers once it has stopped."""
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            self.process.returncode = os.waitstatus_to_exitcode(status)

    def resume(self) -> None:
        """Let it go on as if nothing had happened."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a chance to say anything."""
        self.killed = True
        self.process.kill()
        self.process.wait()


@dataclass(slots=True, kw_only=True)
class Fleet:
    """Every worker process of the demonstration, on one store; their logs are in `directory`.

    The store's URL may hold a password, so it is not given as an argument, which everybody sees.
    """

    directory: Path
    url: str
    lease: float
    concurrency: int
    pace: float
    workers: list[WorkerProcess] = field(default_factory=list[WorkerProcess])

    @property
    def journal(self) -> Path:
        return self.directory / "journal.txt"

    def start(self) -> WorkerProcess:
        """Start one more worker."""
        number = len(self.workers) + 1
        log = self.directory / f"worker-{number}.log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(  # noqa: S603 - our own program, with arguments made here
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                env=os.environ | self._environment(),
                start_new_session=True,  # Ctrl-C is for the demonstration, which ends them in order
            )
        worker = WorkerProcess(number, process, log)
        self.workers.append(worker)
        return worker

    def _environment(self) -> dict[str, str]:
        return {
            STORE_VARIABLE: self.url,
            JOURNAL_VARIABLE: str(self.journal),
            PACE_VARIABLE: str(self.pace),
        }

    def _command(self) -> list[str]:
        options = {
            "--queues": QUEUE,
            "--concurrency": str(self.concurrency),
            "--lease": f"{self.lease:g}s",
        }
        given = [part for option in options.items() for part in option]
        return [sys.executable, "-m", "tidemill", "worker", APP, *given]

    def check(self) -> None:
        """See that every worker that was not killed still runs.

        Raises:
            WorkerEnded: one does not; the message carries the end of its log.
        """
        for worker in self.workers:
            if not worker.killed and worker.process.poll() is not None:
                raise WorkerEnded(_ended(worker))

    def stop(self) -> list[int]:
        """Ask every worker to drain, and answer the exit codes of those that were not killed."""
        asked = [worker for worker in self.workers if not worker.killed]
        for worker in asked:
            _signal(worker, signal.SIGTERM)
        return [worker.process.wait(_DRAIN_SECONDS) for worker in asked]

    def abandon(self) -> None:
        """Kill whatever still runs; for the way out, whatever happened."""
        _kill(worker for worker in self.workers if worker.process.poll() is None)


def _kill(workers: Iterable[WorkerProcess]) -> None:
    for worker in workers:
        worker.kill()


def _signal(worker: WorkerProcess, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        worker.process.send_signal(number)


def _ended(worker: WorkerProcess) -> str:
    lines = worker.log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    said = "\n".join(lines) or "(it wrote nothing)"
    return (
        f"Worker {worker.number} ended with code {worker.process.returncode}, and nobody had "
        f"asked it to. The end of its log, {worker.log}:\n{said}"
    )
