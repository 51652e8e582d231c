"""Interfaces of a node: each is used once, and one that is on another fits on it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.hypervisor.checks.references import BAD_NAME, NOT_IN_FILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts

__all__ = ["BAD_VLAN", "IN_TWO", "check_interfaces"]

IN_TWO = Kind(
    code="E-HYPERVISOR-INTERFACE",
    summary="An interface cannot be used so",
    remedy="An interface is in one bridge or one bond; bridges and bonds are in no bond.",
)
BAD_SETTING = Kind(
    code="E-HYPERVISOR-INTERFACE-VALUE",
    summary="An interface cannot be set so",
    remedy="Correct the value; a bond has at least one slave.",
)
BAD_VLAN = Kind(
    code="E-HYPERVISOR-VLAN",
    summary="A VLAN does not work on its interface",
    remedy="Write `vlan_aware: true` at the bridge, a number that its `vids` have, or another interface.",
)

_SECTIONS = ("bonds", "bridges", "vlans")
# What people and Proxmox call bridges and bonds; the names of physical interfaces cannot be known.
_DECLARED = re.compile(r"(?:vmbr|bond)\d+")
_ON_OTHER = re.compile(r"(?P<interface>.+)\.(?P<number>\d{1,9})")
_LAST_VLAN = 4094
# What the kernel takes.
_LONGEST_NAME = 15
# What Proxmox takes.
_MTU = (1280, 65520)


def check_interfaces(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check the bonds, bridges and VLANs of every node."""
    del site
    for file in files:
        if file.is_node:
            _check_plain(file, found)
            _check_ports(file, found)
            for vlan in file.section("vlans"):
                _check_vlan(file, vlan, found)
            _check_numbers(file, found)
    _check_zones(files, found)


def _check_plain(file: HypervisorFile, found: Diagnostics) -> None:
    """Check the values of interfaces that stand for themselves."""
    for entry in file.section(*_SECTIONS):
        if len(entry.name) > _LONGEST_NAME:
            detail = (
                f"'{entry.name}' has {len(entry.name)} characters; an interface has at most {_LONGEST_NAME}."
            )
            found.add(BAD_NAME, detail, file.key_place(entry))
        mtu = entry.values.get("mtu")
        if mtu is not None and not _MTU[0] <= mtu <= _MTU[1]:
            detail = f"The MTU of '{entry.name}' is {mtu}; it is {_MTU[0]} to {_MTU[1]}."
            found.add(BAD_SETTING, detail, file.place(entry, "mtu"))
        slaves = entry.values.get("slaves")
        if slaves is not None and not slaves and not file.is_lost(*entry.path, "slaves"):
            found.add(BAD_SETTING, f"'{entry.name}' has no slaves.", file.place(entry, "slaves"))
        primary = entry.values.get("bond_primary")
        if primary is not None and slaves and primary not in slaves and not file.has_lost(entry, "slaves"):
            detail = f"'{primary}' is no slave of '{entry.name}'.{did_you_mean(primary, slaves)}"
            found.add(BAD_SETTING, detail, file.place(entry, "bond_primary"))


def _check_numbers(file: HypervisorFile, found: Diagnostics) -> None:
    """Check that an interface has each VLAN once, whatever it is called."""
    seen: dict[tuple[str, int], Entry] = {}
    for vlan in file.section("vlans"):
        below, number = _split_vlan(vlan)
        if below is None or number is None:
            continue
        _check_mtu(file, vlan, below, found)
        first = seen.setdefault((below, number), vlan)
        if first is not vlan:
            detail = f"'{first.name}' and '{vlan.name}' are both the VLAN {number} of '{below}'."
            found.add(BAD_VLAN, detail, file.place(vlan), also=(file.place(first),))


def _check_mtu(file: HypervisorFile, vlan: Entry, below: str, found: Diagnostics) -> None:
    """Check that the packets of a VLAN fit through its interface."""
    mine = vlan.values.get("mtu")
    for other in file.section(*_SECTIONS):
        theirs = other.values.get("mtu")
        if other.name == below and mine is not None and theirs is not None and mine > theirs:
            detail = f"The MTU of '{vlan.name}' is {mine}, and that of '{below}' below it is {theirs}."
            found.add(BAD_SETTING, detail, file.place(vlan, "mtu"), also=(file.place(other, "mtu"),))


def _split_vlan(vlan: Entry) -> tuple[str | None, int | None]:
    """Return the interface and the number of a VLAN; None for what it does not say."""
    named = _ON_OTHER.fullmatch(vlan.name)
    below = vlan.values.get("interface") or (named["interface"] if named else None)
    number = vlan.values.get("vlan") or (int(named["number"]) if named else None)
    return below, None if number is None else int(number)


def _check_ports(file: HypervisorFile, found: Diagnostics) -> None:
    """Check what bonds and bridges are made of."""
    users: dict[str, tuple[Entry, int]] = {}
    for entry in file.section("bonds", "bridges"):
        attribute = "slaves" if entry.section.name == "bonds" else "ports"
        for index, port in enumerate(entry.values.get(attribute) or ()):
            where = file.place(entry, attribute, index)
            first, number = users.setdefault(port, (entry, index))
            if first is not entry:
                detail = f"'{port}' is in '{first.name}' and in '{entry.name}'."
                found.add(IN_TWO, detail, where)
            elif number != index:
                found.add(IN_TWO, f"'{port}' is in '{entry.name}' twice.", where)
            elif _lies_on(file, port, entry.name):
                found.add(IN_TWO, f"'{port}' is a VLAN of '{entry.name}' itself.", where)
            elif port == entry.name or port in file.names("bridges"):
                found.add(IN_TWO, f"'{port}' is a bridge and cannot be a part of '{entry.name}'.", where)
            elif attribute == "slaves" and port in file.names("bonds"):
                found.add(IN_TWO, f"'{port}' is a bond and cannot be a part of '{entry.name}'.", where)
            else:
                _check_declared(file, port, entry, (attribute, index), found)


def _lies_on(file: HypervisorFile, name: str, below: str) -> bool:
    """Return whether an interface is a VLAN of another, or a VLAN of one of its VLANs."""
    passed: set[str] = set()
    vlans = {vlan.name: _split_vlan(vlan)[0] for vlan in file.section("vlans")}
    while name not in passed:
        passed.add(name)
        named = _ON_OTHER.fullmatch(name)
        name = vlans.get(name) or (named["interface"] if named else name)
        if name == below:
            return True
    return False


def _check_declared(
    file: HypervisorFile, name: str, entry: Entry, keys: tuple[str | int, ...], found: Diagnostics
) -> None:
    """Warn of an interface that only a file can have made, and none has."""
    known = {one for section in _SECTIONS for one in file.names(section)}
    if any(file.may_have(section, name) for section in _SECTIONS):
        return
    if _DECLARED.fullmatch(name):
        detail = f"'{entry.name}' uses '{name}', which this file does not have.{did_you_mean(name, known)}"
        found.add(NOT_IN_FILES, detail, file.place(entry, *keys))


def _check_vlan(file: HypervisorFile, vlan: Entry, found: Diagnostics) -> None:
    named = _ON_OTHER.fullmatch(vlan.name)
    said = vlan.values.get("interface")
    below, number = _split_vlan(vlan)
    if below is None or number is None:
        detail = (
            f"'{vlan.name}' does not say its interface and number: call it INTERFACE.NUMBER, or write both."
        )
        found.add(BAD_VLAN, detail, file.key_place(vlan))
        return
    if named and (below, number) != (named["interface"], int(named["number"])):
        detail = f"'{vlan.name}' says the interface '{below}' and the number {number}, unlike its name."
        found.add(BAD_VLAN, detail, file.place(vlan, "interface" if said else "vlan"))
    elif not 1 <= number <= _LAST_VLAN:
        detail = f"'{vlan.name}' has the number {number}: VLANs are from 1 to {_LAST_VLAN}."
        found.add(BAD_VLAN, detail, file.place(vlan))
    else:
        _check_bridge(file, vlan, below, number, found)


def _check_bridge(file: HypervisorFile, vlan: Entry, below: str, number: int, found: Diagnostics) -> None:
    bridge = next((one for one in file.section("bridges") if one.name == below), None)
    if bridge is None:
        _check_declared(file, below, vlan, ("interface",), found)
    elif not bridge.values.get("vlan_aware") and not file.is_lost(*bridge.path, "vlan_aware"):
        detail = f"'{vlan.name}' is on '{below}', which is not VLAN-aware."
        found.add(BAD_VLAN, detail, file.place(vlan), also=(file.place(bridge),))
    elif not _allows(bridge.values.get("vids"), number):
        detail = f"'{below}' passes the VLANs {bridge.values['vids']}, and {number} is none of them."
        found.add(BAD_VLAN, detail, file.place(vlan), also=(file.place(bridge, "vids"),))


def _allows(vids: str | None, number: int) -> bool:
    """Return whether a bridge passes a VLAN; what is in no known form is for Proxmox to judge."""
    spans = [
        re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", one) for one in re.split(r"[\s,;]+", vids or "") if one
    ]
    known = [one for one in spans if one is not None]
    if not known or len(known) != len(spans):
        return True
    return any(int(one[1]) <= number <= int(one[2] or one[1]) for one in known)


def _check_zones(files: Sequence[HypervisorFile], found: Diagnostics) -> None:
    """Check the bridges of zones, where node files say which bridges there are."""
    nodes = [file for file in files if file.section("bridges")]
    known = {name for file in nodes for name in (*file.names("bridges"), *file.names("vlans"))}
    for file in files:
        for zone in file.section("sdn.zones"):
            bridge = zone.values.get("bridge")
            if bridge is not None and nodes and not any(one.may_have("bridges", bridge) for one in nodes):
                detail = f"No file of a node has the bridge '{bridge}'.{did_you_mean(bridge, known)}"
                found.add(NOT_IN_FILES, detail, file.place(zone, "bridge"))
