"""Nodes of fabrics: `/cluster/sdn/fabrics/node`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import list_pending, read_applied
from pvelab.api.cluster.sdn.fabric_rules import (
    FABRICS,
    NODES,
    check_fabrics,
    check_protocol,
    normalize_interface,
    require_fabric,
)
from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.digests import digest_of
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = [
    "create_node",
    "delete_node",
    "list_fabric_nodes",
    "list_nodes",
    "list_visible_nodes",
    "read_node",
    "update_node",
]

_FLAG: Mapping[str, Any] = {"type": "boolean", "optional": 1}
_ARRAY: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}, "optional": 1}
_DELETABLE = ("interfaces", "ip", "ip6")


@route("GET /cluster/sdn/fabrics/node")
def list_nodes(call: Call) -> Any:
    """List the nodes of all fabrics."""
    return list_visible_nodes(call, None)


@route("GET /cluster/sdn/fabrics/node/{fabric_id}")
def list_fabric_nodes(call: Call) -> Any:
    """List the nodes of one fabric."""
    require_fabric(call.store, call.params["fabric_id"])
    return list_visible_nodes(call, call.params["fabric_id"])


# Proxmox lets this call have any other parameter; clients send these two.
@route("GET /cluster/sdn/fabrics/node/{fabric_id}/{node_id}", extra={"pending": _FLAG, "running": _FLAG})
def read_node(call: Call) -> Any:
    """Read one node of a fabric as written."""
    return {**_require(call), "digest": _digest(call)}


@route("POST /cluster/sdn/fabrics/node/{fabric_id}", extra={"interfaces": _ARRAY})
def create_node(call: Call) -> Any:
    """Add a node to a fabric."""
    fabric_id, node_id, protocol = (call.params[key] for key in ("fabric_id", "node_id", "protocol"))
    check_protocol(protocol)
    given = _settings(call, protocol)
    with change_sdn(call, "adding node failed"):
        check_digest(_digest(call), call.params.get("digest"))
        if require_fabric(call.store, fabric_id)["protocol"] != protocol:
            raise PveError("node has a different protocol than the referenced fabric")
        key = f"{fabric_id}_{node_id}"
        if call.store.get(NODES, key) is not None:
            raise PveError(f"node '{node_id}' already exists in config for fabric {fabric_id}")
        identity = {"fabric_id": fabric_id, "node_id": node_id, "protocol": protocol, "interfaces": []}
        call.store.put(NODES, key, {**identity, **given})
        check_fabrics(call.store)


@route("PUT /cluster/sdn/fabrics/node/{fabric_id}/{node_id}", extra={"interfaces": _ARRAY, "delete": _ARRAY})
def update_node(call: Call) -> Any:
    """Change a node of a fabric."""
    protocol = call.params["protocol"]
    check_protocol(protocol)
    given = _settings(call, protocol)
    for name in call.params.get("delete", ()):
        if name not in _DELETABLE:
            text = f"value '{name}' does not have a value in the enumeration '{', '.join(_DELETABLE)}'"
            raise bad_parameter("delete", text)
    with change_sdn(call, "updating node failed"):
        check_digest(_digest(call), call.params.get("digest"))
        old = _require(call)
        if old["protocol"] != protocol:
            raise PveError("node has a different protocol than the referenced fabric")
        removed = set(call.params.get("delete", ()))
        node = {key: value for key, value in {**old, **given}.items() if key not in removed}
        call.store.put(NODES, f"{old['fabric_id']}_{old['node_id']}", {"interfaces": [], **node})
        check_fabrics(call.store)


@route("DELETE /cluster/sdn/fabrics/node/{fabric_id}/{node_id}")
def delete_node(call: Call) -> Any:
    """Take a node out of a fabric."""
    with change_sdn(call, "deleting node failed"):
        node = _require(call)
        call.store.delete(NODES, f"{node['fabric_id']}_{node['node_id']}")


def list_visible_nodes(call: Call, fabric: str | None) -> list[dict[str, Any]]:
    """Return the nodes of a fabric, or of all, that the call asks for and the caller may see."""
    written, in_force = call.store.items(NODES), read_applied(call.store, "fabric_nodes")
    found: Mapping[str, Mapping[str, Any]] = written
    if call.params.get("pending"):
        found = list_pending(written, in_force)
    elif call.params.get("running"):
        found = in_force
    digest = {} if call.params.get("running") else {"digest": _digest(call)}
    rows = []
    for key, entry in found.items():
        node = in_force.get(key) or written[key]
        if fabric in (None, node["fabric_id"]) and _may_see(call, node):
            rows.append({**entry, **digest})
    return rows


def _may_see(call: Call, node: Document) -> bool:
    return call.may(
        f"/sdn/fabrics/{node['fabric_id']}", "SDN.Audit", "SDN.Allocate", any_of=True
    ) and call.may(f"/nodes/{node['node_id']}", "Sys.Audit", "Sys.Modify", any_of=True)


def _require(call: Call) -> Document:
    fabric_id, node_id = call.params["fabric_id"], call.params["node_id"]
    require_fabric(call.store, fabric_id)
    found = call.store.get(NODES, f"{fabric_id}_{node_id}")
    if found is None:
        raise PveError(f"node '{node_id}' does not exist in fabric '{fabric_id}'")
    return found


def _digest(call: Call) -> str:
    return digest_of(dict(call.store.items(FABRICS)), dict(call.store.items(NODES)))


def _settings(call: Call, protocol: str) -> dict[str, Any]:
    given = {key: call.params[key] for key in ("ip", "ip6") if key in call.params}
    if "interfaces" in call.params:
        given["interfaces"] = [normalize_interface(protocol, text) for text in call.params["interfaces"]]
    return given
