"""Starting another Python as this one was started."""

from __future__ import annotations

import subprocess
import sys


def interpreter() -> list[str]:
    """The command that starts this interpreter, with the flags that it was given itself.

    `multiprocessing` asks the same function, which is the only one that knows all of them.
    """
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue, reportUnknownVariableType] - see above
    return [sys.executable, *flags]
