"""What a controller manager, a scheduler and kubelets do: nodes join, and workloads roll out on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.kubernetes.problems import KubeStatusError
from pvelab.kubernetes.record import timestamp

if TYPE_CHECKING:
    from pvelab.kubernetes.client import ControllerClient

__all__ = ["LabNode", "finish_namespaces", "join_nodes", "roll_out"]

# Where every network plugin puts its program or its configuration on a node.
_PLUGIN_FOLDERS = ("/opt/cni/bin", "/etc/cni/net.d", "/etc/cni")
_SYSTEM = "Talos"
_NOT_READY = "container runtime network not ready: cni plugin not initialized"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabNode:
    """A machine that joins a cluster.

    Attributes:
        name: Its name.
        address: Its address.
        is_control_plane: Whether the API runs on it.
        version: Which kubelet it has.
        system: What its system calls itself.
        labels: More labels of it.
        taints: What keeps workloads away from it.
    """

    name: str
    address: str = "10.0.0.1"
    is_control_plane: bool = False
    version: str = "v1.36.3"
    system: str = _SYSTEM
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[tuple[str, str, str], ...] = ()


async def join_nodes(client: ControllerClient, nodes: tuple[LabNode, ...]) -> None:
    """Let nodes join; they are ready once a network plugin is applied, until they are no longer there."""
    has_network = await _has_network(client)
    known = {node["metadata"]["name"]: node for node in await client.list_items("/api/v1/nodes")}
    for node in nodes:
        path = f"/api/v1/nodes/{node.name}"
        wanted = _describe_node(node)
        found = known.pop(node.name, None)
        if found is None or not _has_all(found, wanted, is_ready=has_network):
            found = await client.apply(path, wanted)
        status = _describe_status(node, has_network=has_network)
        if _facts(found.get("status") or {}) != _facts(status):
            await client.set_status(path, status)
    for name, other in known.items():
        system = str(((other.get("status") or {}).get("nodeInfo") or {}).get("osImage", ""))
        if system.startswith(_SYSTEM) and _ready(other) != "Unknown":
            await client.set_status(f"/api/v1/nodes/{name}", {"conditions": [_condition("Unknown")]})


def _has_all(found: dict[str, Any], wanted: dict[str, Any], *, is_ready: bool) -> bool:
    labels = (found["metadata"].get("labels") or {}).items() >= wanted["metadata"]["labels"].items()
    taints = (found.get("spec") or {}).get("taints") or []
    # kube-apiserver adds this one to every new node.
    is_stale = is_ready and any(taint["key"] == "node.kubernetes.io/not-ready" for taint in taints)
    return labels and not is_stale and all(taint in taints for taint in wanted["spec"]["taints"])


def _facts(status: dict[str, Any]) -> tuple[Any, ...]:
    """Return what of the status of a node is no point in time."""
    return _ready({"status": status}), status.get("addresses"), status.get("nodeInfo")


async def _has_network(client: ControllerClient) -> bool:
    found = await client.list_items("/apis/apps/v1/daemonsets")
    return any(_is_network_plugin(obj) for obj in found)


def _is_network_plugin(daemon_set: dict[str, Any]) -> bool:
    spec = daemon_set.get("spec", {}).get("template", {}).get("spec", {})
    paths = [(volume.get("hostPath") or {}).get("path", "") for volume in spec.get("volumes") or ()]
    return any(path.rstrip("/") in _PLUGIN_FOLDERS for path in paths)


def _describe_node(node: LabNode) -> dict[str, Any]:
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        **dict(node.labels),
    }
    if node.is_control_plane:
        labels["node-role.kubernetes.io/control-plane"] = ""
    taints = [
        {"key": key, "effect": effect, **({"value": value} if value else {})}
        for key, value, effect in node.taints
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "spec": {"taints": taints},
    }


def _condition(ready: str) -> dict[str, str]:
    reason, message = {
        "True": ("KubeletReady", "kubelet is posting ready status"),
        "False": ("KubeletNotReady", _NOT_READY),
        "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
    }[ready]
    now = timestamp()
    row = {"type": "Ready", "status": ready, "reason": reason, "message": message}
    return {**row, "lastHeartbeatTime": now, "lastTransitionTime": now}


def _describe_status(node: LabNode, *, has_network: bool) -> dict[str, Any]:
    return {
        "conditions": [_condition("True" if has_network else "False")],
        "addresses": [
            {"type": "InternalIP", "address": node.address},
            {"type": "Hostname", "address": node.name},
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "lab",
            "containerRuntimeVersion": "containerd://2.1.5",
            "kernelVersion": "6.12.0-talos",
            "kubeProxyVersion": "",
            "kubeletVersion": node.version,
            "machineID": node.name,
            "operatingSystem": "linux",
            "osImage": node.system,
            "systemUUID": node.name,
        },
    }


def _ready(obj: dict[str, Any]) -> str:
    rows = (obj.get("status") or {}).get("conditions") or ()
    return next((str(row.get("status")) for row in rows if row.get("type") == "Ready"), "")


async def roll_out(client: ControllerClient) -> None:
    """Let workloads roll out on the nodes that are there: those with the host's network before any other."""
    nodes = await client.list_items("/api/v1/nodes")
    ready = [node for node in nodes if _ready(node) == "True"]
    for plural in ("deployments", "statefulsets", "daemonsets"):
        for obj in await client.list_items(f"/apis/apps/v1/{plural}"):
            spec = obj["spec"]
            is_on_host = spec.get("template", {}).get("spec", {}).get("hostNetwork")
            running = len(nodes if is_on_host else ready)
            status = _describe_rollout(obj, plural, running, len(nodes))
            if any((obj.get("status") or {}).get(key, 0) != value for key, value in status.items()):
                metadata = obj["metadata"]
                path = f"/apis/apps/v1/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"
                await client.set_status(path, status)


def _describe_rollout(obj: dict[str, Any], plural: str, running: int, nodes: int) -> dict[str, int]:
    observed = int(obj["metadata"].get("generation", 1))
    if plural == "daemonsets":
        return {
            "observedGeneration": observed,
            "desiredNumberScheduled": nodes,
            "currentNumberScheduled": nodes,
            "updatedNumberScheduled": nodes,
            "numberAvailable": running,
            "numberReady": running,
            "numberMisscheduled": 0,
        }
    replicas = int(obj["spec"].get("replicas", 1))
    ready = replicas if running else 0
    found = {
        "observedGeneration": observed,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    return found


async def finish_namespaces(client: ControllerClient) -> None:
    """Let namespaces that are being deleted go, with what is in them."""
    for namespace in await client.list_items("/api/v1/namespaces"):
        metadata = namespace["metadata"]
        if "deletionTimestamp" not in metadata:
            continue
        for prefix in await _list_collections(client):
            try:
                await client.send("DELETE", f"{prefix[0]}/namespaces/{metadata['name']}/{prefix[1]}")
            except KubeStatusError as problem:
                if problem.code not in (404, 405):
                    raise
        final = {**namespace, "spec": {"finalizers": []}}
        try:
            await client.send("PUT", f"/api/v1/namespaces/{metadata['name']}/finalize", final)
        except KubeStatusError as problem:
            if problem.code not in (404, 409):
                raise


async def _list_collections(client: ControllerClient) -> list[tuple[str, str]]:
    """Return the path and the plural of every kind that is in namespaces."""
    prefixes = ["/api/v1"]
    for group in (await client.send("GET", "/apis")).get("groups") or ():
        prefixes += [f"/apis/{row['groupVersion']}" for row in group["versions"][:1]]
    found: list[tuple[str, str]] = []
    for prefix in prefixes:
        for row in (await client.find(prefix) or {}).get("resources") or ():
            if row.get("namespaced") and "deletecollection" in (row.get("verbs") or ()):
                found.append((prefix, str(row["name"])))
    return found
