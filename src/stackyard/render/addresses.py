"""Addresses and name servers, which virtual machines and containers spell alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.fields.guest import DNS
from stackyard.render.terms import Json, blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.desired import ContainerNic, Dns, Nic

__all__ = ["dns_blocks", "ip_config_blocks"]


def dns_blocks(dns: Dns | None) -> list[dict[str, Json]]:
    """Return how a guest finds names."""
    return blocks(DNS.render(dns) if dns is not None else None)


def ip_config_blocks(
    nics: Sequence[Nic] | Sequence[ContainerNic], *, unset: str | None = None
) -> list[dict[str, Json]]:
    """Return the addresses, one block a card in their order; none where no card has any.

    A card without addresses between others needs its block too: the blocks are counted.

    Args:
        nics: The cards.
        unset: What to write for such a card; an empty block when absent.
    """
    last = max((i for i, nic in enumerate(nics) if nic.ipv4 is not None or nic.ipv6 is not None), default=-1)
    return [
        {
            **_family("ipv4", nic.ipv4, nic.gateway4),
            **_family("ipv6", nic.ipv6, nic.gateway6),
        }
        or _family("ipv4", unset, None)
        for nic in nics[: last + 1]
    ]


def _family(name: str, address: str | None, gateway: str | None) -> dict[str, Json]:
    if address is None:
        return {}
    return {name: blocks({"address": address, "gateway": gateway})}
