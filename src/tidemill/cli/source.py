"""Which store a command works on: --store, --app, or TIDEMILL_STORE."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidemill.config import STORE_VARIABLE
from tidemill.errors import ConfigurationError, SchemaError, TidemillError

if TYPE_CHECKING:
    from types import ModuleType

    from tidemill.app import Tidemill

F = TypeVar("F", bound=Callable[..., Any])

APP_VARIABLE = "TIDEMILL_APP"

store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help=f"The store, such as sqlite:///jobs.db. [env: {STORE_VARIABLE}]",
)


def store_options(command: F) -> F:
    """Give a command the options that name its store."""
    app = click.option(
        "--app",
        "app_name",
        metavar="MODULE:ATTRIBUTE",
        help=f"The application whose store it is, such as orders:mill. [env: {APP_VARIABLE}]",
    )
    return store_option(app(command))


@contextmanager
def opened(
    store_url: str | None, app_name: str | None, *, make: bool = False
) -> Generator[Tidemill]:
    """An app on the store that the options and the environment name, closed at the end.

    Options go before the environment, and of two options or two variables the URL goes first.
    Unless `make`, a database file that is not there is refused: a mistyped path would otherwise
    become an empty database, and its list of jobs an empty one.
    """
    url = store_url or ("" if app_name else os.environ.get(STORE_VARIABLE, ""))
    name = "" if url else app_name or os.environ.get(APP_VARIABLE, "")
    if not url and not name:
        raise ConfigurationError(
            "No store is named. "
            f"Give --store URL or --app MODULE:ATTRIBUTE, or set {STORE_VARIABLE}."
        )
    if url and not make:
        _refuse_missing(url)
    app = load_app(name) if name else _app_of_url(url)
    try:
        yield kept(app)
    finally:
        app.close()


def kept(app: Tidemill) -> Tidemill:
    """The app itself, if its store outlives this process; a command is no use on another."""
    capabilities = app.store.capabilities
    if not capabilities.persistent:
        raise ConfigurationError(
            f"The {capabilities.name} store keeps its jobs inside one process, for tests, "
            "so no command can share them. Name a store that persists, such as sqlite:///jobs.db."
        )
    return app


def load_app(name: str) -> Tidemill:
    """The application called `module:attribute`; the current directory can be imported from.

    Raises:
        ConfigurationError: there is no such module or attribute, or it is no application.
    """
    from tidemill.app import Tidemill

    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise ConfigurationError(
            f"{name!r} names no application; write MODULE:ATTRIBUTE, such as orders:mill."
        )
    module = load_module(module_name)
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Tidemill):
        raise ConfigurationError(_no_app(module, path, found))
    return found


def load_module(name: str) -> ModuleType:
    """Import a module, the current directory first.

    Raises:
        ConfigurationError: it is not there, or it fails while it is imported.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except TidemillError:
        raise
    except Exception as error:
        raise ConfigurationError(_import_fault(name, error)) from error


def _refuse_missing(url: str) -> None:
    from tidemill.adapters.sqlite_files import SCHEME, path_of

    if url.startswith(SCHEME) and not (path := path_of(url)).exists():
        raise SchemaError(
            f"There is no database {path}. Check the path, or make it with "
            f"`tidemill migrate --store {url}`."
        )


def _app_of_url(url: str) -> Tidemill:
    from tidemill.app import Tidemill

    return Tidemill(url)


def _no_app(module: ModuleType, path: str, found: object) -> str:
    from tidemill.app import Tidemill

    there = sorted(name for name, value in vars(module).items() if isinstance(value, Tidemill))
    what = "does not exist" if found is None else f"is of type {type(found).__name__}"
    has = " and ".join(there) or "none"
    return (
        f"{module.__name__}:{path} {what}, and a Tidemill application is asked for; "
        f"{module.__name__} has {has}."
    )


def _import_fault(name: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and _is_part(error.name, name):
        return (
            f"There is no module {error.name!r} to import from {Path.cwd()} "
            "or the installed packages. Run the command where the module lies, or install it."
        )
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return (
        f"Importing {name} failed: {type(error).__name__}: {error}{where}. "
        "tidemill --debug shows the traceback."
    )


def _is_part(missing: str, name: str) -> bool:
    return name == missing or name.startswith(missing + ".")
