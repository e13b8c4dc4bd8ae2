"""From declaring to running: what opens when, what replaces what, and who knows which jobs."""

from __future__ import annotations

import importlib
import runpy
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.waiting import until

from tidemill import JobGroup, Tidemill
from tidemill.errors import DeclarationError
from tidemill.store.monitor import ListWorkers

SHOP = """
from tidemill import JobGroup
from hall import mill

group = JobGroup("shop.")

@mill.job("sell")
def sell(order: int) -> int:
    return order + {version}

class Payments:
    @mill.job_method("capture")
    def capture(self) -> int:
        return {version}

@group.job("pack")
def pack() -> int:
    return {version}

mill.include(group)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of two modules: `hall` has the app, `shop` the jobs."""
    (tmp_path / "hall.py").write_text("from tidemill import Tidemill\nmill = Tidemill()\n")
    (tmp_path / "shop.py").write_text(SHOP.format(version=1))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("hall", "shop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def handlers(mill: Tidemill) -> dict[str, Any]:
    return {each.wire_name: each.function for each in mill.registry}


def test_neither_an_app_nor_a_worker_nor_a_lifespan_opens_anything_when_it_is_made(
    tmp_path: Path,
) -> None:
    before = set(threading.enumerate())
    mill = Tidemill(f"sqlite:///{tmp_path}/jobs.db")
    mill.job("greet")(lambda: None)
    mill.worker(concurrency=50)
    mill.lifespan()
    mill.lifespan_with_worker(queues=["mail"])()
    assert list(tmp_path.iterdir()) == []
    assert set(threading.enumerate()) == before


def test_a_reloaded_module_replaces_its_jobs(folder: Path) -> None:
    shop = importlib.import_module("shop")
    (folder / "shop.py").write_text(SHOP.format(version=2))
    importlib.reload(shop)
    known = handlers(shop.mill)
    assert sorted(known) == ["capture", "sell", "shop.pack"]
    assert known["sell"](1) == 3
    assert known["capture"](shop.Payments()) == known["shop.pack"]() == 2


@pytest.mark.parametrize("main_first", [True, False])
def test_a_program_that_imports_itself_declares_its_jobs_once(
    folder: Path, main_first: bool
) -> None:
    if main_first:
        runpy.run_path(str(folder / "shop.py"), run_name="__main__")
    shop = importlib.import_module("shop")
    if not main_first:
        runpy.run_path(str(folder / "shop.py"), run_name="__main__")
    assert sorted(handlers(shop.mill)) == ["capture", "sell", "shop.pack"]


def test_a_cell_of_a_notebook_that_is_run_again_replaces_its_jobs() -> None:
    mill, notebook = Tidemill(), ModuleType("__main__")
    notebook.__dict__["mill"] = mill
    for number in (1, 2):
        cell = f'@mill.job("sell")\ndef sell() -> int:\n    return {number}\n'
        exec(compile(cell, f"<cell {number}>", "exec"), notebook.__dict__)
    assert handlers(mill)["sell"]() == 2


def test_the_name_of_another_modules_job_is_refused_with_both_places(folder: Path) -> None:
    importlib.import_module("shop")
    (folder / "store.py").write_text(SHOP.format(version=2))
    with pytest.raises(DeclarationError) as refused:
        importlib.import_module("store")
    assert f"shop.sell ({folder}/shop.py:7)" in str(refused.value)
    assert f"store.sell ({folder}/store.py:7)" in str(refused.value)


async def test_a_worker_knows_the_jobs_of_the_modules_that_its_app_imports(folder: Path) -> None:
    (folder / "hall.py").write_text(
        "from tidemill import Tidemill\nmill = Tidemill('memory://', imports=['shop'])\n"
    )
    mill = importlib.import_module("hall").mill
    assert handlers(mill) == {}
    mill.use_scopes(lambda _: None)
    async with mill.worker():
        await until(lambda: mill.store.perform_sync(ListWorkers()))
        (worker,) = mill.store.perform_sync(ListWorkers())
        assert worker.wire_names == {"capture", "sell", "shop.pack"}


def test_a_group_declares_before_and_after_it_is_included() -> None:
    mill, group = Tidemill(), JobGroup("shop.")

    @group.job("pack")
    def pack() -> None: ...

    mill.include(group)

    @group.job("send")
    def send() -> None: ...

    assert mill.registry.wire_names() == {"shop.pack", "shop.send"}
