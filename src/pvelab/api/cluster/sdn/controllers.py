"""Controllers: `/cluster/sdn/controllers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.api.cluster.sdn.objects import CONTROLLERS, ZONES
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.sections import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = [
    "create_controller",
    "delete_controller",
    "list_controllers",
    "read_controller",
    "update_controller",
]

_ROUTE_MAPS = frozenset(("route-map-in", "route-map-out"))
_KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="evpn",
            required=frozenset(("asn",)),
            optional=_ROUTE_MAPS
            | {"peers", "fabric", "bgp-mode", "nodes", "peer-group-name", "ebgp-multihop", "loopback"},
        ),
        Kind(
            name="bgp",
            required=frozenset(("node", "asn", "peers")),
            optional=_ROUTE_MAPS | {"bgp-multipath-as-path-relax", "ebgp", "ebgp-multihop", "loopback"},
        ),
        Kind(
            name="isis",
            required=frozenset(("isis-domain", "isis-net", "isis-ifaces", "node")),
            optional=frozenset(("loopback",)),
        ),
        Kind(name="faucet"),
    )
}


@route("GET /cluster/sdn/controllers")
def list_controllers(call: Call) -> Any:
    """List the controllers that the caller may see."""
    return CONTROLLERS.visible(call)


@route("GET /cluster/sdn/controllers/{controller}")
def read_controller(call: Call) -> Any:
    """Read one controller."""
    return CONTROLLERS.read(call, call.params["controller"])


@route("POST /cluster/sdn/controllers")
def create_controller(call: Call) -> Any:
    """Write a new controller."""
    with CONTROLLERS.creating(call, _KINDS) as (ident, section):
        _write(call, ident, section)


@route("PUT /cluster/sdn/controllers/{controller}")
def update_controller(call: Call) -> Any:
    """Change a controller."""
    with CONTROLLERS.updating(call, _KINDS) as (ident, _, section):
        _write(call, ident, section)


@route("DELETE /cluster/sdn/controllers/{controller}")
def delete_controller(call: Call) -> Any:
    """Remove a controller that no zone uses."""
    ident = call.params["controller"]
    with change_sdn(call, "delete sdn controller object failed"):
        section = CONTROLLERS.require(call.store, ident)
        for zone, settings_of_zone in ZONES.file(call.store).all().items():
            if section["type"] in ("evpn", "bgp") and settings_of_zone.get("controller") == ident:
                raise PveError(f"controller {ident} is used by {zone}")
        CONTROLLERS.file(call.store).remove(ident)


def _write(call: Call, ident: str, section: Mapping[str, Any]) -> None:
    others = [
        other
        for name, other in CONTROLLERS.file(call.store).all().items()
        if name != ident and other["type"] == section["type"]
    ]
    if section["type"] == "evpn":
        if others:
            raise PveError("only 1 global evpn controller can be defined")
        if bool(section.get("peers")) == bool(section.get("fabric")):
            raise PveError("must have exactly one of peers / fabric defined")
    # Proxmox counts only those of the node that answers, and lets one too many through.
    here = [other for other in others if other.get("node") == call.world.cluster.local()]
    if section["type"] == "bgp" and len(here) > 1:
        raise PveError("only 1 bgp controller can be defined")
    if section["type"] == "isis" and len(here) > 1:
        raise PveError("only 1 bgp or isis controller can be defined")
    CONTROLLERS.file(call.store).put(ident, section)
