"""Certificates of Talos machines: Ed25519, signed by a throw-away authority or by the OS CA."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pvelab.kubernetes.authority import identify_issuer
from stackyard.base.serving.certificate import Certificate

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "MAINTENANCE_NAME",
    "SERVER_LIFE_S",
    "Period",
    "authority_from",
    "decode_pem",
    "issue",
    "make_authority",
]

MAINTENANCE_NAME = "maintenance-service.talos.dev"
SERVER_LIFE_S = 24 * 3600
_BACKDATED = datetime.timedelta(minutes=5)
_YEARS = datetime.timedelta(hours=87600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """When a certificate is good.

    Attributes:
        life_s: For how long.
        ahead_s: How far ahead the clock of the one who signs is.
    """

    life_s: float = SERVER_LIFE_S
    ahead_s: float = 0.0


def make_authority(organization: str) -> Certificate:
    """Return a new authority, for ten years."""
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _YEARS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, None), key)


def issue(
    authority: Certificate,
    *,
    name: str = "",
    organizations: Iterable[str] = (),
    hosts: Iterable[str] | None = None,
    period: Period = Period(),  # noqa: B008 - frozen
    elliptic: bool = False,
) -> Certificate:
    """Return a certificate that an authority signs.

    Args:
        authority: Who signs.
        name: Its common name.
        organizations: The organizations of its subject: roles, for a client of Talos.
        hosts: The addresses and names of a server; None for the certificate of a client.
        period: When it is good.
        elliptic: Whether its key is ECDSA P-256, as Kubernetes has them, in place of Ed25519.
    """
    ca = x509.load_pem_x509_certificate(authority.certificate_pem)
    ca_key = serialization.load_pem_private_key(decode_pem(authority.key_pem), None)
    key = ec.generate_private_key(ec.SECP256R1()) if elliptic else ed25519.Ed25519PrivateKey.generate()
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=period.ahead_s)
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    names += [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if hosts is None else ExtendedKeyUsageOID.SERVER_AUTH
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + datetime.timedelta(seconds=period.life_s))
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(identify_issuer(ca), critical=False)
    )
    if hosts is not None:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_host(one) for one in dict.fromkeys(hosts)]), critical=not names
        )
    algorithm = None if isinstance(ca_key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return _pair(builder.sign(ca_key, algorithm), key)  # type: ignore[arg-type]


def decode_pem(pem: bytes) -> bytes:
    """Return a private key with the label that other programs than Talos know."""
    return re.sub(rb"-----(BEGIN|END) ED25519 PRIVATE KEY-----", rb"-----\1 PRIVATE KEY-----", pem)


def authority_from(crt: object, key: object) -> Certificate | None:
    """Return an authority as a machine configuration holds it (base64 of PEM), None if it is not readable."""
    try:
        pair = Certificate(
            certificate_pem=base64.b64decode(str(crt), validate=True),
            key_pem=decode_pem(base64.b64decode(str(key or ""), validate=True)),
        )
        x509.load_pem_x509_certificate(pair.certificate_pem)
        if pair.key_pem:
            serialization.load_pem_private_key(pair.key_pem, None)
    except (ValueError, TypeError):
        return None
    return pair


def _pair(
    certificate: x509.Certificate, key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey
) -> Certificate:
    return Certificate(
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        key_pem=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
