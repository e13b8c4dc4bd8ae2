"""A user's services and methods: what the checkers know of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar, assert_type

import dishka
from dishka import AsyncContainer, Container
from fastapi import FastAPI

from tidemill import INJECTED, FromDishka, JobContext, JobRef, Tidemill
from tidemill.integrations.dishka import setup_dishka

mill = Tidemill()
T = TypeVar("T")


class Gateway:
    """A service."""

    async def capture(self, payment_id: str) -> int:
        """Take the money."""
        return len(payment_id)


@mill.job("capture")
async def capture(
    context: JobContext, payment_id: str, gateway: FromDishka[Gateway] = INJECTED
) -> int:
    """A service behind the arguments."""
    assert_type(gateway, Gateway)
    return await gateway.capture(payment_id)


@mill.job("render")
def render(
    order: int, *, gateway: dishka.FromDishka[Gateway] = INJECTED, other: Gateway = INJECTED
) -> str:
    """A service by keyword, marked as dishka does it, and not marked at all."""
    assert_type(gateway, Gateway)
    return str(order)


class Payments:
    """A controller."""

    def __init__(self, gateway: Gateway) -> None:
        """Take a service."""
        self.gateway = gateway

    @mill.job_method("payments.capture", queue="payments")
    async def capture(self, context: JobContext, payment_id: str, *, amount: int = 1) -> int:
        """A coroutine that takes the context."""
        return await self.gateway.capture(payment_id)

    @mill.job_method("payments.refund")
    async def refund(self, payment_id: str, gateway: FromDishka[Gateway] = INJECTED) -> list[int]:
        """A coroutine that does not."""
        ref = await self.render.enqueue(1)
        assert_type(ref, JobRef[str])
        assert_type(await self.capture(_context(), payment_id), int)
        return [await gateway.capture(payment_id)]

    @mill.job_method("payments.render")
    def render(self, context: JobContext, order: int) -> str:
        """A plain method that takes the context."""
        return str(order)

    @mill.job_method("payments.count")
    def count(self, words: list[str]) -> None:
        """A plain method that does not."""


async def enqueuing() -> None:
    """By way of the class, with the parameters behind `self` and the context."""
    assert_type(await capture.enqueue("p-1"), JobRef[int])
    assert_type(await Payments.capture.enqueue("p-1", amount=3), JobRef[int])
    assert_type(await Payments.refund.with_options(delay="1h").enqueue("p-1"), JobRef[list[int]])
    assert_type(Payments.render.sync.enqueue(1), JobRef[str])
    assert_type(Payments.count.sync.enqueue([]), JobRef[None])
    await mill.enqueue_many([Payments.capture.bind("p-1"), capture.bind("p-2")])


async def calling(payments: Payments) -> None:
    """On an object they are methods."""
    assert_type(await payments.capture(_context(), "p-1", amount=2), int)
    assert_type(await payments.refund("p-1", Gateway()), list[int])
    assert_type(payments.render(_context(), 1), str)
    payments.count(["a"])
    assert_type(Payments.render(payments, _context(), 1), str)


class Given:
    """A scope of one's own."""

    async def get(self, wanted: type[T], /) -> T:
        """Make a service."""
        return wanted()


@asynccontextmanager
async def scopes(context: JobContext) -> AsyncGenerator[Given]:
    """Open a scope for an attempt."""
    yield Given()


def setting_up(container: AsyncContainer, other: Container) -> None:
    """Containers, scopes and web applications."""
    setup_dishka(container, mill)
    setup_dishka(other, mill)
    mill.use_scopes(scopes)
    FastAPI(lifespan=mill.lifespan)
    FastAPI(lifespan=mill.lifespan_with_worker(queues={"mail": 2}, grace="10s"))


async def living() -> None:
    """A lifespan is a block as well."""
    async with mill.lifespan():
        await capture.enqueue("p-1")


def _context() -> Any:
    raise NotImplementedError
