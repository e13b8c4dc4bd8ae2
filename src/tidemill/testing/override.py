"""Standing in for an app's store, and giving it back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tidemill.app import Tidemill
from tidemill.client import Client
from tidemill.store.contract import Store


@contextmanager
def overriding(mill: Tidemill, store: Store) -> Generator[None]:
    """Everything the app does goes to `store` until the block is left, however it is left (N1).

    The app's own store is neither opened nor closed. An app that is configured inside the block,
    as its start-up code may do, goes on with `store`, and has what it was given afterwards.
    """
    client = mill.client
    mill.client = Client(lambda: store)
    before = _swap(mill, None, store)
    try:
        yield
    finally:
        mill.client = client
        now = _swap(mill, *before)
        if now[1] is not store:  # it was configured meanwhile, and that is to last
            _swap(mill, *now)
            _close(*before)


def _close(url: str | None, store: Store | None) -> None:
    """Close a store that the app would have closed: one that it opened itself."""
    if url is not None and store is not None:
        store.close()


def _swap(mill: Tidemill, url: str | None, store: Store | None) -> tuple[str | None, Store | None]:
    """Exchange what the app remembers of its store."""
    # `configure` would close the store that is there, and it cannot be asked for its URL.
    with mill._lock:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as said above
        before = mill._url, mill._store  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as said above
        mill._url, mill._store = url, store  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - as said above
    return before
