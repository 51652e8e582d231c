"""What Talos itself brings into a new Kubernetes: static pods, and the first manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from pvelab.kubernetes.record import timestamp
from pvelab.talos import kubernetes_settings as settings
from pvelab.talos.cluster_view import is_ready
from stackyard.base.documents.limits import LARGE
from stackyard.base.documents.yamltext import parse_yaml_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pvelab.kubernetes.client import ControllerClient
    from pvelab.talos.cluster_view import ClusterView
    from pvelab.talos.configuration import MachineConfig
    from pvelab.talos.machine import TalosMachine

__all__ = ["STATIC_PODS", "create_first_objects", "list_pods", "update_pods"]

STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_SYSTEM = "kube-system"
_TIER = "control-plane"
# The workloads whose pods the health check of Talos looks for: kind, name and label.
_WITH_PODS = (("daemonsets", "kube-proxy", "kube-proxy"), ("deployments", "coredns", "kube-dns"))
_PODS = f"/api/v1/namespaces/{_SYSTEM}/pods"


def list_pods(servers: Iterable[TalosMachine], view: ClusterView) -> dict[str, dict[str, Any]]:
    """Return the pods that are to run: the static ones, and those of the first workloads."""
    wanted = {}
    for machine in servers:
        if machine.config is not None:
            version = settings.server_version(machine.config, machine.version)
            for name in STATIC_PODS:
                image = f"registry.k8s.io/{name}:{version}"
                pod = _describe_pod(f"{name}-{machine.hostname}", name, image, machine.hostname)
                pod["metadata"]["labels"]["tier"] = _TIER
                pod["metadata"]["annotations"] = {"kubernetes.io/config.source": "file"}
                wanted[f"{name}-{machine.hostname}"] = pod
    ready = [name for name, node in view.nodes.items() if is_ready(node)]
    for kind, workload, app in _WITH_PODS:
        found = view.find_workload(kind, workload)
        count = 0 if found is None else len(ready) if kind == "daemonsets" else found[0]
        for number in range(count if ready else 0):
            node = ready[number % len(ready)]
            name = f"{workload}-{node}" if kind == "daemonsets" else f"{workload}-{number}"
            wanted[name] = _describe_pod(name, app, view.find_image(kind, workload), node)
    return wanted


async def update_pods(client: ControllerClient, wanted: Mapping[str, dict[str, Any]]) -> None:
    """Let these pods of kube-system run; those of machines that are away are not ready."""
    found = {pod["metadata"]["name"]: pod for pod in await client.list_items(_PODS)}
    for name, pod in wanted.items():
        if name not in found or _images(found[name]) != _images(pod):
            await client.apply(f"{_PODS}/{name}", pod)
        if not is_ready(found.get(name, {})):
            await client.set_status(f"{_PODS}/{name}", _describe_status(pod, ready=True))
    for name, pod in found.items():
        if name not in wanted and is_ready(pod) and _is_ours(pod):
            await client.set_status(f"{_PODS}/{name}", _describe_status(pod, ready=False))


def _is_ours(pod: Mapping[str, Any]) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return labels.get("tier") == _TIER or labels.get("k8s-app") in [app for *_, app in _WITH_PODS]


def _describe_status(pod: Mapping[str, Any], *, ready: bool) -> dict[str, Any]:
    now = timestamp()
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": now}
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "ready": ready,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for container in pod["spec"]["containers"]
    ]
    return {"phase": "Running", "conditions": [condition], "containerStatuses": containers}


def _describe_pod(name: str, app: str, image: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": _SYSTEM, "labels": {"k8s-app": app}},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "containers": [{"name": app, "image": image}],
            "tolerations": [{"operator": "Exists"}],
        },
    }


def _images(pod: Mapping[str, Any]) -> list[str]:
    return [str(container.get("image")) for container in pod["spec"].get("containers") or ()]


async def create_first_objects(client: ControllerClient, config: MachineConfig, version: str) -> None:
    """Create what the configuration wants at first, where it is missing; Talos changes nothing later."""
    for obj in _list_first_objects(config, version):
        path = await _find_path(client, obj)
        if path is not None and await client.find(f"{path}/{obj['metadata']['name']}") is None:
            await client.send("POST", path, obj)


def _list_first_objects(config: MachineConfig, version: str) -> Iterator[dict[str, Any]]:
    cluster = config.cluster
    plugin = str(_section(cluster, "network", "cni").get("name") or "flannel")
    if plugin == "flannel":
        volume = {"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}
        image = "ghcr.io/siderolabs/flannel:v0.27.4"
        yield _describe_workload("DaemonSet", "kube-flannel", image, hostNetwork=True, volumes=[volume])
    if not _section(cluster, "proxy").get("disabled"):
        image = str(_section(cluster, "proxy").get("image") or f"registry.k8s.io/kube-proxy:{version}")
        yield _describe_workload("DaemonSet", "kube-proxy", image, hostNetwork=True)
    if not _section(cluster, "coreDNS").get("disabled"):
        image = str(_section(cluster, "coreDNS").get("image") or "registry.k8s.io/coredns/coredns:v1.13.1")
        yield _describe_workload("Deployment", "coredns", image)
    for row in cluster.get("inlineManifests") or ():
        yield from _read_manifest(str(row.get("contents", "")))


def _read_manifest(text: str) -> Iterator[dict[str, Any]]:
    try:
        documents = [document for _, document in parse_yaml_documents(text, LARGE)]
    except yaml.YAMLError:
        # Talos logs it and continues with the others.
        return
    for document in documents:
        if isinstance(document, dict) and (document.get("metadata") or {}).get("name"):
            yield document


def _describe_workload(kind: str, name: str, image: str, **pod: Any) -> dict[str, Any]:
    labels = {"k8s-app": {"coredns": "kube-dns", "kube-flannel": "flannel"}.get(name, name)}
    replicas = {"replicas": 2} if kind == "Deployment" else {}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": name, "image": image}], **pod},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": _SYSTEM, "labels": labels},
        "spec": {**replicas, "selector": {"matchLabels": labels}, "template": template},
    }


async def _find_path(client: ControllerClient, obj: Mapping[str, Any]) -> str | None:
    """Return the path of the collection that an object is in, None for a kind that is not served."""
    version = str(obj.get("apiVersion", ""))
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    for row in (await client.find(prefix) or {}).get("resources") or ():
        if row.get("kind") == obj.get("kind") and "/" not in row["name"]:
            namespace = obj["metadata"].get("namespace") or "default"
            inside = f"/namespaces/{namespace}" if row["namespaced"] else ""
            return f"{prefix}{inside}/{row['name']}"
    return None


def _section(cluster: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found: Any = cluster
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
