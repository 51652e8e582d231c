"""Packages of a node: what is installed, what is newer, and what changed.

A node has the packages of a fresh installation. Newer ones are known once the lists were fetched, which, as
on a real node, fails as long as the enterprise repository is enabled and there is no subscription. Documents:
`apt_lists/<node>` with the time at which they were fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.facts import PVE_VERSION
from stackyard.lab.latency import Work
from stackyard.lab.problems import PveError
from stackyard.lab.resources.apt import enabled_repositories
from stackyard.lab.resources.node_settings.subscription import has_subscription
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call
    from stackyard.lab.tasks import Task

__all__ = ["list_updates", "list_versions", "read_changelog", "refresh_lists"]

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
_NEWER: Mapping[str, str] = {"pve-qemu-kvm": "10.1.2-5", "libpve-storage-perl": "9.1.1"}
_ENTERPRISE = "enterprise.proxmox.com"


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


@route("GET /nodes/{node}/apt/update")
def list_updates(call: Call) -> Any:
    """List the packages that are newer in the repositories, as of when they were last asked."""
    if call.store.get("apt_lists", call.node) is None:
        return []
    return [
        {**_row(name, version), "OldVersion": _INSTALLED[name][0]} for name, version in sorted(_NEWER.items())
    ]


@route("POST /nodes/{node}/apt/update")
def refresh_lists(call: Call) -> Any:
    """Ask the repositories what is new, in a task."""
    call.check(f"/nodes/{call.node}", "Sys.Modify")
    world, node = call.world, call.node

    async def work(task: Task) -> None:
        task.log("starting apt-get update")
        failed = False
        for number, uri in enumerate(enabled_repositories(world.store, node), start=1):
            refused = _ENTERPRISE in uri and not has_subscription(world.store, node)
            failed = failed or refused
            task.log(f"{'Err' if refused else 'Hit'}:{number} {uri}")
            if refused:
                task.log("  401  Unauthorized")
        await task.spend(Work.DOWNLOAD)
        if failed:
            raise PveError("command 'apt-get update' failed: exit code 100")
        with task.step():
            world.store.put("apt_lists", node, {"time": int(world.clock.now())})
            task.log("Reading package lists...")

    return call.start_task("aptupdate", "", work)


@route("GET /nodes/{node}/apt/changelog")
def read_changelog(call: Call) -> Any:
    """Answer the newest entry of a package's changelog."""
    name = str(call.params["name"])
    if name not in _INSTALLED:
        raise PveError(f"Can't locate package '{name}'")
    known = (_NEWER.get(name), _INSTALLED[name][0])
    version = str(call.params.get("version") or known[0] or known[1])
    if version not in known:
        raise PveError(f"Can't find version '{version}' of package '{name}'")
    author = "Proxmox Support Team <support@proxmox.com>"
    return f"{name} ({version}) trixie; urgency=medium\n\n  * new release\n\n -- {author}\n"


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
