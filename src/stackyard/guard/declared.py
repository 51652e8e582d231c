"""What the layers below declare: objects of hypervisors that guests use by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ACCOUNT",
    "ALIAS",
    "BRIDGE",
    "CONTROLLER",
    "DIRECTORY",
    "FABRIC",
    "GROUP",
    "GUEST",
    "IP_SET",
    "NODE",
    "PCI",
    "PLUGIN",
    "POOL",
    "REALM",
    "ROLE",
    "STORAGE",
    "USB",
    "USER",
    "USER_GROUP",
    "VNET",
    "ZONE",
    "Declared",
    "DeclaredObject",
]

# What others use by its name.
BRIDGE, STORAGE, POOL = "bridge", "storage", "pool"
PCI, USB, DIRECTORY = "pci", "usb", "dir"
ACCOUNT, PLUGIN = "acme_account", "acme_dns_plugin"
GROUP, IP_SET, ALIAS = "cluster_firewall_security_group", "firewall_ipset", "firewall_alias"
USER, USER_GROUP, ROLE, REALM = "user", "group", "role", "realm"
ZONE, VNET, CONTROLLER, FABRIC = "sdn_zone", "sdn_vnet", "sdn_controller", "sdn_fabric"
NODE, GUEST = "node", "guest"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredObject:
    """An object that a target declares.

    Attributes:
        kind: What sort of object guests use it as.
        name: Its name.
        target: The target, as users name it.
        nodes: The nodes that have it, by their names in Proxmox; all when empty.
    """

    kind: str
    name: str
    target: str
    nodes: frozenset[str] = frozenset()

    def is_on(self, node: str) -> bool:
        """Return whether a node can use it; the whole cluster can, where no node is named."""
        return not node or not self.nodes or node in self.nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the targets below declare."""

    objects: tuple[DeclaredObject, ...] = ()

    def has(self, kind: str, name: str, node: str = "") -> bool:
        """Return whether a target declares something, for a node where one is named."""
        return any((one.kind, one.name) == (kind, name) and one.is_on(node) for one in self.objects)

    def explain(self, kind: str, name: str, node: str, known: Iterable[str]) -> str:
        """Return why something is not there: it is not applied yet, or another name is meant.

        Args:
            kind: What sort of object it is.
            name: Its name.
            node: The node of what uses it; empty where that is the whole cluster.
            known: What there is of that kind.
        """
        there = [one for one in self.objects if one.kind == kind and one.is_on(node)]
        target = next((one.target for one in there if one.name == name), None)
        if target is not None:
            return f" {target} declares it, and was not applied since: stackyard apply {target}"
        return did_you_mean(name, sorted({*known, *(one.name for one in there)}))
