"""Where firewalls are in the API: the same calls, once for each scope that has a firewall."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SCOPES", "everywhere", "with_sets"]

# By what Proxmox's texts call them.
SCOPES: Mapping[str, str] = {
    "cluster": "/cluster",
    "host": "/nodes/{node}",
    "vm": "/nodes/{node}/qemu/{vmid}",
    "ct": "/nodes/{node}/lxc/{vmid}",
    "vnet": "/cluster/sdn/vnets/{vnet}",
}


def everywhere(call: str) -> tuple[str, ...]:
    """Return a call (`GET rules/{pos}`) as the routes of all scopes."""
    return _routes(call, *SCOPES)


def with_sets(call: str) -> tuple[str, ...]:
    """Return a call as the routes of the scopes that have aliases and IP sets."""
    return _routes(call, "cluster", "vm", "ct")


def _routes(call: str, *scopes: str) -> tuple[str, ...]:
    verb, _, path = call.partition(" ")
    return tuple(f"{verb} {SCOPES[scope]}/firewall/{path}" for scope in scopes)
