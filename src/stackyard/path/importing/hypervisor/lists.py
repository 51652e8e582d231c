"""Which list of the API has the objects of each kind, and the id that each is imported by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LISTS", "Listing", "listing_of"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Where the objects of a kind are listed.

    Attributes:
        path: The path of the list, with `{node}` for the node; empty for what there is one of.
        key: The property that has the name of an object.
        given: The id of an import, of the properties of a row and `{node}`.
        only: The properties that tell objects of this kind from others in the list.
        is_builtin: Tells which rows Proxmox has by itself.
        rows: Returns the rows in an answer that is no list of them.
        below: The list whose rows have one such list each, and whose properties the path names.
        unless: The kind that an object is of instead, where it is listed as one too.
        read_with: Attributes that are only read where they are set already.
        usual: Values that need not be written, beside the defaults of the provider.
        unset: The entry of settings that nobody has made.
        private: Attributes that hold secrets, beside those that the schema marks.
        keeps_defaults: Whether defaults are written too: what a file leaves out is not watched.
    """

    path: str = ""
    key: str = ""
    given: str
    only: Mapping[str, str] = field(default_factory=dict)
    is_builtin: Callable[[Row], bool] = lambda row: False
    rows: Callable[[Any], Iterable[Row]] = lambda answer: answer
    below: str = ""
    unless: str = ""
    read_with: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    unset: Mapping[str, Any] = field(default_factory=dict)
    private: frozenset[str] = frozenset()
    keeps_defaults: bool = False


def _list(path: str, key: str, given: str = "", **more: Any) -> Listing:
    return Listing(path=path, key=key, given=given or f"{{{key}}}", **more)


# What a node has without anybody's wish: its cards, what the SDN makes, and other addresses of the same.
_NOT_WRITTEN = ("eth", "alias", "fabric", "vnet", "unknown")


def _realm(type_: str) -> Listing:
    return _list(
        "/access/domains",
        "realm",
        only={"type": type_},
        is_builtin=lambda row: row.get("type") in ("pam", "pve"),
    )


def _storage(type_: str, **more: Any) -> Listing:
    return _list("/storage", "storage", only={"type": type_}, **more)


def _interface(type_: str, **more: Any) -> Listing:
    return _list(
        "/nodes/{node}/network",
        "iface",
        "{node}:{iface}",
        only={"type": type_},
        is_builtin=lambda row: row.get("type") in _NOT_WRITTEN,
        **more,
    )


def _zone(type_: str) -> Listing:
    return _list("/cluster/sdn/zones", "zone", only={"type": type_})


def _repositories(answer: Mapping[str, Any]) -> Iterable[Row]:
    for file in answer.get("files") or ():
        for index in range(len(file["repositories"])):
            yield {"path": file["path"], "index": index}


def _standard_repositories(answer: Mapping[str, Any]) -> Iterable[Row]:
    # The others are those that could be added.
    return (row for row in answer.get("standard-repos") or () if row.get("status") is not None)


def _certificates(answer: Iterable[Row]) -> Iterable[Row]:
    return (row for row in answer if row.get("filename") == "pveproxy-ssl.pem")


def _acme_settings(answer: Row) -> Iterable[Row]:
    return [answer] if any(name.startswith("acme") for name in answer) else []


_BACKUPS: Mapping[str, Any] = {"read_with": {"backups": {}}}
_REPOSITORIES = "/nodes/{node}/apt/repositories"

# By the kinds of `sections`.
LISTS: Mapping[str, Listing] = {
    # The prefix is the one of new clusters, which Proxmox shows also where it is not set.
    "cluster_options": Listing(given="cluster", usual={"mac_prefix": "BC:24:11"}),
    "storage_directory": _storage("dir", **_BACKUPS),
    "storage_nfs": _storage("nfs", **_BACKUPS),
    "storage_cifs": _storage("cifs", **_BACKUPS),
    "storage_lvm": _storage("lvm"),
    "storage_lvmthin": _storage("lvmthin"),
    "storage_zfspool": _storage("zfspool"),
    "storage_pbs": _storage("pbs", **_BACKUPS),
    "pool": _list("/pools", "poolid"),
    "realm_ldap": _realm("ldap"),
    "realm_openid": _realm("openid"),
    "group": _list("/access/groups", "groupid"),
    "role": _list("/access/roles", "roleid", is_builtin=lambda row: bool(row.get("special"))),
    "user": _list("/access/users", "userid", is_builtin=lambda row: row["userid"] == "root@pam"),
    "acl": _list(
        "/access/acl",
        "path",
        "{path}?{ugid}?{roleid}",
        # The rights of a token are made with it.
        is_builtin=lambda row: row.get("type") == "token",
    ),
    "hardware_mapping_pci": _list("/cluster/mapping/pci", "id"),
    "hardware_mapping_usb": _list("/cluster/mapping/usb", "id"),
    "hardware_mapping_dir": _list("/cluster/mapping/dir", "id"),
    "metrics_server": _list("/cluster/metrics/server", "id"),
    "backup_job": _list("/cluster/backup", "id", usual={"enabled": True}),
    "replication": _list("/cluster/replication", "id", is_builtin=lambda row: bool(row.get("remove_job"))),
    "acme_account": _list("/cluster/acme/account", "name"),
    "acme_dns_plugin": _list(
        "/cluster/acme/plugins",
        "plugin",
        only={"type": "dns"},
        is_builtin=lambda row: row.get("type") == "standalone",
        private=frozenset({"data"}),
    ),
    "sdn_controller_evpn": _list("/cluster/sdn/controllers", "controller", only={"type": "evpn"}),
    "sdn_fabric_openfabric": _list("/cluster/sdn/fabrics/fabric", "id", only={"protocol": "openfabric"}),
    "sdn_fabric_ospf": _list("/cluster/sdn/fabrics/fabric", "id", only={"protocol": "ospf"}),
    **{f"sdn_zone_{type_}": _zone(type_) for type_ in ("simple", "vlan", "vxlan", "qinq", "evpn")},
    "sdn_vnet": _list("/cluster/sdn/vnets", "vnet"),
    "sdn_subnet": _list(
        "/cluster/sdn/vnets/{vnet}/subnets",
        "subnet",
        "{vnet}/{subnet}",
        below="/cluster/sdn/vnets",
    ),
    "firewall_alias": _list("/cluster/firewall/aliases", "name", "cluster/{name}"),
    "firewall_ipset": _list("/cluster/firewall/ipset", "name", "cluster/{name}"),
    "cluster_firewall_security_group": _list("/cluster/firewall/groups", "group"),
    "cluster_firewall": Listing(given="cluster-firewall", unset={"ebtables": True}, keeps_defaults=True),
    "network_linux_bond": _interface("bond"),
    # Proxmox gives a bridge that is aware of VLANs all of them.
    "network_linux_bridge": _interface("bridge", usual={"vlan_aware": False, "vids": "2-4094"}),
    "network_linux_vlan": _interface("vlan"),
    "dns": Listing(given="{node}"),
    "hosts": Listing(given="{node}"),
    "time": Listing(given="{node}"),
    "node_config": Listing(given="{node}"),
    "apt_repository": _list(_REPOSITORIES, "path", "{node},{path},{index}", rows=_repositories),
    "apt_standard_repository": _list(_REPOSITORIES, "handle", "{node},{handle}", rows=_standard_repositories),
    "node_disk_zfs": _list("/nodes/{node}/disks/zfs", "name", "{node}/{name}"),
    "certificate": _list(
        "/nodes/{node}/certificates/info", "filename", "{node}", rows=_certificates, unless="acme_certificate"
    ),
    "acme_certificate": _list("/nodes/{node}/config", "acme", "{node}", rows=_acme_settings),
    "node_firewall": Listing(given="{node}", keeps_defaults=True),
}
_RULES = "firewall_rules"


def listing_of(kind: str, node: str | None) -> Listing:
    """Return where the objects of a kind are listed, for a file of a cluster or of a node."""
    if kind == _RULES:
        return Listing(given="cluster" if node is None else "node/{node}")
    return LISTS[kind]
