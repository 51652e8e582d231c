"""The privileges that Proxmox VE has, and the roles that it ships."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BUILTIN_ROLES", "PRIVILEGES"]

_GROUPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "VM": {
        "admin": (
            "VM.Config.Disk",
            "VM.Config.CPU",
            "VM.Config.Memory",
            "VM.Config.Network",
            "VM.Config.HWType",
            "VM.Config.Options",
            "VM.Allocate",
            "VM.Clone",
            "VM.GuestAgent.Unrestricted",
            "VM.Migrate",
            "VM.Replicate",
            "VM.Snapshot",
            "VM.Snapshot.Rollback",
        ),
        "user": (
            "VM.Config.CDROM",
            "VM.Config.Cloudinit",
            "VM.Console",
            "VM.Backup",
            "VM.GuestAgent.FileRead",
            "VM.GuestAgent.FileSystemMgmt",
            "VM.GuestAgent.FileWrite",
            "VM.PowerMgmt",
        ),
        "audit": ("VM.Audit", "VM.GuestAgent.Audit"),
    },
    "Sys": {
        "root": ("Sys.PowerMgmt", "Sys.Modify", "Sys.Incoming", "Sys.AccessNetwork"),
        "admin": ("Sys.Console", "Sys.Syslog"),
        "audit": ("Sys.Audit",),
    },
    "Datastore": {
        "admin": ("Datastore.Allocate", "Datastore.AllocateTemplate"),
        "user": ("Datastore.AllocateSpace",),
        "audit": ("Datastore.Audit",),
    },
    "SDN": {"admin": ("SDN.Allocate", "SDN.Audit"), "user": ("SDN.Use",), "audit": ("SDN.Audit",)},
    "User": {
        "root": ("Realm.Allocate",),
        "admin": ("User.Modify", "Group.Allocate", "Realm.AllocateUser"),
    },
    "Pool": {"admin": ("Pool.Allocate",), "user": ("Pool.Audit",), "audit": ("Pool.Audit",)},
    "Mapping": {"admin": ("Mapping.Modify",), "user": ("Mapping.Use",), "audit": ("Mapping.Audit",)},
}


def _privileges() -> frozenset[str]:
    listed = (name for group in _GROUPS.values() for names in group.values() for name in names)
    return frozenset((*listed, "Permissions.Modify"))


def _of(group: str, *levels: str) -> frozenset[str]:
    return frozenset(name for level in levels for name in _GROUPS[group].get(level, ()))


def _roles() -> dict[str, frozenset[str]]:
    roles: dict[str, frozenset[str]] = {"Administrator": _privileges(), "NoAccess": frozenset()}
    for group, levels in _GROUPS.items():
        roles[f"PVE{group}Admin"] = _of(group, "admin", "user", "audit")
        if levels.get("user"):
            roles[f"PVE{group}User"] = _of(group, "user", "audit")
    everything = frozenset[str]().union(*(_of(group, "admin", "user", "audit") for group in _GROUPS))
    # Proxmox keeps this one to Administrator and PVEMappingAdmin.
    roles["PVEAdmin"] = everything - {"Mapping.Modify"}
    roles["PVEAuditor"] = frozenset[str]().union(*(_of(group, "audit") for group in _GROUPS))
    roles["PVETemplateUser"] = frozenset(("VM.Clone", "VM.Audit"))
    return roles


PRIVILEGES = _privileges()
BUILTIN_ROLES: Mapping[str, frozenset[str]] = _roles()
