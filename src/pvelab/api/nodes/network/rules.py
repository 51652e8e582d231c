"""What Proxmox refuses to write to `/etc/network/interfaces`."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.api.nodes.network.read import Interface, Interfaces

__all__ = ["check_file", "check_gateway", "check_ipv6", "check_ports"]

_PORT_KEYS = ("bridge_ports", "ovs_ports", "slaves", "ovs_bonds")
_OVS_PORTS = ("OVSPort", "OVSIntPort", "OVSBond")
_DEFAULT_MTU = 1500
_MOST_VLANS = 4094


def check_gateway(interfaces: Interfaces, name: str, key: str) -> None:
    """Refuse a second default gateway; `key` is `gateway` or `gateway6`.

    Raises:
        PveError: 400, another interface has one.
    """
    title = "Default gateway" if key == "gateway" else "Default ipv6 gateway"
    for other, interface in interfaces.by_name.items():
        if other != name and interface.get(key):
            raise bad_parameter(key, f"{title} already exists on interface '{other}'.")


def check_ports(interfaces: Interfaces, name: str, given: Mapping[str, Any]) -> None:
    """Refuse ports that another interface has.

    Raises:
        PveError: 400, naming the port and its interface.
    """
    wanted = _ports(given)
    key = next((key for key in _PORT_KEYS if given.get(key)), "")
    for other, interface in interfaces.by_name.items():
        for port in _ports(interface) if other != name else ():
            if port in wanted:
                raise bad_parameter(key, f"{port} is already used on interface '{other}'.")


def check_ipv6(address: str, length: int) -> None:
    """Refuse an IPv6 address that no host can have.

    Raises:
        PveError: 400, naming the address.
    """
    if not 0 <= length <= 128:
        raise bad_parameter("netmask", f"{length} is not a valid subnet length for ipv6")
    parsed = ipaddress.IPv6Address(address)
    kind = _ipv6_kind(parsed)
    if kind is not None:
        text = f"{address} with type '{kind}', cannot be used as host IPv6 address."
        raise bad_parameter("address", text)


def check_file(interfaces: Interfaces) -> None:
    """Refuse interfaces that do not fit together, and complete the ports of Open vSwitch bridges.

    Raises:
        PveError: With the first thing that is wrong.
    """
    used: dict[str, str] = {}
    for name, interface in interfaces.by_name.items():
        for port in _ports(interface):
            if used.setdefault(port, name) != name:
                raise PveError(f"port '{port}' is already used on interface '{used[port]}'")
    _settle_ovs_ports(interfaces, used)
    for name, interface in list(interfaces.by_name.items()):
        match interface["type"]:
            case "OVSBridge":
                _check_ovs_bridge(interfaces, name, interface)
            case "OVSBond":
                _check_ovs_bond(interfaces, name, interface)
            case "bond":
                _check_bond(interfaces, name, interface)
            case "vlan":
                _check_vlan(interfaces, name, interface)
            case "bridge":
                _check_bridge(interfaces, name, interface)


def _ports(interface: Mapping[str, Any]) -> list[str]:
    return split_list(" ".join(str(interface[key]) for key in _PORT_KEYS if interface.get(key)))


def _ipv6_kind(address: ipaddress.IPv6Address) -> str | None:
    """Return what an address is instead of one for a host, None for one that is good."""
    if address.is_unspecified:
        return "UNSPECIFIED"
    if address.is_loopback:
        return "LOOPBACK"
    if address.is_multicast:
        return "MULTICAST"
    if address.ipv4_mapped is not None:
        return "IPV4MAP"
    if address in ipaddress.IPv6Network("2001:db8::/32"):
        return "DOCUMENTATION"
    return None


def _check_mtu(interfaces: Interfaces, parent: str, child: str) -> None:
    mtu = interfaces.by_name.get(child, {}).get("mtu")
    if not mtu:
        return
    data = interfaces.by_name.get(parent, {})
    limit = data.get("mtu") or (mtu if data.get("type") == "bond" else _DEFAULT_MTU)
    if int(limit) < int(mtu):
        raise PveError(f"interface '{parent}' - mtu {limit} is lower than '{child}' - mtu {mtu}")


def _settle_ovs_ports(interfaces: Interfaces, used: Mapping[str, str]) -> None:
    """Turn ports that no bridge uses any more back into plain cards; drop those of other bridges."""
    for name, interface in list(interfaces.by_name.items()):
        if interface["type"] not in _OVS_PORTS:
            continue
        bridge = interfaces.by_name.get(used.get(name, ""))
        if bridge is None:
            plain: Interface = {"type": "eth", "exists": 1, "method": "manual", "families": ["inet"]}
            interfaces.by_name[name] = plain
        elif bridge["type"] != "OVSBridge":
            del interfaces.by_name[name]


def _check_ovs_bridge(interfaces: Interfaces, name: str, interface: Interface) -> None:
    for port in str(interface.get("ovs_ports") or "").split():
        found = interfaces.by_name.get(port)
        if found is None:
            raise PveError(f"OVS bridge '{name}' - unable to find port '{port}'")
        found["autostart"] = 0
        if found["type"] == "eth":
            found["type"] = "OVSPort"
        elif found["type"] not in _OVS_PORTS:
            raise PveError(f"interface '{port}' is not defined as OVS port/bond")
        found["ovs_bridge"] = name
        _check_mtu(interfaces, name, port)


def _check_ovs_bond(interfaces: Interfaces, name: str, interface: Interface) -> None:
    for slave in str(interface.get("ovs_bonds") or "").split():
        found = interfaces.by_name.get(slave)
        if found is None:
            raise PveError(f"OVS bond '{name}' - unable to find slave '{slave}'")
        found["autostart"] = 1
        if found["type"] != "eth":
            problem = f"wrong interface type on slave '{slave}' ('{found['type']}' != 'eth')"
            raise PveError(f"OVS bond '{name}' - {problem}")
        _check_mtu(interfaces, name, slave)


def _check_bond(interfaces: Interfaces, name: str, interface: Interface) -> None:
    slaves = split_list(str(interface.get("slaves") or ""))
    for slave in slaves:
        found = interfaces.by_name.get(slave)
        if found is None:
            raise PveError(f"bond '{name}' - unable to find slave '{slave}'")
        found["autostart"] = 1
        if found["type"] not in ("eth", "bond"):
            problem = f"wrong interface type on slave '{slave}' ('{found['type']}' != 'eth or bond')"
            raise PveError(f"bond '{name}' - {problem}")
        _check_mtu(interfaces, name, slave)
    primary = interface.get("bond-primary")
    if slaves and primary and primary not in slaves:
        raise PveError(f"bond '{name}' - bond-primary interface is not a slave")


def _check_vlan(interfaces: Interfaces, name: str, interface: Interface) -> None:
    if dotted := re.fullmatch(r"(\S+)\.(\d+)", name):
        parent, tag = dotted[1], int(dotted[2])
        interface.pop("vlan-raw-device", None)
        interface.pop("vlan-id", None)
    else:
        parent = str(interface.get("vlan-raw-device") or "")
        if not parent:
            raise PveError("missing vlan-raw-device option")
        if numbered := re.fullmatch(r"vlan(\d+)", name):
            tag = int(numbered[1])
            interface.pop("vlan-id", None)
        elif not interface.get("vlan-id"):
            raise PveError("missing vlan-id option")
        else:
            tag = int(interface["vlan-id"])
    if tag > _MOST_VLANS:
        raise PveError(f"vlan '{name}' - vlan-id {tag} should be <= {_MOST_VLANS}")
    found = interfaces.by_name.get(parent)
    if found is None:
        raise PveError(f"vlan '{name}' - unable to find parent '{parent}'")
    if found["type"] not in ("eth", "bridge", "bond", "vlan"):
        problem = f"wrong interface type on parent '{parent}' ('{found['type']}' != 'eth|bond|bridge|vlan' )"
        raise PveError(f"vlan '{name}' - {problem}")
    _check_mtu(interfaces, parent, name)


def _check_bridge(interfaces: Interfaces, name: str, interface: Interface) -> None:
    for port in split_list(str(interface.get("bridge_ports") or "")):
        found = interfaces.by_name.get(port)
        if found is None:
            # A VLAN of a card or bond needs no entry of its own to be a port.
            if not re.fullmatch(r"\S+\.\d+", port):
                raise PveError(f"bridge '{name}' - unable to find bridge port '{port}'")
            continue
        if _has_address(found, "", "0.0.0.0") or _has_address(found, "6", "::"):  # noqa: S104 - compared
            raise PveError(f"iface {port} - ip address can't be set on interface if bridged in {name}")
        _check_mtu(interfaces, port, name)


def _has_address(interface: Interface, suffix: str, none: str) -> bool:
    return interface.get(f"method{suffix}") == "static" and interface.get(f"address{suffix}") != none
