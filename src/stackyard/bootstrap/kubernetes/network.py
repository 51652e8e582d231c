"""The network of a cluster: Cilium by default, or any other plugin from the user's manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import InvalidInputError
from stackyard.bootstrap.kubernetes.helm import HelmChart, merge_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.talosconfig.documents import Patch

__all__ = ["CILIUM_VERSION", "NoNetworkError", "TwoNetworksError", "find_own_network", "make_cilium"]

# What a cluster gets that names no version, so that a rerun does not upgrade its network.
CILIUM_VERSION = "1.18.4"
# The local balancer of Talos in front of the API servers, which is there before any network.
_KUBEPRISM_PORT = 7445
# What Cilium's agent needs on Talos, which does not let pods load modules.
_AGENT = (
    "CHOWN",
    "KILL",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "SYS_ADMIN",
    "SYS_RESOURCE",
    "DAC_OVERRIDE",
    "FOWNER",
    "SETGID",
    "SETUID",
)
_CLEANER = ("NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE")


class NoNetworkError(InvalidInputError):
    """Nothing says which network the cluster gets, or nothing can render it."""

    code = "E-CLUSTER-NETWORK"
    summary = "The network of the cluster cannot be rendered"
    default_remedy = (
        "Put `helm` on PATH, or give the manifests of the network plugin as a file (`network.manifests` in "
        "bootstrap.yaml), or say `network: none`; nothing was changed."
    )


class TwoNetworksError(InvalidInputError):
    """The machine configuration brings a network plugin, and the cluster would get another one."""

    code = "E-CLUSTER-NETWORK-TWICE"
    summary = "The cluster would get two network plugins"
    default_remedy = "Say `network: none` in bootstrap.yaml, or remove the patch; nothing was changed."


def find_own_network(patches: Iterable[Patch]) -> str:
    """Return the network plugin that Talos itself brings by the user's patches; empty for none."""
    found = ""
    for patch in patches:
        if patch.data.get("kind") == "KubeFlannelCNIConfig" and "$patch" not in patch.data:
            found = "flannel"
        part: Any = patch.data
        for key in ("cluster", "network", "cni", "name"):
            part = part.get(key) if isinstance(part, Mapping) else None
        if isinstance(part, str):
            found = "" if part == "none" else part
    return found


def make_cilium(*, version: str = "", values: Mapping[str, Any] | None = None) -> HelmChart:
    """Return the chart of Cilium for a Talos cluster without kube-proxy.

    Args:
        version: The version of Cilium; `CILIUM_VERSION` when absent.
        values: The user's own values, which win over ours; mappings are merged.
    """
    ours: dict[str, Any] = {
        "ipam": {"mode": "kubernetes"},
        "kubeProxyReplacement": True,
        "k8sServiceHost": "localhost",
        "k8sServicePort": _KUBEPRISM_PORT,
        "securityContext": {
            "capabilities": {"ciliumAgent": list(_AGENT), "cleanCiliumState": list(_CLEANER)}
        },
        "cgroup": {"autoMount": {"enabled": False}, "hostRoot": "/sys/fs/cgroup"},
        # Its chart makes new certificates with each rendering: a second run would change the cluster.
        "hubble": {"enabled": False},
    }
    return HelmChart(
        release="cilium",
        chart="cilium",
        namespace="kube-system",
        repository="https://helm.cilium.io",
        version=version or CILIUM_VERSION,
        values=merge_values(ours, values or {}),
    )
