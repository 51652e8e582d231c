"""Zones: `/cluster/sdn/zones`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.api.cluster.sdn.objects import CONTROLLERS, SUBNETS, VNETS, ZONES
from pvelab.api.cluster.sdn.services import DNS, IPAMS
from pvelab.server.problems import PveError, bad_parameter, bad_parameters
from pvelab.server.routing import route
from pvelab.world.generate import DEFAULT_MAC_PREFIX, mac_address
from pvelab.world.sections import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["create_zone", "delete_zone", "list_zones", "read_zone", "update_zone"]

_COMMON = frozenset(("nodes", "mtu", "dns", "reversedns", "dnszone", "ipam"))
_KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="simple", optional=_COMMON | {"dhcp"}),
        Kind(
            name="vlan", required=frozenset(("bridge",)), optional=_COMMON | {"bridge-disable-mac-learning"}
        ),
        Kind(
            name="qinq",
            required=frozenset(("tag", "bridge")),
            optional=_COMMON | {"bridge-disable-mac-learning", "vlan-protocol"},
        ),
        Kind(name="vxlan", optional=_COMMON | {"peers", "vxlan-port", "fabric"}),
        Kind(
            name="evpn",
            required=frozenset(("vrf-vxlan", "controller")),
            optional=_COMMON
            | {
                *("exitnodes", "exitnodes-local-routing", "exitnodes-primary", "advertise-subnets", "mac"),
                *("disable-arp-nd-suppression", "bridge-disable-mac-learning", "rt-import", "vxlan-port"),
                "secondary-controllers",
            },
        ),
        Kind(name="faucet", required=frozenset(("dp-id", "controller")), optional=_COMMON - {"mtu"}),
    )
}


@route("GET /cluster/sdn/zones")
def list_zones(call: Call) -> Any:
    """List the zones that the caller may see."""
    return ZONES.visible(call)


@route("GET /cluster/sdn/zones/{zone}")
def read_zone(call: Call) -> Any:
    """Read one zone."""
    return ZONES.read(call, call.params["zone"])


@route("POST /cluster/sdn/zones")
def create_zone(call: Call) -> Any:
    """Write a new zone."""
    with ZONES.creating(call, _KINDS) as (ident, section):
        _check_services(call, section)
        _write(call, ident, section)


@route("PUT /cluster/sdn/zones/{zone}")
def update_zone(call: Call) -> Any:
    """Change a zone."""
    with ZONES.updating(call, _KINDS) as (ident, old, section):
        if section.get("ipam") != old.get("ipam"):
            _refuse_new_ipam(call, ident)
        _check_services(call, call.params)
        _write(call, ident, section)


@route("DELETE /cluster/sdn/zones/{zone}")
def delete_zone(call: Call) -> Any:
    """Remove a zone that no virtual network is in."""
    ident = call.params["zone"]
    with change_sdn(call, "delete sdn zone object failed"):
        ZONES.require(call.store, ident)
        for vnet, section in VNETS.file(call.store).all().items():
            if section["zone"] == ident:
                raise PveError(f"zone {ident} is used by vnet {vnet}")
        ZONES.file(call.store).remove(ident)


def _refuse_new_ipam(call: Call, ident: str) -> None:
    for subnet in SUBNETS.file(call.store).all():
        if subnet.split("-")[0] == ident:
            raise bad_parameter("ipam", "can't change ipam if a subnet is already defined in this zone")


def _check_services(call: Call, given: Mapping[str, Any]) -> None:
    servers = DNS.all(call.store)
    for key in ("dns", "reversedns"):
        if given.get(key) and given[key] not in servers:
            raise bad_parameter(key, f"{given[key]} don't exist")
    if given.get("dnszone") and not given.get("dns"):
        raise bad_parameter("dnszone", "missing dns server")
    if given.get("ipam") and given["ipam"] not in IPAMS.all(call.store):
        raise bad_parameter("ipam", f"{given['ipam']} not existing")


def _write(call: Call, ident: str, section: dict[str, Any]) -> None:
    if section["type"] == "vxlan" and bool(section.get("peers")) == bool(section.get("fabric")):
        text = "must have exactly one of peers / fabric defined"
        raise bad_parameters({"peers": text, "fabric": text})
    if section["type"] == "evpn":
        _check_evpn(call, ident, section)
        options = call.store.get("cluster", "options") or {}
        section.setdefault("mac", mac_address(options.get("mac_prefix", DEFAULT_MAC_PREFIX)))
    ZONES.file(call.store).put(ident, section)


def _check_evpn(call: Call, ident: str, section: Mapping[str, Any]) -> None:
    name = section["controller"]
    controller = CONTROLLERS.file(call.store).get(name)
    if controller is None:
        raise PveError(f"controller {name} don't exist")
    if controller["type"] != "evpn":
        raise PveError(f"{name} is not a evpn controller type")
    for other, zone in ZONES.file(call.store).all().items():
        if other != ident and zone.get("vrf-vxlan") == section["vrf-vxlan"]:
            raise PveError(f"vrf-vxlan {section['vrf-vxlan']} is already declared in {other}")
