"""What a seed says, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.storage.physical import Disk

__all__ = [
    "EMPTY",
    "PREPARED_STORAGES",
    "STOCK_STORAGES",
    "Seed",
    "SeedCall",
    "SeedFile",
    "SeedGuest",
    "SeedMachine",
    "SeedUser",
    "SeedVolume",
]


_LOCAL_LVM = {"type": "lvmthin", "thinpool": "data", "vgname": "pve", "content": "images,rootdir"}
# As the installer of Proxmox VE 9 leaves a node.
STOCK_STORAGES: Mapping[str, Mapping[str, Any]] = {
    "local": {"type": "dir", "path": "/var/lib/vz", "content": "iso,vztmpl,backup,import", "shared": 0},
    "local-lvm": _LOCAL_LVM,
}
# The same after `pvesm set local --content`, which a node needs before cloud-init data can be put on it.
PREPARED_STORAGES: Mapping[str, Mapping[str, Any]] = {
    **STOCK_STORAGES,
    "local": {**STOCK_STORAGES["local"], "content": "iso,vztmpl,backup,import,snippets"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedUser:
    """A user of the nodes' systems beside root, who logs in over SSH and uses sudo."""

    name: str
    password: str = field(default="", repr=False)
    authorized_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedCall:
    """A call of the API that fills a new lab; `{node1}` in it represents its first node, and so on."""

    method: str
    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedFile:
    """A file in a storage of a new lab: a volume id, the node, and either text or a size in bytes."""

    volume: str
    node: str = "{node1}"
    text: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedMachine:
    """What a node is made of; what is None is as in any lab.

    Attributes:
        ip: Its address.
        cpus: How many CPUs it has.
        memory: Its memory in bytes.
        rootfs: The size of its root file system in bytes.
        interfaces: The text of its /etc/network/interfaces.
        disks: Its physical disks.
    """

    ip: str | None = None
    cpus: int | None = None
    memory: int | None = None
    rootfs: int | None = None
    interfaces: str | None = None
    disks: tuple[Disk, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedGuest:
    """A guest as it is, put into the lab without a task.

    Attributes:
        vmid: Its number.
        node: Where it is.
        type: `qemu` or `lxc`.
        config: Its configuration as the API shows it. Volumes in it that no `SeedVolume` names are created.
        snapshots: Its snapshots by name, each with `config` and `snaptime`, `parent`, `description`.
        running: Whether it runs.
    """

    vmid: int
    node: str = "{node1}"
    type: str = "qemu"
    config: Mapping[str, Any] = field(default_factory=dict)
    snapshots: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedVolume:
    """A volume that is there without bytes: a disk, an image, a backup.

    Attributes:
        volume: Its id, `local-lvm:vm-100-disk-0`.
        node: The node whose storage it is in.
        size: Its size in bytes.
        facts: What else is known: `content format vmid ctime notes protected parent virtual_size`.
    """

    volume: str
    node: str = "{node1}"
    size: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """What a new lab holds beyond root@pam.

    Attributes:
        name: What it was loaded by.
        cluster: The name of the cluster.
        nodes: The names of the nodes.
        machines: What single nodes are made of.
        password: The password of root@pam; a random one if None.
        token: The secret of the API token; a random one if None.
        authorized_keys: Who may log in as root over SSH with a key, as in a file of that name.
        system_users: Who else may log in over SSH.
        storages: The definitions of the storages, by id; those of a new installation if None.
        capacities: How many bytes fit, by storage and node; one without a node is for every node.
        volumes: What is in the storages.
        guests: The guests, as they stand.
        files: Files in storages, made before the calls.
        calls: What is asked of the API, in this order, as root@pam.
        ha_groups: Whether HA has groups, which the cluster has not migrated to rules yet.
    """

    name: str
    cluster: str = "lab"
    nodes: tuple[str, ...] = ("pve1",)
    machines: Mapping[str, SeedMachine] = field(default_factory=dict)
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    authorized_keys: tuple[str, ...] = ()
    system_users: tuple[SeedUser, ...] = ()
    storages: Mapping[str, Mapping[str, Any]] | None = None
    capacities: tuple[tuple[str, str | None, int], ...] = ()
    volumes: tuple[SeedVolume, ...] = ()
    guests: tuple[SeedGuest, ...] = ()
    files: tuple[SeedFile, ...] = ()
    calls: tuple[SeedCall, ...] = ()
    ha_groups: bool = False

    def placed(self, node: str, nodes: tuple[str, ...]) -> str:
        """Return the node of a lab that represents one of this seed's.

        Args:
            node: A name, or `{node2}` for the second one.
            nodes: The nodes of the lab, which may be others than those of the seed; one with fewer begins
                again at the first.
        """
        if node in nodes:
            return node
        if node.startswith("{node") and node[5:-1].isdecimal():
            return nodes[(int(node[5:-1]) - 1) % len(nodes)]
        return nodes[self.nodes.index(node) % len(nodes)] if node in self.nodes else node


EMPTY = Seed(name="empty", storages=PREPARED_STORAGES)
