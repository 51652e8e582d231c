"""Subnets of virtual networks: `/cluster/sdn/vnets/{vnet}/subnets`. The id is `<zone>-<network>-<mask>`."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn import addresses
from pvelab.api.cluster.sdn.access import check_vnet
from pvelab.api.cluster.sdn.locks import change_sdn
from pvelab.api.cluster.sdn.objects import SUBNETS, VNETS, ZONES, settings
from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.sections import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["create_subnet", "delete_subnet", "list_subnets", "read_subnet", "update_subnet"]

_KIND = Kind(
    name="subnet",
    required=frozenset(("vnet",)),
    optional=frozenset(("gateway", "snat", "dnszoneprefix", "dhcp-range", "dhcp-dns-server")),
)
_RANGE = PROPERTY_FORMATS["pve-sdn-dhcp-range"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@route("GET /cluster/sdn/vnets/{vnet}/subnets")
def list_subnets(call: Call) -> Any:
    """List the subnets of a virtual network."""
    check_vnet(call, "SDN.Audit", "SDN.Allocate")
    return [
        _format_subnet(subnet)
        for subnet in SUBNETS.list_objects(call)
        if subnet.get("vnet") == call.params["vnet"]
    ]


@route("GET /cluster/sdn/vnets/{vnet}/subnets/{subnet}")
def read_subnet(call: Call) -> Any:
    """Read one subnet."""
    check_vnet(call, "SDN.Audit", "SDN.Allocate")
    subnet = SUBNETS.read(call, call.params["subnet"])
    if subnet.get("vnet") != call.params["vnet"]:
        raise bad_parameter("vnet", "wrong vnet")
    return _format_subnet(subnet)


@route("POST /cluster/sdn/vnets/{vnet}/subnets")
def create_subnet(call: Call) -> Any:
    """Write a new subnet and hand it to the address manager of its zone."""
    vnet = check_vnet(call, "SDN.Allocate")
    call.world.cluster.require_quorum()
    with change_sdn(call, "create sdn subnet object failed"):
        if "/" not in call.params["subnet"]:
            raise bad_parameter("subnet", "value does not look like a valid CIDR network")
        ident = f"{vnet['zone']}-{call.params['subnet'].replace('/', '-', 1)}"
        section = _KIND.validate(settings(call, "subnet"), create=True)
        if SUBNETS.file(call.store).get(ident) is not None:
            raise PveError(f"sdn subnet object ID '{ident}' already defined")
        _write(call, ident, section, None)


@route("PUT /cluster/sdn/vnets/{vnet}/subnets/{subnet}")
def update_subnet(call: Call) -> Any:
    """Change a subnet."""
    check_vnet(call, "SDN.Allocate")
    ident = call.params["subnet"]
    with change_sdn(call, "update sdn subnet object failed"):
        old = SUBNETS.require(call.store, ident)
        SUBNETS.file(call.store).check_digest(call.params.get("digest"))
        _write(call, ident, SUBNETS.merge_changes(call, _KIND, old), old)


@route("DELETE /cluster/sdn/vnets/{vnet}/subnets/{subnet}")
def delete_subnet(call: Call) -> Any:
    """Remove a subnet in which no one has an address; one that is not there is removed too."""
    vnet = check_vnet(call, "SDN.Allocate")
    ident = call.params["subnet"]
    with change_sdn(call, "delete sdn subnet object failed"):
        file = SUBNETS.file(call.store)
        if addresses.is_managed(ZONES.file(call.store).get(vnet["zone"])):
            addresses.remove_subnet(call.store, ident if file.get(ident) is not None else "--")
        file.remove(ident)


def _format_subnet(subnet: dict[str, Any]) -> dict[str, Any]:
    zone, network, mask = subnet["subnet"].split("-")
    return {
        **subnet,
        "id": subnet["subnet"],
        "zone": zone,
        "network": network,
        "mask": mask,
        "cidr": f"{network}/{mask}",
        "dhcp-range": [properties.parse(_RANGE, text) for text in subnet.get("dhcp-range", ())],
    }


def _write(call: Call, ident: str, section: Mapping[str, Any], old: Mapping[str, Any] | None) -> None:
    zone, network, mask = ident.split("-")
    subnet = ipaddress.ip_network(f"{network}/{mask}", strict=False)
    vnet = VNETS.file(call.store).get(section["vnet"])
    if vnet is None:
        raise bad_parameter("vnet", f"{section['vnet']} don't exist")
    if vnet.get("vlanaware"):
        raise bad_parameter("vnet", "you can't add a subnet on a vlanaware vnet")
    gateway = section.get("gateway")
    # A point-to-point link has its gateway outside.
    is_link = mask == "32" and gateway is not None and ":" not in gateway
    if gateway and ipaddress.ip_address(gateway) not in subnet and not is_link:
        raise bad_parameter("gateway", f"{gateway} is not in subnet {network}/{mask}")
    _check_ranges(section.get("dhcp-range", ()), subnet, f"{network}/{mask}")
    if addresses.is_managed(ZONES.file(call.store).get(zone)):
        if old is None:
            addresses.add_subnet(call.store, ident)
        if not is_link:
            addresses.move_gateway(call.store, ident, (old or {}).get("gateway"), gateway)
    SUBNETS.file(call.store).put(ident, section)


def _check_ranges(
    ranges: list[str] | tuple[()], subnet: ipaddress.IPv4Network | ipaddress.IPv6Network, cidr: str
) -> None:
    taken: list[tuple[Address, Address]] = []
    for text in ranges:
        parsed = properties.parse(_RANGE, text)
        start, end = (ipaddress.ip_address(parsed[f"{key}-address"]) for key in ("start", "end"))
        if start.version != end.version or int(start) > int(end):
            raise bad_parameter("dhcp-range", f"start-address {start} must be smaller than end-address {end}")
        for key, address in (("start", start), ("end", end)):
            if address not in subnet:
                raise bad_parameter("dhcp-range", f"{key}-address {address} is not in subnet {cidr}")
        if any(int(start) <= int(last) and int(first) <= int(end) for first, last in taken):
            raise bad_parameter("dhcp-range", "dhcp ranges must not overlap")
        taken.append((start, end))
