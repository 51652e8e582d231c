"""Addresses of guests: which networks there are, how leases are given, kept and given up."""

from __future__ import annotations

import ipaddress
from typing import Any

from pvelab.faults.latency import Latency, Work
from pvelab.server import facts
from pvelab.world.clock import LabClock
from pvelab.world.guests.addresses import Address, Interface, addresses_of, guest_at, has_booted, network_of
from pvelab.world.store import Store
from pvelab.world.world import World, assemble

FACTS = facts.load()


def new_world(**latency_s: float) -> World:
    overrides = {Work(name): seconds for name, seconds in latency_s.items()}
    world = assemble(FACTS, Store(), LabClock(), Latency(overrides_s=overrides))
    with world.store.transaction():
        world.store.put("nodes", "pve1", {"name": "pve1", "online": 1})
    return world


def add(world: World, vmid: int, kind: str = "lxc", *, running: bool = True, **config: Any) -> None:
    with world.store.transaction():
        world.guests.create(kind, "pve1", vmid, config)
        guest = world.guests.require(kind, "pve1", vmid)
        if running:
            world.guests.update(guest, status="running", started=world.clock.now())


def found(world: World, vmid: int) -> tuple[Interface, ...]:
    guest = world.guests.get(vmid)
    assert guest is not None
    return addresses_of(world, guest)


def ipv4(world: World, vmid: int, number: int = 0) -> str | None:
    addresses = found(world, vmid)[number].addresses
    return next((one.address for one in addresses if one.family == "inet"), None)


def nic(mac: str, more: str = "ip=dhcp", bridge: str = "vmbr0") -> str:
    return f"name=eth0,bridge={bridge},hwaddr=BC:24:11:00:00:{mac},{more},type=veth"


def test_a_lease_is_in_the_network_of_the_nodes_and_stays_the_same() -> None:
    world = new_world()
    add(world, 100, net0=nic("01"))
    first = ipv4(world, 100)
    assert first is not None
    assert ipaddress.IPv4Address(first) in ipaddress.IPv4Network("10.31.0.0/16")
    assert ipaddress.IPv4Address(first) >= ipaddress.IPv4Address("10.31.16.0")
    world.clock.advance(100_000)
    assert ipv4(world, 100) == first


def test_leases_are_unique_in_a_network_and_follow_from_the_mac() -> None:
    first, second = new_world(), new_world()
    for vmid in range(100, 300):
        mac = f"{vmid % 256:02X}"
        add(first, vmid, net0=nic(mac), net1=nic("00", f"ip=dhcp,tag={vmid}"))
    given = [ipv4(first, vmid) for vmid in range(100, 300)]
    assert len(set(given)) == 200
    add(second, 900, net0=nic("64"))
    assert ipv4(second, 900) == ipv4(first, 100)


def test_every_bridge_and_vlan_is_a_network_of_its_own() -> None:
    world = new_world()
    pairs = [(bridge, tag) for bridge in ("vmbr0", "vmbr1", "lan") for tag in (0, 1, 2, 4094)]
    with world.store.transaction():
        ranges = []
        for bridge, tag in pairs:
            network = network_of(world, bridge, tag)
            assert network is not None
            assert network == network_of(world, bridge, tag)
            ranges.append(network.range)
    for position, one in enumerate(ranges):
        assert not any(one.overlaps(other) for other in ranges[position + 1 :])


def test_the_number_of_a_nic_that_is_gone_is_given_again() -> None:
    world = new_world()
    add(world, 100, net0=nic("01"))
    first = ipv4(world, 100)
    with world.store.transaction():
        lease = next(iter(world.store.items("lease_numbers").items()))
        world.guests.remove(100)
    add(world, 101, net0=nic("01"))
    assert ipv4(world, 101) == first
    holder = world.store.get("lease_numbers", lease[0])
    assert holder is not None
    assert holder["vmid"] == 101
    with world.store.transaction():
        # Somebody else has the number that this address asks for first, and is not there any more.
        world.store.put("lease_numbers", lease[0], {**lease[1], "mac": "BC:24:11:FF:FF:FF", "vmid": 999})
    assert ipv4(world, 101) == first


def test_a_number_that_is_taken_is_passed_over() -> None:
    world = new_world()
    add(world, 100, net0=nic("01"))
    first = ipv4(world, 100)
    key, lease = next(iter(world.store.items("lease_numbers").items()))
    with world.store.transaction():
        world.store.delete("leases", f"{lease['network']}|{lease['mac']}")
        world.store.put("lease_numbers", key, {**lease, "mac": "BC:24:11:00:00:02", "vmid": 101})
        world.store.put("leases", f"{lease['network']}|BC:24:11:00:00:02", {"number": int(key.split("|")[1])})
    add(world, 101, net0=nic("02"))
    assert ipv4(world, 101) == first
    assert ipv4(world, 100) not in (None, first)


def test_a_guest_has_no_addresses_before_it_booted_and_none_of_its_nics_when_stopped() -> None:
    world = new_world(boot=600)
    add(world, 100, net0=nic("01"))
    add(world, 101, "qemu", net0="virtio=BC:24:11:00:00:09,bridge=vmbr0")
    add(world, 102, running=False, net0=nic("03"))
    assert [one.addresses for one in found(world, 100)] == [()]
    assert found(world, 102) == ()
    world.clock.advance(60)
    assert ipv4(world, 100) is not None
    assert ipv4(world, 101) is None
    world.clock.advance(540)
    guest = world.guests.get(101)
    assert guest is not None
    assert has_booted(world, guest)
    assert ipv4(world, 101) is not None


def test_a_vm_gets_what_cloud_init_says_and_dhcp_without_it() -> None:
    world = new_world()
    drive = "local-lvm:vm-100-cloudinit,media=cdrom,size=4M"
    first, second = "virtio=BC:24:11:00:00:0A,bridge=vmbr0", "virtio=BC:24:11:00:00:0B,bridge=vmbr0,tag=5"
    static = "ip=10.9.9.9/24,gw=10.9.9.1,ip6=dhcp"
    add(world, 100, "qemu", net0=first, net1=second, ide2=drive, ipconfig0=static)
    add(world, 101, "qemu", net0=second)
    eth0, eth1 = found(world, 100)
    assert (eth0.name, eth1.name, found(world, 101)[0].name) == ("eth0", "eth1", "ens18")
    assert eth0.addresses[0] == Address(address="10.9.9.9", prefix=24, family="inet")
    assert (eth0.addresses[1].prefix, eth0.addresses[2].is_link_local) == (128, True)
    assert [one.is_link_local for one in eth1.addresses] == [True]
    assert ipv4(world, 101) is not None


def test_addresses_by_mac_and_links_that_are_down() -> None:
    world = new_world()
    add(world, 100, net0=nic("0C", "ip6=auto"), net1=nic("0D", "ip=dhcp,link_down=1"))
    up, down = found(world, 100)
    assert [str(one.address) for one in up.addresses] == [
        "fd31::be24:11ff:fe00:c",
        "fe80::be24:11ff:fe00:c",
    ]
    assert down.addresses == ()


def test_a_guest_is_found_by_any_of_its_addresses() -> None:
    world = new_world()
    add(world, 100, net0=nic("01", "ip=10.9.9.9/24"))
    add(world, 101, net0=nic("02"))
    address = ipv4(world, 101)
    assert address is not None
    for wanted, vmid in (("10.9.9.9", 100), (address, 101), ("fe80:0:0:0:be24:11ff:fe00:2", 101)):
        guest = guest_at(world, wanted)
        assert guest is not None
        assert guest["vmid"] == vmid
    assert guest_at(world, "10.1.2.3") is None
