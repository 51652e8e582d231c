"""Certificates of a server: made in-process, kept in a folder, or given by the user."""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from stackyard.base import directories, locks
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.base.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "Certificate",
    "CertificateError",
    "certificate_names",
    "make_certificate",
    "parse_kept",
    "pin_of",
    "read_certificate",
    "read_or_create_certificate",
    "renew_certificate",
]

# The key and the certificate in one file, so that one rename replaces both and they always belong together.
KEPT_FILE = "server.pem"
# The certificate alone, to hand to clients as the authority to trust.
TRUST_FILE = "server.crt"

_DEFAULT_DAYS = 825
_RENEW_BEFORE = datetime.timedelta(days=30)
# A client whose clock is behind ours must not find the certificate not yet valid.
_BACKDATED = datetime.timedelta(days=1)
_LONGEST_COMMON_NAME = 64
_DNS_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]{0,250}[A-Za-z0-9_])?")


class CertificateError(InvalidInputError):
    """A certificate or its key cannot be used: damaged, of different pairs, or protected by a password."""

    code = "E-CERTIFICATE"
    summary = "A certificate cannot be used"
    default_remedy = "Give a PEM certificate and the PEM private key that belongs to it, without a password."


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A server's certificate (with its chain, leaf first) and its private key, both PEM."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate, as `AB:CD:...`."""
        return fingerprint(_leaf(self.certificate_pem, "The certificate"))

    @property
    def pin(self) -> str:
        """The SHA-256 of its public key as curl takes it, `sha256//...`; a renewal leaves it as it is."""
        return pin_of(self.certificate_pem)

    @property
    def names(self) -> tuple[str, ...]:
        """The names and addresses that it is good for."""
        return certificate_names(_leaf(self.certificate_pem, "The certificate"))

    def as_pem(self) -> bytes:
        """Return key and certificate in one, as they are kept."""
        return self.key_pem + self.certificate_pem

    @property
    def not_after(self) -> datetime.datetime:
        """When it expires, in UTC."""
        return _leaf(self.certificate_pem, "The certificate").not_valid_after_utc


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate, as `AB:CD:...`."""
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def pin_of(certificate_pem: bytes) -> str:
    """Return the SHA-256 of the public key of a certificate as curl takes it: `sha256//` and base64.

    Raises:
        CertificateError: That is no certificate.
    """
    key = _leaf(certificate_pem, "The certificate").public_key()
    spelled = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"sha256//{base64.b64encode(hashlib.sha256(spelled).digest()).decode()}"


def certificate_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names, addresses, mail addresses and URIs that a certificate is for, in its order."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return ()
    kinds = (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)
    return tuple(str(name.value) for name in extension.value if isinstance(name, kinds))


def make_certificate(
    names: Iterable[str], *, days: int = _DEFAULT_DAYS, key_pem: bytes | None = None
) -> Certificate:
    """Make a self-signed server certificate (EC P-256) that serves as its own authority file.

    Args:
        names: The DNS names and IP addresses that clients will use, the main one first.
        days: For how long it is valid.
        key_pem: The private key to use; a new one is created when absent.

    Raises:
        CertificateError: There is no name, or one that a certificate cannot hold.
    """
    wanted = [_general_name(name) for name in dict.fromkeys(names)]
    if not wanted:
        raise CertificateError("A certificate needs at least one DNS name or IP address.")
    key = ec.generate_private_key(ec.SECP256R1()) if key_pem is None else _own_key(key_pem)
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, str(wanted[0].value)[:_LONGEST_COMMON_NAME])]
    )
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _BACKDATED,
        not_valid_after=now + datetime.timedelta(days=days),
    )
    for extension, is_critical in _extensions(key.public_key(), wanted):
        builder = builder.add_extension(extension, critical=is_critical)
    certificate = builder.sign(key, hashes.SHA256())
    return Certificate(
        certificate_pem=certificate.public_bytes(serialization.Encoding.PEM),
        key_pem=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _own_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as err:
        raise CertificateError("The private key is not a readable PEM key.") from err
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("The private key is not one of an elliptic curve.")
    return key


def _extensions(
    key: ec.EllipticCurvePublicKey, names: list[x509.GeneralName]
) -> tuple[tuple[x509.ExtensionType, bool], ...]:
    return (
        # Not an authority but for itself: anyone who trusts it trusts this one key for these names only.
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_SIGN_ONLY, True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName(names), False),
        (x509.SubjectKeyIdentifier.from_public_key(key), False),
        (x509.AuthorityKeyIdentifier.from_issuer_public_key(key), False),
    )


_SIGN_ONLY = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        spelled = name if name.isascii() else name.encode("idna").decode()
    except ValueError:
        spelled = ""
    if not _DNS_NAME.fullmatch(spelled):
        raise CertificateError(f"{name!r} is neither a DNS name nor an IP address.")
    return x509.DNSName(spelled)


def read_or_create_certificate(folder: Path, names: Iterable[str]) -> Certificate:
    """Return the certificate kept in a folder; make and keep one when there is none that will do.

    A new one is created when there is none, when it has expired or will soon, and when it lacks one of the
    names; the private key stays, so that whoever pins the key need not be told. The folder holds `server.pem`
    (key and certificate) and `server.crt` (the certificate alone, for clients to trust).

    Raises:
        CertificateError: What is kept there is damaged.
        FileError: The folder cannot be read or written.
    """
    wanted = list(dict.fromkeys(names))
    directories.ensure_private(folder)
    # A second process, started at the same moment, must not make a second certificate.
    with locks.hold_folder(folder):
        known = _load_kept(folder / KEPT_FILE)
        kept = renew_certificate(known, wanted)
        if kept is not known:
            replace_file(folder / KEPT_FILE, kept.as_pem())
        trust = folder / TRUST_FILE
        if _read_if_there(trust) != kept.certificate_pem:
            replace_file(trust, kept.certificate_pem)
    return kept


def renew_certificate(kept: Certificate | None, names: Iterable[str]) -> Certificate:
    """Return a certificate that is good for these names: the kept one where it will do, else a new one.

    The private key stays, so that whoever pins the key need not be told.
    """
    wanted = list(dict.fromkeys(names))
    if kept is not None and _will_do(kept, wanted):
        return kept
    return make_certificate(wanted, key_pem=None if kept is None else kept.key_pem)


def read_certificate(cert_path: Path, key_path: Path) -> Certificate:
    """Return the certificate and key in two PEM files, checked to belong together.

    Raises:
        CertificateError: One of them is damaged, or they are not a pair.
        FileError: One of them cannot be read.
    """
    given = Certificate(certificate_pem=_read(cert_path), key_pem=_read(key_path))
    _check_pair(given, cert_path, key_path)
    return given


def _load_kept(path: Path) -> Certificate | None:
    pem = _read_if_there(path)
    if pem is None:
        return None
    kept = parse_kept(pem, str(path))
    with contextlib.suppress(OSError):
        path.chmod(0o600)
    return kept


def parse_kept(pem: bytes, label: str) -> Certificate:
    """Return the key and certificate that `Certificate.as_pem` gave.

    Args:
        pem: Both.
        label: Where they are, for a person.

    Raises:
        CertificateError: They are damaged.
    """
    start = max(0, pem.find(b"-----BEGIN CERTIFICATE-----"))
    kept = Certificate(certificate_pem=pem[start:], key_pem=pem[:start])
    try:
        _check_pair(kept, label, label)
    except CertificateError as err:
        again = "Remove it; the next start creates a new certificate."
        raise CertificateError(err.detail, where=Location(label), remedy=again) from err
    return kept


def _will_do(kept: Certificate, names: list[str]) -> bool:
    leaf = _leaf(kept.certificate_pem, "The certificate")
    fresh = leaf.not_valid_after_utc - _RENEW_BEFORE > datetime.datetime.now(datetime.UTC)
    return fresh and {str(_general_name(name).value) for name in names} <= set(certificate_names(leaf))


def _check_pair(pair: Certificate, cert_path: Path | str, key_path: Path | str) -> None:
    leaf = _leaf(pair.certificate_pem, str(cert_path))
    where = Location(str(key_path))
    try:
        key = serialization.load_pem_private_key(pair.key_pem, password=None)
    except TypeError as err:
        raise CertificateError(
            f"The key in {key_path} is protected by a password.",
            where=where,
            remedy=f"Write an unprotected copy: openssl pkey -in {key_path} -out unprotected.pem",
        ) from err
    except (ValueError, UnsupportedAlgorithm) as err:
        raise CertificateError(f"{key_path} does not hold a usable PEM private key.", where=where) from err
    try:
        belongs = key.public_key() == leaf.public_key()
    except (ValueError, UnsupportedAlgorithm) as err:
        raise CertificateError(
            f"{cert_path} is for a kind of key that is not supported.", where=where
        ) from err
    if not belongs:
        raise CertificateError(
            f"The key in {key_path} does not belong to the certificate in {cert_path}.", where=where
        )


def _leaf(pem: bytes, name: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(pem)[0]
    except ValueError as err:
        raise CertificateError(f"{name} does not hold a readable PEM certificate.") from err


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err


def _read_if_there(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
