"""Objects of clusters and nodes as resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import Secret
from stackyard.render.names import address
from stackyard.render.names import label as label_of
from stackyard.render.networks import FINALIZER, SDN
from stackyard.render.references import BRIDGE, POOL, VLAN, VNET, interface_label, zone_type
from stackyard.render.terms import Json, literal, template

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import ClusterObject, Desired, ObjectKey

__all__ = ["address_of_object", "object_resources"]


def address_of_object(key: ObjectKey) -> str:
    """Return the address of an object."""
    return address(key.type, key.name)


def object_resources(desired: Desired) -> dict[str, dict[str, Json]]:
    """Return the resources by type and label; what applies changes of the SDN comes with its networks."""
    resources: dict[str, dict[str, Json]] = {}
    of_site = dict(_site_parts(desired))
    for one in desired.objects:
        after = [address_of_object(key) for key in one.after]
        after += sorted({of_site[name] for name in _names_parts(one) if name in of_site})
        if one.key.type.startswith(SDN):
            # What is written is pending until it is applied, and so is a removal.
            after.append(FINALIZER)
        resource = {
            **{name: _term(value) for name, value in one.attributes.items() if value is not None},
            **{name: template((secret,)) for name, secret in one.secrets.items()},
        }
        if after:
            resource["depends_on"] = after
        resources.setdefault(one.key.type, {})[label_of(one.key.name)] = resource
    return resources


def _site_parts(desired: Desired) -> Iterator[tuple[tuple[str, ...], str]]:
    """Return the address of each network and pool of the site that an object of a file may name."""
    for pool in desired.pools:
        yield ("pool", pool.name), address(POOL, pool.name)
    for zone in desired.zones:
        yield ("zone", zone.name), address(zone_type(zone), zone.name)
    for vnet in desired.vnets:
        yield ("vnet", vnet.name), address(VNET, vnet.name)
    for bridge in desired.bridges:
        yield ("interface", bridge.node, bridge.name), f"{BRIDGE}.{interface_label(bridge)}"
    for vlan in desired.vlans:
        yield ("interface", vlan.node, vlan.name), f"{VLAN}.{interface_label(vlan)}"


def _names_parts(one: ClusterObject) -> Iterator[tuple[str, ...]]:
    """Return the networks and pools that an object names, whoever makes them."""
    said = one.attributes
    for attribute in ("pool", "zone", "vnet"):
        yield attribute, str(said.get(attribute, ""))
    # Rights are on paths: /pool/NAME, /sdn/zones/ZONE, /sdn/zones/ZONE/VNET.
    match str(said.get("path", "")).strip("/").split("/"):
        case ["pool", name, *_]:
            yield "pool", name
        case ["sdn", "zones", zone, *vnets]:
            yield "zone", zone
            yield from (("vnet", vnet) for vnet in vnets[:1])
    node = str(said.get("node_name", ""))
    if one.key.type == VLAN:
        yield "interface", node, str(said.get("interface") or str(said.get("name", "")).partition(".")[0])
    for port in said.get("ports") or ():
        yield "interface", node, str(port)
    for on in said.get("nodes") or () if "bridge" in said else ():
        yield "interface", str(on), str(said["bridge"])


def _term(value: Any) -> Json:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Secret):
        return template((value,))
    if isinstance(value, dict):
        return {name: _term(part) for name, part in value.items() if part is not None}
    return [_term(part) for part in value] if isinstance(value, list | tuple) else value
