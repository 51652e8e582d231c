"""Disks that begin with an image: imported by Proxmox where it can, else with its tools on the node."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from stackyard.clients.proxmox import RefusedError, quote
from stackyard.fields.properties import GIB, parse, parse_size, render
from stackyard.provider.node_shell import open_shell, sudo
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.vm.disks import disk_options, new_disk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from stackyard.provider.guests.guest import Guest
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["disk_text", "grow", "import_on_node", "needs_node", "require_larger", "source_of"]

# "unused0: successfully imported disk 'local-lvm:vm-100-disk-0'", and as older versions say it.
_IMPORTED = re.compile(r"'(?:unused\d+:)?([^':\s]+:[^'\s]+)'")
_DEFAULT_FORMAT = "qcow2"
# Of these Proxmox tells how large the disk inside is; of others only how large the file is.
_IMPORTABLE = ":import/"
_MAX_AGE_S = 60.0


def needs_node(disk: Object) -> bool:
    """Tell whether a disk's image is one that the API does not import: one that lies among the ISO files."""
    return ":iso/" in str(disk.get("file_id") or "")


def source_of(disk: Object) -> str:
    """Return the image that a disk begins with; empty when it begins empty."""
    return str(disk.get("import_from") or disk.get("file_id") or "")


def disk_text(disk: Object) -> str:
    """Return the property string of a new disk, with its image if it has one."""
    is_older_way = bool(disk.get("file_id")) and not isinstance(disk.get("file_format"), str)
    # This way has always made disks of this format where the storage has a choice.
    made = {**disk, "file_format": _DEFAULT_FORMAT} if is_older_way else disk
    return new_disk(made, source=source_of(disk))


async def require_larger(work: Work, node: str, disks: Iterable[Object]) -> None:
    """Make sure that disks are as large as the images that they begin with, before anything is made.

    An image may have been downloaded a moment ago: only now is known how large the disk in it is.

    Raises:
        AttributeValueError: A disk is smaller.
    """
    for disk in disks:
        source, wanted = source_of(disk), disk.get("size")
        if _IMPORTABLE not in source or not isinstance(wanted, int):
            continue
        path = f"/nodes/{quote(node)}/storage/{quote(source.partition(':')[0])}/content/{quote(source)}"
        try:
            found = await work.client.get(path, max_age_s=_MAX_AGE_S)
        except RefusedError:
            # Whoever may use an image need not be allowed to look at it: the call that uses it decides.
            continue
        has = (found or {}).get("size")
        if isinstance(has, int) and has > wanted * GIB:
            raise AttributeValueError(
                f"Disk {disk['interface']} has {wanted} GiB, and its image {source} has {has / GIB:.1f} GiB: "
                "a disk cannot be smaller than its image. Nothing was made.",
                ("disk",),
            )


async def grow(guest: Guest, disk: Object, config: Mapping[str, Any], *, timeout_s: float) -> None:
    """Give a disk that was made from an image or a source the size that is asked for.

    Raises:
        AttributeValueError: The disk is larger already.
    """
    interface, wanted = str(disk["interface"]), disk.get("size")
    if not isinstance(wanted, int) or interface not in config:
        return
    has = parse_size(parse(config[interface], "file").get("size")) or 0
    if has > wanted * GIB:
        raise AttributeValueError(
            f"Disk {interface} of VM {guest.vm_id} has {has / GIB:g} GiB, and a disk cannot be made smaller "
            f"than it is: {wanted} is too small.",
            ("disk",),
        )
    if has < wanted * GIB:
        await guest.run("resize", {"disk": interface, "size": f"{wanted}G"}, timeout_s=timeout_s)


async def import_on_node(guest: Guest, disk: Object) -> None:
    """Import an image with the tools of the node, and attach it.

    Raises:
        SshError: The node cannot be reached, or its tools refuse.
    """
    file_format = disk.get("file_format")
    chosen = file_format if isinstance(file_format, str) and file_format else _DEFAULT_FORMAT
    vm_id, storage = str(guest.vm_id), str(disk["datastore_id"])
    async with open_shell(guest.work, guest.node) as shell:
        before = sudo(shell)
        path = await shell.run(f"{before}/usr/sbin/pvesm path {shlex.quote(str(disk['file_id']))}")
        command = ["/usr/sbin/qm", "disk", "import", vm_id, path.strip(), storage, "-format", chosen]
        said = await shell.run(before + shlex.join(command))
        match = _IMPORTED.search(said)
        if match is None:
            raise AttributeValueError(
                f"`qm disk import` on {guest.node} did not say which volume it made: {said.strip()[-300:]}",
                ("disk",),
            )
        options = render({"file": match[1]} | disk_options(disk)).removeprefix("file=")
        await shell.run(before + shlex.join(["/usr/sbin/qm", "set", vm_id, f"-{disk['interface']}", options]))
    guest.work.client.expire_reads()
