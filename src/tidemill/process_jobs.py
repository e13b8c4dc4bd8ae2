"""How a handler process finds its app again: by the module and the name that the app stands under.

An app in the program's main module is found as `multiprocessing` finds it: the file is run again
under the name `__mp_main__`, so what stands behind `if __name__ == "__main__"` is not.
"""

from __future__ import annotations

import runpy
import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from tidemill.context import JobContext
from tidemill.errors import DeclarationError, StoreNotConfigured
from tidemill.shell.handler_talk import Found, Load

if TYPE_CHECKING:
    from tidemill.app import Tidemill
    from tidemill.registry import JobDefinition

_MAIN: Final = "__main__"
_MAIN_AGAIN: Final = "__mp_main__"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an app stands.

    Attributes:
        module: the module whose attribute it is.
        attribute: its name there.
        main: the main program's module name or else its file, directory or archive, where a job or
            the app is in it.
    """

    module: str
    attribute: str
    main: tuple[str | None, str | None] | None


def finder_of(mill: Tidemill) -> Load:
    """What a handler process is to do to have the jobs of this app.

    Raises:
        DeclarationError: the app stands in no module's variable, or in none that can be imported.
    """
    jobs = [job for job in mill.registry if job.in_process]
    for job in jobs:
        _require_module(job)
    modules = sorted({job.function.__module__ for job in jobs})
    module, attribute = _standing(mill, modules, jobs[0].wire_name)
    main = _main() if _MAIN in {module, *modules} else None
    place = Place(module, attribute, main)
    return partial(find, place, tuple(modules), mill.url)


def find(place: Place, modules: tuple[str, ...], url: str | None) -> Found:
    """The jobs of the app that stands there, with the store at this URL if there is one.

    Raises:
        DeclarationError: importing the module gives no such app.
        Exception: whatever importing it raises.
    """
    if place.main is not None:
        _run_main_again(*place.main)
    mill: Any = getattr(import_module(place.module), place.attribute, None)
    if mill is None:
        message = (
            f"Importing {place.module} again, in a process for handlers, made no "
            f"{place.attribute}. Assign the app at the top level of its module, and not behind "
            'if __name__ == "__main__".'
        )
        raise DeclarationError(message)
    mill.load_imports()
    for name in modules:
        import_module(name)
    if url is not None and url != mill.url:
        mill.configure(url)
    return found_in(mill)


def found_in(mill: Tidemill) -> Found:
    """What attempts of this app's jobs are run with.

    An app that was handed its store in the worker's process has none in this one.
    """
    try:
        store = mill.store
    except StoreNotConfigured:
        context = partial(JobContext, bounds=mill.bounds)
    else:
        context = partial(JobContext, store=store, bounds=store.bounds)
    return Found(mill.registry, context, mill.scopes)


def _require_module(job: JobDefinition) -> None:
    """Refuse what was run without being imported, as `runpy.run_path` does."""
    name = job.function.__module__
    if name in sys.modules:
        return
    message = (
        f'Job {job.wire_name!r} has executor="process", and {name!r}, which declares it, is no '
        "module that a process could import: its file was run and not imported. Put the job into "
        "a module, and import that."
    )
    raise DeclarationError(message)


def _standing(mill: Tidemill, first: list[str], wire_name: str) -> tuple[str, str]:
    """The module and the name of a variable that holds the app."""
    known = {name: module for name, module in tuple(sys.modules.items()) if name != _MAIN_AGAIN}
    for name in (*first, *known):
        for attribute, value in tuple(getattr(known[name], "__dict__", {}).items()):
            if value is mill:
                return name, attribute
    message = (
        f'Job {wire_name!r} has executor="process", and its app is in no variable of a module, so '
        "a process could not find it. Assign the app at the top level of a module: "
        "mill = Tidemill(...)."
    )
    raise DeclarationError(message)


def _main() -> tuple[str | None, str | None]:
    module = sys.modules[_MAIN]
    spec = getattr(module, "__spec__", None)
    file = getattr(module, "__file__", None)
    if spec is not None and spec.name != _MAIN:
        return spec.name, None
    if spec is not None and file is not None:  # a directory or an archive with a __main__.py
        file = str(Path(file).parent)
    if file is None or not Path(file).exists():
        message = (
            f'A job with executor="process" is declared in {file or "an interactive session"}, '
            "which a process could not run again. Put the app and the job into a module."
        )
        raise DeclarationError(message)
    return None, str(Path(file).absolute())


def _run_main_again(name: str | None, path: str | None) -> None:
    main = ModuleType(_MAIN_AGAIN)
    if name is not None:
        content = runpy.run_module(name, run_name=_MAIN_AGAIN, alter_sys=True)
    else:
        assert path is not None, "a main program has a name or a file"
        content = runpy.run_path(path, run_name=_MAIN_AGAIN)
    main.__dict__.update(content)
    sys.modules[_MAIN] = sys.modules[_MAIN_AGAIN] = main
