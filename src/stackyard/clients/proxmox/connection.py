"""Where the API is, how we know that it is the right one, and who we are there."""

from __future__ import annotations

import enum
import re
import ssl
import urllib.parse
from dataclasses import dataclass, field

from stackyard.base.errors import InvalidInputError
from stackyard.clients.proxmox.origin import Origin

__all__ = ["Connection", "Credentials", "EndpointError", "Login", "Ticket", "TlsVersion", "Token", "Trust"]

_TOKEN = re.compile(r"[^\s=]+@[^\s=!]+![^\s=]+=[A-Za-z0-9-]+")
_FINGERPRINT_HEX_DIGITS = 64


class EndpointError(InvalidInputError):
    """The address of the Proxmox API, its fingerprint or a credential has the wrong form."""

    code = "E-PROXMOX-ENDPOINT"
    summary = "The settings of the Proxmox API are not usable"
    default_remedy = "Give an endpoint as https://HOST:8006/ and a token as USER@REALM!NAME=SECRET."


class TlsVersion(enum.StrEnum):
    """The oldest TLS version to accept."""

    V1_0 = "1.0"
    V1_1 = "1.1"
    V1_2 = "1.2"
    V1_3 = "1.3"

    @property
    def minimum(self) -> ssl.TLSVersion:
        """The same as Python's `ssl` names it."""
        return ssl.TLSVersion[f"TLSv{self.value.replace('.', '_').removesuffix('_0')}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An API token: `USER@REALM!NAME=SECRET`."""

    text: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.text):
            raise EndpointError("The API token does not have the form USER@REALM!NAME=SECRET.")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return (self.text.partition("=")[2],)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user with a password, and the one-time password of two-factor authentication where that is on."""

    username: str
    password: str = field(repr=False)
    otp: str | None = field(default=None, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return (self.password, self.otp or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A ticket that someone else got by logging in, with its CSRF token."""

    ticket: str = field(repr=False)
    csrf_token: str = field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown."""
        return (self.ticket, self.csrf_token)


Credentials = Token | Login | Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """How the server is verified: the system's authorities unless one of these says otherwise.

    Attributes:
        ca_pem: The authority to trust, PEM, in place of the system's.
        fingerprint: The SHA-256 of the one certificate to trust (`AB:CD:...`), no matter who signed it.
        verify: False accepts any certificate.
        min_tls: The oldest TLS version to accept.
    """

    ca_pem: str | None = None
    fingerprint: str | None = None
    verify: bool = True
    min_tls: TlsVersion = TlsVersion.V1_3

    def digest(self) -> bytes | None:
        """Return the pinned fingerprint as bytes.

        Raises:
            EndpointError: It is not a SHA-256.
        """
        if self.fingerprint is None:
            return None
        digits = self.fingerprint.replace(":", "").strip()
        if len(digits) != _FINGERPRINT_HEX_DIGITS or not re.fullmatch("[0-9A-Fa-f]+", digits):
            raise EndpointError("The fingerprint is not a SHA-256 of 32 bytes, written as AB:CD:...")
        return bytes.fromhex(digits)

    def _make_verifying_context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cadata=self.ca_pem)
        except ssl.SSLError as err:
            raise EndpointError("The authority's certificate is not a PEM certificate.") from err

    def context(self) -> ssl.SSLContext:
        """Return what connections are made with.

        Raises:
            EndpointError: The authority's certificate cannot be read.
        """
        if not self.verify or self.fingerprint is not None:
            # The system's authorities are not asked, and reading them takes a while.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context = self._make_verifying_context()
        context.minimum_version = self.min_tls.minimum
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Everything that a client needs.

    Attributes:
        endpoint: `https://HOST:PORT/`; a path is left out, as every client of Proxmox does.
        credentials: Who we are.
        trust: How the server is verified.
        timeout_s: How long one call may take.
        patience_s: How long a call is repeated while a lock on the other side is in its way.
        connections: How many connections at once; a node serves few at a time.
        origin: Where all of this is written.
    """

    endpoint: str
    credentials: Credentials
    trust: Trust = Trust()
    timeout_s: float = 60.0
    patience_s: float = 120.0
    connections: int = 16
    origin: Origin = field(default_factory=Origin)

    def base_url(self) -> str:
        """Return the address of the API without a path.

        Raises:
            EndpointError: It is no https address.
        """
        try:
            parts = urllib.parse.urlsplit(self.endpoint.strip())
            port = parts.port
        except ValueError as err:
            raise EndpointError("The endpoint is not an address of the form https://HOST:8006/.") from err
        if parts.scheme != "https" or not parts.hostname or parts.username is not None:
            raise EndpointError("The endpoint is not an address of the form https://HOST:8006/.")
        # Without a port in it, an https address means 443, for instance behind a proxy.
        shown = f":{port}" if port else ""
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        return f"https://{host}{shown}"
