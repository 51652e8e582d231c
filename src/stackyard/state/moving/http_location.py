"""A state behind any server of the engines' `http` backend protocol, ours or another."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import ssl
import tempfile
import urllib.parse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import UsageError
from stackyard.state.lockinfo import LockInfo, parse_lock_info
from stackyard.state.moving.base import BackendError, BackendLockedError
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.state.document import StateDocument

__all__ = ["HttpLocation", "HttpSettings"]

# A state of 20 MB over a slow line; this only ends a request that hangs.
_TIMEOUT_S = 120.0
_OK = {200, 201, 204}
_NOTHING = {204, 404, 410}
_LOCKED = {409, 423}
_TRUE = {"1", "t", "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """How a backend is reached, in the words of the engine's own settings.

    Attributes:
        address: The state.
        lock_address: Where it is locked.
        unlock_address: Where it is unlocked.
        update_method: How it is written.
        lock_method: How it is locked.
        unlock_method: How it is unlocked.
        authorization: The header that says who we are; empty for no one.
        context: How the server is known; None for plain HTTP.
    """

    address: str
    lock_address: str
    unlock_address: str
    update_method: str = "POST"
    lock_method: str = "LOCK"
    unlock_method: str = "UNLOCK"
    authorization: str = field(default="", repr=False)
    context: ssl.SSLContext | None = None

    @classmethod
    def make(
        cls, address: str, environment: Mapping[str, str] = os.environ, *, credentials: str | None = None
    ) -> HttpSettings:
        """Read the engine's variables (TF_HTTP_*), which also say how other servers want to be locked.

        Args:
            address: The state. The variables of addresses and methods count where TF_HTTP_ADDRESS is it.
            environment: The variables.
            credentials: `user:password`, or a token alone; in place of TF_HTTP_USERNAME and _PASSWORD.

        Raises:
            UsageError: The address holds a password, or a certificate cannot be used.
        """
        parts = urllib.parse.urlsplit(address)
        if "@" in parts.netloc:
            raise UsageError(
                "An address holds no password, because addresses are seen by others: set TF_HTTP_USERNAME and"
                " TF_HTTP_PASSWORD, or give a file with --source-credentials or --destination-credentials."
            )
        ours = environment if environment.get("TF_HTTP_ADDRESS") == address else {}
        return cls(
            address=address,
            lock_address=ours.get("TF_HTTP_LOCK_ADDRESS") or address,
            unlock_address=ours.get("TF_HTTP_UNLOCK_ADDRESS") or address,
            update_method=ours.get("TF_HTTP_UPDATE_METHOD") or "POST",
            lock_method=ours.get("TF_HTTP_LOCK_METHOD") or "LOCK",
            unlock_method=ours.get("TF_HTTP_UNLOCK_METHOD") or "UNLOCK",
            authorization=_authorization(environment, credentials),
            context=_context(environment) if parts.scheme == "https" else None,
        )


class HttpLocation:
    """A state behind an address.

    Args:
        settings: How to reach it.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings

    @property
    def label(self) -> str:
        """What the place is called."""
        return self._settings.address

    def lock(self, info: LockInfo) -> None:
        """Lock the state."""
        settings = self._settings
        status, body = self._ask(settings.lock_method, settings.lock_address, info.body())
        if status in _LOCKED:
            raise BackendLockedError(f"{self.label} is locked{_read_message(body)}.")
        if status != http.client.OK:
            raise self._error("lock", status, body)

    def unlock(self, info: LockInfo) -> None:
        """Unlock the state; a server that says no does not hold it for us."""
        settings = self._settings
        status, body = self._ask(settings.unlock_method, settings.unlock_address, info.body())
        if status >= http.client.INTERNAL_SERVER_ERROR:
            raise self._error("unlock", status, body)

    def read(self) -> bytes | None:
        """Return the state."""
        status, body = self._ask("GET", self._settings.address)
        if status in _NOTHING:
            return None
        if status != http.client.OK:
            raise self._error("read", status, body)
        return body if body.strip() else None

    def write(self, data: bytes, info: LockInfo) -> None:
        """Send the state."""
        parts = urllib.parse.urlsplit(self._settings.address)
        query = urllib.parse.urlencode([*urllib.parse.parse_qsl(parts.query), ("ID", info.id)])
        address = urllib.parse.urlunsplit(parts._replace(query=query))
        status, body = self._ask(self._settings.update_method, address, data)
        if status not in _OK:
            raise self._error("write", status, body)

    def retire(self, data: bytes, document: StateDocument, destination: str, info: LockInfo) -> str | None:
        """Leave the state as it is: the protocol has no way to put it out of use."""
        del data, document, destination, info
        return None

    def close(self) -> None:
        """Do nothing: each request has a connection of its own."""

    def _ask(self, method: str, address: str, body: bytes | None = None) -> tuple[int, bytes]:
        parts = urllib.parse.urlsplit(address)
        headers = {"Authorization": self._settings.authorization} if self._settings.authorization else {}
        if body is not None:
            md5 = hashlib.md5(body, usedforsecurity=False).digest()
            headers |= {"Content-Type": "application/json", "Content-MD5": base64.b64encode(md5).decode()}
        connection = self._connect(parts)
        try:
            target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            # A body that is cut off raises.
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as err:
            raise BackendError(f"{self.label} cannot be reached: {err}.") from err
        finally:
            connection.close()

    def _connect(self, parts: urllib.parse.SplitResult) -> http.client.HTTPConnection:
        host = parts.hostname or ""
        if self._settings.context is not None:
            context = self._settings.context
            return http.client.HTTPSConnection(host, parts.port, timeout=_TIMEOUT_S, context=context)
        return http.client.HTTPConnection(host, parts.port, timeout=_TIMEOUT_S)

    def _error(self, doing: str, status: int, body: bytes) -> BackendError:
        known = {401: "Credentials are needed.", 403: "These credentials do not suffice."}
        why = known.get(status) or _reason(body)
        return BackendError(f"{self.label} answered {status} to an attempt to {doing} it. {why}".rstrip())


def _read_message(body: bytes) -> str:
    try:
        holder = parse_lock_info(body)
    except BodyRefusedError:
        return ""
    return f" by {holder.who or 'somebody'} ({holder.operation or 'unknown'}), lock {holder.id}"


def _reason(body: bytes) -> str:
    """Return why a server of ours said no; others have no words for it."""
    try:
        said = parse_json(body, SMALL)["error"]["detail"]
    except (JsonError, KeyError, TypeError):
        return ""
    return said if isinstance(said, str) else ""


def _authorization(environment: Mapping[str, str], credentials: str | None) -> str:
    if credentials is not None:
        given = credentials.strip()
        if ":" not in given:
            return f"Bearer {given}"
    else:
        name = environment.get("TF_HTTP_USERNAME", "")
        given = f"{name}:{environment.get('TF_HTTP_PASSWORD', '')}" if name else ""
    return f"Basic {base64.b64encode(given.encode()).decode()}" if given else ""


def _context(environment: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cadata=environment.get("TF_HTTP_CLIENT_CA_CERTIFICATE_PEM") or None
        )
        certificate = environment.get("TF_HTTP_CLIENT_CERTIFICATE_PEM", "")
        key = environment.get("TF_HTTP_CLIENT_PRIVATE_KEY_PEM", "")
        if certificate and key:
            # The library reads them from a file alone; it is for us only, and gone at once.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(f"{certificate}\n{key}\n")
                file.flush()
                context.load_cert_chain(file.name)
    except (ssl.SSLError, ValueError) as err:
        raise UsageError(f"A certificate in TF_HTTP_CLIENT_* cannot be used: {err}.") from err
    if environment.get("TF_HTTP_SKIP_CERT_VERIFICATION", "").lower() in _TRUE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
