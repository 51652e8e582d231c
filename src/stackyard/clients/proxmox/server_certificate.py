"""The certificate that a server shows, read before anything is sent to it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox.connection import Connection, Ticket
from stackyard.clients.proxmox.failures import Call, ProxmoxUnreachableError

if TYPE_CHECKING:
    import datetime

    from cryptography import x509

__all__ = ["ServerCertificate", "read_server_certificate"]

_CALL = Call("GET", "/version")
_DEFAULT_PORT = 443
_LONGEST_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCertificate:
    """What a server shows of itself.

    Attributes:
        subject: Whom it is for, as `CN=pve1.home`.
        issuer: Who signed it.
        names: The host names and addresses that it is good for.
        begins: From when it is good.
        ends: Until when.
        fingerprint: Its SHA-256, as Proxmox writes it.
        problem: Why the authorities of this system do not vouch for it; empty if they do.
    """

    subject: str
    issuer: str
    names: tuple[str, ...]
    begins: datetime.datetime
    ends: datetime.datetime
    fingerprint: str
    problem: str

    @property
    def is_verified(self) -> bool:
        """Whether the authorities of this system vouch for it, for the host name that was asked for."""
        return not self.problem

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "subject": self.subject,
            "issuer": self.issuer,
            "names": list(self.names),
            "not_before": self.begins.isoformat(),
            "not_after": self.ends.isoformat(),
            "fingerprint": self.fingerprint,
            "verified_by_system": self.is_verified,
            "problem": self.problem or None,
        }


async def read_server_certificate(
    endpoint: str, *, timeout_s: float = _LONGEST_S, verifies: bool = True
) -> ServerCertificate:
    """Shake hands with a server, twice, and return its certificate; no call and no credential is sent.

    Args:
        endpoint: The address: `https://HOST:8006`.
        timeout_s: How long each handshake may take.
        verifies: Whether the authorities of this system are asked.

    Raises:
        EndpointError: It is no https address.
        ProxmoxUnreachableError: Nothing answers there, or what answers does not speak TLS.
    """
    from cryptography import x509  # lazy: cryptography, only where a certificate is shown

    base = Connection(endpoint=endpoint, credentials=Ticket(ticket="", csrf_token="")).base_url()
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    try:
        der = await _shake_hands(base, anyone, timeout_s)
    except ssl.SSLError as err:
        said = f"{base} answers, but does not speak TLS as Proxmox does ({err.reason or 'no reason given'})."
        raise ProxmoxUnreachableError(_CALL, said, remedy="Check the port: Proxmox VE uses 8006.") from err
    except (OSError, TimeoutError) as err:
        reason = "no answer came in time" if isinstance(err, TimeoutError) else (err.strerror or str(err))
        raise ProxmoxUnreachableError(_CALL, f"{base} cannot be reached: {reason}.") from err
    problem = await _find_problem(base, timeout_s) if verifies else "it was not checked"
    return _describe(x509.load_der_x509_certificate(der), problem)


async def _shake_hands(base: str, context: ssl.SSLContext, timeout_s: float) -> bytes:
    parts = urllib.parse.urlsplit(base)
    async with asyncio.timeout(timeout_s):
        _, writer = await asyncio.open_connection(parts.hostname, parts.port or _DEFAULT_PORT, ssl=context)
    try:
        shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return shown
    finally:
        # Nothing was sent: there is no need to wait for the other side to agree.
        with contextlib.suppress(OSError, AttributeError):
            writer.transport.abort()


async def _find_problem(base: str, timeout_s: float) -> str:
    try:
        await _shake_hands(base, ssl.create_default_context(), timeout_s)
    except ssl.SSLCertVerificationError as err:
        return err.verify_message or str(err)
    except (OSError, TimeoutError) as err:
        return f"it could not be checked: {err}"
    return ""


def _describe(certificate: x509.Certificate, problem: str) -> ServerCertificate:
    from cryptography import x509  # lazy: as above
    from cryptography.hazmat.primitives import hashes  # lazy: as above

    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = tuple(str(name.value) for name in found)
    except (x509.ExtensionNotFound, ValueError):
        names = ()
    return ServerCertificate(
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        names=names,
        begins=certificate.not_valid_before_utc,
        ends=certificate.not_valid_after_utc,
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(":").upper(),
        problem=problem,
    )
