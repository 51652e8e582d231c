"""What a file may have: each section, and the kind of resource that its entries are."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CLUSTER", "NODE", "Layout", "Section"]

_NOTHING: frozenset[str] = frozenset()


class Layout(enum.Enum):
    """How the entries of a section are written."""

    BY_NAME = "a mapping from names to entries"
    LIST = "a list of entries"
    ONE = "one entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section.

    Attributes:
        path: Its keys from the top of the file.
        kinds: The kinds of resource by the word in `type`; the one kind under an empty word.
        layout: How its entries are written.
        key: The attribute that has the name of an entry.
        node: The attribute that has the node, in the file of one.
        names: What attributes are called in the file, where that differs.
        without: Attributes that a file cannot set.
        short: The attribute that an entry gives which is no mapping.
        item_short: The same for the entries of that attribute.
        after: Sections whose objects are made before those here that name them.
        identity: The attributes that tell the entries of a list apart.
        between: What joins them to a name.
        secret_texts: Attributes whose texts may be secrets, although bpg/proxmox does not say so.
        apart: Attributes that `credentials` sets outside the engine.
    """

    path: tuple[str, ...]
    kinds: Mapping[str, str]
    layout: Layout = Layout.BY_NAME
    key: str = "name"
    node: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = _NOTHING
    short: str = ""
    item_short: str = ""
    after: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    between: str = "/"
    secret_texts: frozenset[str] = _NOTHING
    apart: frozenset[str] = _NOTHING

    @property
    def name(self) -> str:
        """Its path as a text."""
        return ".".join(self.path)


def _named(path: str, kind: str, key: str = "name", **more: object) -> Section:
    return Section(path=tuple(path.split(".")), kinds={"": kind}, key=key, **more)  # type: ignore[arg-type]


def _one(path: str, kind: str, **more: object) -> Section:
    return Section(
        path=tuple(path.split(".")),
        kinds={"": kind},
        layout=Layout.ONE,
        key="",
        **more,  # type: ignore[arg-type]
    )


def _listed(path: str, kind: str, **more: object) -> Section:
    return Section(
        path=tuple(path.split(".")),
        kinds={"": kind},
        layout=Layout.LIST,
        key="",
        **more,  # type: ignore[arg-type]
    )


def _typed(path: str, prefix: str, key: str, words: str, **more: object) -> Section:
    kinds = {word: f"{prefix}{word}" for word in words.split()}
    return Section(path=tuple(path.split(".")), kinds=kinds, key=key, **more)  # type: ignore[arg-type]


# Of a guest, which is not the cluster's or a node's.
_OF_GUESTS = frozenset({"vm_id", "container_id", "node_name"})
_FIREWALL_PARTS = ("firewall.aliases", "firewall.ipsets", "firewall.groups")

CLUSTER: tuple[Section, ...] = (
    _one("options", "cluster_options"),
    _typed("storages", "storage_", "id", "directory nfs cifs lvm lvmthin zfspool pbs"),
    _named("pools", "pool", "pool_id"),
    _typed("realms", "realm_", "realm", "ldap openid"),
    _named("groups", "group", "group_id", without=frozenset({"acl"})),
    _named("roles", "role", "role_id", short="privileges"),
    _named(
        "users",
        "user",
        "user_id",
        without=frozenset({"acl"}),
        apart=frozenset({"password"}),
        after=("groups", "realms"),
    ),
    _listed(
        "acl",
        "acl",
        identity=("user_id", "group_id", "token_id", "role_id", "path"),
        after=("groups", "users", "roles", "pools", "storages"),
    ),
    _named("mappings.pci", "hardware_mapping_pci", short="map"),
    _named("mappings.usb", "hardware_mapping_usb", short="map"),
    _named("mappings.directories", "hardware_mapping_dir", short="map"),
    _named("metrics", "metrics_server"),
    _named("backups", "backup_job", "id", after=("storages", "pools")),
    _named("replications", "replication", "id"),
    _named("acme.accounts", "acme_account"),
    _named(
        "acme.plugins",
        "acme_dns_plugin",
        "plugin",
        without=frozenset({"digest"}),
        secret_texts=frozenset({"data"}),
    ),
    _named("sdn.controllers", "sdn_controller_evpn", "id", after=("sdn.fabrics",)),
    _typed("sdn.fabrics", "sdn_fabric_", "id", "openfabric ospf"),
    _typed("sdn.zones", "sdn_zone_", "id", "simple vlan vxlan qinq evpn", after=("sdn.controllers",)),
    _named("sdn.vnets", "sdn_vnet", "id", after=("sdn.zones",)),
    # Named as the subnets of a site's networks are.
    _listed("sdn.subnets", "sdn_subnet", identity=("vnet", "cidr"), between="_", after=("sdn.vnets",)),
    _named("firewall.aliases", "firewall_alias", without=_OF_GUESTS, short="cidr"),
    _named(
        "firewall.ipsets",
        "firewall_ipset",
        names={"entries": "cidr"},
        without=_OF_GUESTS,
        short="entries",
        item_short="name",
        after=("firewall.aliases",),
    ),
    _named(
        "firewall.groups",
        "cluster_firewall_security_group",
        names={"rules": "rule"},
        without=_OF_GUESTS,
        short="rules",
        after=("firewall.aliases", "firewall.ipsets"),
    ),
    _one(
        "firewall.rules",
        "firewall_rules",
        names={"rules": "rule"},
        without=_OF_GUESTS,
        short="rules",
        after=_FIREWALL_PARTS,
    ),
    # Last: what it lets in has to be there before it closes.
    _one("firewall.options", "cluster_firewall", after=("firewall.rules", *_FIREWALL_PARTS)),
)
NODE: tuple[Section, ...] = (
    _named("bonds", "network_linux_bond", node="node_name"),
    _named("bridges", "network_linux_bridge", node="node_name", after=("bonds",)),
    _named("vlans", "network_linux_vlan", node="node_name", after=("bonds", "bridges")),
    _one("dns", "dns", node="node_name"),
    _one("hosts", "hosts", node="node_name", names={"entries": "entry"}, short="entries"),
    _one("time", "time", node="node_name", short="time_zone"),
    _one("config", "node_config", node="node_name"),
    _listed("repositories", "apt_repository", node="node", identity=("file_path", "index")),
    _listed(
        "standard_repositories",
        "apt_standard_repository",
        node="node",
        short="handle",
        identity=("handle",),
    ),
    _named("zfs", "node_disk_zfs", node="node_name"),
    _one("certificate", "certificate", node="node_name"),
    _one("acme_certificate", "acme_certificate", node="node_name"),
    _one(
        "firewall.rules",
        "firewall_rules",
        node="node_name",
        names={"rules": "rule"},
        without=_OF_GUESTS,
        short="rules",
    ),
    _one("firewall.options", "node_firewall", node="node_name", after=("firewall.rules",)),
)
