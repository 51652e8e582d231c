"""Where a nested lab is plugged in: the guest of the lab around it, and the network that they share.

The bridge of a nested node (vmbr0) depends on the first NIC of the guest that the node is. So its guests are
in the network of that NIC, and the DHCP of that network gives them addresses, from a slice that no other
nested lab has: `nested_slices/<network>|<slice>` of the lab that the network belongs to says whose it is.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["SLICES", "Uplink", "claim_slice"]

SLICES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Uplink:
    """The guest of another lab that a nested lab is in."""

    world: World = field(repr=False)
    vmid: int

    @property
    def guest(self) -> Document | None:
        """The guest, None if it is gone."""
        return self.world.guests.get(self.vmid)

    @property
    def path(self) -> str:
        """The guests on the way from the outermost lab: `100/102`."""
        above = self.world.uplink
        return str(self.vmid) if above is None else f"{above.path}/{self.vmid}"


def claim_slice(owner: World, network: int, path: str) -> int:
    """Return the number of the slice of a network that a nested lab has, its earlier one if it had one.

    Args:
        owner: The lab that the network belongs to.
        network: The number of the network.
        path: The nested lab, as `Uplink.path` has it.
    """
    known = {
        int(found["slice"]): str(found["path"])
        for found in owner.store.items("nested_slices").values()
        if found["network"] == network
    }
    for number, holder in known.items():
        if holder == path:
            return number
    preferred = zlib.crc32(path.encode()) % SLICES
    order = [(preferred + step) % SLICES for step in range(SLICES)]
    # Where all are taken two labs share one: an address may then be taken twice, which a ping would tell.
    number = next((number for number in order if number not in known), preferred)
    with owner.store.transaction():
        document = {"network": network, "slice": number, "path": path}
        owner.store.put("nested_slices", f"{network}|{number}", document)
    return number
