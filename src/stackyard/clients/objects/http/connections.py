"""Connections to a state service, each used for many requests, by one thread at a time."""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.objects.base import StoreDamagedError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.objects.http.address import HttpAddress

__all__ = ["ConnectionLostError", "ConnectionPool", "Reply", "Request"]

_CONNECT_TIMEOUT_S = 10.0
# The service closes a connection that was idle for longer than 75 s.
_IDLE_S = 50.0
_MOST_IDLE = 16
_LARGEST_BYTES = 1024 * 1024 * 1024


class ConnectionLostError(Exception):
    """The connection broke before the answer was there; the service may have done the work.

    Args:
        reason: Why.
        is_old: Whether an earlier request had used the connection: the service may have closed it since.
    """

    def __init__(self, reason: str, *, is_old: bool) -> None:
        super().__init__(reason)
        self.is_old = is_old


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request.

    Attributes:
        method: The method.
        target: The path and the query.
        body: The body; None for none.
        headers: The headers.
    """

    method: str
    target: str
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes = field(repr=False)


class ConnectionPool:
    """Connections to one service, shared by threads.

    Args:
        address: Where.

    Raises:
        UsageError: The file with the authorities cannot be used.
    """

    def __init__(self, address: HttpAddress) -> None:
        self._address = address
        self._context = address.make_context()
        self._lock = threading.Lock()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []
        # Connections of the process that we were forked from: closing one would end it there, too.
        self._inherited: list[object] = []
        self._pid = os.getpid()
        self._is_closed = False

    def exchange(self, request: Request, *, timeout_s: float) -> Reply:
        """Send a request and return the answer.

        Args:
            request: The request.
            timeout_s: How long the service may be silent.

        Raises:
            ConnectionLostError: No answer came.
            StoreError: The service is not the one that is meant.
        """
        connection, is_old = self._take()
        is_kept = False
        try:
            if not is_old:
                self._connect(connection)
            connection.sock.settimeout(timeout_s)
            connection.request(request.method, request.target, request.body, dict(request.headers))
            response = connection.getresponse()
            reply = Reply(status=response.status, headers=response.headers, body=self._read(response))
            is_kept = not response.will_close
            return reply
        except (OSError, http.client.HTTPException) as err:
            self._refuse_wrong_certificate(err)
            raise ConnectionLostError(_describe(err), is_old=is_old) from err
        finally:
            if is_kept:
                self._give_back(connection)
            else:
                connection.close()

    def drop_idle(self) -> None:
        """Close the connections that no one uses, as the service may have done."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections; those in use are closed after their request."""
        self._is_closed = True
        self._disown()
        self.drop_idle()

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        self._disown()
        newest_at = time.monotonic() - _IDLE_S
        with self._lock:
            usable = [entry for entry in self._idle if entry[0] > newest_at]
            stale = [connection for at, connection in self._idle if at <= newest_at]
            found = usable.pop()[1] if usable else None
            self._idle = usable
        for connection in stale:
            connection.close()
        return (self._make(), False) if found is None else (found, True)

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < _MOST_IDLE and self._pid == os.getpid():
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def _disown(self) -> None:
        """Leave the connections of a parent alone in a process that was forked."""
        if self._pid != os.getpid():
            self._inherited.extend(self._idle)
            self._lock, self._idle, self._pid = threading.Lock(), [], os.getpid()

    def _make(self) -> http.client.HTTPConnection:
        host, port = self._address.host, self._address.port
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=_CONNECT_TIMEOUT_S)
        return http.client.HTTPSConnection(host, port, timeout=_CONNECT_TIMEOUT_S, context=self._context)

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        connection.connect()
        wanted = self._address.fingerprint
        if not wanted:
            return
        shown = connection.sock.getpeercert(True) if isinstance(connection.sock, ssl.SSLSocket) else None
        found = hashlib.sha256(shown or b"").hexdigest().upper()
        if found != wanted:
            raise StoreError(
                f"The certificate of {self._address.label} has the fingerprint {_with_colons(found)},"
                f" not {_with_colons(wanted)}.",
                remedy="Nothing was sent. Ask the operator of the service whether its certificate was"
                " replaced. If so, change ?fingerprint= in the address.",
            )

    def _refuse_wrong_certificate(self, err: Exception) -> None:
        if isinstance(err, ssl.SSLCertVerificationError):
            raise StoreError(
                f"The certificate of {self._address.label} cannot be verified: {err.verify_message}.",
                remedy="Name its CA certificate with ?ca=FILE, or its fingerprint with ?fingerprint=AB:CD:..."
                " as `stackyard state serve` prints it.",
            ) from err

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        if response.length is not None and response.length > _LARGEST_BYTES:
            raise StoreDamagedError(
                f"The answer of {self._address.label} has {response.length} bytes;"
                f" the limit is {_LARGEST_BYTES}."
            )
        if response.length is None and not response.chunked:
            # Its end would be taken for the whole.
            raise http.client.IncompleteRead(b"")
        data = response.read(_LARGEST_BYTES)
        # What is shorter than announced raises only where all is read at once.
        if response.length:
            raise http.client.IncompleteRead(data, response.length)
        return data


def _describe(err: Exception) -> str:
    """Say why a request failed, without a full stop."""
    if isinstance(err, http.client.IncompleteRead | http.client.RemoteDisconnected):
        return "the connection closed before the answer was complete"
    if isinstance(err, TimeoutError):
        return "the request timed out"
    if isinstance(err, OSError) and err.strerror:
        return str(err.strerror)
    return f"the answer is not HTTP ({type(err).__name__})"


def _with_colons(digits: str) -> str:
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
