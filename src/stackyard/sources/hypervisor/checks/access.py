"""Who may do what: users, roles and ACL entries that Proxmox takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.hypervisor.checks.references import NOT_IN_FILES, check_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts

__all__ = ["check_access"]

BAD_ACL = Kind(
    code="E-HYPERVISOR-ACL",
    summary="An ACL entry cannot exist",
    remedy="Write a path as /vms/100 or /storage/local, and one of `user_id`, `group_id` and `token_id`.",
)
BAD_USER = Kind(
    code="E-HYPERVISOR-USER",
    summary="A user or role cannot be described so",
    remedy="Users are called NAME@REALM; roles that are part of Proxmox cannot be changed.",
)
UNKNOWN_PRIVILEGE = Kind(
    code="W-HYPERVISOR-PRIVILEGE",
    summary="A privilege is not known",
    remedy="Correct it; Proxmox refuses a privilege that its version does not have.",
    severity=Severity.WARNING,
)

_REALMS = frozenset({"pam", "pve"})
_ROLES = frozenset(
    "Administrator NoAccess PVEAdmin PVEAuditor PVEDatastoreAdmin PVEDatastoreUser PVEMappingAdmin "
    "PVEMappingAuditor PVEMappingUser PVEPoolAdmin PVEPoolUser PVESDNAdmin PVESDNUser PVESysAdmin "
    "PVETemplateUser PVEUserAdmin PVEVMAdmin PVEVMUser".split()
)
# Those of Proxmox VE 8 and 9.
_PRIVILEGES = frozenset(
    "Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit Group.Allocate "
    "Mapping.Audit Mapping.Modify Mapping.Use Permissions.Modify Pool.Allocate Pool.Audit Realm.Allocate "
    "Realm.AllocateUser SDN.Allocate SDN.Audit SDN.Use Sys.AccessNetwork Sys.Audit Sys.Console Sys.Incoming "
    "Sys.Modify Sys.PowerMgmt Sys.Syslog User.Modify VM.Allocate VM.Audit VM.Backup VM.Clone VM.Config.CDROM "
    "VM.Config.CPU VM.Config.Cloudinit VM.Config.Disk VM.Config.HWType VM.Config.Memory VM.Config.Network "
    "VM.Config.Options VM.Console VM.GuestAgent.Audit VM.GuestAgent.FileRead VM.GuestAgent.FileSystemMgmt "
    "VM.GuestAgent.FileWrite VM.GuestAgent.Unrestricted VM.Migrate VM.Monitor VM.PowerMgmt VM.Replicate "
    "VM.Snapshot VM.Snapshot.Rollback".split()
)
_NAME = r"[A-Za-z0-9._-]+"
# The forms that Proxmox has; anything else is refused.
_PATH = re.compile(
    rf"/|/access(/(groups|realm)(/{_NAME})?)?|/nodes(/{_NAME})?|/pool((/{_NAME}){{1,3}})?|/sdn"
    rf"|/sdn/(controllers|dns|fabrics|ipams|prefix-lists|route-maps)(/{_NAME})?"
    rf"|/sdn/zones(/{_NAME}(/{_NAME}(/[1-9][0-9]{{0,3}})?)?)?"
    rf"|/storage(/{_NAME})?|/vms(/[1-9][0-9]{{2,8}})?|/mapping(/{_NAME}){{0,2}}"
)
_TOKEN = re.compile(r"(?P<user>[^@!\s]+@[^@!\s]+)!(?P<token>[A-Za-z][A-Za-z0-9._-]+)")
_USER = re.compile(r"[^@!:/\s][^:/\s]*@(?P<realm>[A-Za-z][A-Za-z0-9._-]+)")
# What a path names, by its beginning: the section, and a word for one of its entries.
_NAMED = {
    ("storage",): ("storages", "storage"),
    ("pool",): ("pools", "pool"),
    ("access", "groups"): ("groups", "group"),
    ("access", "realm"): ("realms", "realm"),
    ("mapping", "pci"): ("mappings.pci", "PCI mapping"),
    ("mapping", "usb"): ("mappings.usb", "USB mapping"),
    ("mapping", "dir"): ("mappings.directories", "directory mapping"),
    ("sdn", "controllers"): ("sdn.controllers", "controller"),
    ("sdn", "zones"): ("sdn.zones", "zone"),
}
_WITHOUT_FILES = frozenset({"local", "local-lvm", "local-zfs", "localnetwork", *_REALMS})


def check_access(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check users, roles and ACL entries of every cluster."""
    del site
    for file in files:
        for user in file.section("users"):
            _check_user(files, file, user, found)
        for role in file.section("roles"):
            _check_role(file, role, found)
        for entry in file.section("acl"):
            _check_subject(files, file, entry, found)
            _check_path(files, file, entry, found)


def _check_user(
    files: Sequence[HypervisorFile], file: HypervisorFile, user: Entry, found: Diagnostics
) -> None:
    named = _USER.fullmatch(user.name)
    if named is None:
        found.add(BAD_USER, f"'{user.name}' is not NAME@REALM, as anna@pve.", file.key_place(user))
    elif named["realm"] not in _REALMS and not any(one.may_have("realms", named["realm"]) for one in files):
        known = {*_REALMS, *(name for one in files for name in one.names("realms"))}
        detail = f"There is no realm '{named['realm']}' in hypervisors/.{did_you_mean(named['realm'], known)}"
        found.add(NOT_IN_FILES, detail, file.key_place(user))


def _check_role(file: HypervisorFile, role: Entry, found: Diagnostics) -> None:
    if role.name in _ROLES or role.name.startswith("PVE"):
        detail = f"The role '{role.name}' is part of Proxmox, or has a name that Proxmox keeps for itself."
        found.add(BAD_USER, detail, file.key_place(role))
    for index, privilege in enumerate(role.values["privileges"]):
        if privilege not in _PRIVILEGES:
            detail = f"There is no privilege '{privilege}'.{did_you_mean(privilege, _PRIVILEGES)}"
            found.add(UNKNOWN_PRIVILEGE, detail, file.place(role, "privileges", index))


def _check_subject(
    files: Sequence[HypervisorFile], file: HypervisorFile, entry: Entry, found: Diagnostics
) -> None:
    """Check to whom an entry gives what."""
    said = [key for key in ("user_id", "group_id", "token_id") if entry.values.get(key) is not None]
    if len(said) != 1 and not file.is_lost(*entry.path):
        words = " and ".join(f"`{key}`" for key in said) or "no `user_id`, `group_id` or `token_id`"
        found.add(BAD_ACL, f"The entry for '{entry.values['path']}' has {words}.", file.place(entry))
    role = entry.values["role_id"]
    if role not in _ROLES:
        known = check_name(files, "roles", role, "role")
        known.add(file, entry, ("role_id",), found)
    for key in said:
        name = entry.values[key]
        if key == "group_id":
            check_name(files, "groups", name, "group").add(file, entry, (key,), found)
            continue
        token = _TOKEN.fullmatch(name) if key == "token_id" else None
        if (key == "token_id" and token is None) or (key == "user_id" and not _USER.fullmatch(name)):
            form = "USER@REALM!TOKEN" if key == "token_id" else "NAME@REALM"
            found.add(BAD_ACL, f"'{name}' is not {form}.", file.place(entry, key))
            continue
        user = token["user"] if token else name
        if user != "root@pam":
            check_name(files, "users", user, "user").add(file, entry, (key,), found)


def _check_path(
    files: Sequence[HypervisorFile], file: HypervisorFile, entry: Entry, found: Diagnostics
) -> None:
    path = entry.values["path"]
    if not _PATH.fullmatch(path):
        tops = ("/", "/access", "/mapping", "/nodes", "/pool", "/sdn/zones", "/storage", "/vms")
        first = "/" + path.strip("/").partition("/")[0]
        detail = f"Proxmox has no path '{path}'.{did_you_mean(first, tops) if first not in tops else ''}"
        found.add(BAD_ACL, detail, file.place(entry, "path"))
        return
    parts = tuple(path.strip("/").split("/"))
    for start, (section, what) in _NAMED.items():
        if parts[: len(start)] != start or len(parts) <= len(start):
            continue
        # A pool may be inside of others, whose names its own begins with.
        name = "/".join(parts[1:]) if section == "pools" else parts[len(start)]
        if name not in _WITHOUT_FILES:
            check_name(files, section, name, what).add(file, entry, ("path",), found)
    if parts[:2] == ("sdn", "zones") and len(parts) > 3:
        check_name(files, "sdn.vnets", parts[3], "vnet").add(file, entry, ("path",), found)
