"""The certificate of a pinned server, for programs that cannot pin: they verify by authorities and names.

A program that is given this one certificate as its only authority accepts the pinned server and no other. It
still checks the host name and the dates, and so does this module, before any such program is started.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING

import aiohttp

from stackyard.base.http_failures import describe_failure
from stackyard.clients.proxmox.failures import Call, ProxmoxUnreachableError, UntrustedServerError
from stackyard.clients.proxmox.transport import describe_untrusted, is_here

if TYPE_CHECKING:
    import asyncio

    from stackyard.clients.proxmox.connection import Connection

__all__ = ["CertificateNamesError", "fetch_pinned_certificate"]

_CALL = Call("GET", "/version")
_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=15.0)


class CertificateNamesError(UntrustedServerError):
    """The pinned certificate does not fit its endpoint: another host name, or it has expired."""

    code = "E-PROXMOX-CERTIFICATE-NAMES"
    summary = "The pinned certificate is not valid for the endpoint"
    default_remedy = (
        "Use a host name of the certificate in the endpoint, or renew the certificate of the node"
        " (pvecm updatecerts --force)."
    )


class _Recorder(aiohttp.Fingerprint):
    """Compares the fingerprint of a server, and keeps the certificate that has it."""

    certificate: bytes = b""
    transport: asyncio.Transport | None = None

    def check(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        super().check(transport)
        self.certificate = transport.get_extra_info("ssl_object").getpeercert(binary_form=True)

    def close(self) -> None:
        # Nothing of worth was sent: there is no need to wait for the other side to agree.
        if self.transport is not None:
            # Python 3.11.2 has no protocol any more in a transport that is closed already.
            with contextlib.suppress(AttributeError):
                self.transport.abort()


async def fetch_pinned_certificate(connection: Connection) -> bytes:
    """Return the certificate (PEM) of the server that a fingerprint names; no credential is sent.

    Raises:
        EndpointError: The endpoint or the fingerprint has the wrong form.
        UntrustedServerError: The server has another certificate.
        CertificateNamesError: Clients that check names and dates would not accept it.
        ProxmoxUnreachableError: It does not answer.
    """
    pem = ssl.DER_cert_to_PEM_cert(await _certificate(connection, connection.trust.context()))
    try:
        await _certificate(connection, _make_trusting_context(pem))
    except UntrustedServerError as err:
        raise CertificateNamesError(_CALL, err.detail) from err
    return pem.encode()


def _make_trusting_context(pem: str) -> ssl.SSLContext:
    """Return a context that trusts this certificate alone, for the names that are in it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Programs in Go do not read the common name.
    context.hostname_checks_common_name = False
    return context


async def _certificate(connection: Connection, context: ssl.SSLContext) -> bytes:
    base, recorder = connection.base_url(), _Recorder(connection.trust.digest() or b"")
    try:
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=recorder, force_close=True),
                timeout=_TIMEOUT,
                trust_env=not is_here(base),
            ) as session,
            session.get(f"{base}/api2/json{_CALL.path}", ssl=context, allow_redirects=False),
        ):
            return recorder.certificate
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch) as err:
        raise UntrustedServerError(_CALL, describe_untrusted(base, err)) from err
    except (aiohttp.ClientError, OSError) as err:
        raise ProxmoxUnreachableError(_CALL, f"{base}: {describe_failure(err)}.") from err
    finally:
        recorder.close()
