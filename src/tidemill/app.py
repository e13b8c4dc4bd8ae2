"""Tidemill, the app: it knows the jobs, has a store, and enqueues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from tidemill.bound import BoundJob, Home, enqueue_bound, enqueue_bound_sync
from tidemill.client import Client, JobRef
from tidemill.config import open_store, require_scheme, store_url
from tidemill.context import JobContext
from tidemill.decorator import FunctionJob, handle_for
from tidemill.errors import ConfigurationError, DeclarationError
from tidemill.jobs import JobHandle
from tidemill.operators import Jobs
from tidemill.queues import Queues
from tidemill.registry import (
    ExecutorKind,
    Extra,
    JobDefaults,
    JobDefinition,
    Registry,
    define,
)
from tidemill.store.contract import Store
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.durations import Duration, duration
from tidemill.values.jobs import DEFAULT_PRIORITY, DEFAULT_QUEUE
from tidemill.values.retry import DEFAULT_RETRY, Retry

if TYPE_CHECKING:
    from tidemill.shell.worker import Worker

R = TypeVar("R")


class _Declares(ABC):
    """What an app and a group have in common: the decorator."""

    def job(
        self,
        wire_name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        retry: Retry = DEFAULT_RETRY,
        timeout: Duration | None = None,
        aliases: Iterable[str] = (),
        extra: Extra = "refuse",
        executor: ExecutorKind | None = None,
    ) -> FunctionJob:
        """Declare the decorated function as a job.

        Args:
            wire_name: the stored identity of the job type; renaming the function keeps it.
            queue: the stream its jobs are put into.
            priority: higher is claimed first, -32768 to 32767.
            retry: what happens after an attempt that did not succeed.
            timeout: how long one attempt may run; None for ever.
            aliases: whole wire names of old rows that this job runs too.
            extra: what to do with stored parameters that the function does not take: `refuse`
                quarantines the job, `ignore` drops them.
            executor: `async` awaits what the function returns, `thread` runs it in a thread; by
                default `async def` and `def` decide.

        Raises:
            DeclarationError: the name is missing, taken or empty, or the function cannot be a job.
        """
        _require_text(wire_name)
        defaults = JobDefaults(
            queue=queue,
            priority=priority,
            retry=retry,
            timeout=None if timeout is None else duration(timeout, f"timeout of {wire_name!r}"),
        )
        names = self._wire_name(wire_name), tuple(aliases)

        def declare(function: Callable[..., Any]) -> Any:
            name, others = names
            _refuse_job(function, name)
            definition = define(
                function, name, aliases=others, defaults=defaults, executor=executor, extra=extra
            )
            return self._register(definition)

        return declare

    def _wire_name(self, name: str) -> str:
        return name

    @abstractmethod
    def _register(self, definition: JobDefinition) -> JobHandle[..., Any]: ...


class Tidemill(_Declares):
    """An app. Constructing one opens nothing: the first operation does.

    Args:
        url: the store, such as `sqlite:///orders.db`; may be given later with `configure`, or by
            the environment variable `TIDEMILL_STORE`.
        imports: modules that declare jobs, for `load_imports`.
        bounds: the largest of everything the store takes.
        store: a store to use as it is, instead of a URL.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        imports: Iterable[str] = (),
        bounds: Bounds = DEFAULT_BOUNDS,
        store: Store | None = None,
    ) -> None:
        self.registry = Registry()
        self.client = Client(lambda: self.store)
        self.bounds = bounds
        self._imports = tuple(imports)
        self._lock = Lock()
        self._url: str | None = None
        self._store: Store | None = None
        self._standing_in: Store | None = None
        if url is not None and store is not None:
            message = "An app is given either a URL or a store, not both."
            raise ConfigurationError(message)
        given = url if store is None else store
        if given is not None:
            self.configure(given)

    def __repr__(self) -> str:
        count = sum(1 for _ in self.registry)
        return f"<Tidemill {self._where()}, {count} job{'' if count == 1 else 's'}>"

    @property
    def url(self) -> str | None:
        """The URL of the store, as it was given or taken from the environment.

        None where the store was given as it is, or nothing has named one yet.
        """
        return self._url

    def configure(self, store: str | Store) -> None:
        """Use this store, given as a URL or as it is, from now on.

        A store that the app had made from a URL before is closed.

        Raises:
            ConfigurationError: the URL's scheme is not supported.
        """
        url = store if isinstance(store, str) else None
        if url is not None:
            require_scheme(url)
        with self._lock:
            before = self._store if self._url is not None else None
            self._url = url
            self._store = None if isinstance(store, str) else store
        if before is not None:
            before.close()

    @property
    def store(self) -> Store:
        """The store.

        Raises:
            StoreNotConfigured: none was given.
        """
        with self._lock:
            if self._standing_in is not None:
                return self._standing_in
            if self._store is None:
                self._url = store_url(self._url)
                self._store = open_store(self._url, self.bounds, _utc_now)
            return self._store

    @contextmanager
    def using(self, store: Store) -> Generator[None]:
        """Have everything go to `store` until the block is left, however it is left: for tests.

        The app's own store is neither opened nor closed. An app that is configured inside the
        block, as its start-up code may do, goes on with `store`, and has what it was given after.
        References made in the block go on reading from `store`.
        """
        before = self._standing_in, self.client
        self._standing_in, self.client = store, Client(lambda: store)
        try:
            yield
        finally:
            self._standing_in, self.client = before

    def close(self) -> None:
        """Close what the app opened. The next operation opens it again."""
        with self._lock:
            if self._url is None or self._store is None:
                return
            store, self._store = self._store, None
        store.close()

    def include(self, group: JobGroup) -> None:
        """Take the jobs of a group, and those that it declares later.

        Raises:
            DeclarationError: a wire name is taken, or the group belongs to another app.
        """
        group.join(self, self.registry)

    def load_imports(self) -> None:
        """Import the modules that declare jobs, so that a worker knows them.

        Raises:
            ConfigurationError: a module of that name does not exist.
        """
        for name in self._imports:
            try:
                import_module(name)
            except ModuleNotFoundError as error:
                if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                    raise
                message = f"imports names {name!r}, and there is no module {error.name!r}."
                raise ConfigurationError(message) from error

    def worker(
        self,
        *,
        queues: Sequence[str] | Mapping[str, int] = (DEFAULT_QUEUE,),
        concurrency: int = 20,
        lease: Duration = "60s",
        poll_interval: Duration = "1s",
        maintenance_interval: Duration = "1s",
        grace: Duration = "30s",
        patience: Duration = "5s",
        delivery_timeout: Duration = "10s",
        stall_limit: Duration = "5m",
        keep_tracebacks: bool = True,
        quarantine_unknown: bool = False,
    ) -> Worker:
        """A worker in this process, for the running event loop: `async with mill.worker(): …`.

        Args:
            queues: names in strict order, or names with weights.
            concurrency: attempts that run at once.
            lease: how long a heartbeat lasts, at least 1 s; beats go out every third of it.
            poll_interval: the longest wait between polls of an idle worker.
            maintenance_interval: how long after one round of upkeep the next one starts.
            grace: how long a shutdown lets handlers finish before it cancels them.
            patience: how long a cancelled handler may take before its job is given back.
            delivery_timeout: how long one store call may take before its answer is given up.
            stall_limit: an event loop that has not turned for so long is left to lapse; at least
                the lease.
            keep_tracebacks: store the traceback of a failed attempt, or only its error.
            quarantine_unknown: claim jobs of unknown wire names and quarantine them, instead of
                leaving them to workers that know them.

        Raises:
            ConfigurationError: settings that cannot work, or `imports` that are not there.
        """
        # Imported here, so that a process which only enqueues does not load what runs jobs.
        from tidemill.shell.settings import WorkerSettings  # noqa: PLC0415 - see above
        from tidemill.shell.worker import Worker  # noqa: PLC0415 - see above

        self.load_imports()
        settings = WorkerSettings(
            queues=queues,
            concurrency=concurrency,
            lease=duration(lease, "lease"),
            poll_interval=duration(poll_interval, "poll_interval"),
            maintenance_interval=duration(maintenance_interval, "maintenance_interval"),
            grace=duration(grace, "grace"),
            patience=duration(patience, "patience"),
            delivery_timeout=duration(delivery_timeout, "delivery_timeout"),
            stall_limit=duration(stall_limit, "stall_limit"),
            keep_tracebacks=keep_tracebacks,
            quarantine_unknown=quarantine_unknown,
        )
        context = partial(JobContext, bounds=self.store.bounds)
        return Worker(self.store, self.registry, context, settings)

    async def enqueue_many(self, jobs: Iterable[BoundJob[R]]) -> list[JobRef[R]]:
        """Store all of the jobs or none, in one transaction; references in the same order.

        Raises:
            Refused: the store cannot hold one of them; nothing was written.
        """
        return await enqueue_bound(self.client, jobs)

    @property
    def jobs(self) -> Jobs:
        """Reading jobs and acting on them: `get`, `list`, `counts`, `cancel`, `requeue`, …."""
        return Jobs(self.client)

    @property
    def queues(self) -> Queues:
        """Looking at queues and pausing them: `list`, `pause`, `resume`."""
        return Queues(self.client)

    @property
    def sync(self) -> SyncTidemill:
        """The same for threads: `mill.sync.enqueue_many(…)`."""
        return SyncTidemill(self.client)

    def _register(self, definition: JobDefinition) -> JobHandle[..., Any]:
        self.registry.add(definition)
        return handle_for(definition, self)

    def _where(self) -> str:
        if self._url is not None:
            return f"on {_without_secrets(self._url)}"
        if self._store is not None:
            return f"on a {self._store.capabilities.name} store"
        return "without a store"


class SyncTidemill:
    """The app's own verbs for threads and scripts."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def enqueue_many(self, jobs: Iterable[BoundJob[R]]) -> list[JobRef[R]]:
        """As `Tidemill.enqueue_many`, blocking this thread.

        Raises:
            WrongContext: an event loop runs in this thread.
        """
        return enqueue_bound_sync(self._client, jobs, instead="await mill.enqueue_many(...)")


class JobGroup(_Declares):
    """Jobs that are declared before, or apart from, the app that includes them.

    Args:
        prefix: stands before every wire name of the group. Aliases are whole names.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._own = Registry()
        self._app: Home | None = None
        self._registry: Registry | None = None

    @property
    def client(self) -> Client:
        """The client of the app that includes the group.

        Raises:
            ConfigurationError: no app does.
        """
        if self._app is None:
            message = (
                f"The jobs of the group {self.prefix!r} have no app yet: call mill.include(group)."
            )
            raise ConfigurationError(message)
        return self._app.client

    def join(self, app: Home, registry: Registry) -> None:
        """Belong to an app; `mill.include(group)` calls this.

        Raises:
            DeclarationError: a wire name is taken, or the group belongs to another app.
        """
        if self._app not in (None, app):
            message = f"The group {self.prefix!r} is already included in another app."
            raise DeclarationError(message)
        for definition in self._own:
            registry.add(definition)
        self._app, self._registry = app, registry

    def _wire_name(self, name: str) -> str:
        return self.prefix + name if name else name

    def _register(self, definition: JobDefinition) -> JobHandle[..., Any]:
        self._own.add(definition)
        if self._registry is not None:
            self._registry.add(definition)
        return handle_for(definition, self)


def _require_text(wire_name: object) -> None:
    if isinstance(wire_name, str):
        return
    name = getattr(wire_name, "__name__", "the function") if callable(wire_name) else None
    where = f" above {name}" if name else ""
    message = (
        f"A job needs a wire name, the text that its rows are stored under, and was given "
        f'{wire_name!r}: write @mill.job("wire.name"){where}.'
    )
    raise DeclarationError(message)


def _refuse_job(function: object, wire_name: str) -> None:
    if isinstance(function, JobHandle):
        message = (
            f"{function.function.__qualname__} is a job already, {function.wire_name!r}, and "
            f"cannot be declared as {wire_name!r} too. To let it run rows of that name, declare "
            f"it once, with aliases=[{wire_name!r}]."
        )
        raise DeclarationError(message)


def _without_secrets(url: str) -> str:
    """The URL without user, password and parameters."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _utc_now() -> datetime:
    return datetime.now(UTC)
