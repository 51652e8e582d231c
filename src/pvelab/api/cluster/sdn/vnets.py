"""Virtual networks: `/cluster/sdn/vnets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.access import check_vnet
from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.api.cluster.sdn.objects import SUBNETS, VNETS, ZONES, settings
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.sections import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["create_vnet", "delete_vnet", "list_vnets", "read_vnet", "update_vnet"]

_KIND = Kind(
    name="vnet",
    required=frozenset(("zone",)),
    optional=frozenset(("tag", "alias", "vlanaware", "isolate-ports")),
)
_VLAN_LIMIT = 4096
_OVERLAYS = ("vxlan", "evpn")


@route("GET /cluster/sdn/vnets")
def list_vnets(call: Call) -> Any:
    """List the virtual networks that the caller may see."""
    return [vnet for vnet in VNETS.list_objects(call) if _may_see(call, vnet)]


@route("GET /cluster/sdn/vnets/{vnet}")
def read_vnet(call: Call) -> Any:
    """Read one virtual network."""
    check_vnet(call, "SDN.Audit", "SDN.Allocate")
    return VNETS.read(call, call.params["vnet"])


@route("POST /cluster/sdn/vnets")
def create_vnet(call: Call) -> Any:
    """Write a new virtual network."""
    ident = call.params["vnet"]
    call.world.cluster.require_quorum()
    with change_sdn(call, "create sdn vnet object failed"):
        section = _KIND.validate(settings(call, "vnet"), create=True)
        if VNETS.file(call.store).get(ident) is not None:
            raise PveError(f"sdn vnet object ID '{ident}' already defined")
        _write(call, ident, section)


@route("PUT /cluster/sdn/vnets/{vnet}")
def update_vnet(call: Call) -> Any:
    """Change a virtual network."""
    ident = call.params["vnet"]
    old = check_vnet(call, "SDN.Allocate")
    with change_sdn(call, "update sdn vnet object failed"):
        VNETS.file(call.store).check_digest(call.params.get("digest"))
        section = VNETS.merge_changes(call, _KIND, old)
        if section["zone"] != old["zone"] and _has_subnets(call, ident):
            raise bad_parameter("zone", "can't change zone if subnets exist")
        _write(call, ident, section)


@route("DELETE /cluster/sdn/vnets/{vnet}")
def delete_vnet(call: Call) -> Any:
    """Remove a virtual network that has no subnets."""
    ident = call.params["vnet"]
    check_vnet(call, "SDN.Allocate")
    with change_sdn(call, "delete sdn vnet object failed"):
        if _has_subnets(call, ident):
            raise bad_parameter("vnet", "Can't delete vnet if subnets exists")
        VNETS.file(call.store).remove(ident)


def _may_see(call: Call, vnet: Mapping[str, Any]) -> bool:
    zone = vnet.get("zone") or vnet.get("pending", {}).get("zone")
    return call.may(f"/sdn/zones/{zone}/{vnet['vnet']}", "SDN.Audit", "SDN.Allocate", any_of=True)


def _has_subnets(call: Call, ident: str) -> bool:
    return any(subnet.get("vnet") == ident for subnet in SUBNETS.file(call.store).all().values())


def _write(call: Call, ident: str, section: dict[str, Any]) -> None:
    zone = ZONES.file(call.store).get(section["zone"])
    if zone is None:
        raise PveError("cannot lookup undefined type!")
    _check_tag(call, ident, section, str(zone["type"]))
    if section.get("vlanaware") and _has_subnets(call, ident):
        raise bad_parameter("vlanaware", "vlanaware vnet is not compatible with subnets")
    VNETS.file(call.store).put(ident, section)


def _check_tag(call: Call, ident: str, section: Mapping[str, Any], kind: str) -> None:
    """Refuse a tag that a zone of this type does not take, or that another network has."""
    tag = section.get("tag")
    if kind == "simple":
        if tag is not None:
            raise bad_parameter("tag", "vlan tag is not allowed on simple zone")
    elif kind == "qinq":
        if tag is not None and tag > _VLAN_LIMIT:
            raise bad_parameter("tag", f"VLAN tag maximal value is {_VLAN_LIMIT}")
        _check_qinq_neighbours(call, ident, section)
    elif kind in _OVERLAYS:
        if tag is None:
            raise bad_parameter("tag", "missing vxlan tag")
        if kind == "evpn" and section.get("vlanaware"):
            raise bad_parameter("vlan-aware", "vlan-aware option can't be enabled with evpn")
        _check_overlay_neighbours(call, ident, tag)
    else:
        if tag is None:
            raise bad_parameter("tag", "missing vlan tag")
        if tag > _VLAN_LIMIT:
            raise bad_parameter("tag", f"vlan tag max value is {_VLAN_LIMIT}")
        for other, vnet in _others(call, ident):
            if vnet["zone"] == section["zone"] and vnet.get("tag") == tag:
                raise bad_parameter("tag", f"tag {tag} already exist in vnet {other}")


def _check_qinq_neighbours(call: Call, ident: str, section: Mapping[str, Any]) -> None:
    tag, zone = section.get("tag"), section["zone"]
    for other, vnet in _others(call, ident):
        if vnet["zone"] != zone or vnet.get("tag") != tag:
            continue
        if tag:
            raise bad_parameter("tag", f"tag {tag} already exist in zone {zone} vnet {other}")
        raise bad_parameter("tag", f"tag-less vnet already exists in zone {zone} vnet {other}")


def _check_overlay_neighbours(call: Call, ident: str, tag: int) -> None:
    """VXLAN numbers are unique in the whole cluster."""
    for other, vnet in _others(call, ident):
        zone = ZONES.file(call.store).get(vnet["zone"])
        if zone is not None and zone["type"] in _OVERLAYS and vnet.get("tag") == tag:
            text = f"vxlan tag {tag} already exist in vnet {other} in zone {vnet['zone']} "
            raise bad_parameter("tag", text)


def _others(call: Call, ident: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [(other, vnet) for other, vnet in VNETS.file(call.store).all().items() if other != ident]
