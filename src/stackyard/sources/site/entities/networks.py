"""Networks that a site or an env declares: bridges, VLANs on them, and networks of the cluster's SDN."""

import ipaddress
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stackyard.desired.network import DhcpRange
from stackyard.desired.values import InterfaceName, Mtu, NetworkAddress, SdnName, VlanTag
from stackyard.sources.site.entities.values import CidrAddress, Entity, HostAddress, Line, Many, Name

__all__ = ["BridgeNetwork", "Network", "SdnNetwork", "VlanNetwork"]


class _Network(Entity):
    """What every network has: its addresses, and where its guests find the way out."""

    cidr: NetworkAddress | None = None
    gateway: HostAddress | None = None
    # The guest whose address here is the gateway, where it is no machine outside.
    router: Name | None = None
    description: str | None = None

    @model_validator(mode="after")
    def _gateway_is_inside(self) -> Self:
        if self.gateway is not None and self.cidr is not None:
            if ipaddress.ip_address(self.gateway) not in ipaddress.ip_network(self.cidr):
                raise ValueError(f"the gateway {self.gateway} is outside {self.cidr}")
        elif self.gateway is not None:
            raise ValueError("`gateway` needs the `cidr` of the network")
        return self


class BridgeNetwork(_Network):
    """A bridge of the nodes: one that is there, or with `create` one to be made."""

    type: Literal["bridge"]
    bridge: InterfaceName
    create: bool = False
    ports: Many[InterfaceName] = ()
    vlan_aware: bool = False
    # What the node itself has on the bridge.
    address: CidrAddress | None = None
    mtu: Mtu | None = None

    @model_validator(mode="after")
    def _require_create(self) -> Self:
        if not self.create and (self.ports or self.vlan_aware or self.address or self.mtu):
            raise ValueError(
                "`ports`, `vlan_aware`, `address` and `mtu` are for a bridge with `create: true`"
            )
        return self


class VlanNetwork(_Network):
    """A VLAN on a bridge; with `create` the nodes get an interface in it too."""

    type: Literal["vlan"]
    bridge: InterfaceName
    tag: VlanTag
    create: bool = False
    address: CidrAddress | None = None
    mtu: Mtu | None = None

    @model_validator(mode="after")
    def _require_create(self) -> Self:
        if not self.create and (self.address or self.mtu):
            raise ValueError("`address` and `mtu` are for the interface that `create: true` makes")
        return self


class SdnNetwork(_Network):
    """A network of the cluster's SDN: a vnet in a zone, with its subnet."""

    type: Literal["vxlan", "simple", "vlan-zone"]
    zone: SdnName
    # What guests plug into; the name of the network when absent.
    vnet: SdnName | None = None
    tag: Annotated[int, Field(ge=1, le=16_777_215)] | None = None
    # Addresses of the nodes that a VXLAN connects; those of every node of the site when absent.
    peers: Many[HostAddress] = ()
    # What a VLAN zone lies on.
    bridge: InterfaceName | None = None
    nodes: Many[Line] = ()
    mtu: Mtu | None = None
    snat: bool = False
    dhcp: bool = False
    dhcp_range: DhcpRange | None = None
    dhcp_dns_server: HostAddress | None = None

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if self.type != "vxlan" and self.peers:
            raise ValueError("`peers` are for `type: vxlan`")
        if self.type == "vlan-zone" and self.bridge is None:
            raise ValueError("`type: vlan-zone` needs the `bridge` that it lies on")
        if self.type != "vlan-zone" and self.bridge is not None:
            raise ValueError("`bridge` is for `type: vlan-zone`")
        if self.type != "simple" and self.tag is None:
            raise ValueError(f"`type: {self.type}` needs a `tag`")
        if self.type != "simple" and (self.dhcp or self.dhcp_range):
            raise ValueError("`dhcp` is for `type: simple`")
        if self.cidr is None and (self.snat or self.dhcp_range or self.dhcp_dns_server):
            raise ValueError("`snat` and DHCP need the `cidr` of the network")
        return self


Network = Annotated[BridgeNetwork | VlanNetwork | SdnNetwork, Field(discriminator="type")]
