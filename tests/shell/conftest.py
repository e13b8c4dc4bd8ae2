"""Handlers without an app, and a store that fails to order."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.shell.held_time import Clock, HeldTime
from tests.waiting import until

from tidemill.context import JobContext
from tidemill.errors import DecodingError, EncodingError, StoreUnavailable
from tidemill.shell.identity import new_id
from tidemill.shell.scope import Injection
from tidemill.shell.settings import WorkerSettings
from tidemill.shell.worker import Worker
from tidemill.store.enqueue import Enqueue
from tidemill.store.lease import Beat
from tidemill.store.memory import MemoryStore
from tidemill.store.monitor import GetJob, ListWorkers
from tidemill.values.ids import Attempt, JobId, WorkerId
from tidemill.values.jobs import Claimed, JobDetails, NewJob
from tidemill.values.retry import Retry


@dataclass
class Defined:
    """One job of a test."""

    function: Callable[..., object]
    wants_context: bool = False
    fault: Exception | None = None
    injection: Injection | None = None
    in_process: bool = False

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def decode(self, payload: bytes) -> dict[str, object]:
        try:
            return json.loads(payload)
        except ValueError as error:
            raise DecodingError(str(error)) from error

    def encode_output(self, value: object) -> bytes | None:
        try:
            return None if value is None else json.dumps(value).encode()
        except TypeError as error:
            raise EncodingError(str(error)) from error

    def resolve(self) -> None:
        if self.fault is not None:
            raise self.fault


class Jobs:
    """The jobs of a test, by the names of their functions."""

    def __init__(self) -> None:
        self.defined: dict[str, Defined] = {}

    def __call__(self, function: Callable[..., object]) -> Callable[..., object]:
        wants_context = "ctx" in inspect.signature(function).parameters
        self.defined[function.__name__] = Defined(function, wants_context)
        return function

    def get(self, wire_name: str) -> Defined | None:
        return self.defined.get(wire_name)

    def wire_names(self) -> frozenset[str]:
        return frozenset(self.defined)


@dataclass
class Planned:
    """A fault to come: of the next operation that fits, before or after it was performed."""

    fits: Callable[[object], bool]
    error: BaseException
    after: bool


@dataclass
class ScriptedStore:
    """The memory store, failing as a test has planned, and counting heartbeats."""

    inner: MemoryStore
    planned: list[Planned] = field(default_factory=list)
    performed: list[object] = field(default_factory=list)
    beats: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    cut: list[Callable[[object], bool]] = field(default_factory=list)
    connections: int = 0
    gates: list[tuple[Callable[[object], bool], asyncio.Event]] = field(default_factory=list)
    watchers: int = 0
    blocked: threading.Event | None = None

    capabilities = property(lambda self: self.inner.capabilities)
    bounds = property(lambda self: self.inner.bounds)

    def fail(
        self, fits: Callable[[object], bool], *errors: BaseException, after: bool = False
    ) -> None:
        self.planned += [Planned(fits, error, after) for error in errors]

    def cut_off(self, fits: Callable[[object], bool]) -> None:
        """Answer no such operation any more."""
        self.cut.append(fits)

    def forget_beats(self) -> int:
        """Forget the beats that were answered, and say how many there were."""
        count = 0
        while self.beats.acquire(blocking=False):
            count += 1
        return count

    def hold(self, fits: Callable[[object], bool]) -> asyncio.Event:
        """Keep such operations of coroutines waiting until the answered event is set."""
        gate = asyncio.Event()
        self.gates.append((fits, gate))
        return gate

    def block_threads(self, until: threading.Event) -> None:
        """Keep the heart's operations waiting until the event is set."""
        self.blocked = until

    async def perform(self, operation):
        for fits, gate in self.gates:
            if fits(operation):
                await gate.wait()
        return self.perform_sync(operation)

    def perform_sync(self, operation):
        self._raise_planned(operation, after=False)
        answer = self.inner.perform_sync(operation)
        self.performed.append(operation)
        self._raise_planned(operation, after=True)
        if isinstance(operation, Beat):
            self.beats.release()
        return answer

    @contextmanager
    def dedicated(self) -> Iterator[object]:
        self.connections += 1
        self._raise_planned("dedicated", after=False)
        yield _Channel(self)

    def watch(self, wake):
        self._raise_planned("watch", after=False)
        self.watchers += 1
        stop = self.inner.watch(wake)

        def unwatch() -> None:
            self.watchers -= 1
            stop()

        return unwatch

    def close(self) -> None:
        """Nothing was opened."""

    def _raise_planned(self, operation: object, *, after: bool) -> None:
        if any(fits(operation) for fits in self.cut):
            message = "cut off"
            raise StoreUnavailable(message)
        for planned in self.planned:
            if planned.after is after and planned.fits(operation):
                self.planned.remove(planned)
                raise planned.error


class _Channel:
    def __init__(self, store: ScriptedStore) -> None:
        self.store = store

    def perform(self, operation):
        if self.store.blocked is not None:
            self.store.blocked.wait()
        return self.store.perform_sync(operation)


class Books:
    """What the store has on record."""

    def __init__(self, store: ScriptedStore) -> None:
        self.store = store
        self._store = store.inner

    def enqueue(self, wire_name: str, **fields: object) -> JobId:
        arguments = fields.pop("arguments", {})
        job = NewJob(
            id=JobId(new_id()), wire_name=wire_name, payload=json.dumps(arguments).encode()
        )
        job = replace(job, **fields)
        self._store.perform_sync(Enqueue((job,)))
        return job.id

    def job(self, job_id: JobId) -> JobDetails:
        details = self._store.perform_sync(GetJob(job_id))
        assert details is not None
        return details

    def states(self, job_ids: list[JobId]) -> Counter[str]:
        return Counter(self.job(job_id).record.state.value for job_id in job_ids)

    def state(self, job_id: JobId) -> str:
        return self.job(job_id).record.state.value

    def workers(self) -> list[WorkerId]:
        return [worker.id for worker in self._store.perform_sync(ListWorkers())]

    async def wait_for(self, job_id: JobId, state: str) -> JobDetails:
        await self.until(lambda: self.state(job_id) == state)
        return self.job(job_id)

    async def until(self, holds: Callable[[], object]) -> None:
        await until(holds)


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def time(clock: Clock) -> HeldTime:
    """Hold the time of the store and the workers of this test."""
    return HeldTime(clock)


@pytest.fixture
def store(clock: Clock) -> ScriptedStore:
    return ScriptedStore(MemoryStore(clock.now))


@pytest.fixture
def books(store: ScriptedStore) -> Books:
    return Books(store)


@pytest.fixture(name="wait_until")
def wait_until_fixture() -> Callable[..., Awaitable[None]]:
    return until


@pytest.fixture
def threads_of_ours() -> Callable[[], set[str]]:
    """The names of the threads that the shell has started and that still live."""
    return lambda: {
        thread.name for thread in threading.enumerate() if thread.name.startswith("tidemill")
    }


@pytest.fixture
def make_worker(store: ScriptedStore, jobs: Jobs, clock: Clock) -> Callable[..., Worker]:
    def make(**settings: object) -> Worker:
        seconds = {
            name: timedelta(seconds=value) if isinstance(value, (int, float)) else value
            for name, value in settings.items()
            if name != "concurrency"
        }
        slots = {"concurrency": settings["concurrency"]} if "concurrency" in settings else {}
        return Worker(store, jobs, JobContext, WorkerSettings(**seconds, **slots), clock.monotonic)

    return make


@pytest.fixture
def claimed() -> Callable[..., Claimed]:
    def make(wire_name: str, payload: bytes = b"{}") -> Claimed:
        now = datetime.now(UTC)
        return Claimed(
            id=JobId(new_id()),
            attempt=Attempt(1),
            worker=WorkerId(new_id()),
            wire_name=wire_name,
            payload=payload,
            queue="default",
            priority=0,
            created_at=now,
            due_at=now,
            started_at=now,
            timeout=None,
            retry=Retry(),
            tenant=None,
            trace_context=None,
        )

    return make
