"""An attempt's completion in its handler's own transaction, as its worker sees it (clause D8)."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.values.tags import Tag


class Completion:
    """Between a handler's context, which writes the success, and the worker that hears of it.

    Args:
        begin: tells the worker, from any thread, that the row may say `succeeded` from now on.
        encode_output: writes an output down; raises EncodingError.
    """

    __slots__ = ("_begin", "_kept", "encode_output")

    def __init__(
        self, begin: Callable[[], None], encode_output: Callable[[object], bytes | None]
    ) -> None:
        self._begin = begin
        self._kept: tuple[bytes | None, frozenset[Tag]] | None = None
        self.encode_output = encode_output

    def begin(self) -> None:
        """Say that the success is about to be written in a transaction of the handler's."""
        self._begin()

    def keep(self, output: bytes | None, tags: frozenset[Tag]) -> None:
        """Have the handler's return commit the success with this output and these tags.

        For a store that is in no transaction of the handler's, as the one of a test.
        """
        self._kept = (output, tags)

    def made_of(
        self, returned: object, tags: frozenset[Tag]
    ) -> tuple[bytes | None, frozenset[Tag]]:
        """The output and the tags of a handler that returned: those it completed with, if it did.

        Else what its value is encoded as, and the tags that it has added by now.
        """
        return (self.encode_output(returned), tags) if self._kept is None else self._kept
