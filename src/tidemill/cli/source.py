"""Which application and which store a command works on, from its options and the environment."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidemill.config import STORE_VARIABLE
from tidemill.errors import ConfigurationError, SchemaError, TidemillError
from tidemill.values.urls import ANY_APP

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


app_option = click.option(
    "--app",
    "app_name",
    metavar="MODULE:ATTRIBUTE",
    help=f"The application, such as orders:mill. [env: {APP_VARIABLE}]",
)


def store_options(command: F) -> F:
    """Give a command the options that name its store."""
    return store_option(app_option(command))


def app_anyhow(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command its application, as `app_name`: by position or by --app."""

    @wraps(command)
    def named(*, app_position: str | None, app_name: str | None, **options: Any) -> Any:
        if app_position and app_name and app_position != app_name:
            raise click.UsageError(
                f"Two applications are named, {app_position} and, by --app, {app_name}: leave one "
                "out."
            )
        return command(app_name=app_position or app_name, **options)

    position = click.argument("app_position", metavar="[MODULE:ATTRIBUTE]", required=False)
    return position(app_option(named))


class ListCommand(click.Command):
    """A command without arguments of its own, for which an application is easily taken."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        extra = super().parse_args(ctx, args)
        if not extra or ctx.resilient_parsing:
            return extra
        if ":" in extra[0] and "://" not in extra[0]:
            raise click.UsageError(f"Name the application with --app {extra[0]}.", ctx)
        raise click.UsageError(f"This command takes no argument, and {extra[0]!r} is one.", ctx)


@contextmanager
def opened(
    store_url: str | None, app_name: str | None, *, make: bool = False
) -> Generator[Tidemill]:
    """An app on the store that the options and the environment name, closed at the end.

    Options go before the environment, and of two options or two variables the URL goes first.
    Unless `make`, nothing is made: a file that is not there, or that is no database of Tidemill's,
    is refused. A mistyped path would otherwise become an empty database, its list an empty one.
    """
    url = store_url or ("" if app_name else os.environ.get(STORE_VARIABLE, ""))
    name = "" if url else app_name or os.environ.get(APP_VARIABLE, "")
    if not url and not name:
        raise ConfigurationError(
            "No store is named. "
            "Give --store URL or --app MODULE:ATTRIBUTE, or set "
            f"{STORE_VARIABLE} or {APP_VARIABLE}."
        )
    app = load_app(name) if name else _app_of_url(url)
    try:
        kept(app)
        way = nullcontext() if make else _as_it_is(app, f"--app {name}" if name else None)
        with naming(name), way:
            yield app
    finally:
        app.close()


@contextmanager
def naming(app_name: str) -> Generator[None]:
    """Have advice of a store that does not know which application it belongs to name this one."""
    try:
        yield
    except SchemaError as error:
        if not app_name or ANY_APP not in str(error):
            raise
        raise SchemaError(str(error).replace(ANY_APP, f"--app {app_name}")) from error


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
    module = load_module(module_name, f":{path}")
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Tidemill):
        raise ConfigurationError(_no_app(module, path, found))
    return found


def load_module(name: str, rest: str = "") -> ModuleType:
    """Import a module, the current directory first; `rest` is what was written behind its name.

    Raises:
        ConfigurationError: it is not there, or it fails while it is imported.
    """
    _refuse_path(name, rest)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except TidemillError:
        raise
    except Exception as error:
        raise ConfigurationError(_import_fault(name, error)) from error


def refuse_missing(url: str, options: str | None = None) -> None:
    """Refuse the URL of a database file that is not there.

    Raises:
        SchemaError: it is not; the message says how `tidemill migrate`, with `options`, makes it.
    """
    from tidemill.adapters.sqlite_files import SCHEME, path_of

    if url.startswith(SCHEME) and not (path := path_of(url).absolute()).exists():
        raise SchemaError(
            f"There is no database {path}. Check the path, or make it with "
            f"`tidemill migrate {options or f'--store {url}'}`."
        )


@contextmanager
def _as_it_is(app: Tidemill, options: str | None) -> Generator[None]:
    """Give the app a store that never makes or changes a schema, where its URL allows it."""
    from tidemill.adapters.sqlite import SqliteStore
    from tidemill.adapters.sqlite_files import SCHEME, settings_of
    from tidemill.adapters.sqlite_health import has_tables

    url = app.url
    if url is None or not url.startswith(SCHEME):
        yield
        return
    refuse_missing(url, options)
    settings = settings_of(url)
    if has_tables(settings.path) is False:
        raise SchemaError(
            f"{settings.path.absolute()}: this database has no Tidemill tables. Check the path, or "
            f"run `tidemill migrate {options or f'--store {url}'}` to make them."
        )
    store = SqliteStore(
        settings.path,
        bounds=app.bounds,
        synchronous=settings.synchronous,
        busy_timeout=settings.busy_timeout,
        auto_migrate=False,
    )
    with closing(store):
        app.configure(store)
        try:
            yield
        finally:
            app.configure(url)


def _refuse_path(name: str, rest: str) -> None:
    if not (name.startswith(".") or name.endswith(".py") or "/" in name or "\\" in name):
        return
    parts = name.removesuffix(".py").replace("\\", "/").replace("/", ".").split(".")
    module = ".".join(part for part in parts if part)
    raise ConfigurationError(
        f"{name}{rest} names a file, and a module is asked for, as `import` takes it: "
        f"did you mean {module}{rest}?"
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
    text, filename, line = str(error), *_place(error)
    if isinstance(error, SyntaxError):
        text = error.msg
    where = f" ({filename}, line {line})" if filename else ""
    return (
        f"Importing {name} failed: {type(error).__name__}: {text}{where}. "
        "tidemill --debug shows the traceback."
    )


def _place(error: Exception) -> tuple[str, int | None]:
    """The file and line of the user's code that an import failed in; no file if there is none."""
    if isinstance(error, SyntaxError):
        return error.filename or "", error.lineno
    machinery = (sysconfig.get_path("stdlib"), str(Path(__file__).parent), "<frozen ")
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(machinery)
    ]
    own = [frame for frame in frames if "site-packages" not in frame[0]]
    return (own or frames or [("", None)])[-1]


def _is_part(missing: str, name: str) -> bool:
    return name == missing or name.startswith(missing + ".")
