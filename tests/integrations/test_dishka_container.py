"""dishka: the container itself, which `tidemill worker` closes at its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from dishka import Provider, Scope, make_async_container, make_container, provide

from tidemill import Tidemill
from tidemill.integrations.dishka import setup_dishka


class Engine:
    """Lasts as long as the process."""


@pytest.mark.parametrize("made", [make_async_container, make_container])
async def test_what_lasts_as_long_as_the_process_is_finalized_by_the_apps_close(made: Any) -> None:
    ends: list[str] = []

    class Engines(Provider):
        @provide(scope=Scope.APP)
        def engine(self) -> Iterable[Engine]:
            yield Engine()
            ends.append("ended")

    container = made(Engines())
    mill = Tidemill("memory://")
    setup_dishka(container, mill)
    given = container.get(Engine)
    assert isinstance(await given if made is make_async_container else given, Engine)
    assert mill.scopes is not None
    assert mill.scopes.close is not None
    closing = mill.scopes.close()
    if closing is not None:
        await closing
    assert ends == ["ended"]
