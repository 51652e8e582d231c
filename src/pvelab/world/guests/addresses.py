"""The addresses of guests: what a VM's agent and a container's interface list tell, and where to reach them.

Every pair of a bridge and a VLAN tag is a network of its own, in which the lab answers DHCP:

- `vmbr0` without a tag, where the nodes are: `10.31.0.0/16`, guests from `10.31.16.0` on, unless the lab was
  given another network for guests (one in `127.0.0.0/8`, so that they are reached at their addresses);
- every other pair: a /18 of `10.64.0.0` to `10.255.255.255`, chosen by the names and kept from the first
  lease on. The first 16 addresses are the network's own (the router is the first).

The upper half of a network is for the guests of nested labs that are in it (`nested.uplink`).

Which number a guest gets follows from its MAC address; the next free one, where that is taken. A lease stays
the same as long as the NIC does, also across a restart of the lab; the number of a NIC that is gone is free.
IPv6: a link-local address by MAC, always; `ip6=auto` adds one by MAC in `fd31:<network>::/64`, `ip6=dhcp` one
by the number of the lease.

Documents: `lab_networks/<bridge>|<tag>` has the `number` of a network; `leases/<network>|<mac>` the `number`
of a lease, `lease_numbers/<network>|<number>` whose it is: `mac vmid key`.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.nested.uplink import SLICES, claim_slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.nested.uplink import Uplink
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = [
    "LOOPBACK",
    "MAIN",
    "Address",
    "Interface",
    "Network",
    "addresses_of",
    "boot_seconds",
    "guest_at",
    "has_booted",
    "list_planned_addresses",
    "network_of",
]

MAIN = ("vmbr0", 0)
# Below this the nodes and the router of the main network have their addresses.
_MAIN_FIRST = 16 * 256
_OTHERS_BASE = int(ipaddress.IPv4Address("10.64.0.0"))
_OTHERS_PREFIX = 18
_OTHERS_COUNT = 3 * 2**22 // 2 ** (32 - _OTHERS_PREFIX)
_OTHERS_FIRST = 16
_IPV6_BASE = 0xFD31 << 112
_LINK_LOCAL_BASE = 0xFE80 << 112
# A container starts its init at once; a VM has firmware, a boot loader and a kernel before that.
_CONTAINER_BOOT_SHARE = 0.1
_FIRST_PCI_SLOT = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An address of an interface; `family` is `inet` or `inet6`."""

    address: str
    prefix: int
    family: str

    @property
    def is_link_local(self) -> bool:
        """Whether it is known on its own link only."""
        return ipaddress.ip_address(self.address).is_link_local


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A network interface as the guest sees it; `key` is its option (`net0`), empty for the loopback."""

    name: str
    mac: str
    key: str = ""
    bridge: str = ""
    tag: int = 0
    addresses: tuple[Address, ...] = ()


LOOPBACK = Interface(
    name="lo",
    mac="00:00:00:00:00:00",
    addresses=(
        Address(address="127.0.0.1", prefix=8, family="inet"),
        Address(address="::1", prefix=128, family="inet6"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network of a bridge and a VLAN tag."""

    number: int
    range: ipaddress.IPv4Network
    first: int
    count: int | None = None

    @property
    def size(self) -> int:
        """How many addresses DHCP has to give."""
        return self.range.num_addresses // 2 - self.first if self.count is None else self.count


def boot_seconds(world: World, guest: Document) -> float:
    """Return how long a guest takes from its start until it has addresses and its agent answers."""
    seconds = world.latency.seconds(Work.BOOT)
    return seconds if guest["type"] == "qemu" else seconds * _CONTAINER_BOOT_SHARE


def has_booted(world: World, guest: Document) -> bool:
    """Return whether a guest runs and has had the time to boot."""
    if guest["status"] != "running" or guest["started"] is None or "halted" in guest["run"]:
        return False
    # A guest that was reset boots again while its QEMU goes on; one whose memory was restored need not boot.
    since = guest["run"].get("booting_since", guest["started"])
    return bool(world.clock.now() >= since + boot_seconds(world, guest))


def addresses_of(world: World, guest: Document) -> tuple[Interface, ...]:
    """Return the NICs of a running guest, the loopback not among them; without addresses until it booted.

    Addresses that DHCP gives are recorded, in the running transaction or in one of its own.
    """
    if guest["status"] != "running":
        return ()
    if not has_booted(world, guest):
        return tuple(_plain(nic) for nic in _nics(guest))
    return list_planned_addresses(world, guest)


def list_planned_addresses(world: World, guest: Document) -> tuple[Interface, ...]:
    """Return the NICs of a guest with the addresses that they have once it has booted."""
    with world.store.transaction():
        return tuple(_interface(world, guest, nic) for nic in _nics(guest))


def guest_at(world: World, address: str) -> Document | None:
    """Return the guest that answers at an address, or None."""
    wanted = ipaddress.ip_address(address)
    for guest in world.guests.all().values():
        for interface in addresses_of(world, guest):
            if any(ipaddress.ip_address(one.address) == wanted for one in interface.addresses):
                return guest
    return None


def network_of(world: World, bridge: str, tag: int) -> Network | None:
    """Return the network of a bridge and a tag, recorded in the running transaction; None if all are taken.

    Args:
        world: The lab.
        bridge: The name of a bridge, or of a virtual network.
        tag: The VLAN, 0 for none.
    """
    if (bridge, tag) == MAIN:
        if world.uplink is not None:
            return _find_bridge_network(world.uplink)
        main = world.nest.guest_network
        return Network(number=0, range=main, first=_MAIN_FIRST if main.prefixlen <= 16 else _OTHERS_FIRST)
    key = f"{bridge}|{tag}"
    known = world.store.get("lab_networks", key)
    if known is None:
        taken = {int(found["number"]) for found in world.store.items("lab_networks").values()}
        preferred = zlib.crc32(key.encode())
        free = (1 + (preferred + step) % _OTHERS_COUNT for step in range(_OTHERS_COUNT))
        number = next((number for number in free if number not in taken), None)
        if number is None:
            return None
        known = {"bridge": bridge, "tag": tag, "number": number}
        world.store.put("lab_networks", key, known)
    number = int(known["number"])
    base = _OTHERS_BASE + (number - 1) * 2 ** (32 - _OTHERS_PREFIX)
    return Network(number=number, range=ipaddress.IPv4Network((base, _OTHERS_PREFIX)), first=_OTHERS_FIRST)


def _find_bridge_network(uplink: Uplink) -> Network | None:
    """Return the network of the main bridge of a nested node: that of the guest, with a slice of its own."""
    path, above = uplink.path, uplink
    while (nic := _first_nic(above)) is not None:
        outer = above.world.uplink
        if outer is None or (nic.bridge, nic.tag) != MAIN:
            network = network_of(above.world, nic.bridge, nic.tag)
            if network is None:
                return None
            half = network.range.num_addresses // 2
            count = half // SLICES
            number = claim_slice(above.world, network.number, path)
            # The last number of all is the broadcast address.
            return dataclasses.replace(network, first=half + number * count, count=count - 1)
        above = outer
    return None


def _first_nic(uplink: Uplink) -> _Nic | None:
    guest = uplink.guest
    return None if guest is None else next(iter(_nics(guest)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nic:
    """A NIC as configured: where it is plugged in and how it is to get its addresses."""

    key: str
    name: str
    mac: str
    bridge: str
    tag: int
    up: bool
    ip: str
    ip6: str


def _nics(guest: Document) -> Iterator[_Nic]:
    config = guest["config"]
    keys = sorted((key for key in config if re.fullmatch(r"net\d+", key)), key=lambda key: int(key[3:]))
    cloudinit = guest["type"] == "qemu" and _has_cloudinit(config)
    talos = guest["run"].get("talos")
    for key in keys:
        number = int(key[3:])
        options = _options(str(config[key]))
        if guest["type"] == "lxc":
            name, how = options.get("name", f"eth{number}"), _container_addressing(config, options)
        else:
            # Cloud-init names NICs by their order; without it the kernel does, by their slot.
            name = f"eth{number}" if cloudinit else f"ens{_FIRST_PCI_SLOT + number}"
            how = _options(str(config.get(f"ipconfig{number}", ""))) if cloudinit else {"ip": "dhcp"}
            if cloudinit and "network=" in str(config.get("cicustom", "")):
                how = {"ip": "dhcp"}
            if talos is not None:
                name, how = f"ens{_FIRST_PCI_SLOT + number}", _talos_addressing(talos, how, number)
        yield _Nic(
            key=key,
            name=name,
            mac=options["mac"],
            bridge=options.get("bridge", ""),
            tag=int(options.get("tag", 0)),
            up=options.get("link_down") != "1",
            ip=how.get("ip", ""),
            ip6=how.get("ip6", ""),
        )


def _talos_addressing(talos: Mapping[str, Any], how: Mapping[str, str], number: int) -> Mapping[str, str]:
    """Return how Talos addresses a NIC: by its configuration, its NoCloud data, or DHCP."""
    if number == 0 and talos.get("ip"):
        return {"ip": str(talos["ip"])}
    return how if talos["platform"] == "nocloud" and how.get("ip") else {"ip": "dhcp"}


def _options(text: str) -> dict[str, str]:
    """Read a device as the configuration holds it; `mac` is `hwaddr`, or the text beside the model."""
    options: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        options[key] = value
        if key in ("hwaddr", "macaddr") or re.fullmatch(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", value):
            options["mac"] = value.upper()
    options.setdefault("mac", LOOPBACK.mac)
    return options


def _has_cloudinit(config: Mapping[str, Any]) -> bool:
    return any(
        "cloudinit" in str(value) and re.fullmatch(r"(?:ide|sata|scsi|virtio)\d+", key)
        for key, value in config.items()
    )


def _container_addressing(config: Mapping[str, Any], options: Mapping[str, str]) -> Mapping[str, str]:
    # Proxmox writes the network files of systems that it knows; others it only sets up from outside.
    managed = config.get("ostype") != "unmanaged" or options.get("host-managed") == "1"
    return options if managed else {}


def _interface(world: World, guest: Document, nic: _Nic) -> Interface:
    found: list[Address] = []
    if nic.up and nic.bridge:
        found += _ipv4(world, guest, nic)
        found += _ipv6(world, guest, nic)
    return dataclasses.replace(_plain(nic), addresses=tuple(found))


def _plain(nic: _Nic) -> Interface:
    return Interface(name=nic.name, mac=nic.mac, key=nic.key, bridge=nic.bridge, tag=nic.tag)


def _ipv4(world: World, guest: Document, nic: _Nic) -> list[Address]:
    if nic.ip == "dhcp":
        network = network_of(world, nic.bridge, nic.tag)
        number = None if network is None else _lease(world, network, nic, int(guest["vmid"]))
        if network is None or number is None:
            return []
        return [Address(address=str(network.range[number]), prefix=network.range.prefixlen, family="inet")]
    return _static(nic.ip, "inet")


def _ipv6(world: World, guest: Document, nic: _Nic) -> list[Address]:
    link_local = ipaddress.IPv6Address(_LINK_LOCAL_BASE | _interface_id(nic.mac))
    found = [Address(address=str(link_local), prefix=64, family="inet6")]
    network = network_of(world, nic.bridge, nic.tag)
    how = nic.ip6
    if not how and network is not None and network.range.is_loopback:
        # Clients do not count an address on loopback as one of a guest: the router announces a prefix too.
        how = "auto"
    if how not in ("auto", "dhcp"):
        return _static(how, "inet6") + found
    if network is None:
        return found
    base = _IPV6_BASE | network.number << 64
    if how == "auto":
        address = ipaddress.IPv6Address(base | _interface_id(nic.mac))
        return [Address(address=str(address), prefix=64, family="inet6"), *found]
    number = _lease(world, network, nic, int(guest["vmid"]))
    if number is None:
        return found
    return [Address(address=str(ipaddress.IPv6Address(base | number)), prefix=128, family="inet6"), *found]


def _static(text: str, family: str) -> list[Address]:
    address, slash, prefix = text.partition("/")
    return [Address(address=address, prefix=int(prefix), family=family)] if slash else []


def _interface_id(mac: str) -> int:
    """Return the lower half of an address by MAC (EUI-64)."""
    number = int(mac.replace(":", ""), 16)
    return ((number >> 24) << 40 | 0xFFFE << 24 | number & 0xFFFFFF) ^ 1 << 57


def _lease(world: World, network: Network, nic: _Nic, vmid: int) -> int | None:
    """Return the number that DHCP gives a NIC, its earlier one if it had one; None if all are taken."""
    store = world.store
    mine = f"{network.number}|{nic.mac}"
    known = store.get("leases", mine)
    owner = {"network": network.number, "mac": nic.mac, "vmid": vmid, "key": nic.key}
    if known is not None:
        number = int(known["number"])
        place = f"{network.number}|{number}"
        holder = store.get("lease_numbers", place)
        if holder is not None and holder["mac"] == nic.mac:
            if holder != owner:
                store.put("lease_numbers", place, owner)
            return number
    preferred = zlib.crc32(nic.mac.encode())
    for step in range(network.size):
        number = network.first + (preferred + step) % network.size
        place = f"{network.number}|{number}"
        holder = store.get("lease_numbers", place)
        if holder is None or not _is_plugged_in(world, network, holder):
            if holder is not None:
                store.delete("leases", f"{network.number}|{holder['mac']}")
            store.put("leases", mine, {"number": number})
            store.put("lease_numbers", place, owner)
            return number
    return None


def _is_plugged_in(world: World, network: Network, holder: Document) -> bool:
    """Return whether the NIC that has a lease is still there, in the same network."""
    guest = world.guests.get(int(holder["vmid"]))
    for nic in _nics(guest) if guest is not None else ():
        if nic.mac == holder["mac"] and network_of(world, nic.bridge, nic.tag) == network:
            return True
    return False
