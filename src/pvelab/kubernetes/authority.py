"""The certificate authority of a cluster: server and client certificates, and kubeconfigs."""

from __future__ import annotations

import base64
import datetime
import ipaddress
from dataclasses import dataclass, field

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from stackyard.base.serving import Certificate

__all__ = ["Authority", "identify_issuer", "make_key"]

_BACKDATED = datetime.timedelta(seconds=10)
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


def make_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key (EC P-256)."""
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """Signs the certificates of a cluster.

    Attributes:
        certificate_pem: Its own certificate.
        key_pem: Its key.
    """

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)

    @classmethod
    def make(cls, name: str = "kubernetes") -> Authority:
        """Return a new one."""
        key = make_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _begin(subject, subject, key.public_key(), datetime.timedelta(days=365))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(subject_key, critical=False)
        return cls(certificate_pem=_pem(builder.sign(key, hashes.SHA256())), key_pem=_key_pem(key))

    def issue_server(self, names: tuple[str, ...]) -> Certificate:
        """Return a certificate of a server with these DNS names and addresses."""
        found: list[x509.GeneralName] = []
        for name in names:
            try:
                found.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                found.append(x509.DNSName(name))
        usage = ExtendedKeyUsageOID.SERVER_AUTH
        return self._issue("kube-apiserver", (), usage, x509.SubjectAlternativeName(found))

    def issue_client(
        self, user: str, groups: tuple[str, ...] = (), *, lifetime: datetime.timedelta | None = None
    ) -> Certificate:
        """Return a certificate of a user and its groups."""
        return self._issue(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, None, lifetime)

    def make_kubeconfig(
        self,
        server: str,
        user: str = "admin",
        groups: tuple[str, ...] = ("system:masters",),
        *,
        name: str = "lab",
    ) -> str:
        """Return the kubeconfig of a user, with a new certificate."""
        pair = self.issue_client(user, groups)
        context = f"{user}@{name}"
        cluster = {"server": server, "certificate-authority-data": _encode(self.certificate_pem)}
        credentials = {
            "client-certificate-data": _encode(pair.certificate_pem),
            "client-key-data": _encode(pair.key_pem),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": context, "user": credentials}],
            "contexts": [
                {"name": context, "context": {"cluster": name, "namespace": "default", "user": context}}
            ],
        }
        return yaml.safe_dump(document, sort_keys=False)

    def _issue(
        self,
        name: str,
        groups: tuple[str, ...],
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
        lifetime: datetime.timedelta | None = None,
    ) -> Certificate:
        issuer = x509.load_pem_x509_certificate(self.certificate_pem)
        signer = serialization.load_pem_private_key(self.key_pem, password=None)
        if not isinstance(signer, _Key):
            raise TypeError("the authority has a key of a kind that Kubernetes does not use")
        key = make_key()
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        lasts = lifetime or datetime.timedelta(days=365)
        builder = _begin(issuer.subject, subject, key.public_key(), lasts)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(identify_issuer(issuer), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        digest = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
        certificate = builder.sign(signer, digest)
        return Certificate(certificate_pem=_pem(certificate), key_pem=_key_pem(key))


def identify_issuer(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Return how a certificate names the key of its issuer: as that names it itself, whatever the digest."""
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own.value)


def _begin(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _BACKDATED,
        not_valid_after=now + lifetime,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
