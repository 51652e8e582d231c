"""A gate between clients and a server of any protocol: open, or shut as when a network breaks."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["TcpGate", "run_gate"]


@dataclass
class TcpGate:
    """What stands before a server.

    Attributes:
        target: The port of the server.
        port: Its own port.
        is_shut: Whether connections break at once.
        refused: How many connections came while it was shut.
    """

    target: int
    port: int = 0
    is_shut: bool = False
    refused: int = 0
    _ends: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def shut(self) -> None:
        """Break all connections, and refuse new ones."""
        with self._lock:
            self.is_shut = True
            ends = list(self._ends)
        for end in ends:
            _break(end)

    def open(self) -> None:
        """Let everything pass again."""
        self.is_shut = False

    def serve(self, client: socket.socket) -> None:
        """Relay one connection until it ends."""
        if self.is_shut:
            self.refused += 1
            _break(client)
            return
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.target)) as server:
            with self._lock:
                self._ends |= {client, server}
            back = threading.Thread(target=_relay, args=(server, client))
            back.start()
            _relay(client, server)
            back.join()
            with self._lock:
                self._ends -= {client, server}


def _relay(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    _break(source)
    _break(sink)


def _break(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def run_gate(target: int) -> Iterator[TcpGate]:
    """Have a gate before a port of this machine, for the length of a block."""
    gate, threads = TcpGate(target), list[threading.Thread]()

    def act(client: socket.socket) -> None:
        with client:
            gate.serve(client)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threads.append(threading.Thread(target=act, args=(listening.accept()[0],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        gate.port = listening.getsockname()[1]
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield gate
        finally:
            _break(listening)
            accepting.join()
            gate.shut()
            for thread in threads:
                thread.join()
