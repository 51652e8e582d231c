"""What the targets of a site declare, as far as others use it by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.guard.declared import (
    ACCOUNT,
    ALIAS,
    BRIDGE,
    CONTROLLER,
    DIRECTORY,
    FABRIC,
    GROUP,
    IP_SET,
    PCI,
    PLUGIN,
    POOL,
    REALM,
    ROLE,
    STORAGE,
    USB,
    USER,
    USER_GROUP,
    VNET,
    ZONE,
    Declared,
    DeclaredObject,
)
from stackyard.sources.hypervisor.build import list_entries
from stackyard.sources.site.entities.networks import BridgeNetwork, SdnNetwork
from stackyard.sources.site.hypervisor_owners import find_node_name, find_owners
from stackyard.sources.site.networks import read_shared_networks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.sources.site.load import Site

__all__ = ["list_declared"]

# What the entries of a section are to those who use them.
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "bridges": (BRIDGE,),
    "sdn.vnets": (BRIDGE, VNET),
    "sdn.zones": (ZONE,),
    "sdn.controllers": (CONTROLLER,),
    "sdn.fabrics": (FABRIC,),
    "storages": (STORAGE,),
    "zfs": (STORAGE,),
    "pools": (POOL,),
    "mappings.pci": (PCI,),
    "mappings.usb": (USB,),
    "mappings.directories": (DIRECTORY,),
    "acme.accounts": (ACCOUNT,),
    "acme.plugins": (PLUGIN,),
    "firewall.groups": (GROUP,),
    "firewall.ipsets": (IP_SET,),
    "firewall.aliases": (ALIAS,),
    "users": (USER,),
    "groups": (USER_GROUP,),
    "roles": (ROLE,),
    "realms": (REALM,),
}


def list_declared(site: Site) -> Declared:
    """Return what the files of `hypervisors/`, site.yaml and the envs declare."""
    return Declared(objects=(*_in_files(site), *_in_site(site), *_in_envs(site)))


def _in_files(site: Site) -> Iterator[DeclaredObject]:
    for name, loaded in sorted(site.hypervisors.items()):
        node = find_node_name(site, loaded)
        for entry in list_entries(loaded.model):
            # A ZFS pool is a storage only where it says so.
            is_meant = entry.section.name != "zfs" or entry.values.get("add_storage")
            said = [node] if node is not None else entry.values.get("nodes") or ()
            for kind in _SECTIONS.get(entry.section.name, ()) if is_meant else ():
                yield DeclaredObject(
                    kind=kind, name=entry.name, target=f"hypervisor:{name}", nodes=frozenset(said)
                )


def _in_site(site: Site) -> Iterator[DeclaredObject]:
    networks = read_shared_networks(site).declared.values()
    for name, loaded in sorted(site.nodes.items()):
        owners = find_owners(site, name)
        whole, node = f"hypervisor:{owners.cluster_wide}", frozenset({loaded.model.node or name})
        for network in networks:
            if isinstance(network.model, SdnNetwork):
                nodes = frozenset(network.model.nodes)
                yield DeclaredObject(kind=BRIDGE, name=network.bridge, target=whole, nodes=nodes)
            elif isinstance(network.model, BridgeNetwork) and network.model.create:
                own = f"hypervisor:{owners.interfaces}"
                yield DeclaredObject(kind=BRIDGE, name=network.bridge, target=own, nodes=node)
        yield from (
            DeclaredObject(kind=POOL, name=pool, target=whole, nodes=node) for pool in site.settings.pools
        )


def _in_envs(site: Site) -> Iterator[DeclaredObject]:
    for env, loaded in sorted(site.envs.items()):
        yield from (DeclaredObject(kind=POOL, name=pool, target=f"env:{env}") for pool in loaded.model.pools)
