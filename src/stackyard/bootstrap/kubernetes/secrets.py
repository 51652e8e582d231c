"""The secrets that a cluster needs before Flux can take over; their values are in memory only."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError
from stackyard.base.visible import on_one_line
from stackyard.clients.kubernetes import ManifestError, parse_manifests
from stackyard.secrets import Keyring, open_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.clients.kubernetes import KubernetesObject

__all__ = [
    "SecretValueError",
    "SecretValues",
    "make_cloudflare",
    "make_sops_age",
    "make_truenas",
    "read_secrets_file",
]

_IDENTITY = re.compile(r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]+")


class SecretValueError(InvalidInputError):
    """A value that a secret of the cluster needs is missing or cannot be right."""

    code = "E-CLUSTER-SECRET"
    summary = "A value for a secret of the cluster is missing"
    default_remedy = "Give the value where the text says; nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretValues:
    """A secret of the cluster; its values are not in its repr.

    Attributes:
        namespace: The namespace that it is in.
        name: Its name.
        values: Its values, by key.
        type: Its type in Kubernetes.
    """

    namespace: str
    name: str
    values: Mapping[str, str] = field(repr=False)
    type: str = "Opaque"

    def make_object(self) -> dict[str, Any]:
        """Return the object.

        Raises:
            SecretValueError: There is no value, or one is empty.
        """
        missing = [key for key, value in self.values.items() if not value.strip()]
        if missing or not self.values:
            named = ", ".join(missing) or "any key"
            raise SecretValueError(f"The secret {self.namespace}/{self.name} has no value for {named}.")
        data = {key: base64.b64encode(value.encode()).decode() for key, value in self.values.items()}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "type": self.type,
            "data": data,
        }


def make_sops_age(identities: str, *, namespace: str = "flux-system", name: str = "sops-age") -> SecretValues:
    """Return the secret with which Flux decrypts the repository.

    Args:
        identities: The content of the age key file; comments are left out.
        namespace: The namespace of Flux.
        name: The name that the Kustomizations use.

    Raises:
        SecretValueError: There is no identity of age in it.
    """
    found = [line.strip() for line in identities.splitlines() if _IDENTITY.fullmatch(line.strip())]
    if not found:
        raise SecretValueError(
            f"There is no age identity for the secret {namespace}/{name}: Flux could decrypt nothing.",
            remedy="Give the age key file of the repository, whose lines begin with AGE-SECRET-KEY-1.",
        )
    return SecretValues(namespace=namespace, name=name, values={"age.agekey": "\n".join(found) + "\n"})


def make_truenas(api_key: str, *, namespace: str = "kube-system", name: str = "truenas-api") -> SecretValues:
    """Return the secret with which a storage driver speaks to TrueNAS."""
    return SecretValues(namespace=namespace, name=name, values={"api-key": api_key})


def make_cloudflare(
    token: str, *, namespace: str = "cert-manager", name: str = "cloudflare-api-token", key: str = "api-token"
) -> SecretValues:
    """Return the secret with which cert-manager, external-dns and others change records of Cloudflare."""
    return SecretValues(namespace=namespace, name=name, values={key: token})


def read_secrets_file(path: Path, keyring: Keyring | None = None) -> tuple[KubernetesObject, ...]:
    """Read the Secrets of a manifest that SOPS has encrypted; nothing decrypted is written anywhere.

    Raises:
        SecretsLockedError: No key opens it.
        ManifestError: It holds something else than Secrets.
    """
    opened = open_file(path, Keyring() if keyring is None else keyring)
    objects = parse_manifests(opened.plain.decode(), str(path))
    for obj in objects:
        if obj.get("kind") != "Secret":
            raise ManifestError(
                f"{path} has a {on_one_line(str(obj.get('kind')))}, and may have Secrets only."
            )
    return tuple(_as_data(obj) for obj in objects)


def _as_data(obj: KubernetesObject) -> dict[str, Any]:
    """Return a Secret with its values in `data`: the API server compares what it stores, not `stringData`."""
    made = {key: value for key, value in obj.items() if key not in ("sops", "stringData")}
    texts = obj.get("stringData") or {}
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in texts.items()}
    return {**made, "data": {**(obj.get("data") or {}), **encoded}}
