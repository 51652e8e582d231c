"""`specs/*.yaml`: what a guest should be once it runs."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from stackyard.desired.values import DnsName, GuestName
from stackyard.sources.site.entities.values import (
    CidrAddress,
    Entity,
    HostAddress,
    Line,
    Many,
    Name,
    Port,
    TimeZone,
)

__all__ = ["SpecAccess", "SpecFile", "SpecUser"]

UserName = Annotated[str, StringConstraints(pattern=r"^[a-z_][a-z0-9_.-]*\$?$", max_length=32)]


class SpecIdentity(Entity):
    """What the guest is called; the name of the spec and the site's domain when absent."""

    hostname: GuestName | None = None
    domain: DnsName | None = None


class SpecNetwork(Entity):
    """The address of the guest; DHCP when absent."""

    ip: CidrAddress | None = None
    gateway: HostAddress | None = None
    dns: Many[HostAddress] = ()

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if (self.ip is None) != (self.gateway is None):
            raise ValueError("`ip` and `gateway` go together")
        return self


class SpecUser(Entity):
    """A user of the guest."""

    name: UserName
    sudo: bool = False
    # Names of `ssh_keys` in secrets.yaml (`ssh_keys.` before them may stand); all keys when absent.
    ssh_keys: Many[Line] | None = None
    shell: Line | None = None
    groups: Many[Line] = ()


class SpecAccess(Entity):
    """Who may log in, and how."""

    posture: Name = "dev"
    users: Many[SpecUser] = ()

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [user.name for user in self.users]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"listed twice: {', '.join(twice)}")
        return self


class SpecServices(Entity):
    """Which services run, and which do not."""

    enable: Many[Line] = ()
    disable: Many[Line] = ()

    @model_validator(mode="after")
    def _not_both(self) -> Self:
        both = sorted(set(self.enable) & set(self.disable))
        if both:
            raise ValueError(f"both enabled and disabled: {', '.join(both)}")
        return self


class SpecPlatform(Entity):
    """What is installed and runs."""

    packages: Many[Line] = ()
    services: SpecServices = SpecServices()


class SpecPve(Entity):
    """Settings of a guest that is a Proxmox node itself."""

    remove_subscription_nag: bool | None = None


class SpecConfig(Entity):
    """Settings of the system; what is not known here is handed on as it is."""

    model_config = ConfigDict(extra="allow")

    timezone: TimeZone | None = None
    pve: SpecPve | None = None


class SpecRun(Entity):
    """When the guest should be configured again."""

    trigger: Literal["schedule", "webhook", "git", "manual"] | None = None
    interval: str | int | None = None
    port: Port | None = None
    path: Line | None = None
    repo: Line | None = None
    branch: Line | None = None
    poll_interval: str | int | None = None


class SpecFile(Entity):
    """What a guest should be."""

    # The version of this format.
    schema_version: Annotated[int, Field(ge=1, le=1)]
    identity: SpecIdentity = SpecIdentity()
    network: SpecNetwork = SpecNetwork()
    access: SpecAccess = SpecAccess()
    platform: SpecPlatform = SpecPlatform()
    config: SpecConfig = SpecConfig()
    run: SpecRun | None = None
