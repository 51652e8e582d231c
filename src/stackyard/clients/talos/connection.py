"""How a node is reached and how both sides prove who they are."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from grpclib.client import Channel, Handler
from grpclib.config import Configuration
from grpclib.protocol import H2Protocol

from stackyard.clients.talos.failures import FingerprintError, TalosUnreachableError
from stackyard.talosapi.methods import PORT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PinnedChannel", "TalosCredentials", "TalosEndpoint", "close_channel", "open_channel"]

# Talos labels its keys so, and neither OpenSSL nor `cryptography` know the label.
_TALOS_LABEL, _PLAIN_LABEL = b"ED25519 PRIVATE KEY", b"PRIVATE KEY"
# HTTP/2, which gRPC needs.
_PROTOCOL = "h2"
# Both sides of Talos send and accept this much in one message.
_LARGEST_MESSAGE = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TalosCredentials:
    """A client certificate, and the authority that signed both sides; all PEM.

    Attributes:
        ca: The authority.
        certificate: Our certificate.
        key: Our key.
    """

    ca: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TalosEndpoint:
    """The Talos API of one node.

    Attributes:
        host: Its address or name.
        port: Its port.
        credentials: Who we are; None for a node in maintenance mode.
        fingerprint: For maintenance mode, the SHA-256 of the public key that the console shows, in base64.
    """

    host: str
    port: int = PORT
    credentials: TalosCredentials | None = None
    fingerprint: str | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _HeardProtocol(H2Protocol):
    """Tells of all that the server says."""

    def __init__(self, channel: Channel, note_heard: Callable[[], None]) -> None:
        super().__init__(Handler(), channel._config, channel._h2_config)
        self._note_heard = note_heard

    def data_received(self, data: bytes) -> None:
        self._note_heard()
        super().data_received(data)


class PinnedChannel(Channel):
    """A channel that compares the public key of the server before anything is sent.

    Without a certificate of ours nobody proves who the server is. The first one that answers is the only one
    that is spoken to then, also after the connection was lost.
    """

    pinned: str | None = None
    shown: str = ""
    is_maintenance: bool = False
    # A server speaks first once it accepts who we are; one that does not ends the connection without a word.
    is_heard: bool = False

    def _protocol_factory(self) -> H2Protocol:
        return _HeardProtocol(self, self._note_heard)

    def _note_heard(self) -> None:
        self.is_heard = True

    async def _create_connection(self) -> H2Protocol:
        protocol = await super()._create_connection()
        transport: Any = protocol.connection._transport
        connection = cast("ssl.SSLObject", transport.get_extra_info("ssl_object"))
        if connection.selected_alpn_protocol() != _PROTOCOL:
            transport.abort()
            raise TalosUnreachableError(f"{self.shown}: another service answers there, not Talos.")
        if self.is_maintenance:
            found = _fingerprint_of(connection)
            self.pinned = self.pinned or found
            if not hmac.compare_digest(found, self.pinned):
                transport.abort()
                raise FingerprintError(
                    f"{self.shown} has the fingerprint {found}, and {self.pinned} was expected."
                )
        return protocol


def open_channel(endpoint: TalosEndpoint) -> PinnedChannel:
    """Return a channel to a node; it connects when it is first used."""
    channel = PinnedChannel(
        endpoint.host,
        endpoint.port,
        ssl=_make_context(endpoint.credentials),
        config=Configuration(http2_connection_window_size=_LARGEST_MESSAGE),
    )
    channel.is_maintenance = endpoint.credentials is None
    channel.pinned = endpoint.fingerprint if channel.is_maintenance else None
    channel.shown = str(endpoint)
    return channel


async def close_channel(channel: Channel) -> None:
    """Close a channel and its socket at once: TLS waits for the other side, which may be gone."""
    protocol: Any = channel._protocol
    # A connection that the other side has ended has none.
    transport = None if protocol is None else getattr(protocol.connection, "_transport", None)
    # asyncio's TLS transport forgets how to abort when it is closed twice: the one below does not.
    below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
    channel.close()
    if (carrier := below or transport) is not None:
        carrier.abort()
        # The loop closes the socket in its next round.
        await asyncio.sleep(0)


def _make_context(credentials: TalosCredentials | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([_PROTOCOL])
    if credentials is None:
        # The authority of maintenance mode lives in the memory of the node: nobody can know it.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    context.load_verify_locations(cadata=credentials.ca.decode())
    _load_identity(context, credentials)
    return context


def _load_identity(context: ssl.SSLContext, credentials: TalosCredentials) -> None:
    """Give a context our certificate and key; `ssl` reads files alone: one in memory, where there are any."""
    key = credentials.key.replace(_TALOS_LABEL, _PLAIN_LABEL)
    data = credentials.certificate.rstrip(b"\n") + b"\n" + key
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("talos-client")
        try:
            os.write(descriptor, data)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "client.pem")
        path.touch(mode=0o600)
        path.write_bytes(data)
        context.load_cert_chain(path)


def _fingerprint_of(connection: ssl.SSLObject) -> str:
    """Return the SHA-256 of the public key of the other side, as Talos shows it."""
    data = connection.getpeercert(binary_form=True)
    certificate = x509.load_der_x509_certificate(data or b"")
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()
