"""Whether the machine at the address of a node is the node: asked before it is given any secret.

A machine in maintenance mode proves nothing: its certificate is its own, and a new one at every boot. What it
says of its network cards, its disks and its boot is compared with nodes.yaml. That finds a wrong address, not
an attacker in the same network: a MAC address can be copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.clients.talos import TalosRefusedError
from stackyard.path.clusters.nodes import has_disk, read_disk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.clients.talos import TalosClient
    from stackyard.path.clusters.nodes import NodeDisk
    from stackyard.sources.cluster.model import ClusterNode

__all__ = [
    "InstallDiskError",
    "OtherMachineError",
    "SecureBootError",
    "describe_disks",
    "require_boot",
    "require_node",
]

_GIB = 1024**3


class OtherMachineError(StackyardError):
    """The machine at the address of a node has none of the node's network cards."""

    code = "E-CLUSTER-OTHER-MACHINE"
    summary = "Another machine answers at the address of a node"
    default_remedy = (
        "Nothing was sent to it. Correct `address` or `mac_addr` in nodes.yaml; `stackyard cluster nodes` "
        "shows which machine answers where."
    )


class InstallDiskError(StackyardError):
    """The disk that Talos is to be installed on is none of the machine's."""

    code = "E-CLUSTER-INSTALL-DISK"
    summary = "The install disk of a node is not there"
    default_remedy = "Set `disk` of the node in nodes.yaml to one of its disks, by path or by serial number."


class SecureBootError(StackyardError):
    """A machine was booted with secure boot and its node is described without it, or the other way around."""

    code = "E-CLUSTER-SECURE-BOOT"
    summary = "A node was not booted as its `secureboot` says"
    default_remedy = (
        "Boot it again from the image that `stackyard cluster images` names; for secure boot, with the keys "
        "of that image in its firmware. Or correct `secureboot` in nodes.yaml."
    )


async def require_node(node: ClusterNode, client: TalosClient, *, disk: str) -> None:
    """Check that a machine in maintenance mode is a node, and that it can be installed.

    Args:
        node: The node.
        client: Its Talos API.
        disk: Where its configuration installs Talos: a path, or a serial number; empty if that is unknown.

    Raises:
        OtherMachineError: It has other network cards.
        InstallDiskError: It does not have the disk.
        SecureBootError: It was booted in another way than its installer needs.
        TalosError: It cannot be asked.
    """
    links = await client.list_resources("LinkStatuses.net.talos.dev", "network")
    cards = sorted({mac for link in links.values() for mac in _list_macs(link)})
    if node.mac_addr.lower() not in cards:
        raise OtherMachineError(
            f"The machine at {node.address} has the network cards {', '.join(cards) or '(none)'}, and "
            f"{node.name} has {node.mac_addr}."
        )
    disks = tuple(read_disk(one) for one in await client.list_disks())
    if disk and not has_disk(disk, disks):
        raise InstallDiskError(
            f"{node.name} ({node.address}) has no disk {disk}; it has {describe_disks(disks)}."
        )
    await require_boot(node, client)


async def require_boot(node: ClusterNode, client: TalosClient) -> None:
    """Check that a machine was booted as its installer needs it.

    Firmware that checks refuses a plain one; where none does, disks of the other one open for any system.

    Raises:
        SecureBootError: It was booted in another way.
        TalosError: It cannot be asked.
    """
    try:
        states = await client.list_resources("SecurityStates.talos.dev", "runtime")
    except TalosRefusedError:
        # A Talos that does not know what this is.
        return
    state = states.get("securitystate")
    if not isinstance(state, Mapping) or not isinstance(state.get("secureBoot"), bool):
        return
    if state["secureBoot"] != node.image.is_secureboot:
        described, booted = ("with", "without") if node.image.is_secureboot else ("without", "with")
        raise SecureBootError(
            f"{node.name} ({node.address}) was booted {booted} secure boot, and nodes.yaml describes it "
            f"{described}. Nothing was sent to it."
        )


def _list_macs(link: object) -> Iterable[str]:
    """Return the addresses of a card; one in a bond shows that of the bond beside its own."""
    if isinstance(link, Mapping):
        for key in ("permanentAddr", "hardwareAddr"):
            if link.get(key):
                yield str(link[key]).lower()


def describe_disks(disks: Iterable[NodeDisk]) -> str:
    """Return disks as a person needs them to choose one."""
    shown = [
        f"{disk.path} ({disk.size_bytes / _GIB:.0f} GiB"
        + (f", serial {disk.serial})" if disk.serial else ")")
        for disk in disks
    ]
    return ", ".join(shown) or "none"
