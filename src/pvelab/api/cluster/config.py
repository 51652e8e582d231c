"""What the cluster is made of: the index of `/cluster`, and `/cluster/config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.guests.guests import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["list_nodes", "read_join_information", "read_totem", "read_version", "show_cluster", "show_config"]

_FOLDERS = (
    *("acme", "backup", "backup-info", "bulk-action", "ceph", "config", "firewall", "ha", "jobs", "log"),
    *("mapping", "metrics", "notifications", "nextid", "options", "qemu", "replication", "resources"),
    *("status", "tasks", "sdn"),
)
_JOIN_VERSION = 1


@route("GET /cluster")
def show_cluster(_call: Call) -> Any:
    """List the folders."""
    return [{"name": name} for name in _FOLDERS]


@route("GET /cluster/config")
def show_config(_call: Call) -> Any:
    """List the folders."""
    return [{"name": name} for name in ("nodes", "totem", "join", "qdevice", "apiversion")]


@route("GET /cluster/config/apiversion")
def read_version(_call: Call) -> Any:
    """Answer which way of joining this release has."""
    return _JOIN_VERSION


@route("GET /cluster/config/nodes")
def list_nodes(call: Call) -> Any:
    """List the nodes as Corosync knows them; a node alone does not run it."""
    return [{**node, "node": node["name"]} for node in _members(call)]


@route("GET /cluster/config/totem")
def read_totem(call: Call) -> Any:
    """Answer the settings of Corosync's protocol."""
    return _totem(call) if _members(call) else None


@route("GET /cluster/config/join")
def read_join_information(call: Call) -> Any:
    """Answer what another node would need to join."""
    members = _members(call)
    if not members:
        raise PveError("node is not in a cluster, no join info available!", status=424)
    node = call.params.get("node", call.world.cluster.local())
    if node not in call.world.cluster.nodes():
        raise PveError(f"unknown node '{node}'")
    rows = []
    for member in members:
        known = call.world.cluster.nodes()[member["name"]]
        rows.append({**member, "pve_addr": known["ip"], "pve_fp": known.get("fingerprint", "")})
    totem = _totem(call)
    return {
        "nodelist": rows,
        "preferred_node": node,
        "totem": totem,
        "config_digest": digest_of(members, totem),
    }


@route("GET /cluster/config/qdevice")
def read_qdevice(_call: Call) -> Any:
    """Answer the state of a device that votes for the cluster: there is none, and Proxmox says it so."""
    return {}


def _members(call: Call) -> list[Mapping[str, str]]:
    nodes = call.world.cluster.nodes()
    if len(nodes) == 1:
        return []
    return [
        {
            "name": name,
            "nodeid": str(node["nodeid"]),
            "quorum_votes": "1",
            "ring0_addr": str(node["ip"]),
        }
        for name, node in nodes.items()
    ]


def _totem(call: Call) -> dict[str, Any]:
    return {
        "version": "2",
        "cluster_name": call.world.cluster.name,
        "config_version": str(len(call.world.cluster.nodes())),
        "interface": {"0": {"linknumber": "0"}},
        "ip_version": "ipv4-6",
        "link_mode": "passive",
        "secauth": "on",
    }
