"""What makes a set of fabrics and their nodes valid, in the words of Proxmox."""

from __future__ import annotations

import ipaddress
import itertools
from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document, Store

__all__ = [
    "DELETABLE",
    "FABRICS",
    "FABRIC_SETTINGS",
    "NODES",
    "check_area",
    "check_fabrics",
    "check_protocol",
    "normalize_interface",
    "require_fabric",
]

FABRICS, NODES = "sdn_fabrics", "sdn_fabric_nodes"

_PREFIXES = frozenset(("ip_prefix", "ip6_prefix"))
FABRIC_SETTINGS: Mapping[str, frozenset[str]] = {
    "openfabric": _PREFIXES | {"hello_interval", "csnp_interval", "route_filter"},
    "ospf": _PREFIXES | {"area", "route_filter", "redistribute"},
}
DELETABLE: Mapping[str, frozenset[str]] = {
    protocol: settings - {"area"} for protocol, settings in FABRIC_SETTINGS.items()
}

_NAME: Mapping[str, Any] = {"type": "string", "format": "pve-iface"}
_IP: Mapping[str, Any] = {"type": "string", "format": "CIDRv4", "optional": 1}
_INTERFACES: Mapping[str, properties.PropertySchema] = {
    "openfabric": {
        "name": _NAME,
        "hello_multiplier": {"type": "integer", "minimum": 2, "maximum": 100, "optional": 1},
        "ip": _IP,
        "ip6": {"type": "string", "format": "CIDRv6", "optional": 1},
    },
    "ospf": {
        "name": _NAME,
        "ip": _IP,
        "network_type": {
            "type": "string",
            "enum": ["broadcast", "non-broadcast", "point-to-point", "point-to-multipoint"],
            "optional": 1,
        },
    },
}


def check_protocol(protocol: str) -> None:
    """Refuse protocols of fabrics that the lab does not have.

    Raises:
        PveError: 501.
    """
    if protocol not in FABRIC_SETTINGS:
        raise PveError(f"the lab does not have fabrics with the protocol {protocol}", status=501)


def require_fabric(store: Store, ident: str) -> Document:
    """Return a written fabric.

    Raises:
        PveError: There is no such fabric.
    """
    found = store.get(FABRICS, ident)
    if found is None:
        raise PveError(f"fabric '{ident}' does not exist in configuration")
    return found


def normalize_interface(protocol: str, text: str) -> str:
    """Return an interface of a node as the configuration keeps it.

    Raises:
        PveError: 400, it cannot be read.
    """
    try:
        values = properties.parse(_INTERFACES[protocol], text, "interfaces")
    except FormatError as err:
        raise bad_parameter("interfaces", f"invalid format - {err}") from err
    return ",".join(f"{key}={values[key]}" for key in _INTERFACES[protocol] if key in values)


def check_area(area: str) -> int:
    """Return an OSPF area as a number.

    Raises:
        PveError: It is neither a number of 32 bits nor an IPv4 address.
    """
    try:
        return int(ipaddress.IPv4Address(int(area) if area.isdecimal() else area))
    except ValueError as err:
        raise PveError(f"invalid area '{area}': must be an IPv4 address or a 32-bit number") from err


def check_fabrics(store: Store) -> None:
    """Refuse a configuration in which fabrics or nodes do not fit together.

    Raises:
        PveError: With the first thing that is wrong.
    """
    fabrics = sorted(store.items(FABRICS).items())
    for (first, one), (second, other) in itertools.combinations(fabrics, 2):
        _check_overlap(first, one, second, other)
    areas = [check_area(str(fabric["area"])) for _, fabric in fabrics if fabric["protocol"] == "ospf"]
    if len(areas) != len(set(areas)):
        raise PveError("duplicate OSPF area")
    _check_interfaces(store)
    for ident, fabric in fabrics:
        nodes = [node for _, node in sorted(store.items(NODES).items()) if node["fabric_id"] == ident]
        for node in nodes:
            _check_node(ident, fabric, node)
        for key in ("ip", "ip6"):
            taken = [ipaddress.ip_address(node[key]) for node in nodes if key in node]
            if len(taken) != len(set(taken)):
                raise PveError(f"fabric {ident} contains nodes with duplicated IPs")
        _check_fabric(ident, fabric)


def _check_overlap(first: str, one: Document, second: str, other: Document) -> None:
    for key, kind, title in (("ip_prefix", "IPv4 prefix", "IP prefix"), ("ip6_prefix", "IPv6 prefix", "")):
        if key not in one or key not in other:
            continue
        if ipaddress.ip_network(one[key], strict=False).overlaps(
            ipaddress.ip_network(other[key], strict=False)
        ):
            theirs = f"overlaps with {kind} {one[key]} in fabric '{first}'"
            raise PveError(f"{title or kind} {other[key]} in fabric '{second}' {theirs}")


def _check_interfaces(store: Store) -> None:
    taken: set[tuple[str, str]] = set()
    for node in store.items(NODES).values():
        for text in node["interfaces"]:
            place = (str(node["node_id"]), text.split(",")[0])
            if place in taken:
                raise PveError("interface is already in use by another fabric")
            taken.add(place)


def _check_node(ident: str, fabric: Document, node: Document) -> None:
    name = f"{ident}_{node['node_id']}"
    ospf = fabric["protocol"] == "ospf"
    if "ip" not in node and (ospf or "ip6" not in node):
        raise PveError(f"node '{name}' does not have an IP configured")
    if ospf and "ip6" in node:
        raise PveError("IPv6 is currently not supported for protocol ospf")
    for key, prefix_key in (("ip", "ip_prefix"), ("ip6", "ip6_prefix")):
        ip, prefix = node.get(key), fabric.get(prefix_key)
        if ip is not None and prefix is None:
            raise PveError(f"fabric '{ident}' does not have an IP prefix configured for the node IP {ip}")
        if ip is None and prefix is not None:
            raise PveError(f"node '{name}' does not have an IP configured for this fabric prefix {prefix}")
        if ip and prefix and ipaddress.ip_address(ip) not in ipaddress.ip_network(prefix, strict=False):
            raise PveError(f"node IP {ip} is outside the IP prefix {prefix} of the fabric")


def _check_fabric(ident: str, fabric: Document) -> None:
    if "ip_prefix" not in fabric and (fabric["protocol"] == "ospf" or "ip6_prefix" not in fabric):
        raise PveError(f"fabric '{ident}' does not have an IP prefix configured")
    if fabric["protocol"] == "ospf" and "ip6_prefix" in fabric:
        raise PveError("IPv6 is currently not supported for protocol ospf")
