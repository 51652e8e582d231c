"""The addresses of Proxmox's own address manager: `/cluster/sdn/vnets/{vnet}/ips` and `.../ipams/pve/status`.

Documents: `sdn_addresses/<subnet id>` has `ips`, by address: `gateway`, or `vmid`, `hostname` and `mac`.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import read_applied
from pvelab.api.cluster.sdn.objects import VNETS, ZONES
from pvelab.server.problems import PveError
from pvelab.server.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Store

__all__ = [
    "add_address",
    "add_subnet",
    "is_managed",
    "list_addresses",
    "move_address",
    "move_gateway",
    "remove_address",
    "remove_subnet",
]

COLLECTION = "sdn_addresses"


def is_managed(zone: Mapping[str, Any] | None) -> bool:
    """Return whether the addresses of a zone are managed here."""
    return zone is not None and zone.get("ipam") == "pve"


def add_subnet(store: Store, subnet: str) -> None:
    """Begin to manage a subnet."""
    if store.get(COLLECTION, subnet) is None:
        store.put(COLLECTION, subnet, {"ips": {}})


def remove_subnet(store: Store, subnet: str) -> None:
    """Forget a subnet.

    Raises:
        PveError: It is not managed, or something other than its gateway has an address in it.
    """
    ips = _ips(store, subnet)
    if any(not entry.get("gateway") for entry in ips.values()):
        raise PveError(f"cannot delete subnet '{_cidr(subnet)}', not empty")
    store.delete(COLLECTION, subnet)


def move_gateway(store: Store, subnet: str, old: str | None, new: str | None) -> None:
    """Let the gateway have another address.

    Raises:
        PveError: A guest has that address.
    """
    if old == new:
        return
    ips = _ips(store, subnet)
    if new is not None and not ips.get(_canonical(new), {"gateway": 1}).get("gateway"):
        raise PveError(f"IP '{_canonical(new)}' already exist")
    kept = {ip: entry for ip, entry in ips.items() if old is None or ip != _canonical(old)}
    if new is not None:
        kept[_canonical(new)] = {"gateway": 1}
    store.put(COLLECTION, subnet, {"ips": kept})


@route("GET /cluster/sdn/ipams/{ipam}/status")
def list_addresses(call: Call) -> Any:
    """List the addresses in zones with DHCP that the caller may see."""
    if call.params["ipam"] != "pve":
        raise PveError("Currently only PVE IPAM is supported!")
    rows: list[dict[str, Any]] = []
    zones, subnets = read_applied(call.store, "zones"), read_applied(call.store, "subnets")
    for subnet, document in call.store.items(COLLECTION).items():
        zone = subnet.split("-")[0]
        vnet = subnets.get(subnet, {}).get("vnet")
        if not is_managed(zones.get(zone)) or not zones[zone].get("dhcp") or vnet is None:
            continue
        if call.may(f"/sdn/zones/{zone}/{vnet}", "SDN.Audit", "SDN.Allocate", any_of=True):
            place = {"zone": zone, "subnet": _cidr(subnet), "vnet": vnet}
            rows += [{**entry, **place, "ip": ip} for ip, entry in document["ips"].items()]
    return rows


@route("POST /cluster/sdn/vnets/{vnet}/ips")
def add_address(call: Call) -> Any:
    """Give an address to a MAC address."""
    _add(call, call.params["ip"], {"mac": call.params["mac"]} if "mac" in call.params else {})


@route("PUT /cluster/sdn/vnets/{vnet}/ips")
def move_address(call: Call) -> Any:
    """Give a MAC address another address in place of the one that it has."""
    mac, version = call.params.get("mac"), ipaddress.ip_address(call.params["ip"]).version
    zone = _vnet_zone(call)
    for subnet, document in list(call.store.items(COLLECTION).items()):
        for ip, entry in document["ips"].items():
            same = mac is not None and entry.get("mac") == mac and ipaddress.ip_address(ip).version == version
            if same and subnet.split("-")[0] == zone:
                _drop(call.store, subnet, ip)
    entry = {key: call.params[key] for key in ("vmid", "mac") if key in call.params}
    _add(call, call.params["ip"], entry)


@route("DELETE /cluster/sdn/vnets/{vnet}/ips")
def remove_address(call: Call) -> Any:
    """Take an address back."""
    ip = call.params["ip"]
    subnet = _subnet_of(call, ip)
    if is_managed(ZONES.file(call.store).get(_vnet_zone(call))):
        _drop(call.store, subnet, _canonical(ip))


def _add(call: Call, ip: str, entry: Mapping[str, Any]) -> None:
    subnet = _subnet_of(call, ip)
    if is_managed(ZONES.file(call.store).get(_vnet_zone(call))):
        ips, address = _ips(call.store, subnet), _canonical(ip)
        if address in ips:
            raise PveError(f"IP '{address}' already exist")
        call.store.put(COLLECTION, subnet, {"ips": {**ips, address: dict(entry)}})


def _drop(store: Store, subnet: str, ip: str) -> None:
    ips = _ips(store, subnet)
    if ip not in ips:
        raise PveError(f"IP '{ip}' does not exist in IPAM DB")
    store.put(COLLECTION, subnet, {"ips": {key: entry for key, entry in ips.items() if key != ip}})


def _subnet_of(call: Call, ip: str) -> str:
    for subnet, section in sorted(read_applied(call.store, "subnets").items()):
        network = ipaddress.ip_network(_cidr(subnet), strict=False)
        if section.get("vnet") == call.params["vnet"] and ipaddress.ip_address(ip) in network:
            return subnet
    raise PveError(f"can't find any subnet for ip {ip}")


def _vnet_zone(call: Call) -> str:
    vnet = VNETS.file(call.store).get(call.params["vnet"])
    return str(vnet["zone"]) if vnet is not None else ""


def _ips(store: Store, subnet: str) -> Mapping[str, Mapping[str, Any]]:
    document = store.get(COLLECTION, subnet)
    if document is None:
        if not any(known.split("-")[0] == subnet.split("-")[0] for known in store.items(COLLECTION)):
            raise PveError(f"zone '{subnet.split('-')[0]}' doesn't exist in IPAM DB")
        raise PveError(f"subnet '{_cidr(subnet)}' doesn't exist in IPAM DB")
    found: Mapping[str, Mapping[str, Any]] = document["ips"]
    return found


def _cidr(subnet: str) -> str:
    return "/".join(subnet.split("-")[1:])


def _canonical(ip: str) -> str:
    return str(ipaddress.ip_address(ip))
