"""The network of a cluster: Cilium by default, or any other plugin from the user's manifests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import process
from stackyard.base.errors import InvalidInputError
from stackyard.clients.kubernetes import parse_manifests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.clients.kubernetes import KubernetesObject

__all__ = ["HelmChart", "NoNetworkError", "make_cilium", "render_chart"]

_RENDERED_S = 120.0
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
        "Put `helm` on PATH, or give the manifests of the network plugin as a file; nothing was changed."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HelmChart:
    """A chart, and the values that it is rendered with.

    Attributes:
        release: The name of the release.
        chart: The chart: a name in `repository`, a folder, an archive, or an `oci://` address.
        namespace: Where its objects are.
        repository: The address of the chart's repository, where it needs one.
        version: The version of the chart; empty takes the newest.
        values: The values; they may be secret and go to helm's standard input.
    """

    release: str
    chart: str
    namespace: str
    repository: str = ""
    version: str = ""
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)


def make_cilium(*, version: str, values: Mapping[str, Any] | None = None) -> HelmChart:
    """Return the chart of Cilium for a Talos cluster without kube-proxy.

    Args:
        version: The version of Cilium.
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
    }
    return HelmChart(
        release="cilium",
        chart="cilium",
        namespace="kube-system",
        repository="https://helm.cilium.io",
        version=version,
        values=_merge(ours, values or {}),
    )


async def render_chart(helm: Path | None, chart: HelmChart) -> tuple[KubernetesObject, ...]:
    """Let helm render a chart; nothing is installed by it.

    Args:
        helm: The program; None if there is none.
        chart: The chart.

    Raises:
        NoNetworkError: There is no helm.
        ProcessFailedError: helm refuses the chart, with its words.
        ManifestError: What it rendered is no manifest.
    """
    if helm is None:
        raise NoNetworkError(f"The chart {chart.chart} needs `helm`, which is not installed.")
    options = [
        *(("--repo", chart.repository) if chart.repository else ()),
        *(("--version", chart.version) if chart.version else ()),
    ]
    argv = (str(helm), "template", chart.release, chart.chart, "--namespace", chart.namespace, *options)
    command = process.Command(
        argv=(*argv, "--include-crds", "--values", "-"),
        env=process.environment(),
        stdin=orjson.dumps(chart.values),
        timeout_s=_RENDERED_S,
    )
    completed = await process.run(command)
    return tuple(
        _place(obj, chart.namespace) for obj in parse_manifests(completed.stdout, f"the chart {chart.chart}")
    )


# Of what charts make, only these are in no namespace; helm itself would ask the cluster.
_CLUSTER_WIDE = frozenset(
    (
        "APIService",
        "CSIDriver",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "GatewayClass",
        "IngressClass",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    )
)


def _place(obj: KubernetesObject, namespace: str) -> KubernetesObject:
    """Give an object the namespace of its release, as `helm install` does."""
    metadata = obj["metadata"]
    if metadata.get("namespace") or obj.get("kind") in _CLUSTER_WIDE:
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def _merge(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(ours)
    for key, value in theirs.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
