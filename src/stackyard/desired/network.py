"""Networks: bridges and VLANs of nodes, zones, vnets and subnets of the cluster's SDN."""

import ipaddress
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.desired.values import (
    Address4,
    Address6,
    DnsName,
    HostAddress,
    InterfaceName,
    Line,
    Many,
    Mtu,
    NetworkAddress,
    SdnName,
    Value,
    VlanTag,
)

__all__ = ["Bridge", "DhcpRange", "SimpleZone", "Subnet", "Vlan", "VlanZone", "Vnet", "VxlanZone", "Zone"]


class _Interface(Value):
    """An interface of a node."""

    node: Line
    name: InterfaceName
    address4: Address4 | None = None
    gateway4: HostAddress | None = None
    address6: Address6 | None = None
    gateway6: HostAddress | None = None
    mtu: Mtu | None = None
    autostart: bool = True
    comment: str | None = None


class Bridge(_Interface):
    """A Linux bridge of a node."""

    ports: Many[InterfaceName] = ()
    vlan_aware: bool = False


class Vlan(_Interface):
    """A VLAN of a node: `name` is `interface.tag`, or anything with `interface` and `tag` given."""

    interface: InterfaceName | None = None
    tag: VlanTag | None = None


class _Zone(Value):
    """What every SDN zone has."""

    name: SdnName
    nodes: Many[Line] = ()
    mtu: Mtu | None = None
    dns: Line | None = None
    reverse_dns: Line | None = None
    dns_zone: DnsName | None = None
    ipam: Line | None = None


class SimpleZone(_Zone):
    """A zone of isolated bridges, one on each node."""

    type: Literal["simple"]
    dhcp: Literal["dnsmasq"] | None = None


class VlanZone(_Zone):
    """A zone whose vnets are VLANs on a bridge."""

    type: Literal["vlan"]
    bridge: InterfaceName


class VxlanZone(_Zone):
    """A zone whose vnets cross the nodes in tunnels."""

    type: Literal["vxlan"]
    peers: Annotated[Many[HostAddress], Field(min_length=1)]


Zone = Annotated[SimpleZone | VlanZone | VxlanZone, Field(discriminator="type")]


class Vnet(Value):
    """A network of a zone; guests plug into it as into a bridge."""

    name: SdnName
    zone: SdnName
    tag: Annotated[int, Field(ge=1, le=16_777_215)] | None = None
    alias: Annotated[str, StringConstraints(max_length=256)] | None = None
    vlan_aware: bool = False
    isolate_ports: bool = False


class DhcpRange(Value):
    """Addresses that the zone's DHCP gives out."""

    start: HostAddress
    end: HostAddress


class Subnet(Value):
    """The addresses of a vnet."""

    vnet: SdnName
    cidr: NetworkAddress
    gateway: HostAddress | None = None
    snat: bool = False
    dhcp_range: DhcpRange | None = None
    dhcp_dns_server: HostAddress | None = None
    dns_zone_prefix: DnsName | None = None

    @model_validator(mode="after")
    def _addresses_fit(self) -> Self:
        network = ipaddress.ip_network(self.cidr)
        span = self.dhcp_range
        named = [self.gateway, *((span.start, span.end) if span is not None else ())]
        outside = [text for text in named if text is not None and ipaddress.ip_address(text) not in network]
        if outside:
            raise ValueError(f"outside {self.cidr}: {', '.join(outside)}")
        return self
