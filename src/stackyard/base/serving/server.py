"""The server: accepting connections, replacing its certificate, and stopping in time."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import select
import socket
from typing import TYPE_CHECKING

from stackyard.base.process import open_files
from stackyard.base.serving.connection import Connection
from stackyard.base.serving.gate import Gate, Handler
from stackyard.base.serving.limits import ServerLimits
from stackyard.base.serving.sockets import listen, tune
from stackyard.base.serving.tls import Tls, server_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from stackyard.base.serving.access_log import OnAccess

__all__ = ["Server", "serve"]

# Together under two seconds: the promise of `stop`.
_GRACE_S = 1.0
_CANCEL_S = 0.3
_FLUSH_S = 0.2
# How many clients are accepted at once before those who are connected get their turn.
_ACCEPTED_AT_ONCE = 64
_ACCEPT_AGAIN_AFTER_S = 0.5
# While newcomers can wait, no one makes room for them who has been silent for less than this.
_SPARED_S = 5.0
# So many are accepted for as long as there is a descriptor.
_ALWAYS_SERVED = 16
# asyncio gives up a TLS connection that closes after this time even while it still sends; we look closer.
_TLS_CLOSE_S = 3600.0
_DEFAULT_LIMITS = ServerLimits()
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
)


@contextlib.asynccontextmanager
async def serve(
    handler: Handler,
    *,
    bind: str | socket.socket = "127.0.0.1",
    port: int = 0,
    tls: Tls | None = None,
    limits: ServerLimits = _DEFAULT_LIMITS,
    on_access: OnAccess | None = None,
) -> AsyncIterator[Server]:
    """Serve HTTP until the end of the block.

    The server accepts connections when the block begins. At its end it stops as `Server.stop` says. The soft
    limit of open files is raised to the hard one, and no more connections are accepted than leave a quarter
    of it for everything else; further ones wait in the system's queue.

    Args:
        handler: Answers every request, whatever its method and path (`request.raw_path`, undecoded). What it
            raises is answered with 500 and reported to `on_access`. It is not cancelled when its client goes.
        bind: The address or host name to listen on (`::` serves IPv4 too), or a bound TCP socket.
        port: The port, 0 for any free one.
        tls: The certificate to speak TLS with; None speaks plain HTTP.
        limits: What clients are granted.
        on_access: Told about each request when it has ended.

    Raises:
        ListenError: The address cannot be listened on.
        CertificateError: The certificate cannot be used.
    """
    open_files.raise_limit()
    context = None if tls is None else server_context(tls)
    gate = Gate(handler, limits, on_access, asyncio.get_running_loop())
    server = Server(gate, listen(bind, port), context, tls)
    try:
        yield server
    finally:
        await server.stop()


class Server:
    """A server that accepts connections; made by `serve`."""

    def __init__(
        self, gate: Gate, sock: socket.socket, context: ssl.SSLContext | None, tls: Tls | None
    ) -> None:
        self._gate = gate
        self._loop = gate.loop
        self._socket = sock
        self._context = context
        self._tls = tls
        self._address: tuple[str, int] = sock.getsockname()[:2]
        self._open: dict[Connection, None] = {}
        self._handshakes: dict[Connection, asyncio.Task[None]] = {}
        self._emptied = asyncio.Event()
        self._stopped: asyncio.Future[None] | None = None
        self._accept_again: asyncio.TimerHandle | None = None
        self._is_full_of_files = False
        self._loop.add_reader(sock.fileno(), self._accept)

    @property
    def host(self) -> str:
        """The address that it listens on."""
        return self._address[0]

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._address[1]

    @property
    def url(self) -> str:
        """Where a client on this machine finds it, without a slash at the end."""
        address = ipaddress.ip_address(self.host.partition("%")[0])
        if address.is_unspecified:
            address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"{'http' if self._tls is None else 'https'}://{host}:{self.port}"

    @property
    def fingerprint(self) -> str | None:
        """The SHA-256 of the certificate that new clients are shown, None without TLS."""
        return None if self._tls is None else self._tls.certificate.fingerprint

    @property
    def connections(self) -> int:
        """How many clients are connected, those in the TLS handshake included."""
        return len(self._open)

    def reload(self, tls: Tls) -> None:
        """Show this certificate, and ask for these authorities, from the next connection on.

        Connections that are open stay as they are.

        Raises:
            CertificateError: It cannot be used; the old one stays.
        """
        if self._tls is None:
            raise ValueError("the server was started without TLS")
        self._context = server_context(tls)
        self._tls = tls

    # --- Accepting

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            if not self._has_room():
                self._pause_accepting(until_one_leaves=True)
                return
            try:
                sock, _address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._pause_accepting()
                return
            self._admit(sock)

    def _has_room(self) -> bool:
        """Return whether there are descriptors for one more; a few are served whatever else takes them."""
        return len(self._open) < _ALWAYS_SERVED or open_files.has_room(self._socket.fileno())

    def _pause_accepting(self, *, until_one_leaves: bool = False) -> None:
        """Make room and look again later: without files or memory the client would be reported at once."""
        if not _is_waited_at(self._socket):
            # No one waits: those who are connected need not make room.
            return
        self._is_full_of_files = until_one_leaves
        self._loop.remove_reader(self._socket.fileno())
        self._accept_again = self._loop.call_later(_ACCEPT_AGAIN_AFTER_S, self._resume_accepting)
        # Who waits in the system's queue loses nothing; who is in a handshake or between two requests might.
        self._evict_silent(sparing_s=_SPARED_S)

    def _resume_accepting(self) -> None:
        if self._accept_again is not None:
            self._accept_again.cancel()
            self._accept_again = None
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def _admit(self, sock: socket.socket) -> None:
        if self._is_full() and not self._evict_silent():
            self._turn_away(sock)
            return
        sock.setblocking(False)
        tune(sock, self._gate.limits.write_timeout_s)
        connection = Connection(self._gate, self._forget)
        self._open[connection] = None
        task = self._loop.create_task(self._connect(connection, sock))
        self._handshakes[connection] = task
        task.add_done_callback(lambda _: self._track(connection, sock))

    async def _connect(self, connection: Connection, sock: socket.socket) -> None:
        connection.admitted = True
        limits, context = self._gate.limits, self._context
        # A client that fails the handshake is gone; there is no one to tell.
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(
                lambda: connection,
                sock,
                ssl=context,
                ssl_handshake_timeout=None if context is None else limits.header_timeout_s,
                ssl_shutdown_timeout=None if context is None else _TLS_CLOSE_S,
            )

    def _track(self, connection: Connection, sock: socket.socket) -> None:
        del self._handshakes[connection]
        if not connection.admitted:
            sock.close()
        if not connection.is_connected:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        if self._accept_again is not None and self._is_full_of_files:
            # The descriptor is closed at the next turn of the loop; then there is room for one who waits.
            self._loop.call_soon(self._resume_accepting)
        if not self._open:
            self._emptied.set()

    def _is_full(self) -> bool:
        most = self._gate.limits.max_connections
        return len(self._open) >= most and sum(not known.is_leaving for known in self._open) >= most

    def _evict_silent(self, *, sparing_s: float = 0.0) -> bool:
        """Close the connection that has been silent the longest, strangers first; tell if there was one.

        Args:
            sparing_s: Who has been silent for less than this stays.
        """
        until = self._loop.time() - sparing_s
        silent = [
            known
            for known in self._open
            if not (known.is_busy or known.is_leaving or known.silent_since > until)
        ]
        if silent:
            self._close(min(silent, key=lambda known: (known.is_known, known.silent_since)))
        return bool(silent)

    def _close(self, connection: Connection) -> None:
        handshake = self._handshakes.get(connection)
        if handshake is not None and not connection.is_connected:
            handshake.cancel()
        connection.drop()

    def _turn_away(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._context is None:
                sock.setblocking(False)
                sock.send(_FULL)
                sock.shutdown(socket.SHUT_WR)
        sock.close()

    # --- Stopping

    async def stop(self) -> None:
        """Stop accepting, let running requests end, then close everything: in under two seconds.

        Idle clients and half-sent requests are closed at once. A request that has not ended after a second is
        cancelled, and its client answered with 503. Stopping twice is stopping once. A handler must not await
        this: it would wait for itself.
        """
        if self._stopped is not None:
            await asyncio.shield(self._stopped)
            return
        self._stopped = self._loop.create_future()
        try:
            self._stop_accepting()
            await self._finish_requests()
            await self._flush()
        finally:
            for connection in list(self._open):
                connection.abort()
            self._stopped.set_result(None)

    def _stop_accepting(self) -> None:
        self._gate.is_stopping = True
        if self._accept_again is not None:
            self._accept_again.cancel()
            self._accept_again = None
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for connection in list(self._open):
            if not connection.is_busy:
                self._close(connection)

    async def _finish_requests(self) -> None:
        running = {*self._handshakes.values(), *self._gate.runners}
        if running:
            _, running = await asyncio.wait(running, timeout=_GRACE_S)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_CANCEL_S)

    async def _flush(self) -> None:
        """Wait until what was answered is sent, then until every connection is closed."""
        for timeout_s in (_FLUSH_S, _FLUSH_S):
            if not self._open:
                return
            self._emptied.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), timeout_s)
            for connection in list(self._open):
                connection.abort()


def _is_waited_at(sock: socket.socket) -> bool:
    """Return whether a client waits to be accepted."""
    waiting = select.poll()
    waiting.register(sock, select.POLLIN)
    return bool(waiting.poll(0))
