"""Exit codes, and how an error becomes one or two sentences on stderr."""

from __future__ import annotations

from typing import IO, Any

import click

from tidemill.errors import (
    ConfigurationError,
    DeclarationError,
    Refused,
    StoreError,
    TidemillError,
)

UNCHANGED = 1
USAGE = 2
STORE = 3

HELP = """\b
Exit codes:
  0  done
  1  not done: no such job, nothing to change, or a check that failed
  2  the command, an option or a setting cannot work
  3  the store could not be used: unreachable, busy, or of another schema
"""


class Failure(click.ClickException):
    """An error as a user of the command line meets it: a sentence, and exit code 1."""

    exit_code = UNCHANGED

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"Error: {self.format_message()}", file=file, err=file is None)


class UsageFailure(Failure):
    """A command, option or setting that cannot work."""

    exit_code = USAGE


class StoreFailure(Failure):
    """A store that cannot be used."""

    exit_code = STORE


def failure_of(error: TidemillError) -> Failure:
    """What the user is told about an error that Tidemill raised on purpose."""
    sentence = str(error) or type(error).__name__
    match error:
        case StoreError():
            return StoreFailure(sentence)
        case ConfigurationError() | DeclarationError() | Refused():
            return UsageFailure(sentence)
        case _:
            return Failure(sentence)
