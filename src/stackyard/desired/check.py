"""What no single value can see: keys, references, ids and addresses across the whole model."""

from __future__ import annotations

import collections
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.desired.files import DeclaredFile
from stackyard.desired.firewall_words import name_in
from stackyard.desired.vm import Vm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.desired.firewall import Firewall
    from stackyard.desired.firewall_words import FirewallName
    from stackyard.desired.model import Desired, Guest

__all__ = ["Path", "Problem", "list_used_files", "problems"]

# Field names and indexes from the model down, as ("vms", 3, "nics", 0, "ipv4").
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One contradiction, and where it is in the model; a source knows the file and line behind that."""

    path: Path
    text: str


def problems(desired: Desired) -> tuple[Problem, ...]:
    """Return every contradiction in a model, in the order of its parts."""
    found = [
        *_find_duplicate_keys(desired),
        *_find_duplicate_vm_ids(desired),
        *_find_dangling(desired),
        *_cycles(desired),
        *_find_duplicate_names(desired),
        *_addresses(desired),
        *_networks(desired),
        *_affinities(desired),
        *_replications(desired),
        *_firewalls(desired),
    ]
    return tuple(found)


def _guests(desired: Desired) -> Iterator[tuple[Path, Guest]]:
    for index, vm in enumerate(desired.vms):
        yield ("vms", index), vm
    for index, container in enumerate(desired.containers):
        yield ("containers", index), container


def _find_duplicates(what: str, named: Iterable[tuple[Path, object, str]]) -> Iterator[Problem]:
    """Report each value that comes again: path, value, who has it."""
    first: dict[object, str] = {}
    for path, value, owner in named:
        if value in first:
            yield Problem(path=path, text=f"{what} {value} is used twice: by {first[value]} and by {owner}.")
        else:
            first[value] = owner


def _find_duplicate_keys(desired: Desired) -> Iterator[Problem]:
    guests = ((*path, "key") for path, _ in _guests(desired))
    yield from _find_duplicates(
        "The key",
        ((path, guest.key, guest.name) for path, (_, guest) in zip(guests, _guests(desired), strict=True)),
    )
    files = enumerate(desired.files)
    yield from _find_duplicates(
        "The key",
        ((("files", index, "key"), file.key, f"a {file.kind} on {file.node}") for index, file in files),
    )
    yield from _find_duplicates(
        "The pool",
        ((("pools", index, "name"), pool.name, "a pool") for index, pool in enumerate(desired.pools)),
    )


def _find_duplicate_vm_ids(desired: Desired) -> Iterator[Problem]:
    yield from _find_duplicates(
        "The vm id",
        (
            ((*path, "vm_id"), guest.vm_id, guest.name)
            for path, guest in _guests(desired)
            if guest.vm_id is not None
        ),
    )


def _find_duplicate_names(desired: Desired) -> Iterator[Problem]:
    interfaces = [
        *((("bridges", i, "name"), (b.node, b.name), "a bridge") for i, b in enumerate(desired.bridges)),
        *((("vlans", i, "name"), (v.node, v.name), "a VLAN") for i, v in enumerate(desired.vlans)),
    ]
    yield from _find_duplicates(
        "The interface", ((path, f"{name} of {node}", who) for path, (node, name), who in interfaces)
    )
    yield from _find_duplicates(
        "The zone", ((("zones", i, "name"), z.name, "a zone") for i, z in enumerate(desired.zones))
    )
    yield from _find_duplicates(
        "The vnet", ((("vnets", i, "name"), v.name, "a vnet") for i, v in enumerate(desired.vnets))
    )


def list_used_files(guest: Guest) -> Iterator[tuple[Path, object]]:
    """Return the files that a guest uses, with the place of each in it."""
    yield ("hook_script",), guest.hook_script
    if isinstance(guest, Vm):
        for index, disk in enumerate(guest.disks):
            yield ("disks", index, "file"), disk.file
        if guest.cdrom is not None:
            yield ("cdrom", "file"), guest.cdrom.file
        if guest.cloud_init is not None:
            for field in ("user_data", "vendor_data", "network_data", "meta_data"):
                yield ("cloud_init", field), getattr(guest.cloud_init, field)
    else:
        yield ("template",), guest.template


def _find_dangling(desired: Desired) -> Iterator[Problem]:
    files = {file.key: file for file in desired.files}
    keys = {guest.key for guest in desired.guests}
    for path, guest in _guests(desired):
        for where, used in list_used_files(guest):
            if not isinstance(used, DeclaredFile):
                continue
            file = files.get(used.file)
            if file is None:
                yield Problem(
                    path=(*path, *where),
                    text=f"{guest.name} uses the file {used.file}, which is not declared.",
                )
        for index, key in enumerate(guest.depends_on):
            if key not in keys:
                yield Problem(
                    path=(*path, "depends_on", index),
                    text=f"{guest.name} waits for {key}, which is no guest here.",
                )


def _cycles(desired: Desired) -> Iterator[Problem]:
    waits_for = {guest.key: guest.depends_on for guest in desired.guests}
    done: set[str] = set()
    for path, guest in _guests(desired):
        # In the order in which they wait; a dict, for a chain may be as long as the model.
        trail: dict[str, None] = {}
        stack = [(guest.key, 0)]
        while stack:
            key, place = stack.pop()
            if place == 0 and key in trail:
                waiting = list(trail)
                ring = [*waiting[waiting.index(key) :], key]
                yield Problem(
                    path=(*path, "depends_on"), text=f"These wait for each other: {' -> '.join(ring)}."
                )
                return
            after = waits_for.get(key, ())
            if key in done or place == len(after):
                done.add(key)
                if trail and next(reversed(trail)) == key:
                    trail.popitem()
                continue
            if place == 0:
                trail[key] = None
            stack.append((key, place + 1))
            stack.append((after[place], 0))


def _addresses(desired: Desired) -> Iterator[Problem]:
    """Report MACs and static addresses that two cards on one network have."""
    macs: list[tuple[Path, object, str]] = []
    static: dict[object, list[tuple[Path, object, str]]] = collections.defaultdict(list)
    for path, guest in _guests(desired):
        for index, nic in enumerate(guest.nics):
            where = (*path, "nics", index)
            if nic.mac is not None:
                macs.append(((*where, "mac"), nic.mac, guest.name))
            for field in ("ipv4", "ipv6"):
                address = getattr(nic, field)
                if address is not None and "/" in address:
                    ip = str(ipaddress.ip_interface(address).ip)
                    # The same address on two separate networks is two addresses.
                    static[nic.bridge, nic.vlan].append(((*where, field), ip, guest.name))
    yield from _find_duplicates("The MAC address", macs)
    for named in static.values():
        yield from _find_duplicates("The address", named)


def _networks(desired: Desired) -> Iterator[Problem]:
    zones = {zone.name for zone in desired.zones}
    vnets = {vnet.name for vnet in desired.vnets}
    for index, vnet in enumerate(desired.vnets):
        # A zone may be one that the cluster has already; a model with zones of its own means one of those.
        if zones and vnet.zone not in zones:
            yield Problem(
                path=("vnets", index, "zone"),
                text=f"The vnet {vnet.name} is in {vnet.zone}, which is no zone here.",
            )
    for index, subnet in enumerate(desired.subnets):
        if vnets and subnet.vnet not in vnets:
            yield Problem(
                path=("subnets", index, "vnet"),
                text=f"The subnet {subnet.cidr} is of {subnet.vnet}, which is no vnet here.",
            )
    yield from _find_duplicates(
        "The subnet",
        ((("subnets", i, "cidr"), f"{s.vnet} {s.cidr}", s.vnet) for i, s in enumerate(desired.subnets)),
    )


def _affinities(desired: Desired) -> Iterator[Problem]:
    managed = {guest.key: guest.ha is not None for guest in desired.guests}
    for index, affinity in enumerate(desired.affinities):
        for place, key in enumerate(affinity.guests):
            if not managed.get(key):
                why = "is not under high availability" if key in managed else "is no guest here"
                yield Problem(
                    path=("affinities", index, "guests", place),
                    text=f"The rule {affinity.name} is for {key}, which {why}.",
                )
    yield from _find_duplicates(
        "The rule", ((("affinities", i, "name"), a.name, "a rule") for i, a in enumerate(desired.affinities))
    )


def _replications(desired: Desired) -> Iterator[Problem]:
    for path, guest in _guests(desired):
        numbers: dict[int, str] = {}
        targets: set[str] = set()
        for place, job in enumerate(guest.replication):
            where = (*path, "replication", place)
            if job.target == guest.node:
                text = f"{guest.name} replicates to {job.target}, which is its own node."
                yield Problem(path=(*where, "target"), text=text)
            elif job.target in targets:
                text = f"{guest.name} replicates to {job.target} twice."
                yield Problem(path=(*where, "target"), text=text)
            targets.add(job.target)
            number = place if job.number is None else job.number
            if number in numbers:
                text = f"{guest.name} has two replications with the number {number}."
                yield Problem(path=(*where, "number"), text=f"{text} To {numbers[number]} and {job.target}.")
            numbers[number] = job.target


def _firewalls(desired: Desired) -> Iterator[Problem]:
    """Report what rules of a guest name of the guest itself, where it has nothing of the kind."""
    for path, guest in _guests(desired):
        if guest.firewall is None:
            continue
        for place, rule in enumerate(guest.firewall.rules):
            where = (*path, "firewall", "rules", place)
            if rule.iface is not None and int(rule.iface.removeprefix("net")) >= len(guest.nics):
                text = f"{guest.name} has no card {rule.iface} for a rule: it has {len(guest.nics)}."
                yield Problem(path=(*where, "iface"), text=text)
            for field in ("source", "dest"):
                found = name_in(getattr(rule, field) or "")
                if found is not None and found.scope == "guest" and not _has_name(guest.firewall, found):
                    text = f"The firewall of {guest.name} has no {found}."
                    yield Problem(path=(*where, field), text=text)


def _has_name(firewall: Firewall, found: FirewallName) -> bool:
    if found.is_set:
        return found.name in firewall.ipsets
    return found.name.lower() in {name.lower() for name in firewall.aliases}
