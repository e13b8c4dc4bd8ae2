"""Tidemill, the app: it knows the jobs, has a store, and enqueues."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from tidemill.bound import BoundJob, Home, enqueue_bound, enqueue_bound_in, enqueue_bound_sync
from tidemill.bridges.transactions import AsyncProxy, AsyncTx, SyncTx
from tidemill.client import Client, JobRef
from tidemill.config import open_store, require_scheme, store_url
from tidemill.context import JobContext
from tidemill.declaring import Declares, JobGroup
from tidemill.errors import ConfigurationError
from tidemill.lifespan import Lifespan, Openings, WorkerOptions, client_open, with_worker
from tidemill.operators import Jobs
from tidemill.queues import Queues
from tidemill.registry import JobDefinition, Registry
from tidemill.shell.scope import Close, Opening, Scopes, WhyNot
from tidemill.store.contract import Store
from tidemill.values.bounds import DEFAULT_BOUNDS, Bounds
from tidemill.values.durations import Duration, duration
from tidemill.values.jobs import DEFAULT_QUEUE
from tidemill.values.urls import without_secrets

if TYPE_CHECKING:
    from tidemill.shell.worker import Worker

R = TypeVar("R")


class Tidemill(Declares):
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
        self._openings = Openings()
        _apps.add(self)
        self._url: str | None = None
        self._store: Store | None = None
        self._standing_in: Store | None = None
        self._scopes: Scopes | None = None
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
                # What help and declarations need loads nothing of the adapters.
                from tidemill.adapters.host_clock import utc_now  # noqa: PLC0415 - as said above

                self._url = store_url(self._url)
                self._store = open_store(self._url, self.bounds, utc_now)
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

    def forget_parent(self) -> None:
        """In a forked child: another thread of the parent may have held the lock.

        What it was about to assign is whole, before or after.
        """
        self._lock = Lock()
        self._openings.forget_parent()

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
        kill_after: Duration = "5s",
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
            kill_after: how long a handler in a process may take to end after it was asked to stop,
                before the process is killed.
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
        from tidemill.process_jobs import finder_of  # noqa: PLC0415 - see above
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
            kill_after=duration(kill_after, "kill_after"),
            delivery_timeout=duration(delivery_timeout, "delivery_timeout"),
            stall_limit=duration(stall_limit, "stall_limit"),
            keep_tracebacks=keep_tracebacks,
            quarantine_unknown=quarantine_unknown,
        )
        context = partial(JobContext, store=self.store, bounds=self.store.bounds)
        return Worker(
            self.store,
            self.registry,
            context,
            settings,
            scopes=self._scopes,
            finder=partial(finder_of, self),
        )

    def lifespan(self, _: object = None, /) -> AbstractAsyncContextManager[None]:
        """The client, open: `FastAPI(lifespan=mill.lifespan)` or `async with mill.lifespan(): …`.

        The store is used once at the start, so that a wrong URL or schema fails there, and closed
        at the end, by the last of several lifespans. No worker runs. Frameworks pass themselves as
        the argument.

        Raises:
            StoreError: the store cannot be used.
            ConfigurationError: there is none.
        """
        return client_open(self, self._openings)

    def lifespan_with_worker(self, **settings: Unpack[WorkerOptions]) -> Lifespan:
        """As `lifespan`, with a worker in the same process and on the same event loop.

        `FastAPI(lifespan=mill.lifespan_with_worker(queues=["mail"]))`. The settings are those of
        `worker`. At the end the worker drains, for the grace period at most, and what closes after
        it can rely on that. Each process of a server with several runs a worker of its own. One
        that dies of a fault is logged at once, and its error is raised at the end.

        Raises:
            DeclarationError: at the start, a job that cannot run.
        """
        return with_worker(self, self._openings, lambda: self.worker(**settings))

    def use_scopes(
        self,
        factory: Callable[[JobContext], Opening],
        *,
        why_not: WhyNot | None = None,
        close: Close | None = None,
    ) -> None:
        """Give every attempt of a job that takes services a scope to take them from.

        `setup_dishka(container, mill)` does this for a container of dishka.

        Args:
            factory: makes the scope of an attempt from its context, called on the event loop. It
                may be an `@asynccontextmanager` that yields an object with `async def get(type)`,
                or, for plain handlers, a `@contextmanager` that yields one with `def get(type)`;
                that one is used on the handler's own thread. It is left with the error of the
                attempt. If it raises when it is left after a success, the attempt has failed.
            why_not: called with a type when a worker starts, and with whether every attempt has to
                have its own; answers why it cannot be had, as the end of a sentence, or None.
            close: called when `tidemill worker` ends, after the last attempt, and awaited if it
                answers a coroutine; it has 10 s. A worker in a program of yours leaves it to you.
        """
        self._scopes = Scopes(factory, why_not, close)

    @property
    def scopes(self) -> Scopes | None:
        """Where attempts take their services from; None if nothing was said."""
        return self._scopes

    async def enqueue_many(self, jobs: Iterable[BoundJob[R]]) -> list[JobRef[R]]:
        """Store all of the jobs or none, in one transaction; references in the same order.

        Raises:
            Refused: the store cannot hold one of them; nothing was written.
        """
        return await enqueue_bound(self.client, jobs)

    @overload
    def enqueue_many_in(self, tx: SyncTx, jobs: Iterable[BoundJob[R]], /) -> list[JobRef[R]]: ...
    @overload
    def enqueue_many_in(
        self, tx: AsyncTx | AsyncProxy, jobs: Iterable[BoundJob[R]], /
    ) -> Coroutine[Any, Any, list[JobRef[R]]]: ...
    def enqueue_many_in(self, tx: Any, jobs: Iterable[BoundJob[R]], /) -> Any:
        """Store all of the jobs in a transaction of yours; references in the same order.

        Awaited in an async transaction. The rest is as `JobHandle.enqueue_in` has it; where it
        raises, none of the jobs is in the transaction.

        Raises:
            TransactionRefused: `tx` is none that the jobs can be stored in.
            LockNotGranted: another transaction, open for too long, enqueues one of the keys.
            Refused: the store cannot hold one of them; nothing was written.
        """
        return enqueue_bound_in(self.client, tx, jobs)

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

    def _register(self, definition: JobDefinition) -> None:
        self.registry.add(definition)

    def _home(self) -> Home:
        return self

    def _where(self) -> str:
        if self._url is not None:
            return f"on {without_secrets(self._url)}"
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


_apps: weakref.WeakSet[Tidemill] = weakref.WeakSet()


def _after_fork() -> None:
    for app in tuple(_apps):
        app.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
