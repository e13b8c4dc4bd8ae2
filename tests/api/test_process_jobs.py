"""Declaring handlers for processes: only what another process can import."""

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from tidemill import JobGroup, Tidemill
from tidemill.errors import DeclarationError
from tidemill.process_jobs import finder_of


def top_level(number: int) -> int:
    return number


async def top_level_async() -> int:
    return os.getpid()


def test_a_function_of_a_module_is_taken_plain_or_async(mill: Tidemill) -> None:
    assert mill.job("plain", executor="process")(top_level)(3) == 3
    mill.job("async", executor="process")(top_level_async)
    plain, coroutine = mill.registry.get("plain"), mill.registry.get("async")
    assert plain is not None
    assert coroutine is not None
    assert (plain.in_process, plain.is_async) == (True, False)
    assert (coroutine.in_process, coroutine.is_async) == (True, True)


@pytest.mark.parametrize("home", [Tidemill(), JobGroup()])
def test_what_no_other_process_can_import_is_refused_where_it_is_declared(home: Any) -> None:
    def closure() -> None: ...

    with pytest.raises(DeclarationError, match="closure, which is inside a function"):
        home.job("closure", executor="process")(closure)
    with pytest.raises(DeclarationError, match="which is a lambda"):
        home.job("lambda", executor="process")(lambda: None)


def test_elsewhere_closures_are_welcome(mill: Tidemill) -> None:
    @mill.job("thread", executor="thread")
    def closure() -> None: ...

    definition = mill.registry.get("thread")
    assert definition is not None
    assert not definition.in_process


APP = """
from tidemill import Tidemill
mill = Tidemill("memory://")
@mill.job("work", executor="process")
def work() -> None: ...
"""


def test_a_job_of_a_file_that_was_run_and_not_imported_is_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    file = tmp_path / "orders.py"
    file.write_text(APP)
    ran = runpy.run_path(str(file), run_name="orders_that_ran")
    with pytest.raises(DeclarationError, match=r"'orders_that_ran'.*Put the job into a module"):
        finder_of(ran["mill"])
