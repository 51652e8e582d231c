"""Reading `/etc/network/interfaces` the way Proxmox does: what the file says, and what follows from it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Interface", "Interfaces", "is_physical", "netmask_bits", "ovs_options", "read_interfaces"]

Interface = dict[str, Any]

_ALTERNATIVES = {
    "ovs_mtu": "mtu",
    "bond-slaves": "slaves",
    "bond_slaves": "slaves",
    "bond-xmit-hash-policy": "bond_xmit_hash_policy",
    "bond-mode": "bond_mode",
    "bond-miimon": "bond_miimon",
    "bridge-vlan-aware": "bridge_vlan_aware",
    "bridge-fd": "bridge_fd",
    "bridge-stp": "bridge_stp",
    "bridge-ports": "bridge_ports",
    "bridge-vids": "bridge_vids",
}
_SIMPLE = frozenset(
    (
        *("mtu", "ovs_type", "ovs_options", "ovs_bridge", "ovs_bonds", "ovs_ports", "bridge_fd"),
        *("bridge_vids", "bond_miimon", "bond_mode", "bond_xmit_hash_policy", "bond-primary"),
        *("vlan-raw-device", "vlan-id"),
    )
)
_BY_FAMILY = frozenset(("address", "netmask", "broadcast", "gateway"))
_PHYSICAL = re.compile(r"eth\d+|en[^:.]+|ib[^:.]+|(?:nic|if)\d+")
_FIRST_PRIORITY = 2


@dataclass(slots=True, kw_only=True)
class Interfaces:
    """What a file holds: interfaces by name, and the lines that are none of them, with their place."""

    by_name: dict[str, Interface] = field(default_factory=dict)
    others: list[tuple[int, str]] = field(default_factory=list)

    def at(self, name: str) -> Interface:
        """Return an interface, a new empty one if the file did not mention it yet."""
        return self.by_name.setdefault(name, {})


def read_interfaces(text: str, *, links: Collection[str] = (), active: Collection[str] = ()) -> Interfaces:
    """Read a file.

    Args:
        text: The file.
        links: The network cards of the node, which exist whether the file mentions them or not.
        active: The interfaces that are up.
    """
    found = _parse(text)
    for name in links:
        found.at(name)["exists"] = 1
    for name in active:
        if name in found.by_name:
            found.by_name[name]["active"] = 1
    for name in sorted(found.by_name):
        interface = found.by_name[name]
        interface["type"] = _derive(name, interface, found, links)
        _add_cidr(interface, "")
        _add_cidr(interface, "6")
        interface.setdefault("method", "manual")
        interface.setdefault("method6", "manual")
        interface.setdefault("families", ["inet"])
        if "comments6" in interface:
            interface["comments"] = interface.get("comments", "") + interface.pop("comments6")
    return found


def is_physical(name: str) -> bool:
    """Return whether a name is one that the kernel gives to network cards."""
    return bool(_PHYSICAL.fullmatch(name))


def netmask_bits(mask: str) -> str | None:
    """Return the length of a prefix, given as such or as a mask; None if it is neither."""
    if mask.isdecimal():
        return mask
    try:
        return str(ipaddress.IPv4Network(f"0.0.0.0/{mask}").prefixlen)
    except ValueError:
        return None


def ovs_options(text: str) -> dict[str, str]:
    """Read the options of an Open vSwitch interface."""
    pairs = (part.partition("=") for part in text.split())
    return {key: value for key, equals, value in pairs if key and equals}


def _parse(text: str) -> Interfaces:
    found = Interfaces()
    lines = text.split("\n")
    priority = _FIRST_PRIORITY
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if re.match(r"\s*#", line):
            continue
        if auto := re.match(r"\s*(?:allow-auto|auto|allow-ovs|allow-hotplug)\s+(.*)$", line):
            for name in auto[1].split():
                found.at(name)["autostart"] = 1
        elif start := re.fullmatch(r"\s*iface\s+(\S+)\s+(inet6?)\s+(\S+)\s*", line):
            interface = found.at(start[1])
            if "priority" not in interface:
                interface["priority"] = priority
                priority += 1
            interface.setdefault("families", []).append(start[2])
            suffix = start[2].removeprefix("inet")
            interface[f"method{suffix}"] = start[3]
            place = _parse_stanza(lines, place, interface, suffix)
        elif re.search(r"\w", line):
            found.others.append((priority, line))
            priority += 1
    return found


def _parse_stanza(lines: list[str], place: int, interface: Interface, suffix: str) -> int:
    """Read the lines of one interface and return the place of the first that is none of them."""
    while place < len(lines):
        line = lines[place].rstrip()
        if comment := re.fullmatch(r"\s*#(.*?)\s*", line):
            key = f"comments{suffix}"
            interface[key] = interface.get(key, "") + f"{comment[1]}\n"
        elif re.match(r"\s*(?:(?:iface|mapping|auto|source|source-directory)\s|allow-)", line):
            break
        elif option := re.fullmatch(r"\s*(\S+)\s+(.+)", line):
            _take(interface, suffix, _ALTERNATIVES.get(option[1], option[1]), option[2])
        else:
            break
        place += 1
    return place


def _take(interface: Interface, suffix: str, key: str, value: str) -> None:
    if key in _BY_FAMILY:
        interface[f"{key}{suffix}"] = value
    elif key in _SIMPLE:
        interface[key] = value
    elif key in ("slaves", "bridge_ports"):
        interface[key] = " ".join(sorted({port for port in value.split() if port != "none"}))
    elif key == "bridge_stp":
        interface[key] = "on" if value.strip().lower() in ("on", "yes") else "off"
    elif key == "bridge_vlan_aware":
        interface[key] = 1
    else:
        interface.setdefault(f"options{suffix}", []).append(f"{key} {value}")


def _derive(name: str, interface: Interface, found: Interfaces, links: Collection[str]) -> str:
    """Return the type of an interface, and complete what follows from its name and type."""
    ovs_type = interface.get("ovs_type", "")
    if "bridge_ports" in interface:
        interface.setdefault("bridge_stp", "off")
        if interface["bridge_stp"] == "off":
            interface.setdefault("bridge_fd", 0)
        return "bridge"
    if ovs_type == "OVSBridge":
        return "OVSBridge"
    if re.fullmatch(r"bond\d+", name):
        return _derive_bond(interface)
    if alias := re.fullmatch(r"(\S+):\d+", name):
        _exist_with(interface, alias[1], found)
        return "alias"
    if re.fullmatch(r"\S+\.\d+", name) or interface.get("vlan-raw-device"):
        _derive_vlan(name, interface, found)
        return "vlan"
    if ovs_type in ("OVSPort", "OVSIntPort"):
        _extract_tag(interface)
        return str(ovs_type)
    if name in links or is_physical(name):
        return "eth"
    return "loopback" if name == "lo" else "unknown"


def _derive_bond(interface: Interface) -> str:
    if interface.get("ovs_type") != "OVSBond":
        return "bond"
    options = ovs_options(interface.get("ovs_options", ""))
    mode, lacp = options.pop("bond_mode", ""), options.pop("lacp", "")
    if mode == "balance-tcp" or (mode == "balance-slb" and lacp == "active"):
        mode = f"lacp-{mode}"
    interface["bond_mode"] = mode
    _set_options(interface, options)
    _extract_tag(interface)
    return "OVSBond"


def _derive_vlan(name: str, interface: Interface, found: Interfaces) -> None:
    if dotted := re.fullmatch(r"(\S+)\.(\d+)", name):
        interface.setdefault("vlan-raw-device", dotted[1])
        if int(dotted[2]):
            interface["vlan-id"] = dotted[2]
    elif numbered := re.fullmatch(r"vlan(\d+)", name):
        interface["vlan-id"] = numbered[1]
    _exist_with(interface, str(interface["vlan-raw-device"]), found)


def _exist_with(interface: Interface, parent: str, found: Interfaces) -> None:
    """Let an interface exist if its parent does; nothing is said where nothing is known of the parent."""
    if parent not in found.by_name:
        interface["exists"] = 0
    elif "exists" in found.by_name[parent]:
        interface["exists"] = found.by_name[parent]["exists"]
    else:
        # Perl copies the missing value, which clients see as null.
        interface["exists"] = None


def _extract_tag(interface: Interface) -> None:
    options = ovs_options(interface.get("ovs_options", ""))
    if "tag" in options:
        interface["ovs_tag"] = options.pop("tag")
        _set_options(interface, options)


def _set_options(interface: Interface, options: dict[str, str]) -> None:
    if options:
        interface["ovs_options"] = " ".join(f"{key}={value}" for key, value in options.items())
    else:
        interface.pop("ovs_options", None)


def _add_cidr(interface: Interface, suffix: str) -> None:
    address = interface.get(f"address{suffix}")
    if not address:
        return
    base, slash, mask = str(address).partition("/")
    if slash:
        interface |= {f"cidr{suffix}": address, f"address{suffix}": base, f"netmask{suffix}": mask}
        return
    bits = netmask_bits(str(interface.get(f"netmask{suffix}") or ""))
    if bits is None:
        interface[f"cidr{suffix}"] = f"{base}/{'128' if suffix else '32'}"
    else:
        interface[f"cidr{suffix}"] = f"{base}/{bits}"
        interface[f"netmask{suffix}"] = bits
