"""Printing `/etc/network/interfaces` the way Proxmox does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pvelab.api.nodes.network.read import netmask_bits, ovs_options
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.api.nodes.network.read import Interface, Interfaces

__all__ = ["write_interfaces"]

_ORDER = {
    "loopback": 100_000,
    "eth": 200_000,
    "OVSPort": 200_000,
    "OVSIntPort": 300_000,
    "OVSBond": 400_000,
    "bond": 400_000,
    "bridge": 500_000,
    "OVSBridge": 500_000,
    "vlan": 600_000,
}
_LAST = 50_000
_OVS_BOND_MODES = frozenset(("active-backup", "balance-slb", "lacp-balance-slb", "lacp-balance-tcp"))
# What the lines of a type print themselves, or what never is in the file.
_DONE = frozenset(
    (
        *("type", "priority", "active", "exists", "autostart", "families"),
        *(
            f"{key}{suffix}"
            for suffix in ("", "6")
            for key in (
                *("method", "comments", "options", "address", "netmask"),
                *("gateway", "broadcast", "cidr"),
            )
        ),
    )
)
_BRIDGE = frozenset(("bridge_ports", "bridge_stp", "bridge_fd", "bridge_vlan_aware", "bridge_vids", "mtu"))
_BOND = frozenset(("slaves", "bond_miimon", "bond_mode", "bond_xmit_hash_policy", "bond-primary", "mtu"))


def write_interfaces(interfaces: Interfaces) -> str:
    """Print all interfaces, which have been found valid.

    Raises:
        PveError: Open vSwitch has no such bond mode.
    """
    others = list(interfaces.others)
    text = ""
    for name in sorted(interfaces.by_name, key=lambda name: _rank(name, interfaces)):
        interface = interfaces.by_name[name]
        priority = interface.get("priority", 0)
        before = [line for place, line in others if place < priority]
        if before:
            text += "".join(f"{line}\n" for line in before) + "\n"
            others = [(place, line) for place, line in others if place >= priority]
        if interface.get("autostart"):
            text += f"auto {name}\n"
        families = interface.get("families") or ["inet"]
        if families == ["inet6"] and "comments" in interface:
            interface["comments6"] = interface.pop("comments")
        for number, family in enumerate(families):
            text += _stanza(name, interface, family, first=number == 0)
    return text + "".join(f"{line}\n" for _, line in others)


def _rank(name: str, interfaces: Interfaces) -> tuple[int, str]:
    root, *rest = re.split(r"[.:]", name)
    kind = interfaces.by_name.get(root, {}).get("type", "")
    place = _ORDER[kind] + len(rest) if kind in _ORDER else 0
    return place + int(interfaces.by_name[name].get("priority", _LAST)), name


def _stanza(name: str, interface: Interface, family: str, *, first: bool) -> str:
    suffix = family.removeprefix("inet")
    method = interface.get(f"method{suffix}")
    if not method:
        return ""
    lines = [f"iface {name} {family} {method}", *_address_lines(interface, suffix)]
    if first:
        own, done = _own_lines(interface)
        lines += own
        lines += [f"\t{key} {value}" for key, value in sorted(interface.items()) if value and key not in done]
    lines += [f"\t{option}" for option in interface.get(f"options{suffix}", ())]
    comments = str(interface.get(f"comments{suffix}") or "").rstrip("\n")
    lines += [f"#{line}" for line in comments.split("\n")] if comments else []
    before = ""
    if first and interface["type"] in ("OVSPort", "OVSIntPort", "OVSBond") and interface.get("ovs_bridge"):
        before = f"auto {name}\n"
    return before + "\n".join(lines) + "\n\n"


def _address_lines(interface: Interface, suffix: str) -> list[str]:
    lines = []
    address = interface.get(f"address{suffix}")
    if address:
        bits = netmask_bits(str(interface.get(f"netmask{suffix}") or ""))
        plain = "/" in str(address) or bits is None
        lines.append(f"\taddress {address}" if plain else f"\taddress {address}/{bits}")
    gateway = interface.get(f"gateway{suffix}")
    return [*lines, f"\tgateway {gateway}"] if gateway else lines


def _own_lines(interface: Interface) -> tuple[list[str], frozenset[str]]:
    """Return the lines that a type has, and the settings that need no other line."""
    match interface["type"]:
        case "bridge":
            return _bridge_lines(interface), _DONE | _BRIDGE
        case "bond":
            return _bond_lines(interface), _DONE | _BOND
        case "OVSBridge":
            lines = ["\tovs_type OVSBridge"]
            if interface.get("ovs_ports"):
                lines.append(f"\tovs_ports {interface['ovs_ports']}")
            return [*lines, *_mtu(interface, "ovs_mtu")], _DONE | {"ovs_type", "ovs_ports", "mtu"}
        case "OVSPort" | "OVSIntPort" | "OVSBond":
            return _ovs_port_lines(interface)
        case _:
            return [], _DONE


def _bridge_lines(interface: Interface) -> list[str]:
    ports = " ".join(re.split(r"[;,\s]+", str(interface.get("bridge_ports") or "none").strip()))
    stp = interface.get("bridge_stp", "off")
    lines = [f"\tbridge-ports {ports}", f"\tbridge-stp {stp}"]
    delay = interface.get("bridge_fd", 0 if stp == "off" else None)
    if delay is not None and (stp == "off" or 2 <= int(delay) <= 30):
        lines.append(f"\tbridge-fd {delay}")
    if interface.get("bridge_vlan_aware") is not None:
        # Proxmox looks whether the setting is there, not which value it has.
        lines.append("\tbridge-vlan-aware yes")
        lines.append(f"\tbridge-vids {interface.get('bridge_vids') or '2-4094'}")
    return [*lines, *_mtu(interface, "mtu")]


def _bond_lines(interface: Interface) -> list[str]:
    slaves = " ".join(re.split(r"[;,\s]+", str(interface.get("slaves") or "none").strip()))
    mode = interface.get("bond_mode")
    lines = [
        f"\tbond-slaves {slaves}",
        f"\tbond-miimon {interface.get('bond_miimon', 100)}",
        f"\tbond-mode {mode or 'balance-rr'}",
    ]
    policy = interface.get("bond_xmit_hash_policy")
    if policy and mode in ("balance-xor", "802.3ad"):
        lines.append(f"\tbond-xmit-hash-policy {policy}")
    primary = interface.get("bond-primary")
    if primary and mode == "active-backup":
        lines.append(f"\tbond-primary {primary}")
    return [*lines, *_mtu(interface, "mtu")]


def _ovs_port_lines(interface: Interface) -> tuple[list[str], frozenset[str]]:
    options = ovs_options(str(interface.get("ovs_options") or ""))
    if interface.get("ovs_tag") is not None:
        options["tag"] = str(interface["ovs_tag"])
    done = _DONE | {"ovs_tag", "ovs_type", "ovs_bridge", "mtu", "ovs_options"}
    lines = []
    if interface["type"] == "OVSBond":
        _set_bond_mode(interface, options)
        done |= {"bond_mode", "ovs_bonds"}
        if interface.get("ovs_bonds"):
            lines.append(f"\tovs_bonds {interface['ovs_bonds']}")
    lines.append(f"\tovs_type {interface['type']}")
    if interface.get("ovs_bridge"):
        lines.append(f"\tovs_bridge {interface['ovs_bridge']}")
    lines += _mtu(interface, "ovs_mtu")
    if options:
        lines.append("\tovs_options " + " ".join(f"{key}={value}" for key, value in options.items()))
    return lines, done


def _set_bond_mode(interface: Interface, options: dict[str, str]) -> None:
    mode = str(interface.get("bond_mode") or "active-backup")
    if mode not in _OVS_BOND_MODES:
        raise PveError(f"OVS does not support bond mode '{mode}")
    options.pop("lacp", None)
    if mode.startswith("lacp-"):
        options["lacp"] = "active"
    options["bond_mode"] = mode.removeprefix("lacp-")


def _mtu(interface: Interface, key: str) -> list[str]:
    return [f"\t{key} {interface['mtu']}"] if interface.get("mtu") else []
