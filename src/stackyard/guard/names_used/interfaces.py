"""The interfaces of a node as they will be: those that it has, with what a target declares in their place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import parse_interface
from stackyard.clients.proxmox import quote
from stackyard.desired import Bridge
from stackyard.guard.facts import ApiRead
from stackyard.render.names import address
from stackyard.render.objects import address_of_object
from stackyard.render.references import BRIDGE, VLAN, interface_label, short_type, zone_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.base.addresses import Interface
    from stackyard.desired import Desired, Vlan

__all__ = ["PlannedInterface", "PlannedZone", "interfaces_of", "list_planned", "list_zones", "read_row"]

INTERFACE = "network_linux_"
_DOTTED = re.compile(r"(\S+)\.(\d+)")
_NUMBERED = re.compile(r"vlan(\d+)")
_BRIDGES = ("bridge", "OVSBridge")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInterface:
    """An interface of a node: one that is there, or one that a target declares.

    Attributes:
        node: The node.
        name: Its name.
        kind: `bridge`, `bond`, `vlan`, or what Proxmox calls others.
        ports: The interfaces that are its ports or slaves.
        parent: The interface that a VLAN is on.
        number: The number of a VLAN.
        is_aware: Whether it passes VLANs.
        addresses: Its addresses, by the attributes that have them.
        gateways: Its gateways, by their attributes.
        others: Other names that it has.
        label: What its place in the input is known by; empty for one that is there.
    """

    node: str
    name: str
    kind: str
    ports: tuple[str, ...] = ()
    parent: str = ""
    number: int | None = None
    is_aware: bool = False
    addresses: Mapping[str, Interface]
    gateways: Mapping[str, str]
    others: tuple[str, ...] = ()
    label: str = ""

    @property
    def is_bridge(self) -> bool:
        """Whether it is a bridge."""
        return self.kind in _BRIDGES


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedZone:
    """A zone of the SDN that lies on a bridge.

    Attributes:
        name: Its name.
        bridge: The bridge.
        nodes: The nodes that have the zone; all when empty.
        label: What its place in the input is known by.
    """

    name: str
    bridge: str
    nodes: tuple[str, ...]
    label: str


def interfaces_of(node: str) -> ApiRead:
    """Return the question for the interfaces of a node."""
    return ApiRead(f"/nodes/{quote(node)}/network")


def list_planned(desired: Desired) -> Iterator[PlannedInterface]:
    """Return the interfaces that a target declares."""
    for one in desired.objects:
        kind = short_type(one.key.type)
        if kind.startswith(INTERFACE):
            values = one.attributes
            yield _planned(
                kind.removeprefix(INTERFACE), values["node_name"], values, address_of_object(one.key)
            )
    listed: tuple[Bridge | Vlan, ...] = (*desired.bridges, *desired.vlans)
    for interface in listed:
        said = interface.model_dump()
        values = {**said, "address": said["address4"], "gateway": said["gateway4"], "vlan": said.get("tag")}
        kind, type_ = ("bridge", BRIDGE) if isinstance(interface, Bridge) else ("vlan", VLAN)
        yield _planned(kind, interface.node, values, f"{type_}.{interface_label(interface)}")


def _planned(kind: str, node: str, values: Mapping[str, Any], label: str) -> PlannedInterface:
    parent, number = (
        _split(values["name"], values.get("interface"), values.get("vlan")) if kind == "vlan" else ("", None)
    )
    return PlannedInterface(
        node=node,
        name=values["name"],
        kind=kind,
        ports=tuple(values.get("ports") or values.get("slaves") or ()),
        parent=parent,
        number=number,
        is_aware=bool(values.get("vlan_aware")),
        addresses=_parse({key: values.get(key) for key in ("address", "address6")}),
        gateways={key: str(values[key]) for key in ("gateway", "gateway6") if values.get(key)},
        label=label,
    )


def read_row(node: str, row: Mapping[str, Any]) -> PlannedInterface:
    """Return an interface that a node lists."""
    kind, name = str(row.get("type") or ""), str(row.get("iface"))
    parts = (row.get(key) for key in ("bridge_ports", "slaves", "ovs_ports", "ovs_bonds"))
    is_vlan = kind == "vlan"
    parent, number = _split(name, row.get("vlan-raw-device"), row.get("vlan-id")) if is_vlan else ("", None)
    return PlannedInterface(
        node=node,
        name=name,
        kind=kind,
        ports=tuple(port for part in parts for port in re.split(r"[\s,;]+", str(part or "")) if port),
        parent=parent,
        number=number,
        is_aware=bool(row.get("bridge_vlan_aware")),
        addresses=_parse({"address": row.get("cidr"), "address6": row.get("cidr6")}),
        gateways={key: str(row[key]) for key in ("gateway", "gateway6") if row.get(key)},
        others=tuple(map(str, row.get("altnames") or ())),
    )


def _split(name: str, below: Any, number: Any) -> tuple[str, int | None]:
    """Return the interface that a VLAN is on, and its number; its name may say both."""
    dotted, numbered = _DOTTED.fullmatch(name), _NUMBERED.fullmatch(name)
    if dotted is not None:
        return str(below or dotted[1]), int(number or dotted[2])
    said = number or (numbered[1] if numbered is not None else None)
    return str(below or ""), int(said) if said else None


def _parse(texts: Mapping[str, Any]) -> dict[str, Interface]:
    found = {}
    for key, text in texts.items():
        try:
            if text and "/" in str(text):
                found[key] = parse_interface(str(text))
        except ValueError:
            # What is no address has a finding of its own, and a node may list words such as `dhcp`.
            continue
    return found


def list_zones(desired: Desired) -> Iterator[PlannedZone]:
    """Return the zones of a target that lie on a bridge."""
    for one in desired.objects:
        values = one.attributes
        if short_type(one.key.type).startswith("sdn_zone_") and values.get("bridge"):
            nodes = tuple(values.get("nodes") or ())
            where = address_of_object(one.key)
            yield PlannedZone(name=one.key.name, bridge=values["bridge"], nodes=nodes, label=where)
    for zone in desired.zones:
        bridge = getattr(zone, "bridge", None)
        if bridge:
            where = address(zone_type(zone), zone.name)
            yield PlannedZone(name=zone.name, bridge=bridge, nodes=tuple(zone.nodes), label=where)
