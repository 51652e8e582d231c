"""The machine configuration of a node, from a resolved cluster and its secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError
from stackyard.talosconfig.contract import find_contract
from stackyard.talosconfig.documents import MAIN, MachineConfig
from stackyard.talosconfig.kubernetes import (
    KUBEPRISM_PORT,
    list_kubernetes_documents,
    make_cluster_section,
    make_etcd,
    make_kubelet,
)
from stackyard.talosconfig.merge import apply_patches
from stackyard.talosconfig.network import (
    list_network_documents,
    make_nameservers,
    make_network_section,
    make_registries,
    make_time,
)
from stackyard.talosconfig.settings import MachineInput, MachineSettings, make_document, read_settings
from stackyard.talosconfig.storage import (
    list_install_documents,
    list_volume_documents,
    make_encryption,
    make_install,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.sources.cluster.model import Cluster
    from stackyard.talosconfig.bundle import SecretsBundle
    from stackyard.talosconfig.documents import Patch

__all__ = ["UnknownNodeError", "generate_config"]


class UnknownNodeError(InvalidInputError):
    """A configuration was asked for a node that the cluster does not have."""

    code = "E-TALOS-NODE"
    summary = "The cluster has no such node"
    default_remedy = "Name a node of nodes.yaml."


def generate_config(
    cluster: Cluster,
    name: str,
    bundle: SecretsBundle,
    patches: Sequence[Patch] = (),
    settings: MachineSettings | None = None,
) -> MachineConfig:
    """Return the configuration of a node; the same input always gives the same bytes.

    Args:
        cluster: The cluster; its version of Talos decides the form of the configuration.
        name: The name of the node.
        bundle: The secrets of the cluster. A worker gets none that belongs to control planes.
        patches: The user's patches for this node, in their order.
        settings: What `cluster.yaml` does not say.

    Raises:
        UnknownNodeError: The cluster has no such node.
        UnsupportedTalosError: There is no form for its version of Talos.
        InvalidInputError: Patches do not fit; every problem is named with its place.
    """
    node = next((node for node in cluster.nodes if node.name == name), None)
    if node is None:
        raise UnknownNodeError(f"{cluster.name} has no node `{name}`.")
    given = MachineInput(
        cluster=cluster,
        node=node,
        bundle=bundle,
        settings=settings or read_settings(cluster),
        contract=find_contract(cluster.talos_version),
        patched_kinds=frozenset(str(patch.data.get("kind")) for patch in patches),
    )
    config = MachineConfig(documents=tuple(_list_documents(given)))
    if patches:
        config = _without_repeats(apply_patches(config, patches, given.contract))
    secrets = frozenset[str]().union(*(patch.secrets for patch in patches))
    return replace(config, redactor=bundle.redactor().with_secrets(secrets))


# Lists that are sets by their meaning. Patches of other tools repeat what `cluster.yaml` says.
_SETS = (
    ("machine", "certSANs"),
    ("machine", "network", "nameservers"),
    ("machine", "time", "servers"),
    ("machine", "kubelet", "nodeIP", "validSubnets"),
    ("cluster", "apiServer", "certSANs"),
    ("cluster", "etcd", "advertisedSubnets"),
)


def _without_repeats(config: MachineConfig) -> MachineConfig:
    """Remove entries that are in such a list twice; the documents are those of the patches, not shared."""
    main: Any = config.find(MAIN)
    for *path, last in _SETS:
        section = main
        for key in path:
            section = (section or {}).get(key)
        if isinstance(section, dict) and isinstance(section.get(last), list):
            section[last] = list(dict.fromkeys(section[last]))
    return config


def _list_documents(given: MachineInput) -> list[dict[str, Any]]:
    documents = [_make_main(given)]
    if given.contract.has_kubernetes_documents:
        documents += _list_machine_documents(given)
    documents += list_volume_documents(given)
    if given.contract.has_network_documents:
        documents += list_network_documents(given)
    if given.contract.has_kubernetes_documents:
        documents += list_kubernetes_documents(given)
    return documents


def _make_main(given: MachineInput) -> dict[str, Any]:
    if given.contract.has_kubernetes_documents:
        etcd = {"etcd": make_etcd(given)} if given.node.is_controller else {}
        cluster = {"token": given.bundle.bootstrap_token, **etcd}
    else:
        cluster = make_cluster_section(given)
    return {
        "version": "v1alpha1",
        "debug": False,
        "persist": True,
        "machine": {key: value for key, value in _make_machine(given).items() if value is not None},
        "cluster": cluster,
    }


def _make_machine(given: MachineInput) -> dict[str, Any]:
    """Return `machine`; a section that the release or the node does not have is None."""
    node, contract, authority = given.node, given.contract, given.bundle.os
    machine: dict[str, Any] = {
        "type": "controlplane" if node.is_controller else "worker",
        "token": given.bundle.trustd_token,
        "ca": {"crt": authority.crt_base64, "key": authority.key_base64 if node.is_controller else ""},
        "certSANs": given.names,
    }
    if contract.has_kubernetes_documents:
        return machine | {"features": {"diskQuotaSupport": True}}
    modules = [{"name": name} for name in node.kernel_modules]
    classic = not contract.has_network_documents
    return machine | {
        "kubelet": make_kubelet(given),
        "network": make_network_section(given) if classic else make_nameservers(given),
        "install": make_install(given),
        "time": make_time(given) or None,
        "registries": (make_registries(given) or None) if classic else None,
        "systemDiskEncryption": make_encryption(given) or None,
        "features": _make_features(given),
        "kernel": {"modules": modules} if modules else None,
        "nodeLabels": given.labels or None,
    }


def _make_features(given: MachineInput) -> dict[str, Any]:
    classic = {"rbac": True, "stableHostname": True, "apidCheckExtKeyUsage": True}
    return {
        **({} if given.contract.has_hidden_features else classic),
        "diskQuotaSupport": True,
        "kubePrism": {"enabled": True, "port": KUBEPRISM_PORT},
        "hostDNS": {"enabled": True, "forwardKubeDNSToHost": True},
    }


def _list_machine_documents(given: MachineInput) -> list[dict[str, Any]]:
    bundle = given.bundle
    return [
        make_document("DiscoveryServiceConfig", name="default", endpoint="https://discovery.talos.dev/"),
        make_document(
            "DiscoveryIdentityConfig", clusterID=bundle.cluster_id, clusterSecret=bundle.cluster_secret
        ),
        *list_install_documents(given),
        make_document("SecurityProfileConfig", workloadIsolation=True),
        *(make_document("KernelModuleConfig", name=name) for name in given.node.kernel_modules),
    ]
