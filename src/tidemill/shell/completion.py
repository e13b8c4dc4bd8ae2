"""An attempt's completion in its handler's own transaction, as its worker sees it (clause D8)."""

from __future__ import annotations

from collections.abc import Callable


class Completion:
    """Between a handler's context, which writes the success, and the worker that hears of it.

    Args:
        begin: tells the worker, from any thread, that the row may say `succeeded` from now on.
        encode_output: writes an output down; raises EncodingError.
    """

    __slots__ = ("_begin", "_kept", "begun", "encode_output")

    def __init__(
        self, begin: Callable[[], None], encode_output: Callable[[object], bytes | None]
    ) -> None:
        self._begin = begin
        self.begun = False
        self._kept: tuple[bytes | None] | None = None
        self.encode_output = encode_output

    def begin(self) -> None:
        """Say that the success is about to be written in a transaction of the handler's."""
        self.begun = True
        self._begin()

    def keep(self, output: bytes | None) -> None:
        """Have the handler's return commit the success with this output.

        For a store that is in no transaction of the handler's, as the one of a test.
        """
        self.begun = True
        self._kept = (output,)

    def output_of(self, returned: object) -> bytes | None:
        """What to store of a handler that returned: what it completed with, or its value."""
        return self.encode_output(returned) if self._kept is None else self._kept[0]
