"""The command line on a real SQLite file whose jobs were brought into the states to be shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tidemill.adapters.sqlite import SqliteStore
from tidemill.cli.main import cli
from tidemill.shell.identity import new_id
from tidemill.store.enqueue import Enqueue
from tidemill.store.exchange import Exchange
from tidemill.store.lease import Maintain, Register
from tidemill.store.memory.clock import VirtualClock
from tidemill.store.monitor import GetJob
from tidemill.store.notes import TakeNotes
from tidemill.values.exchange import ClaimRequest, Share
from tidemill.values.ids import JobId, WorkerId
from tidemill.values.jobs import NewJob
from tidemill.values.notes import LogLine, Note, Progress
from tidemill.values.outcomes import ErrorInfo, Outcome, Verdict
from tidemill.values.retry import Retry
from tidemill.values.workers import WorkerInfo

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
LEASE = timedelta(seconds=60)
QUEUE = "payments"
NAME = "orders.capture"


@dataclass
class Shop:
    """A store with jobs, and the command line looking at it."""

    store: SqliteStore
    clock: VirtualClock
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def run(self, *arguments: str) -> Result:
        """Run a command on the store."""
        return CliRunner().invoke(cli, [*arguments, "--store", self.url])

    def json(self, *arguments: str):
        """What a command prints as JSON, after it has done well."""
        result = self.run(*arguments, "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        return msgspec.json.decode(result.stdout)

    def enqueue(self, **options) -> JobId:
        """Store one job."""
        job = NewJob(**{"id": JobId(new_id()), "wire_name": NAME, "queue": QUEUE, **options})
        self.store.perform_sync(Enqueue((job,)))
        return job.id

    def worker(self) -> WorkerId:
        """Register one worker."""
        worker = WorkerId(new_id())
        info = WorkerInfo(
            id=worker, host="here", pid=1, version="0", queues=(QUEUE,),
            wire_names=frozenset({NAME}), slots=10,
        )  # fmt: skip
        self.store.perform_sync(Register(info=info, lease=LEASE))
        return worker

    def claim(self, worker: WorkerId) -> int:
        """Claim the next job; 1 if there was one."""
        request = ClaimRequest(shares=(Share(QUEUE, 1),), limit=1, wire_names=frozenset({NAME}))
        return len(self.store.perform_sync(Exchange(worker=worker, claim=request)).claimed)

    def report(self, worker: WorkerId, job_id: JobId, verdict: Verdict, **more) -> None:
        """Report the end of a job's present attempt, unless `attempt` names another."""
        outcome = Outcome(
            job_id=job_id, verdict=verdict, **{"attempt": self.record(job_id).attempt, **more}
        )
        self.store.perform_sync(Exchange(worker=worker, outcomes=(outcome,)))

    def running(self, **options) -> tuple[JobId, WorkerId]:
        """Store one job, and start it."""
        job_id, worker = self.enqueue(priority=9, **options), self.worker()
        assert self.claim(worker) == 1
        return job_id, worker

    def say(self, worker: WorkerId, job_id: JobId, fraction: float | None, message: str) -> None:
        """Have a job's present attempt say how far it has come."""
        word = Progress(fraction, message, self.clock())
        self._note(worker, job_id, progress=word)

    def log(self, worker: WorkerId, job_id: JobId, *lines: tuple[str, str]) -> None:
        """Have a job's present attempt log these lines, its first ones: messages and fields."""
        numbered = enumerate(lines, start=1)
        kept = tuple(LogLine(number, self.clock(), *line) for number, line in numbered)
        self._note(worker, job_id, lines=kept)

    def _note(self, worker: WorkerId, job_id: JobId, **said) -> None:
        note = Note(job_id=job_id, attempt=self.record(job_id).attempt, **said)
        (answer,) = self.store.perform_sync(TakeNotes(worker=worker, notes=(note,)))
        assert answer.answer == "applied"

    def record(self, job_id: JobId):
        details = self.store.perform_sync(GetJob(job_id))
        assert details is not None
        return details.record

    def state(self, job_id: JobId) -> str:
        return self.record(job_id).state.value

    def lapse(self) -> None:
        """Let every lease run out, and sweep."""
        self.clock.advance(LEASE * 2)
        self.store.perform_sync(Maintain(lease=LEASE))

    def succeeded(self, output: bytes = b"null", **options) -> JobId:
        job_id, worker = self.enqueue(priority=9, **options), self.worker()
        assert self.claim(worker) == 1
        self.report(worker, job_id, Verdict.SUCCEEDED, output=output)
        return job_id

    def dead(self, message: str = "the card was refused") -> JobId:
        job_id, worker = self.enqueue(priority=9, retry=Retry.never()), self.worker()
        assert self.claim(worker) == 1
        error = ErrorInfo("builtins.ValueError", message, detail="Traceback: line 7")
        self.report(worker, job_id, Verdict.FAILED, error=error)
        return job_id


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    clock = VirtualClock(START)
    store = SqliteStore(tmp_path / "shop.db", clock=clock)
    store.migrate()
    yield Shop(store, clock, tmp_path / "shop.db")
    store.close()


@pytest.fixture
def tidemill():
    """Run any command, on no store in particular."""
    return lambda *arguments, **options: CliRunner().invoke(cli, list(arguments), **options)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIDEMILL_STORE", "TIDEMILL_APP", "TIDEMILL_DEBUG"):
        monkeypatch.delenv(name, raising=False)
