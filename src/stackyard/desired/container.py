"""Containers."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.files import File
from stackyard.desired.guest import GuestBase
from stackyard.desired.hardware import Cpu, Device
from stackyard.desired.nic import ContainerNic
from stackyard.desired.secret import Secret
from stackyard.desired.values import Line, Many, Value

__all__ = ["Console", "Container", "ContainerMemory", "Features", "IdMap", "MountPoint", "RootDisk"]

MountOption = Literal["discard", "lazytime", "noatime", "nodev", "noexec", "nosuid"]


class ContainerMemory(Value):
    """The memory of a container."""

    dedicated_mib: Annotated[int, Field(ge=16)] = 512
    # None means as much as `dedicated_mib`: without any swap, containers are killed where users expect it.
    swap_mib: Annotated[int, Field(ge=0)] | None = None


class RootDisk(Value):
    """The disk that a container is on."""

    datastore: Line
    size_gib: Annotated[int, Field(ge=1)] = 8
    acl: bool | None = None
    quota: bool = False
    # None: yes for a new one, and as it is for one that is there.
    replicate: bool | None = None
    mount_options: Many[MountOption] = ()


class MountPoint(Value):
    """Another volume of a container: a new one on a datastore, or a path of the node to bind."""

    path: Annotated[str, StringConstraints(pattern=r"^/\S*$")]
    # A datastore, a volume that exists, or an absolute path of the node.
    volume: Line
    size_gib: Annotated[int, Field(ge=1)] | None = None
    backup: bool = False
    read_only: bool = False
    shared: bool = False
    acl: bool = False
    quota: bool = False
    replicate: bool = True
    mount_options: Many[MountOption] = ()

    @model_validator(mode="after")
    def _size_fits_volume(self) -> Self:
        is_bind = self.volume.startswith("/")
        if is_bind and self.size_gib is not None:
            raise ValueError("a path of the node is bound as it is; `size_gib` is for new volumes")
        if not is_bind and ":" not in self.volume and self.size_gib is None:
            raise ValueError(f"a new volume on {self.volume} needs a `size_gib`")
        return self


class Features(Value):
    """What a container may do beyond the usual."""

    nesting: bool = False
    keyctl: bool = False
    fuse: bool = False
    mknod: bool = False
    mount: Many[Literal["cifs", "nfs"]] = ()


class Console(Value):
    """How one attaches to a container."""

    enabled: bool = True
    tty_count: Annotated[int, Field(ge=0, le=6)] = 2
    type: Literal["console", "shell", "tty"] = "tty"


class IdMap(Value):
    """A range of user or group ids of the container, and where it lies on the node."""

    type: Literal["uid", "gid"]
    container_id: Annotated[int, Field(ge=0)]
    host_id: Annotated[int, Field(ge=0)]
    size: Annotated[int, Field(ge=1)]


class Container(GuestBase):
    """One container."""

    # What it is made of; with `clone` there is none.
    template: File | None = None
    os_type: Literal[
        "alpine",
        "archlinux",
        "centos",
        "debian",
        "devuan",
        "fedora",
        "gentoo",
        "nixos",
        "opensuse",
        "ubuntu",
        "unmanaged",
    ] = "debian"
    unprivileged: bool = True
    cpu: Cpu = Cpu()
    memory: ContainerMemory = ContainerMemory()
    root_disk: RootDisk | None = None
    mounts: Many[MountPoint] = ()
    nics: Many[ContainerNic] = ()
    features: Features = Features()
    devices: Many[Device] = ()
    id_maps: Many[IdMap] = ()
    console: Console = Console()
    # The keys and the password of root.
    ssh_keys: Many[Line] = ()
    password: Secret | None = None
    environment: Annotated[
        tuple[Annotated[tuple[Line, str], Field(strict=False)], ...], Field(strict=False)
    ] = ()

    @model_validator(mode="after")
    def _has_one_beginning(self) -> Self:
        if self.clone is None and self.template is None and not self.imported:
            raise ValueError("a container needs a `template`, or a `clone` of another container: name one")
        if self.clone is not None and self.template is not None:
            raise ValueError("`template` and `clone` exclude each other")
        if self.clone is None and self.root_disk is None:
            raise ValueError("a container that is no clone needs its `root_disk`")
        return self
