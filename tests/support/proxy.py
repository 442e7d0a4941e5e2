"""A TCP proxy before a server, which passes everything, refuses, hangs, or cuts in the middle, as it is told."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["pass", "refuse", "hang", "cut"]
_RESET = struct.pack("ii", 1, 0)


@dataclass
class Proxy:
    """``mode`` holds for what is open and for what comes: ``refuse`` resets connections, ``hang`` keeps them open and
    passes nothing, ``cut`` breaks each off in the middle of the next message.
    """

    target: Path | tuple[str, int]
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _mode: Mode = "pass"
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _open: set[socket.socket] = field(default_factory=set)
    _ended: bool = False

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def set(self, mode: Mode) -> None:
        """Be like this from now on."""
        with self._changed:
            self._mode = mode
            self._changed.notify_all()
            if mode == "refuse":
                for connection in self._open:
                    _reset(connection)

    def serve(self) -> None:
        """Take connections until ``end``."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def end(self) -> None:
        """Close everything."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            for connection in self._open:
                _reset(connection)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _connect(self, client: socket.socket) -> None:
        if self._mode == "refuse":
            _reset(client)
            client.close()
            return
        try:
            server = self._reach()
        except OSError:
            client.close()
            return
        with self._changed:
            self._open |= {client, server}
        back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server)
        back.join()
        with self._changed:
            self._open -= {client, server}
        client.close()
        server.close()

    def _reach(self) -> socket.socket:
        if isinstance(self.target, tuple):
            return socket.create_connection(self.target)
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self.target))
        return server

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                with self._changed:
                    self._changed.wait_for(lambda: self._mode != "hang" or self._ended)
                if self._mode == "cut":
                    sink.sendall(data[: len(data) // 2])
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _reset(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(target: Path | tuple[str, int]) -> Iterator[Proxy]:
    """Run a proxy before the Unix socket, or host and port, while the block lasts."""
    proxy = Proxy(target)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.end()
        thread.join(10)
