"""Network cards of guests, with their addresses."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from stackyard.base.addresses import parse_address, parse_interface
from stackyard.desired.values import Address4, Address6, InterfaceName, Mac, Mtu, Value, VlanTag

__all__ = ["ContainerNic", "Nic"]


class _NicBase(Value):
    """What every card has: where it is plugged in, and the addresses the guest uses there."""

    bridge: InterfaceName = "vmbr0"
    mac: Mac | None = None
    vlan: VlanTag | None = None
    firewall: bool = False
    rate_limit_mb: Annotated[float, Field(gt=0)] | None = None
    ipv4: Address4 | None = None
    gateway4: str | None = None
    ipv6: Address6 | None = None
    gateway6: str | None = None

    @model_validator(mode="after")
    def _gateways_fit(self) -> Self:
        _check_gateway(self.ipv4, self.gateway4, 4)
        _check_gateway(self.ipv6, self.gateway6, 6)
        return self


class Nic(_NicBase):
    """A network card of a virtual machine."""

    model: Literal["virtio", "e1000", "e1000e", "rtl8139", "vmxnet3"] = "virtio"
    # 1 means: as large as the bridge's.
    mtu: Mtu | Literal[1] | None = None
    queues: Annotated[int, Field(ge=1, le=64)] | None = None
    trunks: Annotated[str, StringConstraints(pattern=r"^\d+(-\d+)?(;\d+(-\d+)?)*$")] | None = None
    disconnected: bool = False


class ContainerNic(_NicBase):
    """A network card of a container."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z][a-zA-Z0-9_.-]{1,14}$")] = "eth0"
    mtu: Mtu | None = None


def _check_gateway(address: str | None, gateway: str | None, version: int) -> None:
    """Raise when a gateway is no address, or cannot be reached from the card's own."""
    if gateway is None:
        return
    parsed = parse_address(gateway)
    if parsed.version != version:
        raise ValueError(f"`gateway{version}` has to be an IPv{version} address, not {gateway}")
    if address is None or "/" not in address:
        raise ValueError(f"`gateway{version}` belongs to a static `ipv{version}` address")
    interface = parse_interface(address)
    # A link-local gateway is on every IPv6 link.
    if parsed not in interface.network and not parsed.is_link_local:
        raise ValueError(f"the gateway {gateway} is outside the network {interface.network} of {address}")
    if parsed == interface.ip:
        raise ValueError(f"{gateway} is the guest's own address, and cannot be its gateway")
