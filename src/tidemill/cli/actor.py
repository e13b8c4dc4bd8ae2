"""Who asks for an operator action: --actor, or the user."""

from __future__ import annotations

import getpass
import os

import click


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return f"uid {os.getuid()}"


actor_option = click.option(
    "--actor",
    default=_user,
    show_default="your user name",
    metavar="NAME",
    help="Who asks for it, for the audit.",
)
