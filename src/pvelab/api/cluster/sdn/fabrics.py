"""Fabrics: `/cluster/sdn/fabrics`, OpenFabric and OSPF."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import list_pending, read_applied
from pvelab.api.cluster.sdn.fabric_nodes import list_visible_nodes
from pvelab.api.cluster.sdn.fabric_rules import (
    DELETABLE,
    FABRIC_SETTINGS,
    FABRICS,
    NODES,
    check_area,
    check_fabrics,
    check_protocol,
    require_fabric,
)
from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.api.cluster.sdn.objects import CONTROLLERS, ZONES
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.digests import digest_of
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Store

__all__ = [
    "create_fabric",
    "delete_fabric",
    "index_fabrics",
    "list_everything",
    "list_fabrics",
    "read_fabric",
    "update_fabric",
]

# The versions of the networks of a fabric.
_PREFIXES = {"ip_prefix": 4, "ip6_prefix": 6}
_FLAG: Mapping[str, Any] = {"type": "boolean", "optional": 1}
# The declared API says nothing of what these arrays hold, as it depends on the protocol.
_ARRAY: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}, "optional": 1}


@route("GET /cluster/sdn/fabrics")
def index_fabrics(_call: Call) -> Any:
    """List what there is of fabrics."""
    return [{"subdir": name} for name in ("fabric", "node", "all")]


@route("GET /cluster/sdn/fabrics/all")
def list_everything(call: Call) -> Any:
    """List fabrics and nodes together."""
    return {"fabrics": _list_visible_fabrics(call), "nodes": list_visible_nodes(call, None)}


@route("GET /cluster/sdn/fabrics/fabric")
def list_fabrics(call: Call) -> Any:
    """List the fabrics that the caller may see."""
    return _list_visible_fabrics(call)


# Proxmox lets this call have any other parameter; clients send these two.
@route("GET /cluster/sdn/fabrics/fabric/{id}", extra={"pending": _FLAG, "running": _FLAG})
def read_fabric(call: Call) -> Any:
    """Read one fabric as written."""
    return {**require_fabric(call.store, call.params["id"]), "digest": fabrics_digest(call.store)}


@route("POST /cluster/sdn/fabrics/fabric", extra={"redistribute": _ARRAY})
def create_fabric(call: Call) -> Any:
    """Write a new fabric."""
    ident, protocol = call.params["id"], call.params["protocol"]
    check_protocol(protocol)
    given = _settings(call, protocol)
    # Only a new fabric gets its networks without host bits; a change keeps them as they are given.
    given |= {key: str(ipaddress.ip_network(given[key], strict=False)) for key in _PREFIXES if key in given}
    with change_sdn(call, "adding fabric failed"):
        check_digest(fabrics_digest(call.store), call.params.get("digest"))
        if call.store.get(FABRICS, ident) is not None:
            raise PveError(f"fabric '{ident}' already exists in config")
        if protocol == "ospf" and "area" not in given:
            raise PveError("missing field `area`")
        call.store.put(FABRICS, ident, {"id": ident, "protocol": protocol, **given})
        check_fabrics(call.store)


@route("PUT /cluster/sdn/fabrics/fabric/{id}", extra={"redistribute": _ARRAY, "delete": _ARRAY})
def update_fabric(call: Call) -> Any:
    """Change a fabric."""
    ident, protocol = call.params["id"], call.params["protocol"]
    check_protocol(protocol)
    given = _settings(call, protocol)
    for name in call.params.get("delete", ()):
        if name not in DELETABLE[protocol]:
            allowed = ", ".join(sorted(DELETABLE[protocol]))
            text = f"value '{name}' does not have a value in the enumeration '{allowed}'"
            raise bad_parameter("delete", text)
    with change_sdn(call, "updating fabric failed"):
        check_digest(fabrics_digest(call.store), call.params.get("digest"))
        old = require_fabric(call.store, ident)
        if old["protocol"] != protocol:
            raise PveError("node has a different protocol than the referenced fabric")
        removed = set(call.params.get("delete", ()))
        section = {key: value for key, value in {**old, **given}.items() if key not in removed}
        call.store.put(FABRICS, ident, section)
        check_fabrics(call.store)


@route("DELETE /cluster/sdn/fabrics/fabric/{id}")
def delete_fabric(call: Call) -> Any:
    """Remove a fabric with its nodes, unless a controller or zone depends on it."""
    ident = call.params["id"]
    with change_sdn(call, "deleting fabric failed"):
        require_fabric(call.store, ident)
        nodes = {key: node for key, node in call.store.items(NODES).items() if node["fabric_id"] == ident}
        for node in nodes.values():
            if not call.may(f"/nodes/{node['node_id']}", "Sys.Modify"):
                raise PveError(f"permission check failed: missing 'Sys.Modify' on node {node['node_id']}")
        for name, controller in CONTROLLERS.file(call.store).all().items():
            if controller["type"] == "evpn" and controller.get("fabric") == ident:
                raise PveError(f'this fabric is still used in the EVPN controller "{name}"')
        for name, zone in ZONES.file(call.store).all().items():
            if zone["type"] == "vxlan" and zone.get("fabric") == ident:
                raise PveError(f'this fabric is still used in the VXLAN zone "{name}"')
        for key in nodes:
            call.store.delete(NODES, key)
        call.store.delete(FABRICS, ident)


def fabrics_digest(store: Store) -> str:
    """Return the digest of all fabrics and their nodes."""
    return digest_of(dict(store.items(FABRICS)), dict(store.items(NODES)))


def _list_visible_fabrics(call: Call) -> list[dict[str, Any]]:
    written, in_force = call.store.items(FABRICS), read_applied(call.store, "fabrics")
    found: Mapping[str, Mapping[str, Any]] = written
    if call.params.get("pending"):
        found = list_pending(written, in_force)
    elif call.params.get("running"):
        found = in_force
    digest = {} if call.params.get("running") else {"digest": fabrics_digest(call.store)}
    return [
        {**fabric, **digest}
        for ident, fabric in found.items()
        if call.may(f"/sdn/fabrics/{ident}", "SDN.Audit", "SDN.Allocate", any_of=True)
    ]


def _settings(call: Call, protocol: str) -> dict[str, Any]:
    given = {key: value for key, value in call.params.items() if key in FABRIC_SETTINGS[protocol]}
    for key, version in _PREFIXES.items():
        if key in given:
            prefix = ipaddress.ip_interface(given[key])
            if prefix.version != version:
                raise PveError(f"invalid {key} '{given[key]}': not an IPv{version} network")
            given[key] = str(prefix)
    if "area" in given:
        check_area(str(given["area"]))
    return given
