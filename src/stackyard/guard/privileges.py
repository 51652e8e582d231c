"""Comparing what the calls of a plan need with what the token may do, and what only root@pam may."""

from __future__ import annotations

import collections
import dataclasses
import shlex
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.desired import Container, Vm
from stackyard.guard.facts import VERSION, VNETS, rights_on
from stackyard.guard.findings import Finding
from stackyard.guard.object_rights import list_object_rights
from stackyard.guard.rights import Grant, list_plan_rights
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stackyard.desired import Guest
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.implied import ImpliedCalls
    from stackyard.guard.rights import Right

__all__ = [
    "PRIVILEGE",
    "PRIVILEGE_ADVISED",
    "ask_paths",
    "ask_rights",
    "find_lacking",
    "find_rights",
    "find_root_only",
]

PRIVILEGE = Kind(
    code="E-PREFLIGHT-PRIVILEGE",
    summary="A privilege is missing",
    remedy=(
        "Give a role that has it to the user, and to the token where it has privileges of its own: "
        "`pveum acl modify PATH --roles ROLE --users USER --tokens TOKEN`."
    ),
)
PRIVILEGE_ADVISED = Kind(
    code="W-PREFLIGHT-PRIVILEGE",
    summary="A privilege is missing without which less can be checked",
    remedy="Give a role that has it to the user, and to the token where it has privileges of its own.",
    severity=Severity.WARNING,
)
ROOT_ONLY = Kind(
    code="E-GUARD-ROOT-ONLY",
    summary="Proxmox lets root@pam alone do this, with its password and with no token",
    remedy="Leave it out and set it on the node by hand (`qm set`, `pct set`); or name a device by a mapping "
    "of the cluster, which a token may use.",
)

_NAMED = 3
_MOST_PATHS = 100
_AGENT = ("VM.GuestAgent.Audit", "VM.Monitor")
# A built-in role of Proxmox that has a privilege and little else.
_ROLES = {
    "VM.": "PVEVMAdmin",
    "Datastore.AllocateSpace": "PVEDatastoreUser",
    "Datastore.Audit": "PVEDatastoreUser",
    "Datastore.": "PVEDatastoreAdmin",
    "SDN.Use": "PVESDNUser",
    "SDN.": "PVESDNAdmin",
    "Mapping.Use": "PVEMappingUser",
    "Pool.": "PVEPoolAdmin",
    "Mapping.": "PVEMappingAdmin",
    "User.": "PVEUserAdmin",
    "Group.": "PVEUserAdmin",
    "Realm.AllocateUser": "PVEUserAdmin",
    "Sys.Audit": "PVEAuditor",
    "Sys.Console": "PVESysAdmin",
}


def ask_rights(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask what the token may do, where the plan does anything."""
    if implied.is_nothing:
        return
    rights = list_plan_rights(implied, zones=_map_declared_zones(implied))
    paths = _paths_of((*rights, *list_object_rights(implied.changes)))
    if len(paths) > _MOST_PATHS:
        # Rights on a guest that does not exist yet are rare: a thousand of them are not worth as many calls.
        existing = {f"/vms/{guest.vm_id}" for guest in cluster.guests}
        paths = {one for one in paths if not one.startswith("/vms/") or one in existing}
    yield from rights_on(*sorted(paths))
    guests = [guest for guest, _ in implied.touched_guests]
    if guests:
        yield VERSION
    if any(guest.nics for guest in guests):
        yield VNETS


def ask_paths(rights: Iterable[Right]) -> Iterator[ApiRead]:
    """Ask what the token may do on the paths of some rights."""
    yield from rights_on(*sorted(_paths_of(rights)))


def _paths_of(rights: Iterable[Right]) -> set[str]:
    return {grant.path for right in rights for way in right.ways for grant in way}


def _map_declared_zones(implied: ImpliedCalls) -> dict[str, str]:
    return {vnet.name: vnet.zone for vnet in implied.desired.vnets}


def find_rights(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report privileges that calls of the plan need and the token has not."""
    if facts.is_root or facts.get_privileges("/") is None:
        return
    answer = facts.answers.get(VERSION)
    version = str(answer.get("version", "")) if isinstance(answer, dict) else ""
    zones = {**facts.zones(), **_map_declared_zones(implied)}
    rights = list_plan_rights(implied, zones=zones, version=version)
    yield from find_lacking((*map(_for_a_plan, rights), *list_object_rights(implied.changes)), facts)


def _for_a_plan(right: Right) -> Right:
    """Return a right as a plan needs it: an agent that may not be asked is waited for, and no more."""
    is_agent = any(grant.privilege in _AGENT for way in right.ways for grant in way)
    return dataclasses.replace(right, is_advised=True) if is_agent else right


def find_lacking(rights: Iterable[Right], facts: Facts) -> Iterator[Finding]:
    """Report each privilege that is missing once, with its paths and what it is for."""
    found: dict[tuple[str, bool], list[tuple[Grant, Right]]] = collections.defaultdict(list)
    for right in rights:
        for grant in missing(right, facts):
            found[grant.privilege, right.is_advised].append((grant, right))
    for (privilege, is_advised), places in sorted(found.items(), key=lambda item: item[0]):
        yield Finding(
            kind=PRIVILEGE_ADVISED if is_advised else PRIVILEGE,
            detail=_detail(privilege, places, facts),
            label=next((right.label for _, right in places if right.label), ""),
        )


def missing(right: Right, facts: Facts) -> Sequence[Grant]:
    """Return the grants that are missing for a right: those of the first way, which grants the least."""
    ways = [[g for g in way if g.privilege not in (facts.get_privileges(g.path) or ())] for way in right.ways]
    return ways[0] if all(ways) else ()


def _detail(privilege: str, places: Sequence[tuple[Grant, Right]], facts: Facts) -> str:
    paths = sorted({grant.path for grant, _ in places})
    reasons = sorted({right.why for _, right in places})
    said = f"{privilege} is missing on {_format_list(paths)}; it is needed for {_format_list(reasons)}."
    role = next((role for start, role in _ROLES.items() if privilege.startswith(start)), "ROLE")
    if not facts.caller:
        return said
    is_token = "!" in facts.caller
    who = "token" if is_token else "user"
    command = f"pveum acl modify {paths[0]} --{who}s {shlex.quote(facts.caller)} --roles {role}"
    return f"{said} The {who} {facts.caller} does not have it: {command}"


def _format_list(words: Sequence[str]) -> str:
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def find_root_only(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report what only root@pam may set: devices of the node, hook scripts, most features of containers."""
    if facts.is_root or not facts.caller:
        return
    for guest, changed in implied.touched_guests:
        found = [one for one in _list_root_only(guest) if changed is None or one[0] in changed]
        for _, what, field in found:
            detail = f"{guest.name} has {what}, and {facts.caller} is not root@pam itself."
            yield Finding(kind=ROOT_ONLY, detail=detail, label=label(guest.key), field=field)
        told = {attribute for attribute, *_ in found}
        for attribute, what, field in _list_root_only_before(implied.had.get(guest.key, {})):
            if attribute in (changed or ()) and attribute not in told:
                detail = f"{guest.name} has {what} now, and {facts.caller} is not root@pam itself."
                yield Finding(kind=ROOT_ONLY, detail=detail, label=label(guest.key), field=field)


def _list_root_only(guest: Guest) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    """Return the attribute, what it is in words, and the field of the model."""
    if guest.hook_script is not None:
        yield "hook_script_file_id", "a hook script", ("hook_script",)
    yield from _of_root_in_vm(guest) if isinstance(guest, Vm) else _of_root_in_container(guest)


def _of_root_in_vm(guest: Vm) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    for index, pci in enumerate(guest.pci_devices):
        if pci.id is not None:
            yield "hostpci", f"the PCI device {pci.id} without a mapping", ("pci_devices", index)
        elif pci.rom_file is not None:
            yield "hostpci", "a ROM file for a PCI device", ("pci_devices", index)
    for index, usb in enumerate(guest.usb_devices):
        if usb.host is not None and usb.host.lower() != "spice":
            yield "usb", f"the USB device {usb.host} without a mapping", ("usb_devices", index)
    for index, serial in enumerate(guest.serials):
        if serial.device != "socket":
            yield "serial_device", f"the serial device {serial.device}", ("serials", index)
    if guest.kvm_arguments is not None:
        yield "kvm_arguments", "arguments for KVM", ("kvm_arguments",)


def _list_root_only_before(had: Mapping[str, Any]) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    """Return the same of the values that a guest has: Proxmox lets root alone remove its devices, too."""
    for usb in had.get("usb") or ():
        if usb.get("host") and str(usb["host"]).lower() != "spice":
            yield "usb", f"the USB device {usb['host']} without a mapping", ("usb_devices",)
    for pci in had.get("hostpci") or ():
        if pci.get("id"):
            yield "hostpci", f"the PCI device {pci['id']} without a mapping", ("pci_devices",)
    for serial in had.get("serial_device") or ():
        if serial.get("device") not in (None, "", "socket"):
            yield "serial_device", f"the serial device {serial['device']}", ("serials",)


def _of_root_in_container(guest: Container) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    features = guest.features
    flags = [name for name in ("fuse", "keyctl", "mknod") if getattr(features, name)]
    flags += [f"mount={';'.join(features.mount)}"] if features.mount else []
    if not guest.unprivileged and (flags or features.nesting):
        yield "features", "features and is privileged", ("features",)
    elif flags:
        yield "features", f"the features {', '.join(flags)}", ("features",)
    for index, device in enumerate(guest.devices):
        yield "device_passthrough", f"the device {device.path}", ("devices", index)
    for index, mount in enumerate(guest.mounts):
        if mount.volume.startswith("/"):
            yield "mount_point", f"the folder {mount.volume} of its node", ("mounts", index)
