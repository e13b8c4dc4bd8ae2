"""A cable that can be cut: a TCP relay before a PostgreSQL server, ending at a chosen message."""

import select
import socket
from contextlib import suppress
from threading import Event, Thread

from psycopg.conninfo import conninfo_to_dict


class Cable:
    """Relays connections; cuts one when its client has said `word`, before or after the answer.

    `after` lets the server answer, and keeps the answer from the client.
    """

    def __init__(self, url):
        place = conninfo_to_dict(url)
        self._socket_file = f"{place['host']}/.s.PGSQL.{place.get('port', 5432)}"
        self._database = place["dbname"]
        self._word = None
        self._after = False
        self._stall = None
        self._silence = Event()
        self._dead = Event()
        self.cuts = 0
        self._door = socket.create_server(("127.0.0.1", 0))
        self._open = [self._door]
        Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        port = self._door.getsockname()[1]
        return f"postgresql://postgres@127.0.0.1:{port}/{self._database}"

    def cut_at(self, word, *, after):
        """Cut the next connection that says so."""
        self._word, self._after = word, after

    def stall_at(self, word):
        """Say nothing more, to either side, on the next connection that says so."""
        self._stall = word

    def fall_silent(self):
        """Carry nothing more, either way, on the connections that are open now."""
        self._dead.set()
        self._dead = Event()

    def close(self):
        self._silence.set()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._socket_file)
                self._open += [client, server]
                Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client, server):
        dead = self._dead
        with suppress(OSError, ValueError), client, server:
            while True:
                readable, _, _ = select.select([client, server], [], [])
                if dead.is_set():
                    self._silence.wait()
                    return
                for end in readable:
                    said = end.recv(65536)
                    if not said:
                        return
                    if end is client and self._word is not None and self._word in said:
                        self._word = None
                        self.cuts += 1
                        if self._after:
                            server.sendall(said)
                            server.recv(65536)
                        return
                    if end is client and self._stall is not None and self._stall in said:
                        self._stall = None
                        self._silence.wait()
                        return
                    (server if end is client else client).sendall(said)
