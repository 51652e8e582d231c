"""Certificates and keys in the form in which Talos keeps them.

Talos writes Ed25519 keys as PKCS#8 under a label of its own, `ED25519 PRIVATE KEY`, which OpenSSL and Python
do not read. It keeps PEM text as base64 in YAML.
"""

from __future__ import annotations

import base64
import binascii
import datetime
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ADMIN_LIFETIME",
    "CA_LIFETIME",
    "CertificateAndKey",
    "PemError",
    "PrivateKey",
    "decode_pem",
    "encode_key",
    "issue_client",
    "load_certificate",
    "load_key",
    "make_authority",
]

PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

CA_LIFETIME = datetime.timedelta(days=3650)
ADMIN_LIFETIME = datetime.timedelta(days=365)
# A clock of a node may be a little behind.
# The clock of a node that has just booted may be behind ours.
_SKEW = datetime.timedelta(hours=1)
_TALOS_LABEL, _LABEL = "ED25519 PRIVATE KEY", "PRIVATE KEY"


class PemError(ValueError):
    """A value is not base64, not PEM, or not a key or certificate that Talos uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateAndKey:
    """A certificate and its key as PEM; its representation shows neither.

    Attributes:
        crt: The certificate.
        key: The private key.
    """

    crt: str = field(repr=False)
    key: str = field(repr=False)

    @property
    def crt_base64(self) -> str:
        """The certificate as YAML of Talos has it."""
        return base64.b64encode(self.crt.encode()).decode()

    @property
    def key_base64(self) -> str:
        """The key as YAML of Talos has it."""
        return base64.b64encode(self.key.encode()).decode()


def decode_pem(value: str) -> str:
    """Return the PEM text of a value.

    Raises:
        PemError: It is not base64 of a text.
    """
    try:
        return base64.b64decode(value, validate=True).decode("ascii")
    except (binascii.Error, ValueError) as err:
        raise PemError("it is not base64 of PEM text") from err


def load_certificate(pem: str) -> x509.Certificate:
    """Read a certificate.

    Raises:
        PemError: It is none.
    """
    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except ValueError as err:
        raise PemError("it is not a certificate in PEM") from err


def load_key(pem: str) -> PrivateKey:
    """Read a private key, also with the label of Talos.

    Raises:
        PemError: It is none, or of a kind that Talos does not use.
    """
    usual = pem.replace(f"-----BEGIN {_TALOS_LABEL}-----", f"-----BEGIN {_LABEL}-----")
    usual = usual.replace(f"-----END {_TALOS_LABEL}-----", f"-----END {_LABEL}-----")
    try:
        key = serialization.load_pem_private_key(usual.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as err:
        raise PemError("it is not a private key in PEM") from err
    if not isinstance(key, PrivateKey):
        raise PemError("it is a key of a kind that Talos does not use")
    return key


def encode_key(key: PrivateKey) -> str:
    """Return a private key as PEM with the labels of Talos."""
    is_edwards = isinstance(key, ed25519.Ed25519PrivateKey)
    form = serialization.PrivateFormat.PKCS8 if is_edwards else serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    return pem.replace(f" {_LABEL}-", f" {_TALOS_LABEL}-") if is_edwards else pem


def make_authority(key: PrivateKey, organization: str, now: datetime.datetime) -> CertificateAndKey:
    """Return a certificate authority that signs itself; without an organization, its name is empty."""
    name = _make_name((organization,) if organization else ())
    usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _start(name, name, key, usage)
        .not_valid_before(now)
        .not_valid_after(now + CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_key_usage(is_authority=True), critical=True)
    )
    return CertificateAndKey(crt=_sign(builder, key), key=encode_key(key))


def issue_client(
    authority: CertificateAndKey,
    organizations: Sequence[str],
    now: datetime.datetime,
    *,
    common_name: str = "",
    lifetime: datetime.timedelta = ADMIN_LIFETIME,
) -> CertificateAndKey:
    """Return a new client certificate, with a key of the kind that the authority has.

    Args:
        authority: Who signs.
        organizations: Roles of Talos, such as `os:admin`, or groups of Kubernetes.
        now: The present time.
        common_name: The user of Kubernetes; Talos needs none.
        lifetime: How long it is valid.
    """
    issuer, signer = load_certificate(authority.crt), load_key(authority.key)
    key: PrivateKey = (
        ed25519.Ed25519PrivateKey.generate()
        if isinstance(signer, ed25519.Ed25519PrivateKey)
        else ec.generate_private_key(ec.SECP256R1())
    )
    name = _make_name(organizations, common_name)
    builder = (
        _start(name, issuer.subject, key, [ExtendedKeyUsageOID.CLIENT_AUTH])
        .not_valid_before(now - _SKEW)
        .not_valid_after(min(now + lifetime, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(is_authority=False), critical=True)
        .add_extension(_identify(issuer, signer), critical=False)
    )
    return CertificateAndKey(crt=_sign(builder, signer), key=encode_key(key))


def _identify(issuer: x509.Certificate, signer: PrivateKey) -> x509.AuthorityKeyIdentifier:
    """Return how a certificate names the key of its issuer: as that names it itself, whatever the digest."""
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)


def _make_name(organizations: Sequence[str], common_name: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    if common_name:
        parts.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    return x509.Name(parts)


def _start(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, usage: list[x509.ObjectIdentifier]
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(builder: x509.CertificateBuilder, key: PrivateKey) -> str:
    # Ed25519 has its hash built in.
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM).decode()
