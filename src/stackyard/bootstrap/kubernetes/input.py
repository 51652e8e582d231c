"""The plan of the Kubernetes part of a cluster, from its files and its secrets."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.bootstrap.kubernetes.flux import (
    NAMESPACE,
    KustomizationLayer,
    export_flux,
    make_flux_instance,
    make_layers,
)
from stackyard.bootstrap.kubernetes.git_source import GitAccess, GitSource, check_remote
from stackyard.bootstrap.kubernetes.helm import HelmChart, merge_values, render_chart
from stackyard.bootstrap.kubernetes.identities import choose_identities
from stackyard.bootstrap.kubernetes.network import (
    NoNetworkError,
    TwoNetworksError,
    find_own_network,
    make_cilium,
)
from stackyard.bootstrap.kubernetes.plan import ChartPlan, KubernetesPlan
from stackyard.bootstrap.kubernetes.secrets import (
    SecretValueError,
    make_cloudflare,
    make_sops_age,
    make_truenas,
    read_secrets_file,
)
from stackyard.clients.kubernetes import read_manifests
from stackyard.secrets import open_file, read_secrets
from stackyard.sources.cluster.bootstrap_file import NetworkFields
from stackyard.talosconfig.patch_files import load_patches

if TYPE_CHECKING:
    from stackyard.clients.kubernetes import KubernetesObject
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.bootstrap_file import (
        BootstrapFields,
        ChartFields,
        FluxFields,
        OperatorFields,
    )
    from stackyard.sources.cluster.model import Cluster

__all__ = ["make_kubernetes_plan"]

_SYSTEM = "kube-system"
_OPERATOR = "oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator"
# The secret fields with a token for the repository, where none is named; the first that is there counts.
_TOKENS = ("git_token", "github_token")


async def make_kubernetes_plan(cluster: Cluster, fields: BootstrapFields, keyring: Keyring) -> KubernetesPlan:
    """Return what a cluster gets once its API answers; nothing is asked of the cluster.

    What the plan needs is there after this: charts are rendered, files read, and the repository of Flux was
    opened with the access that the cluster gets.

    Args:
        cluster: The cluster.
        fields: Its `bootstrap.yaml`.
        keyring: The keys of the user.

    Raises:
        NoNetworkError: Nothing can render the network.
        TwoNetworksError: The machine configuration brings another network.
        HelmMissingError: Nothing can render a chart.
        FluxMissingError: Nothing says where the manifests of Flux come from.
        SecretValueError: A value for a secret is missing.
        FluxSettingsError: The repository cannot be used as it is described.
        GitRefusedError: The repository does not open.
        ProcessFailedError: A program refuses what it is given.
        InvalidInputError: A file cannot be read.
    """
    flux = fields.flux
    secrets = _list_secrets(cluster, fields, keyring)
    source = None if flux is None else _make_source(cluster, flux, keyring)
    network = await _render_network(cluster, fields.network or NetworkFields(), keyring)
    plan = KubernetesPlan(
        nodes=tuple(node.name for node in cluster.nodes),
        network=network,
        network_namespace=_SYSTEM if _has_cilium(fields) else "default",
        network_release="cilium" if _has_cilium(fields) else "",
        charts=tuple([await _render(cluster, one, keyring) for one in fields.charts]),
        operator=()
        if flux is None or flux.operator is None
        else await _read_operator(cluster, flux.operator),
        flux=() if flux is None else await _read_flux(cluster.folder, flux),
        source=source,
        layers=() if flux is None or source is None else _list_layers(flux),
        secrets=secrets,
        decryption="sops-age" if flux is not None else "",
    )
    if source is not None:
        await check_remote(source)
    return plan


def _has_cilium(fields: BootstrapFields) -> bool:
    network = fields.network or NetworkFields()
    return isinstance(network, NetworkFields) and network.manifests is None


def _find(program: str) -> Path | None:
    found = shutil.which(program)
    return None if found is None else Path(found)


async def _render_network(
    cluster: Cluster, fields: NetworkFields | str, keyring: Keyring
) -> tuple[KubernetesObject, ...]:
    if isinstance(fields, str):
        return ()
    if own := find_own_network(load_patches(cluster.folder, cluster.controllers[0], keyring)):
        added = "Cilium" if fields.manifests is None else fields.manifests
        raise TwoNetworksError(
            f"A patch of the machine configuration brings {own}, and `up` would add {added}."
        )
    if fields.manifests is not None:
        return read_manifests(cluster.folder / fields.manifests)
    helm = _find("helm")
    if helm is None:
        raise NoNetworkError("The network plugin is Cilium, whose chart needs `helm`; it is not installed.")
    chart = make_cilium(version=fields.cilium_version or "", values=fields.cilium_values)
    return await render_chart(helm, chart, kubernetes_version=cluster.kubernetes_version)


async def _render(cluster: Cluster, fields: ChartFields, keyring: Keyring) -> ChartPlan:
    name, chart, values = fields.name or "", fields.chart or "", fields.values or {}
    secrets: frozenset[str] = frozenset()
    if fields.values_file is not None:
        path = cluster.folder / fields.values_file
        secrets = open_file(path, keyring).secrets()
        values = merge_values(read_secrets(path, keyring).data, values)
    described = HelmChart(
        release=name,
        chart=str(cluster.folder / chart) if chart.startswith(".") else chart,
        namespace=fields.namespace,
        repository=fields.repository or "",
        version=fields.version or "",
        values=values,
        secrets=secrets,
    )
    objects = await render_chart(_find("helm"), described, kubernetes_version=cluster.kubernetes_version)
    return ChartPlan(name=name, namespace=fields.namespace, objects=objects, after=fields.after)


async def _read_operator(cluster: Cluster, fields: OperatorFields) -> tuple[KubernetesObject, ...]:
    if fields.manifests is not None:
        return read_manifests(cluster.folder / fields.manifests)
    chart = HelmChart(
        release="flux-operator", chart=_OPERATOR, namespace=NAMESPACE, version=fields.version or ""
    )
    return await render_chart(_find("helm"), chart, kubernetes_version=cluster.kubernetes_version)


async def _read_flux(folder: Path, fields: FluxFields) -> tuple[KubernetesObject, ...]:
    if fields.manifests is not None:
        return read_manifests(folder / fields.manifests)
    version = fields.version or ""
    if fields.operator is not None:
        return (make_flux_instance(version=version, components=fields.components),)
    return await export_flux(_find("flux"), version=version, components=fields.components)


def _make_source(cluster: Cluster, fields: FluxFields, keyring: Keyring) -> GitSource | None:
    if fields.url is None:
        return None
    key, known_hosts, authority = (
        _read(cluster.folder, name, keyring)
        for name in (fields.deploy_key, fields.known_hosts, fields.authority)
    )
    token = _find_token(cluster, fields)
    access = GitAccess(
        private_key=key,
        known_hosts=known_hosts,
        username=fields.username or "git",
        token=token,
        authority_pem=authority,
    )
    source = GitSource(
        url=fields.url,
        branch=fields.branch or "",
        tag=fields.tag or "",
        commit=fields.commit or "",
        access=access if key or token or authority else None,
    )
    source.check()
    return source


def _find_token(cluster: Cluster, fields: FluxFields) -> str:
    """Return the token that is named, or the usual one where a key does not open the repository.

    Raises:
        SecretValueError: The cluster has no secret of that name.
    """
    if fields.token is None:
        found = (cluster.secrets[name] for name in _TOKENS if cluster.secrets.get(name))
        is_https = (fields.url or "").startswith("https://")
        return next(found, "") if is_https and fields.deploy_key is None else ""
    if not (token := cluster.secrets.get(fields.token, "")):
        raise SecretValueError(
            f"The cluster has no secret `{fields.token}`, which bootstrap.yaml names as the token of Flux.",
            remedy=f"Add `{fields.token}` to cluster.sops.yaml; nothing was changed.",
        )
    return token


def _read(folder: Path, name: str | None, keyring: Keyring) -> str:
    """Return the text of a file, decrypted if it is encrypted."""
    return "" if name is None else open_file(folder / name, keyring).plain.decode(errors="replace")


def _list_layers(fields: FluxFields) -> tuple[KustomizationLayer, ...]:
    if fields.layers is None:
        return make_layers(fields.folder)
    return tuple(KustomizationLayer(name=one.name, path=one.path, after=one.after) for one in fields.layers)


def _list_secrets(
    cluster: Cluster, fields: BootstrapFields, keyring: Keyring
) -> tuple[KubernetesObject, ...]:
    found: list[KubernetesObject] = []
    if fields.flux is not None:
        software = [layer.path for layer in _list_layers(fields.flux)]
        identities = choose_identities(cluster.folder, software, keyring)
        found.append(make_sops_age(identities).make_object())
    if token := cluster.secrets.get("cloudflare_token"):
        found.append(make_cloudflare(token).make_object())
    if key := cluster.secrets.get("truenas_api_key"):
        found.append(make_truenas(key).make_object())
    for name in fields.secrets:
        found += read_secrets_file(cluster.folder / name, keyring)
    return tuple(found)
