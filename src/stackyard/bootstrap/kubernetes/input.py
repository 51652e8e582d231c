"""The plan of the Kubernetes part of a cluster, from its files and its secrets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.bootstrap.kubernetes.flux import (
    GitAccess,
    GitSource,
    KustomizationLayer,
    export_flux,
    make_layers,
)
from stackyard.bootstrap.kubernetes.network import make_cilium, render_chart
from stackyard.bootstrap.kubernetes.plan import KubernetesPlan
from stackyard.bootstrap.kubernetes.secrets import (
    make_cloudflare,
    make_sops_age,
    make_truenas,
    read_secrets_file,
)
from stackyard.clients.kubernetes import read_manifests

if TYPE_CHECKING:
    from stackyard.clients.kubernetes import KubernetesObject
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.bootstrap_file import BootstrapFields, FluxFields, NetworkFields
    from stackyard.sources.cluster.model import Cluster

__all__ = ["make_kubernetes_plan"]

_KEY_FILE = "SOPS_AGE_KEY_FILE"
_KEY = "SOPS_AGE_KEY"


async def make_kubernetes_plan(cluster: Cluster, fields: BootstrapFields, keyring: Keyring) -> KubernetesPlan:
    """Return what a cluster gets once its API answers; nothing is asked of the cluster.

    Args:
        cluster: The cluster.
        fields: Its `bootstrap.yaml`.
        keyring: The keys of the user.

    Raises:
        NoNetworkError: Nothing can render the network.
        SecretValueError: A value for a secret is missing.
        FluxSettingsError: The repository cannot be used as it is described.
        InvalidInputError: A file cannot be read.
    """
    source = None if fields.flux is None else _make_source(cluster, fields.flux)
    return KubernetesPlan(
        nodes=tuple(node.name for node in cluster.nodes),
        network=() if fields.network is None else await _render_network(cluster.folder, fields.network),
        flux=() if fields.flux is None else await _read_flux(cluster.folder, fields.flux),
        source=source,
        layers=() if fields.flux is None or source is None else _list_layers(fields.flux),
        secrets=_list_secrets(cluster, fields, keyring),
        decryption="sops-age" if fields.flux is not None else "",
    )


async def _render_network(folder: Path, fields: NetworkFields) -> tuple[KubernetesObject, ...]:
    if fields.manifests is not None:
        return read_manifests(folder / fields.manifests)
    helm = shutil.which("helm")
    chart = make_cilium(version=fields.cilium_version or "", values=fields.cilium_values)
    return await render_chart(None if helm is None else Path(helm), chart)


async def _read_flux(folder: Path, fields: FluxFields) -> tuple[KubernetesObject, ...]:
    if fields.manifests is not None:
        return read_manifests(folder / fields.manifests)
    flux = shutil.which("flux")
    return () if flux is None else await export_flux(Path(flux))


def _make_source(cluster: Cluster, fields: FluxFields) -> GitSource | None:
    if fields.url is None:
        return None
    token = cluster.secrets.get("github_token", "")
    access = None
    if fields.deploy_key is not None or token:
        access = GitAccess(
            private_key=_read(cluster.folder, fields.deploy_key),
            known_hosts=_read(cluster.folder, fields.known_hosts),
            token="" if fields.deploy_key is not None else token,
        )
    source = GitSource(url=fields.url, branch=fields.branch, access=access)
    source.check()
    return source


def _read(folder: Path, name: str | None) -> str:
    return "" if name is None else files.read_text(folder / name)


def _list_layers(fields: FluxFields) -> tuple[KustomizationLayer, ...]:
    if fields.layers is None:
        return make_layers(fields.folder)
    return tuple(KustomizationLayer(name=one.name, path=one.path, after=one.after) for one in fields.layers)


def _list_secrets(
    cluster: Cluster, fields: BootstrapFields, keyring: Keyring
) -> tuple[KubernetesObject, ...]:
    found: list[KubernetesObject] = []
    if fields.flux is not None:
        found.append(make_sops_age(_read_identities(keyring)).make_object())
    if token := cluster.secrets.get("cloudflare_token"):
        found.append(make_cloudflare(token).make_object())
    if key := cluster.secrets.get("truenas_api_key"):
        found.append(make_truenas(key).make_object())
    for name in fields.secrets:
        found += read_secrets_file(cluster.folder / name, keyring)
    return tuple(found)


def _read_identities(keyring: Keyring) -> str:
    """Return the age identities of the user, as text."""
    if said := keyring.env.get(_KEY):
        return said
    path = Path(keyring.env.get(_KEY_FILE) or keyring.age_keys_file)
    return files.read_text(path) if path.is_file() else ""
