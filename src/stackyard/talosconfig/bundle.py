"""The secrets of a Talos cluster, in the form of `talosctl gen secrets`."""

from __future__ import annotations

import base64
import datetime
import secrets
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from stackyard.base.redaction import NOTHING_SECRET
from stackyard.talosconfig.certificates import CertificateAndKey, encode_key, issue_client, make_authority
from stackyard.talosconfig.yamlform import write_documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.redaction import Redactor

__all__ = [
    "ADMIN_ROLE",
    "SecretsBundle",
    "issue_admin",
    "issue_kubernetes_admin",
    "make_bundle",
    "write_bundle",
]

ADMIN_ROLE = "os:admin"
_TOKEN_LETTERS = string.digits + string.ascii_lowercase
_KEY_BYTES = 32
_RSA_BITS = 4096
_RSA_EXPONENT = 65537


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SecretsBundle:
    """Everything secret that the machine configurations of a cluster share; its representation shows nothing.

    Attributes:
        cluster_id: The name of the cluster for the discovery service.
        cluster_secret: The key of what nodes tell the discovery service.
        bootstrap_token: With it, kubelets join Kubernetes.
        trustd_token: With it, workers ask control planes for their certificates.
        secretbox_secret: The key of the secrets of Kubernetes in etcd.
        aescbc_secret: The same for clusters that were made by Talos 1.2 and earlier.
        etcd: The authority of etcd.
        kubernetes: The authority of Kubernetes.
        aggregator: The authority of the aggregation layer of Kubernetes.
        service_account_key: The key that signs tokens of service accounts, as PEM.
        os: The authority of the API of Talos.
    """

    cluster_id: str
    cluster_secret: str
    bootstrap_token: str
    trustd_token: str
    secretbox_secret: str
    aescbc_secret: str = ""
    etcd: CertificateAndKey
    kubernetes: CertificateAndKey
    aggregator: CertificateAndKey
    service_account_key: str
    os: CertificateAndKey

    def __repr__(self) -> str:
        return "SecretsBundle(...)"

    @property
    def service_account_base64(self) -> str:
        """The key of service accounts as YAML of Talos has it."""
        return base64.b64encode(self.service_account_key.encode()).decode()

    def values(self) -> frozenset[str]:
        """Return every text that must not be shown."""
        keys = [pair.key for pair in (self.etcd, self.kubernetes, self.aggregator, self.os)]
        texts = {
            *(self.cluster_secret, self.bootstrap_token, self.trustd_token),
            *(self.secretbox_secret, self.aescbc_secret, self.service_account_key),
            *keys,
            *(base64.b64encode(key.encode()).decode() for key in (*keys, self.service_account_key)),
        }
        return frozenset(texts - {""})

    def redactor(self, base: Redactor = NOTHING_SECRET) -> Redactor:
        """Return a redactor that hides all of it, and what another one hides."""
        return base.with_secrets(self.values())


def make_bundle(now: datetime.datetime | None = None) -> SecretsBundle:
    """Return new secrets for a cluster; the RSA key takes a second or so."""
    begin = (now or datetime.datetime.now(datetime.UTC)).replace(microsecond=0)
    service_account = rsa.generate_private_key(_RSA_EXPONENT, _RSA_BITS)
    return SecretsBundle(
        cluster_id=base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)).decode(),
        cluster_secret=_make_secret(),
        bootstrap_token=_make_token(),
        trustd_token=_make_token(),
        secretbox_secret=_make_secret(),
        etcd=make_authority(ec.generate_private_key(ec.SECP256R1()), "etcd", begin),
        kubernetes=make_authority(ec.generate_private_key(ec.SECP256R1()), "kubernetes", begin),
        aggregator=make_authority(ec.generate_private_key(ec.SECP256R1()), "", begin),
        service_account_key=encode_key(service_account),
        os=make_authority(ed25519.Ed25519PrivateKey.generate(), "talos", begin),
    )


def write_bundle(bundle: SecretsBundle) -> str:
    """Return the YAML of `talosctl gen secrets`. It is in clear: encrypt it before it is kept."""
    return write_documents([_describe(bundle)])


def issue_admin(
    bundle: SecretsBundle,
    roles: Sequence[str] = (ADMIN_ROLE,),
    *,
    now: datetime.datetime | None = None,
    lifetime: datetime.timedelta = datetime.timedelta(days=365),
) -> CertificateAndKey:
    """Return a new client certificate for the API of Talos."""
    return issue_client(bundle.os, roles, now or datetime.datetime.now(datetime.UTC), lifetime=lifetime)


def issue_kubernetes_admin(
    bundle: SecretsBundle,
    *,
    now: datetime.datetime | None = None,
    lifetime: datetime.timedelta = datetime.timedelta(days=365),
) -> CertificateAndKey:
    """Return a new client certificate of an administrator of Kubernetes, as a kubeconfig of Talos has it."""
    at = now or datetime.datetime.now(datetime.UTC)
    return issue_client(bundle.kubernetes, ("system:masters",), at, common_name="admin", lifetime=lifetime)


def _describe(bundle: SecretsBundle) -> dict[str, Any]:
    encryption = {
        "secretboxencryptionsecret": bundle.secretbox_secret,
        "aescbcencryptionsecret": bundle.aescbc_secret,
    }
    return {
        "cluster": {"id": bundle.cluster_id, "secret": bundle.cluster_secret},
        "secrets": {
            "bootstraptoken": bundle.bootstrap_token,
            **{key: value for key, value in encryption.items() if value},
        },
        "trustdinfo": {"token": bundle.trustd_token},
        "certs": {
            "etcd": _pair(bundle.etcd),
            "k8s": _pair(bundle.kubernetes),
            "k8saggregator": _pair(bundle.aggregator),
            "k8sserviceaccount": {"key": bundle.service_account_base64},
            "os": _pair(bundle.os),
        },
    }


def _pair(pair: CertificateAndKey) -> dict[str, str]:
    return {"crt": pair.crt_base64, "key": pair.key_base64}


def _make_secret() -> str:
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def _make_token() -> str:
    letters = "".join(secrets.choice(_TOKEN_LETTERS) for _ in range(22))
    return f"{letters[:6]}.{letters[6:]}"
