"""`hosts/*.yaml`: a physical machine that is reached by SSH, before it is a Proxmox node."""

from typing import Annotated, Literal

from pydantic import Field

from stackyard.desired.values import DnsName, InterfaceName
from stackyard.sources.site.entities.values import (
    CidrAddress,
    Entity,
    HostAddress,
    Line,
    Many,
    Name,
    Named,
    Port,
    RootLogin,
    TimeZone,
    YesNo,
)

__all__ = ["HostAccess", "HostFile", "HostInterface", "HostNetwork"]


class HostInterface(Entity):
    """One interface of the machine."""

    type: Literal["bridge", "ethernet", "bond", "vlan"] = "bridge"
    ports: Many[InterfaceName] = ()
    address: CidrAddress | None = None
    gateway: HostAddress | None = None


class HostNetwork(Entity):
    """The interfaces of the machine by name."""

    interfaces: Named[HostInterface] = Field(default_factory=dict)


class ZfsPool(Entity):
    """A ZFS pool of the machine."""

    name: Line
    devices: Many[Line] = ()


class HostStorage(Entity):
    """The storage of the machine."""

    zfs_pools: Many[ZfsPool] = ()


class Hardware(Entity):
    """What the machine has."""

    cpu_cores: Annotated[int, Field(ge=1)] | None = None
    memory_gb: Annotated[float, Field(gt=0, strict=False)] | None = None


class HostAccess(Entity):
    """How to log in to the machine; `host_user` is the newer name of `ssh_user`."""

    ssh_user: Line | None = None
    host_user: Line | None = None
    ssh_port: Port | None = None
    # Public keys, or names of `ssh_keys` in secrets.yaml.
    authorized_keys: Many[Line] = ()


class HostSsh(Entity):
    """How the SSH server of the machine is set up."""

    permit_root_login: RootLogin | None = None
    password_authentication: YesNo | None = None


class HostFile(Entity):
    """A physical machine."""

    host: Name | None = None
    domain: DnsName | None = None
    ip: HostAddress | None = None
    network: HostNetwork = HostNetwork()
    storage: HostStorage = HostStorage()
    hardware: Hardware = Hardware()
    access: HostAccess = HostAccess()
    ssh: HostSsh = HostSsh()
    local: bool = False
    timezone: TimeZone | None = None
