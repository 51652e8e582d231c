"""TLS of a server: the context that speaks it, and who the client is by its certificate."""

from __future__ import annotations

import functools
import ssl
import tempfile
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from aiohttp import web

    from stackyard.base.serving.certificate import Certificate

__all__ = ["PeerCertificate", "Tls", "load_pair", "peer_certificate", "server_context"]


@dataclass(frozen=True, slots=True)
class Tls:
    """What a server shows its clients, and what it asks of them.

    Attributes:
        certificate: The server's own.
        client_authorities_pem: The authorities that client certificates must be signed by; None asks clients
            for none.
        require_client_certificate: Whether a client without a certificate is turned away in the handshake.
    """

    certificate: Certificate
    _: KW_ONLY
    client_authorities_pem: bytes | None = None
    require_client_certificate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCertificate:
    """A client's certificate, already verified against the authorities of the server.

    Attributes:
        subject: The distinguished name, as RFC 4514 writes it.
        common_name: The common name, empty where it has none.
        names: The DNS names, addresses, mail addresses and URIs that it is for.
        fingerprint: The SHA-256, as `AB:CD:...`.
        not_after: When it expires, in seconds since 1970: a connection may last longer.
    """

    subject: str
    common_name: str
    names: tuple[str, ...]
    fingerprint: str
    not_after: float


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of a server: TLS 1.2 and 1.3, HTTP/1.1 only.

    Raises:
        CertificateError: The certificate, the key or the authorities cannot be used.
    """
    from stackyard.base.serving.certificate import CertificateError  # lazy: not for a server without TLS

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    load_pair(context, tls.certificate)
    if tls.client_authorities_pem is not None:
        try:
            context.load_verify_locations(cadata=tls.client_authorities_pem.decode("ascii"))
        except (ValueError, ssl.SSLError) as err:
            raise CertificateError("The authorities for client certificates are not readable PEM.") from err
        context.verify_mode = ssl.CERT_REQUIRED if tls.require_client_certificate else ssl.CERT_OPTIONAL
    elif tls.require_client_certificate:
        raise CertificateError(
            "Client certificates are required, but no authority is given to check them with.",
            remedy="Give the certificate of the authority that signs the certificates of your clients.",
        )
    return context


def load_pair(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Let a context show a certificate from now on, in place of the last one of the same kind of key.

    Raises:
        CertificateError: The certificate or its key cannot be used.
    """
    from stackyard.base.serving.certificate import CertificateError  # lazy: not for a server without TLS

    # Python loads a key from a file only; this one is ours alone and gone at the end of the block.
    try:
        with tempfile.NamedTemporaryFile(prefix="stackyard-tls-") as stream:
            stream.write(certificate.key_pem + b"\n" + certificate.certificate_pem)
            stream.flush()
            # The password callback keeps OpenSSL from asking the terminal for one.
            context.load_cert_chain(stream.name, password=lambda: "")
    except ssl.SSLError as err:
        raise CertificateError(f"The certificate and its key cannot be used: {err.reason or err}.") from err
    except OSError as err:
        raise FileError.from_os_error(err, "write a temporary file in", tempfile.gettempdir()) from err


def peer_certificate(request: web.BaseRequest) -> PeerCertificate | None:
    """Return the certificate that the client has shown, None where it has shown none (or there is no TLS)."""
    connection = request.get_extra_info("ssl_object")
    der = connection.getpeercert(binary_form=True) if connection is not None else None
    return None if der is None else _describe_certificate(der)


# A client shows the same certificate with each of its requests; reading one costs more than a small request.
@functools.lru_cache(maxsize=256)
def _describe_certificate(der: bytes) -> PeerCertificate:
    from cryptography import x509  # lazy: only for clients that show a certificate
    from cryptography.x509.oid import NameOID  # lazy: as above

    from stackyard.base.serving.certificate import certificate_names, fingerprint  # lazy: as above

    certificate = x509.load_der_x509_certificate(der)
    common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return PeerCertificate(
        subject=certificate.subject.rfc4514_string(),
        common_name=str(common[0].value) if common else "",
        names=certificate_names(certificate),
        fingerprint=fingerprint(certificate),
        not_after=certificate.not_valid_after_utc.timestamp(),
    )
