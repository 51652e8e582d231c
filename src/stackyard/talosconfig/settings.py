"""Choices for the machine configurations of a cluster: network plugin, mirrors, labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.cluster.model import Cluster, ClusterNode
    from stackyard.talosconfig.bundle import SecretsBundle
    from stackyard.talosconfig.contract import TalosContract

__all__ = ["KUBERNETES_PORT", "MachineInput", "MachineSettings", "make_document", "read_settings"]

KUBERNETES_PORT = 6443


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSettings:
    """Choices for all nodes of a cluster; the defaults are those of a cluster with Cilium.

    Attributes:
        cni: `none`, where a network plugin is installed later, or `flannel`, which Talos brings.
        has_kube_proxy: Whether Talos runs kube-proxy.
        registry_mirrors: Mirrors by the registry that they stand for: `docker.io` to addresses.
        node_labels: Labels of Kubernetes nodes, by the name of the node.
    """

    cni: str = "none"
    has_kube_proxy: bool = False
    registry_mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    node_labels: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))


def read_settings(cluster: Cluster) -> MachineSettings:
    """Return the settings that the files of a cluster give: `registry_mirrors` and `node_labels`."""
    return MachineSettings(
        registry_mirrors=cluster.registry_mirrors,
        node_labels={node.name: node.labels for node in cluster.nodes if node.labels},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineInput:
    """Everything that the configuration of one node is made of.

    Attributes:
        cluster: The cluster.
        node: The node.
        bundle: The secrets of the cluster.
        settings: Choices for all nodes.
        contract: The form of the configuration.
        patched_kinds: The kinds of documents that patches of the node have.
    """

    cluster: Cluster
    node: ClusterNode
    bundle: SecretsBundle
    settings: MachineSettings
    contract: TalosContract
    patched_kinds: frozenset[str] = frozenset()

    def has_document(self, kind: str) -> bool:
        """Tell whether name servers or time servers are a document.

        Up to Talos 1.13 they are sections, to which the patches of most repositories add, unless a patch has
        the document: Talos refuses a configuration with both.
        """
        return self.contract.has_kubernetes_documents or kind in self.patched_kinds

    @property
    def endpoint(self) -> str:
        """The address of the Kubernetes API."""
        return f"https://{self.cluster.network.api_addr}:{KUBERNETES_PORT}"

    @property
    def names(self) -> list[str]:
        """The names that certificates of the Kubernetes API and of Talos have beyond those of the node."""
        network = self.cluster.network
        return list(dict.fromkeys(("127.0.0.1", str(network.api_addr), *network.api_tls_sans)))

    @property
    def virtual_address(self) -> str | None:
        """The address that control planes share; None where it is the own address of a node."""
        address = self.cluster.network.api_addr
        if not self.node.is_controller or any(node.address == address for node in self.cluster.nodes):
            return None
        return str(address)

    @property
    def is_scheduling_allowed(self) -> bool:
        """Whether control planes run ordinary workloads: only where there are no workers."""
        return not self.cluster.workers

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the node in Kubernetes."""
        own = (
            {"node.kubernetes.io/exclude-from-external-load-balancers": ""} if self.node.is_controller else {}
        )
        return {**own, **self.settings.node_labels.get(self.node.name, {})}

    def image(self, component: str) -> str:
        """Return the image of a component of Kubernetes."""
        registry = "ghcr.io/siderolabs" if component == "kubelet" else "registry.k8s.io"
        return f"{registry}/{component}:v{self.cluster.kubernetes_version}"


def make_document(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a document beside the main one."""
    return {"apiVersion": "v1alpha1", "kind": kind, **fields}
