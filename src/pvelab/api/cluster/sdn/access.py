"""Who may see and use bridges and virtual networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.bridges import VNETS

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["check_vnet", "may_see_bridge"]


def may_see_bridge(call: Call, zone: str, bridge: str) -> bool:
    """Return whether the caller may see or use a bridge, or one of its VLANs at least."""
    path = f"/sdn/zones/{zone}/{bridge}"
    vlans = [found for found in call.world.permissions.directory.acl_paths() if found.startswith(f"{path}/")]
    return any(call.may(found, "SDN.Audit", "SDN.Use", any_of=True) for found in (*vlans, path))


def check_vnet(call: Call, *privileges: str) -> Document:
    """Return the virtual network of the path, if the caller has any of some privileges on it.

    Raises:
        PveError: There is no such network, or 403.
    """
    vnet = call.store.get(VNETS, call.params["vnet"])
    if vnet is None:
        raise PveError(f"sdn vnet '{call.params['vnet']}' does not exist")
    call.check(f"/sdn/zones/{vnet['zone']}/{call.params['vnet']}", *privileges, any_of=True)
    return vnet
