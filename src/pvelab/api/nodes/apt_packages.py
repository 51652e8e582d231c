"""Packages of a node: those of a fresh installation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.facts import PVE_VERSION
from pvelab.server.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["list_versions"]

KERNEL = "6.17.2-1-pve"
# Each package with its version and what it is.
_INSTALLED: Mapping[str, tuple[str, str]] = {
    "proxmox-ve": ("9.0.0", "Proxmox Virtual Environment"),
    "pve-manager": (PVE_VERSION, "Proxmox Virtual Environment Management Tools"),
    "proxmox-kernel-6.17": ("6.17.2-1", "Latest Proxmox Kernel Image"),
    f"proxmox-kernel-{KERNEL}-signed": ("6.17.2-1", "Proxmox Kernel Image (signed)"),
    "corosync": ("3.1.9-pve2", "cluster engine daemon and utilities"),
    "ifupdown2": ("3.3.0-1+pmx11", "Network Interface Management tool"),
    "libpve-access-control": ("9.0.4", "Proxmox VE access control library"),
    "libpve-cluster-perl": ("9.0.7", "Proxmox Virtual Environment cluster Perl modules"),
    "libpve-common-perl": ("9.1.1", "Proxmox VE base library"),
    "libpve-guest-common-perl": ("6.0.2", "Proxmox VE common guest-related modules"),
    "libpve-http-server-perl": ("6.0.5", "Proxmox Asynchrounous HTTP Server Implementation"),
    "libpve-storage-perl": ("9.1.0", "Proxmox VE storage management library"),
    "lvm2": ("2.03.31-2+pmx1", "Linux Logical Volume Manager"),
    "lxc-pve": ("6.0.5-3", "Linux containers userspace tools"),
    "lxcfs": ("6.0.4-pve1", "FUSE based filesystem for LXC"),
    "proxmox-backup-client": ("4.1.0-1", "Proxmox Backup Client tools"),
    "proxmox-firewall": ("1.2.1", "Proxmox Firewall"),
    "pve-cluster": ("9.0.7", "pmxcfs distributed cluster filesystem for Proxmox VE"),
    "pve-container": ("6.0.18", "Proxmox VE Container management tool"),
    "pve-firewall": ("6.0.4", "Proxmox VE Firewall"),
    "pve-ha-manager": ("5.0.8", "Proxmox VE HA Manager"),
    "pve-qemu-kvm": ("10.1.2-4", "Full virtualization on x86 hardware"),
    "qemu-server": ("9.1.0", "Qemu Server Tools"),
    "smartmontools": ("7.4-pve1", "control and monitor storage systems using S.M.A.R.T."),
    "zfsutils-linux": ("2.3.4-pve1", "command-line tools to manage OpenZFS filesystems"),
}


@route("GET /nodes/{node}/apt/versions")
def list_versions(_call: Call) -> Any:
    """List the packages that matter to Proxmox with their versions."""
    rows = []
    for name, (version, _) in _INSTALLED.items():
        row = {**_row(name, version), "CurrentState": "Installed", "OldVersion": version}
        if name == "proxmox-ve":
            row["RunningKernel"] = KERNEL
        if name == "pve-manager":
            row["ManagerVersion"] = f"pve-manager/{PVE_VERSION}/1ab2c3d4e5f60718"
        rows.append(row)
    return rows


def _row(name: str, version: str) -> dict[str, Any]:
    return {
        "Package": name,
        "Title": _INSTALLED[name][1],
        "Description": _INSTALLED[name][1],
        "Origin": "Proxmox",
        "Section": "admin",
        "Priority": "optional",
        "Arch": "amd64",
        "Version": version,
    }
