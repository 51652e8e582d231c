"""What the objects of `hypervisors/` are called, and what each section describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.hypervisor.sections import CLUSTER, NODE, Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.hypervisor.sections import Section

__all__ = ["KIND_WORDS", "SECTION_WORDS", "Words", "identify_object", "name_object"]


@dataclass(frozen=True, slots=True)
class Words:
    """The words for a section.

    Attributes:
        noun: What one of its entries is called in plans.
        about: What the section is, in a sentence.
    """

    noun: str
    about: str


_RULES = Words(
    "firewall rules", "Rules in the order in which they are tried; the first that matches decides."
)
SECTION_WORDS: Mapping[str, Words] = {
    "options": Words("cluster options", "Options of the datacenter."),
    "storages": Words("storage", "Storages that the nodes use."),
    "pools": Words("pool", "Pools of guests and storages."),
    "realms": Words("realm", "Where users log in, beside `pam` and `pve`."),
    "groups": Words("group", "Groups of users."),
    "roles": Words("role", "Sets of privileges, beside those that Proxmox has."),
    "users": Words("user", "Users, as NAME@REALM."),
    "acl": Words("ACL entry", "Who has which role on which path: a user, a group or a token."),
    "mappings.pci": Words("PCI mapping", "PCI devices of nodes under one name."),
    "mappings.usb": Words("USB mapping", "USB devices of nodes under one name."),
    "mappings.directories": Words("directory mapping", "Folders of nodes under one name, for virtiofs."),
    "metrics": Words("metrics server", "Servers that Proxmox sends its metrics to."),
    "backups": Words("backup job", "Backup jobs; each has one of `all`, `pool` and `vmid`."),
    "replications": Words("replication", "Replications of guests to other nodes, as VMID-NUMBER."),
    "acme.accounts": Words("ACME account", "Accounts at certificate authorities."),
    "acme.plugins": Words("ACME plugin", "How the control of a domain is proved by DNS."),
    "sdn.controllers": Words("SDN controller", "EVPN controllers."),
    "sdn.fabrics": Words("SDN fabric", "Routed networks between the nodes."),
    "sdn.zones": Words("SDN zone", "Zones of virtual networks."),
    "sdn.vnets": Words("SDN vnet", "Virtual networks that guests are plugged into."),
    "sdn.subnets": Words("SDN subnet", "Subnets of virtual networks."),
    "firewall.aliases": Words("firewall alias", "Names for addresses and networks."),
    "firewall.ipsets": Words("firewall ipset", "Sets of addresses, networks and aliases."),
    "firewall.groups": Words("security group", "Rules under a name, that other lists of rules include."),
    "firewall.rules": Words("firewall rules", "Rules in their order: the first that matches decides."),
    "firewall.options": Words("firewall options", "Whether the firewall is on, and what it does by default."),
    "bonds": Words("bond", "Several interfaces as one."),
    "bridges": Words("bridge", "Bridges that guests are plugged into."),
    "vlans": Words("VLAN", "VLANs with an address of the node, as INTERFACE.NUMBER."),
    "dns": Words("DNS settings", "The search domain and the DNS servers of the node."),
    "hosts": Words("hosts file", "The lines of /etc/hosts."),
    "time": Words("time zone", "The time zone of the node."),
    "config": Words("node options", "What is shown about the node."),
    "repositories": Words("APT repository", "Whether lines of /etc/apt are enabled, by file and place."),
    "standard_repositories": Words("APT repository", "Repositories of Proxmox by their handles."),
    "zfs": Words("ZFS pool", "ZFS pools on disks of the node."),
    "certificate": Words("certificate", "A certificate of your own for the API."),
    "acme_certificate": Words("ACME certificate", "A certificate for the API from a certificate authority."),
}

_SECTIONS: Mapping[str, Section] = {
    kind: section for section in (*NODE, *CLUSTER) for kind in section.kinds.values()
}
# By the kind of resource.
KIND_WORDS: Mapping[str, str] = {
    kind: SECTION_WORDS[section.name].noun for kind, section in _SECTIONS.items()
}


def name_object(kind: str, values: Mapping[str, Any]) -> str:
    """Return what an object is called, from its kind and values; empty where they do not say."""
    section = _SECTIONS.get(kind)
    if section is None:
        return ""
    if kind == "acl":
        who = next((values[key] for key in ("user_id", "group_id", "token_id") if values.get(key)), "")
        return f"{values.get('role_id')} for {who} on {values.get('path')}"
    if section.layout is Layout.ONE:
        return _text(values.get("node_name"))
    keys = section.identity[-1:] if kind == "sdn_subnet" else section.identity or (section.key,)
    return " ".join(_text(values.get(key)) for key in keys).strip()


def identify_object(kind: str, values: Mapping[str, Any]) -> str:
    """Return what names an object of a cluster among all of its kind, as it is imported; else nothing."""
    section = _SECTIONS.get(kind)
    if kind == "acl":
        who = next((values[key] for key in ("user_id", "group_id", "token_id") if values.get(key)), None)
        parts = [values.get("path"), who, values.get("role_id")]
        return "?".join(map(_text, parts)) if all(map(_text, parts)) else ""
    if section is None or section.layout is not Layout.BY_NAME or section.node:
        return ""
    name = _text(values.get(section.key))
    # Proxmox knows only one of a name, whatever its case.
    return f"cluster/{name.lower()}" if name and kind.startswith("firewall_") else name


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
