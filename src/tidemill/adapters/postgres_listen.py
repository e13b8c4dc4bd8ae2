"""Listening: a connection of its own that hears notifications, and is replaced when it dies."""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Callable
from threading import Thread, current_thread
from typing import Final

import psycopg

from tidemill.drivers.psycopg import Connection
from tidemill.errors import StoreError

KEEPALIVE_SECONDS: Final = 15.0
"""How often a silent connection is asked whether it still lives."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_STOP_SECONDS: Final = 5.0
_log = logging.getLogger("tidemill.store")


class Listener:
    """A daemon thread that calls `heard` with every notification.

    Args:
        channel: what to listen to.
        connect: opens a connection in autocommit, not through a pooler.
        heard: called from the thread; also after a connection was replaced, since what was said
            meanwhile was missed.
    """

    def __init__(
        self, channel: str, connect: Callable[[], Connection], heard: Callable[[], None]
    ) -> None:
        self._channel = channel
        self._connect = connect
        self._heard = heard
        self._wake, self._woken = socket.socketpair()
        self._stopping = False
        self._thread = Thread(target=self._live, name="tidemill-postgres-listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the thread to be gone."""
        self._stopping = True
        self._wake.send(b"\0")
        if self._thread is not current_thread():
            self._thread.join(_STOP_SECONDS)
        self._wake.close()

    def _live(self) -> None:
        pause = _FIRST_PAUSE
        with self._woken:
            while not self._stopping:
                started = time.monotonic()
                try:
                    self._listen()
                except (psycopg.Error, StoreError, OSError) as error:
                    _log.debug("The connection that listens broke: %s", error)
                if time.monotonic() - started > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE
                if not self._stopping:
                    select.select([self._woken], [], [], pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)

    def _listen(self) -> None:
        connection = self._connect()
        try:
            connection.execute(f'LISTEN "{self._channel}"'.encode())
            self._heard()
            while not self._stopping:
                self._wait(connection)
        finally:
            connection.close()

    def _wait(self, connection: Connection) -> None:
        sockets = (connection.fileno(), self._woken.fileno())
        readable, _, _ = select.select(sockets, (), (), KEEPALIVE_SECONDS)
        if not readable:
            connection.execute("SELECT 1")
        elif connection.fileno() in readable:
            connection.pgconn.consume_input()
        heard = False
        while connection.pgconn.notifies() is not None:
            heard = True
        if heard:
            self._heard()
