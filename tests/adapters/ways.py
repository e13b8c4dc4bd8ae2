"""The two ways to a store: from a thread, and from a coroutine."""

import asyncio

import pytest


def in_thread(store, operation):
    return store.perform_sync(operation)


def in_loop(store, operation):
    return asyncio.run(store.perform(operation))


WAYS = pytest.mark.parametrize("perform", [in_thread, in_loop])
